// extension/inputs/word_arguments.hpp - arguments of the functions of words, checked for null and
// range
//
// A preset is a name for values of several arguments. It gives those that are null.

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/thesaurus/feature_weights.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "extension/inputs/arguments.hpp"

namespace gputext {

struct WordPreset {
    const char* name;
    std::uint32_t window;
    WordMeasure measure;
    WordWeight weight;
    bool positions;
    double discount;
};

const WordPreset& preset_argument(const Arguments& arguments);
std::uint32_t window_argument(const Arguments& arguments, const WordPreset& preset);
WordMeasure measure_argument(const Arguments& arguments, const WordPreset& preset);
WordWeight weight_argument(const Arguments& arguments, const WordPreset& preset);
bool positions_argument(const Arguments& arguments, const WordPreset& preset);
double discount_argument(const Arguments& arguments, const WordPreset& preset);
/// Columns to keep; null for all is 0.
std::uint64_t features_argument(const Arguments& arguments);

}  // namespace gputext
