#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/detail/distance_filter.hpp"
#include "cpp/knn/detail/filter_space.hpp"
#include "cpp/knn/detail/score_sample.hpp"
#include "cpp/knn/detail/searches.hpp"

namespace gputext {
namespace {

// ---- Rows as the filter reads them: converted, sorted by norm, in panels ----

/// Rows in the order of their norms, so that those of a tile have about the same: the bound of a
/// score depends on the norms, and a tile whose norms are far from a query's cannot hold anything
/// near it. Among equal norms the order is scrambled, as tables are often sorted by what matters.
template <class T>
class RowPanels {
public:
    /// Rows of which the filter reads panel after panel before it looks at a bound again.
    struct Tile {
        std::size_t begin_panel, end_panel;
        FilterRow bounds;  // of all its rows
    };

    /// Bytes that a row takes in panels of a shape.
    static std::size_t bytes_of_row(const PanelShape& shape, std::size_t dimensions) {
        return shape.padded(dimensions) * sizeof(PanelNumber<T>) + sizeof(ScoreOf<T>) +
               sizeof(std::uint32_t) + sizeof(FilterRow);
    }

    /// Packs the rows that `rows` names: positions of this class are in the order of norms, and
    /// entry() gives the index into `rows` back. Rows without neighbors under cosine are left out.
    /// O(elements) time. Error: cancelled.
    Status pack(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                std::span<const std::uint32_t> rows, const PanelShape& shape, Execution& execution);

    /// Makes tiles of so many panels, in place of as many as stay in a core's second cache.
    void set_tiles(std::size_t tile_panels);

    std::size_t size() const { return entries_.size(); }
    std::size_t panels() const { return (size() + shape_.rows - 1) / shape_.rows; }
    const PanelNumber<T>* panel(std::size_t panel) const {
        return elements_.data() + panel * panel_size_;
    }
    /// Offsets by position; NaN behind the last row.
    const ScoreOf<T>* offsets() const { return offsets_.data(); }
    std::uint32_t entry(std::size_t position) const { return entries_[position]; }
    const FilterRow& bounds(std::size_t position) const { return bounds_[position]; }
    std::span<const Tile> tiles() const { return tiles_; }
    /// Rows of a tile; the last tile may have fewer.
    std::size_t tile_rows() const { return tile_rows_; }
    std::size_t tile_of(std::size_t position) const { return position / tile_rows_; }

private:
    Status order(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                 std::span<const std::uint32_t> rows, Execution& execution);

    /// Numbers at a cache line's begin: vectors are loaded faster that lie in one line.
    template <class Number>
    class Lines {
    public:
        void set_size(std::size_t size) {
            lines_ = std::make_unique_for_overwrite<Line[]>((size + in_line - 1) / in_line);
        }
        Number* data() const { return reinterpret_cast<Number*>(lines_.get()); }

    private:
        static constexpr std::size_t in_line = 64 / sizeof(Number);
        struct alignas(64) Line {
            std::byte bytes[64];
        };
        std::unique_ptr<Line[]> lines_;
    };

    PanelShape shape_{1};
    std::size_t panel_size_ = 0, tile_rows_ = 1;
    Lines<PanelNumber<T>> elements_;
    Lines<ScoreOf<T>> offsets_;
    std::vector<std::uint32_t> entries_;
    std::vector<FilterRow> bounds_;
    std::vector<Tile> tiles_;
};

/// A tile stays in a core's second cache while panels of queries pass by.
constexpr std::size_t kTileBytes = std::size_t{256} << 10;

/// An odd number and its inverse modulo 2^32: multiplying by one scrambles numbers, by the other
/// one restores them.
constexpr std::uint32_t kScramble = 0x9e3779b1;
constexpr std::uint32_t inverse_of(std::uint32_t odd) {
    std::uint32_t inverse = odd;
    for (int i = 0; i < 4; ++i) inverse *= 2 - odd * inverse;
    return inverse;
}
static_assert(kScramble * inverse_of(kScramble) == 1);

/// A thread's scratch for the row that it converts.
template <class T>
struct Scratch {
    std::vector<double> row;
    std::vector<T> converted;  // one row, or a panel of them

