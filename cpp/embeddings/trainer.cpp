#include "cpp/embeddings/trainer.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "cpp/base/helper_threads.hpp"
#include "cpp/base/lane_sums.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/embeddings/detail/logistic.hpp"
#include "cpp/embeddings/detail/training_windows.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace gputext {
namespace {

// ---- Arithmetic of a step on rows of numbers ----
//
// Rows have `size` elements, a multiple of kRowUnit, those behind the dimensions 0. Each function
// gives the same bits by every instruction set.

inline constexpr std::size_t kRowUnit = 32;

struct RowFunctions {
    /// out = the sum over i of weights[i] * rows[i], by fma from 0.
    void (*weighted_sum)(const float* const* rows, const float* weights, std::size_t count,
                         std::size_t size, float* out);
    /// steps += the same sum as integers, TrainerParameters::kFractionBits behind the point.
    void (*add_weighted)(const float* const* rows, const float* weights, std::size_t count,
                         std::size_t size, std::int32_t* steps);
    /// row = fma(steps as numbers, quotient, row).
    void (*take_steps)(const std::int32_t* steps, float quotient, std::size_t size, float* row);
};

constexpr float kUnits = 1 << TrainerParameters::kFractionBits;
constexpr float kUnit = 1 / kUnits;
constexpr float kMostStep = TrainerParameters::kMostStep;

// Element by element.

float weighted_element(const float* const* rows, const float* weights, std::size_t count,
                       std::size_t element) {
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum = std::fma(weights[i], rows[i][element], sum);
    return sum;
}

void weighted_sum_portable(const float* const* rows, const float* weights, std::size_t count,
                           std::size_t size, float* out) {
    for (std::size_t e = 0; e < size; ++e) out[e] = weighted_element(rows, weights, count, e);
}

void add_weighted_portable(const float* const* rows, const float* weights, std::size_t count,
                           std::size_t size, std::int32_t* steps) {
    for (std::size_t e = 0; e < size; ++e) {
        const float units = weighted_element(rows, weights, count, e) * kUnits;
        const float within = std::fmin(std::fmax(units, -kMostStep), kMostStep);
        steps[e] = static_cast<std::int32_t>(static_cast<std::uint32_t>(steps[e]) +
                                             static_cast<std::uint32_t>(std::lrint(within)));
    }
}

void take_steps_portable(const std::int32_t* steps, float quotient, std::size_t size, float* row) {
    for (std::size_t e = 0; e < size; ++e)
        row[e] = std::fma(static_cast<float>(steps[e]) * kUnit, quotient, row[e]);
}

#ifdef GPUTEXT_X86

// By instruction sets. Two registers at a time, so that one row's multiply-adds need not wait for
// the row before.

GPUTEXT_TARGET_AVX2 inline __m256i units_of(__m256 values) {
    const __m256 units = _mm256_mul_ps(values, _mm256_set1_ps(kUnits));
    const __m256 most = _mm256_set1_ps(kMostStep), least = _mm256_set1_ps(-kMostStep);
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(units, least), most));
}

struct Sums256 {
    __m256 parts[4];
};

GPUTEXT_TARGET_AVX2 inline Sums256 weighted_256(const float* const* rows, const float* weights,
                                                std::size_t count, std::size_t begin) {
    Sums256 sums{
        {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()}};
    for (std::size_t i = 0; i < count; ++i) {
        const __m256 weight = _mm256_set1_ps(weights[i]);
        const float* const row = rows[i] + begin;
        for (std::size_t v = 0; v < 4; ++v)
            sums.parts[v] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(row + 8 * v), sums.parts[v]);
    }
    return sums;
}

GPUTEXT_TARGET_AVX2 void weighted_sum_avx2(const float* const* rows, const float* weights,
                                           std::size_t count, std::size_t size, float* out) {
    for (std::size_t e = 0; e < size; e += kRowUnit) {
        const Sums256 sums = weighted_256(rows, weights, count, e);
        for (std::size_t v = 0; v < 4; ++v) _mm256_storeu_ps(out + e + 8 * v, sums.parts[v]);
    }
}

