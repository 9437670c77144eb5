// extension/operators/merge_scan.hpp - reads the answers that knn_merge merges from tables, in
// parallel workers

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/knn/partial_answers.hpp"
#include "extension/rows/packed_rows.hpp"
#include "extension/rows/table_scans.hpp"

namespace gputext {

/// Where the columns of an answer are, and what of it is to be kept.
struct MergeColumns {
    Oid narrow_query, narrow_item;  // types that ids are widened from
    int distance;                   // the column
    std::size_t k;
};

/// Bigint as a number of the same order, and back.
inline std::uint64_t unsigned_id(std::int64_t id) {
    return static_cast<std::uint64_t>(id) ^ std::uint64_t{1} << 63;
}
inline std::int64_t signed_id(std::uint64_t id) {
    return static_cast<std::int64_t>(id ^ std::uint64_t{1} << 63);
}

/// The neighbours that each process has kept of what it has read. Functions raise errors.
class MergeScan {
public:
    /// Reads the tables, whose ids are integers. False, and nothing is read, where workers are not
    /// worth it, the neighbours to be kept do not fit into the limit, or a row has a null or a
    /// distance that is NaN: an error is to come of it, which the executor's rows lead to.
    bool read(const TableScans& scans, const MergeColumns& columns, std::size_t memory_limit);

    std::uint64_t rows() const { return rows_; }
    /// Calls visit(query, found) for the neighbours that a process has kept of a query, of which
    /// the items are unsigned_id().
    template <class Visit>
    void for_each(const Visit& visit) const {
        for (const std::unique_ptr<PackedBytes>& file : files_) {
            const std::uint8_t* at = file->data();
            const std::uint8_t* const end = at + file->size();
            while (at < end) {
                const auto* const kept = reinterpret_cast<const KeptQuery*>(at);
                const auto* const found = reinterpret_cast<const FoundItem*>(kept + 1);
                visit(kept->id, std::span(found, kept->count));
                at = reinterpret_cast<const std::uint8_t*>(found + kept->count);
            }
        }
    }
    void release();

    /// Precedes a query's neighbours in a process' file.
    struct KeptQuery {
        std::int64_t id;
        std::uint64_t count;
    };

private:
    std::vector<std::unique_ptr<PackedBytes>> files_;  // the session's, then the workers'
    DescriptorRoom room_;                              // for them
    std::uint64_t rows_ = 0;
};

}  // namespace gputext
