#include "cpp/groups/detail/id_numbers.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpp/base/large_pages.hpp"
#include "cpp/groups/detail/key_parts.hpp"
#include "cpp/groups/detail/key_ranks.hpp"

namespace gputext {
namespace {

constexpr unsigned kFirstBits = 12;                   // of a key, by which threads divide the ids
constexpr std::size_t kSlice = std::size_t{1} << 20;  // ids of one step

class Numbering {
public:
    Numbering(std::span<const std::int64_t> ids, const IdRange& range, Execution& execution)
        : ids_(ids),
          least_(static_cast<std::uint64_t>(range.least)),
          execution_(execution),
          slices_((ids.size() + kSlice - 1) / kSlice),
          parts_(range.distance(), ids.size(), kFirstBits) {}

    Result<IdNumbers> run() {
        GPUTEXT_TRY(divide());
        GPUTEXT_TRY(rank());
        GPUTEXT_TRY(gather());
        GPUTEXT_TRY(number());
        return std::move(answer_);
    }

private:
    std::uint64_t key(std::size_t i) const { return static_cast<std::uint64_t>(ids_[i]) - least_; }
    std::size_t slice_end(std::size_t slice) const {
        return std::min(ids_.size(), (slice + 1) * kSlice);
    }
    std::span<std::uint64_t> sizes_of(std::size_t slice) {
        return std::span(slice_sizes_).subspan(slice * parts_.count(), parts_.count());
    }
    std::uint64_t part_begin(std::size_t part) const {
        return part == 0 ? 0 : part_ends_[part - 1];
    }
    std::uint64_t part_size(std::size_t part) const { return part_ends_[part] - part_begin(part); }
    /// The number of the first id in the part.
    std::uint64_t first_number(std::size_t part) const {
        return part == 0 ? 0 : distinct_[part - 1];
    }
    Status divide();
    Status rank();
    Status gather();
    Status number();

    const std::span<const std::int64_t> ids_;
    const std::uint64_t least_;
    Execution& execution_;
    const std::size_t slices_;
    const KeyParts parts_;
    std::vector<std::uint64_t> slice_sizes_;  // of each slice's parts, then where they end
    std::vector<std::uint64_t> part_ends_;
    std::vector<std::uint64_t> distinct_;     // ids in each part, then up to its end
    std::unique_ptr<std::uint64_t[]> keys_;   // distances from the least id, part by part
    std::unique_ptr<std::uint32_t[]> ranks_;  // of the keys in their parts
    IdNumbers answer_;
};

/// Moves the keys to their parts, in which they lie in the order of the ids.
Status Numbering::divide() {
    execution_.begin_phase("dividing ids", 2 * slices_);
    slice_sizes_.resize(slices_ * parts_.count());
    keys_ = unwritten_pages<std::uint64_t>(ids_.size());
    GPUTEXT_TRY(execution_.parallel_for(slices_, [&](std::size_t slice, unsigned) -> Status {
        const std::span<std::uint64_t> sizes = sizes_of(slice);
        for (std::size_t i = slice * kSlice; i < slice_end(slice); ++i) ++sizes[parts_.of(key(i))];
        return {};
    }));
    part_ends_.resize(parts_.count());
    std::uint64_t end = 0;
    for (std::size_t part = 0; part < parts_.count(); ++part) {
        for (std::size_t slice = 0; slice < slices_; ++slice)
            end += std::exchange(sizes_of(slice)[part], end);
        part_ends_[part] = end;
    }
    return execution_.parallel_for(slices_, [&](std::size_t slice, unsigned) -> Status {
        const std::span<std::uint64_t> next = sizes_of(slice);
        for (std::size_t i = slice * kSlice; i < slice_end(slice); ++i)
            keys_[next[parts_.of(key(i))]++] = key(i);
        return {};
    });
}

Status Numbering::rank() {
    execution_.begin_phase("sorting ids", parts_.count());
    distinct_.resize(parts_.count());
    ranks_ = unwritten_pages<std::uint32_t>(ids_.size());
    std::vector<KeyRankSpace> spaces(execution_.threads());
    const Stop stop = execution_.stop();
    return execution_.parallel_for(
        parts_.count(), [&](std::size_t part, unsigned worker) -> Status {
            const std::uint64_t begin = part_begin(part), size = part_size(part);
            const Result<std::uint32_t> distinct = rank_keys(
                {keys_.get() + begin, size}, {ranks_.get() + begin, size}, spaces[worker], stop);
            if (!distinct.ok()) return distinct.status();
            distinct_[part] = *distinct;
            return {};
        });
}

/// Moves the distinct ids to where their numbers say.
Status Numbering::gather() {
    execution_.begin_phase("gathering ids", parts_.count());
    sum_up(std::span(distinct_));
    answer_.count = static_cast<std::uint32_t>(distinct_.back());
    answer_.ids = unwritten_pages<std::int64_t>(answer_.count);
    GPUTEXT_TRY(execution_.parallel_for(parts_.count(), [&](std::size_t part, unsigned) -> Status {
        const std::uint64_t* const keys = keys_.get() + part_begin(part);
        const std::uint64_t first = first_number(part), count = distinct_[part] - first;
        for (std::size_t i = 0; i < count; ++i)
            answer_.ids[first + i] = static_cast<std::int64_t>(least_ + keys[i]);
        return {};
    }));
    keys_.reset();
    return {};
}

/// Gives each id its number at its place. The ranks of a slice's ids lie in its parts in the order
/// of the ids, so that a thread reads and writes few stretches of memory at a time. It goes
/// backwards, for after divide() a slice has the ends of its parts.
Status Numbering::number() {
    execution_.begin_phase("numbering ids", slices_);
    answer_.numbers = unwritten_pages<std::uint32_t>(ids_.size());
    return execution_.parallel_for(slices_, [&](std::size_t slice, unsigned) -> Status {
        const std::span<std::uint64_t> ends = sizes_of(slice);
        for (std::size_t i = slice_end(slice); i-- > slice * kSlice;) {
            const std::size_t part = parts_.of(key(i));
            answer_.numbers[i] =
                static_cast<std::uint32_t>(first_number(part) + ranks_[--ends[part]]);
        }
        return {};
    });
}

}  // namespace

Result<IdRange> range_of_ids(std::span<const std::int64_t> ids, Execution& execution) {
    const std::size_t slices = (ids.size() + kSlice - 1) / kSlice;
    std::vector<IdRange> ranges(slices);
    execution.begin_phase("looking at ids", slices);
    GPUTEXT_TRY(execution.parallel_for(slices, [&](std::size_t slice, unsigned) -> Status {
        const auto part =
            ids.subspan(slice * kSlice, std::min(kSlice, ids.size() - slice * kSlice));
        IdRange range{part[0], part[0]};
        for (const std::int64_t id : part)
            range = {std::min(range.least, id), std::max(range.greatest, id)};
        ranges[slice] = range;
        return {};
    }));
    IdRange all = ranges[0];
    for (const IdRange& range : ranges)
        all = {std::min(all.least, range.least), std::max(all.greatest, range.greatest)};
    return all;
}

Result<IdNumbers> number_ids(std::span<const std::int64_t> ids, const IdRange& range,
                             Execution& execution) {
    return Numbering(ids, range, execution).run();
}

}  // namespace gputext