GPUTEXT_TARGET_AVX2 void add_weighted_avx2(const float* const* rows, const float* weights,
                                           std::size_t count, std::size_t size,
                                           std::int32_t* steps) {
    for (std::size_t e = 0; e < size; e += kRowUnit) {
        const Sums256 sums = weighted_256(rows, weights, count, e);
        for (std::size_t v = 0; v < 4; ++v) {
            auto* const to = reinterpret_cast<__m256i*>(steps + e + 8 * v);
            _mm256_storeu_si256(to,
                                _mm256_add_epi32(_mm256_loadu_si256(to), units_of(sums.parts[v])));
        }
    }
}

GPUTEXT_TARGET_AVX2 void take_steps_avx2(const std::int32_t* steps, float quotient,
                                         std::size_t size, float* row) {
    const __m256 factor = _mm256_set1_ps(quotient), unit = _mm256_set1_ps(kUnit);
    for (std::size_t e = 0; e < size; e += 8) {
        const auto* const from = reinterpret_cast<const __m256i*>(steps + e);
        const __m256 step = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_loadu_si256(from)), unit);
        _mm256_storeu_ps(row + e, _mm256_fmadd_ps(step, factor, _mm256_loadu_ps(row + e)));
    }
}

// The masked forms: GCC 12 warns of the others' undefined operand.
constexpr __mmask16 kAll = 0xffff;

GPUTEXT_TARGET_AVX512 inline __m512i units_of(__m512 values) {
    const __m512 units = _mm512_mul_ps(values, _mm512_set1_ps(kUnits));
    const __m512 most = _mm512_set1_ps(kMostStep), least = _mm512_set1_ps(-kMostStep);
    return _mm512_maskz_cvtps_epi32(
        kAll, _mm512_maskz_min_ps(kAll, _mm512_maskz_max_ps(kAll, units, least), most));
}

struct Sums512 {
    __m512 low, high;
};

GPUTEXT_TARGET_AVX512 inline Sums512 weighted_512(const float* const* rows, const float* weights,
                                                  std::size_t count, std::size_t begin) {
    Sums512 sums{_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (std::size_t i = 0; i < count; ++i) {
        const __m512 weight = _mm512_set1_ps(weights[i]);
        const float* const row = rows[i] + begin;
        sums.low = _mm512_fmadd_ps(weight, _mm512_loadu_ps(row), sums.low);
        sums.high = _mm512_fmadd_ps(weight, _mm512_loadu_ps(row + 16), sums.high);
    }
    return sums;
}

GPUTEXT_TARGET_AVX512 void weighted_sum_avx512(const float* const* rows, const float* weights,
                                               std::size_t count, std::size_t size, float* out) {
    for (std::size_t e = 0; e < size; e += kRowUnit) {
        const Sums512 sums = weighted_512(rows, weights, count, e);
        _mm512_storeu_ps(out + e, sums.low);
        _mm512_storeu_ps(out + e + 16, sums.high);
    }
}

GPUTEXT_TARGET_AVX512 inline void add_units(std::int32_t* steps, __m512 values) {
    _mm512_storeu_si512(steps, _mm512_add_epi32(_mm512_loadu_si512(steps), units_of(values)));
}

GPUTEXT_TARGET_AVX512 void add_weighted_avx512(const float* const* rows, const float* weights,
                                               std::size_t count, std::size_t size,
                                               std::int32_t* steps) {
    for (std::size_t e = 0; e < size; e += kRowUnit) {
        const Sums512 sums = weighted_512(rows, weights, count, e);
        add_units(steps + e, sums.low);
        add_units(steps + e + 16, sums.high);
    }
}

GPUTEXT_TARGET_AVX512 void take_steps_avx512(const std::int32_t* steps, float quotient,
                                             std::size_t size, float* row) {
    const __m512 factor = _mm512_set1_ps(quotient), unit = _mm512_set1_ps(kUnit);
    for (std::size_t e = 0; e < size; e += 16) {
        const __m512 step =
            _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll, _mm512_loadu_si512(steps + e)), unit);
        _mm512_storeu_ps(row + e, _mm512_fmadd_ps(step, factor, _mm512_loadu_ps(row + e)));
    }
}

#endif

RowFunctions row_functions(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return {weighted_sum_avx512, add_weighted_avx512, take_steps_avx512};
    if (simd == Simd::avx2) return {weighted_sum_avx2, add_weighted_avx2, take_steps_avx2};
#endif
    (void)simd;
    return {weighted_sum_portable, add_weighted_portable, take_steps_portable};
}

