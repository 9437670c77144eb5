// kernels/strings/pair_search.hpp - near pairs of strings, rows beside columns, on a device

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/strings/string_distance.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/strings/coded_strings.hpp"
#include "kernels/strings/detail/string_pairs.hpp"

namespace gputext::gpu {

/// Strings on the device, and what they are looked at with.
class DeviceStrings {
public:
    /// Keys: of the strings by their numbers, or none. Rows get planes, too. The copies are under
    /// way on the ring's stream when it returns.
    Status upload(StringMetric metric, const CodedStrings& strings,
                  std::span<const std::uint32_t> keys, bool are_rows, unsigned bits,
                  UploadRing& ring, Execution& execution, cudaStream_t stream);
    StringSide side() const;
    const StringGroup* groups() const { return groups_.data(); }

    static std::uint64_t bytes(StringMetric metric, const CodedStrings& strings, bool are_rows,
                               unsigned bits);

private:
    std::uint32_t places_ = 0;
    DeviceBuffer<std::uint16_t> lengths_, codes_, excess_, letter_excess_;
    DeviceBuffer<std::uint64_t> begins_, planes_, plane_begins_;
    DeviceBuffer<std::uint32_t> numbers_, trigrams_, keys_;
    DeviceBuffer<uint4> masks_, letters_;
    DeviceBuffer<StringGroup> groups_;
};

/// The farthest neighbor that is wanted of each of some rows, as in StringSearch.
struct RowLimits {
    std::vector<double> distances;
    std::vector<std::uint32_t> numbers;
};

/// One search; set(), then limit(), perhaps limit_by_nearest(), then run().
class PairSearch {
public:
    PairSearch(const DeviceWork& work, UploadRing& ring, Execution& execution)
        : work_(work), ring_(ring), execution_(execution) {}
    ~PairSearch() {
        cudaStreamSynchronize(ring_.stream());
        cudaStreamSynchronize(work_.stream);
    }
    PairSearch(const PairSearch&) = delete;

    struct Keys {
        std::span<const std::uint32_t> rows, columns;  // by the strings' numbers; or none
    };
    /// `columns` null: the rows are the columns, and each pair is wanted once. Views that live as
    /// long. Errors: out_of_memory, which says how much is needed; cancelled; device_error.
    Status set(StringMetric metric, unsigned bits, const CodedStrings& rows,
               const CodedStrings* columns, const Keys& keys);

    /// By row, a column before which no pair of this row and of those behind it is wanted: the
    /// first place of a tile, and no less than that of the row before. After set() with columns.
    void begin_columns(std::vector<std::uint32_t> first) { first_columns_ = std::move(first); }

    /// Wants all pairs of at most this distance.
    Status limit(double radius);
    /// Lowers the limit of each row to about the distance of its k-th neighbor, never below it.
    Status limit_by_nearest(std::size_t k);

    /// Takes the pairs of some rows within their limits, in no order; of them only some where
    /// `limits` is there, which it may then lower for those that are still to come. The rows are
    /// kBlockRows or a multiple of it, but for the last. It counts the steps of its phase; an error
    /// ends the search.
    using Take = std::function<Status(const PlaceRange& rows, const std::vector<StringPair>& pairs,
                                      RowLimits* limits)>;
    /// Hands on all pairs within the limits. With `nearest` limits are asked for again and again
    /// where there are many pairs, and without it where there are too many for the host at once.
    Status run(bool nearest, const Take& take);

private:
    /// Some pairs of a search.
    struct Part {
        PlaceRange rows, columns;
        TileChoice tiles;
    };

    std::uint32_t rows_at_once() const;
    std::uint32_t first_column(std::uint32_t row) const;
    std::uint32_t splits_of(const PlaceRange& rows, std::uint32_t columns) const;
    Status find(const Part& part, std::vector<StringPair>& pairs, bool& fit);
    Status find_in_parts(const Part& part, const Take& take, std::vector<StringPair>& pairs);
    Status find_nearest(const Part& part, const Take& take, std::vector<StringPair>& pairs,
                        bool& fit);
    Status lower_limits(const PlaceRange& rows, const std::vector<StringPair>& pairs,
                        const Take& take);
    Status copy_limits(const PlaceRange& rows, RowLimits& limits, cudaMemcpyKind direction);

    DeviceWork work_;
    UploadRing& ring_;
    Execution& execution_;
    StreamEvent event_;
    DeviceStrings rows_, columns_;
    StringSearch search_{};
    std::vector<std::uint32_t> first_columns_;  // or none
    std::uint64_t bytes_left_ = 0;
    DeviceBuffer<double> limits_;
    DeviceBuffer<std::uint32_t> limit_numbers_;
    DeviceBuffer<StringPair> pairs_;
    DeviceBuffer<StringCandidate> left_;
    DeviceBuffer<unsigned long long> found_;  // pairs, left
    std::uint64_t last_found_ = 0;
    double column_weight_ = 0;   // how many columns of few symbols take as long
    double longest_launch_ = 0;  // of a part, in seconds
};

}  // namespace gputext::gpu
