#include <vector>

#include "cpp/daemon/trie_build_on_device.hpp"
#include "cpp/link/trie_build.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/trie/trie_build.hpp"

namespace gputext {

template <>
class Kernels<SubmitTrieBuild> {
public:
    static void provide(CudaDevice& device) {
        device.provide<TrieBuildOnDevice>(
            [&device](TrieStructure structure, const Words& words, std::uint64_t memory,
                      Execution& execution) -> Result<std::vector<std::uint8_t>> {
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::build_trie(structure, words, work, device.ring(), execution);
                });
            });
    }
};

template void provide_kernels<SubmitTrieBuild>(CudaDevice& device);

}  // namespace gputext
