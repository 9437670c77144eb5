#include "cpp/thesaurus/feature_weights.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "cpp/base/natural_functions.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr double kUnitsOfLogarithm = 2048;
constexpr double kMostWeight = 65535;

/// Counts of one task.
constexpr std::uint64_t kCountsOfTask = std::uint64_t{1} << 16;

/// Rows in runs of about kCountsOfTask counts: where each begins, and the end.
std::vector<std::uint32_t> tasks_of(const Cooccurrences& counts) {
    std::vector<std::uint32_t> tasks;
    std::uint64_t next = 0;
    for (std::uint32_t word = 0; word < counts.shape.words; ++word) {
        if (counts.begins[word] < next && word % 65536 != 0) continue;
        tasks.push_back(word);
        next = counts.begins[word] + kCountsOfTask;
    }
    tasks.push_back(counts.shape.words);
    return tasks;
}

Status check_counts(const Cooccurrences& counts) {
    GPUTEXT_TRY(check_shape(counts.shape));
    if (counts.begins.size() == std::size_t{counts.shape.words} + 1 && counts.begins[0] == 0 &&
        counts.begins.back() == counts.stored() && counts.counts.size() == counts.stored())
        return {};
    return {ErrorCode::invalid_argument, "there must be a row of counts for each word"};
}

/// The sums that weights are made of.
class Marginals {
public:
    explicit Marginals(const Cooccurrences& counts) : counts_(counts) {}

    Status add_up(Execution& execution) {
        const std::uint64_t columns = counts_.shape.columns();
        if (!stoppable_assign(of_columns_, columns, std::uint64_t{0}, execution.stop()))
            return Status::cancelled();
        // Each thread reads the part of every row that has its columns.
        const std::size_t parts = execution.threads();
        execution.begin_phase("adding up counts", parts);
        GPUTEXT_TRY(execution.parallel_for(parts, [&](std::size_t part, unsigned) {
            return add_columns(columns * part / parts, columns * (part + 1) / parts,
                               execution.stop());
        }));
        of_relations_.assign(counts_.shape.relations(), 0);
        for (std::uint64_t column = 0; column < columns; ++column) {
            if (column % kLookEvery == 0 && execution.stop_requested()) return Status::cancelled();
            of_relations_[column / counts_.shape.words] += of_columns_[column];
        }
        for (const std::uint64_t sum : of_relations_) all_ += sum;
        return {};
    }

    std::uint64_t all() const { return all_; }
    std::uint64_t of_relation(std::uint32_t relation) const { return of_relations_[relation]; }
    std::uint64_t of_column(std::uint64_t column) const { return of_columns_[column]; }

private:
    Status add_columns(std::uint64_t first, std::uint64_t end, Stop stop) {
        const std::uint32_t* const columns = counts_.columns.data();
        std::size_t since_look = 0;
        for (std::uint32_t word = 0; word < counts_.shape.words; ++word) {
            const auto row_end = counts_.begins[word + 1];
            auto i = static_cast<std::uint64_t>(
                std::lower_bound(columns + counts_.begins[word], columns + row_end, first) -
                columns);
            since_look += 16;
            for (; i < row_end && columns[i] < end; ++i, ++since_look)
                of_columns_[columns[i]] += counts_.counts[i];
            if (since_look < kLookEvery) continue;
            since_look = 0;
            if (stop()) return Status::cancelled();
        }
        return {};
    }

    const Cooccurrences& counts_;
    std::vector<std::uint64_t> of_columns_, of_relations_;
    std::uint64_t all_ = 0;
};

std::uint16_t stored_weight(double units) {
    const double raised = units + 0.5;
    if (!(raised >= 1)) return 0;
    return static_cast<std::uint16_t>(std::min(raised, kMostWeight));
}

class Weighing {
public:
    Weighing(const WeightParameters& parameters, const Cooccurrences& counts)
        : parameters_(parameters), counts_(counts), marginals_(counts) {
        const std::uint64_t relations = counts.shape.relations();
        if (parameters.features != 0)
            neighbors_ = std::min(neighbors_, parameters.features / relations +
                                                    (parameters.features % relations != 0));
    }

    Status add_up(Execution& execution) {
        return parameters_.weight == WordWeight::count ? Status() : marginals_.add_up(execution);
    }

