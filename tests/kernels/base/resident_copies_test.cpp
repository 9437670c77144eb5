// Copies of resident memory on a device: the bytes are always right, and come from the host once.

#include "kernels/base/resident_copies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/base/upload_ring.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using gpu::ResidentCopies;
using gpu::UploadRing;

constexpr std::size_t kSlice = UploadRing::slice;
constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

using HostBytes = std::vector<std::uint8_t>;

class ResidentCopiesOnDevice : public testing::RingTest {
protected:
    void SetUp() override {
        RingTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        use_copies();
        ASSERT_TRUE(there_.allocate(12 * kSlice, stream()).ok());
        ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    }
    void TearDown() override {
        if (copies_ != nullptr) {
            EXPECT_EQ(cudaStreamSynchronize(ring().stream()), cudaSuccess);
        }
        copies_.reset();
        there_.reset();
        RingTest::TearDown();
    }

    void use_copies(std::uint64_t limit = 0) {
        copies_ = std::make_unique<ResidentCopies>(ranges_, 0, limit);
        ring().use(copies_.get());
    }

    HostBytes random_bytes(std::size_t size) {
        HostBytes bytes(size);
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_.below(256));
        return bytes;
    }

    /// Any part of the bytes, of up to `most`.
    Bytes part_of(Bytes bytes, std::size_t most) {
        const std::size_t size = random_.below(std::min(most, bytes.size()) + 1);
        return bytes.subspan(random_.below(bytes.size() - size + 1), size);
    }

    void begin_job(std::uint64_t memory = kPlenty) {
        ASSERT_EQ(cudaStreamSynchronize(ring().stream()), cudaSuccess);
        ASSERT_TRUE(copies_->begin_job(memory).ok());
    }

    /// What lies on the device after the pieces have been copied there.
    HostBytes copied(const std::vector<Bytes>& pieces) {
        std::size_t size = 0;
        for (const Bytes piece : pieces) size += piece.size();
        EXPECT_EQ(cudaMemset(there_.data(), 0xee, size), cudaSuccess);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        Execution execution(3);
        const Status status = ring().copy_pieces(there_.data(), pieces, execution);
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(cudaStreamSynchronize(ring().stream()), cudaSuccess);
        HostBytes bytes(size);
        EXPECT_TRUE(ring().copy_back(bytes, there_.data(), stream(), execution).ok());
        return bytes;
    }

    static HostBytes joined(const std::vector<Bytes>& pieces) {
        HostBytes bytes;
        for (const Bytes piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
        return bytes;
    }

    /// Bytes that a job has had uploaded.
    template <class Job>
    std::uint64_t uploaded_by(const Job& job) {
        const std::uint64_t before = ring().uploaded();
        job();
        return ring().uploaded() - before;
    }

    std::shared_ptr<ResidentRanges> ranges_ = std::make_shared<ResidentRanges>();
    std::unique_ptr<ResidentCopies> copies_;
    DeviceBuffer<std::uint8_t> there_;
    testing::RandomStrings random_;
};

TEST_F(ResidentCopiesOnDevice, AreUploadedOnce) {
    const HostBytes bytes = random_bytes(5 * kSlice + 123);
    ranges_->add({1, bytes.data(), bytes.size()});
    begin_job();
    EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({bytes}) == bytes); }), bytes.size());
    EXPECT_EQ(ranges_->kept(1), bytes.size());
    EXPECT_EQ(copies_->bytes(), bytes.size());
    for (int job = 0; job < 3; ++job) {
        begin_job();
        EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({bytes}) == bytes); }), 0u);
        const Bytes part = Bytes(bytes).subspan(kSlice + 77, 2 * kSlice);
        EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({part}) == joined({part})); }), 0u);
    }
    copies_->clear();
    EXPECT_EQ(ranges_->kept(1), 0u);
    begin_job();
    EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({bytes}) == bytes); }), bytes.size());
}

TEST_F(ResidentCopiesOnDevice, CountAsSteps) {
    const HostBytes bytes = random_bytes(3 * kSlice + 1);
    ranges_->add({1, bytes.data(), bytes.size()});
    for (int job = 0; job < 2; ++job) {
        begin_job();
        Execution execution(2);
        execution.begin_phase("copying", 4);
        ASSERT_TRUE(ring().copy(there_.data(), bytes, execution).ok());
        EXPECT_EQ(execution.done(), 4u);
    }
}

