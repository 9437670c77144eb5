#include "cpp/near_duplicates.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "cpp/components.hpp"
#include "cpp/document_join.hpp"
#include "cpp/edit_distance.hpp"
#include "cpp/signature_join.hpp"
#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

// What the next two return is of no use once `stop` has said so.

/// Any hash does: documents with equal hashes are compared.
std::uint64_t hash_bytes(Bytes document, Stop stop) {
    std::uint64_t hash = document.size() * 0x9e3779b97f4a7c15u;
    const auto mix = [&hash](std::uint64_t word) {
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    };
    for (std::size_t at = 0; at < document.size() && !stop();) {
        const std::size_t part_end = std::min(document.size(), at + kLookEvery);
        for (; at + 8 <= part_end; at += 8) {
            std::uint64_t word;
            std::memcpy(&word, document.data() + at, sizeof word);
            mix(word);
        }
        for (; at < part_end; ++at) mix(document[at]);
    }
    return hash;
}

bool equal_bytes(Bytes a, Bytes b, Stop stop) {
    if (a.size() != b.size()) return false;
    for (std::size_t at = 0; at < a.size() && !stop(); at += kLookEvery) {
        const std::size_t part = std::min(kLookEvery, a.size() - at);
        if (std::memcmp(a.data() + at, b.data() + at, part) != 0) return false;
    }
    return true;
}

}  // namespace

/// One run of the operator: fills a NearDuplicates step by step.
class NearDuplicateSearch {
public:
    NearDuplicateSearch(const NearDuplicateParameters& parameters, const Documents& documents,
                        GivenSignatures signatures, Execution& execution)
        : parameters_(parameters),
          documents_(documents),
          given_signatures_(signatures),
          execution_(execution) {}

    Result<NearDuplicates> run() {
        answer_.copies_are_near_ = any_rate_below(parameters_.threshold);
        for (const auto step :
             {&NearDuplicateSearch::find_copies, &NearDuplicateSearch::select_first_copies,
              &NearDuplicateSearch::find_candidates, &NearDuplicateSearch::verify,
              &NearDuplicateSearch::collect}) {
            if (Status status = (this->*step)(); !status.ok()) return status;
        }
        return std::move(answer_);
    }

private:
    /// Fills first_copy_ and the classes' members.
    Status find_copies() {
        const std::size_t count = documents_.size();
        std::vector<std::uint64_t> hashes(count);
        execution_.begin_phase("hashing documents", count);
        Status status = execution_.parallel_for(count, [&](std::size_t i, unsigned) {
            hashes[i] = hash_bytes(documents_[i], execution_.stop());
            return Status();
        });
        if (!status.ok()) return status;

        // Open addressing. Documents come in input order, so a class is entered by its first one.
        std::vector<std::uint32_t> table(std::bit_ceil(2 * count + 1), kNone);
        const std::size_t mask = table.size() - 1;
        answer_.first_copy_.resize(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            if (execution_.stop_requested()) return Status::cancelled();
            std::size_t at = hashes[i] & mask;
            while (table[at] != kNone && !same_bytes(table[at], i, hashes)) at = (at + 1) & mask;
            if (table[at] == kNone) table[at] = i;
            answer_.first_copy_[i] = table[at];
        }
        answer_.collect_members();
        return {};
    }

    bool same_bytes(std::uint32_t a, std::uint32_t b,
                    const std::vector<std::uint64_t>& hashes) const {
        return hashes[a] == hashes[b] &&
               equal_bytes(documents_[a], documents_[b], execution_.stop());
    }

    /// From here on only first copies are looked at: distinct_ numbers them.
    Status select_first_copies() {
        for (std::uint32_t i = 0; i < answer_.first_copy_.size(); ++i)
            if (answer_.first_copy_[i] == i) distinct_.push_back(i);
        lengths_.resize(distinct_.size());
        execution_.begin_phase("counting lengths", distinct_.size());
        return execution_.parallel_for(distinct_.size(), [&](std::size_t i, unsigned) {
            lengths_[i] = static_cast<std::uint32_t>(count_characters(
                documents_[distinct_[i]], documents_.characters, execution_.stop()));
            return Status();
        });
    }

    Status find_candidates() {
        if (parameters_.mode == NearDuplicateMode::ctph) return find_candidates_by_signature();
        std::vector<Extent> extents(distinct_.size());
        for (std::size_t i = 0; i < distinct_.size(); ++i)
            extents[i] = documents_.extents[distinct_[i]];
        const Documents distinct{documents_.bytes, extents, documents_.characters};
        const DocumentJoin join{parameters_.threshold, parameters_.memory_limit, parameters_.simd};
        return join_documents(join, distinct, lengths_, execution_, candidates_);
    }

