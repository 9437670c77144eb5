#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/trie/trie.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/term_arguments.hpp"
#include "extension/inputs/word_rows.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/texts/column_texts.hpp"
#include "extension/texts/token_reader.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/text_arguments.hpp"
#include "extension/types/trie_value.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {
namespace {

// ---- The rows ----

/// What the rows of the inner query are.
enum class Rows { words, documents };

/// Words that are numbered between two looks for a cancel.
constexpr std::size_t kPart = std::size_t{1} << 16;

const char* wanted(Rows rows) {
    return rows == Rows::words
               ? "The inner query must give an id and a word of type text, in this order."
               : "The inner query must give an id and a text, in this order.";
}

/// What a call's arguments say.
struct TrieEncodeArguments {
    Datum dictionary;
    Rows rows;
    InnerQuery query;
    Oid config;  // of documents
};

/// The rows of a call: ids and the numbers of their words. Dies with the call's memory context.
struct EncodedRows {
    EncodedRows(const TrieEncodeArguments& given, const IdType& type, std::size_t limit)
        : arguments(given),
          id_type(type),
          memory_limit(limit),
          ids(memory_limit),
          texts(memory_limit),
          numbers(memory_limit),
          words(memory_limit) {}

    const TrieEncodeArguments arguments;
    const IdType id_type;
    const std::size_t memory_limit;
    std::size_t size = 0;
    PackedBytes ids;
    std::vector<std::uint64_t> id_begins;  // in ids; none for ids that are packed by value
    StoredValues texts;                    // documents, until they are read
    PackedBytes numbers;                   // u32 of each word of all rows
    std::vector<std::uint64_t> ends;       // of each document's numbers; none for words
    WordRows words;

    std::uint64_t bytes() const {
        return ids.size() + texts.unpacked_bytes() + numbers.size() + words.bytes();
    }
    Datum id(std::size_t row) const {
        return id_at(id_type,
                     ids.data() + (id_type.by_value ? row * sizeof(Datum) : id_begins[row]));
    }
    /// Number of the word at that place among the words of all rows.
    std::uint32_t number(std::uint64_t place) const {
        return reinterpret_cast<const std::uint32_t*>(numbers.data())[place];
    }
    void finish() {
        ids.finish();
        numbers.finish();
        words.finish();
    }
    void release() {
        ids.release();
        numbers.release();
        words.release();
    }
};

class WordReceiver final : public RowReceiver {
public:
    explicit WordReceiver(EncodedRows& rows) : rows_(rows) {}

    WantedColumns wanted_columns() const override { return {2, 2, wanted(rows_.arguments.rows)}; }
    int versioned_column() const override {
        return rows_.arguments.rows == Rows::documents ? 1 : kNoColumn;
    }
    void check_columns(TupleDesc columns) override;
    void forget_row_versions() override { rows_.texts.forget_row_versions(); }
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool*) override;
    void end_rows() override {
        if (rows_.arguments.rows == Rows::documents) read_documents();
    }
    void report_nulls(int64 rows, const char*) override;

private:
    void add_word(std::string_view word) {
        const std::uint32_t number = rows_.words.add(word);
        rows_.numbers.append(&number, sizeof number);
    }
    void read_documents();
    void number_words(const ChunkedTexts& texts, ChunkNumbers& numbers);
    void append_numbers(const ChunkedTexts& texts, const ChunkNumbers& numbers);

    EncodedRows& rows_;
};

void WordReceiver::check_columns(TupleDesc columns) {
    const Rows rows = rows_.arguments.rows;
    // Not of char(n), whose blanks are no part of a word.
    if (!IsBinaryCoercible(base_type_of_column(columns, 1), TEXTOID))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the inner query gives no texts, but values of type %s",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", wanted(rows)),
                        errhint("Other types can be cast in the inner query, as in body::text.")));
}

