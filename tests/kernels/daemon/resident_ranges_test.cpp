// Jobs whose input lies in resident memory: the same answers, and nothing of it is uploaded twice.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "cpp/daemon/on_device.hpp"
#include "kernels/daemon/cuda_device.hpp"
#include "kernels/daemon/cuda_devices.hpp"
#include "tests/support/device.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;
using testing::rounds;

constexpr std::uint64_t kLimit = std::uint64_t{2} << 30;
constexpr std::size_t kDimensions = 64;

class ResidentRangesOnDevice : public testing::OnDevice {
protected:
    void SetUp() override {
        OnDevice::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        found_ = cuda_devices(ranges_, kLimit);
        ASSERT_FALSE(found_.devices.empty()) << found_.why_none;
        device_ = static_cast<CudaDevice*>(found_.devices[0].get());
        device_->prepare();
        ASSERT_GT(device_->free_memory(), 0u);  // it is open now
    }

    /// Bytes that a job has had uploaded.
    template <class Job>
    std::uint64_t uploaded_by(const Job& job) {
        const std::uint64_t before = device_->ring().uploaded();
        job();
        return device_->ring().uploaded() - before;
    }

    std::vector<float> random_elements(std::size_t rows) {
        std::vector<float> elements(rows * kDimensions);
        for (float& element : elements) element = static_cast<float>(random_.below(2000)) - 1000;
        return elements;
    }

    static Vectors vectors_of(const std::vector<float>& elements) {
        return {ElementType::float32,
                elements.size() / kDimensions,
                kDimensions,
                elements.data(),
                {},
                {}};
    }

    static std::uint64_t bytes_of(const std::vector<float>& elements) {
        return elements.size() * sizeof(float);
    }

    void add(std::uint64_t id, const std::vector<float>& elements) {
        ranges_->add({id, reinterpret_cast<const std::uint8_t*>(elements.data()),
                      elements.size() * sizeof(float)});
    }

    std::shared_ptr<ResidentRanges> ranges_ = std::make_shared<ResidentRanges>();
    CudaDevices found_;
    CudaDevice* device_ = nullptr;
    RandomStrings random_;
};

