#include "cpp/knn/key_table.hpp"

#include <algorithm>
#include <bit>

namespace gputext {
namespace {

/// Rows that a thread takes at once, and after which it looks for a stop request.
constexpr std::size_t kPart = std::size_t{1} << 16;
/// Keys whose slots are fetched while others are looked at.
constexpr std::size_t kAtOnce = 16;

/// All bits depend on all bits of the key: the finalizer of MurmurHash3.
std::uint64_t hash_of(std::uint64_t key) {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdu;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53u;
    return key ^ key >> 33;
}

std::size_t parts_of(std::size_t rows) {
    return (rows + kPart - 1) / kPart;
}

std::size_t end_of(std::size_t part, std::size_t rows) {
    return std::min((part + 1) * kPart, rows);
}

}  // namespace

Status KeyTable::number_part(std::size_t part, std::span<const std::uint64_t> keys,
                             std::span<std::uint32_t> numbers, const Execution& execution) {
    HashTable<Slot>& table = parts_[part];
    std::uint32_t count = 0;
    for (std::size_t row = 0; row < keys.size(); ++row) {
        if (row % kPart == 0 && execution.stop_requested()) return Status::cancelled();
        const std::uint64_t key = keys[row], hash = hash_of(key);
        if (part_of(hash) != part) continue;
        Slot* slot = &table.find(hash, [key](const Slot& other) { return other.key == key; });
        if (slot->free()) {
            *slot = {key, count++};
            numbers[row] = slot->number;
            table.grow(count + 1, [](const Slot& other) { return hash_of(other.key); });
        } else {
            numbers[row] = slot->number;
        }
    }
    bases_[part + 1] = count;
    return {};
}

Status KeyTable::number(std::span<const std::uint64_t> keys, std::span<std::uint32_t> numbers,
                        Execution& execution) {
    parts_.assign(std::bit_floor(execution.threads()), HashTable<Slot>(512));
    bases_.assign(parts_.size() + 1, 0);
    execution.begin_phase("numbering keys", parts_.size() + parts_of(keys.size()));
    GPUTEXT_TRY(execution.parallel_for(parts_.size(), [&](std::size_t part, unsigned) {
        return number_part(part, keys, numbers, execution);
    }));
    for (std::size_t part = 0; part < parts_.size(); ++part) bases_[part + 1] += bases_[part];
    return execution.parallel_for(parts_of(keys.size()), [&](std::size_t part, unsigned) -> Status {
        for (std::size_t row = part * kPart; row < end_of(part, keys.size()); ++row)
            numbers[row] += bases_[part_of(hash_of(keys[row]))];
        return {};
    });
}

Status KeyTable::look_up(std::span<const std::uint64_t> keys, std::span<std::uint32_t> numbers,
                         std::uint32_t unknown, Execution& execution) const {
    execution.begin_phase("looking up keys", parts_of(keys.size()));
    if (size() == 0) {
        std::fill(numbers.begin(), numbers.end(), unknown);
        return {};
    }
    return execution.parallel_for(parts_of(keys.size()), [&](std::size_t part, unsigned) -> Status {
        const std::size_t end = end_of(part, keys.size());
        std::uint64_t hashes[kAtOnce];
        for (std::size_t begin = part * kPart; begin < end; begin += kAtOnce) {
            const std::size_t count = std::min(kAtOnce, end - begin);
            for (std::size_t i = 0; i < count; ++i) {
                hashes[i] = hash_of(keys[begin + i]);
                parts_[part_of(hashes[i])].prefetch(hashes[i]);
            }
            for (std::size_t i = 0; i < count; ++i) {
                const std::uint64_t key = keys[begin + i];
                const std::size_t of = part_of(hashes[i]);
                const Slot& slot = parts_[of].find(
                    hashes[i], [key](const Slot& other) { return other.key == key; });
                numbers[begin + i] = slot.free() ? unknown : bases_[of] + slot.number;
            }
        }
        return {};
    });
}

Status KeyTable::keys(std::span<std::uint64_t> keys, Execution& execution) const {
    execution.begin_phase("listing keys", parts_.size());
    return execution.parallel_for(parts_.size(), [&](std::size_t part, unsigned) -> Status {
        parts_[part].each([&](const Slot& slot) { keys[bases_[part] + slot.number] = slot.key; });
        return {};
    });
}

std::size_t KeyTable::bytes() const {
    std::size_t bytes = 0;
    for (const HashTable<Slot>& part : parts_) bytes += part.bytes();
    return bytes;
}

}  // namespace gputext
