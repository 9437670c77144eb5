// cpp/base/exception_status.hpp - where exceptions become errors that are values

#pragma once

#include <exception>
#include <new>

#include "cpp/base/status.hpp"

namespace gputext {

/// Says what an exception was. Has no memory for its text when it says out_of_memory instead.
inline Status status_of(const std::exception& error) noexcept {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return Status::out_of_memory();
    try {
        return {ErrorCode::internal_error, error.what()};
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
}

/// What work() returns, or the Status of what it threw.
template <class Work>
auto status_or_exception(Work&& work) noexcept -> decltype(work()) {
    try {
        return work();
    } catch (const std::exception& error) {
        return status_of(error);
    }
}

}  // namespace gputext
