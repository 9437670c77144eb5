#include "cpp/records/record_pairs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/base/vocabulary.hpp"
#include "cpp/records/detail/pair_bounds.hpp"
#include "cpp/records/detail/search_cuts.hpp"

namespace gputext {
namespace {

/// Sums of weights in another order differ by less.
constexpr double kRounding = 1e-9;
constexpr int kNoField = -1;

/// How a search comes to pairs: records whose numbers are equal, or whose values are similar. It
/// comes to all pairs whose weight in its field is above the cut.
struct Lead {
    RecordKey numbers;
    std::uint32_t count = 0;  // numbers are below
    int field = kNoField;
    double cut = 0;
};

/// Records by their number in a lead; those without one are left out.
class LeadOrder {
public:
    /// O(rows). Error: cancelled.
    Status set(const Lead& lead, const Records& records, Stop stop) {
        begins_.resize(lead.count + 1);
        for (const std::uint32_t number : lead.numbers)
            if (number != kNullValue) ++begins_[number + 1];
        std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
        rows_.resize(begins_.back());
        middles_.assign(begins_.begin(), begins_.end() - 1);
        std::vector<std::uint32_t> next = middles_;
        for (std::uint32_t row = 0; row < lead.numbers.size(); ++row) {
            if (row % 65536 == 0 && stop()) return Status::cancelled();
            const std::uint32_t number = lead.numbers[row];
            if (number == kNullValue) continue;
            rows_[next[number]++] = row;
            if (records.two_tables && row < records.split) middles_[number] = next[number];
        }
        places_.resize(rows_.size());
        std::iota(places_.begin(), places_.end(), 0);
        if (!records.two_tables) middles_.assign(begins_.begin() + 1, begins_.end());
        return {};
    }

    std::uint32_t count() const { return static_cast<std::uint32_t>(middles_.size()); }
    std::span<const std::uint32_t> rows() const { return rows_; }
    /// Places of a number's rows in rows(): of the first table, or the only one.
    std::span<const std::uint32_t> first(std::uint32_t number) const {
        return between(begins_[number], middles_[number]);
    }
    /// Those of the second table.
    std::span<const std::uint32_t> second(std::uint32_t number) const {
        return between(middles_[number], begins_[number + 1]);
    }

private:
    std::span<const std::uint32_t> between(std::uint32_t begin, std::uint32_t end) const {
        return std::span(places_).subspan(begin, end - begin);
    }

    std::vector<std::uint32_t> begins_, middles_, rows_, places_;
};

/// Pairs of places to be compared: of one of the left and one of the right ones; or, where these are
/// the same, of two of them.
struct Block {
    std::span<const std::uint32_t> left, right;
    bool same = false;
    /// The prior's weight and those of the fields that have led here.
    double known = 0;
    std::uint32_t led = 0;  // a bit for each of these fields
    /// The places of a number in a lead, of a table, of which the sides are a part; none for blocks
    /// within others.
    std::span<const std::uint32_t> left_group = {}, right_group = {};

    std::uint64_t pairs() const {
        const std::uint64_t size = left.size();
        return same ? size * (size - 1) / 2 * (size > 0) : size * right.size();
    }
};

/// The places of a block's side by their values in a field, without nulls.
struct PlacesByValue {
    std::span<const std::uint32_t> places;
    std::vector<std::uint32_t> values;  // ascending
    std::vector<std::uint32_t> begins;  // of a value's places, and the end
    std::vector<std::uint32_t> kept;    // the places, where nobody else has them in order

    std::span<const std::uint32_t> of(std::size_t value) const {
        return places.subspan(begins[value], begins[value + 1] - begins[value]);
    }
};

class Search {
public:
    Search(const LinkageModel& model, const Records& records,
           const PairSearchParameters& parameters, Execution& execution, const PairFound& found)
        : model_(model),
          records_(records),
          parameters_(parameters),
          execution_(execution),
          found_(found),
          workers_(execution.threads()) {}

