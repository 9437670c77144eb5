#include <memory>

#include "cpp/daemon/word_lookup_on_device.hpp"
#include "cpp/link/word_lookup.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/trie/resident_trie.hpp"
#include "kernels/trie/word_lookup.hpp"

namespace gputext {
namespace {

/// Divisor of the device's memory: the part that resident dictionaries may take.
constexpr std::uint64_t kPartForTries = 8;

}  // namespace

template <>
class Kernels<SubmitWordLookup> {
public:
    static void provide(CudaDevice& device) {
        const auto tries =
            std::make_shared<gpu::ResidentTries>(device.info().memory / kPartForTries);
        device.keep({[tries] { return tries->bytes(); }, [tries] { tries->clear(); }});
        device.provide<WordLookupOnDevice>(
            [&device, tries](std::span<const std::uint8_t> dictionary, const Words& words,
                             std::uint64_t memory, Execution& execution,
                             std::span<std::uint32_t> codes) -> Status {
                if (!gpu::has_kernels_for(dictionary))
                    return WordLookupOnDevice::on_host(dictionary, words, memory, execution, codes);
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::lookup_words(dictionary, words, *tries, work, device.ring(),
                                             execution, codes);
                });
            });
    }
};

template void provide_kernels<SubmitWordLookup>(CudaDevice& device);

}  // namespace gputext
