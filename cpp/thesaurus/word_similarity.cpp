#include "cpp/thesaurus/word_similarity.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "cpp/thesaurus/detail/feature_sums.hpp"

namespace gputext {
namespace {

// ---- Lists of the most similar words found so far, filled by any thread ----

struct SimilarWord {
    double similarity;
    std::uint32_t word;

    /// By (similarity descending, number ascending): the better one first.
    bool operator<(const SimilarWord& other) const {
        return similarity != other.similarity ? similarity > other.similarity : word < other.word;
    }
};

/// Which words are kept does not depend on the order in which they are offered. A list takes some
/// more than k before it leaves out the worst, so that most of the time a word is only written
/// behind the others: what is there before is in no near cache.
class SimilarLists {
public:
    static std::size_t bytes_of_list(std::size_t k) {
        return capacity(k) * sizeof(SimilarWord) + sizeof(List);
    }

    /// `gate(similarity)` is what similarities at least as high are recognised by
    /// (cpp/thesaurus/detail/feature_sums.hpp); `open` the gate of lists that have fewer than k.
    SimilarLists(std::size_t lists, std::size_t k, float open)
        : k_(k),
          capacity_(capacity(k)),
          words_(std::make_unique_for_overwrite<SimilarWord[]>(lists * capacity_)),
          lists_(lists) {
        for (List& list : lists_) list.gate.store(open, std::memory_order_relaxed);
    }

    float gate(std::size_t list) const { return lists_[list].gate.load(std::memory_order_relaxed); }

    /// A word that passes the list's gate, and has not been offered to it. Returns the gate from
    /// now on. Amortised O(1) time.
    template <class Gate>
    float offer(std::size_t number, SimilarWord word, Gate&& gate) {
        List& list = lists_[number];
        while (list.lock.exchange(1, std::memory_order_acquire) != 0) {
        }
        SimilarWord* const begin = words_.get() + number * capacity_;
        begin[list.size++] = word;
        if (list.size == capacity_) {
            list.size = static_cast<std::uint32_t>(prune(begin));
            list.gate.store(gate(least_of(begin, list.size)), std::memory_order_relaxed);
        } else if (list.size == k_) {
            list.gate.store(gate(least_of(begin, list.size)), std::memory_order_relaxed);
        }
        const float now = this->gate(number);
        list.lock.store(0, std::memory_order_release);
        return now;
    }

    /// When nothing is offered any more: leaves the k best, the best first.
    void sort(std::size_t number) {
        SimilarWord* const begin = words_.get() + number * capacity_;
        std::sort(begin, begin + lists_[number].size);
        lists_[number].size = std::min(lists_[number].size, static_cast<std::uint32_t>(k_));
    }
    const SimilarWord* list(std::size_t number) const { return words_.get() + number * capacity_; }
    std::size_t size(std::size_t number) const { return lists_[number].size; }

private:
    struct List {
        std::atomic<float> gate;
        std::uint32_t size = 0;
        std::atomic<std::uint32_t> lock = 0;
    };

    static std::size_t capacity(std::size_t k) { return k + std::max<std::size_t>(16, k / 2); }

    static double least_of(const SimilarWord* words, std::size_t size) {
        double least = words[0].similarity;
        for (std::size_t i = 1; i < size; ++i) least = std::min(least, words[i].similarity);
        return least;
    }

    /// Leaves the k best of a full list, or some more: those above a boundary of a histogram, which
    /// is found without comparing them with each other. Returns how many.
    std::size_t prune(SimilarWord* words) const {
        double least = words[0].similarity, most = least;
        for (std::size_t i = 1; i < capacity_; ++i) {
            least = std::min(least, words[i].similarity);
            most = std::max(most, words[i].similarity);
        }
        constexpr int kBuckets = 128;
        std::uint32_t sizes[kBuckets + 1] = {};
        const double scale = most > least ? kBuckets / (most - least) : 0;
        const auto bucket = [&](double similarity) {
            return static_cast<int>((similarity - least) * scale);
        };
        for (std::size_t i = 0; i < capacity_; ++i) ++sizes[bucket(words[i].similarity)];
        int boundary = kBuckets;
        for (std::size_t above = sizes[boundary]; above < k_; above += sizes[boundary]) --boundary;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < capacity_; ++i) {
            const SimilarWord word = words[i];
            words[kept] = word;
            kept += bucket(word.similarity) >= boundary;
        }
        if (kept <= k_ + (capacity_ - k_) / 4) return kept;
        std::nth_element(words, words + (k_ - 1), words + kept);
        return k_;
    }

