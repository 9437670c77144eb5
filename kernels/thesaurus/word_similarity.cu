#include "kernels/thesaurus/word_similarity.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/thesaurus/detail/byte_product.hpp"
#include "kernels/thesaurus/detail/feature_weights.hpp"
#include "kernels/thesaurus/detail/scores.hpp"
#include "kernels/thesaurus/detail/sorts.hpp"

namespace gputext::gpu {
namespace {

constexpr std::uint32_t kLeastForProduct = 1024;  // words
constexpr std::uint32_t kLeastPart = 32;          // words whose neighbors are kept at a time
/// Work of a launch of some 20 ms.
constexpr double kMostOperations = 2.5e13;  // of the tensor cores
constexpr double kMostWork = 8e9;           // additions of postings
constexpr std::uint64_t kSmallBuffers = std::uint64_t{1} << 20;

std::uint32_t rounded_up(std::uint64_t number, std::uint32_t to) {
    return static_cast<std::uint32_t>((number + to - 1) / to * to);
}

Status too_little(std::uint64_t needed, std::uint64_t given) {
    return too_little_memory("comparing words takes", needed, given);
}

/// Adds cuts between `begin`, which is one already, and `end`.
void cut(std::vector<std::uint32_t>& cuts, std::uint32_t end, std::uint32_t tile) {
    const std::uint32_t begin = cuts.back(), words = end - begin;
    if (words == 0) return;
    const std::uint32_t tiles = (words + tile - 1) / tile;
    const std::uint32_t of_tile = std::min(tile, rounded_up((words + tiles - 1) / tiles, 32));
    for (std::uint32_t next = begin + of_tile; next < end; next += of_tile) cuts.push_back(next);
    cuts.push_back(end);
}

unsigned segments_of(WordMeasure measure) {
    return measure == WordMeasure::jaccard ? 1 : 4;
}

/// How words are cut, and what of the memory is for what.
struct Plan {
    std::uint32_t words = 0, first = 0, end = 0;
    std::uint32_t top_k = 0;
    bool all = false;  // similarities are all kept, and sorted
    bool wide = false;
    WordIndexPlan index;
    std::uint32_t part = 0;  // words whose neighbors are kept at a time
    std::uint64_t least = 0, good = 0;

