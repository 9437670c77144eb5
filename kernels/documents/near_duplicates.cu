#include "kernels/documents/near_duplicates.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "cpp/base/disjoint_sets.hpp"
#include "cpp/base/radix_sort.hpp"
#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/detail/near_duplicate_search.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/document_slots.hpp"
#include "kernels/documents/detail/edit_distance.hpp"
#include "kernels/documents/detail/exact_join.hpp"
#include "kernels/documents/detail/short_documents.hpp"
#include "kernels/documents/detail/signature_hash.hpp"
#include "kernels/documents/detail/signature_join.hpp"

namespace gputext::gpu {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::size_t kStep = 1 << 12;       // documents or pairs of a thread's step
constexpr std::size_t kLookAfter = 1 << 16;  // of a loop of few operations each
constexpr std::size_t kMostPairs = 1 << 22;  // that are verified by one call
/// Up to so many candidates of signatures, and so many a document, are verified.
constexpr std::uint64_t kFewCandidates = 1 << 16;
constexpr std::uint64_t kCandidatesPerDocument = 8;
/// So many times only candidates are verified that would connect documents if all of them were
/// near; then the rest.
constexpr std::size_t kForests = 4;
constexpr std::uint64_t kPlenty = std::uint64_t{4} << 30;  // of memory to work with
/// Bytes for each document that the operators' own plans leave out: where it lies, whether it is
/// wide, its place among the decoded ones, and its part of the joins' tables.
constexpr std::uint64_t kDocumentBytes = 48;
constexpr std::uint64_t kSlack = 4096;  // for what sizes are rounded up to

Status needs_more(std::uint64_t needed, std::uint64_t allowed) {
    const auto megabytes = [](std::uint64_t bytes) {
        return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MB";
    };
    return {ErrorCode::out_of_memory, "this job needs at least " + megabytes(needed) +
                                          " of device memory, and may take " + megabytes(allowed)};
}

/// Calls body(i) for all numbers below `size`, by all threads.
template <class Body>
Status for_steps(std::size_t size, Execution& execution, Body&& body) {
    return execution.parallel_for((size + kStep - 1) / kStep, [&](std::size_t step, unsigned) {
        const std::size_t end = std::min(size, (step + 1) * kStep);
        for (std::size_t i = step * kStep; i < end; ++i) body(i);
        return Status();
    });
}

/// How documents come to the device: all at once, or in groups, two of them at a time.
struct Layout {
    GroupLimits limits;
    std::uint64_t needed = 0;  // 0: the layout is possible; else it would take that much

    bool at_once() const { return limits.bytes == UINT64_MAX; }
};

/// The two largest of some documents, the bytes of all, and these with kDocumentBytes for each.
struct Sizes {
    Extent largest[2] = {};
    std::uint64_t bytes = 0;
    std::uint64_t sum = 0;

    void add(const Extent& extent) {
        bytes += extent.size;
        sum += extent.size + kDocumentBytes;
        Extent own{0, extent.size};
        for (Extent& one : largest)
            if (own.size > one.size) std::swap(one, own);
    }
};

class DeviceSearch {
public:
    DeviceSearch(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
                 const PairPart& part, const DeviceWork& work, UploadRing& ring,
                 Execution& execution, PartPairs& found)
        : parameters_(parameters),
          documents_(documents),
          part_(part),
          work_(work),
          execution_(execution),
          found_(found),
          pairs_(found.pairs),
          wanted_(documents),
          slots_(documents.documents, ring, work.stream),
          ring_(ring) {}

    Status run() {
        if (documents_.size() < 2) return {};
        return parameters_.mode == NearDuplicateMode::ctph ? find_by_signature() : find_by_counts();
    }

private:
    // ---- Plans ----

    /// What finding candidates and verifying them takes at least.
    std::uint64_t least_work(const Sizes& sizes) const {
        const DeviceDocuments largest{nullptr, nullptr, sizes.largest,
                                      documents_.documents.characters};
        return least_verifying(largest) + least_document_join_bytes(largest) + kSlack;
    }

    static std::uint64_t least_verifying(const DeviceDocuments& largest) {
        const DocumentPair pair{0, 1, 0};
        return least_edit_distance_bytes(largest, {&pair, 1});
    }

