#include "extension/inputs/word_counts.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <algorithm>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/types/count_column.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

/// Words between two looks for an interrupt.
constexpr std::size_t kPart = std::size_t{1} << 12;

const char* const kWanted =
    "The inner query for words must give a word and how often it occurs, as word_frequencies gives "
    "them.";

/// All words in the order in which they came.
struct WordCounts {
    Vocabulary words;
    std::vector<std::uint64_t> counts;
};

class WordCountReceiver final : public RowReceiver {
public:
    explicit WordCountReceiver(WordCounts& words) : words_(words) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool*) const override { return false; }
    void take_row(const Datum* values, const bool* nulls) override;
    void report_nulls(int64, const char*) override {}

private:
    WordCounts& words_;
    Oid count_type_ = InvalidOid;
};

void WordCountReceiver::check_columns(TupleDesc columns) {
    count_type_ = count_type_of(columns, "words", kWanted);
}

void WordCountReceiver::take_row(const Datum* values, const bool* nulls) {
    if (nulls[0] || nulls[1])
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        nulls[0] ? errmsg("a word is null") : errmsg("a count of a word is null")));
    const varlena* const word = PG_DETOAST_DATUM_PACKED(values[0]);
    const int64 count = count_of(count_type_, values[1]);
    if (count < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the count of the word \"%s\" is negative: %lld",
                               text_to_cstring(word), static_cast<long long>(count))));
    bool is_new = false;
    attempt_or_raise([&] {
        is_new = words_.words.add(view_of(word)) == words_.counts.size();
        if (is_new) words_.counts.push_back(static_cast<std::uint64_t>(count));
    });
    if (!is_new)
        ereport(ERROR, (errcode(ERRCODE_CARDINALITY_VIOLATION),
                        errmsg("the word \"%s\" comes more than once", text_to_cstring(word)),
                        errhint("Sum the counts of several servers by GROUP BY word.")));
    show_rows(words_.words.size(), words_.words.bytes());
}

}  // namespace

void read_word_counts(const char* sql, std::uint64_t min_count, std::size_t most,
                      Vocabulary& chosen) {
    auto* const all = make_owned<WordCounts>(CurrentMemoryContext);
    WordCountReceiver receiver(*all);
    run_inner_query({sql, InvalidOid}, receiver);
    attempt_or_raise([&] {
        std::vector<std::uint32_t> order;
        for (std::uint32_t word = 0; word < all->counts.size(); ++word)
            if (all->counts[word] >= min_count) order.push_back(word);
        const auto before = [all](std::uint32_t a, std::uint32_t b) {
            return all->counts[a] != all->counts[b] ? all->counts[a] > all->counts[b]
                                                    : all->words.term(a) < all->words.term(b);
        };
        const Stop stop = stop_on_interrupt();
        if (!stoppable_sort(order.begin(), order.end(), before, stop)) return;
        if (order.size() > most) order.resize(most);
        for (std::size_t i = 0; i < order.size(); ++i) {
            if (i % kPart == 0 && stop()) return;
            chosen.add(all->words.term(order[i]));
        }
        *all = WordCounts();
    });
}

}  // namespace gputext
