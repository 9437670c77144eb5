#include "extension/index/row_sketcher.hpp"

#include "extension/base/failure.hpp"
#include "extension/rows/text_arguments.hpp"

namespace gputext::index {

SketchedDocument RowSketcher::sketch(Datum document) {
    const varlena* const value = PG_DETOAST_DATUM_PACKED(document);
    SketchedDocument sketched{};
    attempt_or_raise([&] {
        sketched = sketcher_.sketch(bytes_of(value), characters_, bytes_.data(),
                                    bytes_.data() + SketchShape::letters, stop_on_interrupt());
    });
    return sketched;
}

}  // namespace gputext::index
