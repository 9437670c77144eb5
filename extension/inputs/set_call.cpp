#include "extension/inputs/set_call.hpp"

extern "C" {
#include "utils/builtins.h"
#include "utils/memutils.h"
}

#include "extension/server/activity.hpp"

namespace gputext {

/// Makes the call's result, too, in the memory that outlives the call.
MemoryContext SetCall::new_context(FunctionCallInfo fcinfo) {
    InitMaterializedSRF(fcinfo, 0);
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext job", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(context);
    return context;
}

SetCall::SetCall(FunctionCallInfo fcinfo, const char* operation)
    : operation_(operation),
      result_(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo)),
      before_(CurrentMemoryContext),
      context_(new_context(fcinfo)),
      form_(result_->setDesc) {
    begin_activity(operation, context_);
}

void SetCall::end() {
    times_.lap("returning rows");
    times_.report(operation_);
    MemoryContextSwitchTo(before_);
    MemoryContextDelete(context_);
}

}  // namespace gputext
