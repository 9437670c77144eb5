#include "cpp/knn/shared_k_means.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/knn/detail/host_assignment.hpp"
#include "cpp/knn/detail/k_means_run.hpp"

namespace gputext {
namespace {

/// How long the first thread waits for others. One that is free comes within less than a
/// millisecond.
constexpr std::chrono::milliseconds kPatience{5};
/// Sums that a thread adds up at once.
constexpr std::size_t kSumsAtOnce = std::size_t{1} << 14;

Status another_failed() {
    return {ErrorCode::unavailable, "another thread failed in its part of k-means"};
}

}  // namespace

/// Has all members do the same, on their own threads.
class SharedKMeans::AllItems : public ClusterAssignment {
public:
    AllItems(SharedKMeans& shared, ClusterAssignment& own)
        : shared_(shared),
          own_(own),
          moves_(shared.members_.size()),
          totals_(moves_.size()),
          counts_(moves_.size()) {}

    std::size_t steps() const override { return own_.steps(); }

    Status add(const Vectors& centroids, std::uint32_t first, Execution& execution) override {
        return all([&](std::size_t, ClusterAssignment& own,
                       Execution& on) { return own.add(centroids, first, on); },
                   execution);
    }
    Result<std::uint64_t> assign(const Vectors& centroids, Execution& execution) override {
        std::uint64_t changed = 0;
        GPUTEXT_TRY(count(changed, execution, [&](ClusterAssignment& own, Execution& on) {
            return own.assign(centroids, on);
        }));
        return changed;
    }
    Status fetch(Execution& execution) override {
        return count(rescored_, execution,
                     [](ClusterAssignment& own, Execution& on) -> Result<std::uint64_t> {
                         GPUTEXT_TRY(own.fetch(on));
                         return own.rescored();
                     });
    }
    Status move(std::uint32_t item, std::uint32_t cluster) override {
        const auto owner = std::ranges::find_if(
            shared_.members_, [item](const Member& member) { return item < member.end; });
        const auto number = static_cast<std::size_t>(owner - shared_.members_.begin());
        moves_[number].emplace_back(static_cast<std::uint32_t>(item - owner->begin), cluster);
        return {};
    }
    Result<ClusterTotals> totals(Execution& execution) override {
        const Command find = [&](std::size_t member, ClusterAssignment& own,
                                 Execution& on) -> Status {
            for (const auto& [item, cluster] : std::exchange(moves_[member], {}))
                GPUTEXT_TRY(own.move(item, cluster));
            auto totals = own.totals(on);
            if (totals.ok()) totals_[member] = *totals;
            return totals.status();
        };
        GPUTEXT_TRY(all(find, execution));
        if (totals_.size() == 1) return totals_[0];
        GPUTEXT_TRY(add_up(&ClusterTotals::sums, sums_, execution));
        GPUTEXT_TRY(add_up(&ClusterTotals::sizes, sizes_, execution));
        return ClusterTotals{sums_, sizes_};
    }
    std::uint64_t rescored() const override { return rescored_; }

private:
    Status all(const Command& command, Execution& execution) {
        return shared_.command(command, own_, execution);
    }

    /// Adds up what each member counts.
    template <class Count>
    Status count(std::uint64_t& sum, Execution& execution, const Count& count_own) {
        GPUTEXT_TRY(all(
            [&](std::size_t member, ClusterAssignment& own, Execution& on) {
                const Result<std::uint64_t> counted = count_own(own, on);
                if (counted.ok()) counts_[member] = *counted;
                return counted.status();
            },
            execution));
        sum = 0;
        for (const std::uint64_t one : counts_) sum += one;
        return {};
    }

    Status add_up(std::span<const std::int64_t> ClusterTotals::*part,
                  std::vector<std::int64_t>& sums, Execution& execution) {
        const auto first = totals_[0].*part;
        sums.resize(first.size());
        const auto add = [&](std::size_t task, unsigned) -> Status {
            const std::size_t end = std::min(sums.size(), (task + 1) * kSumsAtOnce);
            for (std::size_t i = task * kSumsAtOnce; i < end; ++i) {
                sums[i] = first[i];
                for (std::size_t m = 1; m < totals_.size(); ++m) sums[i] += (totals_[m].*part)[i];
            }
            return {};
        };
        return execution.parallel_for((sums.size() + kSumsAtOnce - 1) / kSumsAtOnce, add);
    }

