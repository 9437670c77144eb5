#include "extension/resident/resident_request.hpp"

#include <algorithm>

#include "extension/server/daemon.hpp"
#include "extension/server/shared_state.hpp"
#include "extension/values/row_versions.hpp"

namespace gputext {
namespace {

/// Columns of which less than one part in so many may be kept are not worth a question.
constexpr std::uint64_t kLeastPart = 4;
/// Pointers that are packed at once.
constexpr std::size_t kPart = 4096;

}  // namespace

bool ResidentRequest::worth_asking(const StoredValues& values, double seconds) {
    return values.knows_row_versions() && values.size() < UINT32_MAX && seconds >= fewest_seconds &&
           value_store_is_ready();
}

/// Packs where all rows point to. Returns how many bytes of values have pointers that may be
/// resident.
std::uint64_t ResidentRequest::pack_pointers(const StoredValues& values, const PackedColumn& column,
                                             std::uint64_t horizon) {
    RowVersions versions;
    ValuePointer pointers[kPart];
    std::uint64_t bytes = 0;
    for (std::size_t begin = 0; begin < values.size(); begin += kPart) {
        CHECK_FOR_INTERRUPTS();
        const std::size_t count = std::min(kPart, values.size() - begin);
        for (std::size_t i = 0; i < count; ++i) {
            const StoredValue& value = values.stored(begin + i);
            ValuePointer& pointer = pointers[i];
            pointer = {0, static_cast<std::uint32_t>(column.size(begin + i)), 0,
                       ValuePointer::never};
            if (value.copied()) continue;
            pointer.table = value.relation;
            pointer.number = value.number();
            pointer.since = versions.since(values.row_version(begin + i), value.relation);
            if (pointer.since < horizon) bytes += values.unpacked_size(begin + i);
        }
        pointers_.append(pointers, count * sizeof(ValuePointer));
    }
    pointers_.finish();
    return bytes;
}

/// Whether gputextd has said what it keeps of values at these pointers.
bool ResidentRequest::find(const FindValues& wanted) {
    pointers_file_ = pointers_.share();
    const bool found = store_.connect() && store_.find(wanted, pointers_file_.get());
    if (found)
        ereport(DEBUG1,
                (errmsg("gputextd keeps %u of %u values",
                        wanted.values - static_cast<unsigned>(store_.missing()), wanted.values)));
    return found;
}

bool ResidentRequest::ask(const StoredValues& values, const PackedColumn& column) {
    FindValues wanted;
    wanted.run = server_run();
    wanted.horizon = horizon();
    wanted.kind = column.kind();
    wanted.values = static_cast<std::uint32_t>(values.size());
    const std::uint64_t bytes = pack_pointers(values, column, wanted.horizon);
    const bool found = bytes >= values.unpacked_bytes() / kLeastPart && find(wanted);
    pointers_file_.reset();
    pointers_.release();
    return found;
}

}  // namespace gputext
