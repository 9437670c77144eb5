#include "extension/postgres.hpp"

#include "extension/daemon.hpp"
#include "extension/settings.hpp"

extern "C" {
PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void _PG_init(void) {
    gputext::define_settings();
    gputext::preload_supervisor();
}
}