    std::uint64_t bytes_of_row() const {
        return all ? AllSimilarities::bytes_of_row(words)
                   : NearestWordsMemory::bytes_of_word(top_k);
    }
    std::uint64_t divided_bytes() const {
        return std::uint64_t{kMostDivided} * index.padded * (wide ? 8 : 4) +
               (std::uint64_t{8} << 20);
    }
    std::uint64_t scratch() const {
        return 2 * std::uint64_t{index.padded} * index.padded * (wide ? 8 : 4);
    }
};

void cut_words(Plan& plan, std::uint32_t tile) {
    plan.index.cuts = {0};
    cut(plan.index.cuts, plan.first, tile);
    cut(plan.index.cuts, plan.end, tile);
    cut(plan.index.cuts, plan.words, tile);
    std::uint32_t most = 0;
    for (std::uint32_t t = 0; t < plan.index.tiles(); ++t)
        most = std::max(most, plan.index.cuts[t + 1] - plan.index.cuts[t]);
    plan.index.padded = rounded_up(most, kProductTile);
}

/// Dense columns that fit into so many bytes beside their products, and are multiplied soon enough.
std::uint32_t most_dense(const Plan& plan, WordMeasure measure, std::uint64_t bytes) {
    if (bytes <= plan.scratch()) return 0;
    const unsigned matrices = measure == WordMeasure::lin      ? 3
                              : measure == WordMeasure::cosine ? 2
                                                               : 1;
    const std::uint64_t of_column =
        std::uint64_t{plan.index.tiles()} * plan.index.padded * matrices;
    const double operations = 2.0 * segments_of(measure) * plan.index.padded * plan.index.padded;
    const double in_time = kMostOperations * 2 / operations;
    return static_cast<std::uint32_t>(std::min(
               {static_cast<double>((bytes - plan.scratch()) / of_column), in_time, 65536.0})) /
           128 * 128;
}

Plan plan_search(const SimilarityParameters& parameters, const FeatureRows& features,
                 std::uint64_t largest, std::uint64_t memory, const WordChoices& choices) {
    Plan plan;
    plan.words = features.shape.words;
    plan.end = std::min(parameters.end, plan.words);
    plan.first = std::min(parameters.first, plan.end);
    plan.top_k = std::max(1u, std::min(parameters.top_k, plan.words));
    plan.all = plan.top_k > NearestWords::kMost;
    plan.wide = plan.all || parameters.measure == WordMeasure::cosine ||
                (parameters.measure == WordMeasure::lin && largest > UINT32_MAX / 2);
    plan.index.measure = parameters.measure;
    if (choices.dense_share > 0) plan.index.dense_share = choices.dense_share;
    const std::uint32_t rows = plan.end - plan.first;
    const bool product = !plan.all && !choices.no_product && has_word_product() &&
                         (plan.words >= kLeastForProduct || choices.dense_share > 0);
    const std::uint32_t largest_tile = most_tile_words(plan.wide);
    const std::uint32_t tile =
        choices.tile > 0 ? std::min(choices.tile, largest_tile) : largest_tile;
    cut_words(plan, tile);
    auto bytes = WordIndexMemory::bytes(features, plan.index.tiles(), plan.index.padded, 0,
                                        parameters.measure);
    const std::uint64_t of_row = plan.bytes_of_row();
    const std::uint64_t rows_at_least = std::min(rows, kLeastPart);
    plan.least = std::max(bytes.making, bytes.kept + rows_at_least * of_row) + kSmallBuffers;
    plan.good = plan.least + rows * of_row + plan.scratch() + (std::uint64_t{16} << 30);
    if (memory < plan.least) return plan;
    const std::uint64_t for_rows = memory - kSmallBuffers - bytes.kept;
    plan.part = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        {rows, for_rows / of_row,
         plan.all ? std::max<std::uint64_t>(1, AllSimilarities::kMostElements / plan.words)
                  : rows}));
    if (plan.part < rows) return plan;
    const std::uint64_t for_divided = plan.divided_bytes() + std::uint64_t{4} * plan.words;
    if (!plan.all && for_rows >= rows * of_row + for_divided) {
        plan.index.most_divided = kMostDivided;
        plan.index.divided_from = choices.divided;
    }
    if (!product) return plan;
    // Smaller tiles have smaller products.
    std::uint32_t smaller = tile;
    for (;;) {
        Plan with = plan;
        cut_words(with, smaller);
        bytes = WordIndexMemory::bytes(features, with.index.tiles(), with.index.padded, 0,
                                       parameters.measure);
        const std::uint64_t taken = bytes.kept + rows * of_row + kSmallBuffers +
                                    (plan.index.most_divided > 0 ? for_divided : 0);
        with.index.most_dense = memory > taken && memory >= bytes.making + kSmallBuffers
                                    ? most_dense(with, parameters.measure, memory - taken)
                                    : 0;
        if (with.index.most_dense >= 1024 || (with.index.most_dense > 0 && smaller <= 4096))
            return with;
        if (smaller <= 4096) return plan;
        smaller /= 2;
    }
}

/// Which words of a tile are in [begin, end).
struct Span {
    std::uint32_t begin, end;
    bool empty() const { return begin >= end; }
};

class Search {
public:
    Search(const SimilarityParameters& parameters, const FeatureRows& features, const Plan& plan,
           WordIndexMemory& memory, const DeviceWork& work, Execution& execution, bool measure)
        : parameters_(parameters),
          features_(features),
          plan_(plan),
          index_(memory),
          stream_(work.stream),
          execution_(execution),
          index_timer_(measure, work.stream),
          product_timer_(measure, work.stream),
          score_timer_(measure, work.stream),
          sort_timer_(measure, work.stream) {}