    std::size_t k_, capacity_;
    std::unique_ptr<SimilarWord[]> words_;
    std::vector<List> lists_;
};

// ---- Comparing words ----

/// Words that a thread compares with a tile at a time, each block of the tile with all of them.
constexpr std::size_t kRowsOfTask = 128;
constexpr std::size_t kTasksOfThread = 4;

/// The smallest tile and lists, even if the memory limit is below them.
constexpr std::uint32_t kLeastWords = 256, kLeastLists = 64;

/// Words whose sums are looked at at once.
constexpr std::uint32_t kPassing = 64;

/// A gate of lists that are not full: any sum above 0 passes it.
constexpr float kOpen = 1e-35f;
constexpr float kShut = std::numeric_limits<float>::infinity();

Status invalid(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

/// What a measure needs to know of each word.
std::uint64_t sum_of_row(WordMeasure measure, const WordFeatures& features, std::uint32_t word) {
    const std::uint64_t begin = features.begins[word], end = features.begins[word + 1];
    if (measure == WordMeasure::jaccard) return end - begin;
    std::uint64_t sum = 0;
    for (auto i = begin; i < end; ++i) {
        const std::uint64_t weight = features.weights[i];
        sum += measure == WordMeasure::lin ? weight : weight * weight;
    }
    return sum;
}

/// Similarity from the shared sum and each word's own; all are above 0 and below 2^53.
double similarity(WordMeasure measure, double shared, std::uint64_t a, std::uint64_t b) {
    if (measure == WordMeasure::lin) return shared / static_cast<double>(a + b);
    if (measure == WordMeasure::jaccard) return shared / (static_cast<double>(a + b) - shared);
    return shared / std::sqrt(static_cast<double>(a) * static_cast<double>(b));
}

Status check(const SimilarityParameters& parameters, const WordFeatures& features) {
    if (parameters.top_k < 1) return invalid("top_k must be at least 1");
    GPUTEXT_TRY(check_shape(features.shape));
    if (features.begins.size() != std::size_t{features.shape.words} + 1 ||
        features.begins.front() != 0 || features.begins.back() != features.columns.size() ||
        features.weights.size() != features.columns.size())
        return invalid("there must be a row of features for each word");
    return {};
}

class SimilaritySearch {
public:
    SimilaritySearch(const SimilarityParameters& parameters, const WordFeatures& features,
                     Execution& execution)
        : parameters_(parameters), features_(features), execution_(execution) {}

    Status run(Thesaurus& answer) {
        GPUTEXT_TRY(add_up());
        const std::uint32_t words = features_.shape.words;
        if (!stoppable_assign(answer.begins, std::size_t{words} + 1, std::uint64_t{0},
                              execution_.stop()))
            return Status::cancelled();
        const std::uint32_t end = std::min(parameters_.end, words);
        const std::uint32_t first = std::min(parameters_.first, end);
        if (words < 2) return {};
        k_ = std::min(parameters_.top_k, words - 1);
        const std::size_t lists = std::max<std::size_t>(
            kLeastLists, parameters_.memory_limit / 2 / SimilarLists::bytes_of_list(k_));
        for (std::uint64_t row = first; row < end; row += lists) {
            rows_begin_ = static_cast<std::uint32_t>(row);
            rows_end_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, row + lists));
            GPUTEXT_TRY(parameters_.measure == WordMeasure::cosine ? find_by<Products>()
                        : sums_fit_32_bits_                        ? find_by<Pairs>()
                                                                   : find_by<WidePairs>());
            GPUTEXT_TRY(append(answer));
        }
        for (std::size_t word = 0; word < words; ++word)
            answer.begins[word + 1] += answer.begins[word];
        return {};
    }

private:
    // How features that are shared are added up.
    struct Pairs {
        using Sum = std::uint32_t;
        static constexpr bool products = false;
        static SumKernels<Sum> kernels(Simd simd) { return pair_kernels(simd); }
        static Sum both(std::uint32_t a, std::uint32_t b) { return a + b; }
    };
    struct WidePairs {
        using Sum = double;
        static constexpr bool products = false;
        static SumKernels<Sum> kernels(Simd simd) {
            SumKernels<Sum> kernels = product_kernels(simd);
            kernels.dense_part = 0;  // there are no wide cells
            return kernels;
        }
        static Sum both(std::uint32_t a, std::uint32_t b) { return a + b; }
    };
    struct Products {
        using Sum = double;
        static constexpr bool products = true;
        static SumKernels<Sum> kernels(Simd simd) { return product_kernels(simd); }
        static Sum both(std::uint32_t a, std::uint32_t b) {
            return static_cast<double>(std::uint64_t{a} * b);
        }
    };