    /// All at once if that leaves room to work, else two groups at a time that leave half of the
    /// memory; less where documents are so large.
    Layout layout_of(const Sizes& sizes, std::uint64_t least) const {
        const std::uint64_t all = work_.bytes;
        const std::uint64_t largest = sizes.largest[0].size + kDocumentBytes;
        if (sizes.sum + std::max(least, std::min(all / 4, kPlenty)) <= all) return {};
        if (2 * largest + least <= all)
            return {group_limits(sizes, std::max(largest, std::min(all / 4, (all - least) / 2)))};
        const std::uint64_t together = std::min(sizes.sum, 2 * largest) + least;
        return together <= all ? Layout() : Layout{{}, together};
    }

    /// Limits of a group of `bytes`, in which the documents' own bytes get their share.
    static GroupLimits group_limits(const Sizes& sizes, std::uint64_t bytes) {
        const double share = static_cast<double>(sizes.bytes) / static_cast<double>(sizes.sum);
        const std::uint64_t own = std::max<std::uint64_t>(
            sizes.largest[0].size, static_cast<std::uint64_t>(share * static_cast<double>(bytes)));
        return {own, std::max<std::uint64_t>(1, (bytes - own) / kDocumentBytes)};
    }

    Sizes sizes_of(std::span<const std::uint32_t> documents) const {
        Sizes sizes;
        for (const std::uint32_t document : documents) sizes.add(extent(document));
        return sizes;
    }

    Sizes sizes_of_all() const {
        Sizes sizes;
        for (const Extent& extent : documents_.documents.extents) sizes.add(extent);
        return sizes;
    }

    const Extent& extent(std::uint32_t document) const {
        return documents_.documents.extents[document];
    }

    std::vector<std::uint32_t> all_documents() const {
        std::vector<std::uint32_t> all(documents_.size());
        std::iota(all.begin(), all.end(), 0u);
        return all;
    }

    bool comparable(std::uint32_t a, std::uint32_t b) const {
        const auto [shorter, longer] = std::minmax(documents_.lengths[a], documents_.lengths[b]);
        return longer - shorter <=
               most_edits_within(parameters_.threshold, std::size_t{longer} + shorter);
    }

    /// The documents that some other document may be near to, by their lengths. In order of length.
    Status sort_comparable(std::vector<std::uint32_t>& order) const {
        std::vector<std::uint64_t> keys(documents_.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = std::uint64_t{documents_.lengths[i]} << 32 | i;
        if (!radix_sort(keys, execution_.stop())) return Status::cancelled();
        const auto near = [&](std::size_t i) {
            return i + 1 < keys.size() && comparable(static_cast<std::uint32_t>(keys[i]),
                                                     static_cast<std::uint32_t>(keys[i + 1]));
        };
        order.clear();
        bool near_before = false;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (i % kLookAfter == 0 && execution_.stop_requested()) return Status::cancelled();
            const bool near_behind = near(i);
            if (near_before || near_behind) order.push_back(static_cast<std::uint32_t>(keys[i]));
            near_before = near_behind;
        }
        return {};
    }

    /// What is left for an operator beside the slots.
    std::size_t bytes_left() const {
        const std::uint64_t used =
            slots_.bytes() + slots_.numbers().size() * (kDocumentBytes / 2 - sizeof(Extent));
        return work_.bytes - std::min<std::uint64_t>(work_.bytes, used);
    }

    // ---- Mode exact ----

    Status find_by_counts() {
        if (!rows_of_part(documents_.lengths, part_, execution_.stop(), rows_))
            return Status::cancelled();
        if (!documents_.sides.empty()) select_sides();
        bool short_ones = false;
        GPUTEXT_TRY(are_short(documents_, short_ones));
        // Where sets are to be connected most pairs need not be looked at.
        if (short_ones && !wanted_.connect_sets()) {
            const Status status = join_short_documents(
                parameters_.threshold, documents_, rows_, columns_, {work_.stream, bytes_left()},
                ring_, execution_, pairs_);
            if (status.code() != ErrorCode::out_of_memory) return status;
        }
        if (!slots_.numbers().empty()) return join_view();
        std::vector<std::uint32_t> order = all_documents();
        Sizes sizes = sizes_of(order);
        Layout layout = layout_of(sizes, least_work(sizes));
        if (layout.needed > 0 || !layout.at_once()) {
            GPUTEXT_TRY(sort_comparable(order));
            sizes = sizes_of(order);
            layout = layout_of(sizes, least_work(sizes));
        }
        if (layout.needed > 0) return needs_more(layout.needed, work_.bytes);
        const DocumentGroups groups =
            group_documents(documents_.documents.extents, std::move(order), layout.limits);
        GPUTEXT_TRY(slots_.allocate(std::min<std::size_t>(2, groups.size()), groups.largest));
        for (std::size_t i = 0; i < groups.size(); ++i) {
            GPUTEXT_TRY(slots_.load(0, groups[i], execution_));
            GPUTEXT_TRY(join_view());
            // Groups are in order of length, unless there is only one.
            for (std::size_t k = i + 1;
                 k < groups.size() && comparable(groups[i].back(), groups[k].front()); ++k) {
                GPUTEXT_TRY(slots_.load(1, groups[k], execution_));
                GPUTEXT_TRY(join_view());
            }
        }
        return {};
    }