    Status run(Thesaurus* answer) {
        index_timer_.begin();
        GPUTEXT_TRY(index_.build(features_, plan_.index, execution_, stream_));
        index_timer_.end();
        GPUTEXT_TRY(execution_.checkpoint(0));
        const std::uint32_t tiles = plan_.index.tiles(), rows = plan_.end - plan_.first;
        const std::uint32_t parts = plan_.part == 0 ? 0 : (rows + plan_.part - 1) / plan_.part;
        execution_.begin_phase("comparing words", std::uint64_t{parts} * tiles * (tiles + 1) / 2);
        if (plan_.all)
            GPUTEXT_TRY(all_.allocate(plan_.part, plan_.words, stream_));
        else
            GPUTEXT_TRY(nearest_.allocate(plan_.part, plan_.top_k, stream_));
        if (index_.view().dense > 0) {
            const std::size_t size =
                std::size_t{plan_.index.padded} * plan_.index.padded * (plan_.wide ? 2 : 1);
            GPUTEXT_TRY(sums_.allocate(size, stream_));
            GPUTEXT_TRY(mirrored_.allocate(size, stream_));
        }
        if (index_.divided() > 0)
            GPUTEXT_TRY(divided_sums_.allocate(
                std::size_t{index_.divided()} * plan_.index.padded * (plan_.wide ? 2 : 1),
                stream_));
        parts_ = parts;
        if (answer != nullptr) GPUTEXT_TRY(begin_answer(*answer));
        for (std::uint32_t part = 0; part < parts; ++part) {
            const std::uint32_t begin = plan_.first + part * plan_.part;
            const std::uint32_t end = std::min(plan_.end, begin + plan_.part);
            GPUTEXT_TRY(search_part(begin, end));
            if (answer != nullptr) GPUTEXT_TRY(append(begin, end, *answer));
        }
        if (answer != nullptr)
            for (std::uint32_t word = plan_.end; word < plan_.words; ++word)
                answer->begins.push_back(answer->neighbors.size());
        return {};
    }

    void tell(WordTimes& times) const {
        times.index_ms = index_timer_.milliseconds();
        times.product_ms = product_timer_.milliseconds();
        times.score_ms = score_timer_.milliseconds();
        times.sort_ms = sort_timer_.milliseconds();
        times.facts = index_.facts();
        times.dense = index_.view().dense;
        times.divided = index_.divided();
        times.tiles = plan_.index.tiles();
        times.parts = parts_;
        times.product_operations = operations_;
        times.stored = features_.stored;
    }

private:
    std::uint32_t tile_begin(std::uint32_t tile) const { return plan_.index.cuts[tile]; }
    std::uint32_t tile_end(std::uint32_t tile) const { return plan_.index.cuts[tile + 1]; }
    Span within(std::uint32_t tile, std::uint32_t begin, std::uint32_t end) const {
        return {std::max(begin, tile_begin(tile)), std::min(end, tile_end(tile))};
    }

    Status search_part(std::uint32_t begin, std::uint32_t end) {
        if (!plan_.all) GPUTEXT_TRY(nearest_.clear(begin, end - begin, stream_));
        part_begin_ = begin;
        const std::uint32_t tiles = plan_.index.tiles();
        for (std::uint32_t i = 0; i < tiles; ++i)
            for (std::uint32_t j = i; j < tiles; ++j) {
                const Span own = within(i, begin, end), other = within(j, begin, end);
                if (!own.empty() || !other.empty()) GPUTEXT_TRY(compare(i, own, j, other));
                GPUTEXT_TRY(execution_.checkpoint());
            }
        if (!plan_.all) return {};
        sort_timer_.begin();
        GPUTEXT_TRY(all_.sort(end - begin, stream_));
        sort_timer_.end();
        return cuda_status(cudaStreamSynchronize(stream_), "sorting similarities");
    }

