// extension/inputs/known_tokens.hpp - reads arrays of tokens as numbers of a model's words

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
}

#include <cstdint>
#include <vector>

#include "cpp/base/vocabulary.hpp"

namespace gputext {

/// Whether a column of an inner query holds arrays of tokens: text[] or varchar[].
bool holds_tokens(TupleDesc columns, int column);

/// Raises the error that it does not, with a sentence about what is wanted.
[[noreturn]] void raise_no_tokens(TupleDesc columns, int column, const char* wanted);

/// Tokens that no word of a model is, of all arrays that were read.
class UnknownTokens {
public:
    void count(std::uint64_t tokens) { tokens_ += tokens; }
    /// Says in a NOTICE how many there were, if any.
    void report() const;

private:
    std::uint64_t tokens_ = 0;
};

/// The number of each element of the array `value`, in `numbers`; Vocabulary::kNone for a token
/// that the vocabulary does not have, which is counted, and for null. May raise an error.
void read_known_tokens(Datum value, const Vocabulary& vocabulary,
                       std::vector<std::uint32_t>& numbers, UnknownTokens& unknown);

}  // namespace gputext
