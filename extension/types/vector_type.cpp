#include "extension/types/vector_type.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varbit.h"
}

#include <algorithm>
#include <cstring>

namespace gputext {
namespace {

using Form = VectorType::Form;

// ---- Arrays ----

std::optional<VectorType> array_type_of(Oid type) {
    switch (type) {
        case FLOAT4ARRAYOID:
            return VectorType{Form::array, ElementType::float32};
        case FLOAT8ARRAYOID:
            return VectorType{Form::array, ElementType::float64};
        case INT4ARRAYOID:
            return VectorType{Form::array, ElementType::int32};
        default:
            return std::nullopt;
    }
}

VectorFault read_elements(ArrayType* array, VectorValue& vector) {
    if (ARR_NDIM(array) > 1) return VectorFault::several_dimensions;
    if (array_contains_nulls(array)) return VectorFault::null_element;
    vector.dimensions = ARR_NDIM(array) == 0 ? 0 : static_cast<std::size_t>(ARR_DIMS(array)[0]);
    vector.stored = vector.dimensions;
    vector.elements = ARR_DATA_PTR(array);
    return VectorFault::none;
}

// ---- pgvector's types, as its headers lay them out for other extensions ----

struct StoredDense {  // vector, of float32; halfvec, of float16
    int32 vl_len_;
    int16 dimensions;
    int16 unused;
    char elements[FLEXIBLE_ARRAY_MEMBER];
};

struct StoredSparse {  // sparsevec: columns from 0, ascending, and then the elements, float32
    int32 vl_len_;
    int32 dimensions;
    int32 stored;
    int32 unused;
    std::uint32_t columns[FLEXIBLE_ARRAY_MEMBER];
};

/// Whether the type and the function that makes its values are both of the extension `vector`. Any
/// role that owns the extension may add types to it, but only a superuser makes base types, which
/// alone have an input function of the extension's.
bool is_of_pgvector(Oid type, Oid input_function) {
    const Oid extension = getExtensionOfObject(TypeRelationId, type);
    if (!OidIsValid(extension) ||
        getExtensionOfObject(ProcedureRelationId, input_function) != extension)
        return false;
    const char* const name = get_extension_name(extension);
    return name != nullptr && std::strcmp(name, "vector") == 0;
}

std::optional<VectorType> type_named(const char* name) {
    if (std::strcmp(name, "vector") == 0) return VectorType{Form::dense, ElementType::float32};
    if (std::strcmp(name, "halfvec") == 0) return VectorType{Form::dense, ElementType::float16};
    if (std::strcmp(name, "sparsevec") == 0) return VectorType{Form::sparse, ElementType::float32};
    return std::nullopt;
}

std::optional<VectorType> pgvector_type_of(Oid type) {
    HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
    if (!HeapTupleIsValid(tuple)) return std::nullopt;
    const auto* row = reinterpret_cast<const FormData_pg_type*>(GETSTRUCT(tuple));
    const std::optional<VectorType> found = type_named(NameStr(row->typname));
    const bool is_base_type = row->typtype == TYPTYPE_BASE && row->typlen == -1;
    const Oid input_function = row->typinput;
    ReleaseSysCache(tuple);
    return found && is_base_type && is_of_pgvector(type, input_function) ? found : std::nullopt;
}

VectorFault read_dense(Datum value, ElementType element, VectorValue& vector) {
    const auto* stored = reinterpret_cast<const StoredDense*>(PG_DETOAST_DATUM(value));
    const std::size_t size = VARSIZE(stored);
    if (size < sizeof *stored || stored->dimensions < 0) return VectorFault::unknown_layout;
    vector.dimensions = static_cast<std::size_t>(stored->dimensions);
    vector.stored = vector.dimensions;
    vector.elements = stored->elements;
    return size == sizeof *stored + vector.stored * element_size(element)
               ? VectorFault::none
               : VectorFault::unknown_layout;
}

VectorFault read_sparse(Datum value, VectorValue& vector) {
    const auto* stored = reinterpret_cast<const StoredSparse*>(PG_DETOAST_DATUM(value));
    const std::size_t size = VARSIZE(stored);
    if (size < sizeof *stored || stored->stored < 0 || stored->dimensions < stored->stored)
        return VectorFault::unknown_layout;
    vector.dimensions = static_cast<std::size_t>(stored->dimensions);
    vector.stored = static_cast<std::size_t>(stored->stored);
    if (size != sizeof *stored + vector.stored * (sizeof(std::uint32_t) + sizeof(float)))
        return VectorFault::unknown_layout;
    vector.columns = stored->columns;
    vector.elements = stored->columns + vector.stored;
    const auto* const end = vector.columns + vector.stored;
    const auto not_ascending = [](std::uint32_t a, std::uint32_t b) { return a >= b; };
    return std::adjacent_find(vector.columns, end, not_ascending) == end &&
                   (vector.stored == 0 || end[-1] < vector.dimensions)
               ? VectorFault::none
               : VectorFault::unknown_layout;
}

// ---- Bits ----

/// Copies the bits, which end with a byte of their own, into words.
void read_bits(Datum value, VectorValue& vector) {
    VarBit* const bits = DatumGetVarBitP(value);
    vector.dimensions = static_cast<std::size_t>(VARBITLEN(bits));
    vector.stored = vector.dimensions;
    void* const words = palloc0(row_size(ElementType::bit, vector.dimensions));
    std::memcpy(words, VARBITS(bits), VARBITBYTES(bits));
    vector.elements = words;
}

// ---- Elements ----

/// Whether no number has all bits of the exponent, as infinity and NaN have.
template <class Bits>
bool no_infinity(const void* elements, std::size_t count, Bits infinity) {
    constexpr std::size_t kAtOnce = 16;  // which the compiler takes together
    const auto* bits = static_cast<const Bits*>(elements);
    Bits found = 0;
    std::size_t i = 0;
    for (; i + kAtOnce <= count; i += kAtOnce)
        for (std::size_t j = 0; j < kAtOnce; ++j)
            found = static_cast<Bits>(found | ((bits[i + j] & infinity) == infinity));
    for (; i < count; ++i) found = static_cast<Bits>(found | ((bits[i] & infinity) == infinity));
    return found == 0;
}

VectorFault read_by_form(const VectorType& type, Datum value, VectorValue& vector) {
    switch (type.form) {
        case Form::array:
            return read_elements(DatumGetArrayTypeP(value), vector);
        case Form::dense:
            return read_dense(value, type.element, vector);
        case Form::sparse:
            return read_sparse(value, vector);
        case Form::bits:
            read_bits(value, vector);
            return VectorFault::none;
    }
    pg_unreachable();
}

VectorFault check_elements(const VectorType& type, const VectorValue& vector) {
    if (vector.dimensions == 0) return VectorFault::empty;
    return all_finite(type.element, vector.elements, vector.stored) ? VectorFault::none
                                                                    : VectorFault::not_finite;
}

}  // namespace

std::optional<VectorType> vector_type_of(Oid type) {
    const std::optional<VectorType> array = array_type_of(type);
    return array ? array : pgvector_type_of(type);
}

std::optional<VectorType> bit_type_of(Oid type) {
    if (type != BITOID && type != VARBITOID) return std::nullopt;
    return VectorType{Form::bits, ElementType::bit};
}

VectorFault read_vector(const VectorType& type, Datum value, VectorValue& vector) {
    vector = {};
    const VectorFault fault = read_by_form(type, value, vector);
    return fault == VectorFault::none ? check_elements(type, vector) : fault;
}

std::size_t plain_header_size(const VectorType& type) {
    if (type.element == ElementType::bit || element_size(type.element) > sizeof(float)) return 0;
    switch (type.form) {
        case Form::array:
            return ARR_OVERHEAD_NONULLS(1) - VARHDRSZ;
        case Form::dense:
            return sizeof(StoredDense) - VARHDRSZ;
        default:
            return 0;
    }
}

bool is_plain_header(const VectorType& type, const char* bytes, std::size_t dimensions) {
    union {
        char bytes[ARR_OVERHEAD_NONULLS(1)];
        ArrayType array;
        StoredDense dense;
    } header = {};
    std::memcpy(header.bytes + VARHDRSZ, bytes, plain_header_size(type));
    if (type.form == Form::dense)
        return header.dense.dimensions == static_cast<int16>(dimensions) &&
               header.dense.dimensions > 0;
    return ARR_NDIM(&header.array) == 1 && !ARR_HASNULL(&header.array) &&
           static_cast<std::size_t>(ARR_DIMS(&header.array)[0]) == dimensions && dimensions > 0;
}

bool all_finite(ElementType type, const void* elements, std::size_t count) {
    switch (type) {
        case ElementType::float16:
            return no_infinity<std::uint16_t>(elements, count, 0x7c00);
        case ElementType::float32:
            return no_infinity<std::uint32_t>(elements, count, 0x7f800000);
        case ElementType::float64:
            return no_infinity<std::uint64_t>(elements, count, 0x7ff0000000000000);
        case ElementType::int32:
        case ElementType::bit:
            return true;
    }
    pg_unreachable();
}

Datum new_vector_value(const VectorType& type, const Vectors& vectors, std::size_t row) {
    const std::size_t stored = vectors.stored(row);
    const std::size_t bytes = stored * element_size(type.element);
    if (type.form == Form::dense) {
        const std::size_t size = offsetof(StoredDense, elements) + bytes;
        auto* const value = static_cast<StoredDense*>(palloc0(size));
        SET_VARSIZE(value, size);
        value->dimensions = static_cast<int16>(vectors.dimensions);
        std::memcpy(value->elements, vectors.row_bytes(row), bytes);
        return PointerGetDatum(value);
    }
    const std::size_t columns = stored * sizeof(std::uint32_t);
    const std::size_t size = offsetof(StoredSparse, columns) + columns + bytes;
    auto* const value = static_cast<StoredSparse*>(palloc0(size));
    SET_VARSIZE(value, size);
    value->dimensions = static_cast<int32>(vectors.dimensions);
    value->stored = static_cast<int32>(stored);
    std::memcpy(value->columns, vectors.columns.data() + vectors.begin(row), columns);
    std::memcpy(value->columns + stored, vectors.row_bytes(row), bytes);
    return PointerGetDatum(value);
}

VectorFault read_array(Datum value, VectorType& type, VectorValue& vector) {
    ArrayType* const array = DatumGetArrayTypeP(value);
    type = *array_type_of(get_array_type(ARR_ELEMTYPE(array)));
    return read_vector(type, PointerGetDatum(array), vector);
}

void raise_vector_fault(VectorFault fault, const char* whose) {
    switch (fault) {
        case VectorFault::several_dimensions:
            ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                            errmsg("the vector of %s is an array of several dimensions", whose)));
        case VectorFault::null_element:
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("the vector of %s has an element that is null", whose)));
        case VectorFault::empty:
            ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                            errmsg("the vector of %s has no elements", whose)));
        case VectorFault::not_finite:
            ereport(ERROR,
                    (errcode(ERRCODE_DATA_EXCEPTION),
                     errmsg("the vector of %s has an element that is NaN or infinite", whose)));
        default:
            ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                            errmsg("the vector of %s is not laid out as pgvector's", whose),
                            errhint("It can be cast to real[] in the query.")));
    }
    pg_unreachable();
}

ArrayType* new_real_array(std::size_t size) {
    Datum* const zeros = static_cast<Datum*>(palloc0(size * sizeof(Datum)));
    return construct_array(zeros, static_cast<int>(size), FLOAT4OID, sizeof(float4), true,
                           TYPALIGN_INT);
}

}  // namespace gputext
