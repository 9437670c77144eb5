// extension/index/row_sketcher.hpp - sketches of documents as PostgreSQL has them

#pragma once

#include "extension/base/postgres.hpp"

#include <array>

#include "extension/index/insert.hpp"

namespace gputext::index {

/// Owns memory: made by make_owned().
class RowSketcher {
public:
    explicit RowSketcher(const OpenIndex& opened)
        : sketcher_(opened.models()), characters_(opened.characters()) {}

    /// Of a document that is not null; detoasts it in the current memory context. Raises an error
    /// if the statement is cancelled.
    SketchedDocument sketch(Datum document);

    /// The last one: letters, and the grams behind them.
    const std::uint8_t* bytes() const { return bytes_.data(); }

private:
    DocumentSketcher sketcher_;
    const CharacterLengths& characters_;
    std::array<std::uint8_t, kMostSketchBytes> bytes_{};
};

}  // namespace gputext::index
