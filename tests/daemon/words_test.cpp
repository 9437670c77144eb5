// gputextd as a process of its own, and jobs on words: every answer, and what it refuses.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "cpp/link/client.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/trie/image.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using namespace testing;

/// Words in one block of memory, and in sealed files.
class PackedWords {
public:
    explicit PackedWords(const std::vector<std::string>& words) {
        for (const std::string& word : words) {
            bytes_ += word;
            begins_.push_back(bytes_.size());
        }
        EXPECT_TRUE(bytes_file_.append(bytes_of(bytes_)).ok());
        EXPECT_TRUE(bytes_file_.seal().ok());
        const auto* const begins = reinterpret_cast<const std::uint8_t*>(begins_.data());
        EXPECT_TRUE(begins_file_.append({begins, begins_.size() * sizeof begins_[0]}).ok());
        EXPECT_TRUE(begins_file_.seal().ok());
    }
    PackedWords(const PackedWords&) = delete;

    Words words() const { return {bytes_of(bytes_).data(), begins_.data(), begins_.size() - 1}; }
    WordFiles copied() const { return {words(), -1, -1}; }
    WordFiles filed() const {
        return {words(), bytes_file_.descriptor(), begins_file_.descriptor()};
    }

private:
    std::string bytes_;
    std::vector<std::uint64_t> begins_{0};
    MemoryFile bytes_file_, begins_file_;
};

std::vector<std::uint8_t> image_of(const std::vector<std::string>& words,
                                   TrieStructure structure = TrieStructure::front) {
    Execution execution(2);
    auto image = build_trie(structure, PackedWords(words).words(), execution);
    EXPECT_TRUE(image.ok()) << image.status().message();
    return std::move(*image);
}

std::vector<std::uint32_t> expected_codes(const std::vector<std::string>& dictionary,
                                          const Words& words) {
    const std::set<std::string> unique(dictionary.begin(), dictionary.end());
    const std::vector<std::string> sorted(unique.begin(), unique.end());
    std::vector<std::uint32_t> codes;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto at = std::lower_bound(sorted.begin(), sorted.end(), words[i]);
        const bool known = at != sorted.end() && *at == words[i];
        codes.push_back(known ? static_cast<std::uint32_t>(at - sorted.begin()) : Trie::kNone);
    }
    return codes;
}

WordLookupRequest lookup_of(const std::vector<std::uint8_t>& image, const WordFiles& words) {
    TrieHeader header{};
    std::memcpy(&header, image.data(), std::min(image.size(), sizeof header));
    WordLookupRequest request;
    request.dictionary = image;
    request.dictionary_words = header.words;
    request.words = words;
    return request;
}

class GputextdWords : public ::testing::Test {
protected:
    explicit GputextdWords(int devices = 1)
        : daemon_(socket_, {"--fake-devices=" + std::to_string(devices), "--allow-faults"}) {
        connection_ = connect_to(socket_);
    }

    template <class Answer, class Request>
    auto answer(const Request& request) {
        using Read = decltype(std::declval<Answer>().read());
        const Status sent = connection_->submit(request);
        EXPECT_TRUE(sent.ok()) << sent.message();
        const auto reply = next<Answer>(*connection_);
        return reply.ok() ? reply->read() : Read(reply.status());
    }
    auto codes(const WordLookupRequest& request) { return answer<WordLookupAnswer>(request); }

    /// `count` words of up to `longest` letters, with copies among them.
    std::vector<std::string> words(std::size_t count, std::size_t longest,
                                   std::string_view letters) {
        std::vector<std::string> made;
        for (std::size_t i = 0; i < count; ++i)
            made.push_back(random_.string(random_.below(longest + 1), letters));
        return made;
    }