// ---- The trainer ----

/// Windows of a step that are worth a thread.
constexpr std::size_t kWindowsOfThread = 64;
/// Windows of a thread between two times that their loss is shown.
constexpr std::uint64_t kWindowsOfLoss = std::uint64_t{1} << 14;
/// Windows whose rows are asked for before they are used.
constexpr std::size_t kAhead = 2;

/// Rows that lie at multiples of a cache line.
class Rows {
public:
    void resize(std::size_t rows, std::size_t size) {
        size_ = size;
        memory_.assign(rows * size + kLine, 0.0f);
        const auto at = reinterpret_cast<std::uintptr_t>(memory_.data()) / sizeof(float);
        first_ = memory_.data() + (kLine - at % kLine) % kLine;
    }
    float* operator[](std::size_t row) { return first_ + row * size_; }
    const float* operator[](std::size_t row) const { return first_ + row * size_; }

private:
    static constexpr std::size_t kLine = 64 / sizeof(float);

    std::vector<float> memory_;
    float* first_ = nullptr;
    std::size_t size_ = 0;
};

/// Sums of a thread's steps for the rows that it has met since the last clear(), a slot for each.
/// Rows are those of the words as context, then those of the words as outputs.
class StepSums {
public:
    StepSums(std::size_t rows, std::size_t size, unsigned owners)
        : size_(size), slots_(rows), lists_(owners) {}

    std::int32_t* add(std::uint32_t row, std::uint32_t steps) {
        Slot& slot = slots_[row];
        if (slot.generation != generation_) {
            slot = {generation_, used_++};
            lists_[row % lists_.size()].push_back(row);
            if (counts_.size() < used_) {
                counts_.resize(used_);
                sums_.resize(used_ * size_);
            }
            counts_[slot.number] = 0;
            std::fill_n(sums_.data() + slot.number * size_, size_, 0);
        }
        counts_[slot.number] += steps;
        return sums_.data() + slot.number * size_;
    }

    bool has(std::uint32_t row) const { return slots_[row].generation == generation_; }
    std::uint32_t count(std::uint32_t row) const { return counts_[slots_[row].number]; }
    const std::int32_t* sum(std::uint32_t row) const {
        return sums_.data() + slots_[row].number * size_;
    }
    /// Rows met so far that belong to an owner: row number modulo the number of owners.
    const std::vector<std::uint32_t>& rows_of(unsigned owner) const { return lists_[owner]; }

    void clear() {
        ++generation_;
        used_ = 0;
        for (auto& list : lists_) list.clear();
    }

private:
    struct Slot {
        std::uint32_t generation = 0;
        std::uint32_t number = 0;
    };

    const std::size_t size_;
    std::vector<Slot> slots_;
    std::vector<std::vector<std::uint32_t>> lists_;
    std::vector<std::uint32_t> counts_;
    std::vector<std::int32_t> sums_;
    std::uint32_t generation_ = 1, used_ = 0;
};

/// -log of a product of probabilities, one logarithm for many.
class LossSum {
public:
    void add(float probability) {
        product_ *= std::max(probability, 0x1p-20f);
        if (product_ < 0x1p-900) end();
    }
    double total() {
        end();
        return sum_;
    }

private:
    void end() {
        sum_ -= std::log(product_);
        product_ = 1;
    }

    double product_ = 1, sum_ = 0;
};

struct Model {
    Rows vectors, outputs;
};

/// One thread's share of the windows.
class WindowSteps {
public:
    WindowSteps(const TrainerParameters& parameters, std::size_t words, std::size_t size,
                unsigned threads, Simd simd)
        : parameters_(parameters),
          words_(words),
          size_(size),
          dot_(lane_dot_by(simd)),
          rows_(row_functions(simd)),
          sums_(2 * words, size, threads),
          mean_(size),
          row_sum_(size) {}

    StepSums& sums() { return sums_; }
    /// Scratch of take_sums().
    std::vector<std::int32_t>& row_sum() { return row_sum_; }
    TrainingCount count() {
        count_.loss = loss_.total();
        return count_;
    }
    /// Shows the loss since `shown`, which becomes count(), when that was long ago.
    void show_loss(TrainingCount& shown, std::uint32_t epoch, Execution& execution) {
        if (count_.windows - shown.windows < kWindowsOfLoss) return;
        const TrainingCount before = std::exchange(shown, count());
        execution.show_training(epoch + 1, (shown.loss - before.loss) /
                                               static_cast<double>(shown.steps - before.steps));
    }

