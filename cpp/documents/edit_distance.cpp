#include "cpp/documents/edit_distance.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "cpp/base/hash_table.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/bit_parallel.hpp"
#include "cpp/documents/detail/folded_text.hpp"
#include "cpp/documents/detail/rest_edits.hpp"

namespace gputext {
namespace {

constexpr std::size_t kWord = kBlockRows;

/// A band for so many edits takes longer than a look at all blocks of the strings.
constexpr double kLeastBounded = 8192;

/// Length of the longest common prefix.
template <class Symbol>
std::size_t common_prefix(const Symbol* a, const Symbol* b, std::size_t most) {
    constexpr std::size_t step = sizeof(std::uint64_t) / sizeof(Symbol);
    std::size_t at = 0;
    for (; at + step <= most; at += step) {
        std::uint64_t x, y;
        std::memcpy(&x, a + at, sizeof x);
        std::memcpy(&y, b + at, sizeof y);
        if (x != y) return at + std::countr_zero(x ^ y) / (8 * sizeof(Symbol));
    }
    while (at < most && a[at] == b[at]) ++at;
    return at;
}

/// As above, for strings that may be huge. Stops early, with a shorter prefix, when `stop` says so.
template <class Symbol>
std::size_t common_prefix(const Symbol* a, const Symbol* b, std::size_t most, Stop stop) {
    std::size_t at = 0;
    while (most - at > kLookEvery) {
        if (stop()) return at;
        const std::size_t part = common_prefix(a + at, b + at, kLookEvery);
        at += part;
        if (part < kLookEvery) return at;
    }
    return at + common_prefix(a + at, b + at, most - at);
}

/// Cuts the common prefix and suffix of a and b, or a part of them when stopped.
template <class Symbol>
void trim_common_ends(std::span<const Symbol>& a, std::span<const Symbol>& b, Stop stop) {
    const std::size_t front = common_prefix(a.data(), b.data(), std::min(a.size(), b.size()), stop);
    a = a.subspan(front);
    b = b.subspan(front);
    std::size_t back = 0;
    const std::size_t most = std::min(a.size(), b.size());
    while (back < most && a[a.size() - 1 - back] == b[b.size() - 1 - back])
        if (++back % kLookEvery == 0 && stop()) break;
    a = a.first(a.size() - back);
    b = b.first(b.size() - back);
}

/// Furthest reaching points: for e = 0, 1, ... the furthest row on every diagonal that e edits can
/// reach. Wins while e is small, since it costs e^2 steps however long the strings are.
class Diagonals {
public:
    struct Outcome {
        bool stopped = false;
        std::optional<std::size_t> distance;
        double reached = 0;  // share of both strings behind the furthest point, if no distance
    };

    /// Requires a no longer than b, and limit >= |b| - |a|.
    template <class Symbol>
    Outcome run(std::span<const Symbol> a, std::span<const Symbol> b, std::size_t limit,
                Stop stop) {
        const auto rows = static_cast<int>(a.size());
        const auto columns = static_cast<int>(b.size());
        const int target = columns - rows;
        const auto most = static_cast<int>(limit);
        // Two cells beyond the widest range on either side are read, never computed.
        const std::size_t width = 2 * limit + 5;
        before_.assign(width, kUnreached);
        now_.assign(width, kUnreached);
        int* previous = before_.data() + limit + 2;
        int* current = now_.data() + limit + 2;

        previous[0] = static_cast<int>(common_prefix(a.data(), b.data(), a.size(), stop));
        if (target == 0 && previous[0] == rows) return {false, 0, 1};
        int low = 0;
        int high = 0;
        std::size_t compared = 0;  // symbols, since the last look at the stop request
        for (int edits = 1; edits <= most; ++edits) {
            if (stop()) return {true, {}, 0};
            // A diagonal does not matter if it is further from the last cell's diagonal than edits
            // are left.
            low = std::max({-edits, target - (most - edits), -rows});
            high = std::min({edits, target + (most - edits), columns});
            advance_rows(previous, current, low, high, rows, columns);
            for (int diagonal = low; diagonal <= high; ++diagonal) {
                const int row = current[diagonal];
                const int column = row + diagonal;
                // Most diagonals meet different symbols at once.
                if (row == rows || column == columns || a[row] != b[column]) continue;
                const int left = std::min(rows - row, columns - column);
                const std::size_t common = common_prefix(a.data() + row, b.data() + column,
                                                         static_cast<std::size_t>(left), stop);
                current[diagonal] += static_cast<int>(common);
                // Strings that repeat themselves have long common parts on many diagonals.
                if ((compared += common) > kLookEvery) {
                    if (stop()) return {true, {}, 0};
                    compared = 0;
                }
            }
            if (low <= target && target <= high && current[target] == rows)
                return {false, static_cast<std::size_t>(edits), 1};
            current[low - 1] = current[low - 2] = kUnreached;
            current[high + 1] = current[high + 2] = kUnreached;
            std::swap(previous, current);
        }
        int furthest = 0;
        for (int diagonal = low; diagonal <= high; ++diagonal)
            furthest = std::max(furthest, 2 * previous[diagonal] + diagonal);
        return {false, {}, static_cast<double>(furthest) / (rows + columns)};
    }

private:
    /// Advances each diagonal by one edit; matching symbols are followed later. Vectorised.
    [[gnu::optimize("O3")]] static void advance_rows(const int* __restrict previous,
                                                     int* __restrict current, int low, int high,
                                                     int rows, int columns) {
        for (int diagonal = low; diagonal <= high; ++diagonal) {
            const int row = std::max(std::max(previous[diagonal - 1], previous[diagonal] + 1),
                                     previous[diagonal + 1] + 1);
            current[diagonal] = std::min(std::min(row, rows), columns - diagonal);
        }
    }