TEST_F(ResidentRangesOnDevice, NeighborsAreTheSame) {
    const std::vector<float> items = random_elements(40000);
    const std::vector<float> queries = random_elements(200);
    const KnnParameters parameters{.k = 10, .metric = Metric::euclidean};
    const auto search = [&](std::uint64_t memory) {
        Execution execution(4);
        auto answer = device_->compute<KnnOnDevice>(
            parameters, vectors_of(queries), vectors_of(items), RowKeys(), memory, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return std::tuple(answer->begins, answer->items, answer->distances);
    };
    const auto wanted = search(device_->free_memory());
    add(1, items);
    // Too little memory for a copy beside the search.
    EXPECT_EQ(search(bytes_of(items)), wanted);
    EXPECT_EQ(ranges_->kept(1), 0u);
    const std::uint64_t once =
        uploaded_by([&] { EXPECT_EQ(search(device_->free_memory()), wanted); });
    EXPECT_EQ(once, bytes_of(items) + bytes_of(queries));
    EXPECT_EQ(ranges_->kept(1), bytes_of(items));
    EXPECT_LE(device_->free_memory(), kLimit - bytes_of(items));
    for (int idle = 0; idle < 2; ++idle) {
        for (const std::uint64_t memory : {device_->free_memory(), bytes_of(items)})
            EXPECT_EQ(uploaded_by([&] { EXPECT_EQ(search(memory), wanted); }), bytes_of(queries));
        device_->release_memory();
        EXPECT_EQ(ranges_->kept(1), bytes_of(items));
    }
    ranges_->remove(1);
    device_->release_memory();
    EXPECT_EQ(device_->free_memory(), kLimit);
    EXPECT_EQ(search(device_->free_memory()), wanted);
}

/// Whatever way it goes there: vectors by the ring, keys of rows by buffers.
TEST_F(ResidentRangesOnDevice, AllUploadsAreCounted) {
    const std::vector<float> items = random_elements(5000), queries = random_elements(200);
    const std::vector<std::uint32_t> item_keys(5000, 1), query_keys(200, 2);
    const auto uploaded_with = [&](const RowKeys& keys) {
        Execution execution(4);
        const std::uint64_t before = device_->uploaded();
        const auto answer = device_->compute<KnnOnDevice>(KnnParameters{.k = 10},
                                                          vectors_of(queries), vectors_of(items),
                                                          keys, device_->free_memory(), execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return device_->uploaded() - before;
    };
    const std::uint64_t without = uploaded_with({});
    EXPECT_GE(without, bytes_of(items) + bytes_of(queries));
    // And what the filter wants to know of all items.
    EXPECT_LE(without, bytes_of(items) + bytes_of(queries) + 64 * kDimensions);
    EXPECT_EQ(uploaded_with({query_keys, item_keys}), without + (5000 + 200) * sizeof item_keys[0]);
    add(1, items);
    EXPECT_EQ(uploaded_with({}), without);
    EXPECT_EQ(uploaded_with({}), without - bytes_of(items));
}

/// As after an update: most of the items are on the device, and the new order of all is only being
/// copied on the host.
TEST_F(ResidentRangesOnDevice, NeighborsAreFoundBeforeTheItemsAreThere) {
    constexpr std::size_t kOld = 30000, kNew = 3000, kRow = kDimensions * sizeof(float);
    const std::vector<float> old_items = random_elements(kOld), new_items = random_elements(kNew);
    const std::vector<float> queries = random_elements(50);  // too few to look for equal items
    ResidentOrigin origin;
    const auto bytes = [](const std::vector<float>& elements) {
        return Bytes(reinterpret_cast<const std::uint8_t*>(elements.data()), bytes_of(elements));
    };
    origin.sources = {{1, bytes(old_items), nullptr, nullptr},
                      {2, bytes(new_items), nullptr, nullptr}};
    std::vector<float> items;
    for (std::size_t i = 0; i < kNew; ++i) {
        const std::size_t from[] = {10 * i, i}, count[] = {9, 1};
        for (std::uint32_t source = 0; source < 2; ++source) {
            origin.pieces.push_back(
                {items.size() * sizeof(float), count[source] * kRow, from[source] * kRow, source});
            const auto& elements = source == 0 ? old_items : new_items;
            const auto begin =
                elements.begin() + static_cast<std::ptrdiff_t>(from[source] * kDimensions);
            items.insert(items.end(), begin,
                         begin + static_cast<std::ptrdiff_t>(count[source] * kDimensions));
        }
    }
    const auto search = [&](Metric metric, const Vectors& among) {
        Execution execution(4);
        const KnnParameters parameters{.k = 10, .metric = metric};
        auto answer = device_->compute<KnnOnDevice>(parameters, vectors_of(queries), among,
                                                    RowKeys(), device_->free_memory(), execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return std::tuple(answer->begins, answer->items, answer->distances);
    };
    add(1, old_items);
    add(2, new_items);
    search(Metric::cosine, vectors_of(old_items));
    ASSERT_EQ(ranges_->kept(1), bytes_of(old_items));

    const auto wanted = search(Metric::cosine, vectors_of(items));
    std::vector<float> on_host(items.size());
    Filling filling;
    filling.begin();
    KnownElements known(&filling);
    Vectors vectors = vectors_of(on_host);
    vectors.known = &known;
    known.set_bound(vectors, 1000);
    ranges_->add({3, bytes(on_host).data(), bytes_of(on_host), &filling},
                 std::make_shared<const ResidentOrigin>(std::move(origin)));
    const std::uint64_t uploaded =
        uploaded_by([&] { EXPECT_EQ(search(Metric::cosine, vectors), wanted); });
    EXPECT_LT(uploaded, bytes_of(items) / 4);
    EXPECT_EQ(ranges_->kept(3), bytes_of(items));
    EXPECT_FALSE(ranges_->has_origin(3));

    // By another metric some of the items are looked at on the host.
    const auto by_distance = search(Metric::euclidean, vectors_of(items));
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::ranges::copy(items, on_host.begin());
        filling.end({});
    });
    EXPECT_EQ(search(Metric::euclidean, vectors), by_distance);
    later.join();
    EXPECT_EQ(search(Metric::cosine, vectors), wanted);
}

TEST_F(ResidentRangesOnDevice, SimilaritiesAreTheSame) {
    const std::vector<float> items = random_elements(40000);
    const std::vector<float> query = random_elements(1);
    const auto compare = [&](std::uint64_t memory) {
        Execution execution(4);
        auto answer = device_->compute<CosineSimilarityOnDevice>(
            vectors_of(query), vectors_of(items), memory, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return *answer;
    };
    const auto wanted = compare(device_->free_memory());
    add(1, items);
    EXPECT_EQ(compare(device_->free_memory()), wanted);
    // In batches, too.
    for (const std::uint64_t memory : {device_->free_memory(), bytes_of(items) / 2})
        EXPECT_EQ(uploaded_by([&] { EXPECT_EQ(compare(memory), wanted); }), 0u);
}

TEST_F(ResidentRangesOnDevice, NearDuplicatesAreTheSame) {
    const testing::Packed packed(testing::corpus(random_, rounds(3000), 2000));
    const auto find = [&](NearDuplicateMode mode) {
        Execution execution(4);
        auto answer = device_->compute<NearDuplicatesOnDevice>(
            NearDuplicateParameters{0.05, mode}, packed.documents(), GivenSignatures(),
            device_->free_memory(), execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        std::vector<std::tuple<std::uint32_t, std::uint32_t, double>> pairs;
        for (const NearPair& pair : answer->near_pairs_of(0, UINT32_MAX))
            pairs.emplace_back(pair.first, pair.second, pair.edit_rate);
        return pairs;
    };
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
        const auto wanted = find(mode);
        if (mode == NearDuplicateMode::exact) {
            EXPECT_FALSE(wanted.empty());
        }
        const auto id = static_cast<std::uint64_t>(mode) + 1;
        ranges_->add({id, packed.bytes().data(), packed.bytes().size()});
        EXPECT_EQ(find(mode), wanted);
        EXPECT_EQ(ranges_->kept(id), packed.bytes().size());
        // Lists of pieces are uploaded, and other input.
        EXPECT_LT(uploaded_by([&] { EXPECT_EQ(find(mode), wanted); }), packed.bytes().size() / 4);
        ranges_->remove(id);
    }
}

TEST_F(ResidentRangesOnDevice, GoWhenAJobHasTooLittleMemory) {
    const std::vector<float> items = random_elements(10000);
    add(1, items);
    const auto make_copy = [&] {
        ASSERT_TRUE(
            device_
                ->run(
                    device_->free_memory(),
                    [&](const gpu::DeviceWork& given) -> Status {
                        DeviceBuffer<std::uint8_t> there;
                        GPUTEXT_TRY(there.allocate(bytes_of(items), given.stream));
                        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(given.stream), "allocating"));
                        Execution execution(2);
                        GPUTEXT_TRY(device_->ring().copy(
                            there.data(),
                            {reinterpret_cast<const std::uint8_t*>(items.data()), bytes_of(items)},
                            execution));
                        return cuda_status(cudaStreamSynchronize(device_->ring().stream()),
                                           "copying");
                    })
                .ok());
        ASSERT_EQ(ranges_->kept(1), bytes_of(items));
    };
    std::vector<std::uint64_t> given;
    const auto needing = [&](std::uint64_t bytes) {
        return [&given, bytes](const gpu::DeviceWork& own) -> Status {
            given.push_back(own.bytes);
            return own.bytes < bytes ? Status::out_of_memory() : Status();
        };
    };
    make_copy();
    // A job that is allowed little would not have more without the copies.
    EXPECT_EQ(device_->run(1000, needing(2000)).code(), ErrorCode::out_of_memory);
    EXPECT_EQ(given, std::vector<std::uint64_t>{1000});
    EXPECT_EQ(ranges_->kept(1), bytes_of(items));
    given.clear();
    const std::uint64_t free = device_->free_memory();
    EXPECT_TRUE(device_->run(free, needing(free + 1)).ok());
    EXPECT_EQ(given, (std::vector<std::uint64_t>{free, free + bytes_of(items)}));
    EXPECT_EQ(ranges_->kept(1), 0u);
    make_copy();
}

}  // namespace
}  // namespace gputext
