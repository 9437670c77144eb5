#include "kernels/embeddings/sequence_probability.hpp"

#include <algorithm>
#include <bit>
#include <cub/block/block_reduce.cuh>
#include <limits>
#include <new>
#include <string>

#include "cpp/base/natural_functions.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/warp.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kTile = 64;   // contexts, and words, of a block
constexpr unsigned kOwn = 4;     // of each, a thread's
constexpr unsigned kGroups = 8;  // of lanes, whose dimensions are in shared memory together
constexpr unsigned kLanesOfGroup = kWarp / kGroups;
constexpr float kUnit = 0x1p40f;

// ---- The order of a row ----

/// The lane at a place of a row: lanes that are added first are next to each other.
__host__ __device__ constexpr unsigned lane_at(unsigned place) {
    unsigned lane = 0;
    for (unsigned bit = 0; bit < 5; ++bit) lane |= (place >> bit & 1) << (4 - bit);
    return lane;
}

/// Rows by lanes: `chunks` elements of the lane at place 0, as many of that at place 1 .. Zeros
/// where there are no dimensions.
__global__ void order_rows(const float* rows, const std::uint32_t* numbers, std::size_t elements,
                           std::uint32_t dimensions, std::uint32_t chunks, float* ordered) {
    const std::size_t at = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= elements) return;
    const std::uint32_t of_row = chunks * kWarp;
    const std::size_t row = at / of_row;
    const auto place = static_cast<std::uint32_t>(at % of_row);
    const std::uint32_t dimension = lane_at(place / chunks) + kWarp * (place % chunks);
    const std::size_t from = numbers != nullptr ? numbers[row] : row;
    ordered[at] = dimension < dimensions ? rows[from * dimensions + dimension] : 0;
}

// ---- The product ----

/// A float's bits as an integer in the order of the floats, or such an integer as the bits.
__host__ __device__ constexpr std::int32_t in_order_of_floats(std::int32_t bits) {
    return bits >= 0 ? bits : bits ^ 0x7fffffff;
}

__device__ std::int32_t ordered_bits(float x) {
    return in_order_of_floats(__float_as_int(x));
}

__device__ float of_ordered_bits(std::int32_t bits) {
    return __int_as_float(in_order_of_floats(bits));
}

using Own = float[kOwn][kOwn];

__device__ void add_to(Own& sums, const Own& more) {
#pragma unroll
    for (unsigned i = 0; i < kOwn; ++i)
#pragma unroll
        for (unsigned j = 0; j < kOwn; ++j) sums[i][j] = __fadd_rn(sums[i][j], more[i][j]);
}

/// One tile's rows, of one group of lanes, with elements of a dimension side by side.
struct Staged {
    float* a;
    float* b;
};

/// Copies the group's part of kTile rows.
__device__ void stage(const float* rows, std::size_t first, std::size_t count, std::uint32_t of_row,
                      std::uint32_t begin, std::uint32_t elements, float* to) {
    for (unsigned at = threadIdx.x; at < kTile * elements / 4; at += kThreads) {
        const unsigned row = at % kTile, quad = at / kTile;
        const std::size_t from = min(first + row, count - 1);
        const float4 four =
            __ldg(reinterpret_cast<const float4*>(rows + from * of_row + begin) + quad);
        to[(4 * quad + 0) * kTile + row] = four.x;
        to[(4 * quad + 1) * kTile + row] = four.y;
        to[(4 * quad + 2) * kTile + row] = four.z;
        to[(4 * quad + 3) * kTile + row] = four.w;
    }
}