TEST_F(ResidentCopiesOnDevice, AreDueWhenAQuarterHasBeenAskedFor) {
    const HostBytes bytes = random_bytes(8 * kSlice);
    ranges_->add({1, bytes.data(), bytes.size()});
    begin_job();
    for (std::size_t batch = 0; batch < 8; ++batch) {
        const Bytes part = Bytes(bytes).subspan(batch * kSlice, kSlice);
        const std::uint64_t uploaded =
            uploaded_by([&] { EXPECT_TRUE(copied({part}) == joined({part})); });
        EXPECT_EQ(uploaded, batch == 0 ? kSlice : batch == 1 ? 8 * kSlice : 0) << batch;
    }
}

TEST_F(ResidentCopiesOnDevice, HavePiecesOfAllSizes) {
    const HostBytes first = random_bytes(4 * kSlice + 5);
    const HostBytes second = random_bytes(3 * kSlice + 1);
    const HostBytes other = random_bytes(kSlice);
    ranges_->add({1, first.data() + 1, first.size() - 1});
    ranges_->add({2, second.data(), second.size()});
    // The last bytes of a copy, too.
    const Bytes resident[] = {Bytes(first).subspan(1), second};
    for (int job = 0; job < testing::rounds(30); ++job) {
        begin_job();
        const bool mixed = job % 2 == 1;
        std::vector<Bytes> pieces;
        std::size_t size = 0;
        while (size < 4 * kSlice) {
            const std::size_t from = random_.below(mixed ? 3 : 1);
            const std::size_t most[] = {20, 3000, 60000, 600000};
            pieces.push_back(
                part_of(from == 2 ? Bytes(other) : resident[from], most[random_.below(4)]));
            if (random_.below(10) == 0)
                pieces.push_back(resident[from % 2].last(1 + random_.below(40)));
            size += pieces.back().size();
        }
        EXPECT_TRUE(copied(pieces) == joined(pieces)) << job;
    }
    EXPECT_EQ(ranges_->kept(1), first.size() - 1);
    EXPECT_EQ(ranges_->kept(2), second.size());
    // A list takes less than what it lists.
    std::vector<Bytes> pieces;
    for (std::size_t i = 0; i < 2000; ++i)
        pieces.push_back(Bytes(first).subspan(1 + 8000 * i, 8000));
    begin_job();
    EXPECT_LT(uploaded_by([&] { EXPECT_TRUE(copied(pieces) == joined(pieces)); }), 2000u * 50);
}

TEST_F(ResidentCopiesOnDevice, AreNotThoseOfAnotherRangeAtTheSameAddress) {
    HostBytes bytes = random_bytes(2 * kSlice + 3);
    ranges_->add({1, bytes.data(), bytes.size()});
    begin_job();
    EXPECT_TRUE(copied({bytes}) == bytes);
    ranges_->remove(1);
    const HostBytes others = random_bytes(bytes.size());
    std::ranges::copy(others, bytes.begin());
    ranges_->add({2, bytes.data(), bytes.size()});
    begin_job();
    EXPECT_EQ(copies_->bytes(), 0u);
    EXPECT_TRUE(copied({bytes}) == others);
    EXPECT_EQ(ranges_->kept(1), 0u);
    EXPECT_EQ(ranges_->kept(2), bytes.size());
    EXPECT_EQ(copies_->bytes(), bytes.size());
    ranges_->remove(2);
    copies_->drop_gone();
    EXPECT_EQ(copies_->bytes(), 0u);
}

TEST_F(ResidentCopiesOnDevice, AreWholeOrNone) {
    const HostBytes bytes = random_bytes(8 * kSlice);
    ranges_->add({1, bytes.data(), bytes.size()});
    begin_job();
    Execution execution(1);
    testing::hold_up(ring().stream());
    // There are four buffers: the fifth slice waits for the first.
    std::thread stopping([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        execution.request_stop();
    });
    EXPECT_EQ(ring().copy(there_.data(), bytes, execution).code(), ErrorCode::cancelled);
    EXPECT_EQ(cudaStreamQuery(ring().stream()), cudaSuccess);
    stopping.join();
    EXPECT_EQ(ranges_->kept(1), 0u);
    EXPECT_EQ(copies_->bytes(), 0u);
    begin_job();
    EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({bytes}) == bytes); }), bytes.size());
    EXPECT_EQ(ranges_->kept(1), bytes.size());
    // A job that is to stop finds no copy either.
    Execution stopped(1);
    stopped.request_stop();
    begin_job();
    EXPECT_EQ(ring().copy(there_.data(), bytes, stopped).code(), ErrorCode::cancelled);
    EXPECT_EQ(cudaStreamQuery(ring().stream()), cudaSuccess);
}

