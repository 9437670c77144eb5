// cpp/documents/near_duplicate_check.hpp - whether documents are near a document, one by one

#pragma once

#include <memory>

#include "cpp/base/characters.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// A document that others are compared with, prepared once. Keeps scratch memory between calls; one
/// thread uses it at a time.
class NearDuplicateCheck {
public:
    NearDuplicateCheck();
    ~NearDuplicateCheck();
    NearDuplicateCheck(NearDuplicateCheck&&) noexcept;
    NearDuplicateCheck& operator=(NearDuplicateCheck&&) noexcept;

    /// O(size), and a copy of the document. 0 <= threshold < 0.5. When `stop` says so it ends
    /// early, and is_near() is cancelled until prepare() has come to its end.
    void prepare(Bytes document, const CharacterLengths& lengths, double threshold, Stop stop = {});

    /// The document given to prepare(), for a caller that asks whether it is the same one.
    Bytes document() const;
    double threshold() const;

    /// Whether edit_rate(distance, sum of lengths in characters) <= threshold: the same answer as
    /// edit_rate(a, b) <= threshold from SQL. Lengths first, then grams of four characters, which
    /// exclude most unrelated documents of 2,000 characters within 2 to 3 us, then the distance
    /// within the limit. `other` is read with the lengths of characters given to prepare().
    /// Errors: cancelled, out_of_memory.
    Result<bool> is_near(Bytes other, Stop stop = {});

private:
    struct Scratch;
    std::unique_ptr<Scratch> scratch_;
};

}  // namespace gputext
