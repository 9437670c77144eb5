// cpp/base/large_pages.hpp - memory in large pages, where the system has them
//
// The system provides a page when it is first written, which takes longer than to write it, and
// memory that is read at places all over takes longer to find the pages than to read. Both take far
// less with large pages, which Linux gives to memory that asks for them.

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/base/stop.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {

/// Asks for large pages for these elements, which nobody has written yet.
template <class T>
void prefer_large_pages(T* elements, std::size_t size) {
    constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
    const auto begin = reinterpret_cast<std::uintptr_t>(elements);
    const std::uintptr_t first = (begin + page - 1) & ~(page - 1);
    const std::uintptr_t end = (begin + size * sizeof(T)) & ~(page - 1);
    // It is as good without.
    if (first < end) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

/// stoppable_assign(), into large pages.
template <class T>
bool assign_pages(std::vector<T>& elements, std::size_t size, const T& value, Stop stop) {
    elements = {};
    elements.reserve(size);
    prefer_large_pages(elements.data(), size);
    return stoppable_assign(elements, size, value, stop);
}

/// resize() of an empty vector, into large pages.
template <class T>
void resize_pages(std::vector<T>& elements, std::size_t size) {
    elements.reserve(size);
    prefer_large_pages(elements.data(), size);
    elements.resize(size);
}

/// Elements in large pages that nobody has written yet. Throws std::bad_alloc.
template <class T>
std::unique_ptr<T[]> unwritten_pages(std::size_t size) {
    auto elements = std::make_unique_for_overwrite<T[]>(size);
    prefer_large_pages(elements.get(), size);
    return elements;
}

}  // namespace gputext
