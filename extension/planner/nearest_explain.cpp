#include "extension/planner/nearest_explain.hpp"

extern "C" {
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
}

namespace gputext {
namespace {

const char* name_of(const DistanceOperator& distance) {
    if (distance.trigrams) return "trigram (<->)";
    switch (distance.metric) {
        case Metric::euclidean:
            return "euclidean (<->)";
        case Metric::cosine:
            return "cosine (<=>)";
        case Metric::inner_product:
            return "negative inner product (<#>)";
        case Metric::manhattan:
            return "manhattan (<+>)";
    }
    pg_unreachable();
}

const char* device_of(const SearchCounts& searches) {
    if (searches.on_device == 0) return searches.on_cpu == 0 ? "none" : "cpu";
    return searches.on_cpu == 0 ? "gpu" : "gpu and cpu";
}

/// The expression of the node's parameters, as text.
char* text_of(Node* expression, CustomScanState* node, List* ancestors,
              const ExplainState* explain) {
    List* const context =
        set_deparse_context_plan(explain->deparse_cxt, node->ss.ps.plan, ancestors);
    return deparse_expression(expression, context, list_length(explain->rtable) > 1, false);
}

/// Prints the plan of the item query, which has a range table of its own.
void print_item_plan(QueryDesc* statement, ExplainState* explain) {
    PlannedStmt* const statement_of_node = explain->pstmt;
    List* const rtable = explain->rtable;
    List* const names = explain->rtable_names;
    List* const context = explain->deparse_cxt;
    Bitmapset* const printed = explain->printed_subplans;
    const bool hide_workers = explain->hide_workers;
    ExplainWorkersState* const workers = explain->workers_state;
    explain->workers_state = nullptr;
    explain->hide_workers = false;
    ExplainOpenGroup("Item Plan", "Item Plan", true, explain);
    if (explain->format == EXPLAIN_FORMAT_TEXT) {
        appendStringInfoSpaces(explain->str, explain->indent * 2);
        appendStringInfoString(explain->str, "Item Plan\n");
        ++explain->indent;
    }
    ExplainPrintPlan(explain, statement);
    if (explain->format == EXPLAIN_FORMAT_TEXT) --explain->indent;
    ExplainCloseGroup("Item Plan", "Item Plan", true, explain);
    explain->pstmt = statement_of_node;
    explain->rtable = rtable;
    explain->rtable_names = names;
    explain->deparse_cxt = context;
    explain->printed_subplans = printed;
    explain->hide_workers = hide_workers;
    explain->workers_state = workers;
}

void print_run(const NearestRun& run, ExplainState* explain) {
    const auto count = [&](const char* label, std::uint64_t value) {
        ExplainPropertyInteger(label, nullptr, static_cast<int64>(value), explain);
    };
    ExplainPropertyText("Device", device_of(run.searches), explain);
    count("Items", run.items);
    if (run.remembered) ExplainPropertyBool("Remembered", true, explain);
    count("Queries", run.queries);
    count("Distances Computed Again", run.searches.rescored);
    count("Queries Searched Again", run.searches.widened);
    count("Ordinary Queries", run.ordinary);
    if (!explain->timing) return;
    ExplainPropertyFloat("Reading Time", "ms", run.reading_ms, 3, explain);
    ExplainPropertyFloat("Searching Time", "ms", run.searching_ms, 3, explain);
}

}  // namespace

void explain_nearest(const NearestPlan& plan, CustomScanState* node, List* ancestors,
                     const NearestRun* run, QueryDesc* items, ExplainState* explain) {
    ExplainPropertyText("Distance", name_of(plan.distance), explain);
    if (plan.keys != NIL) ExplainPropertyInteger("Keys", nullptr, list_length(plan.keys), explain);
    if (plan.limit != nullptr)
        ExplainPropertyText("Limit", text_of(plan.limit, node, ancestors, explain), explain);
    if (plan.offset != nullptr)
        ExplainPropertyText("Offset", text_of(plan.offset, node, ancestors, explain), explain);
    if (run != nullptr) print_run(*run, explain);
    print_item_plan(items, explain);
}

}  // namespace gputext