TEST_F(ResidentCopiesOnDevice, TakeNoMoreThanTheJobMay) {
    const HostBytes bytes = random_bytes(8 * kSlice);
    ranges_->add({1, bytes.data(), bytes.size()});
    // What the job itself has taken counts: 2 slices of 16, and then of 20.
    for (const std::uint64_t slices : {16, 20}) {
        begin_job(slices * kSlice);
        DeviceBuffer<std::uint8_t> own;
        ASSERT_TRUE(own.allocate(2 * kSlice, stream()).ok());
        EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({bytes}) == bytes); }), bytes.size());
        EXPECT_EQ(ranges_->kept(1), slices == 16 ? 0 : bytes.size());
    }
    // Nor more than half of the limit of the device.
    for (const std::uint64_t slices : {15, 16}) {
        use_copies(slices * kSlice);
        begin_job();
        EXPECT_TRUE(copied({bytes}) == bytes);
        EXPECT_EQ(copies_->bytes(), slices == 15 ? 0 : bytes.size());
    }
}

TEST_F(ResidentCopiesOnDevice, AreNotMadeForAJobThatRefusesThem) {
    const HostBytes bytes = random_bytes(kSlice);
    ranges_->add({1, bytes.data(), bytes.size()});
    ASSERT_TRUE(copies_->begin_job(kPlenty, ResidentCopies::New::refused).ok());
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({bytes}) == bytes); }), bytes.size());
    EXPECT_EQ(copies_->bytes(), 0u);
}

TEST_F(ResidentCopiesOnDevice, GiveWayToOthers) {
    constexpr std::size_t kRanges = 6;
    constexpr std::size_t kMost = 3;
    constexpr std::size_t kSize = kSlice + 1;
    use_copies(2 * kMost * kSize);
    std::vector<HostBytes> all;
    for (std::size_t i = 0; i < kRanges; ++i) {
        all.push_back(random_bytes(kSize));
        ranges_->add({i + 1, all[i].data(), kSize});
    }
    std::uint64_t uploaded = 0;
    constexpr int kJobs = 100;
    for (int job = 0; job < kJobs; ++job) {
        begin_job();
        // Two of them often, the others now and then.
        const std::size_t i = random_.below(4) != 0 ? random_.below(2) : random_.below(kRanges);
        uploaded += uploaded_by([&] { EXPECT_TRUE(copied({all[i]}) == all[i]); });
        ASSERT_LE(copies_->bytes(), kMost * kSize);
        std::uint64_t kept = 0;
        for (std::size_t id = 1; id <= kRanges; ++id) kept += ranges_->kept(id);
        EXPECT_EQ(kept, copies_->bytes());
    }
    EXPECT_EQ(copies_->bytes(), kMost * kSize);
    EXPECT_LT(uploaded, kJobs * kSize / 2);
}

// ---- Copies that are made of older ones ----

/// Two older ranges, and a third one that has been put together from them; its own bytes on the
/// host are others, so that it shows where a copy comes from.
class GatheredOnDevice : public ResidentCopiesOnDevice {
protected:
    static constexpr std::uint64_t kWhole = 3, kLarge = 1, kSmall = 2;

    /// Pieces of up to `most` bytes of the large range, among them all of the small one.
    void gather(std::size_t large, std::size_t small, std::size_t most) {
        large_ = random_bytes(large);
        small_ = random_bytes(small);
        ResidentOrigin origin;
        origin.sources = {{kLarge, large_, nullptr, nullptr}, {kSmall, small_, nullptr, nullptr}};
        std::size_t of_small = 0;
        for (std::uint64_t at = 0; at < large; at += 1 + random_.below(most)) {
            add(origin, at, std::min<std::uint64_t>(large - at, 1 + random_.below(most)), 0);
            const std::size_t next = std::min(small - of_small, 1 + random_.below(most) / 8);
            add(origin, of_small, next, 1);
            of_small += next;
        }
        for (const auto& piece : origin.pieces) {
            const Bytes part = origin.bytes_of(piece);
            whole_.insert(whole_.end(), part.begin(), part.end());
        }
        on_host_.assign(whole_.size(), 0xdd);
        ASSERT_TRUE(whole_.size() < 12 * kSlice) << whole_.size();
        ranges_->add({kLarge, large_.data(), large_.size()});
        ranges_->add({kSmall, small_.data(), small_.size()});
        origin_ = std::make_shared<const ResidentOrigin>(std::move(origin));
    }
    void add_whole() {
        ranges_->add({kWhole, on_host_.data(), on_host_.size(), &filling_}, std::move(origin_));
    }
    void copy_to_device(const HostBytes& bytes) {
        begin_job();
        EXPECT_TRUE(copied({bytes}) == bytes);
    }

    HostBytes large_, small_, whole_, on_host_;
    std::shared_ptr<const ResidentOrigin> origin_;
    Filling filling_;

private:
    static void add(ResidentOrigin& origin, std::uint64_t offset, std::uint64_t size,
                    std::uint32_t source) {
        const std::uint64_t begin = origin.pieces.empty() ? 0 : origin.pieces.back().end();
        if (size > 0) origin.pieces.push_back({begin, size, offset, source});
    }
};

