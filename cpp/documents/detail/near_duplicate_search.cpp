#include "cpp/documents/detail/near_duplicate_search.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "cpp/base/counter_random.hpp"
#include "cpp/base/disjoint_sets.hpp"
#include "cpp/documents/distinct_documents.hpp"

namespace gputext {
namespace {

using Numbers = std::vector<std::uint32_t>;

constexpr std::uint32_t kNone = UINT32_MAX;
/// Fewer documents than this take one search, which also leaves out pairs within sets.
constexpr std::size_t kLeastDivided = 4096;
/// A sample has kSampled documents, or one in kSampledPart if these are more.
constexpr std::size_t kSampled = 1024, kSampledPart = 64;
/// Members in a sample that show a large set: about 1,000 documents, or one in 64.
constexpr std::size_t kLeastMembers = 16;
/// Documents that represent the large sets of a sample: a tile (gram_filter.hpp).
constexpr std::size_t kRepresentatives = 512;
/// Each sample is drawn from the documents that the earlier ones have not assigned to a large set.
constexpr std::size_t kMostSamples = 16;
/// Sets of fewer documents are searched together: their own pairs cost less than the division.
constexpr std::size_t kLeastBlock = 1024;

class ConnectingSearch {
public:
    ConnectingSearch(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
                     NearPairFinder& finder, Execution& execution, std::vector<NearPair>& pairs)
        : parameters_(parameters),
          documents_(documents),
          finder_(finder),
          execution_(execution),
          pairs_(pairs),
          sets_(documents.size()) {
        pairs_.clear();
    }

    Status run() {
        GPUTEXT_TRY(join_large_clusters());
        divide();
        return blocks_.empty() ? Status() : search_blocks(blocks_);
    }

    /// Chooses documents that represent the large clusters of a sample; none if it shows no such
    /// cluster.
    Status representatives(std::span<const std::uint32_t> documents, std::uint64_t sample_number,
                           Numbers& chosen) {
        chosen.clear();
        if (documents.size() < kLeastDivided) return {};
        const Numbers sample = sample_of(documents, sample_number);
        GPUTEXT_TRY(search(sample));
        chosen = choose(sample);
        return {};
    }

    Numbers all_documents() const {
        Numbers all(documents_.size());
        std::iota(all.begin(), all.end(), 0u);
        return all;
    }

private:
    /// Documents of one set, or all those of no large set, in order_.
    struct Block {
        std::size_t begin, end;
        bool one_set;
    };

    /// Some of the documents, by themselves.
    struct Part {
        Numbers numbers;
        std::vector<Extent> extents;
        std::vector<std::uint32_t> lengths;
        std::vector<const Ctph*> signatures;
        std::vector<std::uint8_t> sides;
        std::vector<std::uint32_t> sets;
        std::size_t set_count = 0;
    };

    // ---- Large clusters ----

    Status join_large_clusters() {
        Numbers rest = all_documents(), chosen;
        for (std::size_t i = 0; i < kMostSamples; ++i) {
            GPUTEXT_TRY(representatives(rest, i, chosen));
            if (chosen.empty()) break;
            leave_out_sets_of(chosen, rest);
            GPUTEXT_TRY(search(chosen, rest));
            leave_out_sets_of(chosen, rest);
        }
        return {};
    }

    /// Draws one document from each of equally long stretches.
    static Numbers sample_of(std::span<const std::uint32_t> documents, std::uint64_t number) {
        const std::uint64_t key = random_key(0, 0, number);
        Numbers sample(std::max(kSampled, documents.size() / kSampledPart));
        for (std::size_t i = 0; i < sample.size(); ++i) {
            const std::size_t begin = documents.size() * i / sample.size();
            const std::size_t end = documents.size() * (i + 1) / sample.size();
            sample[i] = documents[begin + wide_random_below(random_bits(key, i), end - begin)];
        }
        return sample;
    }

    /// Members of the large sets of a sample, of all lengths that these have.
    Numbers choose(Numbers sample) {
        std::ranges::sort(sample, {}, [&](std::uint32_t document) {
            return std::tuple(sets_.first(document), documents_.lengths[document], document);
        });
        std::vector<std::span<const std::uint32_t>> large;
        for (std::size_t begin = 0, end = 0; begin < sample.size(); begin = end) {
            while (end < sample.size() && sets_.first(sample[end]) == sets_.first(sample[begin]))
                ++end;
            if (end - begin >= kLeastMembers)
                large.push_back(std::span(sample).subspan(begin, end - begin));
        }
        Numbers chosen;
        for (const auto members : large) {
            const std::size_t count =
                std::min(members.size(), std::max<std::size_t>(1, kRepresentatives / large.size()));
            for (std::size_t i = 0; i < count; ++i)
                chosen.push_back(members[members.size() * i / count]);
        }
        return chosen;
    }

    void leave_out_sets_of(std::span<const std::uint32_t> members, Numbers& documents) {
        std::vector<std::uint8_t> known(documents_.size(), 0);
        for (const std::uint32_t member : members) known[sets_.first(member)] = 1;
        std::erase_if(documents, [&](std::uint32_t i) { return known[sets_.first(i)] != 0; });
    }

    // ---- The search that leaves nothing out ----