    /// The windows number first .. end - 1 of a step; not all of them after a stop request.
    void run(const TrainingWindows& windows, const TrainingSteps& steps, std::size_t step,
             std::size_t entries, std::size_t first, std::size_t end, float rate,
             const Model& model, const Execution& execution) {
        const auto find = [&](std::size_t stream, TrainingWindow& window) {
            const std::size_t entry = stream * steps.length + step;
            if (stream < end && entry < entries) {
                windows.find(entry, window);
                prefetch(window, model);
            } else {
                window.outputs.clear();
            }
        };
        for (std::size_t i = 0; i < kAhead; ++i) find(first + i, ahead_[i]);
        for (std::size_t stream = first; stream < end && !execution.stop_requested(); ++stream) {
            TrainingWindow& window = ahead_[(stream - first) % kAhead];
            if (!window.outputs.empty()) take(window, rate, model);
            find(stream + kAhead, window);
        }
    }

private:
    void prefetch(const TrainingWindow& window, const Model& model) const {
        for (const std::uint32_t word : window.context) prefetch(model.vectors[word]);
        for (const std::uint32_t word : window.outputs) prefetch(model.outputs[word]);
    }
    void prefetch(const float* row) const {
        for (std::size_t e = 0; e < size_; e += 16) __builtin_prefetch(row + e);
    }

    void take(const TrainingWindow& window, float rate, const Model& model) {
        context_.clear();
        outputs_.clear();
        for (const std::uint32_t word : window.context) context_.push_back(model.vectors[word]);
        for (const std::uint32_t word : window.outputs) outputs_.push_back(model.outputs[word]);
        ++count_.windows;
        if (parameters_.model == WordModel::skipgram)
            take_skipgram(window, rate);
        else
            take_cbow(window, rate);
    }

    float step_of(const float* x, std::size_t q, float rate) {
        const float label = q == 0 ? 1.0f : 0.0f;
        const float probability = logistic(dot_(x, outputs_[q], size_));
        loss_.add(q == 0 ? probability : 1 - probability);
        return (label - probability) * rate;
    }

    void take_skipgram(const TrainingWindow& window, float rate) {
        const std::size_t m = context_.size(), outputs = outputs_.size();
        by_context_.resize(m * outputs);
        by_output_.resize(m * outputs);
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t q = 0; q < outputs; ++q)
                by_output_[q * m + i] = by_context_[i * outputs + q] =
                    step_of(context_[i], q, rate);
        count_.steps += m * outputs;
        for (std::size_t i = 0; i < m; ++i)
            rows_.add_weighted(outputs_.data(), by_context_.data() + i * outputs, outputs, size_,
                               sums_.add(window.context[i], static_cast<std::uint32_t>(outputs)));
        for (std::size_t q = 0; q < outputs; ++q)
            rows_.add_weighted(
                context_.data(), by_output_.data() + q * m, m, size_,
                sums_.add(output_row(window.outputs[q]), static_cast<std::uint32_t>(m)));
    }

    void take_cbow(const TrainingWindow& window, float rate) {
        const std::size_t m = context_.size(), outputs = outputs_.size();
        by_context_.assign(std::max(m, outputs), 1.0f);
        rows_.weighted_sum(context_.data(), by_context_.data(), m, size_, mean_.data());
        const float share = 1 / static_cast<float>(m);
        for (float& element : mean_) element *= share;
        for (std::size_t q = 0; q < outputs; ++q) by_context_[q] = step_of(mean_.data(), q, rate);
        count_.steps += outputs;
        shared_.assign(size_, 0);
        rows_.add_weighted(outputs_.data(), by_context_.data(), outputs, size_, shared_.data());
        for (const std::uint32_t word : window.context) {
            std::int32_t* const sum = sums_.add(word, 1);
            for (std::size_t e = 0; e < size_; ++e)
                sum[e] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[e]) +
                                                   static_cast<std::uint32_t>(shared_[e]));
        }
        const float* const mean = mean_.data();
        for (std::size_t q = 0; q < outputs; ++q)
            rows_.add_weighted(&mean, &by_context_[q], 1, size_,
                               sums_.add(output_row(window.outputs[q]), 1));
    }

    std::uint32_t output_row(std::uint32_t word) const {
        return static_cast<std::uint32_t>(words_) + word;
    }

    const TrainerParameters& parameters_;
    const std::size_t words_, size_;
    const LaneSum dot_;
    const RowFunctions rows_;
    StepSums sums_;
    TrainingWindow ahead_[kAhead];
    std::vector<const float*> context_, outputs_;
    std::vector<float> by_context_, by_output_, mean_;
    std::vector<std::int32_t> shared_, row_sum_;
    TrainingCount count_;
    LossSum loss_;
};

