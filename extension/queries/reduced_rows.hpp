// extension/queries/reduced_rows.hpp - the rows of a query, reduced by the processes that read them
//
// A function that needs only a part of what its inner query gives, as the nearest items of each
// query, need not have all rows come to the session. Each process that runs the query's plan, the
// session and its parallel workers, has a reducer, which takes in the rows that this process gets,
// and leaves what there is to be known of them in a file of the session's.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "extension/queries/bundle_plan.hpp"
#include "extension/queries/row_reducer.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// To be owned by a memory context. Functions raise errors.
class ReducedRows {
public:
    /// Runs the plan of a query, whose node is given the reduction. False, and nothing is there,
    /// where a reducer has refused a row, or the system does not let a worker have the session's
    /// file.
    bool run(const BundlePlan& plan, const char* sql, const RowReduction& reduction);

    /// That the reducers have taken in.
    std::uint64_t rows() const { return rows_; }
    /// Processes that may have left something.
    std::size_t processes() const { return files_.size(); }
    /// What the reducer of a process has left; valid until release().
    std::span<const std::uint8_t> output(std::size_t process) const {
        return {files_[process]->data(), files_[process]->size()};
    }
    /// As PackedBytes::release().
    void release();

private:
    std::vector<std::unique_ptr<PackedBytes>> files_;
    DescriptorRoom room_;  // for them
    std::uint64_t rows_ = 0;
};

}  // namespace gputext