    Status find_candidates_by_signature() {
        std::vector<Ctph> signatures(distinct_.size());
        execution_.begin_phase("computing signatures", distinct_.size());
        Status status = execution_.parallel_for(distinct_.size(), [&](std::size_t i, unsigned) {
            const std::uint32_t document = distinct_[i];
            if (!given_signatures_.empty() && given_signatures_[document]) {
                signatures[i] = *given_signatures_[document];
                return Status();
            }
            Result<Ctph> signature = ctph_signature(
                documents_[document], parameters_.signature_length, execution_.stop());
            if (!signature.ok()) return signature.status();
            signatures[i] = std::move(*signature);
            return Status();
        });
        if (!status.ok()) return status;
        // The thesis's factor: edits weigh more on a signature than on its document.
        const double rate = std::min(1.0, 3 * parameters_.threshold);
        return join_signatures(signatures, rate, parameters_.simd, execution_, candidates_);
    }

    /// Computes the candidates' distances; what is not below the threshold becomes kFar.
    Status verify() {
        if (!stoppable_assign(distances_, candidates_.size(), kFar, execution_.stop()))
            return Status::cancelled();
        std::vector<EditDistance> edit_distance(execution_.threads());
        execution_.begin_phase("verifying candidates", candidates_.size());
        return execution_.parallel_for(candidates_.size(), [&](std::size_t i, unsigned worker) {
            const auto [first, second] = candidates_[i];
            const std::size_t most = most_edits_below(
                parameters_.threshold, std::size_t{lengths_[first]} + lengths_[second]);
            const Result<std::size_t> distance = edit_distance[worker].of_texts(
                documents_[distinct_[first]], documents_[distinct_[second]], documents_.characters,
                most, execution_.stop());
            if (!distance.ok()) return distance.status();
            if (*distance <= most) distances_[i] = static_cast<std::uint32_t>(*distance);
            return Status();
        });
    }

    /// Stores the verified pairs by first copy, both ways.
    Status collect() {
        std::vector<std::uint64_t>& begin = answer_.near_begin_;
        begin.assign(answer_.first_copy_.size() + 1, 0);
        const auto count = [&](std::uint32_t a, std::uint32_t b, double) {
            ++begin[a + 1];
            ++begin[b + 1];
        };
        if (!for_each_verified(count)) return Status::cancelled();
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        if (!stoppable_assign(answer_.near_, begin.back(), {}, execution_.stop()))
            return Status::cancelled();
        std::vector<std::uint64_t> next(begin.begin(), begin.end() - 1);
        const auto store = [&](std::uint32_t a, std::uint32_t b, double rate) {
            answer_.near_[next[a]++] = {b, rate};
            answer_.near_[next[b]++] = {a, rate};
        };
        if (!for_each_verified(store)) return Status::cancelled();
        return {};
    }

    /// False if stopped.
    template <class Visit>
    bool for_each_verified(Visit&& visit) const {
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            if (i % 65536 == 0 && execution_.stop_requested()) return false;
            if (distances_[i] == kFar) continue;
            const auto [first, second] = candidates_[i];
            visit(distinct_[first], distinct_[second],
                  edit_rate(distances_[i], std::size_t{lengths_[first]} + lengths_[second]));
        }
        return true;
    }

    static constexpr std::uint32_t kFar = UINT32_MAX;
    static constexpr std::uint32_t kNone = UINT32_MAX;

    const NearDuplicateParameters& parameters_;
    const Documents& documents_;
    GivenSignatures given_signatures_;
    Execution& execution_;
    NearDuplicates answer_;
    std::vector<std::uint32_t> distinct_;   // documents that are first copies
    std::vector<std::uint32_t> lengths_;    // of those, in characters
    std::vector<IndexPair> candidates_;     // positions in distinct_
    std::vector<std::uint32_t> distances_;  // of the candidates
};

void NearDuplicates::collect_members() {
    members_begin_.assign(first_copy_.size() + 1, 0);
    for (const std::uint32_t first : first_copy_) ++members_begin_[first + 1];
    std::partial_sum(members_begin_.begin(), members_begin_.end(), members_begin_.begin());
    members_.resize(first_copy_.size());
    std::vector<std::uint64_t> next(members_begin_.begin(), members_begin_.end() - 1);
    for (std::uint32_t i = 0; i < first_copy_.size(); ++i) members_[next[first_copy_[i]]++] = i;
}

/// False if stopped.
bool NearDuplicates::collect_pairs(std::span<const NearPair> pairs, Stop stop) {
    near_begin_.assign(first_copy_.size() + 1, 0);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (i % 65536 == 0 && stop()) return false;
        ++near_begin_[pairs[i].first + 1];
        ++near_begin_[pairs[i].second + 1];
    }
    std::partial_sum(near_begin_.begin(), near_begin_.end(), near_begin_.begin());
    if (!stoppable_assign(near_, near_begin_.back(), {}, stop)) return false;
    std::vector<std::uint64_t> next(near_begin_.begin(), near_begin_.end() - 1);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (i % 65536 == 0 && stop()) return false;
        const auto& [first, second, rate] = pairs[i];
        near_[next[first]++] = {second, rate};
        near_[next[second]++] = {first, rate};
    }
    return true;
}

