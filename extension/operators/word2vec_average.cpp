#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/array.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "cpp/embeddings/average.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/model_query.hpp"
#include "extension/inputs/reused_text.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {
namespace {

/// Overflow ends at the largest count that a row can have.
std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = PG_INT64_MAX;
    return a > most - std::min(b, most) ? most : a + b;
}

/// What a call needs until its last row; dies with the call's memory context.
class AverageComputation final : public HostComputation {
public:
    explicit AverageComputation(std::size_t memory_limit)
        : models(memory_limit), initial(memory_limit), memory_limit_(memory_limit) {}

    ModelRows models, initial;           // initial may have no words
    std::vector<std::uint64_t> weights;  // of the models' rows; none for equal ones
    std::vector<std::uint64_t> counts;   // of words
    std::vector<std::uint32_t> order;    // of words, as word2vec() gives them
    std::vector<float> vectors, outputs;

    JobSize size() const override { return {models.words(), models.bytes(), 0}; }
    Status compute(Execution& execution) override;

    /// Sets counts, order, and with `by_count` the weights.
    void count(bool by_count);

private:
    std::uint64_t initial_count(std::uint32_t word) const;

    std::size_t memory_limit_;
};

/// How often `initial` counts a word of the models.
std::uint64_t AverageComputation::initial_count(std::uint32_t word) const {
    const std::uint32_t number = initial.vocabulary().find(models.vocabulary().term(word));
    return number == Vocabulary::kNone ? 0 : initial.counts()[number];
}

/// A model that was trained from `initial` has counted its words as well: they count once.
void AverageComputation::count(bool by_count) {
    const auto words = static_cast<std::uint32_t>(models.words());
    const std::span<const std::uint32_t> row_words = models.row_words();
    for (std::uint32_t word = 0; word < words; ++word) counts.push_back(initial_count(word));
    const std::vector<std::uint64_t> before = counts;
    for (std::size_t row = 0; row < row_words.size(); ++row) {
        const std::uint32_t word = row_words[row];
        const std::uint64_t all = models.counts()[row];
        const std::uint64_t own = all - std::min(all, before[word]);
        counts[word] = capped_sum(counts[word], own);
        if (by_count) weights.push_back(own);
    }
    order.resize(words);
    std::iota(order.begin(), order.end(), 0u);
    const auto is_before = [this](std::uint32_t a, std::uint32_t b) {
        return counts[a] != counts[b] ? counts[a] > counts[b]
                                      : models.vocabulary().term(a) < models.vocabulary().term(b);
    };
    stoppable_sort(order.begin(), order.end(), is_before, stop_on_interrupt());
}

Status AverageComputation::compute(Execution& execution) {
    const AveragedRows rows{static_cast<std::uint32_t>(models.words()), models.dimensions(),
                            models.row_words(), weights};
    GPUTEXT_TRY(average_rows(rows, models.vectors(), memory_limit_ / 2, execution, vectors));
    return average_rows(rows, models.output_vectors(), memory_limit_ / 2, execution, outputs);
}

bool by_count_argument(const Arguments& given) {
    const char* const weights = given.text("weights");
    if (std::strcmp(weights, "equal") == 0) return false;
    if (std::strcmp(weights, "count") == 0) return true;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("weights must be 'equal' or 'count', not \"%s\"", weights)));
    pg_unreachable();
}

void put_rows(const AverageComputation& work, SetCall& set) {
    const std::size_t dimensions = work.models.dimensions();
    ArrayType* const vector = new_real_array(static_cast<std::uint32_t>(dimensions));
    ArrayType* const output = new_real_array(static_cast<std::uint32_t>(dimensions));
    const std::size_t bytes = dimensions * sizeof(float);
    ReusedText name;
    bool nulls[4] = {};
    for (const std::uint32_t word : work.order) {
        CHECK_FOR_INTERRUPTS();
        std::memcpy(ARR_DATA_PTR(vector), work.vectors.data() + word * dimensions, bytes);
        std::memcpy(ARR_DATA_PTR(output), work.outputs.data() + word * dimensions, bytes);
        Datum values[4] = {name.of(work.models.vocabulary().term(word)),
                           Int64GetDatum(static_cast<int64>(work.counts[word])),
                           PointerGetDatum(vector), PointerGetDatum(output)};
        set.put(values, nulls);
    }
}

void check_dimensions(const AverageComputation& work) {
    const std::size_t models = work.models.dimensions(), initial = work.initial.dimensions();
    if (work.models.words() == 0 || work.initial.words() == 0 || models == initial) return;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("the vectors of initial have %zu dimensions, and those of the models "
                           "have %zu",
                           initial, models)));
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const char* const models = given.text("models");
    const char* const initial = given.is_null("initial") ? nullptr : given.text("initial");
    const bool by_count = by_count_argument(given);
    SetCall set(fcinfo, "word2vec_average");
    auto* const work = make_owned<AverageComputation>(set.context(), host_memory_limit());
    read_model(models, {true, true, true}, work->models);
    if (initial != nullptr) read_model(initial, {true, false, false}, work->initial);
    check_dimensions(*work);
    set.times().lap("reading rows");
    if (work->models.words() > 0) {
        attempt_or_raise([&] { work->count(by_count); });
        run_computation(*work, set.times(), set.context());
        put_rows(*work, set);
    }
    work->models.release();
    work->initial.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_word2vec_average) {
    return answer(fcinfo);
}
}