    static constexpr int kUnreached = -(1 << 30);
    std::vector<int> before_, now_;
};

/// Bit-parallel distance within the diagonals that a limit leaves.
class Band {
public:
    struct Outcome {
        bool stopped = false;
        std::size_t distance = 0;  // limit + 1 when above it
    };

    /// Blocks that all runs moved one column on.
    std::uint64_t steps() const { return steps_; }

    /// Rows are a's symbols, columns b's, as ids below `ids`; a id of b that a lacks may be any
    /// id below `ids` that does not occur in a. Requires 0 < |a| <= |b|, limit >= |b| - |a|.
    /// `rest` knows edits of rows, or none.
    template <class Id>
    Outcome run(std::span<const Id> a, std::span<const Id> b, std::size_t ids, std::size_t limit,
                const RestEdits& rest, Stop stop) {
        rest_ = &rest;
        rows_ = a.size();
        columns_ = b.size();
        limit_ = static_cast<std::ptrdiff_t>(limit);
        const std::size_t difference = columns_ - rows_;
        // A path of `limit` edits leaves the diagonals between start and end by at most `slack`.
        const std::size_t slack = (limit - difference) / 2;
        const std::size_t blocks = (rows_ + kWord - 1) / kWord;
        const std::size_t widest =
            std::min(blocks, (difference + 2 * slack + 2 * kWord) / kWord + 1);
        slots_ = std::bit_ceil(widest + 1);
        slot_mask_ = slots_ - 1;
        if (!stoppable_assign(matches_, ids * slots_, std::uint64_t{0}, stop) ||
            !stoppable_assign(column_, blocks, Block{}, stop))
            return {true, 0};

        first_ = last_ = 0;
        score_ = kWord;
        open_block(a, 0);
        // Bounds the work between two looks at the stop request.
        const std::size_t look_every = std::max<std::size_t>(1, (1u << 18) / widest);
        for (std::size_t j = 1; j <= columns_; j += kAbreast) {
            const std::size_t end = std::min(columns_ + 1, j + kAbreast);
            const std::size_t lowest = std::min(blocks - 1, (end + slack - 2) / kWord);
            // Over the next kAbreast columns the value may fall by one in each, and so may the way
            // to the end.
            while (last_ < lowest && !hopeless(score_ - 2 * static_cast<std::ptrdiff_t>(kAbreast),
                                               last_row(last_), j - 1)) {
                if (last_ % 4096 == 4095 && stop()) return {true, 0};
                open_block(a, ++last_);
                score_ += kWord;
            }
            if (j > difference + slack)
                first_ = std::max(first_, (j - difference - slack - 1) / kWord);
            if (first_ > last_) return {false, limit + 1};
            steps_ += (end - j) * (last_ - first_ + 1);
            if (end - j == kAbreast)
                score_ += advance_columns(matches_of(b[j - 1]), matches_of(b[j]));
            else
                score_ += advance_column(matches_of(b[j - 1]));
            if (j % kNarrowEvery == 1 && !narrow(end - 1)) return {false, limit + 1};
            if (j / kAbreast % look_every == 0 && stop()) return {true, 0};
        }
        if (last_ + 1 < blocks) return {false, limit + 1};
        score_ -= rise(column_[last_], rows_beyond(rows_));
        return {false, std::min(static_cast<std::size_t>(score_), limit + 1)};
    }

private:
    static constexpr std::size_t kAbreast = 2;  // columns advanced together

