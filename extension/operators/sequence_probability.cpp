#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
}

#include "cpp/embeddings/sequence_probability.hpp"

#include <algorithm>
#include <cmath>
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
    "The inner query must give an id and an array of tokens of type text[], in this order.";

// ---- The sequences ----

/// The sequences of an inner query: the tokens that the model has, and where they stood.
/// Functions raise errors.
class SequenceRows {
public:
    SequenceRows(const IdType& id_type, std::size_t memory_limit)
        : ids_(id_type, memory_limit), tokens_(memory_limit), known_(memory_limit) {}

    void append(Datum id, Datum sequence, const Vocabulary& vocabulary);
    void finish();

    std::size_t size() const { return lengths_.size(); }
    std::uint64_t bytes() const { return tokens_.size() + known_.size() + ids_.bytes(); }
    /// Valid until share(), and no longer than this object.
    TokenSequences view() const {
        static constexpr std::uint32_t nothing = 0;
        const auto* const tokens = reinterpret_cast<const std::uint32_t*>(tokens_.data());
        return {begins_,
                {tokens_.size() == 0 ? &nothing : tokens, tokens_.size() / sizeof(std::uint32_t)}};
    }
    Datum id(std::size_t row) const { return ids_.at(row); }
    /// Elements of a sequence's array, and of each whether it is a token of the model; sequences
    /// in their order, each once.
    std::uint32_t length(std::size_t row) const { return lengths_[row]; }
    const std::uint8_t* known() const { return known_.data(); }

    FileDescriptor share() { return tokens_.share(); }
    void release();

private:
    RowIds ids_;
    PackedBytes tokens_, known_;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint32_t> lengths_;
    UnknownTokens unknown_;
    // State of one sequence:
    std::vector<std::uint32_t> numbers_;
    std::vector<std::uint8_t> flags_;
};

void SequenceRows::append(Datum id, Datum sequence, const Vocabulary& vocabulary) {
    read_known_tokens(sequence, vocabulary, numbers_, unknown_);
    attempt_or_raise([&] {
        lengths_.push_back(static_cast<std::uint32_t>(numbers_.size()));
        flags_.clear();
        for (const std::uint32_t number : numbers_)
            flags_.push_back(number == Vocabulary::kNone ? 0 : 1);
        numbers_.erase(std::remove(numbers_.begin(), numbers_.end(), Vocabulary::kNone),
                       numbers_.end());
        if (begins_.empty()) begins_.push_back(0);
        begins_.push_back(begins_.back() + numbers_.size());
    });
    tokens_.append(numbers_.data(), numbers_.size() * sizeof(std::uint32_t));
    known_.append(flags_.data(), flags_.size());
    ids_.append(id);
}

void SequenceRows::finish() {
    tokens_.finish();
    known_.finish();
    ids_.finish();
    attempt_or_raise([&] {
        if (begins_.empty()) begins_.push_back(0);
    });
    unknown_.report();
}

void SequenceRows::release() {
    tokens_.release();
    known_.release();
    ids_.release();
}

class SequenceReceiver final : public RowReceiver {
public:
    SequenceReceiver(const Vocabulary& vocabulary, SequenceRows& rows)
        : vocabulary_(vocabulary), rows_(rows) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool*) override {
        rows_.append(values[0], values[1], vocabulary_);
        show_rows(rows_.size(), rows_.bytes());
    }
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld sequence that is null",
                               "skipped %lld sequences that are null",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    const Vocabulary& vocabulary_;
    SequenceRows& rows_;
};

void SequenceReceiver::check_columns(TupleDesc columns) {
    if (!holds_tokens(columns, 1)) raise_no_tokens(columns, 1, kWanted);
}

// ---- The computation ----

/// What a call needs until its last row; dies with the call's memory context.
class SequenceProbabilityComputation : public Computation {
public:
    SequenceProbabilityComputation(const IdType& id_type, std::size_t memory_limit)
        : model(memory_limit), sequences(id_type, memory_limit) {}

