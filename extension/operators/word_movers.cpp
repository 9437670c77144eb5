#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include "cpp/embeddings/word_movers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/known_tokens.hpp"
#include "extension/inputs/model_query.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give an id and two arrays of tokens of type text[], in this order.";

/// What a call's arguments say.
struct WordMoversArguments {
    const char* model;
    InnerQuery pairs;
    MoversMethod method;
};

// ---- The pairs ----

/// The pairs of texts of an inner query, as masses of a model's words. Functions raise errors.
class PairRows {
public:
    PairRows(const IdType& id_type, std::size_t memory_limit)
        : ids_(id_type, memory_limit), masses_(memory_limit) {}

    void append(Datum id, Datum first, Datum second, const Vocabulary& vocabulary);
    void finish();

    std::size_t size() const { return totals_.size(); }
    std::uint64_t bytes() const { return masses_.size() + ids_.bytes(); }
    /// Valid until share(), and no longer than this object.
    TextPairs view() const {
        static constexpr WordMass nothing{};
        const auto* const masses = reinterpret_cast<const WordMass*>(masses_.data());
        return {begins_,
                {masses_.size() == 0 ? &nothing : masses, masses_.size() / sizeof(WordMass)},
                totals_};
    }
    Datum id(std::size_t row) const { return ids_.at(row); }
    FileDescriptor share() { return masses_.share(); }
    void release();

private:
    void read_text(Datum id, Datum value, const Vocabulary& vocabulary,
                   std::vector<std::uint32_t>& tokens);

    RowIds ids_;
    PackedBytes masses_;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint32_t> totals_;
    UnknownTokens unknown_;
    std::vector<std::uint32_t> first_tokens_, second_tokens_;  // of one pair
    std::vector<WordMass> first_, second_;
};

/// Its tokens that the model has.
void PairRows::read_text(Datum id, Datum value, const Vocabulary& vocabulary,
                         std::vector<std::uint32_t>& tokens) {
    read_known_tokens(value, vocabulary, tokens, unknown_);
    tokens.erase(std::remove(tokens.begin(), tokens.end(), Vocabulary::kNone), tokens.end());
    if (tokens.size() > kMostPairTokens)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a text of %s has %zu tokens, more than %zu",
                               ids_.name_of("pair", id), tokens.size(), kMostPairTokens),
                        errhint("Compare parts of the texts, or cut them in the inner query, as in "
                                "tokens[1:%zu].",
                                kMostPairTokens)));
}

void PairRows::append(Datum id, Datum first, Datum second, const Vocabulary& vocabulary) {
    read_text(id, first, vocabulary, first_tokens_);
    read_text(id, second, vocabulary, second_tokens_);
    const std::uint64_t begin = masses_.size() / sizeof(WordMass);
    attempt_or_raise([&] {
        first_.clear();
        second_.clear();
        if (begins_.empty()) begins_.push_back(0);
        totals_.push_back(append_masses(first_tokens_, second_tokens_, first_, second_));
        begins_.push_back(begin + first_.size());
        begins_.push_back(begin + first_.size() + second_.size());
    });
    masses_.append(first_.data(), first_.size() * sizeof(WordMass));
    masses_.append(second_.data(), second_.size() * sizeof(WordMass));
    ids_.append(id);
}

void PairRows::finish() {
    masses_.finish();
    ids_.finish();
    attempt_or_raise([&] {
        if (begins_.empty()) begins_.push_back(0);
    });
    unknown_.report();
}

void PairRows::release() {
    masses_.release();
    ids_.release();
}

class PairReceiver final : public RowReceiver {
public:
    PairReceiver(const Vocabulary& vocabulary, PairRows& rows)
        : vocabulary_(vocabulary), rows_(rows) {}

    WantedColumns wanted_columns() const override { return {3, 3, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override { return nulls[1] || nulls[2]; }
    void take_row(const Datum* values, const bool*) override {
        rows_.append(values[0], values[1], values[2], vocabulary_);
        show_rows(rows_.size(), rows_.bytes());
    }
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld pair with a text that is null",
                               "skipped %lld pairs with a text that is null",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    const Vocabulary& vocabulary_;
    PairRows& rows_;
};

void PairReceiver::check_columns(TupleDesc columns) {
    for (const int column : {1, 2})
        if (!holds_tokens(columns, column)) raise_no_tokens(columns, column, kWanted);
}

// ---- The computation ----

/// What a call needs until its last row; dies with the call's memory context.
class WordMoversComputation : public Computation {
public:
    WordMoversComputation(const WordMoversArguments& arguments, const IdType& id_type,
                          std::size_t memory_limit)
        : model(memory_limit), pairs(id_type, memory_limit) {
        parameters_.method = arguments.method;
        parameters_.memory_limit = memory_limit;
    }

    ModelRows model;
    PairRows pairs;
    std::vector<double> distances;

    JobSize size() const override {
        return {pairs.size(), model.bytes() + pairs.bytes(),
                word_movers_cpu_seconds(parameters_.method, pairs.view(), model.dimensions(),
                                        cpu_threads())};
    }
    Status compute(Execution& execution) override {
        return take_value(word_movers_distances(parameters_, vectors(), pairs.view(), execution),
                          distances);
    }
    void prepare_for_device() override {
        elements_ = model.share_vectors();
        masses_ = pairs.share();
    }
    Status submit(DaemonConnection& connection, Stop stop) override {
        WordMoversRequest request;
        request.parameters = parameters_;
        request.vectors = vectors();
        request.elements = elements_.get();
        request.pairs = pairs.view();
        request.masses = masses_.get();
        request.limits.device_memory_limit = gpu_memory_limit();
        return connection.submit(request, stop);
    }
    Status take(const DaemonEvent& event, Stop stop) override {
        return take_value(std::get<ScoresAnswer>(event).read(stop), distances);
    }

private:
    WordVectors vectors() const {
        return {model.vectors().data(), model.words(), model.dimensions()};
    }

    MoversParameters parameters_;
    FileDescriptor elements_, masses_;
};

MoversMethod method_argument(const Arguments& given) {
    const char* const method = given.text("method");
    if (std::strcmp(method, "exact") == 0) return MoversMethod::exact;
    if (std::strcmp(method, "relaxed") == 0) return MoversMethod::relaxed;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("method must be 'exact' or 'relaxed', not \"%s\"", method)));
    pg_unreachable();
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    WordMoversArguments arguments{};
    arguments.model = given.text("model");
    arguments.pairs.sql = given.text("pairs");
    arguments.pairs.id_type = id_type_argument(given);
    arguments.method = method_argument(given);

    SetCall set(fcinfo, "word_movers_distance");
    WordMoversComputation* work = make_owned<WordMoversComputation>(
        set.context(), arguments, id_type_of(arguments.pairs.id_type), host_memory_limit());
    read_model(arguments.model, {}, work->model);
    PairReceiver receiver(work->model.vocabulary(), work->pairs);
    run_inner_query(arguments.pairs, receiver);
    work->pairs.finish();
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    for (std::size_t row = 0; row < work->pairs.size(); ++row) {
        if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
        Datum values[2] = {work->pairs.id(row), Float8GetDatum(work->distances[row])};
        bool nulls[2] = {false, std::isnan(work->distances[row])};
        set.put(values, nulls);
    }
    work->model.release();
    work->pairs.release();
    set.end();
    return static_cast<Datum>(0);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_word_movers_distance) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_word_movers_distance_typed, gputext_word_movers_distance);
}
