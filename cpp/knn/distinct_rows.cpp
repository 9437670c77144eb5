#include "cpp/knn/distinct_rows.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <utility>

#include "cpp/base/hash_table.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// Rows whose classes are worth a thread of their own.
constexpr std::size_t kLeastRowsOfPart = std::size_t{1} << 14;

/// A row's bytes: of its elements and, when sparse, of their columns.
struct RowBytes {
    std::span<const std::byte> elements, columns;

    RowBytes(const Vectors& vectors, std::size_t row) {
        const std::size_t count = vectors.stored(row);
        elements = {vectors.row_bytes(row), count * element_size(vectors.type)};
        if (vectors.sparse())
            columns = std::as_bytes(vectors.columns.subspan(vectors.begin(row), count));
    }
};

/// Any hash does: rows with equal hashes are compared. Four words at a time, as each step waits for
/// the one before.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
    constexpr std::size_t words = 4;
    std::uint64_t hash[words] = {seed, seed + 1, seed + 2, seed + 3};
    const auto mix = [&hash](const std::byte* at) {
        for (std::size_t i = 0; i < words; ++i) {
            std::uint64_t word;
            std::memcpy(&word, at + i * sizeof word, sizeof word);
            hash[i] = std::rotl((hash[i] ^ word) * 0x9e3779b97f4a7c15u, 29);
        }
    };
    constexpr std::size_t step = words * sizeof(std::uint64_t);
    std::size_t at = 0;
    for (; at + step <= bytes.size(); at += step) mix(bytes.data() + at);
    std::byte rest[step] = {};
    if (at < bytes.size()) {
        std::memcpy(rest, bytes.data() + at, bytes.size() - at);
        mix(rest);
    }
    std::uint64_t all = bytes.size();
    for (const std::uint64_t part : hash) {
        all = (all ^ part) * 0xff51afd7ed558ccdu;
        all ^= all >> 32;
    }
    return all;
}

std::uint64_t hash_row(const Vectors& vectors, std::size_t row) {
    const RowBytes bytes(vectors, row);
    return hash_of_row(bytes.elements, bytes.columns);
}

bool equal_rows(const Vectors& vectors, std::size_t a, std::size_t b) {
    const auto equal = [](std::span<const std::byte> x, std::span<const std::byte> y) {
        return x.size() == y.size() &&
               (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
    };
    const RowBytes of_a(vectors, a), of_b(vectors, b);
    return equal(of_a.elements, of_b.elements) && equal(of_a.columns, of_b.columns);
}

/// Sampled rows, from whose hashes the mean class size is estimated.
constexpr std::size_t kSample = 2048;
constexpr std::size_t kFewPairs = 8;

/// Counts a few distinct numbers.
class Tally {
public:
    explicit Tally(std::size_t most) : numbers_(most) {}

    /// Adds a number; returns how often it was added before.
    std::size_t add(std::uint64_t number) {
        Slot& slot = numbers_.find(number * 0x9e3779b97f4a7c15u >> 32,
                                   [number](const Slot& other) { return other.number == number; });
        slot.number = number;
        return slot.count++;
    }

private:
    struct Slot {
        std::uint64_t number;
        std::uint32_t count;

        static Slot nothing() { return {0, 0}; }
        bool free() const { return count == 0; }
    };

    HashTable<Slot> numbers_;
};

/// Numbers of rows anywhere in the matrix, none of them twice: all where there are few.
std::vector<std::size_t> sample_of(std::size_t rows) {
    std::vector<std::size_t> sample(std::min(rows, kSample));
    std::iota(sample.begin(), sample.end(), std::size_t{0});
    if (rows <= kSample) return sample;
    // Not at even steps: copies may lie side by side, or at even steps themselves.
    std::mt19937_64 generator(rows);
    Tally taken(sample.size());
    for (std::size_t& row : sample) {
        do row = generator() % rows;
        while (taken.add(row) > 0);
    }
    return sample;
}

}  // namespace

std::uint64_t hash_of_row(std::span<const std::byte> elements, std::span<const std::byte> columns) {
    return hash_bytes(columns, hash_bytes(elements, 0));
}

