// cpp/knn/shared_k_means.hpp - k-means by several threads, each with an assignment of some of the
// items
//
// One of the threads leads: it takes the decisions (cpp/knn/detail/k_means_run.hpp), by an
// assignment that has the others do the same to their items as it does to its own, and adds up what
// they found. Sums are of integers, and distances those of cpp/knn/distance.hpp, so that the answer
// is the same, to the bit, however many take part. Who fails leaves no trace: the others begin anew
// without it.

#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/cluster_assignment.hpp"
#include "cpp/knn/k_means.hpp"

namespace gputext {

class SharedKMeans {
public:
    /// Keeps a view of the items. At most so many threads get some of them at a time.
    SharedKMeans(const KMeansParameters& parameters, const Vectors& items, std::size_t members)
        : parameters_(parameters), items_(items), most_members_(std::min(members, items.rows)) {}

    /// Takes part with an assignment of its own. The thread that comes first waits a few
    /// milliseconds for others; those that come later have nothing to do, which is no error.
    /// Errors: those of k_means() and of `with`. After one of this thread's own assignment another
    /// thread does all, or the next call.
    Status take_part(const WithAssignment& with, Execution& execution);

    /// After take_part() was ok on the last thread to return from it.
    const KMeans& answer() const { return answer_; }
    KMeans take_answer() { return std::move(answer_); }

private:
    class AllItems;

    using Lock = std::unique_lock<std::mutex>;
    using Command =
        std::function<Status(std::size_t member, ClusterAssignment& own, Execution& execution)>;

    enum class State { idle, open, running, over };

    struct Member {
        std::size_t begin = 0, end = 0;    // items
        const Command* command = nullptr;  // until it has been obeyed
        bool failed = false;
    };

    Status lead(Lock& lock, const WithAssignment& with, Execution& execution);
    Status begin(Execution& execution);
    void share_out();
    Status follow(Lock& lock, const WithAssignment& with, Execution& execution);
    Status obey(std::size_t member, ClusterAssignment& own, Execution& execution);
    Status with_items(std::size_t member, const WithAssignment& with, const UseAssignment& use);
    Status command(const Command& command, ClusterAssignment& own, Execution& execution);
    bool follower_failed() const;

    const KMeansParameters parameters_;
    const Vectors items_;
    const std::size_t most_members_;

    std::mutex mutex_;
    std::condition_variable changed_;
    State state_ = State::idle;
    bool finished_ = false;
    std::vector<Member> members_;  // the one that leads first
    std::size_t following_ = 0;    // threads that are in follow()
    std::optional<double> largest_;
    std::optional<ClusterMeans> means_;
    KMeans answer_;
};

/// A WithAssignment of the host's threads, but for the last argument. Error: memory_limit.
Status with_host_assignment(const AssignmentTask& task, const UseAssignment& use,
                            Execution& execution);

}  // namespace gputext
