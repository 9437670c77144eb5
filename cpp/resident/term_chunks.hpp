// cpp/resident/term_chunks.hpp - requests for the terms of texts, which lie in chunks with words

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/resident/value_index.hpp"
#include "cpp/resident/value_request.hpp"

namespace gputext {

/// Makes the values of the smallest chunks missing, those with the fewest values of the request, so
/// that with the chunk of what is missing there are at most kMostTermChunks. `found`: the chunks
/// that the request holds, in the same order. O(values).
void leave_out_smallest(ValueRequest& request, std::vector<IndexedChunk*>& found);

/// Ok when values end one after the other, at multiples of 4 bytes, the last one at `bytes`, and
/// each has less than 4 GB.
Status check_ends(std::span<const std::uint64_t> ends, std::uint64_t bytes);

/// The file of AddTerms with the ends of values. Errors: invalid_argument when it is not sealed or
/// of that size, or as of check_ends().
Result<MappedFile> map_ends(int descriptor, std::size_t values, std::uint64_t bytes);

/// Sets the sizes of the values at `rows` by their ends.
void set_sizes(std::span<const std::uint64_t> ends, std::span<const std::uint32_t> rows,
               ValueRequest& request);

/// Writes what TakenTerms says of chunks and places, and seals the file. Nothing may be missing.
/// Errors: out_of_memory; io_error.
Status write_list(const ValueRequest& request, MemoryFile& list);

}  // namespace gputext
