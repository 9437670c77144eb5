// extension/inputs/passage_arguments.hpp - arguments that functions of passages and of shingles have
// in common

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>

#include "cpp/passages/passage_texts.hpp"
#include "extension/inputs/arguments.hpp"

namespace gputext {

/// unit, fold_case and fold_blanks. Raises an error for another unit.
PassageForm passage_form_argument(const Arguments& given);

/// max_pairs; raises an error for less than 1.
std::uint64_t max_pairs_argument(const Arguments& given);

}  // namespace gputext
