#include "cpp/records/record_pairs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/base/vocabulary.hpp"
#include "cpp/records/detail/code_filter.hpp"
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

/// The places of a block's side by their codes in a field, without nulls.
struct PlacesByCode {
    std::span<const std::uint32_t> places;
    std::vector<std::uint32_t> codes;   // ascending
    std::vector<std::uint32_t> begins;  // of a code's places, and the end
    std::vector<std::uint32_t> kept;    // the places, where nobody else has them in order

    std::span<const std::uint32_t> of(std::size_t code) const {
        return places.subspan(begins[code], begins[code + 1] - begins[code]);
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
        std::vector<Lead> before;  // leads whose pairs are found elsewhere
        // Of a part of a block's right side: [field]: the codes, and those that were gathered
        std::vector<const std::uint32_t*> codes;
        std::vector<std::vector<std::uint32_t>> gathered;
        std::vector<Column> columns;
        std::vector<ChosenPlace> chosen;
        std::size_t unseen = 0;  // pairs since the last look at stop requests
        std::uint64_t looked_at = 0, compared = 0;
    };

    Status check_memory() const;
    Status prepare();
    void choose_leads();
    Status follow(std::size_t lead);
    Status follow_equal(const LeadOrder& order, std::size_t lead);
    Status follow_similar(const LeadOrder& order, std::size_t lead);
    Status gather(const LeadOrder& order);
    void add_task(const Block& block, std::vector<Block>& tasks) const;
    Status run_tasks(std::span<const Block> tasks, std::size_t lead, Execution& execution);
    Status search(const Block& block, unsigned number);
    Status search_by(std::size_t field, const Block& block, const PlacesByCode& left,
                     const PlacesByCode& right, double cut, unsigned number);
    Status sort_by_code(std::span<std::uint32_t> places, std::size_t field) const;
    Status by_code(std::span<const std::uint32_t> places, std::span<const std::uint32_t> group,
                   std::size_t field, PlacesByCode& found) const;
    FieldEvents events_in(const Block& block, std::size_t field, const PlacesByCode& left,
                          const PlacesByCode& right) const;
    /// Whether to stop, after so many pairs. A look at requests costs more than a small block.
    bool stopped(Worker& worker, std::size_t pairs) const {
        constexpr std::size_t kLook = 1 << 16;
        worker.unseen += pairs;
        if (worker.unseen < kLook) return false;
        worker.unseen = 0;
        return execution_.stop_requested();
    }
    Status look_at(const Block& block, unsigned number);
    Status look_at_part(const Block& block, std::size_t begin, std::size_t end, unsigned number);
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
    std::span<const std::uint32_t> rows_;  // of the places
    /// [field][place], and as many beyond as a filter may read
    std::vector<std::vector<std::uint32_t>> codes_;
    /// [field]: the places of each number and table, by their codes in the field
    std::vector<std::vector<std::uint32_t>> sorted_;
    CodeFilter filter_ = best_code_filter();
    double prior_ = 0, least_ = 0;
    bool looks_at_all_ = false;
    std::vector<Worker> workers_;
};

/// What is taken later for some records or values at a time is less.
Status Search::check_memory() const {
    // In a lead's order, where each record may have a number of its own, and in a task, which has two
    // or more; of each field its code, and its place by code
    constexpr std::uint64_t kBytesOfRow = 5 * sizeof(std::uint32_t) + sizeof(Block) / 2,
                            kBytesOfField = 2 * sizeof(std::uint32_t);
    std::uint64_t bytes = records_.rows * (kBytesOfRow + kBytesOfField * records_.fields.size());
    for (const FieldValues& values : records_.fields)
        bytes += values.count() * PairBounds::kBytesOfValue;
    if (bytes <= parameters_.memory_limit) return {};
    return over_memory_limit("the search for pairs of records", bytes, parameters_.memory_limit);
}

