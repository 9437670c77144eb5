#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cpp/passages/passages.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/document_query.hpp"
#include "extension/inputs/passage_arguments.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

enum class PassagesForm { pairs, common, coverage };

/// What a call's arguments say.
struct PassagesArguments {
    PassagesForm form;
    InnerQueries queries;
    PassageForm texts;
    SharedWindowsParameters windows;
    std::size_t others = 1;  // documents that a window has to stand in beside its own
    std::uint64_t max_pairs = 0;
};

/// What a call needs until its last row; dies with the call's memory context.
class PassagesComputation final : public HostComputation {
public:
    PassagesComputation(const PassagesArguments& given, IdType id_type, std::size_t limit)
        : arguments(given), rows(id_type, false, limit), memory_limit_(limit) {}

    PassagesArguments arguments;
    DocumentRows rows;
    PassageTexts texts;
    PassagePairs pairs;
    std::vector<SharedStretch> stretches;
    std::vector<CommonPassage> common;

    void read();

    JobSize size() const override { return {rows.extents.size(), rows.byte_count(), 0}; }
    Status compute(Execution& execution) override;
    Documents documents() const {
        return {rows.bytes(), rows.extents,
                rows.binary ? CharacterLengths::single_byte() : database_characters()};
    }

private:
    Status find_pairs(Execution& execution);

    std::size_t memory_limit_;
};

/// Documents that a passage has to stand in, its own included where there is one table.
std::size_t others_argument(const Arguments& given, bool two_tables) {
    const std::int32_t least = two_tables ? 1 : 2;
    const std::int32_t documents = given.integer("min_documents");
    if (documents < least)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("min_documents must be at least %d, not %d", least, documents),
                        two_tables ? errhint("It counts documents of the second inner query.")
                                   : errhint("It counts the document itself and others.")));
    return static_cast<std::size_t>(documents - (two_tables ? 0 : 1));
}

PassagesArguments read_arguments(const Arguments& given, PassagesForm form) {
    PassagesArguments arguments{};
    arguments.form = form;
    arguments.queries = inner_queries_argument(given, "docs", "documents");
    const bool two_tables = arguments.queries.two;
    arguments.windows.two_tables = two_tables;
    refuse_null_after_queries(given, "min_length");
    arguments.windows.length = given.count("min_length");
    arguments.windows.memory_limit = host_memory_limit();
    arguments.texts = passage_form_argument(given);
    if (form == PassagesForm::pairs)
        arguments.max_pairs = max_pairs_argument(given);
    else
        arguments.others = others_argument(given, two_tables);
    return arguments;
}

void PassagesComputation::read() {
    run_document_queries(arguments.queries, rows);
    if (arguments.queries.two) arguments.windows.split = rows.ids.size();
    if (arguments.form == PassagesForm::common && rows.binary)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("common_passages needs documents of type text, not bytea"),
                        errhint("A text in bytes can be converted in the inner query, as in "
                                "convert_from(body, 'UTF8').")));
}

Status PassagesComputation::find_pairs(Execution& execution) {
    Result<PassagePairs> found = shared_passages(texts, arguments.windows, arguments.max_pairs,
                                                 memory_limit_, execution);
    if (!found.ok()) {
        const bool too_many = found.status().code() == ErrorCode::memory_limit;
        if (!too_many) return found.status();
        return {ErrorCode::memory_limit, found.status().message(),
                "Raise min_length or gputext.host_memory_limit."};
    }
    pairs = *std::move(found);
    if (pairs.count <= arguments.max_pairs) return {};
    return {ErrorCode::invalid_argument,
            "documents share " + std::to_string(pairs.count) +
                " passages in pairs, more than max_pairs, " + std::to_string(arguments.max_pairs),
            "Raise max_pairs or min_length; common_passages lists each passage once."};
}

Status PassagesComputation::compute(Execution& execution) {
    GPUTEXT_TRY(texts.set(documents(), arguments.texts, true, execution));
    if (arguments.form == PassagesForm::pairs) return find_pairs(execution);
    const bool joined = arguments.form == PassagesForm::coverage;
    Result<std::vector<SharedStretch>> found = (joined ? covered_stretches : shared_stretches)(
        texts, arguments.windows, arguments.others, execution);
    if (!found.ok()) return found.status();
    stretches = *std::move(found);
    if (joined) return {};
    Result<std::vector<CommonPassage>> passages =
        common_passages(texts, stretches, memory_limit_, execution);
    if (passages.status().code() == ErrorCode::memory_limit)
        return {ErrorCode::memory_limit, passages.status().message(),
                "Raise min_length or min_documents, or gputext.host_memory_limit."};
    if (!passages.ok()) return passages.status();
    common = *std::move(passages);
    return {};
}

