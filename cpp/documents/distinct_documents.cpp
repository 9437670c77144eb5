#include "cpp/documents/distinct_documents.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "cpp/base/hash_table.hpp"

namespace gputext {
namespace {

// After a stop request the results of the next two functions are meaningless.

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

/// Neighboring documents that are one thread's step: some hundred kilobytes, or a large one.
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

}  // namespace

Status FirstCopies::find(const Documents& documents, GivenSignatures signatures,
                         std::uint32_t split, Execution& execution) {
    documents_ = documents;
    split_ = split;
    GPUTEXT_TRY(read_documents(execution));
    GPUTEXT_TRY(find_copies(execution));
    return select(signatures, execution);
}

/// Does the step for each document, by all threads.
Status FirstCopies::for_each_document(const char* phase, Execution& execution,
                                      const DocumentStep& step) {
    if (steps_.empty()) steps_ = step_begins(documents_.extents);
    execution.begin_phase(phase, steps_.size() - 1);
    return execution.parallel_for(steps_.size() - 1, [&](std::size_t i, unsigned) {
        for (std::uint32_t document = steps_[i]; document < steps_[i + 1]; ++document) {
            if (execution.stop_requested()) return Status::cancelled();
            step(document);
        }
        return Status();
    });
}

/// Hash and length together, so that memory is read once.
Status FirstCopies::read_documents(Execution& execution) {
    hashes_.resize(documents_.size());
    lengths_.resize(documents_.size());
    return for_each_document("hashing documents", execution, [&](std::uint32_t i) {
        hashes_[i] = hash_bytes(documents_[i], execution.stop());
        lengths_[i] = static_cast<std::uint32_t>(
            count_characters(documents_[i], documents_.characters, execution.stop()));
    });
}

/// Fills first_copies_.
Status FirstCopies::find_copies(Execution& execution) {
    GPUTEXT_TRY(find_equal_hashes(execution));
    const std::vector<std::uint32_t>& first = first_copies_;
    std::vector<std::uint8_t> differs(first.size(), 0);
    GPUTEXT_TRY(for_each_document("comparing copies", execution, [&](std::uint32_t i) {
        differs[i] =
            first[i] != i && !equal_bytes(documents_[first[i]], documents_[i], execution.stop());
    }));
    return separate(differs, execution) ? Status() : Status::cancelled();
}

/// first_copies_ become the first documents with the same hashes. Hashes are shared out by their
/// highest bits: whoever has some of them looks at all, and has a table that stays in its cache.
Status FirstCopies::find_equal_hashes(Execution& execution) {
    constexpr std::size_t own_hashes = 1 << 16;
    constexpr unsigned most_bits = 6;
    first_copies_.resize(hashes_.size());
    const auto bits =
        std::min(most_bits, static_cast<unsigned>(std::bit_width(hashes_.size() / own_hashes)));
    execution.begin_phase("finding copies", std::size_t{1} << bits);
    return execution.parallel_for(std::size_t{1} << bits, [&](std::size_t part, unsigned) {
        HashTable<NumberSlot> firsts(std::min(hashes_.size(), own_hashes));
        std::size_t found = 0;
        for (std::uint32_t i = 0; i < hashes_.size(); ++i) {
            if (i % 65536 == 0 && execution.stop_requested()) return Status::cancelled();
            if (bits > 0 && hashes_[i] >> (64 - bits) != part) continue;
            NumberSlot& first = firsts.find(
                hashes_[i], [&](NumberSlot other) { return hashes_[other.number] == hashes_[i]; });
            first_copies_[i] = first.free() ? i : first.number;
            if (!first.free()) continue;
            first.number = i;
            firsts.grow(++found + 1, [&](NumberSlot other) { return hashes_[other.number]; });
        }
        return Status();
    });
}

/// Finds the first copies of documents that differ from the first one with their hash. This happens
/// only to texts that were constructed for it. False if stopped.
bool FirstCopies::separate(const std::vector<std::uint8_t>& differs, const Execution& execution) {
    std::vector<std::uint32_t> firsts;
    for (std::uint32_t i = 0; i < differs.size(); ++i) {
        if (differs[i] == 0) continue;
        if (execution.stop_requested()) return false;
        const auto copy = std::ranges::find_if(firsts, [&](std::uint32_t other) {
            return hashes_[other] == hashes_[i] &&
                   equal_bytes(documents_[other], documents_[i], execution.stop());
        });
        first_copies_[i] = copy == firsts.end() ? i : *copy;
        if (copy == firsts.end()) firsts.push_back(i);
    }
    return true;
}

/// From here on only first copies are looked at: distinct_ numbers them.
Status FirstCopies::select(GivenSignatures signatures, const Execution& execution) {
    hashes_ = {};
    for (std::uint32_t i = 0; i < first_copies_.size(); ++i) {
        if (first_copies_[i] != i) continue;
        lengths_[distinct_.size()] = lengths_[i];
        extents_.push_back(documents_.extents[i]);
        if (!signatures.empty()) signatures_.push_back(signatures[i] ? &*signatures[i] : nullptr);
        distinct_.push_back(i);
    }
    lengths_.resize(distinct_.size());
    if (split_ > 0) find_sides();
    return execution.stop_requested() ? Status::cancelled() : Status();
}

/// A distinct document has the sides of all its copies.
void FirstCopies::find_sides() {
    std::vector<std::uint8_t> sides(first_copies_.size(), 0);
    for (std::uint32_t i = 0; i < first_copies_.size(); ++i)
        sides[first_copies_[i]] |= i < split_ ? kFirstSide : kSecondSide;
    for (const std::uint32_t first : distinct_) sides_.push_back(sides[first]);
}

Result<NearDuplicates> FirstCopies::answer(std::vector<NearPair> pairs, Execution& execution) {
    // The documents of pairs become their numbers among all documents.
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (i % 65536 == 0 && execution.stop_requested()) return Status::cancelled();
        pairs[i].first = distinct_[pairs[i].first];
        pairs[i].second = distinct_[pairs[i].second];
    }
    return NearDuplicates::from_search(std::move(first_copies_), pairs, split_, execution);
}

}  // namespace gputext
