#include "kernels/daemon/cuda_devices.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <variant>

#include "cpp/knn/merged_search.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/documents/near_duplicates.hpp"
#include "kernels/embeddings/sequence_probability.hpp"
#include "kernels/embeddings/trainer.hpp"
#include "kernels/embeddings/word_movers.hpp"
#include "kernels/knn/cosine_similarity.hpp"
#include "kernels/knn/k_means.hpp"
#include "kernels/knn/knn.hpp"
#include "kernels/knn/outlier_factor.hpp"
#include "kernels/terms/knn.hpp"
#include "kernels/thesaurus/word_similarity.hpp"
#include "kernels/trie/resident_trie.hpp"
#include "kernels/trie/trie_build.hpp"
#include "kernels/trie/word_lookup.hpp"

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

/// One GPU. What it needs is made at its first use, since that makes its context, which takes
/// memory on the GPU.
class CudaDevice : public Device {
public:
    CudaDevice(int number, DeviceInfo info, std::size_t ring_buffers)
        : number_(number),
          info_(std::move(info)),
          ring_buffers_(ring_buffers),
          tries_(info_.memory / kPartForTries) {}

    ~CudaDevice() override {
        if (stream_ == nullptr) return;
        cudaSetDevice(number_);
        tries_.clear();
        ring_.reset();
        cudaStreamDestroy(stream_);
    }

    DeviceInfo info() const override { return info_; }