    /// Orders the documents by blocks, the largest first.
    void divide() {
        std::vector<std::uint32_t> sizes(documents_.size(), 0);  // by a set's first document
        for (std::uint32_t i = 0; i < documents_.size(); ++i) ++sizes[sets_.first(i)];
        std::vector<std::pair<std::size_t, std::uint32_t>> blocks;
        std::size_t others = documents_.size();
        for (std::uint32_t first = 0; first < sizes.size(); ++first) {
            if (sizes[first] < kLeastBlock) continue;
            blocks.emplace_back(sizes[first], first);
            others -= sizes[first];
        }
        if (others > 0) blocks.emplace_back(others, kNone);
        std::ranges::sort(blocks, std::greater());
        std::vector<std::size_t> next(documents_.size());  // place of a set's next document
        std::size_t begin = 0, next_other = 0;
        for (const auto& [size, first] : blocks) {
            (first == kNone ? next_other : next[first]) = begin;
            blocks_.push_back({begin, begin + size, first != kNone});
            begin += size;
        }
        order_.resize(documents_.size());
        for (std::uint32_t i = 0; i < documents_.size(); ++i) {
            const std::uint32_t first = sets_.first(i);
            order_[sizes[first] < kLeastBlock ? next_other++ : next[first]++] = i;
        }
    }

    std::span<const std::uint32_t> documents_of(std::span<const Block> blocks) const {
        const std::size_t begin = blocks.front().begin;
        return std::span(order_).subspan(begin, blocks.back().end - begin);
    }

    /// Pairs of documents of different blocks, and those of the block that is not one set.
    Status search_blocks(std::span<const Block> blocks) {
        if (blocks.size() == 1) return blocks[0].one_set ? Status() : search(documents_of(blocks));
        std::size_t half = 1;
        while (half + 1 < blocks.size() &&
               2 * documents_of(blocks.first(half)).size() < documents_of(blocks).size())
            ++half;
        GPUTEXT_TRY(search(documents_of(blocks.first(half)), documents_of(blocks.subspan(half))));
        GPUTEXT_TRY(search_blocks(blocks.first(half)));
        return search_blocks(blocks.subspan(half));
    }

    // ---- One search ----

    /// Joins what near pairs of these documents connect, or pairs of one of `first` and one of
    /// `second`.
    Status search(std::span<const std::uint32_t> first,
                  std::span<const std::uint32_t> second = {}) {
        Part part;
        add(first, kFirstSide, part);
        add(second, kSecondSide, part);
        if (second.empty()) part.sides.clear();
        GPUTEXT_TRY(find_sets(part));
        if (part.set_count < 2) return {};
        const Documents& all = documents_.documents;
        std::vector<NearPair> found;
        GPUTEXT_TRY(finder_.find(parameters_,
                                 {{all.bytes, part.extents, all.characters},
                                  part.lengths,
                                  part.signatures,
                                  part.sides,
                                  part.sets},
                                 execution_, found));
        for (const NearPair& pair : found) {
            const auto [a, b] = std::minmax(part.numbers[pair.first], part.numbers[pair.second]);
            if (sets_.join(a, b)) pairs_.push_back({a, b, pair.edit_rate});
        }
        return {};
    }

    void add(std::span<const std::uint32_t> numbers, std::uint8_t side, Part& part) const {
        for (const std::uint32_t number : numbers) {
            part.numbers.push_back(number);
            part.extents.push_back(documents_.documents.extents[number]);
            part.lengths.push_back(documents_.lengths[number]);
            if (!documents_.signatures.empty())
                part.signatures.push_back(documents_.signatures[number]);
            part.sides.push_back(side);
        }
    }

    /// For each document of the part the place of the first one of its set.
    Status find_sets(Part& part) {
        std::vector<std::uint32_t> places(documents_.size(), kNone);
        for (std::uint32_t i = 0; i < part.numbers.size(); ++i) {
            if (i % 65536 == 0 && execution_.stop_requested()) return Status::cancelled();
            std::uint32_t& place = places[sets_.first(part.numbers[i])];
            if (place == kNone) {
                place = i;
                ++part.set_count;
            }
            part.sets.push_back(place);
        }
        return {};
    }

    const NearDuplicateParameters& parameters_;
    const DistinctDocuments& documents_;
    NearPairFinder& finder_;
    Execution& execution_;
    std::vector<NearPair>& pairs_;
    DisjointSets sets_;
    Numbers order_;              // documents by their blocks
    std::vector<Block> blocks_;  // one behind the other
};

}  // namespace

Status find_connecting_pairs(const NearDuplicateParameters& parameters,
                             const DistinctDocuments& documents, NearPairFinder& finder,
                             Execution& execution, std::vector<NearPair>& pairs) {
    return ConnectingSearch(parameters, documents, finder, execution, pairs).run();
}

Result<bool> has_large_clusters(const NearDuplicateParameters& parameters,
                                const DistinctDocuments& documents, NearPairFinder& finder,
                                Execution& execution) {
    std::vector<NearPair> pairs;
    ConnectingSearch search(parameters, documents, finder, execution, pairs);
    Numbers found;
    GPUTEXT_TRY(search.representatives(search.all_documents(), 0, found));
    return !found.empty();
}

Result<NearDuplicates> search_near_duplicates(const NearDuplicateParameters& parameters,
                                              const Documents& documents,
                                              GivenSignatures signatures, NearPairFinder& finder,
                                              Execution& execution) {
    GPUTEXT_TRY(check_near_duplicates(parameters, documents.size()));
    FirstCopies copies;
    GPUTEXT_TRY(copies.find(documents, signatures, parameters.split, execution));
    std::vector<NearPair> pairs;
    // Documents with different bytes are at least one edit apart.
    if (parameters.threshold > 0)
        GPUTEXT_TRY(
            parameters.components_only
                ? find_connecting_pairs(parameters, copies.distinct(), finder, execution, pairs)
                : finder.find(parameters, copies.distinct(), execution, pairs));
    return copies.answer(std::move(pairs), execution);
}

double signature_rate(double threshold) {
    // The thesis's factor: edits weigh more on a signature than on its document.
    return std::min(std::nextafter(1.0, 0.0), 3 * threshold);
}

}  // namespace gputext