Result<double> mean_class_size(const Vectors& vectors, Execution& execution) {
    GPUTEXT_TRY(await_elements(vectors, execution.stop()));
    const std::vector<std::size_t> sample = sample_of(vectors.rows);
    std::vector<std::uint64_t> hashes(sample.size());
    const std::size_t step = std::max<std::size_t>(1, (kLookEvery / 8) / (vectors.dimensions + 1));
    const std::size_t tasks = (sample.size() + step - 1) / step;
    execution.begin_phase("looking for equal vectors", tasks);
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t i = task * step; i < std::min(sample.size(), (task + 1) * step); ++i)
            hashes[i] = hash_row(vectors, sample[i]);
        return Status();
    }));
    Tally seen(hashes.size());
    std::size_t pairs = 0;
    for (const std::uint64_t hash : hashes) pairs += seen.add(hash);
    if (pairs < kFewPairs) return 1.0;
    const auto sampled = static_cast<double>(sample.size());
    return 1 + 2 * static_cast<double>(pairs) * static_cast<double>(vectors.rows - 1) /
                   (sampled * (sampled - 1));
}

Status DistinctRows::number(std::span<const std::uint64_t> hashes, const Vectors* compared,
                            Execution& execution) {
    const std::size_t rows = hashes.size();
    const std::size_t parts =
        std::clamp<std::size_t>(rows / kLeastRowsOfPart, 1, execution.threads());
    class_.resize(rows);  // the first row of the class, at first
    Execution uncounted(execution.threads(), execution);
    // Each part is of some hashes. It looks at all of them, which is soon done.
    const auto find_firsts = [&](std::size_t part, unsigned) -> Status {
        const auto for_each_own = [&](const auto& visit) -> Status {
            for (std::size_t row = 0; row < rows; ++row) {
                if (row % (kLookEvery / 256) == 0 && execution.stop_requested())
                    return Status::cancelled();
                if ((hashes[row] >> 32) * parts >> 32 == part) visit(row);
            }
            return {};
        };
        std::size_t count = 0;
        GPUTEXT_TRY(for_each_own([&](std::size_t) { ++count; }));
        HashTable<NumberSlot> firsts(count);
        return for_each_own([&](std::size_t row) {
            NumberSlot& first = firsts.find(hashes[row], [&](NumberSlot other) {
                return hashes[other.number] == hashes[row] &&
                       (compared == nullptr || equal_rows(*compared, other.number, row));
            });
            if (first.free()) first.number = static_cast<std::uint32_t>(row);
            class_[row] = first.number;
        });
    };
    GPUTEXT_TRY(uncounted.parallel_for(parts, find_firsts));
    firsts_.clear();
    for (std::uint32_t row = 0; row < rows; ++row) {
        if (class_[row] == row) {
            class_[row] = static_cast<std::uint32_t>(firsts_.size());
            firsts_.push_back(row);
        } else {
            class_[row] = class_[class_[row]];
        }
    }
    return {};
}

namespace {

/// Rows of a task that looks at all of their elements.
std::size_t rows_of_task(const Vectors& vectors) {
    return vectors.rows == 0
               ? 1
               : std::max<std::size_t>(1, (kLookEvery / 8) / (vectors.average_stored() + 1));
}

}  // namespace

Status DistinctRows::set(const Vectors& vectors, Execution& execution) {
    const std::size_t rows = vectors.rows, step = rows_of_task(vectors);
    const std::size_t tasks = (rows + step - 1) / step;
    std::vector<std::uint64_t> hashes(rows);
    execution.begin_phase("hashing vectors", tasks);
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t row = task * step; row < std::min(rows, (task + 1) * step); ++row)
            hashes[row] = hash_row(vectors, row);
        return Status();
    }));
    return set(vectors, hashes, execution);
}

