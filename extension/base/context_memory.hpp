// extension/base/context_memory.hpp - memory of a memory context, for C++'s containers

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/memutils.h"
#include "utils/palloc.h"
}

#include <memory_resource>
#include <new>

namespace gputext {

/// What PostgreSQL counts as a context's memory, and limits by that. Raises no error of
/// PostgreSQL's: containers throw std::bad_alloc. They have to be destroyed before the context's
/// memory goes, as those in an object of make_owned() are.
class ContextMemory final : public std::pmr::memory_resource {
public:
    explicit ContextMemory(MemoryContext context) : context_(context) {}

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        void* const memory =
            alignment > MAXIMUM_ALIGNOF || bytes > MaxAllocHugeSize
                ? nullptr
                : MemoryContextAllocExtended(context_, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
        if (memory == nullptr) throw std::bad_alloc();
        return memory;
    }
    void do_deallocate(void* memory, std::size_t, std::size_t) override { pfree(memory); }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }

    MemoryContext context_;
};

}  // namespace gputext
