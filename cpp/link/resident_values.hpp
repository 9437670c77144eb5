// cpp/link/resident_values.hpp - columns that gputextd keeps, so that sessions read them once
//
// A value that is stored apart from its row is immutable, and its row has a pointer to it: the
// table that the value is stored in, and a number. gputextd keeps such values, checked and packed,
// by their pointers. A session runs its inner query, and asks for what the query's rows point to:
//
//     session   FindValues, with the pointers
//     gputextd  FoundValues: which ones are missing
//     session   reads the missing ones; KeepValues, with their bytes
//     gputextd  KeptValues
//     session   TakeValues, unless it has read all of them by itself
//     gputextd  TakenValues, with the bytes of all of them
//
// Each of these may come at any time when no job of the connection runs, and FindValues begins
// anew. What a session finds stays there for it until it has all of the bytes, by TakenValues or
// since every value was missing, asks for other values, or closes. From then on it stays there as
// long as gputextd keeps it for everybody, which is also how long TakeValues may come again.
//
// When a value that is kept is the one that a row points to: a number may be given to another value
// when the first one is gone and the counter of numbers has gone round, the same number of such a
// table when the table is gone, and that of a database, too. Each value is kept with the session's
// horizon, the oldest transaction that was running when the session took the snapshot by which it
// read the value, and each pointer is asked for with the latest transaction that can have made the
// row, that table or its database (`since`). A value is only used where `since` precedes the
// horizon. extension/rows/row_versions.hpp has the proof that the row then points to this value and
// to no other one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/vectors.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/type_list.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

enum class ValueForm : std::uint8_t { vector, document };
constexpr ValueForm last_of(ValueForm) {
    return ValueForm::document;
}

/// What values are alike, so that one job may read them.
struct ValueKind {
    std::uint32_t database = 0;
    ValueForm form = ValueForm::vector;
    ElementType element = ElementType::float32;  // of vectors
    std::uint64_t dimensions = 0;                // the same; 0 of documents

    static void fields(auto& archive, auto& self) {
        archive(self.database, self.form, self.element, self.dimensions);
    }
    friend auto operator<=>(const ValueKind&, const ValueKind&) = default;
};

/// Where a session's row points to, in the file of FindValues.
struct ValuePointer {
    /// As `since`: a value that must be neither kept nor found, since nothing is known of its row
    /// or the value has no pointer.
    static constexpr std::uint64_t never = UINT64_MAX;

    std::uint32_t table = 0;   // that the value is stored in
    std::uint32_t number = 0;  // of the value in it
    std::uint64_t since = never;
    std::uint64_t size = 0;  // bytes, when it is packed
};

/// File: ValuePointer[values], a sealed memfd or a plain file.
struct FindValues {
    static constexpr std::uint16_t type = 40;
    /// Of the server's run. Transactions that a crash has undone may come again, so that values of
    /// another run are forgotten first.
    std::uint64_t run = 0;
    std::uint64_t horizon = 0;
    ValueKind kind;
    std::uint32_t values = 0;

    static void fields(auto& archive, auto& self) {
        archive(self.run, self.horizon, self.kind, self.values);
    }
    static constexpr std::size_t files() { return 1; }
};

/// File, where some are missing but not all: u32 missing[missing], the numbers of their rows in
/// ascending order, sealed.
struct FoundValues {
    static constexpr std::uint16_t type = 41;
    std::uint32_t values = 0;
    std::uint32_t missing = 0;

    static void fields(auto& archive, auto& self) { archive(self.values, self.missing); }
    bool consistent() const { return missing <= values; }
    std::size_t files() const { return missing > 0 && missing < values ? 1 : 0; }
};

/// Files: the bytes of the values that were missing, one behind the other, in sealed memfds. The
/// session must not change them any more.
struct KeepValues {
    static constexpr std::uint16_t type = 42;
    std::uint64_t bytes = 0;
    PartsShape parts = {};

    static void fields(auto& archive, auto& self) { archive(self.bytes, self.parts); }
    bool consistent() const { return bytes <= kMostStored && parts.hold(bytes); }
    std::size_t files() const { return parts.parts; }
};

/// `resident`: what MatrixShape calls these files from now on, or 0 where they are not kept as they
/// are.
struct KeptValues {
    static constexpr std::uint16_t type = 43;
    std::uint64_t resident = 0;

    static void fields(auto& archive, auto& self) { archive(self.resident); }
};

/// When no value is missing any more.
struct TakeValues {
    static constexpr std::uint16_t type = 44;
    static void fields(auto&, auto&) {}
};

/// Files: the bytes of all values, one behind the other in the order of FindValues, sealed.
struct TakenValues {
    static constexpr std::uint16_t type = 45;
    std::uint64_t bytes = 0;
    PartsShape parts = {};
    std::uint64_t resident = 0;  // as in KeptValues; 0: the files are this session's alone

    static void fields(auto& archive, auto& self) {
        archive(self.bytes, self.parts, self.resident);
    }
    bool consistent() const { return bytes <= kMostStored && parts.hold(bytes); }
    std::size_t files() const { return parts.parts; }
};

/// What is kept of one table of values, in the file of ResidentTables.
struct ResidentTable {
    std::uint32_t database = 0;
    std::uint32_t table = 0;
    std::uint64_t values = 0;
    std::uint64_t bytes = 0;
    std::uint64_t device_bytes = 0;  // on all devices
    std::uint64_t hits = 0;          // values that were found since the table's first one was kept
    std::uint64_t misses = 0;        // values that were asked for, could have been kept, and missed
    double idle_seconds = 0;         // since one was asked for
};

struct AskResidentTables {
    static constexpr std::uint16_t type = 46;
    static void fields(auto&, auto&) {}
};

/// File: ResidentTable[tables], sealed; none without tables.
struct ResidentTables {
    static constexpr std::uint16_t type = 47;
    std::uint32_t tables = 0;
    std::uint64_t bytes = 0;  // that values take in all
    std::uint64_t limit = 0;  // that they may take

    static void fields(auto& archive, auto& self) { archive(self.tables, self.bytes, self.limit); }
    std::size_t files() const { return tables > 0 ? 1 : 0; }
};

/// Forgets what is kept of a table of values; of all tables of the database where `table` is 0.
struct ForgetValues {
    static constexpr std::uint16_t type = 48;
    std::uint32_t database = 0;
    std::uint32_t table = 0;

    static void fields(auto& archive, auto& self) { archive(self.database, self.table); }
};

struct ForgottenValues {
    static constexpr std::uint16_t type = 49;
    std::uint64_t values = 0;

    static void fields(auto& archive, auto& self) { archive(self.values); }
};

/// The requests, and the replies to them in the same order.
using ValueRequests = TypeList<FindValues, KeepValues, TakeValues, AskResidentTables, ForgetValues>;
using ValueReplies =
    TypeList<FoundValues, KeptValues, TakenValues, ResidentTables, ForgottenValues>;

}  // namespace gputext
