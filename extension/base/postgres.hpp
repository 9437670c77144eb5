// extension/base/postgres.hpp - PostgreSQL's headers, included first by every file of extension/

#pragma once

// PostgreSQL's header of locales includes ICU's, which declare templates unless they are told not
// to. Not all minor releases tell them: 16.2 does not.
#ifndef U_SHOW_CPLUSPLUS_API
#define U_SHOW_CPLUSPLUS_API 0
#endif

extern "C" {
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

// Macros of values of varying length: in a header of their own since PostgreSQL 16.
#if __has_include("varatt.h")
#include "varatt.h"
#endif
}
