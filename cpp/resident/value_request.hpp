// cpp/resident/value_request.hpp - values that a session has asked for, and where they lie

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/resident_values.hpp"
#include "cpp/resident/resident_chunk.hpp"

namespace gputext {

/// Where one value of a request lies.
struct ValuePlace {
    static constexpr std::uint32_t missing = UINT32_MAX;

    std::uint32_t chunk = missing;  // of those that the request holds
    std::uint32_t size = 0;         // bytes, of terms
    std::uint64_t offset = 0;       // in the chunk
    std::uint64_t horizon = 0;      // of the value: it may be found where `since` is below
};

/// One connection's values, from FindValues to the next one or to the end of the connection. It
/// holds the chunks that they lie in, so that these stay when the store gives them up. Used by one
/// thread at a time. Takes 48 bytes a value.
struct ValueRequest {
    FindValues asked;
    std::span<const ValuePointer> pointers;  // asked.values of them, whose sizes have been checked
    MappedFile pointer_file;                 // that they lie in where nobody can change it
    std::vector<ValuePointer> pointer_copy;  // or else a copy
    std::vector<ValuePlace> places;          // as many
    std::vector<std::shared_ptr<const ResidentChunk>> chunks;
    std::uint64_t bytes = 0;          // of all values; 0 of terms
    std::uint64_t missing_bytes = 0;  // of those that no chunk holds so far; 0 of terms
    std::uint32_t missing = 0;        // how many these are
    std::uint64_t found_bytes = 0;    // of those that were found at the beginning
    std::uint64_t number = 0;         // of all requests that there have been; 0: there is none
    /// The chunk that has all values, once the request is at its end and holds nothing itself.
    std::uint64_t ended_as = 0;

    /// Bytes of a value; of terms only where it is not missing.
    std::uint64_t size_of(std::size_t value) const {
        return has_words(asked.kind.form) ? places[value].size : pointers[value].size;
    }

    /// Whether this value may be resident for others: whoever finds it by its horizon, and by
    /// this `since`, sees the same value.
    bool may_add(std::size_t value) const {
        const std::uint64_t since = pointers[value].since;
        return since != ValuePointer::never && since < places[value].horizon;
    }
};

/// How many bytes values of a kind have in all; 0 of terms, whose sizes pointers do not say.
/// Errors: invalid_argument for dimensions that no vector has, a size that no value of the kind
/// has, a source of values that are no terms, or more bytes than any machine has; cancelled.
Result<std::uint64_t> sum_of_sizes(const ValueKind& kind, std::span<const ValuePointer> pointers,
                                   Stop stop);

/// What a FindValues asks for, by the file that came with it; nothing is found yet. Errors:
/// invalid_argument for a file of another size, or as of sum_of_sizes(); cancelled; out_of_memory.
Result<ValueRequest> read_request(const FindValues& message, int pointers, Stop stop);

/// The chunk that is these values and nothing else, in their order; null where there is none.
std::shared_ptr<const ResidentChunk> chunk_of_all(const ValueRequest& request);

}  // namespace gputext
