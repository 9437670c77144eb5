// extension/base/failure.hpp - border between C++ exceptions and PostgreSQL's long jumps
//
// ereport(ERROR) jumps over C++ frames without running their destructors, and an exception must
// never reach PostgreSQL. So a function here is one of two kinds. Those that call PostgreSQL hold
// only what needs no destructor. Those that call cpp/ do so inside attempt(), call nothing of
// PostgreSQL, and what they learn of an error is plain memory that the first kind then raises.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/palloc.h"
#include "utils/resowner.h"
}

#include <cstring>
#include <exception>
#include <new>
#include <type_traits>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

struct Failure {
    ErrorCode code = ErrorCode::ok;
    char message[500] = "";
    char hint[300] = "";
};

/// Cuts off what does not fit.
template <std::size_t Size>
void copy_text(char (&to)[Size], const char* from) noexcept {
    std::strncpy(to, from, Size - 1);
    to[Size - 1] = '\0';
}

inline void store_failure(Failure& failure, const Status& status) noexcept {
    failure.code = status.code();
    copy_text(failure.message, status.message().c_str());
    copy_text(failure.hint, status.hint().c_str());
}

/// In a server with assertions, whatever of PostgreSQL allocates memory or looks something up fails
/// while an object of this class lives.
class WithoutPostgres {
#ifdef USE_ASSERT_CHECKING
public:
    WithoutPostgres() {
        CurrentMemoryContext = nullptr;
        CurrentResourceOwner = nullptr;
    }
    ~WithoutPostgres() {
        CurrentMemoryContext = context_;
        CurrentResourceOwner = owner_;
    }

private:
    MemoryContext context_ = CurrentMemoryContext;
    ResourceOwner owner_ = CurrentResourceOwner;
#endif
};

/// What stop_on_interrupt() has answered in the current attempt().
struct Interruption {
    bool stop = false;
    ErrorData* error = nullptr;  // to be raised; null when the server still has it pending
};
extern Interruption interruption;

/// Calls `work`, which returns a Status and may throw; true when that is ok. What it has computed
/// is of no use when it was told to stop, so that it need not say so itself.
template <class Work>
bool attempt(Failure& failure, Work&& work) noexcept {
    [[maybe_unused]] const WithoutPostgres border;
    interruption = {};
    try {
        Status status = work();
        if (interruption.stop) status = Status::cancelled();
        if (status.ok()) return true;
        store_failure(failure, status);
    } catch (const std::bad_alloc&) {
        failure.code = ErrorCode::out_of_memory;
        copy_text(failure.message, "out of memory");
    } catch (const std::exception& error) {
        failure.code = ErrorCode::internal_error;
        copy_text(failure.message, error.what());
    }
    return false;
}

/// Raises the failure as an ERROR with its SQLSTATE; a cancelled one as what cancelled it.
[[noreturn]] void raise_failure(const Failure& failure);

/// Calls `work`, which returns a Status or nothing and may throw, as attempt() does, and raises its
/// failure. It must not be called where an object with a destructor lives.
template <class Work>
void attempt_or_raise(const Work& work) {
    static_assert(std::is_trivially_destructible_v<Work>, "an error jumps over its destructor");
    Failure failure;
    const bool ok = attempt(failure, [&work]() -> Status {
        if constexpr (std::is_void_v<decltype(work())>) {
            work();
            return {};
        } else {
            return work();
        }
    });
    if (!ok) raise_failure(failure);
}

/// For computations on the session's own thread, inside attempt(). Does what CHECK_FOR_INTERRUPTS()
/// does, such as to absorb the barriers that other sessions wait for, but raises nothing: it says
/// stop where that would, attempt() fails with ErrorCode::cancelled, and raise_failure raises it.
/// No other thread may call it.
Stop stop_on_interrupt();

/// To be called once, when the library is loaded. An error that is raised while a barrier is
/// pending, too, has the server forget to look for the barrier: the session looks when its
/// transaction or subtransaction is rolled back.
void keep_barriers_pending();

}  // namespace gputext
