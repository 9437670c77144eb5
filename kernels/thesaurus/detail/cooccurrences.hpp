// kernels/thesaurus/detail/cooccurrences.hpp - cpp/thesaurus/cooccurrences.hpp on a device
//
// Gives the CPU's counts. Only positive offsets are looked for, one after the other: each
// gives pairs of words as keys (kernels/thesaurus/detail/pair_keys.hpp), which are sorted and whose
// runs are counted. Sorted again by the second word they are the opposite offset's. A row is its
// segments of all offsets one behind the other. Tokens are taken in chunks whose keys fit into
// memory, and the runs of chunks are merged.
//
// O(tokens * window) keys; about half of the time goes into sorting them. Memory: 13 bytes a key of
// a chunk for one offset, 21 where vocabularies have more than 131,072 words; 8 or 12 bytes for
// each different key of all, twice in the end; and 8 bytes a count of the answer.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/thesaurus/detail/feature_rows.hpp"

namespace gputext::gpu {

/// For those who measure, on the device.
struct CooccurrenceTimes {
    double emit_ms = 0, sort_ms = 0, runs_ms = 0, merge_ms = 0, transpose_ms = 0, rows_ms = 0;
    std::uint64_t keys = 0, chunks = 0;
};

/// Tokens that are on the device already.
struct DeviceTokens {
    const std::uint32_t* words = nullptr;
    const std::uint32_t* positions = nullptr;
    std::uint64_t size = 0;
};

/// Bytes of device memory that counting takes at least, and with which it takes one chunk.
struct CooccurrenceBytes {
    std::uint64_t least, good;
};
CooccurrenceBytes cooccurrence_bytes(const CooccurrenceShape& shape, std::uint64_t tokens);

/// Errors: invalid_argument for tokens or counts that the header does not allow; cancelled;
/// out_of_memory, which says how much is needed; device_error, device_lost. Waits for the stream.
Status count_words(const CooccurrenceShape& shape, const DeviceTokens& tokens,
                   const DeviceWork& work, Execution& execution, CountRowsMemory& rows,
                   CooccurrenceTimes* times = nullptr);

/// Counts tokens on the host, which are copied a chunk at a time.
Status count_words(const CooccurrenceShape& shape, const TokenStream& tokens,
                   const DeviceWork& work, UploadRing& ring, Execution& execution,
                   CountRowsMemory& rows, CooccurrenceTimes* times = nullptr);

/// Copies counts from and to the host.
Status upload_counts(const Cooccurrences& counts, const DeviceWork& work, UploadRing& ring,
                     Execution& execution, CountRowsMemory& rows);
Result<Cooccurrences> download_counts(const CountRows& rows, cudaStream_t stream,
                                      Execution& execution);

}  // namespace gputext::gpu
