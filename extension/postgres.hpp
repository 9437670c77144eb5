// extension/postgres.hpp - PostgreSQL's headers, as every file of extension/ begins with them

#pragma once

extern "C" {
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
}