    template <class Adding>
    struct Scratch {
        std::unique_ptr<typename Adding::Sum[]> sums;  // of each row of a task with the tile
        std::vector<DenseTerm> terms;                  // of these rows
        std::size_t term_ends[kRowsOfTask];
        std::vector<float> gates;  // of the tile
    };

    /// What each word's features add up to.
    Status add_up() {
        const std::uint32_t words = features_.shape.words;
        if (!stoppable_assign(sums_, words, std::uint64_t{0}, execution_.stop()) ||
            !stoppable_assign(sizes_, std::size_t{words} + kPassing, 0.0f, execution_.stop()))
            return Status::cancelled();
        constexpr std::uint32_t step = 256;
        const std::size_t tasks = (words + step - 1) / step;
        execution_.begin_phase("adding up weights", tasks);
        Status status = execution_.parallel_for(tasks, [&](std::size_t task, unsigned) {
            const auto first = static_cast<std::uint32_t>(task * step);
            for (std::uint32_t word = first; word < std::min(words, first + step); ++word) {
                if (execution_.stop_requested()) return Status::cancelled();
                const std::uint64_t sum = sum_of_row(parameters_.measure, features_, word);
                // With weights below 2^16 and fewer than 2^32 features only squares can overflow.
                if (sum >> 53 != 0)
                    return invalid("the squares of a word's weights add up to more than 2^53");
                sums_[word] = sum;
                sizes_[word] = parameters_.measure == WordMeasure::cosine
                                   ? static_cast<float>(std::sqrt(static_cast<double>(sum)))
                                   : static_cast<float>(sum);
            }
            return Status();
        });
        if (!status.ok()) return status;
        std::uint64_t largest = 0, second = 0;
        for (const std::uint64_t sum : sums_)
            if (sum > second) {
                second = std::min(sum, largest);
                largest = std::max(sum, largest);
            }
        // Two words share at most this much.
        sums_fit_32_bits_ = (largest + second) >> 32 == 0;
        return {};
    }

    /// What cpp/thesaurus/detail/feature_sums.hpp compares sums with. Floats are off by less than
    /// the last factor.
    float gate_of(double similarity) const {
        // With jaccard, sums add up pairs of ones: twice the number of shared features.
        const double gate = parameters_.measure == WordMeasure::jaccard
                                ? 2 * similarity / (1 + similarity)
                                : similarity;
        return std::max(kOpen, static_cast<float>(gate * (1 - 0x1p-19)));
    }

