// cpp/link/resident_values.hpp - resident values: columns that gputextd keeps, so that
// sessions read them once
//
// A value that is stored apart from its row is immutable, and its row has a pointer to it: the
// table that the value is stored in, and a number. A row is immutable, too: of a value that lies
// within it, its place and its column are such a number. gputextd keeps values, checked and packed,
// by their pointers. A session runs its inner query, and asks for what the query's rows point to:
//
//     session   FindValues, with the pointers
//     gputextd  FoundValues: which ones are missing
//     session   reads the missing ones; AddValues, with their bytes
//     gputextd  AddedValues
//     session   TakeValues, unless it has read all of them by itself
//     gputextd  TakenValues, with the bytes of all of them
//     session   AwaitValues, where gputextd is still filling the files and it needs the bytes
//     gputextd  AwaitedValues
//
// Files that are still being filled are not sealed, and a session must not read them before they
// are. It may name them in a job at once: a device may have the values already.
//
// Of texts and tsvectors, what a session has made of them is kept: their terms, as numbers of a
// list of words. Their sizes are not known before they have been read, and come with them:
//
//     session   reads the missing ones; AddTerms, with their terms and the list of words
//     gputextd  AddedValues
//     session   TakeTerms
//     gputextd  TakenTerms, with the chunks that the terms lie in, each with its words, and where
//               in them the terms of each row are
//
// A session that knows that its rows are those of an earlier statement, and what gputextd called
// the bytes of their values then, need not say the pointers again:
//
//     session   TakeResident
//     gputextd  TakenResident, with the bytes of all of them if it still keeps them
//
// Each of these may come at any time when no job of the connection runs, and FindValues begins
// anew. What a session finds stays there for it until it has all of the bytes, by TakenValues or
// since every value was missing, asks for other values, or closes. From then on it stays there as
// long as gputextd keeps it for everybody, which is also how long TakeValues may come again. Terms
// stay there until they are taken, once, even if every value was missing.
//
// When a resident value is the one that a row points to: a number may be given to another value
// when the first one is gone and the counter of numbers has gone round, the place of a row to
// another one when the row is gone, the number of a table when the table is gone, and that of a
// database, too. Each value is kept with the session's
// horizon, the oldest transaction that was running when the session took the snapshot by which it
// read the value, and each pointer is asked for with the latest transaction that can have made the
// row, that table or its database (`since`). A value is only used where `since` precedes the
// horizon. extension/values/row_versions.hpp has the proof that the row then points to this value
// and to no other one.

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

/// What the bytes of a value are. Words are numbers of their chunk's list of words.
///
/// counted_terms     u32 n, u32 words[n], each word once, ascending, int32 counts[n]
/// word_positions    u32 positions that the text takes, u32 n, n times u32 word and u32 position;
///                   positions are counted from 1
enum class ValueForm : std::uint8_t { vector, document, counted_terms, word_positions };
constexpr ValueForm last_of(ValueForm) {
    return ValueForm::word_positions;
}
/// Whether values are terms, which come by AddTerms and TakeTerms; else by AddValues and
/// TakeValues.
constexpr bool has_words(ValueForm form) {
    return form == ValueForm::counted_terms || form == ValueForm::word_positions;
}

/// What values are alike, so that one job may read them.
struct ValueKind {
    std::uint32_t database = 0;
    ValueForm form = ValueForm::vector;
    ElementType element = ElementType::float32;  // of vectors
    std::uint64_t dimensions = 0;                // the same; 0 of others
    std::uint64_t source = 0;  // of terms: of what type, and how they were parsed; 0 of others

    static void fields(auto& archive, auto& self) {
        archive(self.database, self.form, self.element, self.dimensions, self.source);
    }
    friend auto operator<=>(const ValueKind&, const ValueKind&) = default;
};

/// Where a session's row points to, in the file of FindValues.
struct ValuePointer {
    /// As `since`: a value that must be neither resident nor found, since nothing is known of its
    /// row or the value has no pointer.
    static constexpr std::uint64_t never = UINT64_MAX;

    std::uint32_t table = 0;   // that the value is stored in
    std::uint32_t size = 0;    // bytes, when it is packed; 0 of terms
    std::uint64_t number = 0;  // of the value in the table
    std::uint64_t since = never;
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
struct AddValues {
    static constexpr std::uint16_t type = 42;
    std::uint64_t bytes = 0;
    PartsShape parts = {};

    static void fields(auto& archive, auto& self) { archive(self.bytes, self.parts); }
    bool consistent() const { return bytes <= kMostStored && parts.hold(bytes); }
    std::size_t files() const { return parts.parts; }
};

/// `resident`: what MatrixShape calls these files from now on, or 0 where they are not kept as they
/// are.
struct AddedValues {
    static constexpr std::uint16_t type = 43;
    std::uint64_t resident = 0;

    static void fields(auto& archive, auto& self) { archive(self.resident); }
};

/// When no value is missing any more.
struct TakeValues {
    static constexpr std::uint16_t type = 44;
    bool early = false;  // the session takes files that are still being filled, too
    /// It will ask for the same bytes by TakeResident, so that it pays to keep a copy of a few
    /// values, too.
    bool again = false;

    static void fields(auto& archive, auto& self) { archive(self.early, self.again); }
};

/// Files: the bytes of all values, one behind the other in the order of FindValues, sealed where
/// they are filled.
struct TakenValues {
    static constexpr std::uint16_t type = 45;
    std::uint64_t bytes = 0;
    PartsShape parts = {};
    std::uint64_t resident = 0;  // as in AddedValues; 0: the files are this session's alone
    bool filled = true;          // else they are resident