class CpuWordTrainer final : public WordTrainer {
public:
    CpuWordTrainer(const TrainerParameters& parameters, const WordSampling& sampling,
                   const TokenStream& tokens, Simd simd)
        : parameters_(parameters),
          sampling_(sampling),
          tokens_(tokens),
          simd_(simd),
          words_(sampling.keep.size()),
          size_((parameters.dimensions + kRowUnit - 1) / kRowUnit * kRowUnit) {}

    Status load(const TrainingModel& model) override {
        copy_in(model.vectors, model_.vectors);
        copy_in(model.outputs, model_.outputs);
        return {};
    }

    Status train(const TrainingPart& part, Execution& execution, TrainingCount& count) override {
        GPUTEXT_TRY(find_entries(part, execution));
        const TrainingSteps steps(entries_.size(), parameters_.batch);
        const auto range = replica_range(parameters_, tokens_.words.size(), part.replica);
        const std::size_t begin = steps.begin(part.part, part.parts);
        const std::size_t end = steps.begin(part.part + 1, part.parts);
        const std::size_t tokens = range.end - range.first;
        const std::size_t first_token = tokens * part.part / part.parts;
        const std::size_t part_tokens = tokens * (part.part + 1) / part.parts - first_token;
        if (begin == end) {
            count.tokens += part_tokens;
            return execution.checkpoint(part_tokens);
        }
        return run_steps(part, steps, begin, end, part_tokens, execution, count);
    }

    Status store(TrainingModel& model) override {
        copy_out(model_.vectors, model.vectors);
        copy_out(model_.outputs, model.outputs);
        return {};
    }

private:
    void copy_in(const std::vector<float>& from, Rows& to) const {
        to.resize(words_, size_);
        for (std::size_t word = 0; word < words_; ++word)
            std::copy_n(from.data() + word * parameters_.dimensions, parameters_.dimensions,
                        to[word]);
    }
    void copy_out(const Rows& from, std::vector<float>& to) const {
        to.resize(words_ * parameters_.dimensions);
        for (std::size_t word = 0; word < words_; ++word)
            std::copy_n(from[word], parameters_.dimensions,
                        to.data() + word * parameters_.dimensions);
    }

    /// Finds a part's entries. All parts of a replica share the entries of an epoch.
    Status find_entries(const TrainingPart& part, Execution& execution) {
        if (found_ && found_replica_ == part.replica && found_epoch_ == part.epoch) return {};
        found_ = false;
        GPUTEXT_TRY(training_entries(parameters_, sampling_, tokens_, part.replica, part.epoch,
                                     execution, entries_));
        found_ = true;
        found_replica_ = part.replica;
        found_epoch_ = part.epoch;
        return {};
    }

    Status run_steps(const TrainingPart& part, const TrainingSteps& steps, std::size_t begin,
                     std::size_t end, std::size_t part_tokens, Execution& execution,
                     TrainingCount& count);
    void take_sums(unsigned owner, float rate);

    const TrainerParameters parameters_;
    const WordSampling sampling_;
    const TokenStream tokens_;
    const Simd simd_;
    const std::size_t words_, size_;
    Model model_;
    bool found_ = false;
    std::uint32_t found_replica_ = 0, found_epoch_ = 0;
    std::vector<std::uint32_t> entries_;
    std::vector<std::unique_ptr<WindowSteps>> workers_;
};

