// extension/queries/executed_rows.hpp - the rows of a plan, as the executor gives them
//
// A plan gives its rows one by one, or in the bundles that its parallel workers have made of them
// (bundle_plan.hpp). Who takes them sees rows alone, and of each where a value of it comes from, if
// the plan gives the system columns that tell it (row_versions.hpp).

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
#include "tcop/dest.h"
}

#include <optional>

#include "extension/queries/row_bundle.hpp"
#include "extension/values/row_versions.hpp"

namespace gputext {

struct ExecutedRow {
    Datum* values;  // to be left as they are
    const bool* nulls;
    RowOrigin origin;  // of the column that origins were asked for
};

/// Functions may raise errors.
class RowTaker {
public:
    /// Before the first row, even when there is none. `columns` are those of the plan, with system
    /// columns that were added to it.
    virtual void begin(TupleDesc) {}
    /// False where no more rows are wanted. The row need not outlive the call, nor does what is
    /// allocated during it.
    virtual bool take(const ExecutedRow& row) = 0;

protected:
    ~RowTaker() = default;
};

/// The destination of a plan's rows. Lies on the stack while the plan runs.
class ExecutedRows {
public:
    /// Allocates in the memory that is current. What follows is to be said before the plan runs.
    explicit ExecutedRows(RowTaker& taker);
    /// In begin(), too.
    void set_origins(const RowOrigins& origins) { origins_ = origins; }
    /// The plan gives bundles, of rows with these columns; `value` as in BundledRows.
    void open_bundles(TupleDesc columns, int value);

    DestReceiver* destination() { return &receiver_.functions; }
    /// Gives memory back. Not needed after an error.
    void end();

private:
    /// The executor knows the first member only.
    struct Receiver {
        DestReceiver functions;
        ExecutedRows* rows;
    };

    static ExecutedRows& of(DestReceiver* receiver) {
        return *reinterpret_cast<Receiver*>(receiver)->rows;
    }
    static void begin(DestReceiver* receiver, int, TupleDesc columns);
    static bool receive(TupleTableSlot* slot, DestReceiver* receiver);
    static bool receive_bundle(TupleTableSlot* slot, DestReceiver* receiver);
    bool take(Datum* values, const bool* nulls, bool value_in_row);

    Receiver receiver_{};
    RowTaker& taker_;
    RowOrigins origins_;
    MemoryContext row_context_;  // for what one row needs
    TupleDesc bundled_columns_ = nullptr;
    std::optional<BundleReader> bundle_;
};

}  // namespace gputext
