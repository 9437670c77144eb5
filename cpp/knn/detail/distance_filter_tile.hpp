// cpp/knn/detail/distance_filter_tile.hpp - inner loop of the distance filter, for
// cpp/knn/detail/distance_filter.cpp alone
//
// Included once for each instruction set, inside a namespace of its own and with
// GPUTEXT_TILE_TARGET as the functions' attributes: what is inlined into a function must have its
// target. Without include guard for that reason.

/// Set::T, Set::V with Set::width elements, and how to compute with them. A tile has Set::queries
/// rows and Set::vectors * Set::width columns.
template <class Set, Score score>
[[gnu::optimize("O3")]] GPUTEXT_TILE_TARGET std::size_t scan(
    const typename Set::T* queries, const typename Set::T* panels, const typename Set::T* offsets,
    std::size_t dimensions, std::size_t begin, std::size_t end,
    PassedScores<typename Set::T>& passed) {
    using V = typename Set::V;
    constexpr std::size_t columns = Set::vectors * Set::width;
    for (std::size_t panel = begin; panel < end; ++panel) {
        for (std::size_t q = 0; q < Set::queries; ++q)
            if (passed.count[q] + columns > passed.capacity[q]) return panel;

        V sums[Set::queries][Set::vectors];
        const typename Set::T* offset = offsets + panel * columns;
#pragma GCC unroll 8
        for (std::size_t q = 0; q < Set::queries; ++q)
#pragma GCC unroll 4
            for (std::size_t v = 0; v < Set::vectors; ++v)
                sums[q][v] = Set::load(offset + v * Set::width);
        const typename Set::T* item = panels + panel * columns * dimensions;
        const typename Set::T* query = queries;
        for (std::size_t i = 0; i < dimensions; ++i) {
            V items[Set::vectors];
#pragma GCC unroll 4
            for (std::size_t v = 0; v < Set::vectors; ++v)
                items[v] = Set::load(item + v * Set::width);
#pragma GCC unroll 8
            for (std::size_t q = 0; q < Set::queries; ++q) {
                const V value = Set::everywhere(query[q]);
#pragma GCC unroll 4
                for (std::size_t v = 0; v < Set::vectors; ++v)
                    sums[q][v] = score == Score::product
                                     ? Set::minus_product(sums[q][v], value, items[v])
                                     : Set::plus_magnitude(sums[q][v], value, items[v]);
            }
            item += columns;
            query += Set::queries;
        }
#pragma GCC unroll 8
        for (std::size_t q = 0; q < Set::queries; ++q) {
            const V gate = Set::everywhere(passed.gate[q]);
#pragma GCC unroll 4
            for (std::size_t v = 0; v < Set::vectors; ++v) {
                const unsigned mask = Set::not_above(sums[q][v], gate);
                if (mask == 0) continue;
                const auto position = static_cast<std::uint32_t>(panel * columns + v * Set::width);
                std::size_t& count = passed.count[q];
                Set::append(mask, sums[q][v], position, passed.scores[q] + count,
                            passed.positions[q] + count);
                count += static_cast<std::size_t>(std::popcount(mask));
            }
        }
    }
    return end;
}

template <class Set>
DistanceFilter<typename Set::T> filter_of(Score score) {
    return {{Set::queries},
            {Set::vectors * Set::width},
            score == Score::product ? scan<Set, Score::product> : scan<Set, Score::magnitude>};
}
