#include "kernels/daemon/cuda_devices.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cpp/base/machine.hpp"
#include "kernels/daemon/cuda_device.hpp"

namespace gputext {
namespace {

/// Compute capabilities that the kernels are built for, as __CUDA_ARCH__: 900 is 9.0.
constexpr int kArchitectures[] = {__CUDA_ARCH_LIST__};

std::string version_text(int version, int major_unit, int minor_unit) {
    return std::to_string(version / major_unit) + '.' +
           std::to_string(version % major_unit / minor_unit);
}

std::string cuda_version_text(int version) {
    return version_text(version, 1000, 10);
}

/// As "580.95.05"; empty when it is not told.
std::string kernel_driver_version() {
    std::ifstream file("/proc/driver/nvidia/version");
    std::string line;
    std::getline(file, line);
    std::istringstream words(line);
    for (std::string word; words >> word;)
        if (word.find('.') != std::string::npos &&
            word.find_first_not_of("0123456789.") == std::string::npos)
            return word;
    return {};
}

std::string driver_text() {
    int version = 0;
    cudaDriverGetVersion(&version);
    const std::string cuda = "CUDA " + cuda_version_text(version);
    const std::string driver = kernel_driver_version();
    return driver.empty() ? cuda : driver + " (" + cuda + ")";
}

std::string why_no_devices(cudaError_t error) {
    int version = 0;
    cudaDriverGetVersion(&version);
    if (version == 0) return "no NVIDIA driver is loaded";
    if (error == cudaErrorInsufficientDriver)
        return "the NVIDIA driver is too old: it supports CUDA " + cuda_version_text(version) +
               ", and gputext needs " + cuda_version_text(CUDART_VERSION);
    if (error == cudaErrorNoDevice) return "the NVIDIA driver finds no GPU";
    return std::string("the NVIDIA driver failed: ") + cudaGetErrorString(error);
}

int attribute(int device, cudaDeviceAttr which) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

/// Empty when the device can be used.
std::string why_unusable(int device, const std::string& name) {
    const int capability = 100 * attribute(device, cudaDevAttrComputeCapabilityMajor) +
                           10 * attribute(device, cudaDevAttrComputeCapabilityMinor);
    const int least = *std::ranges::min_element(kArchitectures);
    if (capability < least)
        return "the GPU " + name + " has compute capability " + version_text(capability, 100, 10) +
               ", and gputext needs " + version_text(least, 100, 10);
    if (attribute(device, cudaDevAttrComputeMode) == cudaComputeModeProhibited)
        return "the compute mode of the GPU " + name + " is prohibited";
    if (attribute(device, cudaDevAttrMemoryPoolsSupported) == 0)
        return "the GPU " + name + " has no memory pools";
    return {};
}

/// Enough for the threads that copy; a ring of fewer makes some of them wait.
std::size_t ring_buffers(int devices) {
    const std::size_t threads = usable_processors() / devices;
    return std::clamp<std::size_t>(threads + threads / 2, 4, 24);
}

}  // namespace

CudaDevices cuda_devices(const std::shared_ptr<ResidentRanges>& ranges, std::uint64_t limit) {
    // Kernels are loaded with the context, not each at its first launch, in some user's job.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    CudaDevices found;
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        found.why_none = why_no_devices(error == cudaSuccess ? cudaErrorNoDevice : error);
        return found;
    }
    const std::string driver = driver_text();
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp properties;
        if (const cudaError_t failed = cudaGetDeviceProperties(&properties, i);
            failed != cudaSuccess) {
            found.why_none = why_no_devices(failed);
            continue;
        }
        std::string why = why_unusable(i, properties.name);
        if (why.empty())
            found.devices.push_back(std::make_unique<CudaDevice>(
                i, DeviceInfo{properties.name, properties.totalGlobalMem, driver},
                ring_buffers(count), ranges, limit));
        else
            found.why_none = std::move(why);
    }
    if (!found.devices.empty()) found.why_none.clear();
    return found;
}

}  // namespace gputext