    Scratch(std::size_t padded, std::size_t rows) : row(padded), converted(padded * rows) {}
};

template <class T>
FilterRow convert(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                  std::size_t row, std::vector<double>& scratch, T* out) {
    copy_elements(vectors, vectors.begin(row), vectors.dimensions, scratch.data());
    return space.convert(side, scratch.data(), out);
}

/// Fills entries_.
template <class T>
Status RowPanels<T>::order(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                           std::span<const std::uint32_t> rows, Execution& execution) {
    std::vector<std::uint64_t> keys(rows.size());
    std::vector<Scratch<T>> scratch(execution.threads(), Scratch<T>(space.padded(), 1));
    const std::size_t step = std::max<std::size_t>(1, (kLookEvery / 16) / vectors.dimensions);
    const std::size_t tasks = (rows.size() + step - 1) / step;
    execution.begin_phase("computing norms", tasks);
    constexpr std::uint64_t left_out = UINT64_MAX;
    Status status = execution.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
        auto& [row, converted] = scratch[worker];
        for (std::size_t i = task * step; i < std::min(rows.size(), (task + 1) * step); ++i) {
            const FilterRow bounds = convert(space, side, vectors, rows[i], row, converted.data());
            const auto norm = std::bit_cast<std::uint32_t>(static_cast<float>(bounds.norm));
            keys[i] = std::uint64_t{norm} << 32 | static_cast<std::uint32_t>(i) * kScramble;
            if (bounds.norm == 0 && space.zero_rows_left_out()) keys[i] = left_out;
        }
        return Status();
    });
    if (!status.ok()) return status;
    if (!radix_sort(keys, execution.stop())) return Status::cancelled();
    while (!keys.empty() && keys.back() == left_out) keys.pop_back();
    entries_.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
        entries_[i] = static_cast<std::uint32_t>(keys[i]) * inverse_of(kScramble);
    return {};
}

template <class T>
Status RowPanels<T>::pack(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                          std::span<const std::uint32_t> rows, const PanelShape& shape,
                          Execution& execution) {
    using Offset = ScoreOf<T>;
    const std::size_t dimensions = vectors.dimensions, panel_rows = shape.rows;
    shape_ = shape;
    panel_size_ = shape.size(dimensions);
    GPUTEXT_TRY(order(space, side, vectors, rows, execution));
    elements_.set_size(panels() * panel_size_);
    offsets_.set_size(panels() * panel_rows);
    bounds_.resize(size());

    const std::size_t padded = space.padded();
    std::vector<Scratch<T>> scratch(execution.threads(), Scratch<T>(padded, panel_rows));
    execution.begin_phase("packing vectors", panels());
    Status status = execution.parallel_for(panels(), [&](std::size_t panel, unsigned worker) {
        auto& [row, converted] = scratch[worker];
        const std::size_t begin = panel * panel_rows, end = std::min(size(), begin + panel_rows);
        for (std::size_t position = begin; position < end; ++position) {
            bounds_[position] = convert(space, side, vectors, rows[entries_[position]], row,
                                        converted.data() + (position - begin) * padded);
            offsets_.data()[position] = static_cast<Offset>(bounds_[position].offset);
        }
        std::fill(offsets_.data() + end, offsets_.data() + begin + panel_rows,
                  std::numeric_limits<Offset>::quiet_NaN());
        fill_panel(converted.data(), padded, end - begin, dimensions, shape,
                   elements_.data() + panel * panel_size_);
        return Status();
    });
    if (status.ok())
        set_tiles(std::max<std::size_t>(1, kTileBytes / (panel_size_ * sizeof(PanelNumber<T>))));
    return status;
}

template <class T>
void RowPanels<T>::set_tiles(std::size_t tile_panels) {
    const std::size_t panel_rows = shape_.rows;
    tile_rows_ = tile_panels * panel_rows;
    tiles_.clear();
    for (std::size_t begin = 0; begin < panels(); begin += tile_panels) {
        Tile tile{begin, std::min(panels(), begin + tile_panels), bounds_[begin * panel_rows]};
        const std::size_t end = std::min(size(), tile.end_panel * panel_rows);
        for (std::size_t position = begin * panel_rows; position < end; ++position) {
            const FilterRow& row = bounds_[position];
            tile.bounds.norm = std::max(tile.bounds.norm, row.norm);
            tile.bounds.least_norm = std::min(tile.bounds.least_norm, row.least_norm);
            tile.bounds.residual = std::max(tile.bounds.residual, row.residual);
            tile.bounds.low = std::max(tile.bounds.low, row.low);
        }
        tiles_.push_back(tile);
    }
}

// ---- The search ----

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Bytes of candidates that each thread may have before they count.
constexpr std::size_t kRoomOfThread = std::size_t{16} << 20;

/// The least and the greatest of some numbers. Several at a time, as each step waits for the one
/// before.
std::pair<double, double> extent(std::span<const double> numbers) {
    constexpr std::size_t lanes = 4;
    double least[lanes], most[lanes];
    std::fill_n(least, lanes, numbers[0]);
    std::fill_n(most, lanes, numbers[0]);
    const auto add = [&](std::size_t lane, double number) {
        least[lane] = number < least[lane] ? number : least[lane];
        most[lane] = number > most[lane] ? number : most[lane];
    };
    std::size_t i = 0;
    for (; i + lanes <= numbers.size(); i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) add(lane, numbers[i + lane]);
    for (; i < numbers.size(); ++i) add(0, numbers[i]);
    return {*std::min_element(least, least + lanes), *std::max_element(most, most + lanes)};
}