/// The sum of one lane of the group.
__device__ void lane_of_group(const Staged& staged, unsigned lane, std::uint32_t chunks, unsigned y,
                              unsigned x, Own& sums) {
#pragma unroll
    for (unsigned i = 0; i < kOwn; ++i)
#pragma unroll
        for (unsigned j = 0; j < kOwn; ++j) sums[i][j] = 0;
    for (std::uint32_t k = lane * chunks; k < (lane + 1) * chunks; ++k) {
        const float4 a = *reinterpret_cast<const float4*>(staged.a + k * kTile + y * kOwn);
        const float4 b = *reinterpret_cast<const float4*>(staged.b + k * kTile + x * kOwn);
        const float from[kOwn] = {a.x, a.y, a.z, a.w}, to[kOwn] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (unsigned i = 0; i < kOwn; ++i)
#pragma unroll
            for (unsigned j = 0; j < kOwn; ++j) sums[i][j] = __fmaf_rn(from[i], to[j], sums[i][j]);
    }
}

/// The dots of contexts with words, one row a context, and the largest of each context.
__global__ __launch_bounds__(kThreads, 2) void dots_of_contexts(
    const float* contexts, std::uint32_t context_count, const float* words,
    std::uint32_t word_count, std::uint32_t chunks, const std::uint32_t* numbers, float* dots,
    std::int32_t* largest) {
    extern __shared__ float4 shared_quads[];
    auto* const shared = reinterpret_cast<float*>(shared_quads);
    const std::uint32_t of_row = chunks * kWarp, elements = chunks * kLanesOfGroup;
    const Staged staged{shared, shared + kTile * elements};
    const std::size_t first_word = std::size_t{blockIdx.x} * kTile,
                      first_context = std::size_t{blockIdx.y} * kTile;
    const unsigned y = threadIdx.x / 16, x = threadIdx.x % 16;
    // Sums of 2, 4 and 8 groups. Each waits for the sum of as many groups more.
    Own two, four, all;
#pragma unroll
    for (unsigned group = 0; group < kGroups; ++group) {
        __syncthreads();
        stage(contexts, first_context, context_count, of_row, group * elements, elements, staged.a);
        stage(words, first_word, word_count, of_row, group * elements, elements, staged.b);
        __syncthreads();
        Own sum, pair, next;
        lane_of_group(staged, 0, chunks, y, x, sum);
        lane_of_group(staged, 1, chunks, y, x, next);
        add_to(sum, next);
        lane_of_group(staged, 2, chunks, y, x, pair);
        lane_of_group(staged, 3, chunks, y, x, next);
        add_to(pair, next);
        add_to(sum, pair);
        const auto keep = [&](Own& to, const Own& from) {
#pragma unroll
            for (unsigned i = 0; i < kOwn; ++i)
#pragma unroll
                for (unsigned j = 0; j < kOwn; ++j) to[i][j] = from[i][j];
        };
        if (group % 2 == 0) {
            keep(two, sum);
            continue;
        }
        add_to(two, sum);
        if (group % 4 == 1) {
            keep(four, two);
            continue;
        }
        add_to(four, two);
        if (group == 3)
            keep(all, four);
        else
            add_to(all, four);
    }
#pragma unroll
    for (unsigned i = 0; i < kOwn; ++i) {
        const std::size_t context = first_context + y * kOwn + i;
        float most = -__int_as_float(0x7f800000);
#pragma unroll
        for (unsigned j = 0; j < kOwn; ++j) {
            const std::size_t word = first_word + x * kOwn + j;
            if (word >= word_count) continue;
            most = fmaxf(most, all[i][j]);
            if (context < context_count) dots[context * word_count + word] = all[i][j];
        }
        most = warp_max<16>(most);
        if (x == 0 && context < context_count)
            atomicMax(largest + numbers[context], ordered_bits(most));
    }
}

// ---- Powers ----

