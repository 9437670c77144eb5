// extension/values/toast_pages.hpp - reads vectors that are stored out of line page by page
//
// A value is found in its TOAST table by a scan of an index, which takes longer than to copy a few
// kilobytes, above all in many processes, which all go through the root of the index. Where most of
// a TOAST table is wanted, its pages are read in their order instead, each of them once and by one
// process: so it does not matter in which order the rows are. A chunk of a value tells the value's
// number, by which a hash table knows the row, and is copied straight to its place.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "extension/types/vector_type.hpp"
#include "extension/values/laid_out_bytes.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// Reads vectors of that type and so many dimensions into `elements`, which has been created, one
/// behind the other in the order of these rows, in this session and at most so many workers. False
/// where it is not worth it: nothing has been read then. Else `left` has the places among these
/// rows, ascending, of those that are still to be read: what is not stored as usual, what has an
/// element that is not finite, and what has not been found whole. Raises errors.
bool read_toast_pages(const StoredValues& values, ChosenRows rows, const VectorType& type,
                      std::size_t dimensions, unsigned workers, LaidOutBytes& elements,
                      std::vector<std::uint32_t>& left);

}  // namespace gputext