TEST_F(GatheredOnDevice, AreMadeOfOlderOnes) {
    for (const std::size_t most : {3000, 100000, 3000000}) {
        ranges_ = std::make_shared<ResidentRanges>();
        use_copies();
        whole_.clear();
        filling_.begin();  // nobody may wait for it
        gather(4 * kSlice + 1, 2 * kSlice + 3, most);
        copy_to_device(large_);
        copy_to_device(small_);
        add_whole();
        begin_job();
        const std::uint64_t lists = uploaded_by([&] { EXPECT_TRUE(copied({on_host_}) == whole_); });
        EXPECT_LT(lists, whole_.size() / 20) << "only lists of pieces";
        EXPECT_EQ(ranges_->kept(kWhole), whole_.size());
        EXPECT_FALSE(ranges_->has_origin(kWhole));
        ranges_->remove(kLarge);
        ranges_->remove(kSmall);
        begin_job();
        EXPECT_EQ(copies_->bytes(), whole_.size());
        EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({on_host_}) == whole_); }), 0u);
        EXPECT_EQ(cudaStreamSynchronize(ring().stream()), cudaSuccess);
    }
}

TEST_F(GatheredOnDevice, HaveWhatIsNotThereUploadedBefore) {
    filling_.begin();
    gather(6 * kSlice, kSlice + 5, 50000);
    copy_to_device(large_);
    add_whole();
    begin_job();
    const std::uint64_t uploaded = uploaded_by([&] { EXPECT_TRUE(copied({on_host_}) == whole_); });
    EXPECT_GE(uploaded, small_.size());
    EXPECT_LT(uploaded, small_.size() + whole_.size() / 50);
    EXPECT_EQ(ranges_->kept(kSmall), 0u) << "it is there for the time being";
    EXPECT_EQ(copies_->bytes(), large_.size() + whole_.size());
}

TEST_F(GatheredOnDevice, AreUploadedWhereTooLittleIsThere) {
    gather(6 * kSlice, kSlice, 50000);
    copy_to_device(small_);
    add_whole();
    begin_job();
    EXPECT_EQ(uploaded_by([&] { EXPECT_TRUE(copied({on_host_}) == on_host_); }), on_host_.size());
    EXPECT_EQ(ranges_->kept(kWhole), on_host_.size());
    EXPECT_FALSE(ranges_->has_origin(kWhole));
}

TEST_F(GatheredOnDevice, LeaveTheOriginToAnotherDevice) {
    gather(6 * kSlice, kSlice, 50000);
    copy_to_device(large_);
    ranges_->set_kept(1, kLarge, large_.size());
    add_whole();
    begin_job();
    EXPECT_TRUE(copied({on_host_}) == whole_);
    EXPECT_TRUE(ranges_->has_origin(kWhole));
    ranges_->set_kept(1, kWhole, on_host_.size());
    ranges_->origin_used(1, kWhole);
    EXPECT_FALSE(ranges_->has_origin(kWhole));
}

TEST_F(GatheredOnDevice, WaitForTheHostWhereTheyHaveTo) {
    gather(6 * kSlice, kSlice, 50000);
    filling_.begin();
    add_whole();
    // Neither source is on the device.
    for (const auto copies : {ResidentCopies::New::made, ResidentCopies::New::refused}) {
        ASSERT_TRUE(copies_->begin_job(kPlenty, copies).ok());
        Execution stopped(1);
        stopped.request_stop();
        EXPECT_EQ(ring().copy(there_.data(), on_host_, stopped).code(), ErrorCode::cancelled);
        EXPECT_EQ(ranges_->kept(kWhole), 0u);
    }
    // A part alone is not worth a copy.
    begin_job();
    std::thread filling([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::ranges::copy(whole_, on_host_.begin());
        filling_.end({});
    });
    const Bytes part = Bytes(on_host_).subspan(77, kSlice);
    EXPECT_TRUE(copied({part}) == joined({Bytes(whole_).subspan(77, kSlice)}));
    filling.join();
    EXPECT_TRUE(copied({on_host_}) == whole_);

    // What never comes is an error.
    Filling never;
    never.begin();
    never.end({ErrorCode::out_of_memory, "no memory"});
    const HostBytes lost(kSlice);
    ranges_->add({9, lost.data(), lost.size(), &never});
    begin_job();
    Execution execution(2);
    EXPECT_EQ(ring().copy(there_.data(), lost, execution).code(), ErrorCode::unavailable);
}

}  // namespace
}  // namespace gputext
