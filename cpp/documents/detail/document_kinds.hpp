// cpp/documents/detail/document_kinds.hpp - kinds of documents, by their characters

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext {

// ---- What tells kinds of documents apart: square roots of the rates of their characters ----

/// The square root of each letter cell's rate, in units of 1 / kRootUnit. Integers, so that every
/// machine finds the same model.
using LetterRoots = std::array<std::int16_t, kLetterCells>;

/// The roots of a document with these counts. Vectorised, like the next function.
template <class Count>
[[gnu::optimize("O3")]] void find_roots(std::span<const Count> letters, std::uint32_t length,
                                        LetterRoots& roots) {
    const float rate = 1.0f / static_cast<float>(std::max<std::uint32_t>(length, 1));
    for (std::size_t cell = 0; cell < kLetterCells; ++cell)
        roots[cell] = static_cast<std::int16_t>(
            __builtin_sqrtf(static_cast<float>(letters[cell]) * rate) * float{kRootUnit});
}

/// The squares of all roots of a document add up to kRootUnit * kRootUnit at most: no sum is too
/// large.
template <class Numbers>
[[gnu::optimize("O3")]] std::uint32_t square_distance(const LetterRoots& a, const Numbers& b) {
    std::uint32_t sum = 0;
    for (std::size_t cell = 0; cell < kLetterCells; ++cell) {
        // 16 bits, for instructions that multiply and add these.
        const auto apart = static_cast<std::int16_t>(a[cell] - static_cast<std::int16_t>(b[cell]));
        sum += static_cast<std::uint32_t>(apart * apart);
    }
    return sum;
}

using DocumentNumbers = std::vector<std::size_t>;

struct DocumentKind {
    LetterRoots typical;
    DocumentNumbers documents;
};

/// Divides documents into at most so many kinds by bisecting k-means: always the kind with the
/// largest `difficulty(documents)` is split, until none has any. Each document is of the kind whose
/// typical one is nearest; a kind may have no document. Deterministic. Calls `difficulty` on
/// several threads. Error: cancelled, and what `difficulty` throws.
Result<std::vector<DocumentKind>> document_kinds(
    std::span<const LetterRoots> documents, std::size_t most,
    const std::function<double(const DocumentNumbers&)>& difficulty, Execution& execution);

}  // namespace gputext
