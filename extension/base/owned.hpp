// extension/base/owned.hpp - C++ objects owned by a memory context

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/palloc.h"
}

#include <memory>
#include <utility>

#include "extension/base/failure.hpp"

namespace gputext {

/// A new T that is destroyed when the context is reset or deleted, by an abort too. Raises an error
/// when there is no memory. The constructor is called inside attempt().
template <class T, class... Arguments>
T* make_owned(MemoryContext context, Arguments&&... arguments) {
    // Registered before there is anything to destroy, since registering may raise an error.
    auto* callback = static_cast<MemoryContextCallback*>(
        MemoryContextAllocZero(context, sizeof(MemoryContextCallback)));
    callback->func = [](void* object) { delete static_cast<T*>(object); };
    MemoryContextRegisterResetCallback(context, callback);
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            callback->arg = new T(std::forward<Arguments>(arguments)...);
            return {};
        }))
        raise_failure(failure);
    return static_cast<T*>(callback->arg);
}

}  // namespace gputext