    template <class Adding>
    Status find_by() {
        const auto kernels = Adding::kernels(parameters_.simd);
        lists_ = std::make_unique<SimilarLists>(rows_end_ - rows_begin_, k_, kOpen);
        const unsigned threads = execution_.threads();
        std::vector<std::unique_ptr<Scratch<Adding>>> scratch(threads);
        // Half of the memory that lists leave is for the threads' scratch, half for a tile.
        const std::size_t memory = parameters_.memory_limit / 8;
        const std::size_t fitting =
            memory / threads / (kRowsOfTask * (sizeof(typename Adding::Sum) + 4));
        const auto most = static_cast<std::uint32_t>(
            std::clamp<std::size_t>(fitting, kLeastWords, WordTile::kMostWords));

        const WordTile::Choice choice{Adding::products, parameters_.measure == WordMeasure::jaccard,
                                      kernels.dense_part, memory};
        for (std::uint32_t begin = 0; begin < features_.shape.words;) {
            const std::uint32_t end = tile_end(begin, most);
            const bool among_rows = begin >= rows_begin_ && begin < rows_end_;
            GPUTEXT_TRY(tile_.build(features_, choice, begin, end, execution_));
            const std::uint32_t first = among_rows ? begin + 1 : rows_begin_;
            const std::size_t rows = rows_end_ - std::min(first, rows_end_);
            const std::size_t each =
                std::clamp<std::size_t>(rows / (kTasksOfThread * threads), 1, kRowsOfTask);
            const std::size_t tasks = (rows + each - 1) / each;
            execution_.begin_phase("comparing words", tasks);
            GPUTEXT_TRY(execution_.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
                if (!scratch[worker]) scratch[worker] = make_scratch<Adding>(most);
                const auto from = static_cast<std::uint32_t>(first + task * each);
                const auto to =
                    static_cast<std::uint32_t>(std::min<std::size_t>(rows_end_, from + each));
                return compare<Adding>(kernels, from, to, *scratch[worker]);
            }));
            begin = end;
        }
        return {};
    }

    template <class Adding>
    static std::unique_ptr<Scratch<Adding>> make_scratch(std::size_t tile_words) {
        auto scratch = std::make_unique<Scratch<Adding>>();
        const std::size_t words = (tile_words + kBlockWords - 1) / kBlockWords * kBlockWords;
        scratch->sums = std::make_unique_for_overwrite<typename Adding::Sum[]>(kRowsOfTask * words);
        scratch->gates.resize(words);
        return scratch;
    }

    /// End of the tile that begins there. A tile has either only rows, or none.
    std::uint32_t tile_end(std::uint32_t begin, std::uint32_t most) const {
        const std::uint32_t border = begin < rows_begin_ ? rows_begin_
                                     : begin < rows_end_ ? rows_end_
                                                         : features_.shape.words;
        const std::uint64_t postings = parameters_.memory_limit / 8 / sizeof(std::uint32_t);
        std::uint32_t end = begin + 1;
        while (end < border && end - begin < most) {
            const std::uint64_t with = features_.begins[end + 1] - features_.begins[begin];
            if (with > UINT32_MAX || (with > postings && end - begin >= kLeastWords)) break;
            ++end;
        }
        return end;
    }

    template <class Adding>
    Status compare(const SumKernels<typename Adding::Sum>& kernels, std::uint32_t from,
                   std::uint32_t to, Scratch<Adding>& scratch) {
        const std::size_t words = (tile_.size() + kBlockWords - 1) / kBlockWords * kBlockWords;
        const bool among_rows = tile_.begin() >= rows_begin_ && tile_.begin() < rows_end_;
        // A row is compared only with words before it.
        const auto words_of = [&](std::uint32_t row) {
            return among_rows ? std::min(tile_.size(), row - tile_.begin()) : tile_.size();
        };
        for (std::uint32_t i = 0; i < tile_.size(); ++i)
            scratch.gates[i] = among_rows ? lists_->gate(tile_.begin() + i - rows_begin_) : kShut;
        std::fill(scratch.gates.begin() + tile_.size(), scratch.gates.end(), kShut);

        if (tile_.any_dense()) {
            find_dense<Adding>(from, to, scratch);
            for (std::size_t block = 0; block * kBlockWords < words; ++block) {
                if (execution_.stop_requested()) return Status::cancelled();
                for (std::uint32_t row = from; row < to; ++row) {
                    if (block * kBlockWords >= words_of(row)) continue;
                    const std::size_t begin = row == from ? 0 : scratch.term_ends[row - from - 1];
                    kernels.add_dense(
                        tile_.block(block), scratch.terms.data() + begin,
                        scratch.term_ends[row - from] - begin,
                        scratch.sums.get() + (row - from) * words + block * kBlockWords);
                }
            }
        } else {
            std::fill_n(scratch.sums.get(), (to - from) * words, typename Adding::Sum{0});
        }
        for (std::uint32_t row = from; row < to; ++row) {
            typename Adding::Sum* const sums = scratch.sums.get() + (row - from) * words;
            GPUTEXT_TRY(add_lists<Adding>(row, sums));
            offer<Adding>(kernels, row, words_of(row), sums, scratch.gates);
        }
        return {};
    }

    /// The dense features of some rows.
    template <class Adding>
    void find_dense(std::uint32_t from, std::uint32_t to, Scratch<Adding>& scratch) const {
        scratch.terms.clear();
        for (std::uint32_t row = from; row < to; ++row) {
            for (auto i = features_.begins[row]; i < features_.begins[row + 1]; ++i) {
                const WordTile::Dense* const dense = tile_.dense(features_.columns[i]);
                if (dense == nullptr) continue;
                const std::uint32_t weight = weight_of<Adding>(i);
                if constexpr (Adding::products) {
                    scratch.terms.push_back({dense->first, weight});
                } else {
                    std::uint32_t part = std::min(weight, kMostPairWeight);
                    scratch.terms.push_back({dense->first, pair_factor(true, part)});
                    for (std::uint32_t left = weight - part; left > 0; left -= part) {
                        part = std::min(left, kMostPairWeight);
                        scratch.terms.push_back({dense->first, pair_factor(false, part)});
                    }
                    for (std::uint32_t c = 1; c < dense->columns; ++c)
                        scratch.terms.push_back({dense->first + c, pair_factor(true, 0)});
                }
            }
            scratch.term_ends[row - from] = scratch.terms.size();
        }
    }

    template <class Adding>
    std::uint32_t weight_of(std::uint64_t i) const {
        if constexpr (Adding::products) return features_.weights[i];
        return parameters_.measure == WordMeasure::jaccard ? 1 : features_.weights[i];
    }

    /// Adds what the row shares with the tile's words of features that are not dense.
    template <class Adding>
    Status add_lists(std::uint32_t row, typename Adding::Sum* sums) const {
        const std::uint64_t end = features_.begins[row + 1];
        const std::uint32_t* const columns = features_.columns.data();
        std::size_t since_look = 0;
        constexpr std::uint64_t ahead = 8;
        for (std::uint64_t i = features_.begins[row]; i < end; ++i) {
            if (i + ahead < end) tile_.prefetch(columns[i + ahead]);
            const auto list = tile_.list(columns[i]);
            const std::uint32_t weight = weight_of<Adding>(i);
            for (const std::uint32_t posting : list)
                sums[posting & 0xffff] += Adding::both(weight, posting >> 16);
            since_look += list.size() + 1;
            if (since_look < kLookEvery) continue;
            since_look = 0;
            if (execution_.stop_requested()) return Status::cancelled();
        }
        return execution_.stop_requested() ? Status::cancelled() : Status();
    }

    /// Offers the row to the tile's first words, and them to it.
    template <class Adding>
    void offer(const SumKernels<typename Adding::Sum>& kernels, std::uint32_t row,
               std::uint32_t words, const typename Adding::Sum* sums, std::vector<float>& gates) {
        const auto passing = Adding::products ? kernels.passing_product : kernels.passing_sum;
        const auto gate = [this](double similarity) { return gate_of(similarity); };
        float row_gate = lists_->gate(row - rows_begin_);
        for (std::uint32_t first = 0; first < words; first += kPassing) {
            std::uint64_t bits = passing(sums + first, sizes_.data() + tile_.begin() + first,
                                         gates.data() + first, sizes_[row], row_gate);
            if (words - first < kPassing) bits &= (std::uint64_t{1} << (words - first)) - 1;
            for (; bits != 0; bits &= bits - 1) {
                const auto i = first + static_cast<std::uint32_t>(std::countr_zero(bits));
                if (sums[i] == 0) continue;
                const std::uint32_t other = tile_.begin() + i;
                auto shared = static_cast<double>(sums[i]);
                if (parameters_.measure == WordMeasure::jaccard) shared /= 2;
                const double value =
                    similarity(parameters_.measure, shared, sums_[row], sums_[other]);
                // Which of the two gates it passed.
                const float size = sizes_[other];
                const float sum = static_cast<float>(sums[i]);
                const float both = Adding::products ? size * sizes_[row] : size + sizes_[row];
                if (sum >= row_gate * both)
                    row_gate = lists_->offer(row - rows_begin_, {value, other}, gate);
                if (sum >= gates[i] * both)
                    gates[i] = lists_->offer(other - rows_begin_, {value, row}, gate);
            }
        }
    }

    /// The rows' lists.
    Status append(Thesaurus& answer) {
        const std::size_t rows = rows_end_ - rows_begin_;
        constexpr std::size_t step = 256;
        const std::size_t tasks = (rows + step - 1) / step;
        execution_.begin_phase("sorting lists", tasks);
        GPUTEXT_TRY(execution_.parallel_for(tasks, [&](std::size_t task, unsigned) {
            for (std::size_t row = task * step; row < std::min(rows, (task + 1) * step); ++row) {
                if (execution_.stop_requested()) return Status::cancelled();
                lists_->sort(row);
            }
            return Status();
        }));
        std::size_t size = answer.neighbors.size();
        for (std::size_t row = 0; row < rows; ++row) size += lists_->size(row);
        if (answer.neighbors.capacity() < size) {
            answer.neighbors.reserve(std::max(size, 2 * answer.neighbors.size()));
            answer.similarities.reserve(std::max(size, 2 * answer.similarities.size()));
        }
        for (std::size_t row = 0; row < rows; ++row) {
            if (row % step == 0 && execution_.stop_requested()) return Status::cancelled();
            const SimilarWord* const list = lists_->list(row);
            for (std::size_t i = 0; i < lists_->size(row); ++i) {
                answer.neighbors.push_back(list[i].word);
                answer.similarities.push_back(list[i].similarity);
            }
            answer.begins[rows_begin_ + row + 1] = lists_->size(row);
        }
        return {};
    }

    const SimilarityParameters parameters_;
    const WordFeatures& features_;
    Execution& execution_;
    std::uint32_t k_ = 1;
    std::vector<std::uint64_t> sums_;  // by word
    std::vector<float> sizes_;         // their sums or, of products, roots; some more behind
    bool sums_fit_32_bits_ = false;
    std::uint32_t rows_begin_ = 0, rows_end_ = 0;
    std::unique_ptr<SimilarLists> lists_;
    WordTile tile_;
};

}  // namespace

Result<Thesaurus> word_similarities(const SimilarityParameters& parameters,
                                    const WordFeatures& features, Execution& execution) try {
    GPUTEXT_TRY(check(parameters, features));
    Thesaurus answer;
    GPUTEXT_TRY(SimilaritySearch(parameters, features, execution).run(answer));
    return answer;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

std::uint64_t similarity_bytes(const SimilarityParameters& parameters,
                               const CooccurrenceShape& shape, std::uint64_t stored) {
    const std::uint64_t words = shape.words;
    const std::uint64_t end = std::min<std::uint64_t>(parameters.end, words);
    const std::uint64_t rows = end - std::min<std::uint64_t>(parameters.first, end);
    const std::uint64_t k = std::min<std::uint64_t>(parameters.top_k, words);
    const std::uint64_t lists = rows * SimilarLists::bytes_of_list(k);
    const std::uint64_t half = parameters.memory_limit / 2;
    return 12 * rows * k + 20 * words + 6 * shape.columns() + std::min(lists, half) +
           std::min<std::uint64_t>(half, 64 * stored + (std::uint64_t{1} << 22));
}

}  // namespace gputext