    Status run(PairSearchReport& report);

private:
    /// What one thread needs.
    struct Worker {
        std::vector<ValueLevels::Comparer> comparers;
        std::vector<PairBounds::Query> queries;
        std::vector<double> rest;  // what the queries after one may add
        std::vector<Lead> before;  // leads whose pairs are found elsewhere
        std::uint64_t looked_at = 0, compared = 0;
    };

    Status prepare();
    void choose_leads();
    Status follow(std::size_t lead);
    Status follow_equal(const LeadOrder& order, std::size_t lead);
    Status follow_similar(const LeadOrder& order, std::size_t lead);
    Status gather(const LeadOrder& order);
    void add_task(const Block& block, std::vector<Block>& tasks) const;
    Status run_tasks(std::span<const Block> tasks, std::size_t lead, Execution& execution);
    Status search(const Block& block, unsigned number);
    Status search_by(std::size_t field, const Block& block, const PlacesByValue& left,
                     const PlacesByValue& right, double cut, unsigned number);
    Status sort_by_value(std::span<std::uint32_t> places, std::size_t field) const;
    Status by_value(std::span<const std::uint32_t> places, std::span<const std::uint32_t> group,
                    std::size_t field, PlacesByValue& found) const;
    FieldEvents events_in(const Block& block, std::size_t field, const PlacesByValue& left,
                          const PlacesByValue& right) const;
    void set_query(std::size_t place, Worker& worker) const;
    Status look_at(const Block& block, unsigned number);
    Status compare(std::uint32_t left, std::uint32_t right, unsigned number);
    bool found_before(std::uint32_t a, std::uint32_t b, const std::int8_t* levels,
                      std::span<const Lead> before) const;
    double weight_of(std::size_t field, std::uint32_t a, std::uint32_t b, int level) const {
        return a == b && a != kNullValue ? weights_[field].of_equal(a, level)
                                         : weights_[field].of(level);
    }
    double weight_of_equal(std::size_t field, std::uint32_t value) const {
        return weights_[field].of_equal(value, levels_[field].level_of_equal(value));
    }
    /// Whether values that differ have a weight above the cut, or some may.
    bool leads_to_similar(std::size_t field, double cut) const;

    const LinkageModel& model_;
    const Records& records_;
    const PairSearchParameters& parameters_;
    Execution& execution_;
    const PairFound& found_;

