// cpp/records/record_pairs.hpp - all pairs of records at or above a match weight, without blocking
//
// A match weight is a sum over fields, so a pair at or above the threshold must have enough of it in
// some of them. Each field gets a cut; the cuts and the prior's weight together are below the
// threshold. So every pair that is at or above it has, in at least one field, a weight above the
// field's cut: it is found among the pairs of records whose values have such a level. Of all cuts
// that allow this those are chosen with which the fewest pairs have to be looked at. What all
// fields say at most about a pair, by bounds that take a few instructions each, leaves few pairs to
// compare exactly.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/records/field_values.hpp"
#include "cpp/records/linkage_model.hpp"

namespace gputext {

/// What decides which pairs may be found: records with equal numbers, none of which is kNullValue.
using RecordKey = std::span<const std::uint32_t>;

struct PairSearchParameters {
    double min_weight = 0;
    /// Only pairs that are equal in one of these keys; all pairs where there is none.
    std::span<const RecordKey> keys;
    /// So many pairs of records that agree in a field are looked at as they are; of more, those
    /// are looked at that agree in enough of the other fields.
    std::uint64_t few_pairs = std::uint64_t{1} << 14;
    /// Of more pairs that agree in a field, a thread looks at so many at a time, about.
    std::uint64_t task_pairs = std::uint64_t{1} << 28;
    /// Bytes that the search may take for records and distinct values.
    std::size_t memory_limit = SIZE_MAX;
};

/// A pair that was found: the first record comes before the second one.
struct FoundPair {
    std::uint32_t first, second;
    double weight;
    const std::int8_t* levels;  // of each field
};

/// What the search did.
struct PairSearchReport {
    std::uint64_t looked_at = 0;  // pairs, some perhaps several times
    std::uint64_t compared = 0;   // of these exactly
    bool looked_at_all = false;   // as no cuts would have left out enough
};

/// Calls found(pair, worker) once for each pair of records whose match weight is at least the
/// parameters', on the execution's threads, in no order; a worker's calls come one after the other.
/// The model has been checked, and its comparisons for the kinds of the fields, which are in the
/// same order. The same pairs, weights and levels on any number of threads.
/// Time: O(pairs looked at), some nanoseconds each, and similar values of the fields that need
/// them. Memory, within its limit: 64 bytes for each record, 8 for each record and field, 40 for each
/// distinct value. Errors: cancelled; out_of_memory; memory_limit; those of found().
using PairFound = std::function<Status(const FoundPair& pair, unsigned worker)>;
Status find_record_pairs(const LinkageModel& model, const Records& records,
                         const PairSearchParameters& parameters, Execution& execution,
                         const PairFound& found, PairSearchReport& report);

/// The number of each record's combination of values in several fields, or kNullValue where one of
/// them is null. O(rows * fields). Error: cancelled.
Result<std::vector<std::uint32_t>> combined_key(std::span<const FieldValues* const> fields,
                                                Stop stop);

}  // namespace gputext
