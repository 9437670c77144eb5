// extension/inputs/set_call.hpp - shared code of functions that return a set of rows

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "funcapi.h"
#include "utils/tuplestore.h"
}

#include "extension/inputs/row_form.hpp"
#include "extension/server/time_split.hpp"

namespace gputext {

/// One call: from here on it is shown in gputext_activity, and has a memory context that ends with
/// it.
class SetCall {
public:
    SetCall(FunctionCallInfo fcinfo, const char* operation);

    MemoryContext context() const { return context_; }
    TimeSplit& times() { return times_; }
    void put(Datum* values, bool* nulls) {
        if (const HeapTuple row = form_.form(values, nulls))
            tuplestore_puttuple(result_->setResult, row);
        else
            tuplestore_putvalues(result_->setResult, result_->setDesc, values, nulls);
    }

    /// After the last row: tells where the time went, and gives the memory back.
    void end();

private:
    static MemoryContext new_context(FunctionCallInfo fcinfo);

    const char* operation_;
    ReturnSetInfo* result_;
    MemoryContext before_;
    MemoryContext context_;
    RowForm form_;
    TimeSplit times_;
};

}  // namespace gputext
