#include "extension/texts/text_source.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/indexing.h"
#include "catalog/pg_namespace_d.h"
#include "catalog/pg_ts_config.h"
#include "catalog/pg_ts_config_map.h"
#include "catalog/pg_ts_dict.h"
#include "catalog/pg_ts_template.h"
#include "commands/defrem.h"
#include "common/cryptohash.h"
#include "common/sha2.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tsearch/ts_cache.h"
#include "tsearch/ts_public.h"
#include "tsearch/ts_utils.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
}

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "extension/base/server_versions.hpp"
#include "extension/server/shared_state.hpp"
#include "extension/values/row_versions.hpp"

namespace gputext {
namespace {

/// To be raised with each change of what TextParser, TermReader or TokenReader make of a text.
constexpr std::uint64_t kVersionOfReaders = 1;

/// A clock of files may be behind that of the server by this, in microseconds.
constexpr TimestampTz kClockDifference = USECS_PER_SEC;

/// When the oldest dictionary that this process can have loaded may have been read.
TimestampTz loaded_since = 0;

/// PostgreSQL loads all dictionaries anew when it is told the same (ts_cache.c).
void note_change(Datum, CatalogueCache, uint32) {
    loaded_since = GetCurrentTimestamp();
}

void watch_dictionaries() {
    if (loaded_since != 0) return;
    CacheRegisterSyscacheCallback(TSDICTOID, note_change, 0);
    CacheRegisterSyscacheCallback(TSTEMPLATEOID, note_change, 0);
    loaded_since = MyStartTimestamp;
}

/// Puts values together to a number, which is 0 if one of them was not to be kept. Nobody can make
/// a configuration whose number is that of another one: it begins with the number of the server's
/// run, which no user knows.
class Source {
public:
    Source() : hash_(pg_cryptohash_create(PG_SHA256)) {
        if (hash_ == nullptr || pg_cryptohash_init(hash_) < 0) raise();
        add(kVersionOfReaders);
        add(server_run());
    }
    void add(const void* bytes, std::size_t size) {
        if (pg_cryptohash_update(hash_, static_cast<const uint8*>(bytes), size) < 0) raise();
    }
    void add(std::uint64_t number) { add(&number, sizeof number); }
    void add(const char* text) {
        add(std::strlen(text));
        add(text, std::strlen(text));
    }
    void add_version(HeapTuple row, std::uint64_t next) {
        add(latest_it_can_be(HeapTupleHeaderGetRawXmin(row->t_data), next));
    }
    void refuse() { refused_ = true; }
    bool refused() const { return refused_; }
    /// To be called once, at the end.
    std::uint64_t number() {
        uint8 digest[PG_SHA256_DIGEST_LENGTH];
        if (pg_cryptohash_final(hash_, digest, sizeof digest) < 0) raise();
        pg_cryptohash_free(hash_);
        std::uint64_t number;
        std::memcpy(&number, digest, sizeof number);
        return refused_ ? 0 : std::max<std::uint64_t>(1, number);
    }

private:
    [[noreturn]] static void raise() {
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("could not compute a hash")));
        pg_unreachable();
    }

    pg_cryptohash_ctx* hash_;  // which PostgreSQL frees after an error
    bool refused_ = false;
};

// ---- Files ----

struct FileOption {
    const char* name;
    const char* extension;
};

/// The options of PostgreSQL's templates that name files.
constexpr FileOption kFileOptions[] = {
    {"stopwords", "stop"}, {"dictfile", "dict"}, {"afffile", "affix"}, {"synonyms", "syn"}};