    /// Compares the words of tile i with those of tile j, and the other way round.
    Status compare(std::uint32_t i, Span own, std::uint32_t j, Span other) {
        const bool dense = index_.view().dense > 0;
        const void* sums = nullptr;
        const void* mirrored = nullptr;
        if (dense) {
            if (i == j || own.empty()) {
                // Rows are those of tile j alone.
                GPUTEXT_TRY(multiply(j, i, sums_.data(), i == j ? sums_.data() : nullptr));
                mirrored = sums_.data();
                sums = sums_.data();
            } else {
                GPUTEXT_TRY(
                    multiply(i, j, sums_.data(), other.empty() ? nullptr : mirrored_.data()));
                sums = sums_.data();
                mirrored = mirrored_.data();
            }
        }
        GPUTEXT_TRY(score(i, own, j, sums));
        return i == j ? Status() : score(j, other, i, mirrored);
    }

    /// The products of two tiles' dense features, in launches of at most some 20 ms.
    Status multiply(std::uint32_t left, std::uint32_t right, std::uint32_t* sums,
                    std::uint32_t* mirrored) {
        const WordIndex& index = index_.view();
        const std::size_t tile_bytes = std::size_t{plan_.index.padded} * index.column_blocks * 128;
        const auto at = [&](const std::uint8_t* matrix, std::uint32_t tile) {
            return matrix + tile * tile_bytes;
        };
        WordProductJob job;
        job.column_blocks = index.column_blocks;
        job.left_rows = rounded_up(tile_end(left) - tile_begin(left), kProductTile);
        job.right_rows = rounded_up(tile_end(right) - tile_begin(right), kProductTile);
        job.symmetric = left == right;
        job.sums = sums;
        job.mirrored = mirrored;
        job.stride = job.mirrored_stride = plan_.index.padded;
        job.wide = plan_.wide;
        const auto segment = [&](const std::uint8_t* a, const std::uint8_t* b) {
            job.segments[job.count++] = {at(a, left), at(b, right)};
        };
        const auto launch = [&](unsigned shift) -> Status {
            job.shift = shift;
            product_timer_.begin();
            GPUTEXT_TRY(run_word_product(job, stream_));
            product_timer_.end();
            operations_ += (job.symmetric ? 1.0 : 2.0) * job.count * job.left_rows *
                           job.right_rows * job.column_blocks * 128;
            job.count = job.upper = 0;
            return cuda_status(cudaStreamSynchronize(stream_), "multiplying frequent features");
        };
        // Sums of 64 bits are complete, and mirrored, with the last launch.
        const auto launch_first = [&](unsigned shift) -> Status {
            job.mirrored = nullptr;
            GPUTEXT_TRY(launch(shift));
            job.mirrored = mirrored;
            job.add = true;
            return {};
        };
        switch (parameters_.measure) {
            case WordMeasure::jaccard:
                segment(index.marks, index.marks);
                break;
            case WordMeasure::lin:
                segment(index.upper, index.marks);
                segment(index.marks, index.upper);
                if (plan_.wide)
                    GPUTEXT_TRY(launch_first(8));
                else
                    job.upper = job.count;
                segment(index.lower, index.marks);
                segment(index.marks, index.lower);
                break;
            case WordMeasure::cosine:
                segment(index.upper, index.upper);
                GPUTEXT_TRY(launch_first(16));
                segment(index.upper, index.lower);
                segment(index.lower, index.upper);
                GPUTEXT_TRY(launch_first(8));
                segment(index.lower, index.lower);
                break;
        }
        return launch(0);
    }

