// tests/support/test_size.hpp - how much tests do: what the quick check has time for, all that they can, or little
//
// GPUTEXT_TEST_LONG=1, as scripts/check-all sets it, asks for all, and GPUTEXT_TEST_SMALL=1 for little, under a checker that
// makes programs slow.

#pragma once

#include <cstdlib>

namespace gputext::testing {

/// Sanitizers make everything several times as slow: tests of much input take less of it then. gcc and clang say differently
/// that they are there.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GPUTEXT_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GPUTEXT_ADDRESS_SANITIZER
#endif
#ifdef GPUTEXT_ADDRESS_SANITIZER
inline constexpr bool kSanitized = true;
#undef GPUTEXT_ADDRESS_SANITIZER
#else
inline constexpr bool kSanitized = false;
#endif

inline bool tests_are_long() {
    return std::getenv("GPUTEXT_TEST_LONG") != nullptr;
}
inline bool tests_are_small() {
    return std::getenv("GPUTEXT_TEST_SMALL") != nullptr;
}

/// Whether tests of much input take less of it: under sanitizers, and those that would take many seconds in the quick check, too.
inline const bool kFewer = kSanitized || !tests_are_long();

/// Rounds of a random test.
template <class Number>
Number rounds(Number all) {
    return tests_are_small() ? (all + 9) / 10 : all;
}

/// The same of a test that takes many seconds: `quick` of them find most of what all find.
template <class Number>
Number rounds(Number quick, Number all) {
    return tests_are_long() ? all : rounds(quick);
}

}  // namespace gputext::testing
