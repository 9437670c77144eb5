#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
}

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/records/linkage_model.hpp"
#include "cpp/records/record_pairs.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/linkage_model_query.hpp"
#include "extension/inputs/record_rows.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// Pairs that are found are numbered with 32 bits.
constexpr std::int64_t kMostPairs = std::int64_t{PG_UINT32_MAX} - 1;

/// What a call's arguments say.
struct LinkedRecordsArguments {
    RecordQueries queries;
    LinkageModel model;
    double min_weight = 0;
    std::uint64_t max_pairs = 0;
};

void read_arguments(const Arguments& given, LinkedRecordsArguments& arguments) {
    record_arguments(given, "the model", arguments.queries);
    arguments.min_weight = given.number("min_weight");
    if (!(arguments.min_weight < std::numeric_limits<double>::infinity()))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("min_weight must be below Infinity, not %g", arguments.min_weight),
                        errhint("-Infinity gives all pairs.")));
    const std::int64_t max_pairs = given.big_integer("max_pairs");
    if (max_pairs < 1 || max_pairs > kMostPairs)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("max_pairs must be between 1 and %lld, not %lld",
                        static_cast<long long>(kMostPairs), static_cast<long long>(max_pairs))));
    arguments.max_pairs = static_cast<std::uint64_t>(max_pairs);
    read_linkage_model(given.text("model"), arguments.model);
}

// ---- The pairs that are found ----

struct LinkedPair {
    std::uint32_t first, second;
    double weight;
};

/// Pairs with their levels, as threads find them. Beyond the most that are wanted, they are counted
/// alone.
class LinkedPairs {
public:
    LinkedPairs(std::size_t fields, unsigned threads, std::uint64_t most, std::size_t memory_limit)
        : fields_(fields), most_(most), memory_(memory_limit), parts_(threads) {}

    /// Errors: memory_limit.
    Status append(const FoundPair& pair, unsigned worker);
    /// After the last pair: puts them into the order of their first and then their second records,
    /// the first one being that which comes first. Errors: cancelled; invalid_argument where there
    /// are more than the most.
    Status finish(const RecordRows& rows, Execution& execution);

    std::size_t size() const { return order_.size(); }
    const LinkedPair& pair(std::size_t i) const {
        const Part& part = part_of(order_[i]);
        return part.pairs[order_[i] - part.begin];
    }
    /// Of each field.
    const std::int8_t* levels(std::size_t i) const {
        const Part& part = part_of(order_[i]);
        return part.levels.data() + (order_[i] - part.begin) * fields_;
    }

private:
    /// Those of one thread.
    struct alignas(64) Part {
        std::vector<LinkedPair> pairs;
        std::vector<std::int8_t> levels;
        std::uint64_t found = 0;
        std::size_t room = 0;     // pairs that memory was taken for
        std::uint64_t begin = 0;  // number of the first one
    };
    const Part& part_of(std::uint64_t number) const {
        return *std::prev(std::ranges::upper_bound(parts_, number, {}, &Part::begin));
    }

    Status make_room(Part& part);
    Status check_count();
    Status count_first(const RecordRows& rows, std::vector<std::uint32_t>& begins, Stop stop);
    Status sort(const RecordRows& rows, Execution& execution);

    static constexpr std::size_t kStep = 4096;  // pairs that memory is taken for at a time

    const std::size_t fields_;
    const std::uint64_t most_;
    MemoryBudget memory_;
    std::vector<Part> parts_;
    std::atomic<std::uint64_t> room_{0};  // of all parts
    std::atomic<bool> too_many_{false};
    std::vector<std::uint32_t> order_;  // numbers of the pairs
};

/// Twice what the pairs take, as a vector has its elements twice while it grows, and as much is
/// needed to sort them.
Status LinkedPairs::make_room(Part& part) {
    if (room_.fetch_add(kStep, std::memory_order_relaxed) >= most_ + parts_.size() * kStep) {
        too_many_.store(true, std::memory_order_relaxed);
        return {};
    }
    part.room += kStep;
    const Status taken =
        memory_.take(2 * kStep * (sizeof(LinkedPair) + fields_), "the pairs of records");
    if (taken.ok()) return {};
    return {taken.code(), taken.message(), "Raise min_weight, or gputext.host_memory_limit."};
}

