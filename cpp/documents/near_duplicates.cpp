#include "cpp/documents/near_duplicates.hpp"

#include <algorithm>
#include <numeric>

#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/components.hpp"
#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/detail/near_duplicate_search.hpp"
#include "cpp/documents/detail/signature_join.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/near_duplicate_cost.hpp"

namespace gputext {
namespace {

/// Up to so many candidates of signatures, and so many a document, are verified one by one.
constexpr std::uint64_t kFewCandidates = 1 << 16;
constexpr std::uint64_t kCandidatesPerDocument = 8;
/// What a candidate takes while candidates are sorted.
constexpr std::size_t kCandidateBytes = 32;

/// One search on the host's processors.
class HostSearch {
public:
    HostSearch(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
               Execution& execution, std::vector<NearPair>& pairs)
        : parameters_(parameters), documents_(documents), execution_(execution), pairs_(pairs) {}

    /// Where signatures make too many pairs candidates, looking at the documents costs less: then
    /// signatures decide on the near pairs alone.
    Status run() {
        if (parameters_.mode == NearDuplicateMode::exact) return find_exact();
        bool too_many =
            estimate_near_duplicates(documents_.documents.extents, parameters_.threshold,
                                     !documents_.signatures.empty())
                .documents_first;
        std::vector<IndexPair> candidates;
        if (!too_many) {
            const std::vector<std::uint8_t> all(documents_.size(), 1);
            GPUTEXT_TRY(compute_signatures(all));
            const std::uint64_t most =
                std::min<std::uint64_t>(kFewCandidates + kCandidatesPerDocument * documents_.size(),
                                        parameters_.memory_limit / kCandidateBytes);
            GPUTEXT_TRY(join_signatures(signatures_, signature_rate(parameters_.threshold),
                                        parameters_.simd, execution_, candidates, most, &too_many));
        }
        return too_many ? find_exact_with_near_signatures() : verify(candidates);
    }

private:
    Status find_exact() { return find_exact_pairs(parameters_, documents_, execution_, pairs_); }

    Status find_exact_with_near_signatures() {
        GPUTEXT_TRY(find_exact());
        if (signatures_.empty()) {
            std::vector<std::uint8_t> wanted(documents_.size(), 0);
            for (const NearPair& pair : pairs_) wanted[pair.first] = wanted[pair.second] = 1;
            GPUTEXT_TRY(compute_signatures(wanted));
        }
        constexpr std::size_t step = 1 << 12;
        std::vector<std::uint8_t> near(pairs_.size());
        execution_.begin_phase("comparing signatures", (pairs_.size() + step - 1) / step);
        GPUTEXT_TRY(execution_.parallel_for(
            (pairs_.size() + step - 1) / step, [&](std::size_t i, unsigned) {
                const std::size_t end = std::min(pairs_.size(), (i + 1) * step);
                for (std::size_t pair = i * step; pair < end; ++pair)
                    near[pair] = edit_rate(signatures_[pairs_[pair].first],
                                           signatures_[pairs_[pair].second]) <=
                                 signature_rate(parameters_.threshold);
                return Status();
            }));
        std::size_t kept = 0;
        for (std::size_t i = 0; i < pairs_.size(); ++i)
            if (near[i] != 0) pairs_[kept++] = pairs_[i];
        pairs_.resize(kept);
        return {};
    }

    /// Of the wanted documents.
    Status compute_signatures(const std::vector<std::uint8_t>& wanted) {
        signatures_.resize(documents_.size());
        execution_.begin_phase("computing signatures", documents_.size());
        return execution_.parallel_for(documents_.size(), [&](std::size_t i, unsigned) {
            if (wanted[i] == 0) return Status();
            if (const Ctph* given = documents_.signature(i)) {
                signatures_[i] = *given;
                return Status();
            }
            Result<Ctph> signature = ctph_signature(
                documents_.documents[i], parameters_.signature_length, execution_.stop());
            if (!signature.ok()) return signature.status();
            signatures_[i] = std::move(*signature);
            return Status();
        });
    }

    /// Keeps those candidates whose edit rate is at most the threshold.
    Status verify(std::span<const IndexPair> candidates) {
        constexpr double far = 1;
        std::vector<double> rates;
        if (!stoppable_assign(rates, candidates.size(), far, execution_.stop()))
            return Status::cancelled();
        std::vector<EditDistance> edit_distance(execution_.threads());
        execution_.begin_phase("verifying candidates", candidates.size());
        Status status =
            execution_.parallel_for(candidates.size(), [&](std::size_t i, unsigned worker) {
                const auto [first, second] = candidates[i];
                const std::size_t lengths =
                    std::size_t{documents_.lengths[first]} + documents_.lengths[second];
                const std::size_t most = most_edits_within(parameters_.threshold, lengths);
                const Result<std::size_t> distance = edit_distance[worker].of_texts(
                    documents_.documents[first], documents_.documents[second],
                    documents_.documents.characters, most, execution_.stop());
                if (!distance.ok()) return distance.status();
                if (*distance <= most) rates[i] = edit_rate(*distance, lengths);
                return Status();
            });
        if (!status.ok()) return status;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if (i % 65536 == 0 && execution_.stop_requested()) return Status::cancelled();
            if (rates[i] != far)
                pairs_.push_back({candidates[i].first, candidates[i].second, rates[i]});
        }
        return {};
    }

    const NearDuplicateParameters& parameters_;
    const DistinctDocuments& documents_;
    Execution& execution_;
    std::vector<NearPair>& pairs_;
    std::vector<Ctph> signatures_;
};

class HostPairFinder : public NearPairFinder {
public:
    Status find(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
                Execution& execution, std::vector<NearPair>& pairs) override {
        return HostSearch(parameters, documents, execution, pairs).run();
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

Result<NearDuplicates> NearDuplicates::from_parts(std::span<const std::uint32_t> first_copies,
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
                                      std::vector<NearDuplicate>& neighbours) const {
    neighbours.clear();
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
    std::sort(
        neighbours.begin(), neighbours.end(),
        [](const NearDuplicate& a, const NearDuplicate& b) { return a.document < b.document; });
}

std::uint64_t NearDuplicates::pairs() const {
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
    for (std::uint32_t i = 0; i < first_copy_.size(); ++i) {
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
