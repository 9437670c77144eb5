#include "kernels/knn/earlier_search.hpp"

#include <algorithm>
#include <limits>

#include "cpp/knn/knn.hpp"
#include "kernels/knn/detail/neighbor_search.hpp"

namespace gputext::gpu {
namespace {

constexpr std::size_t kMostTileRows = 16384;
constexpr std::size_t kLeastTileRows = 256;
constexpr std::size_t kSmallBuffers = 1 << 20;

}  // namespace

bool EarlierSearch::has_kernels_for(std::size_t k, const Vectors& values) {
    return !values.sparse() && k <= kMostShortK;
}

NeighborLists::Shape EarlierSearch::shape() const {
    const std::size_t k = std::min(k_, values_.rows);
    NeighborLists::Shape shape = short_lists(static_cast<std::uint32_t>(k), values_.rows);
    shape.scored = fp16_helps_;
    return shape;
}

std::size_t EarlierSearch::bytes_of_tile_row(std::size_t per_row, bool fp16) const {
    NeighborLists::Shape with = shape();
    with.scored = fp16;
    return per_row + DeviceQueries::bytes_per_row(values_.dimensions) +
           NeighborLists::bytes_per_query(with) + 34 * sizeof(std::uint32_t) +
           (fp16 ? Fp16Search::bytes(values_).per_query : 0);
}

std::size_t EarlierSearch::bytes_of_rows(bool fp16) const {
    const Fp16Search::Bytes more = fp16 ? Fp16Search::bytes(values_) : Fp16Search::Bytes{};
    return kSmallBuffers + values_.rows * (sizeof(double) + more.per_item) + more.samples;
}

std::size_t EarlierSearch::least_bytes(std::size_t per_row) const {
    return bytes_of_rows(false) +
           std::min(kLeastTileRows, values_.rows) * bytes_of_tile_row(per_row, false);
}

DeviceRows EarlierSearch::rows_of(std::size_t begin, std::size_t end) const {
    DeviceRows rows = rows_;
    rows.elements = rows_.row_bytes(begin);
    rows.rows = static_cast<std::uint32_t>(end - begin);
    return rows;
}

Status EarlierSearch::prepare(const DeviceRows& rows, std::size_t per_row, const DeviceWork& work,
                              Execution& execution) {
    rows_ = rows;
    stream_ = work.stream;
    const auto largest = largest_magnitude(values_, "item", execution);
    if (!largest.ok()) return largest.status();
    if (work.bytes < least_bytes(per_row))
        return too_little_memory("linking rows takes", least_bytes(per_row), work.bytes);
    Fp16FilterDevice device;
    GPUTEXT_TRY(device.look());
    const std::size_t least_tile = std::min(kLeastTileRows, values_.rows);
    fp16_helps_ = Fp16SpaceChoice::usable(metric_, values_, *largest) &&
                  device.can_filter(Fp16Space::padded_of(values_.dimensions)) &&
                  values_.rows > std::max<std::size_t>(Fp16Search::kLeastItems, 8 * k_) &&
                  work.bytes >= bytes_of_rows(true) + least_tile * bytes_of_tile_row(per_row, true);
    tile_rows_ = std::min(
        {(work.bytes - bytes_of_rows(fp16_helps_)) / bytes_of_tile_row(per_row, fp16_helps_),
         kMostTileRows, values_.rows});

    const auto tile = static_cast<std::uint32_t>(tile_rows_);
    GPUTEXT_TRY(lists_.allocate(shape(), tile, stream_));
    GPUTEXT_TRY(query_elements_.allocate(tile_rows_ * values_.dimensions, stream_));
    GPUTEXT_TRY(query_squares_.allocate(tile_rows_, stream_));
    GPUTEXT_TRY(squares_.allocate(values_.rows, stream_));
    GPUTEXT_TRY(rescored_.allocate(1, stream_));
    if (fp16_helps_) {
        GPUTEXT_TRY(fp16_.prepare(metric_, values_, device, nullptr, stream_));
        GPUTEXT_TRY(fp16_.allocate(tile_rows_, values_.rows));
    }
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(rescored_.data(), 0, sizeof(unsigned long long), stream_),
                    "clearing a count"));
    GPUTEXT_TRY(row_squares(rows_, squares_.data(), stream_));
    return fp16_helps_ ? fp16_.load_items(rows_, 0) : Status();
}

std::size_t EarlierSearch::end_of_tile(std::size_t begin, std::size_t end) const {
    std::size_t rows = tile_rows_;
    // The first rows have fewer before them than they want, which lists have room for: all are
    // compared. Then half precision does not pay so far.
    if (begin == 0)
        rows = std::min<std::size_t>(rows, shape().capacity);
    else if (begin < Fp16Search::kLeastItems)
        rows = std::min<std::size_t>(rows, Fp16Search::kLeastItems - begin);
    return std::min(end, begin + rows);
}

Status EarlierSearch::search(std::size_t begin, std::size_t end, Execution& execution) {
    const auto count = static_cast<std::uint32_t>(end - begin);
    const auto first = static_cast<std::uint32_t>(begin);
    tile_ = {count, static_cast<std::uint32_t>(values_.dimensions), query_elements_.data(),
             query_squares_.data(), nullptr};
    GPUTEXT_TRY(prepare_queries(metric_, rows_of(begin, end), query_elements_.data(),
                                query_squares_.data(), stream_));
    GPUTEXT_TRY(lists_.reset(count, std::numeric_limits<double>::infinity()));
    NeighborSearch search(
        lists_, nullptr, rescored_.data(), [] { return Status(); }, execution, stream_);
    const DirectFilterInput input{metric_, tile_, rows_, 0, squares_.data(), first};
    const bool fp16 =
        fp16_helps_ && begin >= std::max<std::size_t>(Fp16Search::kLeastItems, 8 * k_);
    const QuerySelection all{nullptr, count};
    if (!fp16) {
        GPUTEXT_TRY(search.search_directly(input, all, 0, first, true));
        GPUTEXT_TRY(search.search_directly(input, all, first, first + count, begin == 0));
        return execution.checkpoint(0);
    }
    StreamTimer timer(false, stream_);
    std::uint64_t escalated = 0;
    GPUTEXT_TRY(fp16_.load_queries(tile_));
    GPUTEXT_TRY(search.search(input, fp16_, 0, first, true, timer, escalated));
    GPUTEXT_TRY(search.search(input, fp16_, first, first + count, false, timer, escalated));
    return execution.checkpoint(0);
}

}  // namespace gputext::gpu