    const std::uint64_t* matches_of(std::size_t id) const { return matches_.data() + id * slots_; }

    // A cell above the band counts as its left neighbor's value plus one. This is never too low,
    // and no path within the limit goes through such a cell.

    /// Returns by how much the last active row's value rises.
    std::ptrdiff_t advance_column(const std::uint64_t* matches) {
        Carry carry;
        for (std::size_t block = first_; block <= last_; ++block)
            carry = advance(column_[block], matches[block & slot_mask_], carry);
        return carry.value();
    }

    /// Two columns, the second one block behind the first. A carry waits for that of the block
    /// above; two that do not wait for each other keep the processor busy.
    std::ptrdiff_t advance_columns(const std::uint64_t* first_matches,
                                   const std::uint64_t* second_matches) {
        Carry first_carry;
        Carry second_carry;
        Block above = column_[first_];
        first_carry = advance(above, first_matches[first_ & slot_mask_], first_carry);
        for (std::size_t block = first_ + 1; block <= last_; ++block) {
            Block here = column_[block];
            first_carry = advance(here, first_matches[block & slot_mask_], first_carry);
            second_carry = advance(above, second_matches[(block - 1) & slot_mask_], second_carry);
            column_[block - 1] = above;
            above = here;
        }
        second_carry = advance(above, second_matches[last_ & slot_mask_], second_carry);
        column_[last_] = above;
        return first_carry.value() + second_carry.value();
    }

    /// Starts a block of rows: its matches replace those of the block that used the slot before.
    template <class Id>
    void open_block(std::span<const Id> a, std::size_t block) {
        const std::size_t slot = block & slot_mask_;
        if (block >= slots_) {
            const std::size_t old = (block - slots_) * kWord;
            for (std::size_t row = old; row < old + kWord; ++row)
                matches_[a[row] * slots_ + slot] = 0;
        }
        const std::size_t end = std::min(a.size(), (block + 1) * kWord);
        for (std::size_t row = block * kWord; row < end; ++row)
            matches_[a[row] * slots_ + slot] |= std::uint64_t{1} << row % kWord;
        column_[block] = Block{};
    }

    static constexpr std::size_t kNarrowEvery = 64;  // columns

    static std::size_t last_row(std::size_t block) { return (block + 1) * kWord; }

    /// Edits to bring row i of column j, both counted from 1, onto the last cell's diagonal.
    std::ptrdiff_t edits_to_end(std::size_t i, std::size_t j) const {
        return std::abs(static_cast<std::ptrdiff_t>(columns_ - j) -
                        (static_cast<std::ptrdiff_t>(rows_) - static_cast<std::ptrdiff_t>(i)));
    }

    /// Whether a path through a cell of this value certainly costs more than the limit.
    bool hopeless(std::ptrdiff_t value, std::size_t i, std::size_t j) const {
        return value + std::max(edits_to_end(i, j), edits_behind(i)) > limit_;
    }

    /// Edits of the rows behind row i.
    std::ptrdiff_t edits_behind(std::size_t i) const {
        return static_cast<std::ptrdiff_t>(rest_->behind(i));
    }

    /// As above, for all cells of a block whose last row has the value `last`. Values of
    /// neighboring rows differ by at most 1, as do their edits_to_end, which grow from the row on
    /// the last cell's diagonal both ways: the row nearest to that one has the smallest sum.
    bool hopeless_block(std::size_t block, std::ptrdiff_t last, std::size_t j) const {
        // A path may also come along the row above the first.
        if (block == 0 && !hopeless(static_cast<std::ptrdiff_t>(j), 0, j)) return false;
        const std::size_t top = block * kWord + 1;
        const auto on_diagonal =
            static_cast<std::ptrdiff_t>(rows_ + j) - static_cast<std::ptrdiff_t>(columns_);
        const auto nearest =
            static_cast<std::size_t>(std::clamp(on_diagonal, static_cast<std::ptrdiff_t>(top),
                                                static_cast<std::ptrdiff_t>(last_row(block))));
        const std::ptrdiff_t value = last - rise(column_[block], rows_beyond(nearest));
        if (value + edits_to_end(nearest, j) > limit_) return true;
        const std::ptrdiff_t least = last - std::popcount(column_[block].up);
        return least + edits_behind(last_row(block)) > limit_;
    }

