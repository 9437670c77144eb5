// cpp/link/type_list.hpp - lists of types

#pragma once

#include <type_traits>
#include <variant>

namespace gputext {

template <class... Types>
struct TypeList {};

namespace type_list {

template <template <class> class Function, class List>
struct Each;
template <template <class> class Function, class... Types>
struct Each<Function, TypeList<Types...>> {
    using type = TypeList<Function<Types>...>;
};

template <class... Lists>
struct Join;
template <class... Types>
struct Join<TypeList<Types...>> {
    using type = TypeList<Types...>;
};
template <class... First, class... Second, class... More>
struct Join<TypeList<First...>, TypeList<Second...>, More...>
    : Join<TypeList<First..., Second...>, More...> {};

template <class Found, class List>
struct Unique;
template <class... Found>
struct Unique<TypeList<Found...>, TypeList<>> {
    using type = TypeList<Found...>;
};
template <class... Found, class Type, class... More>
struct Unique<TypeList<Found...>, TypeList<Type, More...>>
    : std::conditional_t<(std::is_same_v<Found, Type> || ...),
                         Unique<TypeList<Found...>, TypeList<More...>>,
                         Unique<TypeList<Found..., Type>, TypeList<More...>>> {};

template <class List>
struct Variant;
template <class... Types>
struct Variant<TypeList<Types...>> {
    using type = std::variant<Types...>;
};

}  // namespace type_list

/// Function<Type> of each type of the list.
template <template <class> class Function, class List>
using Each = typename type_list::Each<Function, List>::type;

/// The types of all lists.
template <class... Lists>
using Join = typename type_list::Join<Lists...>::type;

/// Each type once, in the order of the list.
template <class List>
using Unique = typename type_list::Unique<TypeList<>, List>::type;

/// A std::variant of the list's types.
template <class List>
using VariantOf = typename type_list::Variant<List>::type;

}  // namespace gputext
