// extension/base/sql_function.hpp - definitions of C functions that SQL calls, and what they do
// with results of cpp/

#pragma once

#include "extension/base/postgres.hpp"

#include <utility>

#include "cpp/base/status.hpp"

/// Begins the definition of a C function that SQL calls, within extern "C". All else is hidden.
#define SQL_FUNCTION(name)     \
    PG_FUNCTION_INFO_V1(name); \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS)

/// Another name of such a function of this file, for SQL that was installed by it.
#define SQL_ALIAS(name, function) \
    PG_FUNCTION_INFO_V1(name);    \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS) __attribute__((alias(#function)))

namespace gputext {

/// Moves a result's value to its place. Returns the status of one that has none.
template <class T>
Status take_value(Result<T> result, T& place) {
    if (result.ok()) place = std::move(*result);
    return result.status();
}

}  // namespace gputext