/// A number not below the k-th smallest, and seldom far above it. By counting in intervals of equal
/// width: much faster than a selection, which is left to numbers that crowd in one interval.
double about_smallest(std::size_t k, std::vector<double>& numbers) {
    constexpr std::size_t intervals = 256;
    const auto [from, to] = extent(numbers);
    const double scale = intervals / (to - from);
    if (scale > 0 && scale < kInfinity) {
        std::array<std::uint32_t, intervals + 1> counts{};
        for (const double number : numbers)
            ++counts[static_cast<std::size_t>((number - from) * scale)];
        std::size_t interval = 0, below = counts[0];
        while (below < k) below += counts[++interval];
        // The next interval's begin may be rounded; a number counted here is below the one after.
        const double end = from + static_cast<double>(interval + 2) / scale;
        if (below + counts[std::min(interval + 1, intervals)] <= k + k / 2 + 32) return end;
    }
    const auto kth = numbers.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(numbers.begin(), kth, numbers.end());
    return *kth;
}

template <class T>
[[gnu::optimize("O3")]] void set_upper_bounds(std::span<const T> scores,
                                              const FilterSpace::Bound& bound, double* bounds) {
    const double factor = 1 + bound.relative, summand = bound.absolute;
    for (std::size_t i = 0; i < scores.size(); ++i) bounds[i] = scores[i] * factor + summand;
}

/// Items that passed, [begin, end), and where those of them go that are kept.
struct Run {
    std::size_t begin, end, to;
};

/// Moves the items whose score is not above `highest`; returns where the last of them ends.
template <class T>
[[gnu::optimize("O3")]] std::size_t keep_up_to(T highest, const Run& run, T* __restrict scores,
                                               std::uint32_t* __restrict positions) {
    std::size_t to = run.to;
    for (std::size_t i = run.begin; i < run.end; ++i) {
        const T score = scores[i];
        scores[to] = score;
        positions[to] = positions[i];
        to += score <= highest;
    }
    return to;
}

template <class T>
[[gnu::optimize("O3")]] std::size_t count_above(T least, std::span<const T> scores) {
    std::size_t count = 0;
    for (const T score : scores) count += score > least;
    return count;
}

/// A query on its way through the items.
template <class S>
struct QueryState {
    std::uint32_t query;
    FilterRow bounds;
    /// An upper bound of the score t (cpp/knn/detail/filter_space.hpp) of whatever can be an
    /// answer.
    double most;
    bool escalated = false;
    /// Items that passed: scores, and positions in tile after tile.
    std::vector<S> scores;
    std::vector<std::uint32_t> positions;
    std::size_t count = 0;
};

/// A class that may be among a query's nearest, with the bounds of its score t.
struct Possible {
    double least, most;
    std::uint32_t item_class;
};

/// Filters some queries and items in T.
template <class T>
class FilterPass {
    using S = ScoreOf<T>;

public:
    /// A query escalates when its bound leaves more than so many items undecided.
    FilterPass(KnnProblem& search, const FilterSpace& space, std::size_t most_undecided)
        : search_(search),
          space_(space),
          filter_(distance_filter<T>(space.score(), search.parameters.simd)),
          most_undecided_(most_undecided) {}

    /// Adds the queries' nearest among these classes to search.nearest. Both are ascending.
    Status run(std::span<const std::uint32_t> queries, std::span<const std::uint32_t> classes) {
        Execution& execution = search_.execution;
        // Queries that escalated among earlier classes are searched again anyway.
        std::sort(escalated_.begin(), escalated_.end());
        left_queries_.clear();
        std::set_difference(queries.begin(), queries.end(), escalated_.begin(), escalated_.end(),
                            std::back_inserter(left_queries_));
        classes_of_ = classes;
        std::vector<std::uint32_t> rows(classes.size());
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i] = search_.distinct.firsts()[classes[i]];
        GPUTEXT_TRY(queries_.pack(space_, FilterSpace::Side::query, search_.queries, left_queries_,
                                  filter_.queries, execution));
        GPUTEXT_TRY(take_sample(rows));
        if (hopeless()) {
            escalated_.insert(escalated_.end(), left_queries_.begin(), left_queries_.end());
            return {};
        }
        GPUTEXT_TRY(items_.pack(space_, FilterSpace::Side::item, search_.items, rows, filter_.items,
                                execution));
        if (items_.size() == 0) return {};
        GPUTEXT_TRY(run_blocks());
        if (unproven_.empty()) return {};
        // These are few: their limits were guessed too low.
        std::sort(unproven_.begin(), unproven_.end());
        left_queries_ = std::exchange(unproven_, {});
        sample_plan_ = {};
        GPUTEXT_TRY(queries_.pack(space_, FilterSpace::Side::query, search_.queries, left_queries_,
                                  filter_.queries, execution));
        return run_blocks();
    }

    /// Memory that run() needs of a class.
    std::size_t bytes_of_item() const {
        return RowPanels<T>::bytes_of_row(filter_.items, search_.items.dimensions);
    }

    /// Queries that escalated in any run, each once.
    std::vector<std::uint32_t> escalated() {
        std::sort(escalated_.begin(), escalated_.end());
        escalated_.erase(std::unique(escalated_.begin(), escalated_.end()), escalated_.end());
        return std::move(escalated_);
    }

