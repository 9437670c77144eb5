#include "extension/inputs/thesaurus_rows.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

#include <algorithm>

namespace gputext {
namespace {

/// Rows between two looks for a cancel.
constexpr std::uint64_t kLookRows = 1024;

Datum text_array(Datum* values, std::uint64_t count) {
    return PointerGetDatum(
        construct_array(values, static_cast<int>(count), TEXTOID, -1, false, TYPALIGN_INT));
}

Datum real_array(Datum* values, std::uint64_t count) {
    return PointerGetDatum(construct_array(values, static_cast<int>(count), FLOAT4OID,
                                           sizeof(float4), true, TYPALIGN_INT));
}

std::uint64_t longest_list(const Thesaurus& thesaurus) {
    std::uint64_t longest = 0;
    for (std::size_t word = 0; word + 1 < thesaurus.begins.size(); ++word)
        longest = std::max(longest, thesaurus.begins[word + 1] - thesaurus.begins[word]);
    return longest;
}

Datum* new_values(std::uint64_t count) {
    return static_cast<Datum*>(
        palloc_extended(std::max<std::uint64_t>(1, count) * sizeof(Datum), MCXT_ALLOC_HUGE));
}

}  // namespace

Datum* word_values(const Vocabulary& vocabulary, const std::vector<std::uint32_t>& numbers) {
    Datum* const words = new_values(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (i % kLookRows == 0) CHECK_FOR_INTERRUPTS();
        const std::string_view word = vocabulary.term(numbers[i]);
        words[i] =
            PointerGetDatum(cstring_to_text_with_len(word.data(), static_cast<int>(word.size())));
    }
    return words;
}

void put_neighbor_arrays(const Datum* words, const Thesaurus& thesaurus, SetCall& set) {
    const std::uint64_t longest = longest_list(thesaurus);
    if (longest > PG_INT32_MAX)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a word has more neighbors than an array can hold")));
    Datum* const neighbors = new_values(longest);
    Datum* const similarities = new_values(longest);
    bool nulls[3] = {};
    for (std::size_t word = 0; word + 1 < thesaurus.begins.size(); ++word) {
        CHECK_FOR_INTERRUPTS();
        const std::uint64_t begin = thesaurus.begins[word];
        const std::uint64_t count = thesaurus.begins[word + 1] - begin;
        for (std::uint64_t i = 0; i < count; ++i) {
            neighbors[i] = words[thesaurus.neighbors[begin + i]];
            similarities[i] =
                Float4GetDatum(static_cast<float4>(thesaurus.similarities[begin + i]));
        }
        Datum values[3] = {words[word], text_array(neighbors, count),
                           real_array(similarities, count)};
        set.put(values, nulls);
        pfree(DatumGetPointer(values[1]));
        pfree(DatumGetPointer(values[2]));
    }
}

void put_neighbor_pairs(const Datum* words, const Thesaurus& thesaurus, SetCall& set) {
    bool nulls[4] = {};
    for (std::size_t word = 0; word + 1 < thesaurus.begins.size(); ++word) {
        CHECK_FOR_INTERRUPTS();
        const std::uint64_t begin = thesaurus.begins[word];
        for (std::uint64_t i = begin; i < thesaurus.begins[word + 1]; ++i) {
            if ((i - begin) % kLookRows == kLookRows - 1) CHECK_FOR_INTERRUPTS();
            Datum values[4] = {words[word], words[thesaurus.neighbors[i]],
                               Int32GetDatum(static_cast<int32>(i - begin + 1)),
                               Float4GetDatum(static_cast<float4>(thesaurus.similarities[i]))};
            set.put(values, nulls);
        }
    }
}

void put_cooccurrences(const Datum* words, const Cooccurrences& counts,
                       const std::vector<std::uint16_t>& weights, double unit, SetCall& set) {
    const std::uint32_t size = counts.shape.words;
    bool nulls[5] = {};
    for (std::uint32_t word = 0; word < size; ++word) {
        CHECK_FOR_INTERRUPTS();
        for (std::uint64_t i = counts.begins[word]; i < counts.begins[word + 1]; ++i) {
            if (i % kLookRows == 0) CHECK_FOR_INTERRUPTS();
            const std::uint32_t column = counts.columns[i];
            Datum values[5] = {words[word], Int32GetDatum(counts.shape.offset_of(column / size)),
                               words[column % size], Int64GetDatum(int64{counts.counts[i]}),
                               Float4GetDatum(static_cast<float4>(weights[i] * unit))};
            set.put(values, nulls);
        }
    }
}

}  // namespace gputext
