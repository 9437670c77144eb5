#include "cpp/resident/term_chunks.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpp/link/wire.hpp"

namespace gputext {
namespace {

constexpr std::size_t kPlacesAtOnce = 4096;

template <class T>
Status append(std::span<const T> array, MemoryFile& file) {
    return file.append({reinterpret_cast<const std::uint8_t*>(array.data()), array.size_bytes()});
}

/// How many values of the request lie in each of its chunks.
std::vector<std::uint32_t> values_of_chunks(const ValueRequest& request) {
    std::vector<std::uint32_t> values(request.chunks.size());
    for (const ValuePlace& place : request.places)
        if (place.chunk != ValuePlace::missing) ++values[place.chunk];
    return values;
}

/// The chunks with the most values, in their order.
std::vector<std::uint32_t> largest_chunks(const ValueRequest& request, std::size_t most) {
    const std::vector<std::uint32_t> values = values_of_chunks(request);
    std::vector<std::uint32_t> chunks(values.size());
    std::iota(chunks.begin(), chunks.end(), 0);
    std::stable_sort(chunks.begin(), chunks.end(), [&](std::uint32_t one, std::uint32_t other) {
        return values[one] > values[other];
    });
    chunks.resize(most);
    std::sort(chunks.begin(), chunks.end());
    return chunks;
}

}  // namespace

void leave_out_smallest(ValueRequest& request, std::vector<IndexedChunk*>& found) {
    const std::size_t most = kMostTermChunks - (request.missing > 0 ? 1 : 0);
    if (found.size() <= most) return;
    // What is left out is missing, and comes in a chunk of its own.
    const std::vector<std::uint32_t> left = largest_chunks(request, kMostTermChunks - 1);
    std::vector<std::uint32_t> new_numbers(found.size(), ValuePlace::missing);
    for (std::uint32_t i = 0; i < left.size(); ++i) {
        new_numbers[left[i]] = i;
        found[i] = found[left[i]];
        request.chunks[i] = std::move(request.chunks[left[i]]);
    }
    found.resize(left.size());
    request.chunks.resize(left.size());
    for (ValuePlace& place : request.places) {
        if (place.chunk == ValuePlace::missing) continue;
        place.chunk = new_numbers[place.chunk];
        if (place.chunk != ValuePlace::missing) continue;
        place = {};
        ++request.missing;
    }
}

Status check_ends(std::span<const std::uint64_t> ends, std::uint64_t bytes) {
    std::uint64_t last = 0;
    for (const std::uint64_t end : ends) {
        // A value that ends before the last one would be longer than any.
        if (end - last > UINT32_MAX || end % sizeof(std::uint32_t) != 0)
            return broken("terms of impossible size");
        last = end;
    }
    if (last != bytes) return broken("bytes outside the terms");
    return {};
}

Result<MappedFile> map_ends(int descriptor, std::size_t values, std::uint64_t bytes) {
    auto file = MappedFile::map(descriptor, values * sizeof(std::uint64_t), Trust::sealed);
    if (!file.ok()) return file;
    if (Status status = check_ends(file->array<std::uint64_t>(0, values), bytes); !status.ok())
        return status;
    return file;
}

void set_sizes(std::span<const std::uint64_t> ends, std::span<const std::uint32_t> rows,
               ValueRequest& request) {
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        request.places[rows[i]].size = static_cast<std::uint32_t>(ends[i] - begin);
        begin = ends[i];
    }
}

Status write_list(const ValueRequest& request, MemoryFile& list) {
    for (const auto& chunk : request.chunks) {
        const TermChunk said{chunk->id(), chunk->bytes().size(), chunk->words().count,
                             chunk->words().bytes};
        GPUTEXT_TRY(append(std::span<const TermChunk>(&said, 1), list));
    }
    std::vector<TermPlace> places;
    places.reserve(std::min(kPlacesAtOnce, request.places.size()));
    for (std::size_t begin = 0; begin < request.places.size(); begin += kPlacesAtOnce) {
        const std::size_t end = std::min(begin + kPlacesAtOnce, request.places.size());
        places.clear();
        for (std::size_t i = begin; i < end; ++i)
            places.push_back(
                {request.places[i].chunk, request.places[i].size, request.places[i].offset});
        GPUTEXT_TRY(append(std::span<const TermPlace>(places), list));
    }
    return list.seal();
}

}  // namespace gputext