/// A block for a context.
__global__ __launch_bounds__(kThreads) void sum_powers(const float* dots, std::uint32_t words,
                                                       const std::uint32_t* numbers,
                                                       const std::int32_t* largest,
                                                       std::uint64_t* sums) {
    using Reduce = cub::BlockReduce<std::uint64_t, kThreads>;
    __shared__ Reduce::TempStorage storage;
    const std::uint32_t number = numbers[blockIdx.x];
    const float most = of_ordered_bits(largest[number]);
    const float* const row = dots + std::size_t{blockIdx.x} * words;
    std::uint64_t sum = 0;
    for (std::uint32_t i = threadIdx.x; i < words; i += kThreads)
        sum += __float2ull_rn(__fmul_rn(kUnit, natural_exp(__fsub_rn(row[i], most))));
    sum = Reduce(storage).Sum(sum);
    if (threadIdx.x == 0) sums[number] = sum;
}

// ---- Tokens ----

using Tokens = ResidentNextWords::Tokens;

/// What is needed of a model to look tokens up.
struct LookUp {
    const float* vectors;
    const float* outputs;
    std::uint32_t dimensions;
    const std::int32_t* largest;
    const std::uint64_t* sums;
};

/// Marks the first token of each sequence by a number that no probability is.
__global__ void mark_first_tokens(Tokens tokens) {
    const std::uint32_t sequence = blockIdx.x * kThreads + threadIdx.x;
    if (sequence >= tokens.sequences) return;
    const std::uint64_t begin = tokens.begins[sequence];
    if (begin < tokens.begins[sequence + 1]) tokens.scratch[begin - tokens.first_token] = -1;
}

/// A warp for 32 tokens, one after the other; lane l keeps that of token l.
__global__ __launch_bounds__(kThreads) void probabilities_of_tokens(LookUp model, Tokens tokens) {
    const std::uint64_t own = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint64_t first = own - lane;
    if (first >= tokens.count) return;
    const bool here = own < tokens.count;
    const std::uint32_t token = here ? tokens.tokens[own] : 0;
    const bool follows = here && own > 0 && tokens.scratch[own] >= 0;
    const std::uint32_t before = follows ? tokens.tokens[own - 1] : 0;
    float dot = 0;
    for (unsigned wanted = __ballot_sync(kAllLanes, follows); wanted != 0; wanted &= wanted - 1) {
        const int at = __ffs(static_cast<int>(wanted)) - 1;
        const std::size_t a = __shfl_sync(kAllLanes, before, at),
                          b = __shfl_sync(kAllLanes, token, at);
        const float found =
            warp_lane_dot(model.vectors + a * model.dimensions,
                          model.outputs + b * model.dimensions, model.dimensions, lane);
        if (lane == static_cast<unsigned>(at)) dot = found;
    }
    if (!here) return;
    if (!follows) {
        tokens.token_probabilities[own] = __int_as_float(0x7fc00000);
        return;
    }
    const float power =
        __fmul_rn(kUnit, natural_exp(__fsub_rn(dot, of_ordered_bits(model.largest[before]))));
    const double p = __ddiv_rn(static_cast<double>(power), __ull2double_rn(model.sums[before]));
    tokens.scratch[own] = p;
    tokens.token_probabilities[own] = __double2float_rn(p);
}

/// A thread for a sequence: in the order of its tokens.
__global__ __launch_bounds__(kThreads) void probabilities_of_sequences(Tokens tokens) {
    const std::uint32_t sequence = blockIdx.x * kThreads + threadIdx.x;
    if (sequence >= tokens.sequences) return;
    const std::uint64_t begin = tokens.begins[sequence] - tokens.first_token,
                        end = tokens.begins[sequence + 1] - tokens.first_token;
    double sum = 0;
    for (std::uint64_t i = begin + 1; i < end; ++i) sum = __dadd_rn(sum, tokens.scratch[i]);
    tokens.probabilities[sequence] = begin == end ? __longlong_as_double(0x7ff8000000000000)
                                                  : __ddiv_rn(sum, __ull2double_rn(end - begin));
}

// ---- One job ----

/// Dots of a launch, which takes some milliseconds.
constexpr std::uint64_t kMostDots = std::uint64_t{1} << 27;

/// Tokens that are on the device together, unless one sequence has more.
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 24;