Status DistinctRows::set(const Vectors& vectors, std::span<const std::uint64_t> hashes,
                         Execution& execution) {
    const std::size_t rows = vectors.rows, step = rows_of_task(vectors);
    const std::size_t tasks = (rows + step - 1) / step;
    // Rows are compared by all threads at once, for which equal hashes are first taken to mean
    // equal rows. Exceptions are extremely rare.
    GPUTEXT_TRY(number(hashes, nullptr, execution));
    std::atomic<bool> other{false};
    execution.begin_phase("comparing vectors", tasks);
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t row = task * step; row < std::min(rows, (task + 1) * step); ++row)
            if (const std::size_t first = firsts_[class_[row]];
                first != row && !equal_rows(vectors, first, row))
                other = true;
        return Status();
    }));
    if (other) GPUTEXT_TRY(number(hashes, &vectors, execution));

    begins_.assign(firsts_.size() + 1, 0);
    for (const std::uint32_t of : class_) ++begins_[of + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    members_.resize(rows);
    std::vector<std::uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (std::uint32_t row = 0; row < rows; ++row) members_[next[class_[row]]++] = row;
    return {};
}

void DistinctRows::set_apart(std::size_t rows) {
    firsts_.resize(rows);
    std::iota(firsts_.begin(), firsts_.end(), 0u);
    class_ = members_ = firsts_;
    begins_ = firsts_;
    begins_.push_back(static_cast<std::uint32_t>(rows));
}

Status GatheredRows::set(const Vectors& vectors, std::span<const std::uint32_t> rows,
                         Execution& execution) {
    vectors_ = vectors;
    if (rows.size() == vectors.rows) return {};
    vectors_.rows = rows.size();
    vectors_.known = nullptr;
    return vectors.sparse() ? copy_sparse(vectors, rows, execution.stop())
                            : copy_dense(vectors, rows, execution);
}

Status GatheredRows::copy_dense(const Vectors& from, std::span<const std::uint32_t> rows,
                                Execution& execution) {
    const std::size_t bytes = from.dimensions * element_size(from.type);
    // Its pages are first touched by the threads that fill them.
    dense_ = std::make_unique_for_overwrite<std::byte[]>(rows.size() * bytes);
    vectors_.elements = dense_.get();
    const std::size_t step = std::max<std::size_t>(1, kLookEvery / (bytes + 1));
    const std::size_t tasks = (rows.size() + step - 1) / step;
    execution.begin_phase("copying vectors", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        const std::size_t end = std::min(rows.size(), (task + 1) * step);
        for (std::size_t row = task * step; row < end && bytes > 0; ++row)
            std::memcpy(dense_.get() + row * bytes, from.row_bytes(rows[row]), bytes);
        return Status();
    });
}

Status GatheredRows::copy_sparse(const Vectors& from, std::span<const std::uint32_t> rows,
                                 Stop stop) {
    elements_.clear();
    columns_.clear();
    row_begins_.assign(1, 0);
    const std::size_t look_every = 1 + kLookEvery / (from.dimensions + 1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % look_every == 0 && stop()) return Status::cancelled();
        const std::size_t row = rows[i], count = from.stored(row);
        const std::byte* bytes = from.row_bytes(row);
        elements_.insert(elements_.end(), bytes, bytes + count * element_size(from.type));
        const auto columns = from.columns.subspan(from.begin(row), count);
        columns_.insert(columns_.end(), columns.begin(), columns.end());
        row_begins_.push_back(columns_.size());
    }
    vectors_.elements = elements_.data();
    vectors_.row_begins = row_begins_;
    vectors_.columns = columns_;
    return {};
}

namespace {

/// The neighbors of one query.
class Expansion {
public:
    Expansion(const KnnParameters& parameters, const RowKeys& keys, const DistinctRows& distinct)
        : k_(parameters.k), ties_(parameters.include_ties), keys_(keys), distinct_(distinct) {}

    /// As many neighbors as append() will append, or more.
    std::size_t most_neighbors(std::span<const Candidate> classes) const {
        std::size_t members = 0;
        for (std::size_t i = 0; i < classes.size() && (ties_ || members < k_); ++i)
            members += distinct_.members(classes[i].item_class).size();
        return ties_ ? members : std::min(members, k_);
    }

