#include "cpp/terms/detail/inverted_index.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "cpp/base/stoppable.hpp"
#include "cpp/terms/detail/matrix.hpp"

namespace gputext {
namespace {

/// Bytes that a tile's part of the index should take.
constexpr std::size_t kTileBytes = std::size_t{1} << 21;
constexpr std::size_t kLeastTileRows = 1024;

/// Terms that at least one item of so many has are dense: about as many elements of a column are
/// added while one posting is.
constexpr std::size_t kDensePart = 16;

/// Terms of fewer postings a tile are rare: then looking up where a tile's postings begin would
/// take longer than adding them.
constexpr std::size_t kFrequentInTile = 2;

std::uint16_t dense_weight(double weight) {
    const double units = std::nearbyint(weight / InvertedIndex::dense_unit);
    return static_cast<std::uint16_t>(std::clamp(units, 1.0, 65535.0));
}

float stored_weight(double weight) {
    const auto rounded = static_cast<float>(weight);
    if (std::fabs(rounded) >= InvertedIndex::least_weight) return rounded;
    return std::copysign(InvertedIndex::least_weight, rounded);
}

/// Asks for a stop after about a millisecond's elements.
class Looker {
public:
    explicit Looker(Stop stop) : stop_(stop) {}
    bool stopped_after(std::size_t elements) {
        since_ += elements;
        if (since_ < kLookEvery / 8) return false;
        since_ = 0;
        return stop_();
    }

private:
    Stop stop_;
    std::size_t since_ = 0;
};

}  // namespace

Status InvertedIndex::build(const Vectors& items, const TermMatrix& weights,
                            std::span<const std::uint32_t> rows, bool negative,
                            std::size_t dense_memory, Execution& execution) {
    std::size_t stored = 0;
    for (const std::uint32_t row : rows) stored += items.stored(row);
    GPUTEXT_TRY(weigh(weights, rows, execution));
    choose_tiles(stored);

    execution.begin_phase("counting terms", rows.size());
    auto frequencies = column_counts(items, rows, execution);
    if (!frequencies.ok()) return frequencies.status();
    place_terms(*frequencies, weights.factors(), negative, dense_memory);
    postings_ = std::make_unique_for_overwrite<Posting[]>(rare_begins_.back());
    rare_ends_.assign(rare_begins_.begin(), rare_begins_.end() - 1);

    execution.begin_phase("indexing items", tiles());
    GPUTEXT_TRY(execution.parallel_for(tiles(), [&](std::size_t tile, unsigned) {
        return fill_tile(weights, rows, tile, execution.stop());
    }));
    return sort_rare(execution);
}

Status InvertedIndex::weigh(const TermMatrix& weights, std::span<const std::uint32_t> rows,
                            Execution& execution) {
    constexpr std::size_t step = 1024;
    if (!stoppable_assign(squares_, rows.size(), 0.0, execution.stop())) return Status::cancelled();
    const std::size_t tasks = (rows.size() + step - 1) / step;
    execution.begin_phase("weighing items", tasks);
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        Looker looker(execution.stop());
        for (std::size_t p = task * step; p < std::min(rows.size(), (task + 1) * step); ++p) {
            squares_[p] = weights.square(rows[p]);
            if (looker.stopped_after(weights.stored(rows[p]))) return Status::cancelled();
        }
        return Status();
    }));
    if (metric_ == Metric::inner_product && !rows.empty())
        std::fill(squares_.begin(), squares_.end(),
                  double{*std::max_element(squares_.begin(), squares_.end())});
    return {};
}

void InvertedIndex::choose_tiles(std::size_t stored) {
    const std::size_t bytes = 6 * stored / std::max<std::size_t>(1, size()) + 1;
    tile_rows_ = std::bit_floor(std::clamp(kTileBytes / bytes, kLeastTileRows, most_tile_rows));
    tile_rows_ = std::min(tile_rows_, std::bit_ceil(std::max(size(), row_step)));
    tiles_ = std::vector<Tile>((size() + tile_rows_ - 1) / tile_rows_);
}

