// cpp/base/status.hpp - errors as values: Status and Result

#pragma once

#include <optional>
#include <string>
#include <utility>

namespace gputext {

enum class ErrorCode {
    ok,
    cancelled,         // the caller asked to stop; there is no answer
    invalid_argument,  // a parameter or an input text is outside what the header allows
    out_of_memory,     // the host's memory did not suffice
    memory_limit,      // more memory would be needed than the caller allows; see memory_budget.hpp
    io_error,          // a file or memfd could not be grown, read or mapped
    device_error,      // a GPU or its driver failed; the CPU may still answer
    device_lost,       // the same, and no job can use it before this process has been replaced
    unavailable,       // gputextd is not there, went away or answers nonsense; the CPU may answer
    internal_error     // a defect of ours
};

/// A code and one sentence for a person: lower case, no full stop, as PostgreSQL's messages are.
/// Where the user can act on it, `hint` is a whole sentence.
class [[nodiscard]] Status {
public:
    Status() = default;
    Status(ErrorCode code, std::string message, std::string hint = {})
        : code_(code), message_(std::move(message)), hint_(std::move(hint)) {}

    static Status cancelled() { return {ErrorCode::cancelled, "cancelled"}; }
    static Status out_of_memory() { return {ErrorCode::out_of_memory, "out of memory"}; }

    bool ok() const noexcept { return code_ == ErrorCode::ok; }
    ErrorCode code() const noexcept { return code_; }
    const std::string& message() const noexcept { return message_; }
    const std::string& hint() const noexcept { return hint_; }

private:
    ErrorCode code_ = ErrorCode::ok;
    std::string message_;
    std::string hint_;
};

/// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}
    Result(Status status) : status_(std::move(status)) {}

    bool ok() const noexcept { return value_.has_value(); }
    const Status& status() const noexcept { return status_; }
    const T& operator*() const noexcept { return *value_; }
    T& operator*() noexcept { return *value_; }
    const T* operator->() const noexcept { return &*value_; }

private:
    std::optional<T> value_;
    Status status_;
};

}  // namespace gputext

/// Returns from the calling function with the Status of `expression` unless it is ok.
#define GPUTEXT_TRY(expression)                                                               \
    do {                                                                                      \
        if (::gputext::Status try_status = (expression); !try_status.ok()) return try_status; \
    } while (false)
