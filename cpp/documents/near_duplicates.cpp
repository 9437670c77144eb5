#include "cpp/documents/near_duplicates.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "cpp/base/disjoint_sets.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/near_duplicate_search.hpp"

namespace gputext {

Status check_near_duplicates(const NearDuplicateParameters& parameters, std::size_t documents) {
    if (!(parameters.threshold >= 0 && parameters.threshold < 0.5))
        return Status(ErrorCode::invalid_argument, "threshold must be at least 0 and below 0.5");
    if (parameters.signature_length < 1 || parameters.signature_length > Ctph::max_length)
        return Status(ErrorCode::invalid_argument,
                      "signature length must be between 1 and " + std::to_string(Ctph::max_length));
    if (documents >= UINT32_MAX)
        return Status(ErrorCode::invalid_argument, "more than 4294967294 documents");
    if (parameters.split > documents)
        return Status(ErrorCode::invalid_argument, "a split behind the documents");
    if (parameters.split > 0 && parameters.components_only)
        return Status(ErrorCode::invalid_argument, "components of documents with a split");
    return {};
}

Result<NearDuplicates> near_duplicates(const NearDuplicateParameters& parameters,
                                       const Documents& documents, GivenSignatures signatures,
                                       Execution& execution) {
    HostPairFinder finder;
    return search_near_duplicates(parameters, documents, signatures, finder, execution);
}

namespace {

/// Documents whose neighbors one thread sorts before it takes further ones.
constexpr std::size_t kSortedTogether = std::size_t{1} << 10;

std::pair<std::uint32_t, std::uint32_t> place_of(const NearPair& pair) {
    return {pair.first, pair.second};
}

}  // namespace

NearDuplicates::NearDuplicates(std::vector<std::uint32_t> first_copies, std::uint32_t split)
    : split_(split), first_copy_(std::move(first_copies)) {
    // While a class is filled the place behind it moves on to where the next one begins.
    members_begin_.assign(first_copy_.size() + 2, 0);
    for (const std::uint32_t first : first_copy_) ++members_begin_[std::size_t{first} + 2];
    std::partial_sum(members_begin_.begin(), members_begin_.end(), members_begin_.begin());
    members_.resize(first_copy_.size());
    for (std::uint32_t i = 0; i < first_copy_.size(); ++i)
        members_[members_begin_[std::size_t{first_copy_[i]} + 1]++] = i;
    members_begin_.pop_back();
}

Status NearDuplicates::collect_pairs(std::span<const NearPair> pairs, Stop stop) {
    // Filled as the classes are.
    near_begin_.assign(first_copy_.size() + 2, 0);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        ++near_begin_[std::size_t{pairs[i].first} + 2];
        ++near_begin_[std::size_t{pairs[i].second} + 2];
    }
    std::partial_sum(near_begin_.begin(), near_begin_.end(), near_begin_.begin());
    if (!stoppable_assign(near_, near_begin_.back(), {}, stop)) return Status::cancelled();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        const auto& [first, second, rate] = pairs[i];
        near_[near_begin_[std::size_t{first} + 1]++] = {second, rate};
        near_[near_begin_[std::size_t{second} + 1]++] = {first, rate};
    }
    near_begin_.pop_back();
    return {};
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
                                                  std::span<const NearPair> pairs,
                                                  std::uint32_t split, Stop stop) {
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
        if (i > 0 && place_of(pairs[i - 1]) >= place_of(pairs[i]))
            return broken("pairs out of order");
        if (!(rate >= 0 && rate < 0.5)) return broken("an edit rate out of range");
    }

    NearDuplicates answer({first_copies.begin(), first_copies.end()}, split);
    GPUTEXT_TRY(answer.collect_pairs(pairs, stop));
    return answer;
}

Result<NearDuplicates> NearDuplicates::from_search(std::vector<std::uint32_t> first_copies,
                                                   std::span<const NearPair> pairs,
                                                   std::uint32_t split, Execution& execution) {
    execution.begin_phase("joining pairs", 0);
    NearDuplicates answer(std::move(first_copies), split);
    GPUTEXT_TRY(answer.collect_pairs(pairs, execution.stop()));
    bool ascending = true;
    for (std::size_t i = 1; i < pairs.size() && ascending; ++i) {
        if (i % 65536 == 0 && execution.stop_requested()) return Status::cancelled();
        ascending = place_of(pairs[i - 1]) < place_of(pairs[i]);
    }
    if (ascending) return answer;
    GPUTEXT_TRY(answer.sort_neighbors(execution));
    GPUTEXT_TRY(answer.drop_repeated(execution.stop()));
    return answer;
}