void InvertedIndex::place_terms(std::vector<std::uint32_t>& frequencies,
                                std::span<const double> factors, bool negative,
                                std::size_t dense_memory) {
    for (std::size_t term = 0; term < factors.size(); ++term)
        if (factors[term] == 0) frequencies[term] = 0;

    // The most frequent ones of the dense terms that there is memory for.
    std::vector<std::uint32_t> dense;
    for (std::uint32_t term = 0; term < factors.size() && !negative; ++term)
        if (frequencies[term] > 0 && frequencies[term] >= size() / kDensePart)
            dense.push_back(term);
    const std::size_t most = dense_memory / (sizeof(std::uint16_t) * tile_rows_ * tiles() + 1);
    if (dense.size() > most) {
        const auto more = [&](std::uint32_t a, std::uint32_t b) {
            return frequencies[a] != frequencies[b] ? frequencies[a] > frequencies[b] : a < b;
        };
        const auto end = dense.begin() + static_cast<std::ptrdiff_t>(most);
        std::nth_element(dense.begin(), end, dense.end(), more);
        dense.erase(end, dense.end());
    }
    slots_.assign(factors.size(), kNoSlot);
    dense_ = 0;
    for (const std::uint32_t term : dense) slots_[term] = dense_++;

    const auto without_slot = [&](std::size_t term) {
        return frequencies[term] > 0 && slots_[term] == kNoSlot;
    };
    const std::size_t least = kFrequentInTile * tiles();
    frequent_ = 0;
    for (std::size_t term = 0; term < factors.size(); ++term)
        if (without_slot(term) && frequencies[term] >= least) slots_[term] = dense_ + frequent_++;
    rare_begins_.assign(1, 0);
    for (std::size_t term = 0; term < factors.size(); ++term) {
        if (!without_slot(term)) continue;
        slots_[term] = static_cast<std::uint32_t>(dense_ + frequent_ + rare_begins_.size() - 1);
        rare_begins_.push_back(rare_begins_.back() + frequencies[term]);
    }
}

Status InvertedIndex::fill_tile(const TermMatrix& weights, std::span<const std::uint32_t> rows,
                                std::size_t tile, Stop stop) {
    Tile& to = tiles_[tile];
    const std::size_t first = tile * tile_rows_, count = rows_of(tile);
    Looker looker(stop);

    to.begins.assign(frequent_ + 1, 0);
    for (std::size_t i = 0; i < count; ++i) {
        weights.each(rows[first + i], [&](std::uint32_t term, double) {
            const Place at = place(term);
            if (at.kind == Kind::frequent) ++to.begins[at.number + 1];
        });
        if (looker.stopped_after(weights.stored(rows[first + i]))) return Status::cancelled();
    }
    for (std::size_t i = 0; i < frequent_; ++i) to.begins[i + 1] += to.begins[i];

    to.rows = std::make_unique_for_overwrite<std::uint16_t[]>(to.begins.back());
    to.weights = std::make_unique_for_overwrite<float[]>(to.begins.back());
    to.columns = std::make_unique<std::uint16_t[]>(dense_ * tile_rows_);
    std::vector<std::uint32_t> next(to.begins.begin(), to.begins.end() - 1);
    for (std::size_t i = 0; i < count; ++i) {
        const double norm = std::sqrt(squares_[first + i]);
        weights.each(rows[first + i], [&](std::uint32_t term, double weight) {
            const Place at = place(term);
            if (at.kind == Kind::dense) {
                to.columns[at.number * tile_rows_ + i] = dense_weight(weight / norm);
            } else if (at.kind == Kind::frequent) {
                const std::uint32_t place = next[at.number]++;
                to.rows[place] = static_cast<std::uint16_t>(i);
                to.weights[place] = stored_weight(weight / norm);
            } else {
                const std::uint64_t place =
                    std::atomic_ref(rare_ends_[at.number]).fetch_add(1, std::memory_order_relaxed);
                postings_[place] = {static_cast<std::uint32_t>(first + i),
                                    stored_weight(weight / norm)};
            }
        });
        if (looker.stopped_after(weights.stored(rows[first + i]))) return Status::cancelled();
    }
    return {};
}

/// Tiles were filled in no particular order.
Status InvertedIndex::sort_rare(Execution& execution) {
    constexpr std::size_t step = 1024;
    const std::size_t lists = rare_begins_.size() - 1, tasks = (lists + step - 1) / step;
    execution.begin_phase("ordering rare terms", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        Looker looker(execution.stop());
        for (std::size_t i = task * step; i < std::min(lists, (task + 1) * step); ++i) {
            std::sort(postings_.get() + rare_begins_[i], postings_.get() + rare_ends_[i],
                      [](const Posting& a, const Posting& b) { return a.position < b.position; });
            if (looker.stopped_after(rare_ends_[i] - rare_begins_[i])) return Status::cancelled();
        }
        return Status();
    });
}

}  // namespace gputext