    SharedKMeans& shared_;
    ClusterAssignment& own_;
    // By member: moves that have not been made; what it found.
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> moves_;
    std::vector<ClusterTotals> totals_;
    std::vector<std::uint64_t> counts_;
    std::vector<std::int64_t> sums_, sizes_;
    std::uint64_t rescored_ = 0;
};

Status SharedKMeans::take_part(const WithAssignment& with, Execution& execution) {
    Lock lock(mutex_);
    while (!finished_) {
        if (execution.stop_requested()) return Status::cancelled();
        switch (state_) {
            case State::idle:
                GPUTEXT_TRY(lead(lock, with, execution));
                break;
            case State::open:
                if (members_.size() == most_members_) return {};
                GPUTEXT_TRY(follow(lock, with, execution));
                break;
            case State::running:
                return {};
            case State::over:
                changed_.wait(lock, [this] { return state_ != State::over; });
        }
    }
    return {};
}

/// Ok also when another member failed, and nothing is finished.
Status SharedKMeans::lead(Lock& lock, const WithAssignment& with, Execution& execution) {
    members_.assign(1, {});
    state_ = State::open;
    lock.unlock();
    Status status = status_or_exception([&] { return begin(execution); });
    lock.lock();
    if (status.ok()) {
        changed_.wait_for(lock, kPatience, [this] { return members_.size() == most_members_; });
        share_out();
        state_ = State::running;
        changed_.notify_all();
        lock.unlock();
        status = status_or_exception([&] {
            return with_items(0, with, [&](ClusterAssignment& own) {
                AllItems all(*this, own);
                return run_k_means(parameters_, items_, *means_, all, execution, answer_);
            });
        });
        lock.lock();
    }
    state_ = State::over;
    changed_.notify_all();
    changed_.wait(lock, [this] { return following_ == 0; });
    state_ = State::idle;
    finished_ = status.ok();
    changed_.notify_all();
    return status.code() == ErrorCode::unavailable && follower_failed() ? Status() : status;
}

/// Looks at the items once, and clears the answer.
Status SharedKMeans::begin(Execution& execution) {
    if (!largest_) {
        const auto largest = check_clustered(parameters_, items_, execution);
        if (!largest.ok()) return largest.status();
        largest_ = *largest;
        means_.emplace(parameters_.metric, items_, *largest);
    }
    return clear_clusters(items_.rows, execution.stop(), answer_);
}

void SharedKMeans::share_out() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        members_[i].begin = items_.rows * i / members_.size();
        members_[i].end = items_.rows * (i + 1) / members_.size();
    }
}

Status SharedKMeans::with_items(std::size_t member, const WithAssignment& with,
                                const UseAssignment& use) {
    const std::size_t begin = members_[member].begin, count = members_[member].end - begin;
    std::optional<Status> used;  // a second assignment would not be as the others' are
    return with({parameters_,
                 RowRange(items_, begin, begin + count).vectors(),
                 *largest_,
                 *means_,
                 {std::span(answer_.clusters).subspan(begin, count),
                  std::span(answer_.distances).subspan(begin, count)}},
                [&](ClusterAssignment& own) {
                    if (!used) used = use(own);
                    return *used;
                });
}

Status SharedKMeans::follow(Lock& lock, const WithAssignment& with, Execution& execution) {
    const std::size_t member = members_.size();
    members_.emplace_back();
    ++following_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ != State::open; });
    Status status;
    if (state_ == State::running) {
        lock.unlock();
        status = status_or_exception([&] {
            execution.begin_phase("assigning items", 0);
            return with_items(member, with,
                              [&](ClusterAssignment& own) { return obey(member, own, execution); });
        });
        lock.lock();
        members_[member].failed = !status.ok();
    }
    --following_;
    changed_.notify_all();
    return status;
}

/// Until the one that leads has ended.
Status SharedKMeans::obey(std::size_t member, ClusterAssignment& own, Execution& execution) {
    Lock lock(mutex_);
    Member& self = members_[member];
    for (;;) {
        changed_.wait(lock, [&] { return self.command != nullptr || state_ == State::over; });
        if (state_ == State::over) return {};
        lock.unlock();
        Status status = (*self.command)(member, own, execution);
        lock.lock();
        if (!status.ok()) return status;
        self.command = nullptr;
        changed_.notify_all();
    }
}

/// By the one that leads: waits for all others, whatever happens.
Status SharedKMeans::command(const Command& command, ClusterAssignment& own, Execution& execution) {
    const auto followers = std::span(members_).subspan(1);
    {
        const std::lock_guard lock(mutex_);
        for (Member& member : followers) member.command = &command;
    }
    changed_.notify_all();
    Status status = status_or_exception([&] { return command(0, own, execution); });
    Lock lock(mutex_);
    changed_.wait(lock, [&] {
        return std::ranges::all_of(followers, [](const Member& member) {
            return member.failed || member.command == nullptr;
        });
    });
    return status.ok() && follower_failed() ? another_failed() : status;
}

bool SharedKMeans::follower_failed() const {
    return std::ranges::any_of(members_, &Member::failed);
}

Status with_host_assignment(const AssignmentTask& task, const UseAssignment& use,
                            Execution& execution) {
    GPUTEXT_TRY(check_host_memory(task.parameters, task.items, execution.threads()));
    HostAssignment assignment(task.parameters, task.items, task.largest, task.means, task.clusters,
                              execution.threads());
    return use(assignment);
}

}  // namespace gputext
