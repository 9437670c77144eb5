// tests/support/device_fixture.hpp - fixture of the kernels' tests: streams, copies, documents

#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/device_buffer.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/documents/detail/device_documents.hpp"
#include "tests/support/device.hpp"

namespace gputext::testing {

/// With a stream of its own.
class DeviceTest : public OnDevice {
protected:
    void SetUp() override {
        OnDevice::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    }

    void TearDown() override {
        if (stream_ == nullptr) return;
        EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
        EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }

    cudaStream_t stream() const { return stream_; }

    /// Whether the run should be short, since a sanitizer slows it down.
    static bool small() { return tests_are_small(); }

private:
    cudaStream_t stream_ = nullptr;
};

/// With a ring for copies, too; works on the test's stream.
class RingTest : public DeviceTest {
protected:
    explicit RingTest(std::size_t buffers = 4) : buffers_(buffers) {}

    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        work.stream = stream();
        auto ring = gpu::UploadRing::create(buffers_);
        ASSERT_TRUE(ring.ok());
        ring_ = std::move(*ring);
    }

    gpu::UploadRing& ring() { return *ring_; }

private:
    const std::size_t buffers_;
    std::unique_ptr<gpu::UploadRing> ring_;
};

/// What comes on the stream from now on waits for a while, as where another program has the device.
inline void hold_up(cudaStream_t stream) {
    const auto wait = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(200)); };
    ASSERT_EQ(cudaLaunchHostFunc(stream, wait, nullptr), cudaSuccess);
}

/// Texts packed on both sides.
class ResidentDocuments {
public:
    ResidentDocuments(const std::vector<std::string>& texts, const CharacterLengths& characters,
                      cudaStream_t stream)
        : characters_(characters) {
        for (const std::string& text : texts) {
            extents_.push_back({packed_.size(), text.size()});
            packed_.insert(packed_.end(), text.begin(), text.end());
        }
        EXPECT_TRUE(bytes_.upload(packed_, stream).ok());
        EXPECT_TRUE(device_extents_.upload(extents_, stream).ok());
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    }

    DeviceDocuments view() const {
        return {bytes_.data(), device_extents_.data(), extents_, characters_};
    }
    Documents host_view() const { return {packed_.data(), extents_, characters_}; }
    Bytes operator[](std::size_t i) const { return host_view()[i]; }

private:
    CharacterLengths characters_;
    std::vector<std::uint8_t> packed_;
    std::vector<Extent> extents_;
    DeviceBuffer<std::uint8_t> bytes_;
    DeviceBuffer<Extent> device_extents_;
};

}  // namespace gputext::testing
