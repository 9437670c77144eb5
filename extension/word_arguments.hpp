// extension/word_arguments.hpp - arguments that functions of words and their neighbours have in
// common; each raises an error for null and for what is out of range, where nothing else is said

#pragma once

#include "extension/postgres.hpp"

#include "cpp/word_similarity.hpp"
#include "cpp/word_weights.hpp"

namespace gputext {

WordMeasure measure_argument(FunctionCallInfo fcinfo, int argument);
WordWeight weight_argument(FunctionCallInfo fcinfo, int argument);
double discount_argument(FunctionCallInfo fcinfo, int argument);
/// Columns to keep; null for all is 0.
std::uint64_t features_argument(FunctionCallInfo fcinfo, int argument);
/// An integer of at least 1.
std::uint32_t count_argument(FunctionCallInfo fcinfo, int argument, const char* name);
bool bool_argument(FunctionCallInfo fcinfo, int argument, const char* name);

}  // namespace gputext
