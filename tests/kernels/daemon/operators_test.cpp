// The functions that a CUDA device has of its own. Needs no GPU: only a job of theirs calls CUDA.

#include <gtest/gtest.h>

#include <vector>

#include "cpp/daemon/on_device.hpp"
#include "kernels/daemon/cuda_device.hpp"

namespace gputext {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{1} << 20;
const DeviceInfo kInfo{"none", kMemory, "none"};

template <class Operator>
class KernelsOf : public ::testing::Test {};

using Operators =
    ::testing::Types<NearDuplicatesOnDevice, NearPairsOnDevice, SignaturesOnDevice, KnnOnDevice,
                     KeyedKnnOnDevice, TermKnnOnDevice, NearestStringsOnDevice, NearestBitsOnDevice, CosineSimilarityOnDevice, KMeansOnDevice,
                     HnswLinksOnDevice, HnswLinksBackOnDevice, HnswLayerOnDevice,
                     WordLookupOnDevice, TrieBuildOnDevice, WordSimilarityOnDevice,
                     CountedSimilarityOnDevice, Word2VecOnDevice, WordMoversOnDevice,
                     ContextSumsOnDevice, SequenceProbabilityOnDevice>;
TYPED_TEST_SUITE(KernelsOf, Operators);

TYPED_TEST(KernelsOf, TheOperatorAreProvided) {
    const CudaDevice device(0, kInfo, 4);
    EXPECT_NE(device.template find<TypeParam>(), nullptr);
}

TEST(Kernels, LeaveSparseVectorsToTheHost) {
    CudaDevice device(0, kInfo, 4);
    const std::vector<std::uint64_t> begins{0, 1, 2, 3};
    const std::vector<std::uint32_t> columns{0, 1, 1};
    const std::vector<float> elements{3, 4, 5};
    const Vectors items{ElementType::float32, 3, 2, elements.data(), begins, columns};
    Execution execution(1);
    const KnnParameters parameters{.k = 1, .metric = Metric::euclidean};
    const auto found =
        device.compute<KnnOnDevice>(parameters, items, items, RowKeys(), kMemory, execution);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->items, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(found->distances, (std::vector<double>{0, 0, 0}));
    const std::vector<std::uint32_t> keys{7, 7, 8};
    const auto groups = group_by_key({keys, keys}, execution);
    ASSERT_TRUE(groups.ok());
    const auto of_groups = device.compute<KeyedKnnOnDevice>(parameters, items, items, *groups,
                                                            RowKeys(), kMemory, execution);
    ASSERT_TRUE(of_groups.ok()) << of_groups.status().message();
    EXPECT_EQ(of_groups->items, (std::vector<std::uint32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace gputext
