#include "extension/queries/reduced_rows.hpp"

#include <cstring>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/queries/executed_rows.hpp"

namespace gputext {
namespace {

/// Takes the reports of processes.
class ReportTaker final : public RowTaker {
public:
    explicit ReportTaker(std::vector<ReducerReport>& reports) : reports_(reports) {}

    bool take(const ExecutedRow& row) override {
        ReducerReport report;
        std::memcpy(&report, VARDATA_ANY(DatumGetPointer(row.values[0])), sizeof report);
        attempt_or_raise([&] { reports_.push_back(report); });
        return report.reduced != 0;
    }

private:
    std::vector<ReducerReport>& reports_;
};

}  // namespace

bool ReducedRows::run(const BundlePlan& plan, const char* sql, const RowReduction& reduction) {
    auto& reports = *make_owned<std::vector<ReducerReport>>(CurrentMemoryContext);
    const int processes = plan.workers() + 1;
    attempt_or_raise([&] {
        for (int process = 0; process < processes; ++process)
            files_.push_back(std::make_unique<PackedBytes>(SIZE_MAX));
    });
    room_.reserve(static_cast<unsigned>(processes));
    int* const files = static_cast<int*>(palloc(sizeof(int) * static_cast<std::size_t>(processes)));
    for (int process = 0; process < processes; ++process) files[process] = files_[process]->lend();
    reduce_rows_of(plan, reduction, {files, static_cast<std::size_t>(processes)});

    ReportTaker taker(reports);
    ExecutedRows rows(taker);
    run_with_workers(plan, sql, "reduced", rows);
    rows.end();
    bool reduced = true;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        reduced = reduced && reports[i].reduced != 0;
        rows_ += reports[i].rows;
    }
    if (!reduced) {
        release();
        return false;
    }
    for (std::size_t i = 0; i < reports.size(); ++i)
        files_[reports[i].process]->take_back(reports[i].bytes);
    return true;
}

void ReducedRows::release() {
    for (const std::unique_ptr<PackedBytes>& file : files_) file->release();
    files_.clear();
    room_.give_back();
}

}  // namespace gputext
