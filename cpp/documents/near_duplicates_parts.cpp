#include "cpp/documents/near_duplicates_parts.hpp"

#include <algorithm>
#include <utility>

#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/detail/near_duplicate_search.hpp"
#include "cpp/documents/detail/signature_join.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/near_duplicate_cost.hpp"

namespace gputext {
namespace {

/// Signatures of unrelated documents often have an edit rate below this.
constexpr double kTellingRate = 0.5;
/// Up to so many candidates of signatures, and so many a document, are verified one by one.
constexpr std::uint64_t kFewCandidates = 1 << 16;
constexpr std::uint64_t kCandidatesPerDocument = 8;
/// What a candidate takes while candidates are sorted.
constexpr std::size_t kCandidateBytes = 32;

/// One search on the host's processors.
class HostSearch {
public:
    HostSearch(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
               const PairPart& part, Execution& execution, PartPairs& found)
        : parameters_(parameters),
          documents_(documents),
          part_(part),
          execution_(execution),
          found_(found),
          pairs_(found.pairs),
          wanted_(documents) {}

    /// Where signatures make too many pairs candidates, looking at the documents costs less: then
    /// signatures decide on the near pairs alone.
    Status run() {
        if (parameters_.mode == NearDuplicateMode::exact) return find_exact();
        bool too_many = documents_first();
        std::vector<IndexPair> candidates;
        if (!too_many) {
            const std::vector<std::uint8_t> all(documents_.size(), 1);
            GPUTEXT_TRY(compute_signatures(all));
            const std::uint64_t most = std::min<std::uint64_t>(
                (kFewCandidates + kCandidatesPerDocument * documents_.size()) / part_.count,
                parameters_.memory_limit / kCandidateBytes);
            GPUTEXT_TRY(join_signatures(signatures_, signature_rate(parameters_.threshold),
                                        parameters_.simd, execution_, candidates, most, &too_many,
                                        part_, documents_.sides));
            found_.too_many = too_many && part_.source == PairSource::signatures;
            if (found_.too_many) return {};
        }
        return too_many ? find_exact_with_near_signatures() : verify(candidates);
    }

private:
    bool documents_first() const {
        if (part_.source != PairSource::fastest) return part_.source == PairSource::documents;
        return estimate_near_duplicates(documents_, parameters_.threshold).documents_first;
    }

    Status find_exact() {
        return find_exact_pairs(parameters_, documents_, execution_, pairs_, nullptr,
                                ExactMethod::estimated, part_, &wanted_);
    }

    Status find_exact_with_near_signatures() {
        if (wanted_.connect_sets()) {
            if (signatures_.empty())
                GPUTEXT_TRY(compute_signatures(std::vector<std::uint8_t>(documents_.size(), 1)));
            wanted_.require_near_signatures(signatures_, signature_rate(parameters_.threshold));
            return find_exact();
        }
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

    /// Computes the signatures of the wanted documents.
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
                if (!wanted_.wants(first, second)) return Status();
                const std::size_t lengths =
                    std::size_t{documents_.lengths[first]} + documents_.lengths[second];
                const std::size_t most = most_edits_within(parameters_.threshold, lengths);
                const Result<std::size_t> distance = edit_distance[worker].of_texts(
                    documents_.documents[first], documents_.documents[second],
                    documents_.documents.characters, most, execution_.stop());
                if (!distance.ok()) return distance.status();
                if (*distance <= most && wanted_.take(first, second))
                    rates[i] = edit_rate(*distance, lengths);
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
    const PairPart& part_;
    Execution& execution_;
    PartPairs& found_;
    std::vector<NearPair>& pairs_;
    WantedPairs wanted_;
    std::vector<Ctph> signatures_;
};

}  // namespace

PairSource first_source(const NearDuplicateParameters& parameters) {
    return parameters.mode == NearDuplicateMode::exact ||
                   signature_rate(parameters.threshold) > kTellingRate
               ? PairSource::documents
               : PairSource::signatures;
}

Result<PartPairs> near_pairs(const NearDuplicateParameters& parameters,
                             const DistinctDocuments& documents, const PairPart& part,
                             Execution& execution) {
    PartPairs found;
    GPUTEXT_TRY(HostSearch(parameters, documents, part, execution, found).run());
    return found;
}

Status HostPairFinder::find(const NearDuplicateParameters& parameters,
                            const DistinctDocuments& documents, Execution& execution,
                            std::vector<NearPair>& pairs) {
    auto found = near_pairs(parameters, documents, PairPart(), execution);
    if (!found.ok()) return found.status();
    pairs = std::move(found->pairs);
    return {};
}

Result<bool> has_large_clusters(const NearDuplicateParameters& parameters,
                                const DistinctDocuments& documents, Execution& execution) {
    HostPairFinder finder;
    return has_large_clusters(parameters, documents, finder, execution);
}

Result<std::vector<Ctph>> ctph_signatures(const Documents& documents, std::size_t longest,
                                          Execution& execution) {
    std::vector<Ctph> signatures(documents.size());
    execution.begin_phase("computing signatures", documents.size());
    GPUTEXT_TRY(execution.parallel_for(documents.size(), [&](std::size_t i, unsigned) {
        Result<Ctph> signature = ctph_signature(documents[i], longest, execution.stop());
        if (!signature.ok()) return signature.status();
        signatures[i] = std::move(*signature);
        return Status();
    }));
    return signatures;
}

namespace {

constexpr std::size_t kRowBlock = 64;  // of a device's tiles
constexpr std::size_t kStripesOfPart = 32;
/// Devices that hold a part of the documents at a time cut these into other row blocks, so that
/// they look at some row blocks of other parts, too, at the ends of each stripe.
constexpr std::size_t kMostStripe = 1024;

}  // namespace

bool rows_of_part(std::span<const std::uint32_t> lengths, const PairPart& part, Stop stop,
                  std::vector<std::uint8_t>& rows) {
    rows.clear();
    if (part.count == 1) return true;
    std::vector<std::uint64_t> keys(lengths.size());
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = std::uint64_t{lengths[i]} << 32 | i;
    if (!radix_sort(keys, stop)) return false;
    const std::size_t blocks = keys.size() / (kStripesOfPart * part.count) / kRowBlock;
    const std::size_t stripe = std::clamp(blocks * kRowBlock, kRowBlock, kMostStripe);
    rows.resize(keys.size());
    for (std::size_t place = 0; place < keys.size(); ++place)
        rows[static_cast<std::uint32_t>(keys[place])] = has_stripe(part, place / stripe) ? 1 : 0;
    return true;
}

}  // namespace gputext
