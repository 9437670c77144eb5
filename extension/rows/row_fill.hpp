// extension/rows/row_fill.hpp - reads the values of a column into their places, in parallel workers
//
// The session has kept the values (stored_values.hpp) and knows how long each of them will be.
// Processes take stretches of rows, fetch, unpack and check their values, and write them in large
// pieces.

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/documents/documents.hpp"
#include "extension/rows/laid_out_bytes.hpp"
#include "extension/rows/stored_values.hpp"
#include "extension/rows/vector_type.hpp"

namespace gputext {

/// Reads all values, which are vectors of that type and so many dimensions, into `elements`, one
/// behind the other. Raises errors. Returns the first row that is no such vector, or the number of
/// rows.
std::uint64_t fill_vectors(StoredValues& values, const VectorType& type, std::size_t dimensions,
                           LaidOutBytes& elements);

/// Reads all values, which are of type text or bytea, into `bytes`, one behind the other, and says
/// in `extents`, which is empty, where they lie. Raises errors.
void fill_documents(StoredValues& values, std::vector<Extent>& extents, LaidOutBytes& bytes);

}  // namespace gputext