    /// Words beside a tile, in launches of at most some 20 ms, unless few words have most features.
    Status score(std::uint32_t rows_tile, Span rows, std::uint32_t tile, const void* dense) {
        if (rows.empty()) return {};
        const double work = index_.facts().cold_work / plan_.words / plan_.index.tiles();
        const auto at_once =
            static_cast<std::uint32_t>(std::clamp(kMostWork / std::max(1.0, work), 264.0, 1e9));
        WordScoresJob job;
        job.measure = parameters_.measure;
        job.wide = plan_.wide;
        job.tile = tile;
        job.tile_first = tile_begin(tile);
        job.tile_words = tile_end(tile) - tile_begin(tile);
        job.dense = dense;
        job.dense_stride = plan_.index.padded;
        job.dense_first = tile_begin(rows_tile);
        if (plan_.all) {
            job.all_stride = plan_.words;
        } else {
            job.nearest = nearest_.view;
            job.divided_sums = divided_sums_.data();
            job.divided_stride = plan_.index.padded;
            job.word_parts = index_.word_parts();
        }
        for (std::uint32_t first = rows.begin; first < rows.end;) {
            job.first = first;
            job.end = rows.end - first > at_once ? first + at_once : rows.end;
            if (plan_.all)
                job.all = all_.similarities() + std::size_t{first - part_begin_} * plan_.words;
            score_timer_.begin();
            GPUTEXT_TRY(score_words(index_.view(), job, stream_));
            score_timer_.end();
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "comparing words"));
            GPUTEXT_TRY(execution_.checkpoint(0));
            first = job.end;
        }
        return {};
    }

    Status begin_answer(Thesaurus& answer) const {
        answer.begins.assign(std::size_t{plan_.first} + 1, 0);
        return {};
    }

    /// Copies the lists of some words behind those that are there.
    Status append(std::uint32_t begin, std::uint32_t end, Thesaurus& answer) {
        const std::uint32_t rows = end - begin;
        std::vector<std::uint32_t> counts(rows);
        const auto copy = [&](auto* to, const auto* from, std::size_t size) {
            return cuda_status(
                cudaMemcpyAsync(to, from, size * sizeof *to, cudaMemcpyDeviceToHost, stream_),
                "copying neighbors");
        };
        GPUTEXT_TRY(copy(counts.data(), plan_.all ? all_.counts() : nearest_.view.counts, rows));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "copying neighbors"));
        const std::size_t stride = plan_.all ? plan_.words : plan_.top_k;
        const std::uint64_t* const similarities =
            plan_.all ? all_.sorted() : nearest_.view.similarities;
        const std::uint32_t* const words = plan_.all ? all_.words() : nearest_.view.words;
        const std::size_t before = answer.neighbors.size();
        std::size_t after = before;
        for (std::uint32_t row = 0; row < rows; ++row) {
            counts[row] = std::min(counts[row], plan_.top_k);
            after += counts[row];
            answer.begins.push_back(after);
        }
        // As they are, and then moved together where lists are not full.
        const std::size_t top_k = plan_.top_k, all = before + rows * top_k;
        answer.neighbors.resize(all);
        answer.similarities.resize(all);
        const auto copy_rows = [&](auto* to, const auto* from, std::uint32_t some) {
            if (stride == top_k) return copy(to, from, some * top_k);
            return cuda_status(
                cudaMemcpy2DAsync(to, top_k * sizeof *to, from, stride * sizeof *from,
                                  top_k * sizeof *to, some, cudaMemcpyDeviceToHost, stream_),
                "copying neighbors");
        };
        const auto step = static_cast<std::uint32_t>(
            std::clamp<std::size_t>((std::size_t{1} << 26) / top_k, 1, rows));
        for (std::uint32_t row = 0; row < rows; row += step) {
            const std::uint32_t some = std::min(step, rows - row);
            const std::size_t to = before + row * top_k;
            GPUTEXT_TRY(copy_rows(answer.similarities.data() + to,
                                  reinterpret_cast<const double*>(similarities) + row * stride,
                                  some));
            GPUTEXT_TRY(copy_rows(answer.neighbors.data() + to, words + row * stride, some));
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "copying neighbors"));
            GPUTEXT_TRY(execution_.checkpoint(0));
        }
        if (after == all) return {};
        std::size_t to = before;
        for (std::uint32_t row = 0; row < rows; ++row) {
            const std::size_t from = before + row * top_k;
            std::copy_n(answer.neighbors.begin() + from, counts[row],
                        answer.neighbors.begin() + to);
            std::copy_n(answer.similarities.begin() + from, counts[row],
                        answer.similarities.begin() + to);
            to += counts[row];
            if (row % 65536 == 65535) GPUTEXT_TRY(execution_.checkpoint(0));
        }
        answer.neighbors.resize(after);
        answer.similarities.resize(after);
        return {};
    }

    const SimilarityParameters& parameters_;
    const FeatureRows features_;
    const Plan& plan_;
    WordIndexMemory& index_;
    cudaStream_t stream_;
    Execution& execution_;
    StreamTimer index_timer_, product_timer_, score_timer_, sort_timer_;
    DeviceBuffer<std::uint32_t> sums_, mirrored_, divided_sums_;
    NearestWordsMemory nearest_;
    AllSimilarities all_;
    std::uint32_t part_begin_ = 0, parts_ = 0;
    double operations_ = 0;
};