    void expect_job_answered() {
        const std::vector<std::string> some{"b", "a", "c"};
        const PackedWords asked({"c", "x", "a"});
        const auto found = codes(lookup_of(image_of(some), asked.copied()));
        ASSERT_TRUE(found.ok()) << found.status().message();
        EXPECT_EQ(*found, (std::vector<std::uint32_t>{2, Trie::kNone, 0}));
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    DaemonProcess daemon_;
    std::unique_ptr<DaemonConnection> connection_;
    RandomStrings random_;
};

TEST_F(GputextdWords, AnswersAsADictionaryDoes) {
    using namespace std::string_literals;
    const std::string_view alphabets[] = {"ab", "etaoinshrdlu", {"\x00\x01\xfe\xff", 4}};
    for (const std::size_t count : {0, 1, 31, 33, 5000})
        for (const std::string_view letters : alphabets) {
            auto dictionary = words(count, 12, letters);
            if (count == 33)
                dictionary = {std::string(kSanitized ? 1 << 16 : 1 << 20, 'x'), "x", ""};
            auto some = words(3000, 12, letters);
            some.insert(some.end(), dictionary.begin(), dictionary.end());
            for (const TrieStructure structure : kTrieStructures)
                for (const auto& asked : {std::vector<std::string>{}, {""s}, some}) {
                    const auto image = image_of(dictionary, structure);
                    const PackedWords packed(asked);
                    const auto expected = expected_codes(dictionary, packed.words());
                    for (const WordFiles& files : {packed.copied(), packed.filed()}) {
                        const auto found = codes(lookup_of(image, files));
                        ASSERT_TRUE(found.ok()) << found.status().message();
                        ASSERT_TRUE(*found == expected) << name_of(structure) << ", " << count;
                    }
                }
        }
}

TEST_F(GputextdWords, BuildsTheSameDictionary) {
    const std::string_view alphabets[] = {"ab", "etaoinshrdlu", {"\x00\x01\xfe\xff", 4}};
    for (const std::size_t count : {0, 1, 31, 33, 20000})
        for (const std::string_view letters : alphabets) {
            const auto some = words(count, 12, letters);
            const PackedWords packed(some);
            for (const TrieStructure structure : kTrieStructures)
                for (const WordFiles& files : {packed.copied(), packed.filed()}) {
                    TrieBuildRequest request;
                    request.structure = structure;
                    request.words = files;
                    const auto image = answer<TrieBuildAnswer>(request);
                    ASSERT_TRUE(image.ok()) << image.status().message();
                    ASSERT_TRUE(*image == image_of(some, structure))
                        << name_of(structure) << ", " << count;
                }
        }
}

TEST_F(GputextdWords, RefusesBrokenDictionaries) {
    const auto some = words(2000, 10, "etaoin");
    const auto image = image_of(some);
    const PackedWords packed(some);
    const auto code_of = [&](const std::vector<std::uint8_t>& broken) {
        return codes(lookup_of(broken, packed.copied())).status().code();
    };
    for (int i = 0; i < 200; ++i) {
        auto changed = image;
        changed[random_.below(changed.size())] ^= static_cast<std::uint8_t>(1 << random_.below(8));
        ASSERT_EQ(code_of(changed), ErrorCode::invalid_argument);
    }
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, sizeof(TrieHeader), image.size() / 2, image.size() - 1}) {
        auto cut = image;
        cut.resize(size);
        ASSERT_EQ(code_of(cut), ErrorCode::invalid_argument) << size;
    }
    auto longer = image;
    longer.push_back(0);
    EXPECT_EQ(code_of(longer), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of(std::vector<std::uint8_t>(5000, 'x')), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of(image), ErrorCode::ok);
}

TEST_F(GputextdWords, RefusesFilesThatAreWrong) {
    const std::vector<std::string> some{"b", "a", "c"};
    const auto image = image_of(some);
    const PackedWords packed(some);
    const auto good = lookup_of(image, packed.filed());
    const std::uint64_t beyond[] = {0, 1, 7, 3};
    auto request = good;
    request.words = packed.copied();
    request.words.words.begins = beyond;
    EXPECT_EQ(codes(request).status().code(), ErrorCode::invalid_argument);
    TrieBuildRequest build;
    build.words = request.words;
    EXPECT_EQ(answer<TrieBuildAnswer>(build).status().code(), ErrorCode::invalid_argument);
    request = good;
    std::swap(request.words.bytes, request.words.begins);
    EXPECT_EQ(codes(request).status().code(), ErrorCode::invalid_argument);
    const FileDescriptor open = std::move(*new_memory_file());
    ASSERT_TRUE(write_file(open.get(), bytes_of("bac"), 0).ok());
    request = good;
    request.words.bytes = open.get();
    EXPECT_EQ(codes(request).status().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(codes(good).status().code(), ErrorCode::ok);
}

TEST_F(GputextdWords, BrokenRepliesAreErrorsOfTheirClients) {
    const std::vector<std::string> some{"b", "a", "c"};
    const auto image = image_of(some);
    const PackedWords packed(some);
    for (const char* fault :
         {"no_reply", "wrong_magic", "wrong_length", "wrong_counts", "wrong_answer", "short_file",
          "unsealed_file", "no_file", "too_many_files"})
        for (const bool build : {false, true}) {
            connection_ = connect_to(socket_);
            ASSERT_TRUE(connection_->inject_fault(std::string("before_reply:") + fault).ok());
            TrieBuildRequest request;
            request.words = packed.filed();
            const Status status = build ? answer<TrieBuildAnswer>(request).status()
                                        : codes(lookup_of(image, packed.filed())).status();
            EXPECT_EQ(status.code(), ErrorCode::unavailable) << fault;
        }
    connection_ = connect_to(socket_);
    expect_job_answered();
}

TEST_F(GputextdWords, FailuresOfTheDeviceAreErrorsOfTheJob) {
    const auto image = image_of({"a", "b"});
    const PackedWords packed({"b"});
    for (const auto& [fault, code] : {std::pair{"in_job:device_error", ErrorCode::device_error},
                                      {"in_job:out_of_memory:100", ErrorCode::out_of_memory}}) {
        ASSERT_TRUE(connection_->inject_fault(fault).ok());
        EXPECT_EQ(codes(lookup_of(image, packed.filed())).status().code(), code);
        ASSERT_TRUE(connection_->inject_fault(fault).ok());
        TrieBuildRequest build;
        build.words = packed.filed();
        EXPECT_EQ(answer<TrieBuildAnswer>(build).status().code(), code);
        expect_job_answered();
    }
    ASSERT_TRUE(connection_->inject_fault("in_job:out_of_memory:2").ok());
    ASSERT_TRUE(connection_->submit(lookup_of(image, packed.filed())).ok());
    const auto reply = next<WordLookupAnswer>(*connection_);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->summary.report.retries, 2u);
    EXPECT_EQ(*reply->read(), std::vector<std::uint32_t>{1});
}

