#include "cpp/near_duplicates.hpp"

#include <algorithm>
#include <numeric>

#include "cpp/components.hpp"
#include "cpp/document_join.hpp"
#include "cpp/edit_distance.hpp"
#include "cpp/near_duplicate_search.hpp"
#include "cpp/signature_join.hpp"
#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

/// On the host's processors.
class HostPairFinder : public NearPairFinder {
public:
    Status find(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
                Execution& execution, std::vector<NearPair>& pairs) override {
        std::vector<IndexPair> candidates;
        Status status = parameters.mode == NearDuplicateMode::ctph
                            ? find_by_signature(parameters, documents, execution, candidates)
                            : find_by_counts(parameters, documents, execution, candidates);
        if (!status.ok()) return status;
        return verify(parameters.threshold, documents, candidates, execution, pairs);
    }

private:
    static Status find_by_counts(const NearDuplicateParameters& parameters,
                                 const DistinctDocuments& documents, Execution& execution,
                                 std::vector<IndexPair>& candidates) {
        const DocumentJoin join{parameters.threshold, parameters.memory_limit, parameters.simd};
        return join_documents(join, documents.documents, documents.lengths, execution, candidates);
    }

    static Status find_by_signature(const NearDuplicateParameters& parameters,
                                    const DistinctDocuments& documents, Execution& execution,
                                    std::vector<IndexPair>& candidates) {
        std::vector<Ctph> signatures(documents.size());
        execution.begin_phase("computing signatures", documents.size());
        Status status = execution.parallel_for(documents.size(), [&](std::size_t i, unsigned) {
            if (const Ctph* given = documents.signature(i)) {
                signatures[i] = *given;
                return Status();
            }
            Result<Ctph> signature = ctph_signature(documents.documents[i],
                                                    parameters.signature_length, execution.stop());
            if (!signature.ok()) return signature.status();
            signatures[i] = std::move(*signature);
            return Status();
        });
        if (!status.ok()) return status;
        return join_signatures(signatures, signature_rate(parameters.threshold), parameters.simd,
                               execution, candidates);
    }

    /// Keeps those candidates whose edit rate is below the threshold.
    static Status verify(double threshold, const DistinctDocuments& documents,
                         std::span<const IndexPair> candidates, Execution& execution,
                         std::vector<NearPair>& pairs) {
        constexpr double far = 1;
        std::vector<double> rates;
        if (!stoppable_assign(rates, candidates.size(), far, execution.stop()))
            return Status::cancelled();
        std::vector<EditDistance> edit_distance(execution.threads());
        execution.begin_phase("verifying candidates", candidates.size());
        Status status =
            execution.parallel_for(candidates.size(), [&](std::size_t i, unsigned worker) {
                const auto [first, second] = candidates[i];
                const std::size_t lengths =
                    std::size_t{documents.lengths[first]} + documents.lengths[second];
                const std::size_t most = most_edits_below(threshold, lengths);
                const Result<std::size_t> distance = edit_distance[worker].of_texts(
                    documents.documents[first], documents.documents[second],
                    documents.documents.characters, most, execution.stop());
                if (!distance.ok()) return distance.status();
                if (*distance <= most) rates[i] = edit_rate(*distance, lengths);
                return Status();
            });
        if (!status.ok()) return status;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if (i % 65536 == 0 && execution.stop_requested()) return Status::cancelled();
            if (rates[i] != far)
                pairs.push_back({candidates[i].first, candidates[i].second, rates[i]});
        }
        return {};
    }
};

}  // namespace

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
    HostPairFinder finder;
    return search_near_duplicates(parameters, documents, signatures, finder, execution);
}

}  // namespace gputext