    /// Leaves, of the rows of the part, those on the side of rows, and marks the columns.
    void select_sides() {
        const std::uint8_t side = row_side(documents_.sides);
        rows_.resize(documents_.size(), 1);
        columns_.resize(documents_.size());
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if ((documents_.sides[i] & side) == 0) rows_[i] = 0;
            columns_[i] = (documents_.sides[i] & ~side) != 0 ? 1 : 0;
        }
    }

    /// Pairs of the first slot, or of one in the first and one in the second when there are any.
    Status join_view() {
        const auto numbers = slots_.numbers();
        std::vector<std::uint32_t> lengths(numbers.size());
        std::vector<std::uint8_t> rows(rows_.empty() ? 0 : numbers.size());
        std::vector<std::uint8_t> columns(columns_.empty() ? 0 : numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            lengths[i] = documents_.lengths[numbers[i]];
            if (!rows.empty()) rows[i] = rows_[numbers[i]];
            if (!columns.empty()) columns[i] = columns_[numbers[i]];
        }
        const DeviceDocuments view = slots_.view();
        const std::size_t all = bytes_left();
        const std::size_t joining = std::clamp(
            all / 2, least_document_join_bytes(view),
            std::max(least_document_join_bytes(view),
                     all - std::min<std::size_t>(all, least_verifying(largest_of(view)))));
        verifying_bytes_ = all - std::min(all, joining);
        return join_documents(
            parameters_.threshold, view, lengths, joining, execution_, work_.stream,
            [this](std::span<const IndexPair> candidates) { return verify_across(candidates); },
            rows, columns);
    }

    /// The two largest of some documents, as documents.
    DeviceDocuments largest_of(const DeviceDocuments& documents) {
        Sizes sizes;
        for (const Extent& extent : documents.host_extents) sizes.add(extent);
        std::copy(std::begin(sizes.largest), std::end(sizes.largest), std::begin(largest_));
        return {nullptr, nullptr, largest_, documents.characters};
    }

    /// Verifies the candidates whose documents are not in one slot, where there are two slots.
    Status verify_across(std::span<const IndexPair> candidates) {
        const std::size_t in_first = slots_.in_first();
        if (in_first == slots_.numbers().size()) return verify(candidates);
        std::vector<IndexPair> across;
        for (const IndexPair& pair : candidates)
            if (pair.first < in_first && pair.second >= in_first) across.push_back(pair);
        return verify(across);
    }

    // ---- Mode ctph ----