private:
    using States = std::vector<QueryState<S>>;

    /// One thread's memory.
    struct Worker {
        explicit Worker(Distances of) : distances(std::move(of)) {}

        Distances distances;
        States states;
        std::vector<double> upper_bounds;
        std::vector<std::size_t> tiles;
        std::vector<S> sample_scores;
        std::vector<std::uint32_t> sample_positions;
        std::vector<GroupMinima<S>> minima;
        std::vector<Possible> possible;
        std::vector<Candidate> candidates;
    };

    /// Items that may pass before they are sorted out.
    static std::size_t most_passed(std::size_t k) { return 4 * k + 256; }

    /// Packs some of the rows where that pays.
    Status take_sample(std::span<const std::uint32_t> rows) {
        constexpr std::size_t few_queries = 256, tile_items = 256;
        constexpr std::size_t elements = is_bfloat16<T> ? 400000 : 100000;
        const std::size_t k = search_.nearest.k(), n = rows.size();
        sample_plan_ = {};
        if (queries_.size() >= few_queries && k < n)
            sample_plan_ = plan_sample(n, k, search_.items.dimensions, most_passed(k), elements);
        const std::size_t sampled = sample_plan_.items;
        if (sampled == 0) return {};
        items_of_sampled_ = static_cast<double>(n) / static_cast<double>(sampled);
        // Not at equal distances, as similar rows may lie at equal distances.
        std::vector<std::uint32_t> sample(sampled);
        for (std::size_t i = 0; i < sampled; ++i)
            sample[i] = rows[i * n / sampled + (i * 0x9e3779b1u >> 8) % (n / sampled)];
        GPUTEXT_TRY(sample_.pack(space_, FilterSpace::Side::item, search_.items, sample,
                                 filter_.items, search_.execution));
        sample_.set_tiles(tile_items / filter_.items.rows);
        return {};
    }

    /// Whether most of a few queries would escalate, as the sample shows.
    bool hopeless() const {
        if (sample_plan_.items == 0) return false;
        constexpr std::size_t probes = 4;
        Worker worker(search_.distances());
        std::size_t wide = 0, queries = 0;
        for (std::size_t probe = 0; probe < probes; ++probe) {
            const std::size_t panel = (2 * probe + 1) * queries_.panels() / (2 * probes);
            for (const auto& minima : sample_scores(panel, worker)) {
                wide += too_wide(minima, minima.most(sample_plan_.rank));
                ++queries;
            }
        }
        return wide > queries / 2;
    }

    /// Blocks of queries, and where these are few, parts of the items.
    Status run_blocks() {
        Execution& execution = search_.execution;
        const std::size_t k = std::min(search_.nearest.k(), items_.size());
        const bool by_radius = search_.parameters.radius < kInfinity;
        const std::size_t expected = by_radius ? std::min<std::size_t>(k, 1024) : k;
        capacity_ = std::min(most_passed(expected), items_.size()) + filter_.items.rows;
        const std::size_t query_bytes = capacity_ * (sizeof(S) + sizeof(std::uint32_t));
        const std::size_t panel_bytes = filter_.queries.rows * query_bytes;
        const std::size_t most_panels = std::min<std::size_t>(16, 128 / filter_.queries.rows);
        block_panels_ = std::clamp<std::size_t>(kRoomOfThread / panel_bytes, 1, most_panels);

        const std::size_t blocks = (queries_.panels() + block_panels_ - 1) / block_panels_;
        if (blocks == 0) return {};
        const std::size_t parts = std::clamp<std::size_t>(
            (4 * execution.threads() + blocks - 1) / blocks, 1, items_.tiles().size());
        std::vector<Worker> workers(execution.threads(), Worker(search_.distances()));
        possible_.assign(parts > 1 ? parts * queries_.size() : 0, {});
        guesses_.assign(queries_.size(), kInfinity);
        // A panel of queries may need more than the room that a thread has anyhow.
        const std::size_t used = std::min(filter_.queries.rows, queries_.size()) * query_bytes;
        Status status = take(std::min<std::size_t>(execution.threads(), blocks * parts) *
                             (std::max(used, kRoomOfThread) - kRoomOfThread));
        execution.begin_phase("searching neighbors", blocks * parts);
        if (status.ok())
            status = execution.parallel_for(blocks * parts, [&](std::size_t task, unsigned worker) {
                return run_block(task / parts, task % parts, parts, workers[worker]);
            });
        if (status.ok() && parts > 1) status = join_parts(parts, workers);
        possible_.clear();
        search_.nearest.budget().give_back(taken_.exchange(0));
        return status;
    }

    /// Counts bytes of candidates until all blocks are done.
    Status take(std::size_t bytes) {
        GPUTEXT_TRY(search_.nearest.budget().take(bytes, "candidates for neighbors"));
        taken_ += bytes;
        return {};
    }

    /// Brings together what the parts of the items left of a query.
    Status join_parts(std::size_t parts, std::vector<Worker>& workers) {
        search_.execution.begin_phase("computing distances", queries_.size());
        return search_.execution.parallel_for(
            queries_.size(), [&](std::size_t position, unsigned worker) {
                std::vector<Possible>& possible = workers[worker].possible;
                possible.clear();
                for (std::size_t part = 0; part < parts; ++part) {
                    const auto& found = possible_[part * queries_.size() + position];
                    possible.insert(possible.end(), found.begin(), found.end());
                }
                return decide(position, workers[worker]);
            });
    }

    Status run_block(std::size_t block, std::size_t part, std::size_t parts, Worker& worker) {
        const Stop stop = search_.execution.stop();
        const std::size_t begin = block * block_panels_;
        const std::size_t end = std::min(queries_.panels(), begin + block_panels_);
        begin_states(begin * filter_.queries.rows,
                     std::min(queries_.size(), end * filter_.queries.rows), worker.states);
        const auto states_of = [&](std::size_t panel) {
            const auto states =
                std::span(worker.states).subspan((panel - begin) * filter_.queries.rows);
            return states.first(std::min(states.size(), filter_.queries.rows));
        };
        // For queries that are this few, their parts would guess again and again.
        if (sample_plan_.items > 0 && parts == 1)
            for (std::size_t panel = begin; panel < end; ++panel)
                guess_limits(panel, states_of(panel), worker);
        order_tiles(worker.states, part, parts, worker.tiles);
        for (const std::size_t tile : worker.tiles) {
            for (std::size_t panel = begin; panel < end; ++panel) {
                if (stop()) return Status::cancelled();
                GPUTEXT_TRY(scan_tile(panel, states_of(panel), items_.tiles()[tile], worker));
            }
        }
        for (std::size_t i = 0; i < worker.states.size(); ++i) {
            const std::size_t position = begin * filter_.queries.rows + i;
            QueryState<S>& state = worker.states[i];
            if (state.escalated) guesses_[position] = kInfinity;
            keep_possible(state, worker.upper_bounds);
            std::vector<Possible>& possible =
                parts > 1 ? possible_[part * queries_.size() + position] : worker.possible;
            list_possible(state, possible);
            GPUTEXT_TRY(parts > 1 ? take(possible.capacity() * sizeof(Possible))
                                  : decide(position, worker));
        }
        return {};
    }

    void begin_states(std::size_t begin, std::size_t end, States& states) const {
        states.resize(end - begin);
        for (std::size_t position = begin; position < end; ++position) {
            QueryState<S>& state = states[position - begin];
            state.query = left_queries_[queries_.entry(position)];
            state.bounds = queries_.bounds(position);
            state.most = space_.most_of(state.bounds, search_.nearest.limit(state.query));
            state.escalated = false;
            state.count = 0;
            state.scores.resize(std::max(state.scores.size(), capacity_));
            state.positions.resize(state.scores.size());
        }
    }

    std::size_t queries_of(std::size_t panel) const {
        const std::size_t begin = panel * filter_.queries.rows;
        return std::min(queries_.size() - begin, filter_.queries.rows);
    }

    /// The scores of a panel's queries in the sample.
    std::span<const GroupMinima<S>> sample_scores(std::size_t panel, Worker& worker) const {
        const std::size_t room = sample_.tile_rows() + filter_.items.rows;
        const std::size_t count = queries_of(panel);
        worker.minima.resize(filter_.queries.rows);
        for (auto& minima : worker.minima) minima.clear();
        worker.sample_scores.resize(filter_.queries.rows * room);
        worker.sample_positions.resize(worker.sample_scores.size());
        for (const auto& tile : sample_.tiles()) {
            PassedScores<S> passed;
            for (std::size_t q = 0; q < filter_.queries.rows; ++q) {
                const S infinity = std::numeric_limits<S>::infinity();
                passed.gate[q] = q < count ? infinity : -infinity;
                passed.scores[q] = worker.sample_scores.data() + q * room;
                passed.positions[q] = worker.sample_positions.data() + q * room;
                passed.count[q] = 0;
                passed.capacity[q] = room;
            }
            filter_.scan(queries_.panel(panel), sample_.panel(0), sample_.offsets(),
                         search_.items.dimensions, tile.begin_panel, tile.end_panel, passed);
            for (std::size_t q = 0; q < count; ++q)
                worker.minima[q].add(
                    {passed.scores[q], passed.count[q]},
                    bound(queries_.bounds(panel * filter_.queries.rows + q), tile.bounds));
        }
        return std::span(worker.minima).first(count);
    }

    /// Whether the bounds of scores would leave too many items undecided.
    bool too_wide(const GroupMinima<S>& minima, double guess) const {
        if (most_undecided_ == SIZE_MAX) return false;  // there is no other pass
        const double more = minima.count_up_to(guess) - sample_plan_.rank;
        return more * items_of_sampled_ > static_cast<double>(most_undecided_);
    }

    /// Guesses where the scores of a panel's queries may end.
    void guess_limits(std::size_t panel, std::span<QueryState<S>> states, Worker& worker) {
        const auto minima = sample_scores(panel, worker);
        for (std::size_t q = 0; q < states.size(); ++q) {
            const double guess = minima[q].most(sample_plan_.rank);
            if (!(guess < states[q].most)) continue;
            if (too_wide(minima[q], guess)) {
                states[q].escalated = true;
                escalate(states[q].query);
                continue;
            }
            states[q].most = guess;
            guesses_[panel * filter_.queries.rows + q] = guess;
        }
    }

    /// Every parts-th tile, those first that have the nearest to the block's middle query.
    void order_tiles(const States& states, std::size_t part, std::size_t parts,
                     std::vector<std::size_t>& order) const {
        const auto tiles = items_.tiles();
        const FilterRow& middle = states[states.size() / 2].bounds;
        std::vector<double> least(tiles.size());
        order.clear();
        for (std::size_t tile = part; tile < tiles.size(); tile += parts) {
            least[tile] = space_.least_of(middle, tiles[tile].bounds);
            order.push_back(tile);
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return least[a] < least[b]; });
    }

    FilterSpace::Bound bound(const FilterRow& query, const FilterRow& items) const {
        return space_.template bound<T>(query, items);
    }

    /// The largest score that an answer can have.
    S gate(const QueryState<S>& state, const FilterSpace::Bound& bound) const {
        if (state.escalated) return -std::numeric_limits<S>::infinity();
        return bound.largest_score<S>(state.most);
    }

    Status scan_tile(std::size_t panel, std::span<QueryState<S>> states,
                     const typename RowPanels<T>::Tile& tile, Worker& worker) {
        PassedScores<S> passed;
        bool any = false;
        for (std::size_t q = 0; q < filter_.queries.rows; ++q) {
            passed.gate[q] = -std::numeric_limits<S>::infinity();
            passed.count[q] = 0;
            passed.capacity[q] = SIZE_MAX;
            if (q >= states.size() || states[q].escalated) continue;
            const FilterSpace::Bound of_tile = bound(states[q].bounds, tile.bounds);
            // The norms alone may show that the tile is too far.
            if (space_.least_of(states[q].bounds, tile.bounds) - of_tile.absolute > states[q].most)
                continue;
            any = true;
            open(states[q], of_tile, q, passed);
        }
        if (!any) return {};
        std::size_t at = tile.begin_panel;
        for (;;) {
            at = filter_.scan(queries_.panel(panel), items_.panel(0), items_.offsets(),
                              search_.items.dimensions, at, tile.end_panel, passed);
            if (at == tile.end_panel) break;
            for (std::size_t q = 0; q < states.size(); ++q) {
                if (passed.count[q] + filter_.items.rows <= passed.capacity[q]) continue;
                states[q].count = passed.count[q];
                GPUTEXT_TRY(make_room(states[q], worker.upper_bounds));
                open(states[q], bound(states[q].bounds, tile.bounds), q, passed);
            }
        }
        for (std::size_t q = 0; q < states.size(); ++q)
            if (passed.capacity[q] != SIZE_MAX) states[q].count = passed.count[q];
        return {};
    }

    void open(QueryState<S>& state, const FilterSpace::Bound& bound, std::size_t q,
              PassedScores<S>& passed) const {
        passed.gate[q] = gate(state, bound);
        passed.scores[q] = state.scores.data();
        passed.positions[q] = state.positions.data();
        passed.count[q] = state.count;
        passed.capacity[q] = state.scores.size();
    }

    Status make_room(QueryState<S>& state, std::vector<double>& upper_bounds) {
        const std::size_t undecided = keep_possible(state, upper_bounds);
        if (undecided > most_undecided_) {
            state.escalated = true;
            state.count = 0;
            escalate(state.query);
        } else if (state.count + filter_.items.rows > state.scores.size() / 4 * 3) {
            const std::size_t more = state.scores.size();
            GPUTEXT_TRY(take(more * (sizeof(S) + sizeof(std::uint32_t))));
            state.scores.resize(2 * more);
            state.positions.resize(2 * more);
        }
        return {};
    }

    /// Lowers state.most to about the k-th smallest upper bound, never below it, and drops what is
    /// certainly above. Returns how many stay that are not certainly below.
    std::size_t keep_possible(QueryState<S>& state, std::vector<double>& upper_bounds) const {
        if (!search_.keys.queries.empty()) drop_own(state);
        upper_bounds.resize(state.count);
        for_each_run(state, [&](std::size_t begin, std::size_t end, const auto& bound) {
            const auto scores = std::span(state.scores).subspan(begin, end - begin);
            set_upper_bounds<S>(scores, bound, upper_bounds.data() + begin);
        });
        if (state.count >= search_.nearest.k())
            state.most = std::min(state.most, about_smallest(search_.nearest.k(), upper_bounds));
        std::size_t kept = 0, undecided = 0;
        for_each_run(state, [&](std::size_t begin, std::size_t end, const auto& bound) {
            const Run run{begin, end, kept};
            kept = keep_up_to(gate(state, bound), run, state.scores.data(), state.positions.data());
            const S decided = static_cast<S>((state.most - bound.absolute) / (1 + bound.relative));
            undecided +=
                count_above<S>(decided, std::span(state.scores).subspan(run.to, kept - run.to));
        });
        state.count = kept;
        return undecided;
    }

    /// Drops what the query's key excludes: it must not count as one of the k nearest.
    void drop_own(QueryState<S>& state) const {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < state.count; ++i) {
            const std::uint32_t item_class = class_at(state.positions[i]);
            if (search_.first_item(state.query, item_class) == KnnProblem::no_item) continue;
            state.scores[kept] = state.scores[i];
            state.positions[kept++] = state.positions[i];
        }
        state.count = kept;
    }

    std::uint32_t class_at(std::size_t position) const {
        return classes_of_[items_.entry(position)];
    }

    /// Calls visit(begin, end, bound) for each run of what passed that lies in one tile.
    template <class Visit>
    void for_each_run(const QueryState<S>& state, Visit&& visit) const {
        for (std::size_t begin = 0, end = 0; begin < state.count; begin = end) {
            const std::size_t tile = items_.tile_of(state.positions[begin]);
            const std::size_t tile_end = (tile + 1) * items_.tile_rows();
            while (end < state.count && state.positions[end] < tile_end &&
                   state.positions[end] >= tile_end - items_.tile_rows())
                ++end;
            visit(begin, end, bound(state.bounds, items_.tiles()[tile].bounds));
        }
    }

    void list_possible(const QueryState<S>& state, std::vector<Possible>& possible) const {
        possible.clear();
        possible.reserve(state.count);
        for_each_run(state, [&](std::size_t begin, std::size_t end, const auto& bound) {
            for (std::size_t i = begin; i < end; ++i)
                possible.push_back({bound.least(state.scores[i]), bound.most(state.scores[i]),
                                    class_at(state.positions[i])});
        });
    }

    /// Computes the distances of what worker.possible lists of a query, or escalates it, or leaves
    /// it for a search without a guess.
    Status decide(std::size_t position, Worker& worker) {
        const std::uint32_t query = left_queries_[queries_.entry(position)];
        std::vector<Possible>& possible = worker.possible;
        const std::size_t k = search_.nearest.k();
        bool proven = guesses_[position] == kInfinity;
        if (possible.size() >= k) {
            const auto kth = possible.begin() + static_cast<std::ptrdiff_t>(k - 1);
            std::nth_element(possible.begin(), kth, possible.end(),
                             [](const Possible& a, const Possible& b) { return a.most < b.most; });
            const double most = kth->most;
            proven |= most <= guesses_[position];
            std::erase_if(possible, [most](const Possible& p) { return p.least > most; });
            const auto undecided = std::count_if(possible.begin(), possible.end(),
                                                 [most](const auto& p) { return p.most > most; });
            if (static_cast<std::size_t>(undecided) > most_undecided_) {
                escalate(query);
                return {};
            }
        }
        if (proven) return rescore(query, worker);
        const std::lock_guard lock(mutex_);
        unproven_.push_back(query);
        return {};
    }

    Status rescore(std::uint32_t query, Worker& worker) {
        const Stop stop = search_.execution.stop();
        worker.distances.set_query(query);
        const double limit = search_.nearest.limit(query);
        const std::size_t look_every =
            std::max<std::size_t>(1, (kLookEvery / 4) / (search_.items.dimensions + 16));
        constexpr std::size_t ahead = 8;  // rows are anywhere in memory
        for (std::size_t i = 0; i < worker.possible.size(); ++i) {
            if (i % look_every == 0 && stop()) return Status::cancelled();
            if (i + ahead < worker.possible.size())
                prefetch_row(worker.possible[i + ahead].item_class);
            search_.rescore(query, worker.possible[i].item_class, limit, worker.distances,
                            worker.candidates);
        }
        search_.rescored += worker.possible.size();
        return search_.nearest.add(query, worker.candidates, stop);
    }

    /// All cache lines that Distances reads of a row, with the few elements behind it.
    void prefetch_row(std::uint32_t item_class) const {
        const std::byte* row = search_.items.row_bytes(search_.distinct.firsts()[item_class]);
        const std::size_t bytes = space_.padded() * element_size(search_.items.type);
        const std::size_t most = std::min<std::size_t>(bytes, 256);
        for (std::size_t at = 0; at < most; at += 64) __builtin_prefetch(row + at);
        __builtin_prefetch(row + most - 1);
    }

    void escalate(std::uint32_t query) {
        const std::lock_guard lock(mutex_);
        escalated_.push_back(query);
    }

    KnnProblem& search_;
    const FilterSpace& space_;
    DistanceFilter<T> filter_;
    std::size_t most_undecided_;
    std::vector<std::uint32_t> left_queries_;
    std::span<const std::uint32_t> classes_of_;
    RowPanels<T> queries_, items_, sample_;
    SamplePlan sample_plan_;
    double items_of_sampled_ = 1;
    /// Limits of t by position of the query that are not proven; infinity where there is none.
    std::vector<double> guesses_;
    std::size_t capacity_ = 0, block_panels_ = 1;
    /// Where the items are searched in parts: by part and position of the query.
    std::vector<std::vector<Possible>> possible_;
    std::atomic<std::size_t> taken_{0};
    std::mutex mutex_;
    std::vector<std::uint32_t> escalated_, unproven_;
};