    /// Also runs both modes once on next to nothing, which loads what the driver loads late.
    void prepare() override {
        const std::uint8_t bytes[] = "one document, one documents";
        const Extent extents[] = {{0, 12}, {14, 13}};
        for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
            NearDuplicates answer;
            Execution execution(1);
            // What fails here fails again at the first job, which says so.
            const Status ignored = near_duplicates({0.3, mode}, {bytes, extents}, {},
                                                   std::uint64_t{1} << 29, execution, answer);
            if (!ignored.ok()) return;
        }
    }

    std::uint64_t free_memory() override {
        std::size_t available = 0;
        std::size_t total = 0;
        std::uint64_t reserved = 0;
        std::uint64_t used = 0;
        if (!open().ok() || cudaMemGetInfo(&available, &total) != cudaSuccess ||
            cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved) !=
                cudaSuccess ||
            cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess)
            return 0;
        const std::uint64_t free = available + (reserved - used);
        return free - free / kFreePartKept;
    }

    Status near_duplicates(const NearDuplicateParameters& parameters, const Documents& documents,
                           GivenSignatures signatures, std::uint64_t memory, Execution& execution,
                           NearDuplicates& answer) override {
        return run(answer, memory, [&](const gpu::DeviceWork& work) {
            return gpu::near_duplicates(parameters, documents, signatures, work, *ring_, execution);
        });
    }

    // Sparse vectors that are not texts are computed on the host's threads.

    Status knn(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
               const RowKeys& keys, std::uint64_t memory, Execution& execution,
               Neighbours& answer) override {
        if (queries.sparse() || items.sparse())
            return Device::knn(parameters, queries, items, keys, memory, execution, answer);
        return run(answer, memory, [&](const gpu::DeviceWork& work) {
            const auto search = [&](const KnnParameters& wanted, const Vectors& of,
                                    const Vectors& among, const RowKeys& own) {
                return gpu::knn(wanted, of, among, own, work, *ring_, execution);
            };
            return search_merging_copies(parameters, queries, items, keys, search, execution);
        });
    }

    Status term_knn(const TermKnnParameters& parameters, std::span<const double> factors,
                    const Vectors& queries, const Vectors& items, const RowKeys& keys,
                    std::uint64_t memory, Execution& execution, Neighbours& answer) override {
        return run(answer, memory, [&](const gpu::DeviceWork& work) {
            return gpu::term_knn(parameters, factors, queries, items, keys, work, *ring_,
                                 execution);
        });
    }

    Status local_outlier_factors(const OutlierParameters& parameters, const Vectors& items,
                                 std::uint64_t memory, Execution& execution,
                                 std::vector<double>& factors) override {
        if (items.sparse())
            return Device::local_outlier_factors(parameters, items, memory, execution, factors);
        return run(factors, memory, [&](const gpu::DeviceWork& work) {
            return gpu::local_outlier_factors(parameters, items, work, *ring_, execution);
        });
    }

    Status k_means(const KMeansParameters& parameters, const Vectors& items, std::uint64_t memory,
                   Execution& execution, KMeans& answer) override {
        return run(answer, memory, [&](const gpu::DeviceWork& work) {
            return gpu::k_means(parameters, items, work, *ring_, execution);
        });
    }

    Status cosine_similarities(const Vectors& query, const Vectors& items, std::uint64_t memory,
                               Execution& execution, std::vector<double>& similarities) override {
        if (query.sparse() || items.sparse())
            return Device::cosine_similarities(query, items, memory, execution, similarities);
        return run(similarities, memory, [&](const gpu::DeviceWork& work) {
            return gpu::cosine_similarities(query, items, work, *ring_, execution);
        });
    }

    Status lookup_words(std::span<const std::uint8_t> dictionary, const Words& words,
                        std::uint64_t memory, Execution& execution,
                        std::span<std::uint32_t> codes) override {
        if (!gpu::has_kernels_for(dictionary))
            return Device::lookup_words(dictionary, words, memory, execution, codes);
        std::monostate done;
        return run(done, memory, [&](const gpu::DeviceWork& work) -> Result<std::monostate> {
            GPUTEXT_TRY(
                gpu::lookup_words(dictionary, words, tries_, work, *ring_, execution, codes));
            return std::monostate();
        });
    }

    Status build_trie(TrieStructure structure, const Words& words, std::uint64_t memory,
                      Execution& execution, std::vector<std::uint8_t>& image) override {
        return run(image, memory, [&](const gpu::DeviceWork& work) {
            return gpu::build_trie(structure, words, work, *ring_, execution);
        });
    }

    Status word_similarities(const SimilarityParameters& parameters,
                             const WeightParameters& weights, const CooccurrenceShape& shape,
                             const TokenStream& tokens, std::uint64_t memory, Execution& execution,
                             Thesaurus& answer) override {
        return run(answer, memory, [&](const gpu::DeviceWork& work) {
            return gpu::word_similarities(parameters, weights, shape, tokens, work, *ring_,
                                          execution);
        });
    }

    Status word_similarities(const SimilarityParameters& parameters,
                             const WeightParameters& weights, const Cooccurrences& counts,
                             std::uint64_t memory, Execution& execution,
                             Thesaurus& answer) override {
        return run(answer, memory, [&](const gpu::DeviceWork& work) {
            return gpu::word_similarities(parameters, weights, counts, work, *ring_, execution);
        });
    }

    Result<std::unique_ptr<WordTrainer>> word_trainer(const TrainerParameters& parameters,
                                                      const WordSampling& sampling,
                                                      const TokenStream& tokens,
                                                      std::uint64_t memory,
                                                      Execution& execution) override {
        std::unique_ptr<WordTrainer> trainer;
        Status status = run(trainer, memory, [&](const gpu::DeviceWork& work) {
            return gpu::word_trainer(parameters, sampling, tokens, work, *ring_, execution);
        });
        if (!status.ok()) return status;
        return Result<std::unique_ptr<WordTrainer>>(std::move(trainer));
    }

    Status word_movers_distances(const MoversParameters& parameters, const WordVectors& vectors,
                                 const TextPairs& pairs, std::uint64_t memory, Execution& execution,
                                 std::span<double> distances) override {
        std::monostate done;
        return run(done, memory, [&](const gpu::DeviceWork& work) -> Result<std::monostate> {
            GPUTEXT_TRY(gpu::word_movers_distances(parameters, vectors, pairs, work, *ring_,
                                                   execution, distances));
            return std::monostate();
        });
    }

    Status sequence_probabilities(const NextWordModel& model, const TokenSequences& sequences,
                                  std::uint64_t memory, Execution& execution,
                                  SequenceProbabilities& answer) override {
        if (model.vectors.dimensions > gpu::kMostNextWordDimensions)
            return Device::sequence_probabilities(model, sequences, memory, execution, answer);
        return run(answer, memory, [&](const gpu::DeviceWork& work) {
            return gpu::sequence_probabilities(model, sequences, work, *ring_, execution);
        });
    }

    /// The pinned memory stays: it is little, and slow to get.
    void release_memory() override {
        if (stream_ == nullptr) return;
        tries_.clear();
        cudaStreamSynchronize(stream_);
        cudaMemPoolTrimTo(pool_, 0);
    }