    /// Where signatures make too many pairs candidates, looking at the documents costs less: then
    /// signatures decide on the near pairs alone.
    Status find_by_signature() {
        std::vector<Ctph> signatures(documents_.size());
        const PairSource source =
            part_.source == PairSource::fastest ? first_source(parameters_) : part_.source;
        if (source == PairSource::documents && wanted_.connect_sets()) {
            GPUTEXT_TRY(compute_signatures(signatures));
            wanted_.require_near_signatures(signatures, signature_rate(parameters_.threshold));
            return find_by_counts();
        }
        if (source == PairSource::documents) {
            GPUTEXT_TRY(find_by_counts());
            GPUTEXT_TRY(compute_near_signatures(signatures));
            return keep_near_signatures(signatures);
        }
        std::vector<IndexPair> candidates;
        GPUTEXT_TRY(compute_signatures(signatures));
        PairLimit limit{(kFewCandidates + kCandidatesPerDocument * documents_.size()) /
                        part_.count};
        GPUTEXT_TRY(join_signatures(signatures, signature_rate(parameters_.threshold),
                                    {work_.stream, bytes_left()}, execution_, candidates,
                                    FilterKernel::fitting, nullptr, &limit, part_,
                                    documents_.sides));
        found_.too_many = limit.exceeded && part_.source == PairSource::signatures;
        if (found_.too_many) return {};
        if (limit.exceeded) {
            wanted_.require_near_signatures(signatures, signature_rate(parameters_.threshold));
            GPUTEXT_TRY(find_by_counts());
            return keep_near_signatures(signatures);
        }
        // All documents lie in one slot by their own numbers, if any.
        verifying_bytes_ = bytes_left();
        if (!slots_.numbers().empty()) return verify(candidates);
        return verify_in_groups(candidates);
    }

    /// Computes the signatures of documents in near pairs on the host, since these are usually few.
    Status compute_near_signatures(std::vector<Ctph>& signatures) {
        std::vector<std::uint8_t> near(signatures.size(), 0);
        for (const NearPair& pair : pairs_) near[pair.first] = near[pair.second] = 1;
        execution_.begin_phase("computing signatures", signatures.size());
        return execution_.parallel_for(signatures.size(), [&](std::size_t i, unsigned) {
            if (near[i] == 0) return Status();
            if (const Ctph* given = documents_.signature(i)) {
                signatures[i] = *given;
                return Status();
            }
            Result<Ctph> signature = ctph_signature(
                documents_.documents[i], parameters_.signature_length, execution_.stop());
            if (!signature.ok()) return signature.status();
            signatures[i] = std::move(*signature);
            return Status();
        });
    }

    /// Drops the pairs whose signatures are not near.
    Status keep_near_signatures(const std::vector<Ctph>& signatures) {
        const double rate = signature_rate(parameters_.threshold);
        std::vector<std::uint8_t> near(pairs_.size());
        execution_.begin_phase("comparing signatures", (pairs_.size() + kStep - 1) / kStep);
        GPUTEXT_TRY(for_steps(pairs_.size(), [&](std::size_t i) {
            near[i] = edit_rate(signatures[pairs_[i].first], signatures[pairs_[i].second]) <= rate;
        }));
        std::size_t kept = 0;
        for (std::size_t i = 0; i < pairs_.size(); ++i)
            if (near[i] != 0) pairs_[kept++] = pairs_[i];
        pairs_.resize(kept);
        return {};
    }

    /// Fails now where memory will not suffice to verify candidates later.
    Status check_verification() const {
        const Sizes all = sizes_of_all();
        if (layout_of(all, least_work(all)).needed == 0) return {};
        std::vector<std::uint32_t> order;
        GPUTEXT_TRY(sort_comparable(order));
        const Sizes sizes = sizes_of(order);
        const Layout layout = layout_of(sizes, least_work(sizes));
        return layout.needed == 0 ? Status() : needs_more(layout.needed, work_.bytes);
    }

    /// Computes all signatures. Leaves the documents on the device if they fit and most are hashed.
    Status compute_signatures(std::vector<Ctph>& signatures) {
        GPUTEXT_TRY(check_verification());
        execution_.begin_phase("taking signatures", (signatures.size() + kStep - 1) / kStep);
        GPUTEXT_TRY(for_steps(signatures.size(), [&](std::size_t i) {
            if (const Ctph* given = documents_.signature(i)) signatures[i] = *given;
        }));
        std::vector<std::uint32_t> missing;
        for (std::uint32_t i = 0; i < signatures.size(); ++i)
            if (documents_.signature(i) == nullptr) missing.push_back(i);
        if (missing.empty()) return {};
        const Sizes sizes = sizes_of_all();
        const std::uint64_t least = std::max<std::uint64_t>(
            least_work(sizes), hash_bytes(missing.size(), parameters_.signature_length).least);
        const Layout layout = layout_of(sizes, least);
        return layout.needed == 0 && layout.at_once() && missing.size() >= signatures.size() / 2
                   ? hash_in_slot(missing, sizes, signatures)
                   : hash_in_stream(missing, signatures);
    }

