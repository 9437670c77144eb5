// extension/base/postgres.hpp - PostgreSQL's headers, included first by every file of extension/

#pragma once

extern "C" {
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
}
