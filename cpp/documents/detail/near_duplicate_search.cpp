#include "cpp/documents/detail/near_duplicate_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "cpp/base/hash_table.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/edit_distance.hpp"

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

/// Neighbouring documents that are one thread's step: some hundred kilobytes, or a large one.
std::vector<std::uint32_t> step_begins(std::span<const Extent> extents) {
    constexpr std::uint64_t most_bytes = 1 << 18;
    constexpr std::uint32_t most_documents = 1 << 12;
    std::vector<std::uint32_t> begins;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < extents.size(); ++i) {
        if (begins.empty() || bytes > most_bytes || i - begins.back() == most_documents) {
            begins.push_back(i);
            bytes = 0;
        }
        bytes += extents[i].size;
    }
    begins.push_back(static_cast<std::uint32_t>(extents.size()));
    return begins;
}

/// One run of the operator, step by step.
class NearDuplicateSearch {
public:
    NearDuplicateSearch(const NearDuplicateParameters& parameters, const Documents& documents,
                        GivenSignatures signatures, NearPairFinder& finder, Execution& execution)
        : parameters_(parameters),
          documents_(documents),
          given_signatures_(signatures),
          finder_(finder),
          execution_(execution) {}

    Result<NearDuplicates> run() {
        for (const auto step :
             {&NearDuplicateSearch::read_documents, &NearDuplicateSearch::find_copies,
              &NearDuplicateSearch::select_first_copies, &NearDuplicateSearch::find_pairs,
              &NearDuplicateSearch::number_pairs}) {
            GPUTEXT_TRY((this->*step)());
        }
        return NearDuplicates::from_search(std::move(first_copies_), pairs_, execution_);
    }

private:
    using DocumentStep = std::function<void(std::uint32_t document)>;

    /// Does the step for each document, by all threads.
    Status for_each_document(const char* phase, const DocumentStep& step) {
        if (steps_.empty()) steps_ = step_begins(documents_.extents);
        execution_.begin_phase(phase, steps_.size() - 1);
        return execution_.parallel_for(steps_.size() - 1, [&](std::size_t i, unsigned) {
            for (std::uint32_t document = steps_[i]; document < steps_[i + 1]; ++document) {
                if (execution_.stop_requested()) return Status::cancelled();
                step(document);
            }
            return Status();
        });
    }

    /// Hash and length together, so that memory is read once.
    Status read_documents() {
        hashes_.resize(documents_.size());
        lengths_.resize(documents_.size());
        return for_each_document("hashing documents", [this](std::uint32_t i) {
            hashes_[i] = hash_bytes(documents_[i], execution_.stop());
            lengths_[i] = static_cast<std::uint32_t>(
                count_characters(documents_[i], documents_.characters, execution_.stop()));
        });
    }

    /// Fills first_copies_.
    Status find_copies() {
        if (!find_equal_hashes()) return Status::cancelled();
        const std::vector<std::uint32_t>& first = first_copies_;
        std::vector<std::uint8_t> differs(first.size(), 0);
        GPUTEXT_TRY(for_each_document("comparing copies", [&](std::uint32_t i) {
            differs[i] = first[i] != i &&
                         !equal_bytes(documents_[first[i]], documents_[i], execution_.stop());
        }));
        return separate(differs) ? Status() : Status::cancelled();
    }

    /// first_copies_ become the first documents with the same hashes. False if stopped.
    bool find_equal_hashes() {
        first_copies_.resize(hashes_.size());
        HashTable<NumberSlot> firsts(hashes_.size());
        for (std::uint32_t i = 0; i < hashes_.size(); ++i) {
            if (i % 65536 == 0 && execution_.stop_requested()) return false;
            NumberSlot& first = firsts.find(
                hashes_[i], [&](NumberSlot other) { return hashes_[other.number] == hashes_[i]; });
            if (first.free()) first.number = i;
            first_copies_[i] = first.number;
        }
        return true;
    }

    /// Finds the first copies of documents that differ from the first one with their hash. There
    /// are none but in a text that was made so. False if stopped.
    bool separate(const std::vector<std::uint8_t>& differs) {
        std::vector<std::uint32_t> firsts;
        for (std::uint32_t i = 0; i < differs.size(); ++i) {
            if (differs[i] == 0) continue;
            if (execution_.stop_requested()) return false;
            const auto copy = std::ranges::find_if(firsts, [&](std::uint32_t other) {
                return hashes_[other] == hashes_[i] &&
                       equal_bytes(documents_[other], documents_[i], execution_.stop());
            });
            first_copies_[i] = copy == firsts.end() ? i : *copy;
            if (copy == firsts.end()) firsts.push_back(i);
        }
        return true;
    }

    /// From here on only first copies are looked at: distinct_ numbers them.
    Status select_first_copies() {
        hashes_ = {};
        for (std::uint32_t i = 0; i < first_copies_.size(); ++i) {
            if (first_copies_[i] != i) continue;
            lengths_[distinct_.size()] = lengths_[i];
            extents_.push_back(documents_.extents[i]);
            if (!given_signatures_.empty())
                signatures_.push_back(given_signatures_[i] ? &*given_signatures_[i] : nullptr);
            distinct_.push_back(i);
        }
        lengths_.resize(distinct_.size());
        return execution_.stop_requested() ? Status::cancelled() : Status();
    }

    Status find_pairs() {
        // Documents with different bytes are at least one edit apart.
        if (parameters_.threshold == 0) return {};
        const DistinctDocuments documents{
            {documents_.bytes, extents_, documents_.characters}, lengths_, signatures_};
        return finder_.find(parameters_, documents, execution_, pairs_);
    }

    /// The documents of pairs become their numbers among all documents.
    Status number_pairs() {
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            if (i % 65536 == 0 && execution_.stop_requested()) return Status::cancelled();
            pairs_[i].first = distinct_[pairs_[i].first];
            pairs_[i].second = distinct_[pairs_[i].second];
        }
        return {};
    }

    const NearDuplicateParameters& parameters_;
    const Documents& documents_;
    GivenSignatures given_signatures_;
    NearPairFinder& finder_;
    Execution& execution_;
    std::vector<std::uint32_t> steps_;
    std::vector<std::uint64_t> hashes_;
    std::vector<std::uint32_t> first_copies_;  // by document: the first one with the same bytes
    std::vector<std::uint32_t> distinct_;      // documents that are first copies
    std::vector<std::uint32_t> lengths_;       // of all documents; later of those, as the next two
    std::vector<Extent> extents_;
    std::vector<const Ctph*> signatures_;
    std::vector<NearPair> pairs_;
};

}  // namespace

Result<NearDuplicates> search_near_duplicates(const NearDuplicateParameters& parameters,
                                              const Documents& documents,
                                              GivenSignatures signatures, NearPairFinder& finder,
                                              Execution& execution) {
    if (!(parameters.threshold >= 0 && parameters.threshold < 0.5))
        return Status(ErrorCode::invalid_argument, "threshold must be at least 0 and below 0.5");
    if (parameters.signature_length < 1 || parameters.signature_length > Ctph::max_length)
        return Status(ErrorCode::invalid_argument,
                      "signature length must be between 1 and " + std::to_string(Ctph::max_length));
    if (documents.size() >= UINT32_MAX)
        return Status(ErrorCode::invalid_argument, "more than 4294967294 documents");
    return NearDuplicateSearch(parameters, documents, signatures, finder, execution).run();
}

double signature_rate(double threshold) {
    // The thesis's factor: edits weigh more on a signature than on its document.
    return std::min(std::nextafter(1.0, 0.0), 3 * threshold);
}

}  // namespace gputext
