#include "extension/types/trie_value.hpp"

extern "C" {
#include "access/detoast.h"
#include "utils/memutils.h"
}

#include <memory>

#include "cpp/trie/image.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"

namespace gputext {
namespace {

/// Dictionaries that one call site keeps open.
constexpr int kOpen = 4;

/// What tells a value from others without a look at all of it: where it is stored, or its checksum.
struct ValueKey {
    varatt_external stored;  // zeros for a value that lies in memory
    uint64 checksum, bytes;
};

/// An open dictionary and the memory that it lies in.
struct OpenTrie {
    ValueKey key;
    MemoryContext context;
    const Trie* trie;
};

struct OpenTries {
    OpenTrie tries[kOpen];
    int size, next;
    int last;  // the one used last
};

/// The owner of a dictionary for make_owned().
struct TrieOwner {
    std::unique_ptr<Trie> trie;
};

/// Whether the value has the header of an image in plain sight.
bool in_memory(const varlena* value) {
    return !VARATT_IS_EXTENDED(value) || VARATT_IS_SHORT(value);
}

ValueKey key_of(const varlena* value) {
    ValueKey key;
    memset(&key, 0, sizeof key);
    if (VARATT_IS_EXTERNAL_ONDISK(value)) {
        VARATT_EXTERNAL_GET_POINTER(key.stored, value);
    } else if (in_memory(value) && VARSIZE_ANY_EXHDR(value) >= sizeof(TrieHeader)) {
        TrieHeader header;
        memcpy(&header, VARDATA_ANY(value), sizeof header);
        key.checksum = header.checksum;
        key.bytes = VARSIZE_ANY_EXHDR(value);
    }
    return key;
}

/// A key that says nothing is like no other.
bool same(const ValueKey& a, const ValueKey& b) {
    return (a.bytes > 0 || OidIsValid(a.stored.va_valueid)) && memcmp(&a, &b, sizeof a) == 0;
}

OpenImage open(Datum datum, MemoryContext context) {
    MemoryContext before = MemoryContextSwitchTo(context);
    const varlena* value = PG_DETOAST_DATUM_COPY(datum);
    TrieOwner* owner = make_owned<TrieOwner>(context);
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            Result<std::unique_ptr<Trie>> opened = open_trie(image_of(value));
            if (!opened.ok()) return opened.status();
            owner->trie = std::move(*opened);
            return {};
        })) {
        if (failure.code != ErrorCode::invalid_argument) raise_failure(failure);
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("a value of type trie is broken"),
                        errdetail("In this value, %s.", failure.message)));
    }
    MemoryContextSwitchTo(before);
    return {owner->trie.get(), image_of(value)};
}

/// A place for one more; the one that was opened longest ago is closed for it.
OpenTrie& place_for_one(OpenTries& open_tries, MemoryContext parent) {
    OpenTrie& place = open_tries.tries[open_tries.next];
    if (open_tries.size == kOpen) {
        memset(&place.key, 0, sizeof place.key);
        place.trie = nullptr;
        MemoryContextReset(place.context);
    } else {
        place.context = AllocSetContextCreate(parent, "gputext trie", ALLOCSET_DEFAULT_SIZES);
        ++open_tries.size;
    }
    open_tries.last = open_tries.next;
    open_tries.next = (open_tries.next + 1) % kOpen;
    return place;
}

}  // namespace

varlena* new_trie_value(std::size_t size) {
    if (size > MaxAllocSize - VARHDRSZ)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a dictionary of %zu bytes is too large for a value", size),
                        errdetail("A value can have at most 1 GB.")));
    auto* const value = static_cast<varlena*>(palloc(size + VARHDRSZ));
    SET_VARSIZE(value, size + VARHDRSZ);
    return value;
}

const Trie& trie_argument(FunctionCallInfo fcinfo, int argument) {
    FmgrInfo* const function = fcinfo->flinfo;
    if (function->fn_extra == nullptr)
        function->fn_extra = MemoryContextAllocZero(function->fn_mcxt, sizeof(OpenTries));
    auto& open_tries = *static_cast<OpenTries*>(function->fn_extra);
    const Datum datum = PG_GETARG_DATUM(argument);
    const ValueKey key = key_of(reinterpret_cast<const varlena*>(DatumGetPointer(datum)));
    for (int i = 0; i < open_tries.size; ++i) {
        const int at = (open_tries.last + i) % open_tries.size;
        if (open_tries.tries[at].trie == nullptr || !same(key, open_tries.tries[at].key)) continue;
        open_tries.last = at;
        return *open_tries.tries[at].trie;
    }
    OpenTrie& place = place_for_one(open_tries, function->fn_mcxt);
    place.trie = open(datum, place.context).trie;
    place.key = key;
    return *place.trie;
}

OpenImage open_trie_value(Datum dictionary, MemoryContext context) {
    return open(dictionary, context);
}

}  // namespace gputext
