#include "cpp/records/linkage_model.hpp"

#include <cmath>
#include <string>

namespace gputext {

double LevelProbabilities::match_weight() const {
    return std::log2(m / u);
}

double LinkageModel::prior_weight() const {
    return std::log2(prior / (1 - prior));
}

double match_probability(double match_weight) {
    return 1 / (1 + std::exp2(-match_weight));
}

Status check_model(const LinkageModel& model) {
    const auto wrong = [](std::string message) {
        return Status(ErrorCode::invalid_argument, std::move(message));
    };
    if (!(model.prior > 0 && model.prior < 1))
        return wrong("the prior probability of a match must be above 0 and below 1");
    if (model.fields.empty()) return wrong("the model has no fields");
    if (model.fields.size() > kMostFields)
        return wrong("the model has " + std::to_string(model.fields.size()) +
                     " fields, more than " + std::to_string(kMostFields));
    for (const FieldModel& field : model.fields) {
        const FieldComparison& comparison = field.comparison;
        if (field.levels.size() != comparison.conditions.size() + 1)
            return wrong("field \"" + comparison.field + "\" has " +
                         std::to_string(field.levels.size()) + " levels and " +
                         std::to_string(comparison.conditions.size()) + " conditions");
        for (const LevelProbabilities& level : field.levels)
            if (!(level.m > 0 && level.m <= 1 && level.u > 0 && level.u <= 1))
                return wrong("m and u of field \"" + comparison.field +
                             "\" must be above 0 and at most 1");
        if (field.term_frequencies && comparison.conditions[0].kind != ConditionKind::exact)
            return wrong("term frequencies need \"exact\" as the first condition of field \"" +
                         comparison.field + "\"");
    }
    return {};
}

FieldWeights::FieldWeights(const FieldModel& model, const FieldValues& values) {
    for (const LevelProbabilities& level : model.levels) of_level_.push_back(level.match_weight());
    if (!model.term_frequencies) return;
    const std::vector<std::uint32_t> counts = values.frequencies(0, values.rows());
    std::uint64_t total = 0;
    for (const std::uint32_t count : counts) total += count;
    for (const std::uint32_t count : counts)
        by_frequency_.push_back(std::log2(
            model.levels.back().m / (static_cast<double>(count) / static_cast<double>(total))));
}

}  // namespace gputext
