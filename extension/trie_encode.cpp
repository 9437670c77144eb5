#include "extension/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "cpp/trie.hpp"
#include "cpp/vocabulary.hpp"
#include "extension/activity.hpp"
#include "extension/computation.hpp"
#include "extension/inner_query.hpp"
#include "extension/owned.hpp"
#include "extension/packed_rows.hpp"
#include "extension/parsed_pieces.hpp"
#include "extension/set_call.hpp"
#include "extension/settings.hpp"
#include "extension/term_arguments.hpp"
#include "extension/text_arguments.hpp"
#include "extension/trie_value.hpp"
#include "extension/vector_arguments.hpp"

namespace gputext {
namespace {

/// What the rows of the inner query are.
enum class Rows { words, documents };

/// Words that are looked up between two looks at a stop request.
constexpr std::size_t kTaskWords = std::size_t{1} << 14;

const char* wanted(Rows rows) {
    return rows == Rows::words ? "Wanted are an id and a word of type text, in this order."
                               : "Wanted are an id and a text, in this order.";
}

/// What a call's arguments say.
struct Call {
    Rows rows;
    InnerQuery query;
    Oid config;  // of documents
};

/// What a call needs until its last row; dies with the call's memory context. Each different word
/// is looked up once, and the rows are numbers of such words.
class Work final : public Computation {
public:
    Work(const Call& arguments, const Trie& trie, std::size_t memory_limit)
        : call(arguments),
          id_type(id_type_of(arguments.query.id_type)),
          packed(memory_limit),
          trie_(trie) {}

    const Call call;
    const IdType id_type;
    PackedBytes packed;                       // ids, and behind each the numbers of its words
    std::vector<std::uint64_t> begins, ends;  // of each row
    std::vector<std::uint32_t> counts;        // of each document's words
    std::vector<std::uint32_t> numbers;       // of the document on its way
    Vocabulary words;
    std::vector<std::uint32_t> codes;  // of the words, by their numbers

    JobSize size() const override { return {begins.size(), packed.size(), 0}; }
    Status compute(Execution& execution) override;
    bool has_device_job() const override { return false; }
    void prepare_for_device() override {}
    Status submit(DaemonConnection&, Stop) override { return {}; }
    Status take(const DaemonEvent&, Stop) override { return {}; }

private:
    const Trie& trie_;
};

Status Work::compute(Execution& execution) {
    codes.resize(words.size());
    const std::size_t tasks = (words.size() + kTaskWords - 1) / kTaskWords;
    execution.begin_phase("looking up words", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) -> Status {
        const std::size_t begin = task * kTaskWords;
        const std::size_t end = std::min<std::size_t>(words.size(), begin + kTaskWords);
        std::vector<std::string_view> views;
        for (std::size_t i = begin; i < end; ++i)
            views.push_back(words.term(static_cast<std::uint32_t>(i)));
        trie_.lookup(views, std::span(codes).subspan(begin, end - begin));
        return {};
    });
}

class WordReceiver final : public RowReceiver {
public:
    explicit WordReceiver(Work& work) : work_(work) {}

    void check_columns(TupleDesc columns) override;
    void take_row(const Datum* values, const bool*) override;
    void report_nulls(int64 rows) override;

private:
    void read_word(std::string_view word);
    void read_document(std::string_view text);

    Work& work_;
};

void WordReceiver::check_columns(TupleDesc columns) {
    const Rows rows = work_.call.rows;
    if (columns->natts != 2)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg_plural("the inner query has %d column, not 2",
                                      "the inner query has %d columns, not 2",
                                      static_cast<unsigned long>(columns->natts), columns->natts),
                        errdetail("%s", wanted(rows))));
    // Not of char(n), whose blanks are no part of a word.
    if (!IsBinaryCoercible(base_type_of_column(columns, 1), TEXTOID))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the inner query gives no texts but %s",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", wanted(rows)),
                        errhint("Other types can be cast in the inner query, as in body::text.")));
}

void WordReceiver::read_word(std::string_view word) {
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            work_.numbers.assign(1, work_.words.add(word));
            return {};
        }))
        raise_failure(failure);
}

/// In a memory context that is reset behind each piece.
void WordReceiver::read_document(std::string_view text) {
    work_.numbers.clear();
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext piece", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    for (std::size_t begin = 0; begin < text.size();) {
        CHECK_FOR_INTERRUPTS();
        const std::size_t end = end_of_piece(text, begin);
        const ParsedText parsed = parse_piece(work_.call.config, text.substr(begin, end - begin));
        Failure failure;
        if (!attempt(failure, [&]() -> Status {
                for (int32 i = 0; i < parsed.curwords; ++i)
                    if (!seen_at_position(parsed.words, i))
                        work_.numbers.push_back(
                            work_.words.add({parsed.words[i].word, parsed.words[i].len}));
                return {};
            }))
            raise_failure(failure);
        MemoryContextReset(context);
        begin = end;
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

void WordReceiver::take_row(const Datum* values, const bool*) {
    const varlena* const text = PG_DETOAST_DATUM_PACKED(values[1]);
    if (work_.call.rows == Rows::words)
        read_word(view_of(text));
    else
        read_document(view_of(text));
    const std::size_t begin = append_id(work_.packed, work_.id_type, values[0]);
    // Behind the id, of which only its type knows the size: they are found from the row's end.
    work_.packed.append(work_.numbers.data(), work_.numbers.size() * sizeof(std::uint32_t));
    const std::size_t end = work_.packed.size();
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            work_.begins.push_back(begin);
            work_.ends.push_back(end);
            if (work_.call.rows == Rows::documents)
                work_.counts.push_back(static_cast<std::uint32_t>(work_.numbers.size()));
            return {};
        }))
        raise_failure(failure);
    show_rows(work_.begins.size(), work_.packed.size());
}

