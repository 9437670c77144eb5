#include "cpp/resident/value_request.hpp"

#include <limits>
#include <utility>

#include "cpp/base/large_pages.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {
namespace {

constexpr std::uint64_t kMostDimensions = std::uint64_t{1} << 31;
constexpr std::uint64_t kLongestDocument = std::numeric_limits<std::int32_t>::max();

std::uint64_t longest(ValueForm form) {
    return has_words(form) ? 0 : kLongestDocument;
}

/// What is checked once has to stay so. A plain file may change, so that its pointers are copied.
Status read_pointers(int descriptor, ValueRequest& request, Stop stop) {
    const std::uint32_t values = request.asked.values;
    const std::uint64_t size = std::uint64_t{values} * sizeof(ValuePointer);
    auto sealed = MappedFile::map(descriptor, size, Trust::sealed);
    if (sealed.ok()) {
        request.pointer_file = std::move(*sealed);
        request.pointers = request.pointer_file.array<ValuePointer>(0, values);
        return {};
    }
    const auto plain = MappedFile::map(descriptor, size, Trust::sealed_or_disk);
    if (!plain.ok()) return plain.status();
    if (!copy_array(*plain, 0, values, request.pointer_copy, stop)) return Status::cancelled();
    request.pointers = request.pointer_copy;
    return {};
}

}  // namespace

Result<std::uint64_t> sum_of_sizes(const ValueKind& kind, std::span<const ValuePointer> pointers,
                                   Stop stop) {
    const bool vectors = kind.form == ValueForm::vector;
    if (vectors ? kind.dimensions > kMostDimensions : kind.dimensions != 0)
        return broken("values of impossible dimensions");
    if (kind.source != 0 && !has_words(kind.form))
        return broken("a source of values without words");
    const std::uint64_t row = vectors ? row_size(kind.element, kind.dimensions) : 0;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < pointers.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        const std::uint64_t size = pointers[i].size;
        if (vectors ? size != row : size > longest(kind.form))
            return broken("a value of a size that its kind does not have");
        sum += size;
        if (sum > kMostStored) return broken("values of impossible size");
    }
    return sum;
}

Result<ValueRequest> read_request(const FindValues& message, int pointers, Stop stop) {
    ValueRequest request;
    request.asked = message;
    GPUTEXT_TRY(read_pointers(pointers, request, stop));
    const auto sum = sum_of_sizes(message.kind, request.pointers, stop);
    if (!sum.ok()) return sum.status();
    request.bytes = *sum;
    if (!assign_pages(request.places, message.values, ValuePlace(), stop))
        return Status::cancelled();
    request.missing = message.values;
    request.missing_bytes = request.bytes;
    return request;
}

std::shared_ptr<const ResidentChunk> chunk_of_all(const ValueRequest& request) {
    if (request.places.empty() || request.missing > 0) return nullptr;
    const std::uint32_t chunk = request.places.front().chunk;
    if (request.chunks[chunk]->bytes().size() != request.bytes) return nullptr;
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < request.places.size(); ++i) {
        if (request.places[i].chunk != chunk || request.places[i].offset != offset) return nullptr;
        offset += request.pointers[i].size;
    }
    return request.chunks[chunk];
}

}  // namespace gputext
