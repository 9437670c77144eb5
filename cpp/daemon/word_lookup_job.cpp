#include <algorithm>
#include <vector>

#include "cpp/base/words.hpp"
#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext {
namespace {

/// Words that are worth a device of their own.
constexpr std::size_t kLeastPart = std::size_t{1} << 20;

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

}  // namespace

Status WordLookupOnDevice::on_host(std::span<const std::uint8_t> dictionary, const Words& words,
                                   std::uint64_t, Execution& execution,
                                   std::span<std::uint32_t> codes) {
    const Result<std::unique_ptr<Trie>> trie = open_trie(dictionary);
    if (!trie.ok()) return trie.status();
    return lookup_words(**trie, words, codes, execution);
}

template <>
class Job<SubmitWordLookup> : public JobOf<SubmitWordLookup> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        GPUTEXT_TRY(map_next(files, request_.dictionary_bytes, Trust::sealed, dictionary_));
        return words_.map(request_.words, files, execution.stop());
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
            return device.compute<WordLookupOnDevice>(dictionary_.bytes(), all, memory, execution,
                                                      codes_);
        const std::size_t begin = all.size() * part / parts_;
        const std::size_t end = all.size() * (part + 1) / parts_;
        const WordPart own(all, begin, end);
        return device.compute<WordLookupOnDevice>(dictionary_.bytes(), own.words(), memory,
                                                  execution,
                                                  std::span(codes_).subspan(begin, end - begin));
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning codes", 0);
        return append_all(file, codes_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return WordLookupReply{report, request_.words.words};
    }

private:
    MappedFile dictionary_;
    MappedWords words_;
    std::size_t parts_ = 1;
    std::vector<std::uint32_t> codes_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitWordLookup& request);

}  // namespace gputext
