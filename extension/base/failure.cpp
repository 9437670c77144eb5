#include "extension/base/failure.hpp"

namespace gputext {
namespace {

int sqlstate_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::cancelled:
            return ERRCODE_QUERY_CANCELED;
        case ErrorCode::invalid_argument:
            return ERRCODE_INVALID_PARAMETER_VALUE;
        case ErrorCode::out_of_memory:
        case ErrorCode::memory_limit:
            return ERRCODE_OUT_OF_MEMORY;
        case ErrorCode::io_error:
            return ERRCODE_IO_ERROR;
        case ErrorCode::device_error:
        case ErrorCode::device_lost:
            return ERRCODE_SYSTEM_ERROR;
        // Not of class 08: clients would take their own connection for broken.
        case ErrorCode::unavailable:
            return ERRCODE_EXTERNAL_ROUTINE_EXCEPTION;
        default:
            return ERRCODE_INTERNAL_ERROR;
    }
}

bool interrupted(void*) {
    return InterruptPending && (QueryCancelPending || ProcDiePending) &&
           INTERRUPTS_CAN_BE_PROCESSED();
}

}  // namespace

void raise_failure(const Failure& failure) {
    // Usually ends here for what is cancelled, with the words for the reason.
    if (failure.code == ErrorCode::cancelled) CHECK_FOR_INTERRUPTS();
    const char* hint = failure.hint;
    if (hint[0] == '\0' && failure.code == ErrorCode::memory_limit)
        hint = "Raise gputext.host_memory_limit, up to gputext.max_host_memory, or ask for less.";
    ereport(ERROR, (errcode(sqlstate_of(failure.code)), errmsg("%s", failure.message),
                    hint[0] != '\0' ? errhint("%s", hint) : 0));
    pg_unreachable();
}

Stop stop_on_interrupt() {
    return {interrupted, nullptr};
}

}  // namespace gputext
