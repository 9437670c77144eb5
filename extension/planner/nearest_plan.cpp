#include "extension/planner/nearest_plan.hpp"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/pg_list.h"
}

namespace gputext {
namespace {

/// Lists have no null members.
Node* or_nothing(Node* node) {
    return node != nullptr ? node : reinterpret_cast<Node*>(makeInteger(0));
}

Node* or_null(void* node) {
    return IsA(node, Integer) ? nullptr : static_cast<Node*>(node);
}

/// Numbers in the order in which they are read again.
class Numbers {
public:
    explicit Numbers(List* list = NIL) : list_(list) {}

    void add(std::int64_t number) { list_ = lappend_int(list_, static_cast<int>(number)); }
    int next() { return list_nth_int(list_, place_++); }
    List* list() const { return list_; }

private:
    List* list_;
    int place_ = 0;
};

}  // namespace

List* write_nearest_plan(const NearestPlan& plan) {
    Numbers numbers;
    numbers.add(plan.distance.function);
    numbers.add(plan.distance.trigrams);
    numbers.add(static_cast<int>(plan.distance.metric));
    numbers.add(static_cast<int>(plan.distance.type.form));
    numbers.add(static_cast<int>(plan.distance.type.element));
    numbers.add(plan.distance.exact);
    numbers.add(plan.item_is_left);
    numbers.add(plan.columns);
    numbers.add(plan.outer_join);
    numbers.add(plan.one_query);
    numbers.add(plan.parallel_safe);
    numbers.add(plan.table.relation);
    numbers.add(plan.table.with_children);
    numbers.add(plan.table.attribute);
    numbers.add(plan.table.columns);
    List* written = list_make3(plan.items, plan.shown, plan.query);
    written = lappend(written, or_nothing(plan.limit));
    written = lappend(written, or_nothing(plan.offset));
    written = lappend(written, or_nothing(reinterpret_cast<Node*>(plan.bundles)));
    // An empty list is a null pointer.
    written = lappend(written, lcons_int(0, plan.ordinary));
    written = lappend(written, numbers.list());
    return list_concat(written, plan.keys);
}

NearestPlan read_nearest_plan(List* written) {
    NearestPlan plan{};
    plan.items = static_cast<PlannedStmt*>(list_nth(written, 0));
    plan.shown = static_cast<List*>(list_nth(written, 1));
    plan.query = static_cast<Expr*>(list_nth(written, 2));
    plan.limit = or_null(list_nth(written, 3));
    plan.offset = or_null(list_nth(written, 4));
    plan.bundles = reinterpret_cast<PlannedStmt*>(or_null(list_nth(written, 5)));
    plan.ordinary = list_copy_tail(static_cast<List*>(list_nth(written, 6)), 1);
    plan.keys = list_copy_tail(written, 8);
    Numbers numbers(static_cast<List*>(list_nth(written, 7)));
    plan.distance.function = static_cast<Oid>(numbers.next());
    plan.distance.trigrams = numbers.next() != 0;
    plan.distance.metric = static_cast<Metric>(numbers.next());
    plan.distance.type.form = static_cast<VectorType::Form>(numbers.next());
    plan.distance.type.element = static_cast<ElementType>(numbers.next());
    plan.distance.exact = numbers.next() != 0;
    plan.item_is_left = numbers.next() != 0;
    plan.columns = numbers.next();
    plan.outer_join = numbers.next() != 0;
    plan.one_query = numbers.next() != 0;
    plan.parallel_safe = numbers.next() != 0;
    plan.table.relation = static_cast<Oid>(numbers.next());
    plan.table.with_children = numbers.next() != 0;
    plan.table.attribute = static_cast<AttrNumber>(numbers.next());
    plan.table.columns = numbers.next();
    return plan;
}

}  // namespace gputext