constexpr std::uint64_t kTokenBytes = sizeof(std::uint32_t) + sizeof(double) + sizeof(float);
constexpr std::uint64_t kSequenceBytes = sizeof(std::uint64_t) + sizeof(double);

std::uint32_t chunks_of(std::size_t dimensions) {
    return static_cast<std::uint32_t>((dimensions + kWarp - 1) / kWarp);
}

template <class T>
Status copy_to(DeviceBuffer<T>& to, std::span<const T> from, UploadRing& ring,
               Execution& execution) {
    if (from.empty()) return {};
    return ring.copy(reinterpret_cast<std::uint8_t*>(to.data()),
                     {reinterpret_cast<const std::uint8_t*>(from.data()), from.size_bytes()},
                     execution);
}

template <class T>
Status copy_from(std::span<T> to, const DeviceBuffer<T>& from, UploadRing& ring,
                 cudaStream_t stream, Execution& execution) {
    if (to.empty()) return {};
    return ring.copy_back({reinterpret_cast<std::uint8_t*>(to.data()), to.size_bytes()},
                          reinterpret_cast<const std::uint8_t*>(from.data()), stream, execution);
}

/// Looks all sequences up, some at a time.
class TokenPass {
public:
    TokenPass(const ResidentNextWords& words, const TokenSequences& sequences,
              const DeviceWork& work, UploadRing& ring, Execution& execution,
              SequenceProbabilities& answer)
        : words_(words),
          sequences_(sequences),
          work_(work),
          ring_(ring),
          execution_(execution),
          answer_(answer) {}

    Status run(std::uint64_t memory) {
        GPUTEXT_TRY(event_.create());
        execution_.begin_phase("looking up tokens", sequences_.tokens.size());
        for (std::size_t begin = 0; begin < sequences_.size();) {
            const std::size_t end = end_of_batch(begin, memory);
            if (end == begin)
                return {ErrorCode::out_of_memory,
                        "a sequence of " + std::to_string(tokens_of(begin, begin + 1)) +
                            " tokens does not fit into the device's memory"};
            GPUTEXT_TRY(run_batch(begin, end));
            begin = end;
        }
        return {};
    }

private:
    std::uint64_t tokens_of(std::size_t begin, std::size_t end) const {
        return sequences_.begins[end] - sequences_.begins[begin];
    }

    std::size_t end_of_batch(std::size_t begin, std::uint64_t memory) const {
        std::size_t end = begin;
        while (end < sequences_.size()) {
            const std::uint64_t tokens = tokens_of(begin, end + 1);
            const std::uint64_t bytes = kTokenBytes * tokens + kSequenceBytes * (end + 2 - begin);
            if (bytes > memory || (end > begin && tokens > kMostTokens)) break;
            ++end;
        }
        return end;
    }

    Status run_batch(std::size_t begin, std::size_t end) {
        const std::uint64_t first = sequences_.begins[begin], count = tokens_of(begin, end);
        const auto begins = sequences_.begins.subspan(begin, end - begin + 1);
        GPUTEXT_TRY(grow(begins_, begins.size()));
        GPUTEXT_TRY(grow(tokens_, count));
        GPUTEXT_TRY(grow(scratch_, count));
        GPUTEXT_TRY(grow(token_probabilities_, count));
        GPUTEXT_TRY(grow(probabilities_, end - begin));
        GPUTEXT_TRY(event_.hold(ring_.stream(), work_.stream));
        GPUTEXT_TRY(copy_to(begins_, begins, ring_, execution_));
        GPUTEXT_TRY(copy_to(tokens_, sequences_.tokens.subspan(first, count), ring_, execution_));
        GPUTEXT_TRY(event_.hold(work_.stream, ring_.stream()));
        GPUTEXT_TRY(words_.look_up(
            {begins_.data(), static_cast<std::uint32_t>(end - begin), tokens_.data(), first, count,
             scratch_.data(), token_probabilities_.data(), probabilities_.data()},
            work_.stream));
        GPUTEXT_TRY(copy_from(std::span(answer_.tokens).subspan(first, count), token_probabilities_,
                              ring_, work_.stream, execution_));
        GPUTEXT_TRY(copy_from(std::span(answer_.sequences).subspan(begin, end - begin),
                              probabilities_, ring_, work_.stream, execution_));
        return execution_.checkpoint(count);
    }