    std::vector<ValueLevels> levels_;
    std::vector<FieldWeights> weights_;
    std::vector<PairBounds> bounds_;
    std::vector<Lead> leads_;
    std::vector<std::uint32_t> all_;  // the number of all records, where the lead is any of them
    std::vector<std::uint32_t> field_order_;  // in which bounds are looked at
    std::vector<std::uint32_t> place_in_order_;  // of each field
    std::vector<std::vector<Probe>> probes_;     // [in that order][place]
    std::span<const std::uint32_t> rows_;        // of the places
    /// [in that order]: the places of each number and table, by their values in the field
    std::vector<std::vector<std::uint32_t>> sorted_;
    double prior_ = 0, least_ = 0;
    bool looks_at_all_ = false;
    std::vector<Worker> workers_;
};

Status Search::prepare() {
    const std::size_t fields = model_.fields.size();
    prior_ = model_.prior_weight();
    least_ = parameters_.min_weight - kRounding * (1 + std::abs(parameters_.min_weight));
    levels_.reserve(fields);
    weights_.reserve(fields);
    for (std::size_t field = 0; field < fields; ++field) {
        Result<ValueLevels> levels = ValueLevels::of(
            model_.fields[field].comparison, records_.fields[field], execution_.stop());
        if (!levels.ok()) return levels.status();
        levels_.push_back(*std::move(levels));
        weights_.emplace_back(model_.fields[field], records_.fields[field]);
    }
    bounds_.reserve(fields);
    for (std::size_t field = 0; field < fields; ++field)
        GPUTEXT_TRY(bounds_.emplace_back(levels_[field], weights_[field]).set(execution_.stop()));
    field_order_.resize(fields);
    std::iota(field_order_.begin(), field_order_.end(), 0);
    // Those whose bound is exact or costs nothing come first, and of these the rare ones.
    std::ranges::stable_sort(field_order_, {}, [&](std::uint32_t field) {
        const bool is_text =
            records_.fields[field].kind() == FieldKind::text && levels_[field].has_similar_values();
        return std::pair(is_text, model_.fields[field].levels.back().u);
    });
    place_in_order_.resize(fields);
    for (std::uint32_t i = 0; i < fields; ++i) place_in_order_[field_order_[i]] = i;
    probes_.resize(fields);
    sorted_.resize(fields);
    for (Worker& worker : workers_) {
        for (const ValueLevels& levels : levels_) worker.comparers.emplace_back(levels);
        worker.queries.resize(fields);
        worker.rest.resize(fields + 1);
    }
    return execution_.checkpoint(0);
}

void Search::choose_leads() {
    for (const RecordKey& key : parameters_.keys) {
        std::uint32_t count = 0;
        for (const std::uint32_t number : key)
            if (number != kNullValue) count = std::max(count, number + 1);
        leads_.push_back({key, count, kNoField, 0});
    }
    if (!leads_.empty()) return;
    std::vector<FieldEvents> events;
    for (std::size_t field = 0; field < levels_.size(); ++field)
        events.push_back(
            events_of(levels_[field], model_.fields[field], weights_[field], records_));
    const std::optional<std::vector<double>> cuts =
        choose_cuts(events, least_ - prior_ - kRounding, static_cast<double>(records_.pairs()));
    if (!cuts) {
        looks_at_all_ = true;
        all_.assign(records_.rows, 0);
        leads_.push_back({all_, 1, kNoField, 0});
        return;
    }
    for (std::size_t field = 0; field < levels_.size(); ++field)
        leads_.push_back({records_.fields[field].of_rows(), records_.fields[field].count(),
                          static_cast<int>(field), (*cuts)[field]});
}

Status Search::run(PairSearchReport& report) {
    GPUTEXT_TRY(prepare());
    choose_leads();
    for (std::size_t lead = 0; lead < leads_.size(); ++lead) GPUTEXT_TRY(follow(lead));
    for (const Worker& worker : workers_) {
        report.looked_at += worker.looked_at;
        report.compared += worker.compared;
    }
    report.looked_at_all = looks_at_all_;
    return {};
}

bool Search::leads_to_similar(std::size_t field, double cut) const {
    for (int level = 1; level <= levels_[field].top_level(); ++level)
        if (levels_[field].comparison().condition(level).kind != ConditionKind::exact &&
            weights_[field].of(level) > cut)
            return true;
    return false;
}

Status Search::follow(std::size_t number) {
    const Lead& lead = leads_[number];
    bool equal = lead.field == kNoField, similar = false;
    if (lead.field != kNoField) {
        const auto field = static_cast<std::size_t>(lead.field);
        for (std::uint32_t value = 0; value < lead.count && !equal; ++value)
            equal = weight_of_equal(field, value) > lead.cut;
        similar = leads_to_similar(field, lead.cut);
    }
    if (!equal && !similar) return {};
    LeadOrder order;
    GPUTEXT_TRY(order.set(lead, records_, execution_.stop()));
    GPUTEXT_TRY(gather(order));
    if (equal) GPUTEXT_TRY(follow_equal(order, number));
    if (similar) GPUTEXT_TRY(follow_similar(order, number));
    return {};
}

/// What bounds see of the records, in the lead's order.
Status Search::gather(const LeadOrder& order) {
    constexpr std::size_t kRowsOfStep = 1 << 14;
    const std::span<const std::uint32_t> rows = order.rows();
    rows_ = rows;
    for (std::vector<Probe>& probes : probes_) probes.resize(rows.size());
    const std::size_t steps = (rows.size() + kRowsOfStep - 1) / kRowsOfStep;
    execution_.begin_phase("sorting records", steps);
    GPUTEXT_TRY(execution_.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        const std::size_t end = std::min(rows.size(), (step + 1) * kRowsOfStep);
        for (std::size_t i = 0; i < probes_.size(); ++i) {
            const std::size_t field = field_order_[i];
            const std::span<const std::uint32_t> values = records_.fields[field].of_rows();
            for (std::size_t place = step * kRowsOfStep; place < end; ++place)
                probes_[i][place] = bounds_[field].probe(values[rows[place]]);
        }
        return {};
    }));
    // Many blocks have a side in common, which is sorted once.
    for (std::vector<std::uint32_t>& sorted : sorted_) {
        sorted.resize(rows.size());
        std::iota(sorted.begin(), sorted.end(), 0);
    }
    constexpr std::size_t kNumbersOfStep = 1 << 10;
    const std::size_t number_steps = (order.count() + kNumbersOfStep - 1) / kNumbersOfStep;
    const auto sort_step = [&](std::size_t step, unsigned) -> Status {
        const std::size_t end = std::min<std::size_t>(order.count(), (step + 1) * kNumbersOfStep);
        for (std::size_t number = step * kNumbersOfStep; number < end; ++number)
            for (const std::span<const std::uint32_t> side :
                 {order.first(static_cast<std::uint32_t>(number)),
                  order.second(static_cast<std::uint32_t>(number))}) {
                if (side.size() < 2) continue;
                if (execution_.stop_requested()) return Status::cancelled();
                for (std::size_t i = 0; i < sorted_.size(); ++i)
                    GPUTEXT_TRY(
                        sort_by_value(std::span(sorted_[i]).subspan(side.front(), side.size()),
                                      field_order_[i]));
            }
        return {};
    };
    execution_.begin_phase("sorting records", number_steps);
    return execution_.parallel_for(number_steps, sort_step);
}