    ModelRows model;
    SequenceRows sequences;
    SequenceProbabilities answer;

    JobSize size() const override {
        const TokenSequences view = sequences.view();
        return {sequences.size(), model.bytes() + sequences.bytes(),
                sequence_cpu_seconds(model.words(), view.tokens.size(), model.dimensions(),
                                     cpu_threads())};
    }
    Status compute(Execution& execution) override {
        return take_value(
            sequence_probabilities(vectors(), sequences.view(), best_simd(), execution), answer);
    }
    void prepare_for_device() override {
        elements_ = model.share_vectors();
        outputs_ = model.share_output_vectors();
        tokens_ = sequences.share();
    }
    Status submit(DaemonConnection& connection, Stop stop) override {
        SequenceProbabilityRequest request;
        request.model = vectors();
        request.elements = elements_.get();
        request.output_elements = outputs_.get();
        request.sequences = sequences.view();
        request.tokens = tokens_.get();
        request.limits.device_memory_limit = gpu_memory_limit();
        return connection.submit(request, stop);
    }
    Status take(const DaemonEvent& event, Stop stop) override {
        return take_value(std::get<SequenceProbabilityAnswer>(event).read(stop), answer);
    }

private:
    NextWordModel vectors() const {
        return {{model.vectors().data(), model.words(), model.dimensions()},
                {model.output_vectors().data(), model.words(), model.dimensions()}};
    }

    FileDescriptor elements_, outputs_, tokens_;
};

// ---- The rows ----

/// The array of a sequence: `probabilities` of the known ones of its elements, null for others and
/// for the first known one.
Datum token_array(const std::uint8_t* known, std::uint32_t length, const float* probabilities) {
    if (length == 0) return PointerGetDatum(construct_empty_array(FLOAT4OID));
    auto* const values = static_cast<Datum*>(palloc(length * sizeof(Datum)));
    auto* const nulls = static_cast<bool*>(palloc(length * sizeof(bool)));
    for (std::uint32_t i = 0; i < length; ++i) {
        const float p = known[i] != 0 ? *probabilities++ : NAN;
        values[i] = Float4GetDatum(p);
        nulls[i] = std::isnan(p);
    }
    int dimensions[] = {static_cast<int>(length)}, bounds[] = {1};
    return PointerGetDatum(construct_md_array(values, nulls, 1, dimensions, bounds, FLOAT4OID,
                                              sizeof(float4), true, TYPALIGN_INT));
}

void put_rows(const SequenceProbabilityComputation& work, SetCall& set) {
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    const std::uint8_t* known = work.sequences.known();
    const auto begins = work.sequences.view().begins;
    for (std::size_t row = 0; row < work.sequences.size(); ++row) {
        if (row % 256 == 0) CHECK_FOR_INTERRUPTS();
        const std::uint32_t length = work.sequences.length(row);
        const double probability = work.answer.sequences[row];
        Datum values[3] = {work.sequences.id(row), Float8GetDatum(probability),
                           token_array(known, length, work.answer.tokens.data() + begins[row])};
        bool nulls[3] = {false, std::isnan(probability), false};
        set.put(values, nulls);
        known += length;
        MemoryContextReset(context);
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const char* const model = given.text("model");
    const InnerQuery sequences{given.text("sequences"), id_type_argument(given)};

    SetCall set(fcinfo, "sequence_probability");
    SequenceProbabilityComputation* work = make_owned<SequenceProbabilityComputation>(
        set.context(), id_type_of(sequences.id_type), host_memory_limit());
    ModelColumns columns;
    columns.output_vectors = true;
    read_model(model, columns, work->model);
    SequenceReceiver receiver(work->model.vocabulary(), work->sequences);
    run_inner_query(sequences, receiver);
    work->sequences.finish();
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    put_rows(*work, set);
    work->model.release();
    work->sequences.release();
    set.end();
    return static_cast<Datum>(0);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_sequence_probability) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_sequence_probability_typed, gputext_sequence_probability);
}