Status LinkedPairs::append(const FoundPair& pair, unsigned worker) {
    Part& part = parts_[worker];
    ++part.found;
    if (!too_many_.load(std::memory_order_relaxed) && part.pairs.size() == part.room)
        GPUTEXT_TRY(make_room(part));
    if (too_many_.load(std::memory_order_relaxed)) {
        part.pairs = {};
        part.levels = {};
        return {};
    }
    part.pairs.push_back({pair.first, pair.second, pair.weight});
    part.levels.insert(part.levels.end(), pair.levels, pair.levels + fields_);
    return {};
}

Status LinkedPairs::check_count() {
    std::uint64_t found = 0;
    for (Part& part : parts_) {
        part.begin = found;
        found += part.found;
    }
    if (found <= most_) return {};
    return {ErrorCode::invalid_argument,
            std::to_string(found) +
                " pairs have at least that match weight, more than max_pairs, " +
                std::to_string(most_),
            "Raise min_weight, or max_pairs."};
}

/// Counts the pairs by the rank of their first record, which comes first from here on.
Status LinkedPairs::count_first(const RecordRows& rows, std::vector<std::uint32_t>& begins,
                                Stop stop) {
    begins.assign(rows.size() + 1, 0);
    for (Part& part : parts_)
        for (std::size_t i = 0; i < part.pairs.size(); ++i) {
            if (i % kStep == 0 && stop()) return Status::cancelled();
            LinkedPair& pair = part.pairs[i];
            if (rows.rank(pair.first) > rows.rank(pair.second)) std::swap(pair.first, pair.second);
            ++begins[rows.rank(pair.first) + 1];
        }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    return {};
}

Status LinkedPairs::sort(const RecordRows& rows, Execution& execution) {
    const Stop stop = execution.stop();
    std::vector<std::uint32_t> begins;
    GPUTEXT_TRY(count_first(rows, begins, stop));
    // The rank of a pair's second record above its number.
    std::vector<std::uint64_t> entries(begins.back());
    std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
    for (const Part& part : parts_)
        for (std::size_t i = 0; i < part.pairs.size(); ++i) {
            if (i % kStep == 0 && stop()) return Status::cancelled();
            const LinkedPair& pair = part.pairs[i];
            entries[next[rows.rank(pair.first)]++] =
                std::uint64_t{rows.rank(pair.second)} << 32 | (part.begin + i);
        }
    order_.resize(entries.size());
    const std::size_t steps = (rows.size() + kStep - 1) / kStep;
    execution.begin_phase("sorting pairs", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        const std::size_t end = std::min(rows.size(), (step + 1) * kStep);
        for (std::size_t rank = step * kStep; rank < end; ++rank) {
            const auto first = entries.begin() + begins[rank];
            const auto last = entries.begin() + begins[rank + 1];
            if (!stoppable_sort(first, last, std::less<>(), stop)) return Status::cancelled();
            std::transform(first, last, order_.begin() + begins[rank],
                           [](std::uint64_t entry) { return static_cast<std::uint32_t>(entry); });
        }
        return {};
    });
}

Status LinkedPairs::finish(const RecordRows& rows, Execution& execution) {
    GPUTEXT_TRY(check_count());
    return sort(rows, execution);
}

// ---- The computation ----

/// What a call needs until its last row; dies with the call's memory context.
class LinkedRecordsComputation final : public HostComputation {
public:
    explicit LinkedRecordsComputation(std::size_t memory_limit) : memory_limit_(memory_limit) {}

    LinkedRecordsArguments arguments;
    std::optional<RecordRows> rows;
    std::vector<FieldWeights> weights;
    std::optional<LinkedPairs> pairs;
    PairSearchReport report;

    void read();

