// extension/types/ctph_value.hpp - stored form of the type ctph, and its input function

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/documents/ctph.hpp"

/// By it the type is known.
extern "C" Datum gputext_ctph_in(PG_FUNCTION_ARGS);

namespace gputext {

/// A value of type ctph: one signature (cpp/documents/ctph.hpp). The size of the second part
/// follows from that of the whole. On disk since 0.1.0.
struct StoredCtph {
    int32 vl_len_;
    uint8 level;
    uint8 unused;  // zero, so that equal values are equal bytes
    uint16 first_length;
    char letters[FLEXIBLE_ARRAY_MEMBER];

    std::size_t letters_size() const { return VARSIZE(this) - offsetof(StoredCtph, letters); }
};

/// A copy for cpp/; throws std::bad_alloc.
inline Ctph read_ctph(const StoredCtph& stored) {
    return {stored.level, stored.first_length, std::string(stored.letters, stored.letters_size())};
}

/// A signature in memory that an ereport may jump over.
struct PlainCtph {
    uint8 level;
    uint16 first_length;
    std::size_t letters_size;
    char letters[2 * Ctph::max_length];
};

void store(PlainCtph& plain, const Ctph& signature) noexcept;
StoredCtph* make_ctph(const PlainCtph& plain);

/// The argument max_length; raises an error when it is out of range.
std::size_t signature_length(int32 max_length);

inline const StoredCtph* ctph_argument(Datum datum) {
    return reinterpret_cast<const StoredCtph*>(PG_DETOAST_DATUM(datum));
}

}  // namespace gputext
