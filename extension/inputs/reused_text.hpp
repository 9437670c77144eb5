// extension/inputs/reused_text.hpp - makes values of type text, one after another in the same
// memory

#pragma once

#include "extension/base/postgres.hpp"

#include <cstring>
#include <string_view>

namespace gputext {

/// A text that is valid until the next one is made. Allocates in the current memory context, which
/// is the same at all calls.
class ReusedText {
public:
    Datum of(std::string_view bytes) {
        const std::size_t size = VARHDRSZ + bytes.size();
        if (size > room_) {
            room_ = 2 * size;
            text_ = static_cast<text*>(text_ == nullptr ? palloc(room_) : repalloc(text_, room_));
        }
        SET_VARSIZE(text_, size);
        std::memcpy(VARDATA(text_), bytes.data(), bytes.size());
        return PointerGetDatum(text_);
    }

private:
    text* text_ = nullptr;
    std::size_t room_ = 0;
};

}  // namespace gputext
