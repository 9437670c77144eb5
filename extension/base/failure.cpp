#include "extension/base/failure.hpp"

extern "C" {
#include "access/xact.h"
#include "storage/procsignal.h"
#include "utils/memutils.h"
}

#include <utility>

namespace gputext {

Interruption interruption;

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

/// Serves what is pending. Returns the error that this raises, or null.
ErrorData* serve_interrupts() {
    ErrorData* volatile error = nullptr;
    const MemoryContext before = MemoryContextSwitchTo(TopTransactionContext);
    PG_TRY();
    { CHECK_FOR_INTERRUPTS(); }
    PG_CATCH();
    {
        MemoryContextSwitchTo(TopTransactionContext);
        error = CopyErrorData();
        FlushErrorState();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(before);
    return error;
}

bool interrupted(void*) {
    if (interruption.stop) return true;
    if (!InterruptPending || !INTERRUPTS_CAN_BE_PROCESSED()) return false;
    // The process ends within the server's function: not here, among C++ objects.
    if (QueryCancelPending || ProcDiePending) return interruption.stop = true;
    interruption.error = serve_interrupts();
    return interruption.stop = interruption.error != nullptr;
}

void look_for_barriers() {
    if (ProcSignalBarrierPending) InterruptPending = true;
}

}  // namespace

void keep_barriers_pending() {
    RegisterXactCallback(
        [](XactEvent event, void*) {
            if (event == XACT_EVENT_ABORT) look_for_barriers();
        },
        nullptr);
    RegisterSubXactCallback(
        [](SubXactEvent event, SubTransactionId, SubTransactionId, void*) {
            if (event == SUBXACT_EVENT_ABORT_SUB) look_for_barriers();
        },
        nullptr);
}

void raise_failure(const Failure& failure) {
    if (failure.code == ErrorCode::cancelled) {
        // Usually ends here, with the words for the reason.
        if (interruption.error != nullptr) ReThrowError(std::exchange(interruption.error, nullptr));
        CHECK_FOR_INTERRUPTS();
    }
    const char* hint = failure.hint;
    if (hint[0] == '\0' && failure.code == ErrorCode::memory_limit)
        hint = "Raise gputext.host_memory_limit, up to gputext.max_host_memory, or give fewer rows.";
    ereport(ERROR, (errcode(sqlstate_of(failure.code)), errmsg("%s", failure.message),
                    hint[0] != '\0' ? errhint("%s", hint) : 0));
    pg_unreachable();
}

Stop stop_on_interrupt() {
    return {interrupted, nullptr};
}

}  // namespace gputext