Status NearDuplicates::sort_neighbors(Execution& execution) {
    const std::size_t steps = (documents() + kSortedTogether - 1) / kSortedTogether;
    execution.begin_phase("sorting pairs", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned) {
        const std::size_t end = std::min(documents(), (step + 1) * kSortedTogether);
        for (std::size_t i = step * kSortedTogether; i < end; ++i) {
            if (execution.stop_requested()) return Status::cancelled();
            std::ranges::sort(
                std::span(near_).subspan(near_begin_[i], near_begin_[i + 1] - near_begin_[i]), {},
                &NearDuplicate::document);
        }
        return Status();
    });
}

Status NearDuplicates::drop_repeated(Stop stop) {
    std::uint64_t kept = 0;
    for (std::size_t i = 0; i < documents(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        const std::uint64_t begin = std::exchange(near_begin_[i], kept);
        for (std::uint64_t k = begin; k < near_begin_[i + 1]; ++k)
            if (k == begin || near_[k].document != near_[kept - 1].document)
                near_[kept++] = near_[k];
    }
    near_begin_.back() = kept;
    near_.resize(kept);
    return {};
}

std::span<const std::uint32_t> NearDuplicates::copies(std::uint32_t first_copy) const {
    return std::span(members_).subspan(members_begin_[first_copy],
                                       members_begin_[first_copy + 1] - members_begin_[first_copy]);
}

void NearDuplicates::later_neighbors(std::uint32_t document,
                                      std::vector<NearDuplicate>& neighbors) const {
    neighbors.clear();
    if (split_ > 0 && document >= split_) return;
    const std::uint32_t first = first_copy_[document];
    const std::uint32_t begin = std::max(document + 1, split_);
    const auto add_later = [&](std::uint32_t other, double rate) {
        const auto members = copies(other);
        for (auto it = std::lower_bound(members.begin(), members.end(), begin); it != members.end();
             ++it)
            neighbors.push_back({*it, rate});
    };
    add_later(first, 0);
    for (std::uint64_t i = near_begin_[first]; i < near_begin_[first + 1]; ++i)
        add_later(near_[i].document, near_[i].edit_rate);
    std::ranges::sort(neighbors, {}, &NearDuplicate::document);
}

std::uint64_t NearDuplicates::pairs() const {
    std::uint64_t count = 0;
    for (std::uint32_t first = 0; first < first_copy_.size(); ++first) {
        if (first_copy_[first] != first) continue;
        const std::uint64_t own = copies(first).size();
        const std::uint64_t behind = split_ > 0 ? copies_behind_split(first) : 0;
        count += split_ > 0 ? (own - behind) * behind : own * (own - 1) / 2;
        for (std::uint64_t i = near_begin_[first]; i < near_begin_[first + 1]; ++i) {
            if (near_[i].document < first) continue;
            const std::uint64_t other = copies(near_[i].document).size();
            const std::uint64_t other_behind =
                split_ > 0 ? copies_behind_split(near_[i].document) : 0;
            count += split_ > 0 ? (own - behind) * other_behind + behind * (other - other_behind)
                                : own * other;
        }
    }
    return count;
}

std::size_t NearDuplicates::copies_behind_split(std::uint32_t first_copy) const {
    const auto members = copies(first_copy);
    return static_cast<std::size_t>(members.end() -
                                    std::lower_bound(members.begin(), members.end(), split_));
}

Result<std::vector<std::uint32_t>> NearDuplicates::components(Stop stop) const {
    DisjointSets components(first_copy_.size());
    for (std::uint32_t i = 0; i < first_copy_.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        components.join(i, first_copy_[i]);
        for (std::uint64_t n = near_begin_[i]; n < near_begin_[i + 1]; ++n)
            components.join(i, near_[n].document);
    }
    return components.firsts();
}

}  // namespace gputext
