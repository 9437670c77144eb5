// extension/index/row_sketcher.hpp - sketches of documents as PostgreSQL has them

#pragma once

#include "extension/base/postgres.hpp"

#include <array>

#include "extension/base/failure.hpp"
#include "extension/index/open_index.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext::index {

/// A sketch in memory: letters, and the grams behind them.
inline constexpr std::size_t kMostSketchBytes = SketchShape::letters + SketchShape::most_bins / 2;

/// Owns memory: made by make_owned().
class RowSketcher {
public:
    explicit RowSketcher(const OpenIndex& opened)
        : sketcher_(opened.models()), characters_(opened.characters()) {}

    /// Sketches a document that is not null; detoasts it in the current memory context. Raises an
    /// error if the statement is cancelled.
    SketchedDocument sketch(Datum document) {
        const varlena* const value = PG_DETOAST_DATUM_PACKED(document);
        SketchedDocument sketched{};
        attempt_or_raise([&] {
            sketched = sketcher_.sketch(bytes_of(value), characters_, bytes_.data(),
                                        bytes_.data() + SketchShape::letters, stop_on_interrupt());
        });
        return sketched;
    }

    /// The last sketch: letters, and the grams after them.
    const std::uint8_t* bytes() const { return bytes_.data(); }

private:
    DocumentSketcher sketcher_;
    const CharacterLengths& characters_;
    std::array<std::uint8_t, kMostSketchBytes> bytes_{};
};

}  // namespace gputext::index
