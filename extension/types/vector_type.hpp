// extension/types/vector_type.hpp - recognises the types that are vectors, and reads their values

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/array.h"
}

#include <optional>

#include "cpp/base/vectors.hpp"

namespace gputext {

/// How the values of a type hold a vector.
struct VectorType {
    enum class Form { array, dense, sparse, bits };  // dense and sparse: pgvector's
    Form form;
    ElementType element;
};

/// None for a type that holds no vectors. pgvector's types are known by their names, as base types
/// of variable length, and by the extension that they and their input functions belong to; nothing
/// of pgvector is called.
std::optional<VectorType> vector_type_of(Oid type);

/// The same of bit and bit varying, whose bits are no numbers.
std::optional<VectorType> bit_type_of(Oid type);

/// One value's vector, in the memory that the value was read into.
struct VectorValue {
    std::size_t dimensions;
    std::size_t stored;            // elements: those that are not zero when sparse
    const void* elements;          // aligned
    const std::uint32_t* columns;  // of the elements, when sparse
};

/// What is wrong with a vector, of which a message can say whose it is.
enum class VectorFault {
    none,
    several_dimensions,
    null_element,
    empty,
    not_finite,
    unknown_layout
};

/// Reads a value that is not null; `vector` holds only without a fault.
VectorFault read_vector(const VectorType& type, Datum value, VectorValue& vector);

/// Dense vectors are mostly stored as a header of so many bytes, behind the length of the value,
/// and their elements, which have as many bytes as row_size() says. 0 for other forms, and for
/// elements of more than four bytes.
std::size_t plain_header_size(const VectorType& type);
/// Whether these bytes are such a header, of a vector of so many dimensions.
bool is_plain_header(const VectorType& type, const char* bytes, std::size_t dimensions);
/// Whether elements, which are aligned, are numbers, none of them NaN or infinite.
bool all_finite(ElementType type, const void* elements, std::size_t count);

/// A new value of one of pgvector's types: a row of the matrix, whose elements are of that type.
Datum new_vector_value(const VectorType& type, const Vectors& vectors, std::size_t row);

/// Reads an array of numbers, which has its type with it.
VectorFault read_array(Datum value, VectorType& type, VectorValue& vector);

/// Raises the fault as an error about `whose`: "item 17".
[[noreturn]] void raise_vector_fault(VectorFault fault, const char* whose);

/// An array of type real[] with so many zeros, to be filled for one row after the other.
ArrayType* new_real_array(std::size_t size);

}  // namespace gputext
