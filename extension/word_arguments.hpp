// extension/word_arguments.hpp - arguments of the functions of words, checked for null and range

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