Status Search::prepare() {
    GPUTEXT_TRY(check_memory());
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
    codes_.resize(fields);
    sorted_.resize(fields);
    for (Worker& worker : workers_) {
        for (const ValueLevels& levels : levels_) worker.comparers.emplace_back(levels);
        worker.gathered.resize(fields);
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
    for (std::vector<std::uint32_t>& codes : codes_) codes.resize(rows.size() + kFilterLanes);
    const std::size_t steps = (rows.size() + kRowsOfStep - 1) / kRowsOfStep;
    execution_.begin_phase("sorting records", steps);
    GPUTEXT_TRY(execution_.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        const std::size_t end = std::min(rows.size(), (step + 1) * kRowsOfStep);
        for (std::size_t field = 0; field < codes_.size(); ++field) {
            const std::span<const std::uint32_t> values = records_.fields[field].of_rows();
            for (std::size_t place = step * kRowsOfStep; place < end; ++place)
                codes_[field][place] = bounds_[field].code(values[rows[place]]);
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
                for (std::size_t field = 0; field < sorted_.size(); ++field)
                    GPUTEXT_TRY(
                        sort_by_code(std::span(sorted_[field]).subspan(side.front(), side.size()),
                                     field));
            }
        return {};
    };
    execution_.begin_phase("sorting records", number_steps);
    return execution_.parallel_for(number_steps, sort_step);
}

/// By place where codes are equal, nulls last.
Status Search::sort_by_code(std::span<std::uint32_t> places, std::size_t field) const {
    const std::vector<std::uint32_t>& codes = codes_[field];
    const auto less = [&](std::uint32_t a, std::uint32_t b) {
        return codes[a] != codes[b] ? codes[a] < codes[b] : a < b;
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
            // So many at a time, as a block may have very many similar values
            constexpr std::size_t kTasksAtOnce = std::size_t{1} << 18;
            std::vector<Block> tasks;
            const auto run = [&] {
                Execution part(execution_.threads(), execution_);
                const Status status = run_tasks(tasks, number, part);
                tasks.clear();
                return status;
            };
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
                    if (tasks.size() >= kTasksAtOnce) GPUTEXT_TRY(run());
                }
            }
            return run();
        });
}

Status Search::run_tasks(std::span<const Block> tasks, std::size_t lead, Execution& execution) {
    // Many values are of a record or two: a step is some tasks. Frequent values come first, and
    // each is a step.
    constexpr std::size_t kTasksOfStep = 64, kAhead = 4;
    constexpr std::uint64_t kPairsOfStep = 1 << 16;
    std::vector<std::size_t> begins{0};
    std::uint64_t pairs = 0;
    for (std::size_t task = 0; task < tasks.size(); ++task) {
        pairs += tasks[task].pairs();
        if (task + 1 < tasks.size() && task + 1 - begins.back() < kTasksOfStep &&
            pairs < kPairsOfStep)
            continue;
        begins.push_back(task + 1);
        pairs = 0;
    }
    return execution.parallel_for(begins.size() - 1, [&](std::size_t step,
                                                         unsigned number) -> Status {
        workers_[number].before.assign(leads_.begin(),
                                       leads_.begin() + static_cast<std::ptrdiff_t>(lead));
        const std::size_t last = begins[step + 1];
        for (std::size_t task = begins[step]; task < last; ++task) {
            // Small blocks would wait for memory longer than they take.
            if (task + 2 * kAhead < last && !tasks[task + 2 * kAhead].right.empty())
                __builtin_prefetch(tasks[task + 2 * kAhead].right.data());
            if (task + kAhead < last && !tasks[task + kAhead].right.empty())
                for (const std::vector<std::uint32_t>& codes : codes_)
                    __builtin_prefetch(codes.data() + tasks[task + kAhead].right.front());
            GPUTEXT_TRY(search(tasks[task], number));
        }
        return {};
    });
}

// ---- A block of many pairs: other fields lead within it ----

