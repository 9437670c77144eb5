#include "extension/types/ctph_value.hpp"

#include <cstring>

#include "extension/base/failure.hpp"

namespace gputext {

std::size_t signature_length(int32 max_length) {
    if (max_length < 1 || max_length > static_cast<int32>(Ctph::max_length))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("max_length must be between 1 and %d, not %d",
                               static_cast<int>(Ctph::max_length), max_length)));
    return static_cast<std::size_t>(max_length);
}

void store(PlainCtph& plain, const Ctph& signature) noexcept {
    plain.level = signature.level;
    plain.first_length = signature.first_length;
    plain.letters_size = signature.letters.size();
    std::memcpy(plain.letters, signature.letters.data(), plain.letters_size);
}

StoredCtph* make_ctph(const PlainCtph& plain) {
    const std::size_t size = offsetof(StoredCtph, letters) + plain.letters_size;
    auto* stored = static_cast<StoredCtph*>(palloc0(size));
    SET_VARSIZE(stored, size);
    stored->level = plain.level;
    stored->first_length = plain.first_length;
    std::memcpy(stored->letters, plain.letters, plain.letters_size);
    return stored;
}

}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_ctph_in);

PGDLLEXPORT Datum gputext_ctph_in(PG_FUNCTION_ARGS) {
    const char* text = PG_GETARG_CSTRING(0);
    PlainCtph plain;
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            const Result<Ctph> signature = parse_ctph(text);
            if (!signature.ok()) return signature.status();
            store(plain, *signature);
            return {};
        }))
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                        errmsg("invalid input syntax for type ctph: \"%s\"", text),
                        errdetail("In this text, %s.", failure.message)));
    PG_RETURN_POINTER(make_ctph(plain));
}
}
