// cpp/documents/detail/general_rates.hpp - how often characters and bigrams occur in documents
//
// Source: "bench/run sketch_rates" on 24,000 documents: abstracts of Medline, programs in five
// languages, documentation and headers of Debian packages, novels, texts in six other languages.

#pragma once

#include <array>
#include <cstdint>

#include "cpp/documents/sketch_model.hpp"

namespace gputext {

/// Of documents' rates (in kRateUnit characters).
struct CellRate {
    std::uint16_t mean, deviation;
};

extern const std::array<CellRate, kLetterCells> kGeneralLetters;
extern const std::array<CellRate, kGramCells> kGeneralGrams;

}  // namespace gputext