Status Search::by_code(std::span<const std::uint32_t> places, std::span<const std::uint32_t> group,
                       std::size_t field, PlacesByCode& found) const {
    // A smaller part is sorted sooner than it is found among all.
    constexpr std::size_t kPart = 16;
    const std::vector<std::uint32_t>& codes = codes_[field];
    const std::span<const std::uint32_t> sorted =
        group.empty() ? group : std::span(sorted_[field]).subspan(group.front(), group.size());
    if (!places.empty() && places.size() == sorted.size()) {
        found.places = sorted;
    } else if (!places.empty() && places.size() > sorted.size() / kPart && !sorted.empty()) {
        std::ranges::copy_if(sorted, std::back_inserter(found.kept), [&](std::uint32_t one) {
            return one >= places.front() && one <= places.back();
        });
        found.places = found.kept;
    } else {
        found.kept.assign(places.begin(), places.end());
        GPUTEXT_TRY(sort_by_code(found.kept, field));
        found.places = found.kept;
    }
    std::uint32_t place = 0;
    for (; place < found.places.size(); ++place) {
        const std::uint32_t code = codes[found.places[place]];
        if (code == kNullValue) break;
        if (place > 0 && code == found.codes.back()) continue;
        found.codes.push_back(code);
        found.begins.push_back(place);
    }
    found.begins.push_back(place);
    return {};
}

namespace {

/// Calls both(i, j) for the places of each code that both have.
template <class Both>
Status each_common(const PlacesByCode& left, const PlacesByCode& right, const Both& both) {
    for (std::size_t i = 0, j = 0; i < left.codes.size() && j < right.codes.size();) {
        if (left.codes[i] == right.codes[j]) {
            GPUTEXT_TRY(both(i, j));
            ++i, ++j;
        } else if (left.codes[i] < right.codes[j]) {
            ++i;
        } else {
            ++j;
        }
    }
    return {};
}

}  // namespace

FieldEvents Search::events_in(const Block& block, std::size_t field, const PlacesByCode& left,
                              const PlacesByCode& right) const {
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
            tiers.add(weight_of_equal(field, bounds_[field].value(left.codes[i])), both);
        return {};
    });
    if (one_weight) tiers.add(weights_[field].of(levels_[field].top_level()), pairs);
    FieldEvents events = tiers.events();
    events.least = std::max(0.0, weights_[field].of(0));
    add_similar_events(levels_[field], model_.fields[field], weights_[field],
                       static_cast<double>(block.pairs()), events);
    events.similar_cost = kCostOfValues * static_cast<double>(left.codes.size()) *
                          static_cast<double>(right.codes.size()) / (block.same ? 2 : 1);
    return events;
}

