// extension/base/local_setting.hpp - settings that hold for a piece of code alone

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/guc.h"
}

namespace gputext {

/// Until AtEOXact_GUC() ends the caller's level of NewGUCNestLevel(), or an error does.
inline void set_locally(const char* name, const char* value) {
    set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

}  // namespace gputext