    template <class T>
    Status grow(DeviceBuffer<T>& buffer, std::size_t size) {
        return buffer.size() < size ? buffer.allocate(size, work_.stream) : Status();
    }

    const ResidentNextWords& words_;
    const TokenSequences& sequences_;
    const DeviceWork& work_;
    UploadRing& ring_;
    Execution& execution_;
    SequenceProbabilities& answer_;
    StreamEvent event_;
    DeviceBuffer<std::uint64_t> begins_;
    DeviceBuffer<std::uint32_t> tokens_;
    DeviceBuffer<double> scratch_, probabilities_;
    DeviceBuffer<float> token_probabilities_;
};

/// Error where even a model, a context and so many more bytes have no room.
Status check_memory(const NextWordModel& model, std::uint64_t beside, const DeviceWork& work) {
    const std::size_t words = model.vectors.words;
    const std::uint64_t least = ResidentNextWords::bytes(words, model.vectors.dimensions) +
                                ResidentNextWords::group_bytes(words) + beside;
    if (work.bytes >= least) return {};
    return {ErrorCode::out_of_memory, "sequences' probabilities by this model take " +
                                          std::to_string(least) + " bytes of device memory, and " +
                                          std::to_string(work.bytes) + " may be taken"};
}

Status load_and_sum(const NextWordModel& model, std::span<const std::uint32_t> contexts,
                    const DeviceWork& work, UploadRing& ring, Execution& execution,
                    ResidentNextWords& resident) {
    execution.begin_phase("copying vectors", 0);
    GPUTEXT_TRY(resident.load(model, ring, work.stream, execution));
    const std::uint64_t fixed =
        ResidentNextWords::bytes(model.vectors.words, model.vectors.dimensions);
    return resident.sum(contexts, work.bytes - fixed, work.stream, execution);
}

Status run(const NextWordModel& model, const TokenSequences& sequences,
           std::span<const ContextSum> sums, const DeviceWork& work, UploadRing& ring,
           Execution& execution, SequenceProbabilities& answer) {
    const std::size_t words = model.vectors.words;
    GPUTEXT_TRY(check_memory(model, kTokenBytes + 2 * kSequenceBytes, work));
    ResidentNextWords resident;
    if (sums.empty()) {
        const auto contexts = contexts_of(sequences, words, execution.stop());
        if (!contexts.ok()) return contexts.status();
        GPUTEXT_TRY(load_and_sum(model, *contexts, work, ring, execution, resident));
    } else {
        execution.begin_phase("copying vectors", 0);
        GPUTEXT_TRY(resident.load(model, ring, work.stream, execution));
        GPUTEXT_TRY(resident.set_sums(sums, work.stream));
    }
    const std::uint64_t fixed = ResidentNextWords::bytes(words, model.vectors.dimensions);
    return TokenPass(resident, sequences, work, ring, execution, answer).run(work.bytes - fixed);
}

}  // namespace

std::uint64_t ResidentNextWords::bytes(std::size_t words, std::size_t dimensions) {
    const std::uint64_t ordered = std::uint64_t{chunks_of(dimensions)} * kWarp;
    // Vectors, output vectors, these once more in order, and of each word its softmax; the group of
    // contexts is at most as large as all of them.
    return words * ((2 * dimensions + 2 * ordered) * sizeof(float) + sizeof(std::int32_t) +
                    sizeof(std::uint64_t) + sizeof(std::uint32_t));
}