TEST_F(GputextdWords, SaysWhatItRuns) {
    const auto image = image_of({"a", "b"});
    const PackedWords packed({"b", "c", "a"});
    const auto watcher = connect_to(socket_);
    for (const bool build : {false, true}) {
        ASSERT_TRUE(connection_->inject_fault("in_job:hold").ok());
        TrieBuildRequest request;
        request.words = packed.filed();
        ASSERT_TRUE((build ? connection_->submit(request)
                           : connection_->submit(lookup_of(image, packed.filed())))
                        .ok());
        std::vector<RunningJob> jobs;
        ASSERT_TRUE(soon([&] { return !(jobs = running_jobs(*watcher)).empty(); }));
        lift_faults(*watcher);
        EXPECT_EQ(jobs[0].operation, build ? "trie_build" : "word_lookup");
        EXPECT_EQ(jobs[0].rows, 3u);
        EXPECT_EQ(jobs[0].bytes, 3u + 3 * 8 + (build ? 0 : image.size()));
        EXPECT_TRUE(build ? next<TrieBuildAnswer>(*connection_).ok()
                          : next<WordLookupAnswer>(*connection_).ok());
    }
}

/// As many words as the devices are worth, and a few more.
class GputextdWordDevices : public GputextdWords, public ::testing::WithParamInterface<int> {
protected:
    GputextdWordDevices() : GputextdWords(GetParam()) {}

    static std::vector<std::string> numbers(std::size_t count) {
        std::vector<std::string> made;
        for (std::size_t i = 0; i < count; ++i) made.push_back(std::to_string(i * 7919 % 100'003));
        return made;
    }

    /// Of a job whose codes are right.
    Result<JobReport> report_of_codes(const WordLookupRequest& request) {
        EXPECT_TRUE(connection_->submit(request).ok());
        const auto reply = next<WordLookupAnswer>(*connection_);
        if (!reply.ok()) return reply.status();
        const auto found = reply->read();
        if (!found.ok()) return found.status();
        EXPECT_EQ(found->size(), packed_.words().size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < found->size(); ++i)
            wrong += (*found)[i] != expected_[i % expected_.size()];
        EXPECT_EQ(wrong, 0u);
        return reply->summary.report;
    }

    void expect_codes(unsigned devices, const WordLookupRequest& request) {
        const auto report = report_of_codes(request);
        ASSERT_TRUE(report.ok()) << report.status().message();
        const std::string& names = report->device_name;
        EXPECT_EQ(std::count(names.begin(), names.end(), ',') + 1, devices) << names;
    }

    const std::vector<std::string> dictionary_ = numbers(50'000);
    const std::vector<std::uint8_t> image_ = image_of(dictionary_);
    const PackedWords packed_{numbers((static_cast<std::size_t>(GetParam()) << 20) + 1000)};
    // The words come again behind so many.
    const std::vector<std::uint32_t> expected_ =
        expected_codes(dictionary_, PackedWords(numbers(100'003)).words());
};

INSTANTIATE_TEST_SUITE_P(Fake, GputextdWordDevices,
                         ::testing::ValuesIn(numbers_of_devices({1, 2, 4})));

TEST_P(GputextdWordDevices, ShareOutManyWords) {
    const auto devices = static_cast<unsigned>(GetParam());
    gather_devices(*connection_, devices);
    expect_codes(devices, lookup_of(image_, packed_.filed()));
    WordLookupRequest request = lookup_of(image_, packed_.filed());
    request.limits.device = GetParam() - 1;
    expect_codes(1, request);
}

TEST_P(GputextdWordDevices, StandInForOneThatFails) {
    expect_others_to_stand_in(daemon_, *connection_, GetParam(),
                              [&] { return report_of_codes(lookup_of(image_, packed_.filed())); });
}

TEST_P(GputextdWordDevices, EndTogetherWhenAllAreCancelled) {
    for (const int after : {0, 20, 100}) {
        const auto cancelled = connect_to(socket_);
        ASSERT_TRUE(cancelled->submit(lookup_of(image_, packed_.filed())).ok());
        std::this_thread::sleep_for(std::chrono::milliseconds(after));
    }
    expect_job_answered();
}

}  // namespace
}  // namespace gputext
