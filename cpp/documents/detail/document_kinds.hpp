// cpp/documents/detail/document_kinds.hpp - kinds of documents, by their characters

#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/detail/letter_roots.hpp"

namespace gputext {

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
