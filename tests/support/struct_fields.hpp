// tests/support/struct_fields.hpp - the fields of any struct, one by one
//
// A struct is taken apart by structured bindings, as many as it can be initialised with, so that a
// field which is added to it is among them without being named anywhere.

#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace gputext::testing {

struct AnyField {
    template <class T>
    operator T() const;
};

template <class T, std::size_t... Indices>
constexpr bool takes(std::index_sequence<Indices...>) {
    return requires {
        T{(static_cast<void>(Indices), AnyField())...};
    };
}

/// How many fields an aggregate has; a base counts as one.
template <class T, std::size_t Count = 0>
constexpr std::size_t field_count() {
    if constexpr (takes<T>(std::make_index_sequence<Count + 1>()))
        return field_count<T, Count + 1>();
    else
        return Count;
}

/// References to the fields of a struct without bases.
template <class T>
auto fields_of(T& object) {
    constexpr std::size_t count = field_count<std::remove_const_t<T>>();
    static_assert(count <= 12, "a struct of so many fields needs a line more here");
    if constexpr (count == 0) {
        return std::tie();
    } else if constexpr (count == 1) {
        auto& [a] = object;
        return std::tie(a);
    } else if constexpr (count == 2) {
        auto& [a, b] = object;
        return std::tie(a, b);
    } else if constexpr (count == 3) {
        auto& [a, b, c] = object;
        return std::tie(a, b, c);
    } else if constexpr (count == 4) {
        auto& [a, b, c, d] = object;
        return std::tie(a, b, c, d);
    } else if constexpr (count == 5) {
        auto& [a, b, c, d, e] = object;
        return std::tie(a, b, c, d, e);
    } else if constexpr (count == 6) {
        auto& [a, b, c, d, e, f] = object;
        return std::tie(a, b, c, d, e, f);
    } else if constexpr (count == 7) {
        auto& [a, b, c, d, e, f, g] = object;
        return std::tie(a, b, c, d, e, f, g);
    } else if constexpr (count == 8) {
        auto& [a, b, c, d, e, f, g, h] = object;
        return std::tie(a, b, c, d, e, f, g, h);
    } else if constexpr (count == 9) {
        auto& [a, b, c, d, e, f, g, h, i] = object;
        return std::tie(a, b, c, d, e, f, g, h, i);
    } else if constexpr (count == 10) {
        auto& [a, b, c, d, e, f, g, h, i, j] = object;
        return std::tie(a, b, c, d, e, f, g, h, i, j);
    } else if constexpr (count == 11) {
        auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
        return std::tie(a, b, c, d, e, f, g, h, i, j, k);
    } else {
        auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
        return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
    }
}

template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};
template <class T, std::size_t Size>
struct IsList<std::array<T, Size>> : std::true_type {};

/// For a struct with a base, which is not taken apart by itself: of(object) names its parts.
template <class T>
struct Parts {};

/// Calls visit(value) for each number, enum and text within a value, also within structs, vectors
/// and arrays. A visitor with a function resize() is shown each vector before.
template <class T, class Visit>
void visit_values(T& value, Visit&& visit) {
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_arithmetic_v<Plain> || std::is_enum_v<Plain> ||
                  std::is_same_v<Plain, std::string>) {
        visit(value);
    } else if constexpr (IsList<Plain>::value) {
        if constexpr (requires { visit.resize(value); }) visit.resize(value);
        for (auto& element : value) visit_values(element, visit);
    } else {
        const auto visit_all = [&](auto&... parts) { (visit_values(parts, visit), ...); };
        if constexpr (requires { Parts<Plain>::of(value); })
            std::apply(visit_all, Parts<Plain>::of(value));
        else
            std::apply(visit_all, fields_of(value));
    }
}

}  // namespace gputext::testing
