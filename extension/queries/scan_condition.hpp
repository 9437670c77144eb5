// extension/queries/scan_condition.hpp - asks rows the condition of a scan

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "executor/executor.h"
#include "utils/relcache.h"
}

#include "extension/queries/rows_by_page.hpp"

namespace gputext {

/// WholeScan::conditions, asked as the executor does it. Functions raise errors, after which there
/// is nothing to close.
class ScanCondition final : public RowCondition {
public:
    /// Allocates in the memory that is current.
    void open(Relation table, List* conditions);
    bool holds(HeapTuple row) override;
    void close();

private:
    EState* estate_ = nullptr;
    ExprState* conditions_ = nullptr;
    TupleTableSlot* row_ = nullptr;
};

}  // namespace gputext
