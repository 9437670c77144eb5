// cpp/daemon/device.hpp - interface of a device that gputextd runs jobs on
//
// A device knows no operator. An operator that devices may have kernels for is a struct of
// on_device.hpp:
//
//     struct KnnOnDevice {
//         using Function = Result<Neighbors>(const KnnParameters& parameters, ...,
//                                             std::uint64_t memory, Execution& execution);
//         static Function on_host;  // computes on the host's threads
//     };
//
// Whoever makes a device provides it with a Function for each operator that it has kernels for;
// on_host() stands in for the others. All functions of an operator give the same answer, and
//
//     - take at most `memory` bytes of the device's;
//     - look at the execution's stop request at least every 50 ms, and are then cancelled.
//
// Errors besides the operator's own: out_of_memory, after which the function is called again with
// half the memory, and has to do with it what it can; device_error, after which other jobs may use
// the device; device_lost, after which no job uses it before another process has replaced this one.
// With the last two, and with an out_of_memory that stays, the function of another device is called
// with the same arguments.

#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <typeindex>
#include <utility>

#include "cpp/link/device_info.hpp"

namespace gputext {

/// One GPU, or what stands in for one. Used by one thread, always the same, so that a CUDA device
/// may be made current once; before that thread starts, another one calls info() and provide().
class Device {
public:
    Device() = default;
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    /// Name, memory in all, driver. Does not change.
    virtual DeviceInfo info() const = 0;

    /// Called once by the device's thread, before anything else: what makes the first job as fast
    /// as later ones.
    virtual void prepare() {}

    /// Bytes that a job may take now.
    virtual std::uint64_t free_memory() = 0;

    /// Bytes that have been copied from the host's memory to the device's by now, in all. A device
    /// without memory of its own copies none.
    virtual std::uint64_t uploaded() const { return 0; }

    /// Gives back what is cached between jobs: there has been none for a while.
    virtual void release_memory() {}

    /// Replaces the function that has been provided for the operator before, if there is one.
    template <class Operator>
    void provide(std::function<typename Operator::Function> function) {
        functions_[typeid(Operator)] = std::move(function);
    }

    /// The function provided for the operator, or null. Takes time that grows with the logarithm of
    /// the number of operators. Valid until provide() for the same operator.
    template <class Operator>
    const std::function<typename Operator::Function>* find() const {
        const auto found = functions_.find(typeid(Operator));
        if (found == functions_.end()) return nullptr;
        return std::any_cast<std::function<typename Operator::Function>>(&found->second);
    }

    /// Calls the function provided for the operator, or Operator::on_host() without one, and
    /// returns what it does: a Status, or a Result with the answer.
    template <class Operator, class... Arguments>
    auto compute(Arguments&&... arguments) {
        const auto* const own = find<Operator>();
        return own != nullptr ? (*own)(std::forward<Arguments>(arguments)...)
                              : Operator::on_host(std::forward<Arguments>(arguments)...);
    }

private:
    std::map<std::type_index, std::any> functions_;
};

}  // namespace gputext
