// extension/values/row_fill.hpp - reads the values of a column into their places, in parallel
// workers
//
// The session has stored the values (stored_values.hpp) and knows how long each of them will be.
// Processes take stretches of rows, fetch, unpack and check their values, and write them in large
// pieces.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/documents/documents.hpp"
#include "extension/types/vector_type.hpp"
#include "extension/values/laid_out_bytes.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// Reads the values of these rows, which are vectors of that type and so many dimensions, into
/// `elements`, one behind the other. Raises errors. Returns the first row that is no such vector,
/// or the number of all rows.
std::uint64_t fill_vectors(StoredValues& values, ChosenRows rows, const VectorType& type,
                           std::size_t dimensions, LaidOutBytes& elements);

/// Says in `extents`, which is empty, where the documents of these rows lie when they lie one
/// behind the other. Raises errors. Returns the end of the last one.
std::uint64_t lay_out_documents(const StoredValues& values, ChosenRows rows,
                                std::vector<Extent>& extents);

/// Reads the values of these rows, which are of type text or bytea, into `bytes`, where `extents`
/// says, which lay_out_documents() has filled. Raises errors.
void fill_documents(StoredValues& values, ChosenRows rows, std::span<const Extent> extents,
                    LaidOutBytes& bytes);

}  // namespace gputext