void WordReceiver::report_nulls(int64 rows) {
    const auto count = static_cast<long long>(rows);
    const auto plural = static_cast<unsigned long>(rows);
    if (work_.call.rows == Rows::words)
        ereport(NOTICE, (errmsg_plural("skipped %lld word that is null",
                                       "skipped %lld words that are null", plural, count)));
    else
        ereport(NOTICE, (errmsg_plural("skipped %lld text that is null",
                                       "skipped %lld texts that are null", plural, count)));
}

/// Arguments: dictionary, the inner query, id_type where there is one, config for documents.
Call read_call(FunctionCallInfo fcinfo, Rows rows, bool typed) {
    refuse_null(fcinfo, 0, "dictionary");
    Call call{};
    call.rows = rows;
    call.query.sql = text_argument(fcinfo, 1, rows == Rows::words ? "words" : "docs");
    call.query.id_type = id_type_argument(fcinfo, 2, typed);
    if (rows == Rows::documents) call.config = config_argument(fcinfo, typed ? 3 : 2);
    return call;
}

/// The codes of words whose numbers lie there.
Datum code_array(const Work& work, const std::uint8_t* numbers, std::size_t count) {
    if (count > MaxAllocSize / sizeof(Datum))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a text has %zu words, more than an array can hold", count)));
    if (count == 0) return PointerGetDatum(construct_empty_array(INT8OID));
    auto* const values = static_cast<Datum*>(palloc(count * sizeof(Datum)));
    auto* const nulls = static_cast<bool*>(palloc(count * sizeof(bool)));
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t number;
        std::memcpy(&number, numbers + i * sizeof number, sizeof number);
        nulls[i] = work.codes[number] == Trie::kNone;
        values[i] = Int64GetDatum(work.codes[number]);
    }
    int size = static_cast<int>(count), lower_bound = 1;
    ArrayType* const array = construct_md_array(values, nulls, 1, &size, &lower_bound, INT8OID,
                                                sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
    pfree(values);
    pfree(nulls);
    return PointerGetDatum(array);
}

void put_row(const Work& work, std::size_t row, SetCall& set) {
    const std::uint8_t* const data = work.packed.data();
    const bool words = work.call.rows == Rows::words;
    const std::size_t count = words ? 1 : work.counts[row];
    const std::uint8_t* const numbers = data + work.ends[row] - count * sizeof(std::uint32_t);
    bool nulls[2] = {};
    Datum values[2] = {id_at(work.id_type, data + work.begins[row]), 0};
    if (words) {
        std::uint32_t number;
        std::memcpy(&number, numbers, sizeof number);
        nulls[1] = work.codes[number] == Trie::kNone;
        values[1] = Int64GetDatum(work.codes[number]);
        set.put(values, nulls);
    } else {
        values[1] = code_array(work, numbers, count);
        set.put(values, nulls);
        pfree(DatumGetPointer(values[1]));
    }
}

Datum answer(FunctionCallInfo fcinfo, Rows rows, bool typed) {
    const Call call = read_call(fcinfo, rows, typed);
    SetCall set(fcinfo, rows == Rows::words ? "trie_encode" : "trie_encode_documents");
    const Trie& trie = open_trie_argument(fcinfo, 0, set.context());
    Work* work = make_owned<Work>(set.context(), call, trie, host_memory_limit());
    WordReceiver receiver(*work);
    run_inner_query(call.query, receiver);
    work->packed.finish();
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    for (std::size_t row = 0; row < work->begins.size(); ++row) {
        if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
        put_row(*work, row, set);
    }
    work->packed.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_trie_encode);
PG_FUNCTION_INFO_V1(gputext_trie_encode_typed);
PG_FUNCTION_INFO_V1(gputext_trie_encode_documents);
PG_FUNCTION_INFO_V1(gputext_trie_encode_documents_typed);

PGDLLEXPORT Datum gputext_trie_encode(PG_FUNCTION_ARGS) {
    return answer(fcinfo, Rows::words, false);
}

PGDLLEXPORT Datum gputext_trie_encode_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo, Rows::words, true);
}

PGDLLEXPORT Datum gputext_trie_encode_documents(PG_FUNCTION_ARGS) {
    return answer(fcinfo, Rows::documents, false);
}

PGDLLEXPORT Datum gputext_trie_encode_documents_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo, Rows::documents, true);
}
}