/// Runs a pass over all classes, as many at a time as the memory allows.
template <class T>
Result<std::vector<std::uint32_t>> run_pass(KnnProblem& search, const FilterSpace& space,
                                            std::span<const std::uint32_t> queries,
                                            std::span<const std::uint32_t> classes,
                                            std::size_t most_undecided) {
    FilterPass<T> pass(search, space, most_undecided);
    if (queries.empty()) return pass.escalated();
    const std::size_t bytes = pass.bytes_of_item();
    const std::size_t step = std::max<std::size_t>(1024, search.parameters.memory_limit / bytes);
    for (std::size_t begin = 0; begin < classes.size(); begin += step) {
        const std::size_t count = std::min(step, classes.size() - begin);
        GPUTEXT_TRY(pass.run(queries, classes.subspan(begin, count)));
    }
    return pass.escalated();
}

}  // namespace

Result<std::uint64_t> search_filtered(KnnProblem& search, const FilterSpace& space) {
    std::vector<std::uint32_t> queries(search.queries.rows), classes(search.distinct.size());
    std::iota(queries.begin(), queries.end(), 0u);
    std::iota(classes.begin(), classes.end(), 0u);
    // Beyond these, exact distances of all that is undecided would take longer than another pass:
    // in floats about 0.02 ns a dimension and item, where an exact distance takes 50 ns and 0.2 ns
    // a dimension.
    const std::size_t dimensions = search.items.dimensions;
    const std::size_t most_in_bfloat16 =
        64 + classes.size() * dimensions / (2500 + 10 * dimensions);
    const std::size_t most_in_float = 1024 + classes.size() / 16;
    std::uint64_t escalated = 0;
    const auto search_left = [&]<class T>(std::size_t most_undecided, T) {
        auto left = run_pass<T>(search, space, queries, classes, most_undecided);
        if (!left.ok()) return left.status();
        if (escalated == 0) escalated = left->size();
        queries = std::move(*left);
        return Status();
    };
    // Tiles of fewer dimensions than 17 are more than half empty. Up to 64, what takes the time is
    // to get the scores out of the tiles: pairs take a third more than single numbers, and floats
    // three times as long.
    constexpr std::size_t too_few = 16, few = 64;
    // Without tiles the products of pairs take longer than those of floats.
    const bool has_tiles = search.parameters.simd == Simd::amx;
    if (dimensions > too_few && bfloat16_filter_available(space.score(), search.parameters.simd)) {
        if (dimensions > few) GPUTEXT_TRY(search_left(most_in_bfloat16, Bfloat16()));
        if (has_tiles) GPUTEXT_TRY(search_left(most_in_bfloat16, Bfloat16Pair()));
    }
    GPUTEXT_TRY(search_left(most_in_float, float()));
    GPUTEXT_TRY(search_left(SIZE_MAX, double()));
    return escalated;
}

}  // namespace gputext