std::vector<NearPair> NearDuplicates::near_pairs_of(std::uint32_t begin, std::uint32_t end) const {
    std::vector<NearPair> pairs;
    end = std::min(end, static_cast<std::uint32_t>(first_copy_.size()));
    for (std::uint32_t first = begin; first < end; ++first)
        for (std::uint64_t i = near_begin_[first]; i < near_begin_[first + 1]; ++i)
            if (near_[i].document > first)
                pairs.push_back({first, near_[i].document, near_[i].edit_rate});
    return pairs;
}

Result<NearDuplicates> NearDuplicates::from_parts(bool copies_are_near,
                                                  std::span<const std::uint32_t> first_copies,
                                                  std::span<const NearPair> pairs, Stop stop) {
    const auto broken = [](const char* message) {
        return Status(ErrorCode::invalid_argument, message);
    };
    if (first_copies.size() >= UINT32_MAX) return broken("too many documents");
    for (std::uint32_t i = 0; i < first_copies.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        const std::uint32_t first = first_copies[i];
        if (first > i || first_copies[first] != first) return broken("wrong classes of copies");
    }
    const auto is_first = [&](std::uint32_t document) {
        return first_copies[document] == document;
    };
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        const auto& [first, second, rate] = pairs[i];
        if (first >= second || second >= first_copies.size() || !is_first(first) ||
            !is_first(second))
            return broken("a pair of documents that are none");
        if (i > 0 && std::pair(pairs[i - 1].first, pairs[i - 1].second) >= std::pair(first, second))
            return broken("pairs out of order");
        if (!(rate >= 0 && rate < 0.5)) return broken("an edit rate out of range");
    }

    NearDuplicates answer;
    answer.copies_are_near_ = copies_are_near;
    answer.first_copy_.assign(first_copies.begin(), first_copies.end());
    answer.collect_members();
    if (!answer.collect_pairs(pairs, stop)) return Status::cancelled();
    return answer;
}

std::span<const std::uint32_t> NearDuplicates::copies(std::uint32_t first_copy) const {
    return std::span(members_).subspan(members_begin_[first_copy],
                                       members_begin_[first_copy + 1] - members_begin_[first_copy]);
}

void NearDuplicates::later_neighbours(std::uint32_t document,
                                      std::vector<Neighbour>& neighbours) const {
    neighbours.clear();
    if (!copies_are_near_) return;
    const std::uint32_t first = first_copy_[document];
    const auto add_later = [&](std::uint32_t other, double rate) {
        const auto members = copies(other);
        for (auto it = std::upper_bound(members.begin(), members.end(), document);
             it != members.end(); ++it)
            neighbours.push_back({*it, rate});
    };
    add_later(first, 0);
    for (std::uint64_t i = near_begin_[first]; i < near_begin_[first + 1]; ++i)
        add_later(near_[i].document, near_[i].edit_rate);
    std::sort(neighbours.begin(), neighbours.end(),
              [](const Neighbour& a, const Neighbour& b) { return a.document < b.document; });
}

std::uint64_t NearDuplicates::pairs() const {
    if (!copies_are_near_) return 0;
    std::uint64_t count = 0;
    for (std::uint32_t first = 0; first < first_copy_.size(); ++first) {
        if (first_copy_[first] != first) continue;
        const std::uint64_t own = copies(first).size();
        count += own * (own - 1) / 2;
        for (std::uint64_t i = near_begin_[first]; i < near_begin_[first + 1]; ++i)
            if (near_[i].document > first) count += own * copies(near_[i].document).size();
    }
    return count;
}

Result<std::vector<std::uint32_t>> NearDuplicates::components(Stop stop) const {
    Components components(first_copy_.size());
    for (std::uint32_t i = 0; copies_are_near_ && i < first_copy_.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        components.join(i, first_copy_[i]);
        for (std::uint64_t n = near_begin_[i]; n < near_begin_[i + 1]; ++n)
            components.join(i, near_[n].document);
    }
    return components.firsts();
}

Result<NearDuplicates> near_duplicates(const NearDuplicateParameters& parameters,
                                       const Documents& documents, GivenSignatures signatures,
                                       Execution& execution) {
    if (!(parameters.threshold >= 0 && parameters.threshold < 0.5))
        return Status(ErrorCode::invalid_argument, "threshold must be at least 0 and below 0.5");
    if (parameters.signature_length < 1 || parameters.signature_length > Ctph::max_length)
        return Status(ErrorCode::invalid_argument,
                      "signature length must be between 1 and " + std::to_string(Ctph::max_length));
    if (documents.size() >= UINT32_MAX)
        return Status(ErrorCode::invalid_argument, "more than 4294967294 documents");
    return NearDuplicateSearch(parameters, documents, signatures, execution).run();
}

}  // namespace gputext