    /// Weighs the counts of a word.
    void weigh_row(std::uint32_t word, std::uint16_t* weights) const {
        const std::uint64_t begin = counts_.begins[word], end = counts_.begins[word + 1];
        const bool ppmi = parameters_.weight == WordWeight::ppmi;
        double of_word = ppmi ? static_cast<double>(sum(begin, end)) : 0;
        const auto all = static_cast<double>(marginals_.all());
        for (std::uint64_t i = begin; i < end;) {
            // The row's features of one relation.
            const std::uint32_t relation = counts_.columns[i] / counts_.shape.words;
            const std::uint64_t first = std::uint64_t{relation} * counts_.shape.words;
            std::uint64_t next = i;
            while (next < end && counts_.columns[next] - first < counts_.shape.words) ++next;
            if (parameters_.weight == WordWeight::lin) of_word = static_cast<double>(sum(i, next));
            const double total = ppmi || parameters_.weight == WordWeight::count
                                     ? all
                                     : static_cast<double>(marginals_.of_relation(relation));
            for (; i < next; ++i)
                weights[i - begin] = counts_.columns[i] - first < neighbors_
                                         ? weight(i, of_word, total)
                                         : std::uint16_t{0};
        }
    }

private:
    std::uint64_t sum(std::uint64_t begin, std::uint64_t end) const {
        std::uint64_t sum = 0;
        for (std::uint64_t i = begin; i < end; ++i) sum += counts_.counts[i];
        return sum;
    }

    std::uint16_t weight(std::uint64_t i, double of_word, double total) const {
        const double joint = counts_.counts[i] - parameters_.discount;
        if (parameters_.weight == WordWeight::count) return stored_weight(joint);
        if (!(joint > 0)) return 0;
        const double product = joint * total;
        const double by_chance =
            of_word * static_cast<double>(marginals_.of_column(counts_.columns[i]));
        const double ratio = product / by_chance;
        if (!(ratio > 1)) return 0;
        return stored_weight(natural_log(ratio) * kUnitsOfLogarithm);
    }

    const WeightParameters parameters_;
    const Cooccurrences& counts_;
    Marginals marginals_;
    std::uint64_t neighbors_ = UINT64_MAX;  // of which there are features
};

}  // namespace

Status check_weights(const WeightParameters& parameters) {
    if (parameters.discount >= 0 && parameters.discount <= 1000) return {};
    return {ErrorCode::invalid_argument, "the discount must be from 0 to 1000"};
}

Result<std::vector<std::uint16_t>> weigh_counts(const WeightParameters& parameters,
                                                const Cooccurrences& counts,
                                                Execution& execution) try {
    GPUTEXT_TRY(check_weights(parameters));
    GPUTEXT_TRY(check_counts(counts));
    std::vector<std::uint16_t> weights;
    if (!stoppable_assign(weights, counts.stored(), std::uint16_t{0}, execution.stop()))
        return Status::cancelled();
    Weighing weighing(parameters, counts);
    GPUTEXT_TRY(weighing.add_up(execution));
    const std::vector<std::uint32_t> tasks = tasks_of(counts);
    execution.begin_phase("weighing features", tasks.size() - 1);
    GPUTEXT_TRY(execution.parallel_for(tasks.size() - 1, [&](std::size_t task, unsigned) {
        for (std::uint32_t word = tasks[task]; word < tasks[task + 1]; ++word)
            weighing.weigh_row(word, weights.data() + counts.begins[word]);
        return Status();
    }));
    return weights;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

Result<WordFeatures> weigh_features(const WeightParameters& parameters, const Cooccurrences& counts,
                                    Execution& execution) try {
    const auto weights = weigh_counts(parameters, counts, execution);
    if (!weights.ok()) return weights.status();
    WordFeatures features;
    features.shape = counts.shape;
    features.begins.reserve(std::size_t{counts.shape.words} + 1);
    features.begins.push_back(0);
    std::uint64_t stored = 0;
    execution.begin_phase("keeping features", 2 * std::uint64_t{counts.shape.words});
    const auto each_row = [&](auto&& row) {
        std::uint64_t since_look = 0;
        for (std::uint32_t word = 0; word < counts.shape.words; ++word) {
            row(counts.begins[word], counts.begins[word + 1]);
            since_look += counts.begins[word + 1] - counts.begins[word] + 1;
            if (since_look < kLookEvery) continue;
            since_look = 0;
            if (execution.stop_requested()) return false;
        }
        return true;
    };
    bool whole = each_row([&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = begin; i < end; ++i) stored += (*weights)[i] != 0;
        features.begins.push_back(stored);
    });
    features.columns.reserve(stored);
    features.weights.reserve(stored);
    whole = whole && each_row([&](std::uint64_t begin, std::uint64_t end) {
                for (std::uint64_t i = begin; i < end; ++i) {
                    if ((*weights)[i] == 0) continue;
                    features.columns.push_back(counts.columns[i]);
                    features.weights.push_back((*weights)[i]);
                }
            });
    if (!whole) return Status::cancelled();
    return features;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

double weight_unit(WordWeight weight) {
    return weight == WordWeight::count ? 1 : 1 / kUnitsOfLogarithm;
}

}  // namespace gputext
