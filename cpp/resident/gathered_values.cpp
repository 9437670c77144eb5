#include "cpp/resident/gathered_values.hpp"

#include <algorithm>
#include <utility>

#include "cpp/link/parted_file.hpp"

namespace gputext {
namespace {

constexpr std::size_t kParts = 16;
constexpr std::uint64_t kWriteAtOnce = std::uint64_t{1} << 20;  // and look at the stop request
constexpr std::uint64_t kShortRun = std::uint64_t{64} << 10;    // shorter ones are put together

/// Writes a part of the file from its begin to its end.
class PartWriter {
public:
    PartWriter(PartedFile& file, std::uint64_t begin, Stop stop)
        : file_(file), written_(begin), stop_(stop) {}

    Status append(std::span<const std::uint8_t> bytes) {
        if (bytes.size() < kShortRun) {
            if (buffer_.size() + bytes.size() > kWriteAtOnce) GPUTEXT_TRY(flush());
            buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
            return {};
        }
        GPUTEXT_TRY(flush());
        while (!bytes.empty()) {
            const auto now = bytes.first(std::min<std::size_t>(kWriteAtOnce, bytes.size()));
            GPUTEXT_TRY(write(now));
            bytes = bytes.subspan(now.size());
        }
        return {};
    }

    Status flush() {
        GPUTEXT_TRY(write(buffer_));
        buffer_.clear();
        return {};
    }

private:
    Status write(std::span<const std::uint8_t> bytes) {
        if (stop_()) return Status::cancelled();
        GPUTEXT_TRY(file_.write(written_, bytes));
        written_ += bytes.size();
        return {};
    }

    PartedFile& file_;
    std::uint64_t written_;
    Stop stop_;
    std::vector<std::uint8_t> buffer_;
};

/// Appends the bytes from `begin` to `end` of all values' bytes; `value` is the first one that ends
/// behind `begin`, and begins at `at`. Values that lie side by side are one run.
Status append_values(const ValueRequest& request, std::size_t value, std::uint64_t at,
                     std::uint64_t begin, std::uint64_t end, PartWriter& writer) {
    std::span<const std::uint8_t> run;
    for (; at < end; ++value) {
        const ValuePlace& place = request.places[value];
        const std::uint64_t size = request.pointers[value].size;
        const std::uint64_t first = std::max(begin, at) - at;
        const std::uint64_t last = std::min(end, at + size) - at;
        at += size;
        if (first >= last) continue;
        const auto bytes =
            request.chunks[place.chunk]->bytes().subspan(place.offset + first, last - first);
        if (!run.empty() && run.data() + run.size() == bytes.data()) {
            run = {run.data(), run.size() + bytes.size()};
            continue;
        }
        GPUTEXT_TRY(writer.append(run));
        run = bytes;
    }
    GPUTEXT_TRY(writer.append(run));
    return writer.flush();
}

/// Where a part begins.
struct PartBegin {
    std::size_t value;  // the first one that ends behind the part's begin
    std::uint64_t at;   // where that begins
};

Result<std::vector<PartBegin>> part_begins(const ValueRequest& request, std::uint64_t part,
                                           Stop stop) {
    std::vector<PartBegin> begins;
    std::uint64_t at = 0;
    for (std::size_t value = 0; value < request.pointers.size(); ++value) {
        if (value % 65536 == 0 && stop()) return Status::cancelled();
        const std::uint64_t size = request.pointers[value].size;
        while (begins.size() * part < at + size) begins.push_back({value, at});
        at += size;
    }
    return begins;
}

}  // namespace

Result<std::shared_ptr<const ResidentChunk>> gather(const ValueRequest& request,
                                                    ResidentChunks& chunks, Execution& execution) {
    const std::uint64_t size = request.bytes;
    const std::uint64_t part = part_bytes_for(size, kParts);
    PartedFile file;
    GPUTEXT_TRY(file.create(size, part));
    const auto begins = part_begins(request, part, execution.stop());
    if (!begins.ok()) return begins.status();
    GPUTEXT_TRY(execution.parallel_for(begins->size(), [&](std::size_t i, unsigned) {
        PartWriter writer(file, i * part, execution.stop());
        return append_values(request, (*begins)[i].value, (*begins)[i].at, i * part,
                             std::min(size, (i + 1) * part), writer);
    }));
    GPUTEXT_TRY(file.seal());
    const PartsShape shape = file.parts().shape();
    return chunks.adopt(file.release_files(), shape, size);
}

}  // namespace gputext
