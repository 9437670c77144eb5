// extension/inputs/arguments.hpp - arguments of a call, by the names that the catalogue gives them
//
// A parameter is found by its name in pg_proc, so that neither the order of parameters nor an
// overload with one more of them matters to the code.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>

namespace gputext {

/// Elements of an array, as long as the current memory context.
struct TextArray {
    const char** values;
    int count;
};

/// Each function but has() raises an error where the function has no parameter of that name, as
/// when the SQL objects are those of another release than this library. Functions that return a
/// value raise an error for a null.
class Arguments {
public:
    /// The names stay in the current memory context.
    explicit Arguments(FunctionCallInfo fcinfo);

    bool has(const char* name) const { return find(name) >= 0; }
    bool is_null(const char* name) const;

    Datum value(const char* name) const;
    const char* text(const char* name) const;
    /// Of an array of text. Raises an error for an element that is null.
    TextArray texts(const char* name) const;
    bool flag(const char* name) const;
    std::int32_t integer(const char* name) const;
    std::int64_t big_integer(const char* name) const;
    double number(const char* name) const;
    Oid oid(const char* name) const;
    /// An integer of at least 1; raises an error for others.
    std::uint32_t count(const char* name) const;

    /// The type that the call's expression has, InvalidOid where it is not known.
    Oid type(const char* name) const;
    /// Whether the parameter is declared as a polymorphic one.
    bool is_polymorphic(const char* name) const;

private:
    int find(const char* name) const;
    int place(const char* name) const;

    FunctionCallInfo call_;
    char** names_ = nullptr;
    const Oid* types_ = nullptr;  // as declared
    int size_ = 0;
};

/// The type of ids: that of the parameter id_type where it is polymorphic, else bigint.
Oid id_type_argument(const Arguments& arguments);

/// Raises an error for a null in the parameter that follows the inner queries where their ids are of
/// type bigint: a null id_type of a number's type that is given without its name comes there.
void refuse_null_after_queries(const Arguments& arguments, const char* name);

}  // namespace gputext