    Status hash_in_slot(std::span<const std::uint32_t> missing, const Sizes& sizes,
                        std::vector<Ctph>& signatures) {
        GPUTEXT_TRY(slots_.allocate(1, sizes.bytes));
        GPUTEXT_TRY(slots_.load(0, all_documents(), execution_));
        execution_.begin_phase("computing signatures", 0);
        const DeviceDocuments view = slots_.view();
        std::vector<Extent> extents;
        for (const std::uint32_t document : missing) extents.push_back(view.host_extents[document]);
        const std::size_t longest = parameters_.signature_length;
        DeviceSignatures found;
        PackedSignatures packed;
        GPUTEXT_TRY(found.allocate(missing.size(), longest, work_.stream));
        GPUTEXT_TRY(hash_resident(view.bytes, extents, longest, {work_.stream, bytes_left()},
                                  execution_, found));
        GPUTEXT_TRY(found.download(packed, work_.stream));
        return unpack(packed, missing, signatures);
    }

    Status hash_in_stream(std::span<const std::uint32_t> missing, std::vector<Ctph>& signatures) {
        std::vector<Extent> extents;
        for (const std::uint32_t document : missing) extents.push_back(extent(document));
        auto found =
            ctph_signatures({documents_.documents.bytes, extents, documents_.documents.characters},
                            parameters_.signature_length, work_, ring_, execution_);
        if (!found.ok()) return found.status();
        return for_steps(missing.size(),
                         [&](std::size_t i) { signatures[missing[i]] = std::move((*found)[i]); });
    }

    Status unpack(const PackedSignatures& packed, std::span<const std::uint32_t> documents,
                  std::vector<Ctph>& signatures) {
        return for_steps(documents.size(),
                         [&](std::size_t i) { signatures[documents[i]] = packed[i]; });
    }

    // ---- Verifying ----

    /// Candidates among documents that are not on the device yet. Those that are connected by
    /// candidates come together.
    Status verify_in_groups(std::span<const IndexPair> candidates) {
        if (candidates.empty()) return {};
        if (candidates.size() > UINT32_MAX) return Status::out_of_memory();
        std::vector<std::uint32_t> order;
        GPUTEXT_TRY(sort_by_component(candidates, order));
        const Sizes sizes = sizes_of(order);
        const Layout layout = layout_of(sizes, least_work(sizes));
        if (layout.needed > 0) return needs_more(layout.needed, work_.bytes);
        const DocumentGroups groups =
            group_documents(documents_.documents.extents, std::move(order), layout.limits);
        GPUTEXT_TRY(slots_.allocate(std::min<std::size_t>(2, groups.size()), groups.largest));
        return verify_groups(candidates, groups);
    }

