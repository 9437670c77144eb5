#include "cpp/link/near_duplicates.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cpp/base/exception_status.hpp"

namespace gputext {

Status NearDuplicatesRequest::pack(Packed& packed, Stop stop) const {
    if (extents.size() >= UINT32_MAX) return too_many("documents");
    SubmitNearDuplicates& message = packed.message;
    message.documents = static_cast<std::uint32_t>(extents.size());
    message.bytes_size = bytes_size;
    message.resident = resident;
    message.has_signatures = !signatures.empty();
    message.parameters = parameters;
    for (unsigned byte = 0; byte < 256; ++byte)
        message.character_lengths[byte] =
            static_cast<std::uint8_t>(characters.of(static_cast<std::uint8_t>(byte)));
    packed.expected.documents = message.documents;
    packed.expected.split = parameters.split;
    GPUTEXT_TRY(packed.files.add(bytes_file, bytes_size, message.bytes_parts));
    GPUTEXT_TRY(packed.files.add_copy(extents, stop));
    if (!message.has_signatures) return {};
    const auto letters = pack_signatures(signatures, stop);
    message.signature_bytes = letters.size();
    return packed.files.add_copy(letters, stop);
}

Result<std::uint64_t> NearDuplicatesAnswer::file_size() const {
    if (summary.documents != documents) return broken_reply(kOtherRows);
    const auto layout = reply_layout(summary.documents, summary.pairs);
    if (!layout) return broken_reply(kImpossibleSize);
    return layout->size;
}

Result<NearDuplicates> NearDuplicatesAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<NearDuplicates> {
        const auto layout = reply_layout(summary.documents, summary.pairs);
        if (!layout || layout->size != file.bytes().size()) return broken_reply("a wrong size");
        auto answer = NearDuplicates::from_parts(
            file.array<std::uint32_t>(0, summary.documents),
            file.array<NearPair>(layout->pairs_begin, summary.pairs), split, stop);
        if (!answer.ok()) return broken_reply(answer.status());
        return answer;
    });
}

Status check_extents(std::span<const Extent> extents, std::uint64_t bytes) {
    for (const Extent& extent : extents)
        if (extent.begin > bytes || extent.size > bytes - extent.begin ||
            extent.size > std::numeric_limits<std::int32_t>::max())
            return broken("a document outside the packed bytes");
    return {};
}

std::vector<std::uint8_t> pack_signatures(GivenSignatures signatures, Stop stop) {
    const std::size_t table_size = signatures.size() * sizeof(PackedSignature);
    std::size_t letters = 0;
    for (const std::optional<Ctph>& signature : signatures)
        if (signature) letters += signature->letters.size();
    std::vector<std::uint8_t> file;
    file.reserve(table_size + letters);
    file.resize(table_size);
    for (std::size_t i = 0; i < signatures.size(); ++i) {
        if (i % 4096 == 0 && stop()) return file;
        if (!signatures[i]) continue;
        const Ctph& signature = *signatures[i];
        const PackedSignature packed{file.size() - table_size,
                                     signature.first_length,
                                     static_cast<std::uint16_t>(signature.letters.size()),
                                     signature.level,
                                     1,
                                     0};
        std::memcpy(file.data() + i * sizeof packed, &packed, sizeof packed);
        file.insert(file.end(), signature.letters.begin(), signature.letters.end());
    }
    return file;
}

Result<std::vector<std::optional<Ctph>>> unpack_signatures(std::span<const std::uint8_t> file,
                                                           std::size_t documents,
                                                           Execution& execution) {
    if (documents > file.size() / sizeof(PackedSignature)) return broken("too few signatures");
    const auto letters = file.subspan(documents * sizeof(PackedSignature));
    const auto packed_of = [&](std::size_t i) {
        PackedSignature packed;
        std::memcpy(&packed, file.data() + i * sizeof packed, sizeof packed);
        return packed;
    };
    // Where letters begin follows from all signatures before; the rest is done by all threads.
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < documents; ++i) {
        if (i % 65536 == 0 && execution.stop_requested()) return Status::cancelled();
        const PackedSignature packed = packed_of(i);
        if (packed.present == 0) {
            const PackedSignature none{};
            if (std::memcmp(&packed, &none, sizeof none) != 0) return broken("a wrong signature");
            continue;
        }
        if (packed.present != 1 || packed.zero != 0 || packed.begin != end ||
            packed.length > letters.size() - end || packed.first_length > packed.length)
            return broken("a wrong signature");
        end += packed.length;
    }
    if (end != letters.size()) return broken("letters without a signature");
    std::vector<std::optional<Ctph>> signatures(documents);
    constexpr std::size_t step = 4096;
    const std::size_t steps = (documents + step - 1) / step;
    execution.begin_phase("reading signatures", steps);
    GPUTEXT_TRY(execution.parallel_for(steps, [&](std::size_t task, unsigned) -> Status {
        for (std::size_t i = task * step; i < std::min(documents, (task + 1) * step); ++i) {
            const PackedSignature packed = packed_of(i);
            if (packed.present == 0) continue;
            Ctph& signature = signatures[i].emplace();
            signature.level = packed.level;
            signature.first_length = packed.first_length;
            const auto own = letters.subspan(packed.begin, packed.length);
            signature.letters.assign(own.begin(), own.end());
            if (!check_ctph(signature).ok()) return broken("a wrong signature");
        }
        return {};
    }));
    return signatures;
}

std::optional<ReplyLayout> reply_layout(std::uint32_t documents, std::uint64_t pairs) {
    const std::uint64_t pairs_begin =
        (std::uint64_t{documents} * sizeof(std::uint32_t) + 7) / 8 * 8;
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    if (pairs > (most - pairs_begin) / sizeof(NearPair)) return std::nullopt;
    return ReplyLayout{pairs_begin, pairs_begin + pairs * sizeof(NearPair)};
}

}  // namespace gputext
