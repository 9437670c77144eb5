// cpp/terms/detail/inverted_index.hpp - inverted index: for each term the items that have it, in
// tiles of items
//
// A tile has so few items that the scores of all of them stay in a processor's first cache, and as
// little of the index that several queries find it in the second or third. How a term is kept
// depends on how many items have it:
//
//     dense       a number for every item of a tile: adding whole columns takes no positions. Only
//               where no weight is negative, as an item without the term gets + 0 then.
//     frequent  the positions in a tile, and the weights; and where each term's begin in the tile
//     rare      one list for all tiles, in the order of items: most tiles have none
//
// Weights are those of cpp/terms/detail/matrix.hpp divided by the root of the item's square, so
// that an item's weights have the square 1, and lie in [-1, 1]. For inner products the largest
// square of an item takes the place of each. What is not 0 is never stored as 0.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/terms/detail/matrix.hpp"

namespace gputext {

class InvertedIndex {
public:
    /// A dense weight is a whole number of these, above its value by less than one of them or below
    /// it by at most half of one.
    static constexpr double dense_unit = 1.0 / 65535;
    /// No other weight is stored as less than this, in magnitude.
    static constexpr float least_weight = 0x1p-40f;
    /// A tile has a multiple of row_step rows, those behind the last item included.
    static constexpr std::size_t row_step = 64;
    static constexpr std::size_t most_tile_rows = 8192;

    /// Bytes that the index of so many rows and elements takes at most, besides 24 bytes a term;
    /// dense terms take what is left of the limit.
    static std::size_t bytes_for(std::size_t rows, std::size_t stored) {
        return 16 * rows + 12 * stored;
    }

    /// Metric: cosine or inner_product.
    explicit InvertedIndex(Metric metric = Metric::cosine) : metric_(metric) {}

    /// Indexes the rows of the items that `rows` names; a row's position is its index in `rows`.
    /// Dense columns only where `negative` is false, in at most `dense_memory` bytes. O(stored
    /// elements) time. Error: cancelled.
    Status build(const Vectors& items, const TermMatrix& weights,
                 std::span<const std::uint32_t> rows, bool negative, std::size_t dense_memory,
                 Execution& execution);

    std::size_t size() const { return squares_.size(); }
    /// What divides the row's weights, squared: by cosine the square of the row's weights, to the
    /// bit as in cpp/knn/distance.hpp.
    double square(std::size_t position) const { return squares_[position]; }
    /// The same of all rows for inner products, and else 0.
    double common_square() const {
        return metric_ == Metric::inner_product && size() > 0 ? squares_[0] : 0;
    }

    std::size_t tile_rows() const { return tile_rows_; }
    std::size_t tiles() const { return tiles_.size(); }
    /// Rows of one tile.
    std::size_t rows_of(std::size_t tile) const {
        return std::min(tile_rows_, size() - tile * tile_rows_);
    }

    enum class Kind { none, dense, frequent, rare };
    struct Place {
        Kind kind;
        std::uint32_t number;  // among the terms of a kind
    };
    Place place(std::uint32_t term) const {
        const std::uint32_t slot = slots_[term];
        if (slot < dense_) return {Kind::dense, slot};
        if (slot < dense_ + frequent_) return {Kind::frequent, slot - dense_};
        if (slot != kNoSlot) return {Kind::rare, slot - dense_ - frequent_};
        return {Kind::none, 0};
    }

    /// Weights of a dense term in a tile's rows, with zeros up to tile_rows().
    const std::uint16_t* column(std::size_t tile, std::uint32_t dense) const {
        return tiles_[tile].columns.get() + dense * tile_rows_;
    }

    /// Postings of a frequent term: rows of the tile, ascending, and their weights.
    struct List {
        const std::uint16_t* rows;
        const float* weights;
        std::size_t size;
    };
    List list(std::size_t tile, std::uint32_t frequent) const {
        const Tile& of = tiles_[tile];
        const std::size_t begin = of.begins[frequent];
        return {of.rows.get() + begin, of.weights.get() + begin, of.begins[frequent + 1] - begin};
    }

    /// Posting of a rare term, in the order of positions.
    struct Posting {
        std::uint32_t position;
        float weight;
    };
    std::span<const Posting> rare(std::uint32_t rare) const {
        return {postings_.get() + rare_begins_[rare], rare_ends_[rare] - rare_begins_[rare]};
    }

private:
    static constexpr std::uint32_t kNoSlot = UINT32_MAX;

    struct Tile {
        std::vector<std::uint32_t> begins;
        std::unique_ptr<std::uint16_t[]> rows;
        std::unique_ptr<float[]> weights;
        std::unique_ptr<std::uint16_t[]> columns;
    };

    Status weigh(const TermMatrix& weights, std::span<const std::uint32_t> rows,
                 Execution& execution);
    void choose_tiles(std::size_t stored);
    void place_terms(std::vector<std::uint32_t>& frequencies, std::span<const double> factors,
                     bool negative, std::size_t dense_memory);
    Status fill_tile(const TermMatrix& weights, std::span<const std::uint32_t> rows,
                     std::size_t tile, Stop stop);
    Status sort_rare(Execution& execution);

    Metric metric_;
    std::vector<double> squares_;
    std::size_t tile_rows_ = 1;
    std::vector<std::uint32_t> slots_;  // by term: dense ones, then frequent ones, then rare ones
    std::uint32_t dense_ = 0, frequent_ = 0;
    std::vector<Tile> tiles_;
    std::vector<std::uint64_t> rare_begins_, rare_ends_;  // of postings_, by rare term
    std::unique_ptr<Posting[]> postings_;
};

}  // namespace gputext