    /// The documents of the candidates.
    Status sort_by_component(std::span<const IndexPair> candidates,
                             std::vector<std::uint32_t>& order) const {
        DisjointSets components(documents_.size());
        std::vector<std::uint8_t> involved(documents_.size(), 0);
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if (i % kLookAfter == 0 && execution_.stop_requested()) return Status::cancelled();
            components.join(candidates[i].first, candidates[i].second);
            involved[candidates[i].first] = involved[candidates[i].second] = 1;
        }
        std::vector<std::uint64_t> keys;
        for (std::uint32_t i = 0; i < involved.size(); ++i)
            if (involved[i] != 0) keys.push_back(std::uint64_t{components.first(i)} << 32 | i);
        if (!radix_sort(keys, execution_.stop())) return Status::cancelled();
        for (const std::uint64_t key : keys) order.push_back(static_cast<std::uint32_t>(key));
        return {};
    }

    /// The candidates' numbers by a key that each of them has.
    template <class KeyOf>
    Status sort_candidates(std::vector<std::uint64_t>& keys, KeyOf&& key_of) const {
        for (std::uint64_t& key : keys) {
            const auto candidate = static_cast<std::uint32_t>(key);
            key = std::uint64_t{key_of(candidate)} << 32 | candidate;
        }
        return radix_sort(keys, execution_.stop()) ? Status() : Status::cancelled();
    }

    Status verify_groups(std::span<const IndexPair> candidates, const DocumentGroups& groups) {
        std::vector<std::uint32_t> group_of(documents_.size(), 0);
        for (std::uint32_t group = 0; group < groups.size(); ++group)
            for (const std::uint32_t document : groups[group]) group_of[document] = group;
        const auto lower = [&](std::uint32_t i) {
            return std::min(group_of[candidates[i].first], group_of[candidates[i].second]);
        };
        const auto upper = [&](std::uint32_t i) {
            return std::max(group_of[candidates[i].first], group_of[candidates[i].second]);
        };
        std::vector<std::uint64_t> keys(candidates.size());
        std::iota(keys.begin(), keys.end(), std::uint64_t{0});
        GPUTEXT_TRY(sort_candidates(keys, lower));
        place_.assign(documents_.size(), kNone);
        for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
            const auto group = static_cast<std::uint32_t>(keys[begin] >> 32);
            while (end < keys.size() && keys[end] >> 32 == group) ++end;
            std::vector<std::uint64_t> own(keys.begin() + begin, keys.begin() + end);
            GPUTEXT_TRY(sort_candidates(own, upper));
            GPUTEXT_TRY(slots_.load(0, groups[group], execution_));
            for (std::uint32_t i = 0; i < groups[group].size(); ++i) place_[groups[group][i]] = i;
            GPUTEXT_TRY(verify_with_first(candidates, own, group, group_of));
        }
        return {};
    }

    /// Candidates of the group in the first slot and later groups; `keys` has their later group and
    /// number, in this order.
    Status verify_with_first(std::span<const IndexPair> candidates,
                             std::span<const std::uint64_t> keys, std::uint32_t first_group,
                             std::span<const std::uint32_t> group_of) {
        std::vector<IndexPair> tile;
        for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
            const auto group = static_cast<std::uint32_t>(keys[begin] >> 32);
            tile.clear();
            for (; end < keys.size() && keys[end] >> 32 == group; ++end)
                tile.push_back(candidates[static_cast<std::uint32_t>(keys[end])]);
            if (group != first_group) GPUTEXT_TRY(load_second(tile, group, group_of));
            for (IndexPair& pair : tile) pair = {place_[pair.first], place_[pair.second]};
            verifying_bytes_ = bytes_left();
            GPUTEXT_TRY(verify(tile));
        }
        return {};
    }

    /// Loads the documents of a group that are in the pairs.
    Status load_second(std::span<const IndexPair> pairs, std::uint32_t group,
                       std::span<const std::uint32_t> group_of) {
        std::vector<std::uint32_t> documents;
        for (const IndexPair& pair : pairs)
            documents.push_back(group_of[pair.first] == group ? pair.first : pair.second);
        std::ranges::sort(documents);
        documents.erase(std::unique(documents.begin(), documents.end()), documents.end());
        for (std::uint32_t i = 0; i < documents.size(); ++i)
            place_[documents[i]] = static_cast<std::uint32_t>(slots_.in_first()) + i;
        return slots_.load(1, documents, execution_);
    }

    /// Keeps those pairs of places in the view whose edit rate is at most the threshold, if they
    /// are wanted.
    Status verify(std::span<const IndexPair> candidates) {
        if (!wanted_.connect_sets()) return verify_all(candidates);
        std::vector<IndexPair> left(candidates.begin(), candidates.end());
        for (std::size_t forests = 0; !left.empty(); ++forests) {
            std::size_t some = wanted_.put_forest_first(slots_.numbers(), left);
            if (forests == kForests) some = left.size();
            GPUTEXT_TRY(verify_all(std::span(left).first(some)));
            left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(some));
        }
        return {};
    }

    Status verify_all(std::span<const IndexPair> candidates) {
        while (!candidates.empty()) {
            const auto some = candidates.first(std::min(kMostPairs, candidates.size()));
            candidates = candidates.subspan(some.size());
            GPUTEXT_TRY(measure(some));
            keep_near();
        }
        return {};
    }

    Status measure(std::span<const IndexPair> candidates) {
        measured_.resize(candidates.size());
        distances_.resize(candidates.size());
        GPUTEXT_TRY(for_steps(candidates.size(), [&](std::size_t i) {
            const auto [first, second] = candidates[i];
            measured_[i] = {first, second,
                            static_cast<std::uint32_t>(most_edits_within(
                                parameters_.threshold, lengths_of(first, second)))};
        }));
        return edit_distances(slots_.view(), measured_, verifying_bytes_, execution_, work_.stream,
                              distances_);
    }

    void keep_near() {
        for (std::size_t i = 0; i < measured_.size(); ++i) {
            if (distances_[i] == kAboveLimit) continue;
            const auto [first, second] = std::minmax(slots_.numbers()[measured_[i].first],
                                                     slots_.numbers()[measured_[i].second]);
            if (!wanted_.take(first, second)) continue;
            pairs_.push_back({first, second, rate_of(distances_[i], first, second)});
        }
    }

    double rate_of(std::uint32_t edits, std::uint32_t first, std::uint32_t second) const {
        return edit_rate(edits, std::size_t{documents_.lengths[first]} + documents_.lengths[second]);
    }

    /// Sum of the lengths of two documents of the view.
    std::size_t lengths_of(std::uint32_t first, std::uint32_t second) const {
        return std::size_t{documents_.lengths[slots_.numbers()[first]]} +
               documents_.lengths[slots_.numbers()[second]];
    }

    template <class Body>
    Status for_steps(std::size_t size, Body&& body) {
        return gpu::for_steps(size, execution_, std::forward<Body>(body));
    }

    const NearDuplicateParameters& parameters_;
    const DistinctDocuments& documents_;
    const PairPart& part_;
    DeviceWork work_;
    Execution& execution_;
    PartPairs& found_;
    std::vector<NearPair>& pairs_;
    WantedPairs wanted_;
    DocumentSlots slots_;
    UploadRing& ring_;
    std::vector<std::uint8_t> rows_;     // by document: whether it is a row of the part; or none
    std::vector<std::uint8_t> columns_;  // by document, between two sides: whether it is a column
    std::vector<std::uint32_t> place_;   // by document: in the view, while it is there
    Extent largest_[2] = {};
    std::size_t verifying_bytes_ = 0;
    std::vector<DocumentPair> measured_;
    std::vector<std::uint32_t> distances_;
};

