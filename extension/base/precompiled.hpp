// extension/base/precompiled.hpp - the headers that most files of extension/ include, compiled once
//
// The Makefile puts this before every file. Each file includes what it needs all the same.

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/base/precompiled.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
}
