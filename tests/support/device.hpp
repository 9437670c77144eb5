// tests/support/device.hpp - tests that need a GPU, and are skipped without one

#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/base/device_work.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::testing {

/// Skips each test where no GPU can be used; with GPUTEXT_REQUIRE_GPU set, fails it instead.
class OnDevice : public ::testing::Test {
protected:
    void SetUp() override {
        int devices = 0;
        const cudaError_t error = cudaGetDeviceCount(&devices);
        if (error == cudaSuccess && devices > 0) return;
        if (std::getenv("GPUTEXT_REQUIRE_GPU") != nullptr)
            FAIL() << "no GPU: " << cudaGetErrorString(error);
        GTEST_SKIP() << "no GPU: " << cudaGetErrorString(error);
    }

    gpu::DeviceWork work{nullptr, std::size_t{4} << 30};
};

}  // namespace gputext::testing