TimestampTz time_of(const timespec& time) {
    return (static_cast<TimestampTz>(time.tv_sec) -
            (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY) *
               USECS_PER_SEC +
           time.tv_nsec / 1000;
}

void add_file(const char* path, Source& source) {
    struct stat file;
    if (stat(path, &file) != 0) return source.refuse();
    const TimestampTz changed = std::max(time_of(file.st_mtim), time_of(file.st_ctim));
    if (changed + kClockDifference >= loaded_since) return source.refuse();
    for (const std::uint64_t number :
         {std::uint64_t{file.st_dev}, std::uint64_t{file.st_ino},
          static_cast<std::uint64_t>(file.st_size), static_cast<std::uint64_t>(file.st_mtim.tv_sec),
          static_cast<std::uint64_t>(file.st_mtim.tv_nsec),
          static_cast<std::uint64_t>(file.st_ctim.tv_sec),
          static_cast<std::uint64_t>(file.st_ctim.tv_nsec)})
        source.add(number);
}

void add_option(DefElem* option, Source& source) {
    for (const FileOption& file : kFileOptions)
        if (pg_strcasecmp(option->defname, file.name) == 0) {
            char* const path = get_tsearch_config_filename(defGetString(option), file.extension);
            add_file(path, source);
            pfree(path);
        }
}

// ---- Catalogues ----

/// Whether the template is one of those whose dictionaries depend on their options, the files that
/// these name, and a token alone.
bool is_known(Oid text_template) {
    if (text_template >= FirstNormalObjectId) return false;
    const HeapTuple row = SearchSysCache1(TSTEMPLATEOID, ObjectIdGetDatum(text_template));
    if (!HeapTupleIsValid(row)) return false;
    const auto* const form = reinterpret_cast<const FormData_pg_ts_template*>(GETSTRUCT(row));
    bool known = false;
    for (const char* name : {"simple", "synonym", "ispell", "snowball"})
        known = known || std::strcmp(NameStr(form->tmplname), name) == 0;
    known = known && form->tmplnamespace == PG_CATALOG_NAMESPACE;
    ReleaseSysCache(row);
    return known;
}

void add_dictionary(Oid dictionary, std::uint64_t next, Source& source) {
    const HeapTuple row = SearchSysCache1(TSDICTOID, ObjectIdGetDatum(dictionary));
    if (!HeapTupleIsValid(row)) return source.refuse();
    const auto* const form = reinterpret_cast<const FormData_pg_ts_dict*>(GETSTRUCT(row));
    if (!is_known(form->dicttemplate)) source.refuse();
    source.add(dictionary);
    source.add(form->dicttemplate);
    source.add_version(row, next);
    bool none;
    const Datum options = SysCacheGetAttr(TSDICTOID, row, Anum_pg_ts_dict_dictinitoption, &none);
    if (!none && !source.refused()) {
        source.add(TextDatumGetCString(options));
        ListCell* cell;
        foreach (cell, deserialize_deflist(options))
            add_option(static_cast<DefElem*>(lfirst(cell)), source);
    }
    ReleaseSysCache(row);
}

/// Which dictionaries take which tokens, in which order.
void add_mappings(Oid config, std::uint64_t next, Source& source) {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_ts_config_map_mapcfg, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(config));
    const Relation table = table_open(TSConfigMapRelationId, AccessShareLock);
    const Relation index = index_open(TSConfigMapIndexId, AccessShareLock);
    const SysScanDesc scan = systable_beginscan_ordered(table, index, nullptr, 1, &key);
    List* dictionaries = NIL;
    for (HeapTuple row; (row = systable_getnext_ordered(scan, ForwardScanDirection)) != nullptr;) {
        const auto* const form = reinterpret_cast<const FormData_pg_ts_config_map*>(GETSTRUCT(row));
        source.add(static_cast<std::uint64_t>(form->maptokentype));
        source.add(static_cast<std::uint64_t>(form->mapseqno));
        source.add(form->mapdict);
        source.add_version(row, next);
        dictionaries = list_append_unique_oid(dictionaries, form->mapdict);
    }
    systable_endscan_ordered(scan);
    index_close(index, AccessShareLock);
    table_close(table, AccessShareLock);
    ListCell* cell;
    foreach (cell, dictionaries) add_dictionary(lfirst_oid(cell), next, source);
}

void add_config(Oid config, Source& source) {
    const std::uint64_t next = U64FromFullTransactionId(ReadNextFullTransactionId());
    const HeapTuple row = SearchSysCache1(TSCONFIGOID, ObjectIdGetDatum(config));
    if (!HeapTupleIsValid(row)) return source.refuse();
    const Oid parser = reinterpret_cast<const FormData_pg_ts_config*>(GETSTRUCT(row))->cfgparser;
    ReleaseSysCache(row);
    const TSParserCacheEntry* const functions = lookup_ts_parser_cache(parser);
    if (parser >= FirstNormalObjectId || functions->prsstart.fn_addr != prsd_start) source.refuse();
    source.add(static_cast<std::uint64_t>(GetDatabaseEncoding()));
    source.add(config);
    add_mappings(config, next, source);
}

}  // namespace

std::uint64_t source_of_texts(TextKind kind, Oid config) {
    Source source;
    source.add(static_cast<std::uint64_t>(kind));
    if (kind == TextKind::terms_of_text || kind == TextKind::words_of_text) {
        watch_dictionaries();
        AcceptInvalidationMessages();
        add_config(config, source);
    } else if (kind == TextKind::terms_of_weights) {
        source.refuse();
    }
    return source.number();
}

}  // namespace gputext
