// Copies by way of pinned buffers: all bytes arrive, and nothing is under way after an error.

#include "kernels/base/upload_ring.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/support/device_fixture.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using gpu::UploadRing;

class UploadRingOnDevice : public testing::RingTest {
protected:
    UploadRingOnDevice() : RingTest(2) {}

    void SetUp() override {
        RingTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        ASSERT_TRUE(there_.allocate(5 * UploadRing::slice, stream()).ok());
        ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    }
    void TearDown() override {
        there_.reset();
        RingTest::TearDown();
    }

    std::vector<std::uint8_t> random_bytes(std::size_t size) {
        std::vector<std::uint8_t> bytes(size);
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_.below(256));
        return bytes;
    }

    std::vector<std::uint8_t> copied_back(std::size_t size) {
        EXPECT_EQ(cudaStreamSynchronize(ring().stream()), cudaSuccess);
        std::vector<std::uint8_t> bytes(size);
        Execution execution(2);
        EXPECT_TRUE(ring().copy_back(bytes, there_.data(), stream(), execution).ok());
        return bytes;
    }

    DeviceBuffer<std::uint8_t> there_;
    testing::RandomStrings random_;
};

TEST_F(UploadRingOnDevice, CopiesThereAndBack) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, UploadRing::slice - 1, UploadRing::slice,
          UploadRing::slice + 1, 4 * UploadRing::slice + 12345}) {
        const auto bytes = random_bytes(size);
        Execution execution(3);
        ASSERT_TRUE(ring().copy(there_.data(), bytes, execution).ok());
        EXPECT_TRUE(copied_back(size) == bytes) << size;
    }
}

TEST_F(UploadRingOnDevice, PutsPiecesBehindOneAnother) {
    const auto bytes = random_bytes(3 * UploadRing::slice);
    std::vector<Bytes> pieces;
    for (std::size_t begin = 0; begin < bytes.size();) {
        const std::size_t most = random_.below(2) == 0 ? 10 : 2 * UploadRing::slice;
        const std::size_t size = std::min(random_.below(most), bytes.size() - begin);
        pieces.emplace_back(bytes.data() + begin, size);
        begin += size;
    }
    Execution execution(3);
    ASSERT_TRUE(ring().copy_pieces(there_.data(), pieces, execution).ok());
    EXPECT_TRUE(copied_back(bytes.size()) == bytes);
}

TEST_F(UploadRingOnDevice, LeavesNothingUnderWayAfterAnError) {
    const std::vector<std::uint8_t> bytes(5 * UploadRing::slice);
    Execution execution(1);
    testing::hold_up(ring().stream());
    // There are two buffers: the third slice waits for the first, and its copy for more.
    std::thread stopping([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        execution.request_stop();
        testing::hold_up(ring().stream());
    });
    EXPECT_EQ(ring().copy(there_.data(), bytes, execution).code(), ErrorCode::cancelled);
    EXPECT_EQ(cudaStreamQuery(ring().stream()), cudaSuccess);
    stopping.join();
}

}  // namespace
}  // namespace gputext
