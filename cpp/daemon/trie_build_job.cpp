#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"

namespace gputext {

Result<std::vector<std::uint8_t>> TrieBuildOnDevice::on_host(TrieStructure structure,
                                                             const Words& words, std::uint64_t,
                                                             Execution& execution) {
    return build_trie(structure, words, execution);
}

template <>
class Job<SubmitTrieBuild> : public JobOf<SubmitTrieBuild> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        return words_.map(request_.words, files, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return take_answer(device.compute<TrieBuildOnDevice>(request_.structure, words_.words(),
                                                             memory, execution),
                           image_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning the dictionary", 0);
        return append_all(file, image_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return TrieBuildReply{report, request_.words.words, image_.size()};
    }

private:
    MappedWords words_;
    std::vector<std::uint8_t> image_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitTrieBuild& request);

}  // namespace gputext
