#include "cpp/embeddings/detail/training_windows.hpp"

#include <algorithm>

namespace gputext {
namespace {

/// Tokens that one thread looks at in one go.
constexpr std::size_t kPiece = std::size_t{1} << 16;

/// Calls put() with each entry of the tokens first .. end - 1, which are not the replica's first.
class EntryWalk {
public:
    EntryWalk(const TrainerParameters& parameters, const WordSampling& sampling,
              const TokenStream& tokens, std::size_t replica_first, std::uint32_t epoch)
        : sampling_(sampling),
          tokens_(tokens),
          replica_first_(replica_first),
          key_(random_key(parameters.seed, TrainerParameters::kKeepUse, epoch)) {}

    template <class Put>
    void operator()(std::size_t first, std::size_t end, Put put) const {
        for (std::size_t i = first; i < end; ++i) {
            if (i > replica_first_ &&
                tokens_.positions[i] - tokens_.positions[i - 1] > CooccurrenceShape::kMostWindow)
                put(TrainerParameters::kBreak);
            const std::uint32_t word = tokens_.words[i];
            if (static_cast<std::uint32_t>(random_bits(key_, i) >> 32) <= sampling_.keep[word])
                put(word);
        }
    }

private:
    const WordSampling& sampling_;
    const TokenStream& tokens_;
    const std::size_t replica_first_;
    const std::uint64_t key_;
};

}  // namespace

ReplicaRange replica_range(const TrainerParameters& parameters, std::size_t tokens,
                           std::uint32_t replica) {
    return {tokens * replica / parameters.replicas, tokens * (replica + 1) / parameters.replicas};
}

Status training_entries(const TrainerParameters& parameters, const WordSampling& sampling,
                        const TokenStream& tokens, std::uint32_t replica, std::uint32_t epoch,
                        Execution& execution, std::vector<std::uint32_t>& entries) {
    const auto [first, end] = replica_range(parameters, tokens.words.size(), replica);
    const EntryWalk walk(parameters, sampling, tokens, first, epoch);
    const std::size_t pieces = (end - first + kPiece - 1) / kPiece;
    const auto bounds = [first = first, end = end](std::size_t piece) {
        return std::min(first + piece * kPiece, end);
    };
    std::vector<std::size_t> begins(pieces + 1);
    Execution counting(execution.threads(), execution);  // whose steps nobody sees
    GPUTEXT_TRY(counting.parallel_for(pieces, [&](std::size_t piece, unsigned) -> Status {
        std::size_t count = 0;
        walk(bounds(piece), bounds(piece + 1), [&](std::uint32_t) { ++count; });
        begins[piece + 1] = count;
        return {};
    }));
    for (std::size_t piece = 0; piece < pieces; ++piece) begins[piece + 1] += begins[piece];
    entries.resize(begins[pieces]);
    return counting.parallel_for(pieces, [&](std::size_t piece, unsigned) -> Status {
        std::uint32_t* out = entries.data() + begins[piece];
        walk(bounds(piece), bounds(piece + 1), [&](std::uint32_t entry) { *out++ = entry; });
        return {};
    });
}

}  // namespace gputext