Status Search::search(const Block& block, unsigned number) {
    // Where no cuts were found for all records, there are none for some.
    if (block.pairs() < parameters_.few_pairs || looks_at_all_) return look_at(block, number);
    if (execution_.stop_requested()) return Status::cancelled();
    std::vector<std::size_t> fields;
    std::vector<FieldEvents> events;
    std::vector<PlacesByCode> left(levels_.size()), right(levels_.size());
    for (std::size_t field = 0; field < levels_.size(); ++field) {
        if (block.led >> field & 1) continue;
        fields.push_back(field);
        GPUTEXT_TRY(by_code(block.left, block.left_group, field, left[field]));
        if (!block.same)
            GPUTEXT_TRY(by_code(block.right, block.right_group, field, right[field]));
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

Status Search::search_by(std::size_t field, const Block& block, const PlacesByCode& left,
                         const PlacesByCode& right, double cut, unsigned number) {
    const std::uint32_t led = block.led | std::uint32_t{1} << field;
    GPUTEXT_TRY(each_common(left, right, [&](std::size_t i, std::size_t j) -> Status {
        const double weight = weight_of_equal(field, bounds_[field].value(left.codes[i]));
        if (!(weight > cut)) return {};
        return search({left.of(i), right.of(j), block.same, block.known + weight, led},
                      number);
    }));
    if (!leads_to_similar(field, cut)) return {};
    const PairBounds& bounds = bounds_[field];
    for (std::size_t i = 0; i < left.codes.size(); ++i) {
        if (execution_.stop_requested()) return Status::cancelled();
        const std::uint32_t value = bounds.value(left.codes[i]);
        for (std::size_t j = block.same ? i + 1 : 0; j < right.codes.size(); ++j) {
            if (left.codes[i] == right.codes[j] ||
                !(bounds.different(left.codes[i], right.codes[j]) > cut))
                continue;
            int level = 0;
            GPUTEXT_TRY(workers_[number].comparers[field].level(
                value, bounds.value(right.codes[j]), execution_.stop(), level));
            const double weight = weights_[field].of(level);
            if (weight > cut)
                GPUTEXT_TRY(search(
                    {left.of(i), right.of(j), false, block.known + weight, led}, number));
        }
    }
    return {};
}

// ---- A block of few pairs ----

Status Search::look_at(const Block& block, unsigned number) {
    // Codes of so many records stay in a processor's cache.
    constexpr std::size_t kRecords = 1 << 12;
    workers_[number].looked_at += block.pairs();
    const std::span<const std::uint32_t> right = block.same ? block.left : block.right;
    for (std::size_t begin = 0; begin < right.size(); begin += kRecords)
        GPUTEXT_TRY(look_at_part(block, begin, std::min(right.size(), begin + kRecords), number));
    return {};
}

/// The block's pairs whose right one is of [begin, end).
Status Search::look_at_part(const Block& block, std::size_t begin, std::size_t end,
                            unsigned number) {
    Worker& worker = workers_[number];
    const std::span<const std::uint32_t> right =
        (block.same ? block.left : block.right).subspan(begin, end - begin);
    // Places ascend. Codes of neighbors are read where they are.
    const bool are_neighbors = right.back() - right.front() + 1 == right.size();
    worker.codes.resize(codes_.size());
    for (std::size_t field = 0; field < codes_.size(); ++field) {
        if (are_neighbors) {
            worker.codes[field] = codes_[field].data() + right.front();
        } else if (!(block.led >> field & 1)) {
            std::vector<std::uint32_t>& gathered = worker.gathered[field];
            gathered.resize(right.size() + kFilterLanes);
            for (std::size_t i = 0; i < right.size(); ++i) gathered[i] = codes_[field][right[i]];
            worker.codes[field] = gathered.data();
        }
    }
    const std::int32_t least = parts_below(least_ - block.known);
    const std::size_t last = block.same ? end : block.left.size();
    for (std::size_t a = 0; a < last; ++a) {
        const std::size_t place = block.left[a];
        const std::size_t from = block.same && a >= begin ? a + 1 - begin : 0;
        if (stopped(worker, right.size() - from)) return Status::cancelled();
        worker.columns.clear();
        for (std::size_t field = 0; field < codes_.size(); ++field) {
            const std::uint32_t code = codes_[field][place];
            if (block.led >> field & 1 || code == kNullValue) continue;
            worker.columns.push_back({bounds_[field].code_query(code), worker.codes[field] + from,
                                      &bounds_[field]});
        }
        worker.chosen.clear();
        filter_(worker.columns, right.size() - from, least, worker.chosen);
        for (auto [chosen, sum] : worker.chosen) {
            for (const Column& column : worker.columns) {
                if (sum < least) break;
                const std::uint32_t code = column.codes[chosen];
                if (column.bounds->refines() && code != kNullValue && code != column.query.code)
                    sum += column.bounds->different_parts(column.query.code, code) -
                           column.query.different;
            }
            if (sum >= least)
                GPUTEXT_TRY(compare(rows_[place], rows_[right[from + chosen]], number));
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
