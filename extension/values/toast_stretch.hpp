// extension/values/toast_stretch.hpp - fetches values that lie side by side in a TOAST table by one
// scan of its index
//
// PostgreSQL fetches each value that is stored out of line by a scan of its own, which opens the
// TOAST table and its index, and goes down the index. That takes longer than to copy a value of a
// few kilobytes, above all in many processes, which all go through the root of the index. Values of
// rows that were inserted one after the other have numbers one after the other.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/htup.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"
}

#include <cstddef>
#include <cstdint>

#include "extension/values/stored_values.hpp"

namespace gputext {

/// A few values at a time, in one process. Functions raise errors.
class ToastStretch {
public:
    /// Values of a stretch at most.
    static constexpr std::size_t kMost = 4096;

    /// To be called in a memory context that outlives this object.
    ToastStretch();

    /// Fetches what lies side by side of so many values, numbers[0] and so on of all of them; from
    /// `first` on where `numbers` is null. What was fetched before is given back.
    void fetch(StoredValueReader& values, const std::uint32_t* numbers, std::uint64_t first,
               std::size_t count);
    /// The i-th value of the stretch, as its table has it or as it was fetched, which may be
    /// compressed. Valid until the next call of fetch().
    Datum at(std::size_t i) const;

    /// Ends all scans. To be called at the end, but not after an error.
    void close();

private:
    /// A value that is out of line.
    struct Wanted {
        Oid table;
        Oid number;
        std::uint32_t i;     // of the stretch
        std::uint32_t size;  // bytes that are stored
        char* begin;         // where they go
        std::uint32_t arrived;
    };

    void add(std::size_t i, const StoredValue& value);
    void make_room();
    void fetch_run(Wanted* begin, Wanted* end);
    void open(Oid table);
    void take_chunk(HeapTuple chunk, Wanted*& wanted, const Wanted* end) const;

    StoredValueReader* values_ = nullptr;
    const std::uint32_t* numbers_ = nullptr;
    std::uint64_t first_ = 0;
    MemoryContext context_;
    Wanted* wanted_;
    std::size_t count_ = 0;  // of the wanted ones
    varlena** fetched_;      // by i; null for what was not fetched
    char* room_ = nullptr;   // that values are fetched into; kept from stretch to stretch
    std::size_t room_size_ = 0;
    std::size_t room_used_ = 0;
    Oid table_ = InvalidOid;  // that is open
    Relation relation_ = nullptr;
    Relation* indexes_ = nullptr;
    int index_count_ = 0, valid_index_ = 0;
};

}  // namespace gputext
