// tests/support/learned_models.hpp - models of sketches, learned from texts

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cpp/documents/sketch_model_learner.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

inline std::vector<OwnedSketchModel> learn(const SketchModelLearner& learner, std::size_t bins,
                                           std::size_t most_models, unsigned threads = 1) {
    Execution execution(threads);
    Result<std::vector<OwnedSketchModel>> models = learner.learn(bins, most_models, execution);
    EXPECT_TRUE(models.ok());
    return std::move(*models);
}

/// Of texts in UTF-8.
inline std::vector<OwnedSketchModel> learn(const std::vector<std::string>& texts, std::size_t bins,
                                           std::size_t most_models) {
    SketchModelLearner learner;
    for (const std::string& text : texts) learner.add(bytes_of(text), CharacterLengths::utf8());
    return learn(learner, bins, most_models);
}

}  // namespace gputext::testing