    /// Leaves out hopeless blocks at both ends of the column; false when none is left (Ukkonen's
    /// cut-off). What is left out above counts as in run(); below, blocks are opened again as soon
    /// as the row above them has a path within the limit.
    bool narrow(std::size_t j) {
        while (hopeless_block(last_, score_, j)) {
            if (last_ == first_) return false;
            score_ -= rise(column_[last_], ~std::uint64_t{0});
            --last_;
        }
        std::ptrdiff_t value = score_;
        std::size_t hopeful = last_;
        for (std::size_t block = last_; block > first_; --block) {
            value -= rise(column_[block], ~std::uint64_t{0});
            if (!hopeless_block(block - 1, value, j)) hopeful = block - 1;
        }
        first_ = hopeful;
        return true;
    }

    std::uint64_t steps_ = 0;
    const RestEdits* rest_ = nullptr;
    std::size_t rows_ = 0;
    std::size_t columns_ = 0;
    std::ptrdiff_t limit_ = 0;
    std::size_t first_ = 0;  // active blocks
    std::size_t last_ = 0;
    std::ptrdiff_t score_ = 0;            // value of the last active block's last row
    std::vector<std::uint64_t> matches_;  // [id][slot]: which rows of the slot's block hold id
    std::vector<Block> column_;           // by block
    std::size_t slots_ = 0;
    std::size_t slot_mask_ = 0;
};

/// Numbers the symbols of one string densely, so that tables can be indexed by them.
class SymbolIds {
public:
    /// ids of a, then of b; symbols that a lacks get the last id. Returns how many ids there are,
    /// or none when stopped.
    std::size_t assign(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b,
                       std::vector<std::uint32_t>& a_ids, std::vector<std::uint32_t>& b_ids,
                       Stop stop) {
        if (!table_.reset(a.size(), stop) || !stoppable_assign(a_ids, a.size(), 0u, stop) ||
            !stoppable_assign(b_ids, b.size(), 0u, stop))
            return 0;
        std::uint32_t next = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (i % kLookEvery == 0 && stop()) return 0;
            Entry& entry = find(a[i]);
            if (entry.free()) entry = {a[i], next++};
            a_ids[i] = entry.id;
        }
        for (std::size_t i = 0; i < b.size(); ++i) {
            if (i % kLookEvery == 0 && stop()) return 0;
            const Entry& entry = find(b[i]);
            b_ids[i] = entry.free() ? next : entry.id;
        }
        return std::size_t{next} + 1;
    }

private:
    struct Entry {
        static constexpr std::uint32_t kNone = UINT32_MAX;

        std::uint32_t symbol;
        std::uint32_t id;

        static Entry nothing() { return {0, kNone}; }
        bool free() const { return id == kNone; }
    };

    Entry& find(std::uint32_t symbol) {
        return table_.find(symbol * 0x9e3779b97f4a7c15u >> 32,
                           [symbol](const Entry& entry) { return entry.symbol == symbol; });
    }

    HashTable<Entry> table_;
};

}  // namespace

struct EditDistance::Scratch {
    Diagonals diagonals;
    Band band;
    SymbolIds symbol_ids;
    std::vector<std::uint32_t> a_ids, b_ids;
    std::vector<std::uint32_t> a_symbols, b_symbols;
    RestEdits rest;
    std::vector<std::uint8_t> a_folded, b_folded;

    static Bytes folded(Bytes symbols, std::vector<std::uint8_t>&, Stop) { return symbols; }

    static Bytes folded(std::span<const std::uint32_t> symbols, std::vector<std::uint8_t>& room,
                        Stop stop) {
        room.clear();
        room.reserve(symbols.size());
        for (const std::uint32_t symbol : symbols) {
            if (room.size() % kLookEvery == 0 && stop()) return {};
            room.push_back(folded_character(symbol));
        }
        return room;
    }

    Band::Outcome run_band(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                           std::size_t limit, Stop stop) {
        return band.run(a, b, 256, limit, rest, stop);
    }

