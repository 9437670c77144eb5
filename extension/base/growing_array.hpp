// extension/base/growing_array.hpp - array that grows without being copied
//
// std::vector copies its elements to a new place whenever it grows, and each page of that place is
// a page fault. The C library moves the pages of a large block instead.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#include "cpp/base/large_pages.hpp"
#include "extension/base/failure.hpp"

namespace gputext {

/// Elements of plain memory. Functions that grow it throw std::bad_alloc.
template <class T>
class GrowingArray {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
    GrowingArray() = default;
    ~GrowingArray() { std::free(data_); }
    GrowingArray(GrowingArray&& other) noexcept { swap(other); }
    GrowingArray& operator=(GrowingArray&& other) noexcept {
        swap(other);
        return *this;
    }

    bool full() const { return size_ == capacity_; }
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    const T* data() const { return data_; }
    T* data() { return data_; }
    const T& operator[](std::size_t i) const { return data_[i]; }

    /// Makes room for so many elements in all.
    void reserve(std::size_t capacity) {
        if (capacity <= capacity_) return;
        capacity = std::max({capacity, 2 * capacity_, kFewest});
        void* const grown = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
        if (grown == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(grown);
        capacity_ = capacity;
    }
    void set(std::size_t i, const T& value) { data_[i] = value; }
    /// Requires room.
    void append(const T& value) { data_[size_++] = value; }
    /// Appends zeros, or drops elements at the end.
    void resize(std::size_t size) {
        reserve(size);
        if (size > size_) std::fill(data_ + size_, data_ + size, T());
        size_ = size;
    }
    /// In place of all elements, so many of any value.
    void allot(std::size_t size) {
        clear();
        reserve(size);
        // Of an array that grows they would keep the C library from moving its pages.
        prefer_large_pages(data_, size);
        size_ = size;
    }
    void clear() { GrowingArray().swap(*this); }
    void swap(GrowingArray& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

private:
    static constexpr std::size_t kFewest = 64;

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

/// Appends, and raises an error where there is no memory. No slower than a store where there is
/// room.
template <class T>
void append_or_raise(GrowingArray<T>& values, const T& value) {
    if (values.full()) attempt_or_raise([&] { values.reserve(values.size() + 1); });
    values.append(value);
}

}  // namespace gputext
