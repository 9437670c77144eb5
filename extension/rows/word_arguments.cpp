#include "extension/rows/word_arguments.hpp"

#include <cstring>

#include "extension/rows/set_call.hpp"

namespace gputext {
namespace {

// What agrees best with people's judgement: docs/word-similarity.md has the figures.
constexpr WordPreset kPresets[] = {
    {"default", 5, WordMeasure::cosine, WordWeight::lin, false, 0.85},
    // Equations 3.7 and 3.8 of the 2015 thesis
    {"thesis", 3, WordMeasure::lin, WordWeight::lin, true, 0},
};

}  // namespace

const WordPreset& preset_argument(FunctionCallInfo fcinfo, int argument) {
    const char* const name = text_argument(fcinfo, argument, "preset");
    for (const WordPreset& preset : kPresets)
        if (std::strcmp(name, preset.name) == 0) return preset;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("preset must be 'default' or 'thesis', not \"%s\"", name)));
    pg_unreachable();
}

std::uint32_t window_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset) {
    if (PG_ARGISNULL(argument)) return preset.window;
    const std::uint32_t window = count_argument(fcinfo, argument, "window_size");
    if (window > CooccurrenceShape::kMostWindow)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("window_size must be at most %u, not %u",
                               CooccurrenceShape::kMostWindow, window)));
    return window;
}

WordMeasure measure_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset) {
    if (PG_ARGISNULL(argument)) return preset.measure;
    const char* const name = text_argument(fcinfo, argument, "measure");
    if (std::strcmp(name, "lin") == 0) return WordMeasure::lin;
    if (std::strcmp(name, "cosine") == 0) return WordMeasure::cosine;
    if (std::strcmp(name, "jaccard") == 0) return WordMeasure::jaccard;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("measure must be 'lin', 'cosine' or 'jaccard', not \"%s\"", name)));
    pg_unreachable();
}

WordWeight weight_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset) {
    if (PG_ARGISNULL(argument)) return preset.weight;
    const char* const name = text_argument(fcinfo, argument, "weight");
    if (std::strcmp(name, "lin") == 0) return WordWeight::lin;
    if (std::strcmp(name, "ppmi") == 0) return WordWeight::ppmi;
    if (std::strcmp(name, "count") == 0) return WordWeight::count;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("weight must be 'lin', 'ppmi' or 'count', not \"%s\"", name)));
    pg_unreachable();
}

bool positions_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset) {
    return PG_ARGISNULL(argument) ? preset.positions : PG_GETARG_BOOL(argument);
}

double discount_argument(FunctionCallInfo fcinfo, int argument, const WordPreset& preset) {
    if (PG_ARGISNULL(argument)) return preset.discount;
    const double discount = PG_GETARG_FLOAT8(argument);
    if (!(discount >= 0 && discount <= WeightParameters::kMostDiscount))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("discount must be from 0 to %g, not %g",
                               WeightParameters::kMostDiscount, discount)));
    return discount;
}

std::uint64_t features_argument(FunctionCallInfo fcinfo, int argument) {
    return PG_ARGISNULL(argument) ? 0 : count_argument(fcinfo, argument, "features");
}

std::uint32_t count_argument(FunctionCallInfo fcinfo, int argument, const char* name) {
    refuse_null(fcinfo, argument, name);
    const int32 count = PG_GETARG_INT32(argument);
    if (count < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must be at least 1, not %d", name, count)));
    return static_cast<std::uint32_t>(count);
}

}  // namespace gputext
