#include "cpp/documents/detail/rest_edits.hpp"

#include <algorithm>

namespace gputext {

bool RestEdits::assign(Bytes a, Bytes b, std::size_t limit, Stop stop) {
    a_ = a;
    b_ = b;
    difference_ = b.size() - a.size();
    slack_ = (limit - difference_) / 2;
    rest_.assign(blocks() + 1, kMostCounted + 1);
    rest_.back() = 0;
    const unsigned gram = choose_gram(stop);
    const std::size_t all_cells = b.size() / kCell + 1;
    std::size_t done = 0;  // blocks
    std::size_t sum = 0;   // of their edits
    std::vector<Bytes> windows;
    for (std::size_t first = 0; done < blocks() && !stop(); first += GramTile::most_columns) {
        const std::size_t end = std::min(all_cells, first + GramTile::most_columns);
        windows.clear();
        for (std::size_t cell = first; cell < end; ++cell) windows.push_back(window(cell));
        if (!make_table(windows, gram, stop)) break;
        for (std::size_t number = done; number < blocks() && !stop(); ++number) {
            const Cells beside = cells_beside(number);
            if (beside.begin >= end) break;
            const Cells here{std::max(beside.begin, first), std::min(beside.end, end)};
            rest_[number] = std::min(rest_[number], least_edits(number, first, here, stop));
            if (beside.end > end) continue;
            ++done;
            sum += rest_[number];
            if (sum > limit) break;
        }
        if (sum > limit) break;
    }
    if (stop()) return false;
    if (sum > limit)
        rest_.assign(1, limit + 1);
    else
        for (std::size_t number = blocks(); number > 0; --number)
            rest_[number - 1] += rest_[number];
    return true;
}

Bytes RestEdits::window(std::size_t cell) const {
    const std::size_t begin = cell * kCell;
    return b_.subspan(begin, std::min(kWindow, b_.size() - begin));
}

RestEdits::Cells RestEdits::cells_beside(std::size_t number) const {
    const std::size_t begin = number * block;
    const std::size_t first = begin - std::min(begin, slack_);
    const std::size_t last = std::min(b_.size(), begin + difference_ + slack_);
    return {first / kCell, last / kCell + 1};
}

bool RestEdits::make_table(std::span<const Bytes> windows, unsigned gram, Stop stop) {
    constexpr std::size_t anywhere = 4 * kWindow;  // a reach so wide that all places are within it
    constexpr std::size_t memory = std::size_t{1} << 22;
    return tile_.build(windows, gram, kWindow, anywhere, memory, stop);
}

unsigned RestEdits::choose_gram(Stop stop) {
    constexpr std::size_t samples = 16;
    const std::size_t cells = b_.size() / kCell;
    std::vector<Bytes> windows;
    for (std::size_t i = 0; i < samples; ++i) windows.push_back(window(cells * i / samples));
    unsigned best = GramTile::shortest_gram;
    std::uint64_t best_sum = 0;
    for (unsigned gram = best; gram <= GramTile::longest_gram; ++gram) {
        if (!make_table(windows, gram, stop)) return best;
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < samples; ++i)
            sum += tile_.sum_of_least_edits(block_of(blocks() * i / samples), stop);
        // Longer ones are worse still.
        if (sum < best_sum) break;
        best_sum = sum;
        best = gram;
    }
    return best;
}

std::size_t RestEdits::least_edits(std::size_t number, std::size_t first, Cells cells, Stop stop) {
    GramTile::Mask wanted{};
    for (std::size_t cell = cells.begin; cell < cells.end; ++cell)
        wanted[(cell - first) / 64] |= std::uint64_t{1} << (cell - first) % 64;
    const GramTile::Mask left = tile_.may_be_within(block_of(number), kMostCounted, wanted, stop);
    return std::min(kMostCounted + 1, tile_.least_edits_of(left));
}

}  // namespace gputext
