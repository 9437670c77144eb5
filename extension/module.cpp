#include "extension/postgres.hpp"

#include "extension/daemon.hpp"
#include "extension/release.hpp"
#include "extension/settings.hpp"

extern "C" {
PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void _PG_init(void) {
    gputext::define_settings();
    gputext::remember_module_file();
    gputext::preload_supervisor();
}
}