/// Adds up the rows that an owner has from all threads, and applies them. Another thread's sum of a
/// row that this one has met is added to it where it was met first.
void CpuWordTrainer::take_sums(unsigned owner, float rate) {
    const RowFunctions rows = row_functions(simd_);
    const float damping = rate * parameters_.damping;
    std::vector<std::int32_t>& sum = workers_[owner]->row_sum();
    for (std::size_t first = 0; first < workers_.size(); ++first) {
        const StepSums& own = workers_[first]->sums();
        for (const std::uint32_t row : own.rows_of(owner)) {
            const auto met = [&](std::size_t w) { return workers_[w]->sums().has(row); };
            bool earlier = false;
            for (std::size_t w = 0; w < first && !earlier; ++w) earlier = met(w);
            if (earlier) continue;
            std::uint32_t count = own.count(row);
            const std::int32_t* total = own.sum(row);
            for (std::size_t w = first + 1; w < workers_.size(); ++w) {
                if (!met(w)) continue;
                const StepSums& other = workers_[w]->sums();
                count += other.count(row);
                const std::int32_t* const more = other.sum(row);
                for (std::size_t e = 0; e < size_; ++e)
                    sum[e] = static_cast<std::int32_t>(static_cast<std::uint32_t>(total[e]) +
                                                       static_cast<std::uint32_t>(more[e]));
                total = sum.data();
            }
            const float quotient = 1 / std::fma(damping, static_cast<float>(count), 1.0f);
            rows.take_steps(total, quotient, size_,
                            row < words_ ? model_.vectors[row] : model_.outputs[row - words_]);
        }
    }
}

Status CpuWordTrainer::run_steps(const TrainingPart& part, const TrainingSteps& steps,
                                 std::size_t begin, std::size_t end, std::size_t part_tokens,
                                 Execution& execution, TrainingCount& count) {
    const TrainingWindows windows(parameters_, sampling_, entries_, part.farthest, part.replica,
                                  part.epoch);
    const std::size_t streams = std::min(steps.streams, entries_.size());
    Team team(trainer_threads(streams, execution.threads()));
    const unsigned threads = team.size();
    workers_.clear();
    for (unsigned i = 0; i < threads; ++i)
        workers_.push_back(
            std::make_unique<WindowSteps>(parameters_, words_, size_, threads, simd_));

    std::barrier together(static_cast<std::ptrdiff_t>(threads));
    bool stopped = false;  // written by the first thread between barriers
    std::atomic<bool> failed{false};
    const auto attempt = [&failed](auto part_of_step) {
        try {
            part_of_step();
        } catch (const std::bad_alloc&) {
            failed = true;
        }
    };
    std::uint64_t advanced = 0;
    TrainingCount shown;
    team.run([&](unsigned thread) {
        WindowSteps& worker = *workers_[thread];
        for (std::size_t step = begin; step < end; ++step) {
            const float rate = step_rate(parameters_, part.epoch, step, steps.length);
            attempt([&] {
                worker.run(windows, steps, step, entries_.size(), streams * thread / threads,
                           streams * (thread + 1) / threads, rate, model_, execution);
            });
            together.arrive_and_wait();
            if (failed) return;
            take_sums(thread, rate);
            if (thread == 0) {
                const std::uint64_t done = part_tokens * (step + 1 - begin) / (end - begin);
                stopped = !execution.checkpoint(done - advanced).ok();
                advanced = done;
                worker.show_loss(shown, part.epoch, execution);
            }
            together.arrive_and_wait();
            worker.sums().clear();
            if (stopped) return;
        }
    });
    for (const auto& worker : workers_) count.add(worker->count());
    count.tokens += advanced;
    if (failed) return Status::out_of_memory();
    return stopped ? Status::cancelled() : Status();
}

}  // namespace

unsigned trainer_threads(std::size_t windows, unsigned threads) {
    return static_cast<unsigned>(std::clamp<std::size_t>(windows / kWindowsOfThread, 1, threads));
}

Result<std::unique_ptr<WordTrainer>> cpu_word_trainer(const TrainerParameters& parameters,
                                                      const WordSampling& sampling,
                                                      const TokenStream& tokens, Simd simd) {
    for (const std::uint32_t word : tokens.words)
        if (word >= sampling.keep.size())
            return Status(ErrorCode::invalid_argument, "a token is not in the vocabulary");
    return std::unique_ptr<WordTrainer>(
        std::make_unique<CpuWordTrainer>(parameters, sampling, tokens, simd));
}

}  // namespace gputext
