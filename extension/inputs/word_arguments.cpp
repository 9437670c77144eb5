#include "extension/inputs/word_arguments.hpp"

#include <cstring>

namespace gputext {
namespace {

// What agrees best with people's judgement: docs/word-similarity.md has the figures.
constexpr WordPreset kPresets[] = {
    {"default", 5, WordMeasure::cosine, WordWeight::lin, false, 0.85},
    // Equations 3.7 and 3.8 of the 2015 thesis
    {"thesis", 3, WordMeasure::lin, WordWeight::lin, true, 0},
};

}  // namespace

const WordPreset& preset_argument(const Arguments& arguments) {
    const char* const name = arguments.text("preset");
    for (const WordPreset& preset : kPresets)
        if (std::strcmp(name, preset.name) == 0) return preset;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("preset must be 'default' or 'thesis', not \"%s\"", name)));
    pg_unreachable();
}

std::uint32_t window_argument(const Arguments& arguments, const WordPreset& preset) {
    if (arguments.is_null("window_size")) return preset.window;
    const std::uint32_t window = arguments.count("window_size");
    if (window > CooccurrenceShape::kMostWindow)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("window_size must be at most %u, not %u",
                               CooccurrenceShape::kMostWindow, window)));
    return window;
}

WordMeasure measure_argument(const Arguments& arguments, const WordPreset& preset) {
    if (arguments.is_null("measure")) return preset.measure;
    const char* const name = arguments.text("measure");
    if (std::strcmp(name, "lin") == 0) return WordMeasure::lin;
    if (std::strcmp(name, "cosine") == 0) return WordMeasure::cosine;
    if (std::strcmp(name, "jaccard") == 0) return WordMeasure::jaccard;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("measure must be 'lin', 'cosine' or 'jaccard', not \"%s\"", name)));
    pg_unreachable();
}

WordWeight weight_argument(const Arguments& arguments, const WordPreset& preset) {
    if (arguments.is_null("weight")) return preset.weight;
    const char* const name = arguments.text("weight");
    if (std::strcmp(name, "lin") == 0) return WordWeight::lin;
    if (std::strcmp(name, "ppmi") == 0) return WordWeight::ppmi;
    if (std::strcmp(name, "count") == 0) return WordWeight::count;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("weight must be 'lin', 'ppmi' or 'count', not \"%s\"", name)));
    pg_unreachable();
}

bool positions_argument(const Arguments& arguments, const WordPreset& preset) {
    return arguments.is_null("positions") ? preset.positions : arguments.flag("positions");
}

double discount_argument(const Arguments& arguments, const WordPreset& preset) {
    if (arguments.is_null("discount")) return preset.discount;
    const double discount = arguments.number("discount");
    if (!(discount >= 0 && discount <= WeightParameters::kMostDiscount))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("discount must be from 0 to %g, not %g",
                               WeightParameters::kMostDiscount, discount)));
    return discount;
}

std::uint64_t features_argument(const Arguments& arguments) {
    return arguments.is_null("features") ? 0 : arguments.count("features");
}

}  // namespace gputext