/// By place where values are equal, nulls last.
Status Search::sort_by_value(std::span<std::uint32_t> places, std::size_t field) const {
    const std::vector<Probe>& probes = probes_[place_in_order_[field]];
    const auto less = [&](std::uint32_t a, std::uint32_t b) {
        return probes[a].value != probes[b].value ? probes[a].value < probes[b].value : a < b;
    };
    if (!stoppable_sort(places.begin(), places.end(), less, execution_.stop()))
        return Status::cancelled();
    return {};
}

/// A block of very many pairs becomes several.
void Search::add_task(const Block& block, std::vector<Block>& tasks) const {
    if (block.pairs() == 0) return;
    const std::size_t right = block.same ? block.left.size() : block.right.size();
    const std::size_t step = std::max<std::size_t>(1, parameters_.task_pairs / right);
    if (block.left.size() <= step) {
        tasks.push_back(block);
        return;
    }
    for (std::size_t first = 0; first < block.left.size(); first += step) {
        Block part = block;
        part.left = block.left.subspan(first, std::min(step, block.left.size() - first));
        if (block.same) {
            tasks.push_back(part);
            part.same = false;
            part.right = block.left.subspan(first + part.left.size());
            part.right_group = block.left_group;
        }
        if (part.pairs() > 0) tasks.push_back(part);
    }
}

Status Search::follow_equal(const LeadOrder& order, std::size_t number) {
    const Lead& lead = leads_[number];
    std::vector<Block> tasks;
    for (std::uint32_t value = 0; value < lead.count; ++value) {
        Block block{order.first(value), order.second(value), !records_.two_tables, prior_, 0,
                    order.first(value), order.second(value)};
        if (lead.field != kNoField) {
            const auto field = static_cast<std::size_t>(lead.field);
            const double weight = weight_of_equal(field, value);
            if (!(weight > lead.cut)) continue;
            block.known += weight;
            block.led = std::uint32_t{1} << field;
        }
        add_task(block, tasks);
    }
    execution_.begin_phase("comparing records", tasks.size());
    return run_tasks(tasks, number, execution_);
}