/// Each word of a chunk gets a number, and most of them get the same one as in other chunks.
void WordReceiver::number_words(const ChunkedTexts& texts, ChunkNumbers& numbers) {
    attempt_or_raise([&] { numbers.resize(texts.chunks.size()); });
    for (std::size_t chunk = 0; chunk < numbers.size(); ++chunk) {
        const Words words = texts.chunks[chunk];
        std::vector<std::uint32_t>& mine = numbers[chunk];
        attempt_or_raise([&] { mine.resize(words.size()); });
        for (std::size_t word = 0; word < words.size(); ++word) {
            if (word % kPart == 0) CHECK_FOR_INTERRUPTS();
            mine[word] = rows_.words.add(words[word]);
        }
    }
}

void WordReceiver::append_numbers(const ChunkedTexts& texts, const ChunkNumbers& numbers) {
    std::uint64_t words = 0;
    for (const ChunkText& text : texts.texts) {
        CHECK_FOR_INTERRUPTS();
        const WordRecord record(text.record);
        for (const PlacedWord& placed : record.words) {
            const std::uint32_t number = numbers[text.chunk][placed.word];
            rows_.numbers.append(&number, sizeof number);
        }
        words += record.words.size();
        attempt_or_raise([&] { rows_.ends.push_back(words); });
    }
}

void WordReceiver::read_documents() {
    rows_.texts.finish({});
    auto* const read = make_owned<ColumnTexts>(CurrentMemoryContext, TextKind::words_of_text,
                                               rows_.arguments.config, rows_.memory_limit);
    auto* const numbers = make_owned<ChunkNumbers>(CurrentMemoryContext);
    StoredValues* columns[] = {&rows_.texts};
    read->read(columns);
    rows_.texts.release();
    number_words(read->texts(), *numbers);
    append_numbers(read->texts(), *numbers);
    read->release();
    numbers->clear();
}

void WordReceiver::take_row(const Datum* values, const bool*) {
    if (rows_.arguments.rows == Rows::words)
        add_word(view_of(PG_DETOAST_DATUM_PACKED(values[1])));
    else
        rows_.texts.append(values[1], !query().parallel_safe, row());
    const std::size_t id_begin = append_id(rows_.ids, rows_.id_type, values[0]);
    ++rows_.size;
    if (!rows_.id_type.by_value) attempt_or_raise([&] { rows_.id_begins.push_back(id_begin); });
    show_rows(rows_.size, rows_.bytes());
}

void WordReceiver::report_nulls(int64 rows, const char*) {
    const auto count = static_cast<long long>(rows);
    const auto plural = static_cast<unsigned long>(rows);
    if (rows_.arguments.rows == Rows::words)
        ereport(NOTICE, (errmsg_plural("skipped %lld word that is null",
                                       "skipped %lld words that are null", plural, count)));
    else
        ereport(NOTICE, (errmsg_plural("skipped %lld text that is null",
                                       "skipped %lld texts that are null", plural, count)));
}

// ---- The search ----

class WordLookupComputation final : public Computation {
public:
    /// `rows` rows have led to the words. All of them outlive this.
    WordLookupComputation(std::span<const std::uint8_t> image, const Trie& trie, WordRows& words,
                          std::uint64_t rows)
        : image_(image), trie_(trie), words_(words), rows_(rows) {}

    std::vector<std::uint32_t> codes;  // of the words, by their numbers

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override { words_.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& answer, Stop stop) override;

private:
    std::span<const std::uint8_t> image_;
    const Trie& trie_;
    WordRows& words_;
    std::uint64_t rows_;
};

JobSize WordLookupComputation::size() const {
    return {rows_, words_.bytes() + image_.size(),
            word_lookup_cpu_seconds(words_.size(), image_.size(), cpu_threads())};
}

Status WordLookupComputation::compute(Execution& execution) {
    codes.resize(words_.size());
    return lookup_words(trie_, words_.view(), codes, execution);
}

