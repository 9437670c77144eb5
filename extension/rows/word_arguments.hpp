// extension/rows/word_arguments.hpp - arguments of the functions of words, checked for null and
// range
//
// A preset is a name for values of several arguments. It gives those that are null.

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/thesaurus/feature_weights.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

namespace gputext {

struct WordPreset {
    const char* name;
    std::uint32_t window;
    WordMeasure measure;
    WordWeight weight;
    bool positions;
    double discount;
};

const WordPreset& preset_argument(FunctionCallInfo fcinfo, int argument);
std::uint32_t window_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset);
WordMeasure measure_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset);
WordWeight weight_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset);
bool positions_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset);
double discount_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset);
/// Columns to keep; null for all is 0.
std::uint64_t features_argument(FunctionCallInfo fcinfo, int argument);
/// An integer of at least 1.
std::uint32_t count_argument(FunctionCallInfo fcinfo, int argument, const char* name);

}  // namespace gputext
