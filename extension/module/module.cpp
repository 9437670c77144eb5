#include "extension/base/postgres.hpp"

#include "extension/base/failure.hpp"
#include "extension/hnsw/handler.hpp"
#include "extension/index/options.hpp"
#include "extension/planner/nearest_path.hpp"
#include "extension/planner/nearest_statement.hpp"
#include "extension/queries/bundle_plan.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/release.hpp"
#include "extension/server/settings.hpp"

extern "C" {
PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void _PG_init(void) {
    gputext::refuse_settings_of_connection();
    gputext::keep_barriers_pending();
    gputext::define_settings();
    gputext::index::keep_thresholds_fixed();
    gputext::remember_module_file();
    gputext::preload_supervisor();
    gputext::register_bundle_node();
    gputext::offer_nearest_paths();
    gputext::offer_nearest_statements();
    gputext::hnsw::take_part_in_builds();
}
}
