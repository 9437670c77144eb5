// extension/base/server_versions.hpp - what releases of PostgreSQL do differently
//
// Whatever depends on the release is here and in postgres.hpp, under a name that says what it is
// for.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "tsearch/ts_locale.h"
}

namespace gputext {

/// The number of this session's process, from 0 to below MaxBackends: unlike any other's that runs
/// at the same time.
inline int session_number() {
#if PG_VERSION_NUM >= 170000
    return MyProcNumber;
#else
    return MyBackendId - 1;
#endif
}

/// A new kind of locks in shared memory, under the name that pg_stat_activity shows.
inline int new_kind_of_locks([[maybe_unused]] const char* name) {
#if PG_VERSION_NUM >= 190000
    return LWLockNewTrancheId(name);
#else
    return LWLockNewTrancheId();
#endif
}

/// Tells this process the name of a kind of locks that any process made, where the server does not
/// keep it.
inline void name_kind_of_locks([[maybe_unused]] int kind, [[maybe_unused]] const char* name) {
#if PG_VERSION_NUM < 190000
    LWLockRegisterTranche(kind, name);
#endif
}

/// Whether extension/rows/plain_text.hpp has been compared with the release's default parser.
inline constexpr bool kKnowsDefaultParser = PG_VERSION_NUM < 200000;

/// Whether the character of the server's encoding is a letter or a digit.
inline bool is_letter_or_digit(const char* character) {
#if PG_VERSION_NUM >= 180000
    return t_isalnum(character);
#else
    return t_isalpha(character) || t_isdigit(character);
#endif
}

}  // namespace gputext
