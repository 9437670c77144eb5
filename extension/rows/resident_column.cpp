#include "extension/rows/resident_column.hpp"

#include <algorithm>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/rows/row_versions.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/shared_state.hpp"
#include "extension/server/value_store.hpp"

namespace gputext {
namespace {

/// Values that take less time to read are not worth a question.
constexpr double kWorthAsking = 0.02;
/// Nor are columns of which less than one part in so many may be kept.
constexpr std::uint64_t kLeastPart = 4;
/// Pointers that are packed at once.
constexpr std::size_t kPart = 4096;

/// What a column's reading needs, as long as it takes.
struct Reading {
    explicit Reading(std::size_t memory_limit)
        : pointers(memory_limit), part(memory_limit), nothing(memory_limit) {}

    ValueStore store;
    PackedBytes pointers;
    FileDescriptor pointers_file;
    std::vector<std::uint32_t> missing;
    LaidOutBytes part;    // what was missing
    PackedBytes nothing;  // in its place, where that has no bytes
    FileDescriptor nothing_file;
};

/// Packs where all rows point to. Returns how many bytes of values have pointers that may be kept.
std::uint64_t pack_pointers(const StoredValues& values, const ColumnReader& reader,
                            std::uint64_t horizon, PackedBytes& packed) {
    RowVersions versions;
    ValuePointer pointers[kPart];
    std::uint64_t bytes = 0;
    for (std::size_t begin = 0; begin < values.size(); begin += kPart) {
        CHECK_FOR_INTERRUPTS();
        const std::size_t count = std::min(kPart, values.size() - begin);
        for (std::size_t i = 0; i < count; ++i) {
            const StoredValue& value = values.stored(begin + i);
            ValuePointer& pointer = pointers[i];
            pointer = {0, 0, ValuePointer::never, reader.size(begin + i)};
            if (!value.out_of_line()) continue;
            pointer.table = value.toast_relation;
            pointer.number = value.pointer.id;
            pointer.since = versions.since(values.row_version(begin + i), value.toast_relation);
            if (pointer.since < horizon) bytes += pointer.size;
        }
        packed.append(pointers, count * sizeof(ValuePointer));
    }
    packed.finish();
    return bytes;
}

/// Asks for values at these pointers; whether gputextd has said what it keeps.
bool ask(const FindValues& wanted, Reading& reading) {
    reading.pointers_file = reading.pointers.share();
    const bool found =
        reading.store.connect() && reading.store.find(wanted, reading.pointers_file.get());
    if (found)
        ereport(DEBUG1, (errmsg("gputextd keeps %u of %u values",
                                wanted.values - static_cast<unsigned>(reading.store.missing()),
                                wanted.values)));
    return found;
}

/// Whether gputextd has said what it keeps, for a column that it may keep.
bool find(StoredValues& values, const ColumnReader& reader, Reading& reading) {
    FindValues wanted;
    wanted.run = server_run();
    wanted.horizon = horizon();
    wanted.kind = reader.kind();
    wanted.values = static_cast<std::uint32_t>(values.size());
    const std::uint64_t bytes = pack_pointers(values, reader, wanted.horizon, reading.pointers);
    const bool found = bytes >= values.unpacked_bytes() / kLeastPart && ask(wanted, reading);
    reading.pointers_file.reset();
    reading.pointers.release();
    return found;
}

bool keep(Reading& reading, const LaidOutBytes& bytes, std::uint64_t& resident) {
    return bytes.in_memory() && reading.store.keep(bytes.size(), bytes.share(), resident);
}

bool take(Reading& reading, LaidOutBytes& bytes) {
    if (!reading.store.take()) return false;
    ValuesTaken& taken = reading.store.taken();
    bytes.receive(taken.files, reading.store.taken_bytes(), taken.reply.parts.part_bytes,
                  taken.reply.resident);
    return true;
}

/// Whether there is a chance that gputextd helps. Bytes that the session must not hold in memory
/// would come in memory.
bool worth_asking(const StoredValues& values, const LaidOutBytes& bytes) {
    return values.knows_row_versions() && values.size() < UINT32_MAX &&
           values.seconds() >= kWorthAsking && values.unpacked_bytes() <= bytes.memory_limit() &&
           value_store_is_ready();
}

/// Nothing of it is kept.
std::uint64_t read_all_and_keep(const StoredValues& values, const ColumnReader& reader,
                                Reading& reading, LaidOutBytes& bytes) {
    const std::uint64_t fault = reader.read({}, bytes);
    std::uint64_t resident = 0;
    if (fault == values.size() && keep(reading, bytes, resident)) bytes.set_resident(resident);
    return fault;
}

std::uint64_t bytes_of_missing(const ColumnReader& reader, const Reading& reading) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t row : reading.missing) bytes += reader.size(row);
    return bytes;
}

/// Reads what is missing and gives it to gputextd. `fault`: as ColumnReader::read() returns it.
bool read_missing(const ColumnReader& reader, Reading& reading, std::uint64_t rows,
                  std::uint64_t& fault) {
    fault = rows;
    std::uint64_t resident = 0;
    if (!reading.store.missing(reading.missing)) return false;
    if (bytes_of_missing(reader, reading) == 0) {
        reading.nothing.finish();
        reading.nothing_file = reading.nothing.share();
        return reading.store.keep(0, reading.nothing_file.get(), resident);
    }
    fault = reader.read(reading.missing, reading.part);
    return fault < rows || keep(reading, reading.part, resident);
}

/// Some of it is kept, or all.
std::uint64_t read_missing_and_take(const StoredValues& values, const ColumnReader& reader,
                                    Reading& reading, LaidOutBytes& bytes) {
    std::uint64_t fault = values.size();
    const bool complete =
        reading.store.missing() == 0 || read_missing(reader, reading, values.size(), fault);
    if (fault < values.size()) return fault;
    reading.part.release();
    reading.nothing.release();
    if (complete && take(reading, bytes)) return values.size();
    return reader.read({}, bytes);
}

}  // namespace

std::uint64_t read_column(StoredValues& values, const ColumnReader& reader, LaidOutBytes& bytes) {
    if (!worth_asking(values, bytes)) return reader.read({}, bytes);
    Reading& reading = *make_owned<Reading>(CurrentMemoryContext, bytes.memory_limit());
    std::uint64_t fault = 0;
    if (!find(values, reader, reading))
        fault = reader.read({}, bytes);
    else if (reading.store.missing() == values.size())
        fault = read_all_and_keep(values, reader, reading, bytes);
    else
        fault = read_missing_and_take(values, reader, reading, bytes);
    reading.store.close();
    return fault;
}

}  // namespace gputext