    Band::Outcome run_band(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b,
                           std::size_t limit, Stop stop) {
        const std::size_t ids = symbol_ids.assign(a, b, a_ids, b_ids, stop);
        if (ids == 0) return {true, 0};
        return band.run<std::uint32_t>(a_ids, b_ids, ids, limit, rest, stop);
    }

    template <class Symbol>
    Result<std::size_t> distance(std::span<const Symbol> a, std::span<const Symbol> b,
                                 std::size_t limit, Stop stop) {
        if (a.size() > b.size()) std::swap(a, b);
        const std::size_t above = limit + 1;
        limit = std::min(limit, b.size());
        if (b.size() - a.size() > limit) return above;
        trim_common_ends(a, b, stop);
        if (stop()) return Status::cancelled();
        if (a.empty()) return b.size();

        const std::size_t difference = b.size() - a.size();
        // As many edits as cost about what the narrowest useful band would.
        const auto few = static_cast<std::size_t>(std::sqrt(6.0 * static_cast<double>(b.size())));
        double guess = 2.0 * static_cast<double>(difference) + kWord;
        if (difference < few) {
            const std::size_t first_limit = std::min(limit, few);
            const Diagonals::Outcome near = diagonals.run(a, b, first_limit, stop);
            if (near.stopped) return Status::cancelled();
            if (near.distance) return *near.distance;
            if (first_limit == limit) return above;
            // Edits are spread evenly more often than not, so how far the first ones reached
            // tells about how many there are. Too small a guess costs another, wider run.
            guess = 1.2 * static_cast<double>(first_limit) / std::max(near.reached, 0.01) + kWord;
        }
        rest.clear();
        if (std::min(guess, static_cast<double>(limit)) >= kLeastBounded) {
            const Bytes rows = folded(a, a_folded, stop), columns = folded(b, b_folded, stop);
            if (stop() || !rest.assign(rows, columns, limit, stop)) return Status::cancelled();
            if (rest.whole() > limit) return above;
        }
        for (;;) {
            const std::size_t band_limit =
                std::min(limit, std::max(difference, static_cast<std::size_t>(guess)));
            const Band::Outcome outcome = run_band(a, b, band_limit, stop);
            if (outcome.stopped) return Status::cancelled();
            if (outcome.distance <= band_limit) return outcome.distance;
            if (band_limit == limit) return above;
            guess *= 2;
        }
    }
};

EditDistance::EditDistance() : scratch_(std::make_unique<Scratch>()) {}
EditDistance::~EditDistance() = default;
EditDistance::EditDistance(EditDistance&&) noexcept = default;
EditDistance& EditDistance::operator=(EditDistance&&) noexcept = default;

Result<std::size_t> EditDistance::operator()(std::span<const std::uint8_t> a,
                                             std::span<const std::uint8_t> b, std::size_t limit,
                                             Stop stop) try {
    return scratch_->distance(a, b, limit, stop);
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

Result<std::size_t> EditDistance::operator()(std::span<const std::uint32_t> a,
                                             std::span<const std::uint32_t> b, std::size_t limit,
                                             Stop stop) try {
    return scratch_->distance(a, b, limit, stop);
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

Result<std::size_t> EditDistance::of_texts(Bytes a, Bytes b, const CharacterLengths& lengths,
                                           std::size_t limit, Stop stop) try {
    if (is_narrow(a, lengths, stop) && is_narrow(b, lengths, stop))
        return scratch_->distance(a, b, limit, stop);
    decode_characters(a, lengths, scratch_->a_symbols, stop);
    decode_characters(b, lengths, scratch_->b_symbols, stop);
    if (stop()) return Status::cancelled();
    return scratch_->distance<std::uint32_t>(scratch_->a_symbols, scratch_->b_symbols, limit, stop);
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

std::uint64_t EditDistance::band_steps() const {
    return scratch_->band.steps();
}

double edit_rate(std::size_t distance, std::size_t sum_of_lengths) {
    if (sum_of_lengths == 0) return 0;
    return static_cast<double>(distance) / static_cast<double>(sum_of_lengths);
}

std::size_t most_edits_within(double threshold, std::size_t sum_of_lengths) {
    auto edits = static_cast<std::size_t>(threshold * static_cast<double>(sum_of_lengths));
    while (edits > 0 && edit_rate(edits, sum_of_lengths) > threshold) --edits;
    while (edits < sum_of_lengths && edit_rate(edits + 1, sum_of_lengths) <= threshold) ++edits;
    return edits;
}

}  // namespace gputext