Status Search::follow_similar(const LeadOrder& order, std::size_t number) {
    const Lead& lead = leads_[number];
    const auto field = static_cast<std::size_t>(lead.field);
    int least = levels_[field].top_level();
    for (int level = least - 1; level > 0; --level)
        if (weights_[field].of(level) > lead.cut) least = level;
    return levels_[field].each_block(
        least, execution_, [&](std::uint32_t first, const SimilarValues& similar) -> Status {
            std::vector<Block> tasks;
            for (std::size_t i = 0; i + 1 < similar.begins.size(); ++i) {
                const auto value = first + static_cast<std::uint32_t>(i);
                for (std::uint64_t n = similar.begins[i]; n < similar.begins[i + 1]; ++n) {
                    const std::uint32_t other = similar.values[n];
                    if (!records_.two_tables && other < value) continue;
                    const double weight = weights_[field].of(similar.levels[n]);
                    if (!(weight > lead.cut)) continue;
                    const std::span<const std::uint32_t> right =
                        records_.two_tables ? order.second(other) : order.first(other);
                    add_task({order.first(value), right, false, prior_ + weight,
                              std::uint32_t{1} << field, order.first(value), right},
                             tasks);
                }
            }
            Execution part(execution_.threads(), execution_);
            return run_tasks(tasks, number, part);
        });
}

Status Search::run_tasks(std::span<const Block> tasks, std::size_t lead, Execution& execution) {
    // Many values are of a record or two: a step is some tasks.
    constexpr std::size_t kTasksOfStep = 64;
    const std::size_t steps = (tasks.size() + kTasksOfStep - 1) / kTasksOfStep;
    return execution.parallel_for(steps, [&](std::size_t step, unsigned number) -> Status {
        workers_[number].before.assign(leads_.begin(),
                                       leads_.begin() + static_cast<std::ptrdiff_t>(lead));
        const std::size_t last = std::min(tasks.size(), (step + 1) * kTasksOfStep);
        for (std::size_t task = step * kTasksOfStep; task < last; ++task)
            GPUTEXT_TRY(search(tasks[task], number));
        return {};
    });
}

// ---- A block of many pairs: other fields lead within it ----

Status Search::by_value(std::span<const std::uint32_t> places,
                        std::span<const std::uint32_t> group, std::size_t field,
                        PlacesByValue& found) const {
    // A smaller part is sorted sooner than it is found among all.
    constexpr std::size_t kPart = 16;
    const std::size_t i = place_in_order_[field];
    const std::vector<Probe>& probes = probes_[i];
    const std::span<const std::uint32_t> sorted =
        group.empty() ? group : std::span(sorted_[i]).subspan(group.front(), group.size());
    if (!places.empty() && places.size() == sorted.size()) {
        found.places = sorted;
    } else if (!places.empty() && places.size() > sorted.size() / kPart && !sorted.empty()) {
        std::ranges::copy_if(sorted, std::back_inserter(found.kept), [&](std::uint32_t one) {
            return one >= places.front() && one <= places.back();
        });
        found.places = found.kept;
    } else {
        found.kept.assign(places.begin(), places.end());
        GPUTEXT_TRY(sort_by_value(found.kept, field));
        found.places = found.kept;
    }
    std::uint32_t place = 0;
    for (; place < found.places.size(); ++place) {
        const std::uint32_t value = probes[found.places[place]].value;
        if (value == kNullValue) break;
        if (place > 0 && value == found.values.back()) continue;
        found.values.push_back(value);
        found.begins.push_back(place);
    }
    found.begins.push_back(place);
    return {};
}

namespace {

/// Calls both(i, j) for the places of each value that both have.
template <class Both>
Status each_common(const PlacesByValue& left, const PlacesByValue& right, const Both& both) {
    for (std::size_t i = 0, j = 0; i < left.values.size() && j < right.values.size();) {
        if (left.values[i] == right.values[j]) {
            GPUTEXT_TRY(both(i, j));
            ++i, ++j;
        } else if (left.values[i] < right.values[j]) {
            ++i;
        } else {
            ++j;
        }
    }
    return {};
}

}  // namespace