Status ResidentNextWords::load(const NextWordModel& model, UploadRing& ring, cudaStream_t stream,
                               Execution& execution) {
    words_ = model.vectors.words;
    dimensions_ = model.vectors.dimensions;
    chunks_ = chunks_of(dimensions_);
    const std::size_t elements = words_ * dimensions_, ordered = words_ * chunks_ * kWarp;
    StreamEvent event;
    GPUTEXT_TRY(event.create());
    GPUTEXT_TRY(vectors_.allocate(elements, stream));
    GPUTEXT_TRY(outputs_.allocate(elements, stream));
    GPUTEXT_TRY(ordered_outputs_.allocate(ordered, stream));
    GPUTEXT_TRY(largest_.allocate(words_, stream));
    GPUTEXT_TRY(sums_.allocate(words_, stream));
    if (elements == 0) return {};
    GPUTEXT_TRY(event.hold(ring.stream(), stream));
    GPUTEXT_TRY(copy_to(vectors_, std::span(model.vectors.elements, elements), ring, execution));
    GPUTEXT_TRY(copy_to(outputs_, std::span(model.outputs.elements, elements), ring, execution));
    GPUTEXT_TRY(event.hold(stream, ring.stream()));
    order_rows<<<blocks_for(ordered, kThreads), kThreads, 0, stream>>>(
        outputs_.data(), nullptr, ordered, static_cast<std::uint32_t>(dimensions_), chunks_,
        ordered_outputs_.data());
    return launched("ordering vectors");
}

Status ResidentNextWords::sum(std::span<const std::uint32_t> contexts, std::uint64_t memory,
                              cudaStream_t stream, Execution& execution) {
    execution.begin_phase("summing over words", contexts.size());
    if (contexts.empty()) return {};
    const std::uint64_t fitting = std::max<std::uint64_t>(1, memory / group_bytes(words_));
    const std::uint64_t group = std::min<std::uint64_t>(
        {contexts.size(), fitting, std::max<std::uint64_t>(1, kMostDots / words_),
         std::uint64_t{65535} * kTile});
    const std::uint32_t of_row = chunks_ * kWarp;
    const std::size_t shared = 2 * kTile * chunks_ * kLanesOfGroup * sizeof(float);
    GPUTEXT_TRY(allow_shared_bytes(dots_of_contexts, shared));
    if (contexts_.size() < group) {
        GPUTEXT_TRY(contexts_.allocate(group, stream));
        GPUTEXT_TRY(ordered_contexts_.allocate(group * of_row, stream));
        GPUTEXT_TRY(dots_.allocate(group * words_, stream));
    }
    // In the order of floats that is below every dot.
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(largest_.data(), 0x80, words_ * sizeof(std::int32_t), stream),
                    "clearing sums"));
    for (std::size_t begin = 0; begin < contexts.size(); begin += group) {
        const auto own =
            contexts.subspan(begin, std::min<std::size_t>(group, contexts.size() - begin));
        GPUTEXT_TRY(contexts_.upload(own, stream));
        const std::size_t elements = own.size() * of_row;
        order_rows<<<blocks_for(elements, kThreads), kThreads, 0, stream>>>(
            vectors_.data(), contexts_.data(), elements, static_cast<std::uint32_t>(dimensions_),
            chunks_, ordered_contexts_.data());
        const dim3 tiles(blocks_for(words_, kTile), blocks_for(own.size(), kTile));
        dots_of_contexts<<<tiles, kThreads, shared, stream>>>(
            ordered_contexts_.data(), static_cast<std::uint32_t>(own.size()),
            ordered_outputs_.data(), static_cast<std::uint32_t>(words_), chunks_, contexts_.data(),
            dots_.data(), largest_.data());
        sum_powers<<<static_cast<unsigned>(own.size()), kThreads, 0, stream>>>(
            dots_.data(), static_cast<std::uint32_t>(words_), contexts_.data(), largest_.data(),
            sums_.data());
        GPUTEXT_TRY(launched("summing over words"));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "summing over words"));
        GPUTEXT_TRY(execution.checkpoint(own.size()));
    }
    // Leaves the memory to the tokens.
    dots_.reset();
    ordered_contexts_.reset();
    contexts_.reset();
    return {};
}

