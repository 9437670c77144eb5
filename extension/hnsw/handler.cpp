#include "extension/hnsw/handler.hpp"

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

#include <dlfcn.h>

#include <cstring>

#include "extension/hnsw/build.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/distance_names.hpp"

namespace gputext::hnsw {
namespace {

needs_fmgr_hook_type needs_hook_before = nullptr;
fmgr_hook_type hook_before = nullptr;

// pgvector's own functions, of all handlers that are called here: there is one in a session.
PGFunction handler_of_pgvector = nullptr;
ambuild_function build_of_pgvector = nullptr;
ambuildphasename_function phase_name_of_pgvector = nullptr;

IndexBuildResult* build(Relation table, Relation index, IndexInfo* info) {
    IndexBuildResult* const built = build_hnsw_wanted() ? build_index(table, index, info) : nullptr;
    return built != nullptr ? built : build_of_pgvector(table, index, info);
}

char* name_phase(int64 phase) {
    const char* const name = phase_name(phase);
    return name != nullptr ? pstrdup(name) : phase_name_of_pgvector(phase);
}

/// What the handler gave, to be changed. Since PostgreSQL 19 a handler gives what nobody may
/// change, and the server keeps the pointer: there is one copy then, for all indexes.
IndexAmRoutine* changeable(IndexAmRoutine* given) {
#if PG_VERSION_NUM >= 190000
    static IndexAmRoutine copy;
    copy = *given;
    return &copy;
#else
    return given;
#endif
}

/// In the place of hnswhandler().
Datum handler(FunctionCallInfo fcinfo) {
    const Datum answer = handler_of_pgvector(fcinfo);
    auto* const given = reinterpret_cast<IndexAmRoutine*>(DatumGetPointer(answer));
    if (given == nullptr || !IsA(given, IndexAmRoutine) || given->ambuild == nullptr) return answer;
    IndexAmRoutine* const method = changeable(given);
    build_of_pgvector = method->ambuild;
    method->ambuild = build;
    if (method->ambuildphasename != nullptr) {
        phase_name_of_pgvector = method->ambuildphasename;
        method->ambuildphasename = name_phase;
    }
    return PointerGetDatum(method);
}

/// Whether the function is hnswhandler() of the extension vector.
bool is_handler_of_hnsw(Oid function) {
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return false;
    const auto* const row = reinterpret_cast<const FormData_pg_proc*>(GETSTRUCT(tuple));
    bool is_it = row->prorettype == INDEX_AM_HANDLEROID && row->prolang == ClanguageId;
    if (is_it) {
        bool null;
        const Datum source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &null);
        is_it = !null && std::strcmp(TextDatumGetCString(source), "hnswhandler") == 0;
    }
    ReleaseSysCache(tuple);
    return is_it && belongs_to_extension(ProcedureRelationId, function, "vector");
}

bool needs_hook(Oid function) {
    return is_handler_of_hnsw(function) ||
           (needs_hook_before != nullptr && needs_hook_before(function));
}

void hook(FmgrHookEventType event, FmgrInfo* function, Datum* data) {
    if (event == FHET_START && function->fn_addr != handler &&
        is_handler_of_hnsw(function->fn_oid)) {
        handler_of_pgvector = function->fn_addr;
        function->fn_addr = handler;
    }
    if (hook_before != nullptr) hook_before(event, function, data);
}

}  // namespace

void take_part_in_builds() {
    needs_hook_before = needs_fmgr_hook;
    needs_fmgr_hook = needs_hook;
    hook_before = fmgr_hook;
    fmgr_hook = hook;
    // Indexes that the session has opened before have pgvector's functions. It forgets what it
    // knows of all relations, unless pgvector has not been loaded.
    if (dlsym(RTLD_DEFAULT, "hnswhandler") != nullptr && IsTransactionState())
        InvalidateSystemCaches();
}

}  // namespace gputext::hnsw