Status check_similarity(const SimilarityParameters& parameters) {
    if (parameters.top_k < 1) return {ErrorCode::invalid_argument, "top_k must be at least 1"};
    return {};
}

std::uint64_t bytes_of_counts(const CountRows& rows) {
    return rows.stored * 8 + (std::uint64_t{rows.shape.words} + 1) * 8;
}
std::uint64_t bytes_of_features(const FeatureRows& rows) {
    return rows.stored * 6 + (std::uint64_t{rows.shape.words} + 1) * 8;
}

/// What is left of the memory.
DeviceWork less(const DeviceWork& work, std::uint64_t bytes) {
    return {work.stream, work.bytes > bytes ? static_cast<std::size_t>(work.bytes - bytes) : 0};
}

/// Compares words by counts on the device, which are freed as soon as they are weighed.
Status compare(const SimilarityParameters& parameters, const WeightParameters& weights,
               CountRowsMemory& counts, const DeviceWork& work, Execution& execution,
               Thesaurus& answer, WordTimes* times, const WordChoices& choices) {
    FeatureRowsMemory features;
    StreamTimer weigh_timer(times != nullptr, work.stream);
    weigh_timer.begin();
    GPUTEXT_TRY(weigh_features(weights, counts.view, less(work, bytes_of_counts(counts.view)),
                               execution, features));
    weigh_timer.end();
    counts = {};
    GPUTEXT_TRY(word_similarities(parameters, features.view,
                                  less(work, bytes_of_features(features.view)), execution, &answer,
                                  times, choices));
    if (times != nullptr) times->weigh_ms = weigh_timer.milliseconds();
    return {};
}

/// Waits for the stream that an answer used, so that nothing runs when its memory is freed.
template <class Answer>
Result<Answer> finished(Status status, Answer&& answer, cudaStream_t stream) {
    const Status synchronized = cuda_status(cudaStreamSynchronize(stream), "comparing words");
    if (!status.ok()) return status;
    if (!synchronized.ok()) return synchronized;
    return std::forward<Answer>(answer);
}

}  // namespace

WordSimilarityBytes word_similarity_bytes(const SimilarityParameters& parameters,
                                          const FeatureRows& features) {
    // Plan for words whose sums fit into 32 bits.
    const Plan plan = plan_search(parameters, features, 0, 0, {});
    return {plan.least, plan.good};
}