Status ResidentNextWords::copy_sums(std::span<const std::uint32_t> contexts, UploadRing& ring,
                                    cudaStream_t stream, Execution& execution,
                                    std::vector<ContextSum>& sums) const {
    std::vector<std::int32_t> largest(words_);
    std::vector<std::uint64_t> by_word(words_);
    GPUTEXT_TRY(copy_from(std::span(largest), largest_, ring, stream, execution));
    GPUTEXT_TRY(copy_from(std::span(by_word), sums_, ring, stream, execution));
    sums.clear();
    for (const std::uint32_t context : contexts)
        sums.push_back(
            {std::bit_cast<float>(in_order_of_floats(largest[context])), by_word[context]});
    return {};
}

Status ResidentNextWords::set_sums(std::span<const ContextSum> sums, cudaStream_t stream) {
    std::vector<std::int32_t> largest;
    std::vector<std::uint64_t> by_word;
    for (const ContextSum& sum : sums) {
        largest.push_back(in_order_of_floats(std::bit_cast<std::int32_t>(sum.largest)));
        by_word.push_back(sum.sum);
    }
    GPUTEXT_TRY(largest_.upload(std::span<const std::int32_t>(largest), stream));
    return sums_.upload(std::span<const std::uint64_t>(by_word), stream);
}

Status ResidentNextWords::look_up(const Tokens& tokens, cudaStream_t stream) const {
    if (tokens.sequences == 0) return {};
    const LookUp model{vectors_.data(), outputs_.data(), static_cast<std::uint32_t>(dimensions_),
                       largest_.data(), sums_.data()};
    if (tokens.count > 0) {
        GPUTEXT_TRY(
            cuda_status(cudaMemsetAsync(tokens.scratch, 0, tokens.count * sizeof(double), stream),
                        "clearing tokens"));
        mark_first_tokens<<<blocks_for(tokens.sequences, kThreads), kThreads, 0, stream>>>(tokens);
        probabilities_of_tokens<<<blocks_for(tokens.count, kThreads), kThreads, 0, stream>>>(
            model, tokens);
    }
    probabilities_of_sequences<<<blocks_for(tokens.sequences, kThreads), kThreads, 0, stream>>>(
        tokens);
    return launched("looking up tokens");
}

Result<std::vector<ContextSum>> context_sums(const NextWordModel& model,
                                             std::span<const std::uint32_t> contexts,
                                             const DeviceWork& work, UploadRing& ring,
                                             Execution& execution) {
    GPUTEXT_TRY(check_next_word_model(model, execution));
    std::vector<ContextSum> sums;
    const auto find = [&]() -> Status {
        GPUTEXT_TRY(check_memory(model, 0, work));
        ResidentNextWords resident;
        GPUTEXT_TRY(load_and_sum(model, contexts, work, ring, execution, resident));
        return resident.copy_sums(contexts, ring, work.stream, execution, sums);
    };
    GPUTEXT_TRY(finish_work(find(), work.stream, "summing over words"));
    return sums;
}

Result<SequenceProbabilities> sequence_probabilities(const NextWordModel& model,
                                                     const TokenSequences& sequences,
                                                     std::span<const ContextSum> sums,
                                                     const DeviceWork& work, UploadRing& ring,
                                                     Execution& execution) {
    GPUTEXT_TRY(check_next_word_model(model, execution));
    SequenceProbabilities answer;
    try {
        answer.tokens.resize(sequences.tokens.size());
        answer.sequences.resize(sequences.size());
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    const Status status = run(model, sequences, sums, work, ring, execution, answer);
    GPUTEXT_TRY(finish_work(status, work.stream, "computing probabilities"));
    return answer;
}

}  // namespace gputext::gpu