/// From 1, as SQL counts characters.
Datum start_of(const Place& place) {
    return Int32GetDatum(static_cast<int32>(place.start + 1));
}

Datum length_of(const Place& place) {
    return Int32GetDatum(static_cast<int32>(place.length));
}

void put_pairs(const PassagesComputation& work, SetCall& set) {
    bool nulls[6] = {};
    for (std::size_t i = 0; i < work.pairs.passages.size(); ++i) {
        if (i % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const SharedPassage& passage = work.pairs.passages[i];
        const Place first = work.texts.place(passage.first, passage.first_symbol, passage.symbols);
        const Place second =
            work.texts.place(passage.second, passage.second_symbol, passage.symbols);
        Datum values[6] = {work.rows.id(passage.first),  start_of(first),  length_of(first),
                           work.rows.id(passage.second), start_of(second), length_of(second)};
        set.put(values, nulls);
    }
}

/// The bytes of places in documents, which are asked for in ascending order.
class PlaceBytes {
public:
    explicit PlaceBytes(const Documents& documents) : documents_(documents) {}

    Bytes bytes(std::size_t document, const Place& place) {
        const Extent& extent = documents_.extents[document];
        text_ = {documents_.bytes + extent.begin, static_cast<std::size_t>(extent.size)};
        if (document != document_) begin_ = {0, 0};
        document_ = document;
        const Position begin = behind(begin_, place.start - begin_.characters);
        const Position end = behind(begin, place.length);
        begin_ = begin;
        return text_.subspan(begin.bytes, end.bytes - begin.bytes);
    }

private:
    struct Position {
        std::size_t bytes;
        std::uint64_t characters;
    };
    Position behind(Position position, std::uint64_t characters) const {
        for (; characters > 0; --characters, ++position.characters) {
            if (characters % (1 << 20) == 0) CHECK_FOR_INTERRUPTS();
            position.bytes += documents_.characters.of(text_[position.bytes]);
        }
        return position;
    }

    const Documents documents_;
    Bytes text_;
    std::size_t document_ = SIZE_MAX;
    Position begin_{0, 0};
};

void put_common(const PassagesComputation& work, SetCall& set) {
    PlaceBytes places(work.documents());
    bool nulls[6] = {};
    for (std::size_t i = 0; i < work.common.size(); ++i) {
        CHECK_FOR_INTERRUPTS();
        const CommonPassage& passage = work.common[i];
        const SharedStretch& stretch = passage.first;
        const Place place = work.texts.place(stretch.document, stretch.symbol, stretch.symbols);
        const Bytes bytes = places.bytes(stretch.document, place);
        text* const text = cstring_to_text_with_len(reinterpret_cast<const char*>(bytes.data()),
                                                    static_cast<int>(bytes.size()));
        Datum values[6] = {PointerGetDatum(text),
                           Int32GetDatum(static_cast<int32>(passage.documents)),
                           Int64GetDatum(static_cast<std::int64_t>(passage.occurrences)),
                           work.rows.id(stretch.document),
                           start_of(place),
                           length_of(place)};
        set.put(values, nulls);
        pfree(text);
    }
}

Datum array_of(std::vector<Datum>& numbers) {
    return PointerGetDatum(construct_array(numbers.data(), static_cast<int>(numbers.size()),
                                           INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

void put_coverage(const PassagesComputation& work, SetCall& set) {
    auto& starts = *make_owned<std::vector<Datum>>(CurrentMemoryContext);
    auto& lengths = *make_owned<std::vector<Datum>>(CurrentMemoryContext);
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);
    const std::size_t count =
        work.arguments.windows.two_tables ? work.arguments.windows.split : work.texts.documents();
    bool nulls[6] = {};
    std::size_t next = 0;
    for (std::size_t document = 0; document < count; ++document) {
        CHECK_FOR_INTERRUPTS();
        starts.clear();
        lengths.clear();
        std::uint64_t covered = 0;
        attempt_or_raise([&] {
            for (; next < work.stretches.size() && work.stretches[next].document == document;
                 ++next) {
                const SharedStretch& stretch = work.stretches[next];
                const Place place = work.texts.place(document, stretch.symbol, stretch.symbols);
                starts.push_back(start_of(place));
                lengths.push_back(length_of(place));
                covered += place.length;
            }
        });
        const std::uint64_t characters = work.texts.characters(document);
        const double share = characters == 0 ? 0
                                             : static_cast<double>(covered) /
                                                   static_cast<double>(characters);
        MemoryContext before = MemoryContextSwitchTo(context);
        Datum values[6] = {work.rows.id(document),
                           Int32GetDatum(static_cast<int32>(characters)),
                           Int32GetDatum(static_cast<int32>(covered)),
                           Float8GetDatum(share),
                           array_of(starts),
                           array_of(lengths)};
        MemoryContextSwitchTo(before);
        set.put(values, nulls);
        MemoryContextReset(context);
    }
    MemoryContextDelete(context);
}

Datum answer(FunctionCallInfo fcinfo, PassagesForm form) {
    static constexpr const char* names[] = {"shared_passages", "common_passages",
                                            "passage_coverage"};
    const PassagesArguments arguments = read_arguments(Arguments(fcinfo), form);
    SetCall set(fcinfo, names[static_cast<std::size_t>(form)]);
    auto* const work = make_owned<PassagesComputation>(
        set.context(), arguments, id_type_of(arguments.queries.first.id_type), host_memory_limit());
    work->read();
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    switch (form) {
        case PassagesForm::pairs:
            put_pairs(*work, set);
            break;
        case PassagesForm::common:
            put_common(*work, set);
            break;
        case PassagesForm::coverage:
            put_coverage(*work, set);
    }
    work->rows.release();
    set.end();
    PG_RETURN_NULL();
}

// ---- Texts without their passages ----

/// One dimension without nulls, or none.
std::span<const int32> integers_of(ArrayType* array, const char* name) {
    if (ARR_NDIM(array) > 1 || array_contains_nulls(array))
        ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                        errmsg("%s must be an array of one dimension without nulls", name)));
    const int count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
    return {reinterpret_cast<const int32*>(ARR_DATA_PTR(array)), static_cast<std::size_t>(count)};
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_shared_passages) {
    return answer(fcinfo, PassagesForm::pairs);
}
SQL_ALIAS(gputext_shared_passages_typed, gputext_shared_passages);
SQL_ALIAS(gputext_shared_passages_between, gputext_shared_passages);
SQL_ALIAS(gputext_shared_passages_between_typed, gputext_shared_passages);

SQL_FUNCTION(gputext_common_passages) {
    return answer(fcinfo, PassagesForm::common);
}
SQL_ALIAS(gputext_common_passages_typed, gputext_common_passages);

SQL_FUNCTION(gputext_passage_coverage) {
    return answer(fcinfo, PassagesForm::coverage);
}
SQL_ALIAS(gputext_passage_coverage_typed, gputext_passage_coverage);
SQL_ALIAS(gputext_passage_coverage_between, gputext_passage_coverage);
SQL_ALIAS(gputext_passage_coverage_between_typed, gputext_passage_coverage);

SQL_FUNCTION(gputext_cut_passages) {
    text* const document = PG_GETARG_TEXT_PP(0);
    const std::span<const int32> starts = integers_of(PG_GETARG_ARRAYTYPE_P(1), "starts");
    const std::span<const int32> lengths = integers_of(PG_GETARG_ARRAYTYPE_P(2), "lengths");
    if (starts.size() != lengths.size())
        ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                        errmsg("starts and lengths must have the same number of elements, not %zu and %zu",
                               starts.size(), lengths.size())));
    const auto is_negative = [](int32 length) { return length < 0; };
    if (!std::is_sorted(starts.begin(), starts.end()))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("starts must ascend"),
                 errhint("Call cut_passages with the arrays of one row of passage_coverage.")));
    if ((!starts.empty() && starts[0] < 1) || std::ranges::any_of(lengths, is_negative))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("starts must be at least 1, and lengths at least 0")));
    const CharacterLengths& characters = database_characters();
    const Bytes bytes(reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(document)),
                      static_cast<std::size_t>(VARSIZE_ANY_EXHDR(document)));
    text* const kept = static_cast<text*>(palloc(VARHDRSZ + bytes.size()));
    std::size_t size = 0, next = 0;
    std::int64_t character = 1, cut_until = 1;
    for (std::size_t at = 0; at < bytes.size(); ++character) {
        if (character % (1 << 20) == 0) CHECK_FOR_INTERRUPTS();
        for (; next < starts.size() && starts[next] <= character; ++next)
            cut_until = std::max(cut_until, std::int64_t{starts[next]} + lengths[next]);
        const std::size_t length = std::min(characters.of(bytes[at]), bytes.size() - at);
        if (character >= cut_until) {
            std::memcpy(VARDATA(kept) + size, &bytes[at], length);
            size += length;
        }
        at += length;
    }
    SET_VARSIZE(kept, VARHDRSZ + size);
    PG_RETURN_TEXT_P(kept);
}
}