FieldEvents Search::events_in(const Block& block, std::size_t field, const PlacesByValue& left,
                              const PlacesByValue& right) const {
    /// Of finding the level of two values, in pairs of records looked at.
    constexpr double kCostOfValues = 0.5;
    EventTiers tiers;
    double pairs = 0;  // of the one weight that there is without term frequencies
    const bool one_weight =
        !weights_[field].term_frequencies() && records_.fields[field].kind() != FieldKind::set;
    (void)each_common(left, right, [&](std::size_t i, std::size_t j) -> Status {
        const double count = static_cast<double>(left.of(i).size());
        const double both = block.same ? count * (count - 1) / 2
                                       : count * static_cast<double>(right.of(j).size());
        if (one_weight)
            pairs += both;
        else
            tiers.add(weight_of_equal(field, left.values[i]), both);
        return {};
    });
    if (one_weight) tiers.add(weights_[field].of(levels_[field].top_level()), pairs);
    FieldEvents events = tiers.events();
    events.least = std::max(0.0, weights_[field].of(0));
    add_similar_events(levels_[field], model_.fields[field], weights_[field],
                       static_cast<double>(block.pairs()), events);
    events.similar_cost = kCostOfValues * static_cast<double>(left.values.size()) *
                          static_cast<double>(right.values.size()) / (block.same ? 2 : 1);
    return events;
}

Status Search::search(const Block& block, unsigned number) {
    if (execution_.stop_requested()) return Status::cancelled();
    // Where no cuts were found for all records, there are none for some.
    if (block.pairs() < parameters_.few_pairs || looks_at_all_) return look_at(block, number);
    std::vector<std::size_t> fields;
    std::vector<FieldEvents> events;
    std::vector<PlacesByValue> left(levels_.size()), right(levels_.size());
    for (std::size_t field = 0; field < levels_.size(); ++field) {
        if (block.led >> field & 1) continue;
        fields.push_back(field);
        GPUTEXT_TRY(by_value(block.left, block.left_group, field, left[field]));
        if (!block.same)
            GPUTEXT_TRY(by_value(block.right, block.right_group, field, right[field]));
        events.push_back(
            events_in(block, field, left[field], block.same ? left[field] : right[field]));
    }
    const std::optional<std::vector<double>> cuts =
        choose_cuts(events, least_ - block.known - kRounding,
                    static_cast<double>(block.pairs()) / 2);
    if (!cuts) return look_at(block, number);
    std::vector<Lead>& before = workers_[number].before;
    const std::size_t leads = before.size();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::size_t field = fields[i];
        GPUTEXT_TRY(search_by(field, block, left[field], block.same ? left[field] : right[field],
                              (*cuts)[i], number));
        before.push_back({records_.fields[field].of_rows(), 0, static_cast<int>(field), (*cuts)[i]});
    }
    before.resize(leads);
    return {};
}

Status Search::search_by(std::size_t field, const Block& block, const PlacesByValue& left,
                         const PlacesByValue& right, double cut, unsigned number) {
    const std::uint32_t led = block.led | std::uint32_t{1} << field;
    GPUTEXT_TRY(each_common(left, right, [&](std::size_t i, std::size_t j) -> Status {
        const double weight = weight_of_equal(field, left.values[i]);
        if (!(weight > cut)) return {};
        return search({left.of(i), right.of(j), block.same, block.known + weight, led},
                      number);
    }));
    if (!leads_to_similar(field, cut)) return {};
    const PairBounds& bounds = bounds_[field];
    for (std::size_t i = 0; i < left.values.size(); ++i) {
        if (execution_.stop_requested()) return Status::cancelled();
        const PairBounds::Query query(bounds, bounds.probe(left.values[i]));
        for (std::size_t j = block.same ? i + 1 : 0; j < right.values.size(); ++j) {
            if (left.values[i] == right.values[j] ||
                !(query.bound(bounds.probe(right.values[j])) > cut))
                continue;
            int level = 0;
            GPUTEXT_TRY(workers_[number].comparers[field].level(
                left.values[i], right.values[j], execution_.stop(), level));
            const double weight = weights_[field].of(level);
            if (weight > cut)
                GPUTEXT_TRY(search(
                    {left.of(i), right.of(j), false, block.known + weight, led}, number));
        }
    }
    return {};
}

// ---- A block of few pairs ----

void Search::set_query(std::size_t place, Worker& worker) const {
    double rest = 0;
    worker.rest[probes_.size()] = 0;
    for (std::size_t i = probes_.size(); i-- > 0;) {
        worker.queries[i] = {bounds_[field_order_[i]], probes_[i][place]};
        rest += worker.queries[i].most();
        worker.rest[i] = rest;
    }
}