class DevicePairFinder : public NearPairFinder {
public:
    DevicePairFinder(const DeviceWork& work, UploadRing& ring) : work_(work), ring_(ring) {}

    Status find(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
                Execution& execution, std::vector<NearPair>& pairs) override {
        auto found = near_pairs(parameters, documents, PairPart(), work_, ring_, execution);
        if (!found.ok()) return found.status();
        pairs = std::move(found->pairs);
        return {};
    }

private:
    DeviceWork work_;
    UploadRing& ring_;
};

}  // namespace

/// In as many batches as the memory makes necessary.
Result<std::vector<Ctph>> ctph_signatures(const Documents& documents, std::size_t longest,
                                          const DeviceWork& work, UploadRing& ring,
                                          Execution& execution) {
    std::vector<Ctph> signatures(documents.size());
    const auto some = [&](std::size_t begin, std::size_t size) {
        return Documents{documents.bytes, documents.extents.subspan(begin, size),
                         documents.characters};
    };
    const auto needed = [&](std::size_t begin, std::size_t size) {
        return stream_bytes(some(begin, size).extents, longest);
    };
    std::size_t size = documents.size();
    for (std::size_t begin = 0; begin < documents.size(); begin += size) {
        size = std::min(size, documents.size() - begin);
        while (size > 1 && needed(begin, size) > work.bytes) size = (size + 1) / 2;
        if (const auto least = needed(begin, size); least > work.bytes)
            return needs_more(least, work.bytes);
        PackedSignatures packed;
        GPUTEXT_TRY(hash_documents(some(begin, size), longest, work, ring, execution, packed));
        GPUTEXT_TRY(
            for_steps(size, execution, [&](std::size_t i) { signatures[begin + i] = packed[i]; }));
    }
    return signatures;
}

Result<PartPairs> near_pairs(const NearDuplicateParameters& parameters,
                             const DistinctDocuments& documents, const PairPart& part,
                             const DeviceWork& work, UploadRing& ring, Execution& execution) {
    PartPairs found;
    GPUTEXT_TRY(DeviceSearch(parameters, documents, part, work, ring, execution, found).run());
    return found;
}

Result<NearDuplicates> near_duplicates(const NearDuplicateParameters& parameters,
                                       const Documents& documents, GivenSignatures signatures,
                                       const DeviceWork& work, UploadRing& ring,
                                       Execution& execution) {
    DevicePairFinder finder(work, ring);
    return search_near_duplicates(parameters, documents, signatures, finder, execution);
}

}  // namespace gputext::gpu
