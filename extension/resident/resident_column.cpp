#include "extension/resident/resident_column.hpp"

#include <vector>

#include "extension/base/owned.hpp"
#include "extension/resident/resident_request.hpp"
#include "extension/server/daemon.hpp"

namespace gputext {
namespace {

/// What a column's reading needs, as long as it takes.
struct Reading {
    explicit Reading(std::size_t memory_limit)
        : request(memory_limit), part(memory_limit), nothing(memory_limit) {}

    ValueStore& store() { return request.store(); }

    ResidentRequest request;
    std::vector<std::uint32_t> missing;
    LaidOutBytes part;    // what was missing
    PackedBytes nothing;  // in its place, where that has no bytes
    FileDescriptor nothing_file;
};

bool keep(Reading& reading, const LaidOutBytes& bytes, std::uint64_t& resident) {
    return bytes.in_memory() && reading.store().keep(bytes.size(), bytes.share(), resident);
}

bool take(Reading& reading, LaidOutBytes& bytes, Arrival arrival, bool again) {
    const bool early = arrival == Arrival::later;
    if (!reading.store().take({early, again})) return false;
    ValuesTaken& taken = reading.store().taken();
    bytes.receive(taken.files, taken.reply.bytes, taken.reply.parts.part_bytes,
                  taken.reply.resident);
    if ((early && !taken.reply.filled) || bytes.map_received()) return true;
    bytes.release();
    return false;
}

/// Bytes that the session must not hold in memory would come in memory.
bool may_hold(std::uint64_t unpacked, const LaidOutBytes& bytes) {
    return unpacked <= bytes.memory_limit();
}

bool worth_asking(const StoredValues& values, const LaidOutBytes& bytes) {
    return may_hold(values.unpacked_bytes(), bytes) &&
           ResidentRequest::worth_asking(values, values.seconds());
}

/// Nothing of it is resident.
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
    if (!reading.store().missing(reading.missing)) return false;
    if (bytes_of_missing(reader, reading) == 0) {
        reading.nothing.finish();
        reading.nothing_file = reading.nothing.share();
        return reading.store().keep(0, reading.nothing_file.get(), resident);
    }
    fault = reader.read(reading.missing, reading.part);
    return fault < rows || keep(reading, reading.part, resident);
}

/// Some of it is resident, or all.
std::uint64_t read_missing_and_take(const StoredValues& values, const ColumnReader& reader,
                                    Reading& reading, LaidOutBytes& bytes, Arrival arrival,
                                    bool again) {
    std::uint64_t fault = values.size();
    const bool complete =
        reading.store().missing() == 0 || read_missing(reader, reading, values.size(), fault);
    if (fault < values.size()) return fault;
    reading.part.release();
    reading.nothing.release();
    if (complete && take(reading, bytes, arrival, again)) return values.size();
    return reader.read({}, bytes);
}

}  // namespace

std::uint64_t read_column(StoredValues& values, const ColumnReader& reader, LaidOutBytes& bytes,
                          Arrival arrival, bool again) {
    if (!worth_asking(values, bytes)) return reader.read({}, bytes);
    Reading& reading = *make_owned<Reading>(CurrentMemoryContext, bytes.memory_limit());
    std::uint64_t fault = 0;
    if (!reading.request.ask(values, reader))
        fault = reader.read({}, bytes);
    else if (reading.store().missing() == values.size())
        fault = read_all_and_keep(values, reader, reading, bytes);
    else
        fault = read_missing_and_take(values, reader, reading, bytes, arrival, again);
    reading.store().close();
    return fault;
}

bool take_resident_column(std::uint64_t resident, std::uint64_t size, std::uint64_t unpacked,
                          LaidOutBytes& bytes) {
    if (!may_hold(unpacked, bytes) || !value_store_is_ready()) return false;
    ValueStore& store = *make_owned<ValueStore>(CurrentMemoryContext);
    bool taken = store.connect() && store.take_resident(resident);
    store.close();
    if (!taken) return false;
    ResidentTaken& kept = store.taken_kept();
    bytes.receive(kept.files, kept.reply.bytes, kept.reply.parts.part_bytes, resident);
    taken = kept.reply.bytes == size && bytes.map_received();
    if (!taken) bytes.release();
    return taken;
}

std::uint64_t await_column(const StoredValues& values, const ColumnReader& reader,
                           LaidOutBytes& bytes) {
    if (bytes.arrived()) return values.size();
    ValueStore& store = *make_owned<ValueStore>(CurrentMemoryContext);
    // Files that are filled stay so, whatever gputextd says.
    if (store.connect()) store.await(bytes.resident());
    store.close();
    if (bytes.map_received()) return values.size();
    ereport(DEBUG1, (errmsg("reading values without gputextd, which has not copied them")));
    bytes.release();
    return reader.read({}, bytes);
}

}  // namespace gputext