    /// Appends the nearest items, in order, given the nearest classes in theirs. False if stopped.
    bool append(std::size_t query, std::span<const Candidate> classes, Stop stop,
                std::vector<std::uint32_t>& items, std::vector<double>& distances) {
        const std::size_t begin = items.size();
        for (std::size_t i = 0; i < classes.size() && items.size() - begin < k_;) {
            // All classes at one distance: their items mix.
            std::size_t end = i;
            group_.clear();
            while (end < classes.size() && classes[end].distance == classes[i].distance)
                if (!append_members(query, classes[end++].item_class, stop)) return false;
            if (end - i > 1) std::sort(group_.begin(), group_.end());
            const std::size_t room = k_ - (items.size() - begin);
            if (!ties_ && group_.size() > room) group_.resize(room);
            items.insert(items.end(), group_.begin(), group_.end());
            distances.resize(items.size(), classes[i].distance);
            i = end;
        }
        return true;
    }

private:
    bool append_members(std::size_t query, std::size_t item_class, Stop stop) {
        std::size_t most = ties_ ? SIZE_MAX : k_;
        const auto members = distinct_.members(item_class);
        for (std::size_t i = 0; i < members.size() && most > 0; ++i) {
            if (i % kLookEvery == kLookEvery - 1 && stop()) return false;
            if (!keys_.differ(query, members[i])) continue;
            group_.push_back(members[i]);
            --most;
        }
        return true;
    }

    std::size_t k_;
    bool ties_;
    const RowKeys& keys_;
    const DistinctRows& distinct_;
    std::vector<std::uint32_t> group_;
};

/// A query's part of the answer, until all are put together.
struct Part {
    std::vector<std::uint32_t> items;
    std::vector<double> distances;

    /// Room for neighbors here and in the answer.
    Status reserve(std::size_t neighbors, MemoryBudget& budget) {
        GPUTEXT_TRY(budget.take(neighbors * kBytesOfNeighbor, "the neighbors"));
        items.reserve(neighbors);
        distances.reserve(neighbors);
        return {};
    }
};

}  // namespace

Status expand_classes(const KnnParameters& parameters, std::size_t queries, const RowKeys& keys,
                      const DistinctRows* distinct, const NearestClasses& classes_of,
                      MemoryBudget& budget, Execution& execution, Neighbors& answer) {
    const Stop stop = execution.stop();
    std::vector<Part> parts(queries);
    execution.begin_phase("ordering neighbors", queries);
    Status status = execution.parallel_for(queries, [&](std::size_t query, unsigned) {
        std::vector<Candidate> nearest;
        Status found = classes_of(query, nearest);
        if (!found.ok()) return found;
        Part& part = parts[query];
        if (distinct == nullptr) {
            found = part.reserve(nearest.size(), budget);
            if (!found.ok()) return found;
            for (const Candidate& candidate : nearest) {
                part.items.push_back(candidate.item);
                part.distances.push_back(candidate.distance);
            }
            return Status();
        }
        Expansion expansion(parameters, keys, *distinct);
        found = part.reserve(expansion.most_neighbors(nearest), budget);
        if (!found.ok()) return found;
        if (!expansion.append(query, nearest, stop, part.items, part.distances))
            return Status::cancelled();
        return Status();
    });
    if (!status.ok()) return status;

    answer.begins.assign(queries + 1, 0);
    for (std::size_t query = 0; query < queries; ++query)
        answer.begins[query + 1] = answer.begins[query] + parts[query].items.size();
    if (!stoppable_assign(answer.items, answer.begins.back(), {}, stop) ||
        !stoppable_assign(answer.distances, answer.begins.back(), {}, stop))
        return Status::cancelled();
    execution.begin_phase("collecting neighbors", queries);
    return execution.parallel_for(queries, [&](std::size_t query, unsigned) {
        const auto at = static_cast<std::ptrdiff_t>(answer.begins[query]);
        Part part = std::move(parts[query]);
        std::copy(part.items.begin(), part.items.end(), answer.items.begin() + at);
        std::copy(part.distances.begin(), part.distances.end(), answer.distances.begin() + at);
        return Status();
    });
}

}  // namespace gputext