    static void fields(auto& archive, auto& self) {
        archive(self.bytes, self.parts, self.resident, self.filled);
    }
    bool consistent() const {
        return bytes <= kMostStored && parts.hold(bytes) && (filled || resident != 0);
    }
    std::size_t files() const { return parts.parts; }
};

/// The bytes that gputextd keeps under that name, which it has told the session.
struct TakeResident {
    static constexpr std::uint16_t type = 55;
    std::uint64_t resident = 0;  // as in TakenValues

    static void fields(auto& archive, auto& self) { archive(self.resident); }
};

/// Files, where they are `there`: resident still, and filled: the bytes, sealed.
struct TakenResident {
    static constexpr std::uint16_t type = 56;
    bool there = false;
    std::uint64_t bytes = 0;
    PartsShape parts = {};

    static void fields(auto& archive, auto& self) { archive(self.there, self.bytes, self.parts); }
    bool consistent() const { return bytes <= kMostStored && parts.hold(bytes); }
    std::size_t files() const { return there ? parts.parts : 0; }
};

/// Whether a file of so many bytes may be a list of so many words.
constexpr bool holds_words(std::uint64_t words, std::uint64_t bytes) {
    return words < UINT32_MAX && bytes <= kMostStored &&
           bytes >= (words + 1) * sizeof(std::uint64_t);
}

/// In place of AddValues, for terms; the reply is AddedValues. Files, all sealed:
///
/// the values that were missing, one behind the other, of sizes that are multiples of 4
/// u64 ends[missing]: where each value ends in these bytes; each has less than 4 GB
/// u64 begins[words + 1], counted from the end of this array, and behind it the bytes of all words
struct AddTerms {
    static constexpr std::uint16_t type = 52;
    std::uint64_t bytes = 0;       // of the values
    std::uint64_t words = 0;       // below 2^32 - 1
    std::uint64_t word_bytes = 0;  // of the file of words

    static void fields(auto& archive, auto& self) {
        archive(self.bytes, self.words, self.word_bytes);
    }
    bool consistent() const { return bytes <= kMostStored && holds_words(words, word_bytes); }
    static constexpr std::size_t files() { return 3; }
};

/// A chunk with the terms of texts, in the file of TakenTerms.
struct TermChunk {
    std::uint64_t id = 0;     // no other chunk of any gputextd has it, as far as chance allows
    std::uint64_t bytes = 0;  // as in AddTerms
    std::uint64_t words = 0;
    std::uint64_t word_bytes = 0;
};

/// Where the terms of a row lie, in the file of TakenTerms.
struct TermPlace {
    std::uint32_t chunk = 0;   // among those of the reply
    std::uint32_t size = 0;    // bytes
    std::uint64_t offset = 0;  // in the chunk
};

/// When no value is missing any more.
struct TakeTerms {
    static constexpr std::uint16_t type = 53;
    static void fields(auto&, auto&) {}
};

/// Where terms lie in more chunks than this, FindValues counts those in the smallest chunks as
/// missing. The session reads them again, and they come together in one chunk.
inline constexpr std::size_t kMostTermChunks = 32;

/// Files, all sealed: TermChunk[chunks] and behind it TermPlace[values], in the order of
/// FindValues; then for each chunk the bytes of its values, and its words.
struct TakenTerms {
    static constexpr std::uint16_t type = 54;
    std::uint32_t chunks = 0;
    std::uint64_t values = 0;

    static void fields(auto& archive, auto& self) { archive(self.chunks, self.values); }
    bool consistent() const { return chunks <= kMostTermChunks && values <= UINT32_MAX; }
    std::size_t files() const { return 1 + 2 * std::size_t{chunks}; }
    std::uint64_t list_bytes() const {
        return chunks * sizeof(TermChunk) + values * sizeof(TermPlace);
    }
};

/// What is resident of one table of values, in the file of ResidentTables.
struct ResidentTable {
    std::uint32_t database = 0;
    std::uint32_t table = 0;
    std::uint64_t values = 0;
    std::uint64_t bytes = 0;
    std::uint64_t device_bytes = 0;  // on all devices
    std::uint64_t hits = 0;    // values that were found since the table's first one was resident
    std::uint64_t misses = 0;  // values that were asked for, could have been resident, and missed
    double idle_seconds = 0;   // since one was asked for
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

/// Forgets what is resident of a table of values; of all tables of the database where `table` is 0.
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

/// On any connection: waits until these files are filled, or never will be.
struct AwaitValues {
    static constexpr std::uint16_t type = 50;
    std::uint64_t resident = 0;  // as in TakenValues

    static void fields(auto& archive, auto& self) { archive(self.resident); }
};

/// They are sealed if they are filled.
struct AwaitedValues {
    static constexpr std::uint16_t type = 51;
    static void fields(auto&, auto&) {}
};

/// The requests, and the replies to them.
using ValueRequests = TypeList<FindValues, AddValues, AddTerms, TakeValues, TakeTerms, TakeResident,
                               AskResidentTables, ForgetValues, AwaitValues>;
using ValueReplies = TypeList<FoundValues, AddedValues, TakenValues, TakenTerms, TakenResident,
                              ResidentTables, ForgottenValues, AwaitedValues>;

}  // namespace gputext
