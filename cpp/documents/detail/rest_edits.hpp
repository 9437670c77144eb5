// cpp/documents/detail/rest_edits.hpp - lower bounds of the edits that a long string, and each rest
// of it, takes to become another one
//
// A string a is cut into blocks, and a string b into cells. On any way of at most `limit` edits
// from a to b a block begins beside a place of b in some cell near its diagonal. Grams of the block
// that do not overlap and do not occur in the cell, and as far behind it as the block reaches with
// so many edits, need an edit each. So the block takes at least as many edits as the cell that
// lacks fewest of its grams says, and blocks add up. (Grams with places as in gram_filter.hpp, of
// Xiao, Wang and Lin, Ed-Join, 2008; sums over blocks as a bound for the rest of a way as in A*,
// Hart, Nilsson and Raphael 1968.)

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/detail/gram_filter.hpp"

namespace gputext {

class RestEdits {
public:
    static constexpr std::size_t block = 1024;  // characters

    /// Strings with a byte a character, as folded_character() makes them. Requires |a| <= |b| and
    /// limit >= |b| - |a|. Time: about 15 ns a character, and 3 ns a character more for each
    /// further 262,144 characters within the limit. Memory: 2 MB. Ends as soon as it is certain
    /// that the limit is exceeded. False if stopped.
    bool assign(Bytes a, Bytes b, std::size_t limit, Stop stop);

    /// Forgets all bounds: every one is 0.
    void clear() { rest_.clear(); }

    /// Edits of the whole string: at least so many, if the distance is within the limit at all.
    /// limit + 1 if it certainly is not.
    std::size_t whole() const { return rest_.empty() ? 0 : rest_.front(); }

    /// A lower bound of the edits behind the first `row` characters of a, on any way of at most
    /// `limit` edits.
    std::size_t behind(std::size_t row) const {
        const std::size_t next = (row + block - 1) / block;
        return next < rest_.size() ? rest_[next] : 0;
    }

private:
    static constexpr std::size_t kCell = 512;
    /// Edits of a block are counted up to this number.
    static constexpr std::size_t kMostCounted = block / 4;
    static constexpr std::size_t kWindow = kCell + block + kMostCounted;

    struct Cells {
        std::size_t begin, end;
    };

    std::size_t blocks() const { return a_.size() / block; }
    Bytes block_of(std::size_t number) const { return a_.subspan(number * block, block); }
    /// The cell, and what a block that begins in it may reach.
    Bytes window(std::size_t cell) const;
    /// The cells beside which a block may begin.
    Cells cells_beside(std::size_t number) const;
    bool make_table(std::span<const Bytes> windows, unsigned gram, Stop stop);
    /// The length of grams that tells some blocks and windows apart best.
    unsigned choose_gram(Stop stop);
    /// The least edits of a block that begins in one of these cells, of the tile from `first` on.
    std::size_t least_edits(std::size_t number, std::size_t first, Cells cells, Stop stop);

    Bytes a_, b_;
    std::size_t slack_ = 0, difference_ = 0;
    GramTile tile_{best_simd()};
    std::vector<std::size_t> rest_;  // by block: edits of it and of all behind it
};

}  // namespace gputext