Status word_similarities(const SimilarityParameters& parameters, const FeatureRows& features,
                         const DeviceWork& work, Execution& execution, Thesaurus* answer,
                         WordTimes* times, const WordChoices& choices) {
    GPUTEXT_TRY(check_similarity(parameters));
    execution.begin_phase("indexing features", 1);
    WordIndexMemory index;
    GPUTEXT_TRY(index.measure_words(features, parameters.measure, work.stream));
    if (index.largest() >> 53 != 0)
        return {ErrorCode::invalid_argument,
                "the squares of a word's weights add up to more than 2^53"};
    const Plan plan = plan_search(parameters, features, index.largest(), work.bytes, choices);
    if (work.bytes < plan.least) return too_little(plan.least, work.bytes);
    if (features.stored == 0) {
        if (answer != nullptr) answer->begins.assign(std::size_t{plan.words} + 1, 0);
        return {};
    }
    Search search(parameters, features, plan, index, work, execution, times != nullptr);
    const Status status = search.run(answer);
    const Status synchronized = cuda_status(cudaStreamSynchronize(work.stream), "comparing words");
    if (!status.ok()) return status;
    if (times != nullptr) search.tell(*times);
    return synchronized;
}

Result<Thesaurus> word_similarities(const SimilarityParameters& parameters,
                                    const WeightParameters& weights, const CooccurrenceShape& shape,
                                    const TokenStream& tokens, const DeviceWork& work,
                                    UploadRing& ring, Execution& execution, WordTimes* times,
                                    const WordChoices& choices) {
    Thesaurus answer;
    const auto run = [&]() -> Status {
        GPUTEXT_TRY(check_similarity(parameters));
        GPUTEXT_TRY(check_weights(weights));
        CountRowsMemory counts;
        GPUTEXT_TRY(count_words(shape, tokens, work, ring, execution, counts,
                                times != nullptr ? &times->count : nullptr));
        return compare(parameters, weights, counts, work, execution, answer, times, choices);
    };
    Status status = run();
    return finished(std::move(status), std::move(answer), work.stream);
}

Result<Thesaurus> word_similarities(const SimilarityParameters& parameters,
                                    const WeightParameters& weights, const Cooccurrences& given,
                                    const DeviceWork& work, UploadRing& ring, Execution& execution,
                                    WordTimes* times, const WordChoices& choices) {
    Thesaurus answer;
    const auto run = [&]() -> Status {
        GPUTEXT_TRY(check_similarity(parameters));
        GPUTEXT_TRY(check_weights(weights));
        GPUTEXT_TRY(check_shape(given.shape));
        if (given.begins.size() != std::size_t{given.shape.words} + 1 ||
            given.begins.back() != given.stored() || given.counts.size() != given.stored())
            return {ErrorCode::invalid_argument, "there must be a row of counts for each word"};
        const std::uint64_t needed = given.stored() * 8 + given.begins.size() * 8;
        if (needed > work.bytes) return too_little(needed, work.bytes);
        CountRowsMemory counts;
        GPUTEXT_TRY(upload_counts(given, work, ring, execution, counts));
        return compare(parameters, weights, counts, work, execution, answer, times, choices);
    };
    Status status = run();
    return finished(std::move(status), std::move(answer), work.stream);
}

Result<Cooccurrences> count_cooccurrences(const CooccurrenceShape& shape, const TokenStream& tokens,
                                          const DeviceWork& work, UploadRing& ring,
                                          Execution& execution) {
    Cooccurrences counts;
    const auto run = [&]() -> Status {
        CountRowsMemory rows;
        GPUTEXT_TRY(count_words(shape, tokens, work, ring, execution, rows));
        Result<Cooccurrences> found = download_counts(rows.view, work.stream, execution);
        if (!found.ok()) return found.status();
        counts = std::move(*found);
        return {};
    };
    Status status = run();
    return finished(std::move(status), std::move(counts), work.stream);
}

}  // namespace gputext::gpu
