#include <algorithm>
#include <vector>

#include "cpp/base/words.hpp"
#include "cpp/daemon/operator_job.hpp"
#include "cpp/daemon/vector_files.hpp"

namespace gputext {
namespace {

/// Words that are worth a device of their own.
constexpr std::size_t kLeastPart = std::size_t{1} << 20;

/// The words that a request's files hold.
class MappedWords {
public:
    Status map(const WordsShape& shape, std::span<const FileDescriptor> files, Stop stop) {
        const std::size_t begins = shape.words + std::size_t{1};
        Status status = map_file(files[0], shape.bytes, Trust::sealed_or_disk, bytes_);
        if (status.ok())
            status = map_file(files[1], begins * sizeof(std::uint64_t), Trust::sealed, begins_);
        if (!status.ok()) return status;
        const auto checked = begins_.array<std::uint64_t>(0, begins);
        static constexpr std::uint8_t nothing = 0;
        words_ = {shape.bytes == 0 ? &nothing : bytes_.bytes().data(), checked.data(), shape.words};
        return check_word_begins(checked, shape.bytes, stop);
    }

    const Words& words() const { return words_; }

private:
    MappedFile bytes_, begins_;
    Words words_;
};

/// Some of the words, as words of their own.
class WordPart {
public:
    WordPart(const Words& all, std::size_t begin, std::size_t end) {
        begins_.reserve(end - begin + 1);
        for (std::size_t i = begin; i <= end; ++i)
            begins_.push_back(all.begins[i] - all.begins[begin]);
        words_ = {all.bytes + all.begins[begin], begins_.data(), end - begin};
    }
    WordPart(const WordPart&) = delete;

    const Words& words() const { return words_; }

private:
    std::vector<std::uint64_t> begins_;
    Words words_;
};

class WordLookupJob : public OperatorJob {
public:
    explicit WordLookupJob(const SubmitWordLookup& request) : request_(request) {}

    const char* operation() const override { return "word_lookup"; }
    std::uint16_t request_type() const override { return SubmitWordLookup::type; }
    const JobLimits& limits() const override { return request_; }
    std::uint64_t rows() const override { return request_.words.words; }
    std::uint64_t bytes() const override {
        return request_.dictionary_bytes + request_.words.input_bytes();
    }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        Status status = map_file(files[0], request_.dictionary_bytes, Trust::sealed, dictionary_);
        return status.ok() ? words_.map(request_.words, files.subspan(1), execution.stop())
                           : status;
    }
    Result<std::size_t> prepare(std::size_t devices, Execution&) override {
        const std::size_t count = words_.words().size();
        codes_.resize(count);
        return parts_ = std::clamp<std::size_t>(count / kLeastPart, 1, devices);
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const Words& all = words_.words();
        if (parts_ == 1)
            return device.lookup_words(dictionary_.bytes(), all, memory, execution, codes_);
        const std::size_t begin = all.size() * part / parts_;
        const std::size_t end = all.size() * (part + 1) / parts_;
        const WordPart own(all, begin, end);
        return device.lookup_words(dictionary_.bytes(), own.words(), memory, execution,
                                   std::span(codes_).subspan(begin, end - begin));
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning codes", 0);
        return append_all(file, codes_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return WordCodesReply{report, request_.words.words};
    }

private:
    const SubmitWordLookup request_;
    MappedFile dictionary_;
    MappedWords words_;
    std::size_t parts_ = 1;
    std::vector<std::uint32_t> codes_;
};

class TrieBuildJob : public OperatorJob {
public:
    explicit TrieBuildJob(const SubmitTrieBuild& request) : request_(request) {}

    const char* operation() const override { return "trie_build"; }
    std::uint16_t request_type() const override { return SubmitTrieBuild::type; }
    const JobLimits& limits() const override { return request_; }
    std::uint64_t rows() const override { return request_.words.words; }
    std::uint64_t bytes() const override { return request_.words.input_bytes(); }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        return words_.map(request_.words, files, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return device.build_trie(request_.structure, words_.words(), memory, execution, image_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning the dictionary", 0);
        return append_all(file, image_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return TrieImageReply{report, request_.words.words, image_.size()};
    }

private:
    const SubmitTrieBuild request_;
    MappedWords words_;
    std::vector<std::uint8_t> image_;
};

}  // namespace

std::unique_ptr<OperatorJob> word_lookup_job(const SubmitWordLookup& request) {
    return std::make_unique<WordLookupJob>(request);
}

std::unique_ptr<OperatorJob> trie_build_job(const SubmitTrieBuild& request) {
    return std::make_unique<TrieBuildJob>(request);
}

}  // namespace gputext
