#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/memutils.h"
}

#include <cstring>

#include "cpp/code/code_tokens.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

/// Elements between two looks at whether the session was cancelled.
constexpr std::size_t kElementsAtOnce = std::size_t{1} << 16;

/// What the elements of the array are: single tokens, or those of a line with blanks between them.
enum class Unit { token, line };

/// A view of the elements, one after the other.
class Elements {
public:
    Elements(const CodeTokens& code, Unit unit) : code_(code), unit_(unit) {}

    std::size_t count() const {
        return unit_ == Unit::token ? code_.tokens.size() : code_.line_ends.size();
    }
    const char* name() const { return unit_ == Unit::token ? "tokens" : "lines"; }
    /// The place behind an element's tokens.
    std::size_t end(std::size_t element) const {
        return unit_ == Unit::token ? element + 1 : code_.line_ends[element];
    }
    std::string_view token(std::size_t at) const { return code_.words.term(code_.tokens[at]); }

    /// Length of the tokens from one place to another, with the blanks between them.
    std::size_t length(std::size_t begin, std::size_t stop) const {
        std::size_t sum = stop - begin - 1;
        for (std::size_t at = begin; at < stop; ++at) sum += token(at).size();
        return sum;
    }

private:
    const CodeTokens& code_;
    const Unit unit_;
};

/// Size of an array with these elements.
std::size_t array_size(const Elements& elements) {
    std::size_t size = ARR_OVERHEAD_NONULLS(1), begin = 0;
    for (std::size_t element = 0; element < elements.count(); ++element) {
        if (element % kElementsAtOnce == 0) CHECK_FOR_INTERRUPTS();
        const std::size_t end = elements.end(element);
        size += INTALIGN(VARHDRSZ + elements.length(begin, end));
        begin = end;
    }
    return size;
}

/// Writes the element as a text, and gives the place behind it.
char* put_element(char* at, const Elements& elements, std::size_t begin, std::size_t end) {
    const std::size_t size = VARHDRSZ + elements.length(begin, end);
    SET_VARSIZE(at, size);
    char* letters = VARDATA(at);
    for (std::size_t token = begin; token < end; ++token) {
        if (token > begin) *letters++ = ' ';
        const std::string_view text = elements.token(token);
        std::memcpy(letters, text.data(), text.size());
        letters += text.size();
    }
    return at + INTALIGN(size);
}

/// Builds the array in place: construct_array() would need each element twice in memory.
Datum text_array(const Elements& elements) {
    const std::size_t count = elements.count();
    if (count == 0) return PointerGetDatum(construct_empty_array(TEXTOID));
    const std::size_t size = array_size(elements);
    if (size > MaxAllocSize || count > MaxArraySize)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("the array of %zu %s would take %zu bytes, more than an array can hold",
                        count, elements.name(), size),
                 errhint("Split the source, for example by files or functions.")));
    auto* const array = static_cast<ArrayType*>(palloc0(size));
    SET_VARSIZE(array, size);
    array->ndim = 1;
    array->dataoffset = 0;
    array->elemtype = TEXTOID;
    ARR_DIMS(array)[0] = static_cast<int>(count);
    ARR_LBOUND(array)[0] = 1;
    char* at = ARR_DATA_PTR(array);
    std::size_t begin = 0;
    for (std::size_t element = 0; element < count; ++element) {
        if (element % kElementsAtOnce == 0) CHECK_FOR_INTERRUPTS();
        const std::size_t end = elements.end(element);
        at = put_element(at, elements, begin, end);
        begin = end;
    }
    return PointerGetDatum(array);
}

/// The tokens live in a memory context of their own, which goes with them when this raises an
/// error.
Datum answer(FunctionCallInfo fcinfo, Unit unit) {
    const varlena* const source = PG_GETARG_TEXT_PP(0);
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext code", ALLOCSET_SMALL_SIZES);
    CodeTokens* const code = make_owned<CodeTokens>(context);
    attempt_or_raise(
        [&] { return take_value(code_tokens(view_of(source), stop_on_interrupt()), *code); });
    const Datum array = text_array(Elements(*code, unit));
    MemoryContextDelete(context);
    PG_FREE_IF_COPY(const_cast<varlena*>(source), 0);
    return array;
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_code_tokens) {
    return answer(fcinfo, Unit::token);
}

SQL_FUNCTION(gputext_code_lines) {
    return answer(fcinfo, Unit::line);
}
}
