#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <numeric>
#include <vector>

#include "cpp/base/stoppable_sort.hpp"
#include "extension/base/owned.hpp"
#include "extension/operators/thesaurus_search.hpp"
#include "extension/rows/count_column.hpp"
#include "extension/rows/inner_query.hpp"
#include "extension/rows/set_call.hpp"
#include "extension/rows/text_arguments.hpp"
#include "extension/rows/thesaurus_rows.hpp"
#include "extension/rows/word_arguments.hpp"
#include "extension/rows/word_counts.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/run_computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

constexpr int kColumns = 4;

const char* const kWanted =
    "The inner query must give a word, a position (integer), a neighbour and a count (bigint), as "
    "word_cooccurrences gives them; further columns are ignored.";

/// The counts of a call; dies with the call's memory context.
struct Counts {
    explicit Counts(std::size_t memory_limit) : triples(memory_limit) {}

    Vocabulary vocabulary;
    bool closed = false;                // counts of other words are not looked at
    std::vector<std::uint64_t> totals;  // of the counts of each word
    std::vector<std::uint32_t> order;   // of the words, the most frequent first
    PackedBytes triples;                // CountedTriple

    Status set_order();
};

Status Counts::set_order() {
    order.resize(vocabulary.size());
    std::iota(order.begin(), order.end(), 0u);
    if (closed) return {};
    const auto before = [this](std::uint32_t a, std::uint32_t b) {
        return totals[a] != totals[b] ? totals[a] > totals[b]
                                      : vocabulary.term(a) < vocabulary.term(b);
    };
    const bool sorted = stoppable_sort(order.begin(), order.end(), before, stop_on_interrupt());
    return sorted ? Status() : Status::cancelled();
}

class CountReceiver final : public RowReceiver {
public:
    explicit CountReceiver(Counts& counts) : counts_(counts) {}

    WantedColumns wanted_columns() const override {
        return {kColumns, WantedColumns::kAnyColumns, kWanted};
    }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override {
        return std::any_of(nulls, nulls + kColumns, [](bool null) { return null; });
    }
    void take_row(const Datum* values, const bool*) override;
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld count that is null in a column",
                               "skipped %lld counts that are null in a column",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    /// Inside attempt().
    std::uint32_t number_of(const varlena* word);

    Counts& counts_;
    std::uint64_t rows_ = 0;
    Oid count_type_ = InvalidOid;
};

void CountReceiver::check_columns(TupleDesc columns) {
    count_type_ = base_type_of_column(columns, 3);
    const bool fits[kColumns] = {IsBinaryCoercible(base_type_of_column(columns, 0), TEXTOID),
                                 base_type_of_column(columns, 1) == INT4OID,
                                 IsBinaryCoercible(base_type_of_column(columns, 2), TEXTOID),
                                 is_count_type(count_type_)};
    for (int i = 0; i < kColumns; ++i)
        if (!fits[i])
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("column %d of the inner query is of type %s", i + 1,
                                   format_type_be(TupleDescAttr(columns, i)->atttypid)),
                            errdetail("%s", kWanted)));
}

std::uint32_t CountReceiver::number_of(const varlena* word) {
    if (counts_.closed) return counts_.vocabulary.find(view_of(word));
    const std::uint32_t number = counts_.vocabulary.add(view_of(word));
    if (number == counts_.totals.size()) counts_.totals.push_back(0);
    return number;
}

void CountReceiver::take_row(const Datum* values, const bool*) {
    const varlena* const word = PG_DETOAST_DATUM_PACKED(values[0]);
    const varlena* const neighbour = PG_DETOAST_DATUM_PACKED(values[2]);
    const int64 count = count_of(count_type_, values[3]);
    if (count < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a count of the inner query is negative: %lld",
                               static_cast<long long>(count))));
    CountedTriple triple;
    triple.count = static_cast<std::uint64_t>(count);
    triple.offset = DatumGetInt32(values[1]);
    attempt_or_raise([&] {
        triple.word = number_of(word);
        triple.neighbour = number_of(neighbour);
        if (counts_.closed) return;
        std::uint64_t& total = counts_.totals[triple.word];
        if (__builtin_add_overflow(total, triple.count, &total)) total = UINT64_MAX;
    });
    if (triple.word == Vocabulary::kNone || triple.neighbour == Vocabulary::kNone) return;
    counts_.triples.append(&triple, sizeof triple);
    show_rows(++rows_, counts_.triples.size());
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const char* const query = given.text("cooccurrences");
    SimilarityParameters parameters;
    parameters.top_k = given.count("top_k");
    parameters.memory_limit = host_memory_limit();
    WeightParameters weighting;
    weighting.features = features_argument(given);
    const WordPreset& preset = preset_argument(given);
    parameters.measure = measure_argument(given, preset);
    weighting.weight = weight_argument(given, preset);
    weighting.discount = discount_argument(given, preset);
    // The other function of this name does not have it.
    const char* const words = given.has("words") ? given.text("words") : nullptr;
    const std::uint32_t most = words == nullptr ? 0 : given.count("vocabulary");
    const std::uint32_t min_count = words == nullptr ? 0 : given.count("min_count");

    SetCall set(fcinfo, "word_similarity_from");
    Counts* counts = make_owned<Counts>(set.context(), host_memory_limit());
    if (words != nullptr) {
        read_word_counts(words, min_count, most, counts->vocabulary);
        counts->closed = true;
    }
    CountReceiver receiver(*counts);
    run_inner_query({query, InvalidOid}, receiver);
    counts->triples.finish();
    attempt_or_raise([&] { return counts->set_order(); });
    set.times().lap("reading rows");
    // Only the search finds out which positions there are.
    check_thesaurus_memory(parameters, {static_cast<std::uint32_t>(counts->order.size()), 1});
    WordSimilarityFromComputation* computation = make_owned<WordSimilarityFromComputation>(
        set.context(), counts->triples, counts->order, weighting, parameters);
    run_computation(*computation, set.times(), set.context());
    put_neighbour_arrays(word_values(counts->vocabulary, counts->order), computation->answer, set);
    counts->triples.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_word_similarity_from);
PG_FUNCTION_INFO_V1(gputext_word_similarity_from_words);

PGDLLEXPORT Datum gputext_word_similarity_from(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}

PGDLLEXPORT Datum gputext_word_similarity_from_words(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}
}