private:
    /// Allocations are rounded up, and the driver takes a little now and then.
    static constexpr std::uint64_t kFreePartKept = 32;
    /// Divisor of the device's memory: the part that resident dictionaries may take.
    static constexpr std::uint64_t kPartForTries = 8;

    /// Calls the operator, which takes a DeviceWork and returns a Result, on this device; a second
    /// time without the dictionaries that stay if their memory is needed.
    template <class T, class Operator>
    Status run(T& answer, std::uint64_t memory, const Operator& work) {
        Status status = run_once(answer, memory, work);
        if (status.code() != ErrorCode::out_of_memory || tries_.bytes() == 0) return status;
        memory += tries_.bytes();
        tries_.clear();
        return run_once(answer, memory, work);
    }

    /// Nothing of the job is left when it ends, and what it broke is told by this job.
    template <class T, class Operator>
    Status run_once(T& answer, std::uint64_t memory, const Operator& work) {
        if (Status status = open(); !status.ok()) return status;
        cudaGetLastError();  // an earlier failure is not this job's
        Result<T> found = work(gpu::DeviceWork{stream_, memory});
        const Status computed = cuda_status(cudaStreamSynchronize(stream_), "ending a job");
        const Status copied = cuda_status(cudaStreamSynchronize(ring_->stream()), "ending a job");
        const Status& finished = computed.ok() ? copied : computed;
        if (finished.code() == ErrorCode::device_lost) return finished;
        if (!found.ok()) return found.status();
        if (!finished.ok()) return finished;
        answer = std::move(*found);
        return {};
    }

    Status open() {
        if (ring_ != nullptr) return {};
        GPUTEXT_TRY(cuda_status(cudaSetDevice(number_), "starting the device"));
        if (stream_ == nullptr)
            GPUTEXT_TRY(cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                                    "creating a stream"));
        GPUTEXT_TRY(
            cuda_status(cudaDeviceGetDefaultMemPool(&pool_, number_), "starting the device"));
        std::uint64_t all = UINT64_MAX;
        GPUTEXT_TRY(
            cuda_status(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &all),
                        "starting the device"));
        auto ring = gpu::UploadRing::create(ring_buffers_);
        if (!ring.ok()) return ring.status();
        ring_ = std::move(*ring);
        return {};
    }

    int number_;
    DeviceInfo info_;
    std::size_t ring_buffers_;
    cudaStream_t stream_ = nullptr;
    cudaMemPool_t pool_ = nullptr;
    std::unique_ptr<gpu::UploadRing> ring_;
    gpu::ResidentTries tries_;
};

/// Enough for the threads that copy; a ring of fewer makes some of them wait.
std::size_t ring_buffers(int devices) {
    const std::size_t threads = std::thread::hardware_concurrency() / devices;
    return std::clamp<std::size_t>(threads + threads / 2, 4, 24);
}

}  // namespace

CudaDevices cuda_devices() {
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
                ring_buffers(count)));
        else
            found.why_none = std::move(why);
    }
    if (!found.devices.empty()) found.why_none.clear();
    return found;
}

}  // namespace gputext