Status Search::look_at(const Block& block, unsigned number) {
    constexpr std::size_t kLook = 1 << 16;
    Worker& worker = workers_[number];
    const std::size_t fields = probes_.size();
    worker.looked_at += block.pairs();
    for (std::size_t a = 0; a < block.left.size(); ++a) {
        if (execution_.stop_requested()) return Status::cancelled();
        set_query(block.left[a], worker);
        const std::span<const std::uint32_t> others =
            block.same ? block.left.subspan(a + 1) : block.right;
        for (std::size_t b = 0; b < others.size(); ++b) {
            if (b % kLook == kLook - 1 && execution_.stop_requested()) return Status::cancelled();
            double bound = prior_;
            std::size_t i = 0;
            for (; i < fields && bound + worker.rest[i] >= least_; ++i)
                bound += worker.queries[i].bound(probes_[i][others[b]]);
            if (i == fields && bound >= least_)
                GPUTEXT_TRY(compare(rows_[block.left[a]], rows_[others[b]], number));
        }
    }
    return {};
}

Status Search::compare(std::uint32_t left, std::uint32_t right, unsigned number) {
    Worker& worker = workers_[number];
    ++worker.compared;
    const std::size_t fields = model_.fields.size();
    std::array<std::int8_t, kMostFields> levels;
    double weight = prior_;
    for (std::size_t field = 0; field < fields; ++field) {
        const std::span<const std::uint32_t> values = records_.fields[field].of_rows();
        const std::uint32_t a = values[left], b = values[right];
        int level = kNullLevel;
        if (a != kNullValue && b != kNullValue)
            GPUTEXT_TRY(worker.comparers[field].level(a, b, execution_.stop(), level));
        levels[field] = static_cast<std::int8_t>(level);
        weight += weight_of(field, a, b, level);
    }
    if (!(weight >= parameters_.min_weight) ||
        found_before(left, right, levels.data(), worker.before))
        return {};
    return found_({std::min(left, right), std::max(left, right), weight, levels.data()}, number);
}

/// Whether an earlier lead comes to the pair.
bool Search::found_before(std::uint32_t a, std::uint32_t b, const std::int8_t* levels,
                          std::span<const Lead> before) const {
    for (const Lead& other : before) {
        const std::uint32_t left = other.numbers[a], right = other.numbers[b];
        if (left == kNullValue || right == kNullValue) continue;
        if (other.field == kNoField) {
            if (left == right) return true;
            continue;
        }
        const auto field = static_cast<std::size_t>(other.field);
        if (weight_of(field, left, right, levels[field]) > other.cut) return true;
    }
    return false;
}

}  // namespace

Status find_record_pairs(const LinkageModel& model, const Records& records,
                         const PairSearchParameters& parameters, Execution& execution,
                         const PairFound& found, PairSearchReport& report) {
    return status_or_exception([&]() -> Status {
        return Search(model, records, parameters, execution, found).run(report);
    });
}

Result<std::vector<std::uint32_t>> combined_key(std::span<const FieldValues* const> fields,
                                                Stop stop) {
    return status_or_exception([&]() -> Result<std::vector<std::uint32_t>> {
        const std::size_t rows = fields.empty() ? 0 : fields[0]->rows();
        std::vector<std::uint32_t> numbers(rows, kNullValue), tuple(fields.size());
        Vocabulary tuples;
        for (std::size_t row = 0; row < rows; ++row) {
            if (row % 4096 == 0 && stop()) return Status::cancelled();
            bool null = false;
            for (std::size_t i = 0; i < fields.size(); ++i) {
                tuple[i] = fields[i]->of_rows()[row];
                null |= tuple[i] == kNullValue;
            }
            if (null) continue;
            numbers[row] = tuples.add({reinterpret_cast<const char*>(tuple.data()),
                                       tuple.size() * sizeof(std::uint32_t)});
        }
        return numbers;
    });
}

}  // namespace gputext
