// extension/base/postgres.hpp - PostgreSQL's headers, included first by every file of extension/

#pragma once

extern "C" {
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

// Macros of values of varying length: in a header of their own since PostgreSQL 16.
#if __has_include("varatt.h")
#include "varatt.h"
#endif
}