Status WordLookupComputation::submit(DaemonConnection& connection, Stop stop) {
    WordLookupRequest request;
    request.dictionary = image_;
    request.dictionary_words = trie_.stats().words;
    request.words = words_.files();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status WordLookupComputation::take(const DaemonEvent& answer, Stop stop) {
    return take_value(std::get<WordLookupAnswer>(answer).read(stop), codes);
}

// ---- The call ----

TrieEncodeArguments read_arguments(const Arguments& given, Rows rows) {
    TrieEncodeArguments arguments{};
    arguments.dictionary = given.value("dictionary");
    arguments.rows = rows;
    arguments.query.sql = given.text(rows == Rows::words ? "words" : "docs");
    arguments.query.id_type = id_type_argument(given);
    if (rows == Rows::documents) arguments.config = config_argument(given);
    return arguments;
}

/// The codes of the words from one place to another among all rows' words.
Datum code_array(const EncodedRows& rows, const WordLookupComputation& lookup, std::uint64_t begin,
                 std::uint64_t end) {
    const std::uint64_t count = end - begin;
    if (count > MaxAllocSize / sizeof(Datum))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a text has %llu words, more than an array can hold",
                               static_cast<unsigned long long>(count))));
    if (count == 0) return PointerGetDatum(construct_empty_array(INT8OID));
    auto* const values = static_cast<Datum*>(palloc(count * sizeof(Datum)));
    auto* const nulls = static_cast<bool*>(palloc(count * sizeof(bool)));
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint32_t code = lookup.codes[rows.number(begin + i)];
        nulls[i] = code == Trie::kNone;
        values[i] = Int64GetDatum(code);
    }
    int size = static_cast<int>(count), lower_bound = 1;
    ArrayType* const array = construct_md_array(values, nulls, 1, &size, &lower_bound, INT8OID,
                                                sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
    pfree(values);
    pfree(nulls);
    return PointerGetDatum(array);
}

void put_row(const EncodedRows& rows, const WordLookupComputation& lookup, std::size_t row,
             SetCall& set) {
    bool nulls[2] = {};
    Datum values[2] = {rows.id(row), 0};
    if (rows.arguments.rows == Rows::words) {
        const std::uint32_t code = lookup.codes[rows.number(row)];
        nulls[1] = code == Trie::kNone;
        values[1] = Int64GetDatum(code);
        set.put(values, nulls);
    } else {
        values[1] = code_array(rows, lookup, row == 0 ? 0 : rows.ends[row - 1], rows.ends[row]);
        set.put(values, nulls);
        pfree(DatumGetPointer(values[1]));
    }
}

Datum answer(FunctionCallInfo fcinfo, Rows kind) {
    const TrieEncodeArguments arguments = read_arguments(Arguments(fcinfo), kind);
    SetCall set(fcinfo, kind == Rows::words ? "trie_encode" : "trie_encode_documents");
    const OpenImage dictionary = open_trie_value(arguments.dictionary, set.context());
    set.times().lap("opening the dictionary");
    EncodedRows* rows = make_owned<EncodedRows>(
        set.context(), arguments, id_type_of(arguments.query.id_type), host_memory_limit());
    WordReceiver receiver(*rows);
    run_inner_query(arguments.query, receiver);
    rows->finish();
    set.times().lap("reading rows");
    // Behind the rows, so that it ends before they do.
    WordLookupComputation* lookup = make_owned<WordLookupComputation>(
        set.context(), dictionary.image, *dictionary.trie, rows->words, rows->size);
    run_computation(*lookup, set.times(), set.context());
    for (std::size_t row = 0; row < rows->size; ++row) {
        if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
        put_row(*rows, *lookup, row, set);
    }
    rows->release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_trie_encode) {
    return answer(fcinfo, Rows::words);
}
SQL_ALIAS(gputext_trie_encode_typed, gputext_trie_encode);

SQL_FUNCTION(gputext_trie_encode_documents) {
    return answer(fcinfo, Rows::documents);
}
SQL_ALIAS(gputext_trie_encode_documents_typed, gputext_trie_encode_documents);
}