    JobSize size() const override { return {rows->size(), rows->bytes(), 0}; }
    Status compute(Execution& execution) override;

private:
    std::size_t memory_limit_;
};

void LinkedRecordsComputation::read() {
    const IdType id_type = id_type_of(arguments.queries.first.id_type);
    attempt_or_raise([&] { rows.emplace(id_type, memory_limit_); });
    rows->read(arguments.queries, arguments.model.fields);
}

Status LinkedRecordsComputation::compute(Execution& execution) {
    const LinkageModel& model = arguments.model;
    const Records records = rows->records();
    for (std::size_t field = 0; field < model.fields.size(); ++field)
        weights.emplace_back(model.fields[field], records.fields[field]);
    pairs.emplace(model.fields.size(), execution.threads(), arguments.max_pairs, memory_limit_);
    GPUTEXT_TRY(find_record_pairs(
        model, records,
        {.min_weight = arguments.min_weight, .keys = rows->keys(), .memory_limit = memory_limit_},
        execution,
        [this](const FoundPair& pair, unsigned worker) { return pairs->append(pair, worker); },
        report));
    return pairs->finish(*rows, execution);
}

// ---- The answer ----

/// Arrays of as many elements as there are fields, the same memory for each row.
template <class Element>
class FieldArray {
public:
    FieldArray(std::size_t fields, Oid type, char align) {
        auto* const elements = static_cast<Datum*>(palloc0(sizeof(Datum) * fields));
        array_ =
            construct_array(elements, static_cast<int>(fields), type, sizeof(Element), true, align);
    }
    Element* elements() { return reinterpret_cast<Element*>(ARR_DATA_PTR(array_)); }
    Datum datum() const { return PointerGetDatum(array_); }

private:
    ArrayType* array_;
};

void put_pairs(const LinkedRecordsComputation& work, SetCall& set) {
    const RecordRows& rows = *work.rows;
    const std::span<const FieldValues> fields = rows.records().fields;
    FieldArray<int32> pattern(fields.size(), INT4OID, TYPALIGN_INT);
    FieldArray<double> weights(fields.size(), FLOAT8OID, TYPALIGN_DOUBLE);
    bool nulls[6] = {};
    for (std::size_t i = 0; i < work.pairs->size(); ++i) {
        if (i % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const LinkedPair& pair = work.pairs->pair(i);
        const std::int8_t* const levels = work.pairs->levels(i);
        for (std::size_t field = 0; field < fields.size(); ++field) {
            const std::uint32_t a = fields[field].of_rows()[pair.first];
            const std::uint32_t b = fields[field].of_rows()[pair.second];
            pattern.elements()[field] = levels[field];
            weights.elements()[field] = a == b && a != kNullValue
                                            ? work.weights[field].of_equal(a, levels[field])
                                            : work.weights[field].of(levels[field]);
        }
        Datum values[6] = {rows.id_at_rank(rows.rank(pair.first)),
                           rows.id_at_rank(rows.rank(pair.second)),
                           Float8GetDatum(pair.weight),
                           Float8GetDatum(match_probability(pair.weight)),
                           pattern.datum(),
                           weights.datum()};
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    SetCall set(fcinfo, "linked_records");
    auto* const work = make_owned<LinkedRecordsComputation>(set.context(), host_memory_limit());
    read_arguments(given, work->arguments);
    work->read();
    set.times().lap("reading rows");
    work->rows->number_values();
    set.times().lap("numbering values");
    run_computation(*work, set.times(), set.context());
    ereport(DEBUG1,
            (errmsg("looked at " UINT64_FORMAT " pairs%s and compared " UINT64_FORMAT,
                    work->report.looked_at, work->report.looked_at_all ? ", which are all," : "",
                    work->report.compared)));
    put_pairs(*work, set);
    work->rows->release_ids();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_linked_records) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_linked_records_typed, gputext_linked_records);
SQL_ALIAS(gputext_linked_records_between, gputext_linked_records);
SQL_ALIAS(gputext_linked_records_between_typed, gputext_linked_records);
}
