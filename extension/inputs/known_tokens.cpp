#include "extension/inputs/known_tokens.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

#include "extension/base/failure.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

/// Elements of an array between two looks for an interrupt.
constexpr int kPart = 4096;

}  // namespace

bool holds_tokens(TupleDesc columns, int column) {
    const Oid type = base_type_of_column(columns, column);
    return type == TEXTARRAYOID || type == VARCHARARRAYOID;
}

void raise_no_tokens(TupleDesc columns, int column, const char* wanted) {
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("column %d of the inner query is of type %s", column + 1,
                    format_type_be(TupleDescAttr(columns, column)->atttypid)),
             errdetail("%s", wanted),
             errhint("A text can be split in the inner query, as in string_to_array(body, ' ').")));
    pg_unreachable();
}

void UnknownTokens::report() const {
    if (tokens_ == 0) return;
    ereport(NOTICE, (errmsg_plural("left out %llu token that the model does not have",
                                   "left out %llu tokens that the model does not have",
                                   static_cast<unsigned long>(tokens_),
                                   static_cast<unsigned long long>(tokens_))));
}

void read_known_tokens(Datum value, const Vocabulary& vocabulary,
                       std::vector<std::uint32_t>& numbers, UnknownTokens& unknown) {
    ArrayType* const array = DatumGetArrayTypeP(value);
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_INT, &values, &nulls, &count);
    attempt_or_raise([&] { numbers.assign(static_cast<std::size_t>(count), Vocabulary::kNone); });
    std::uint64_t missing = 0;
    for (int i = 0; i < count; ++i) {
        if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (nulls[i]) continue;
        numbers[i] = vocabulary.find(view_of(PG_DETOAST_DATUM_PACKED(values[i])));
        missing += numbers[i] == Vocabulary::kNone;
    }
    unknown.count(missing);
}

}  // namespace gputext
