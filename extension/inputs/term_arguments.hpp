// extension/inputs/term_arguments.hpp - arguments shared by the functions of texts

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/terms/tfidf.hpp"
#include "extension/inputs/arguments.hpp"

namespace gputext {

/// The parameter config: a text search configuration; raises an error when there is no such one.
Oid config_argument(const Arguments& arguments);

/// min_document_frequency, and k1 and b where the function has them; the weighting is bm25 or
/// tf_idf. Raises an error for values out of range, and for others than the defaults without bm25,
/// for which the call would have said `wanted`.
TermParameters term_arguments(const Arguments& arguments, bool bm25, const char* wanted);

}  // namespace gputext
