#include "cpp/base/helper_threads.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace gputext {
namespace {

/// Blocks every signal on this thread, and so on threads that it starts, until destroyed.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace

std::thread start_thread_without_signals(std::function<void()> body) {
    const SignalsBlocked blocked;
    return std::thread(std::move(body));
}

Crew::~Crew() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    begins_.notify_all();
    threads_.join();
}

void Crew::run(std::size_t most, const Work& work) noexcept {
    if (most > threads_.size()) threads_.start(most - threads_.size(), wait_);
    {
        const std::lock_guard lock(mutex_);
        work_ = &work;
        working_ = wanted_ = std::min(most, threads_.size());
        ++calls_;
    }
    begins_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    ends_.wait(lock, [this] { return working_ == 0; });
}

void Crew::wait(unsigned thread) {
    std::unique_lock lock(mutex_);
    for (std::size_t seen = 0;;) {
        begins_.wait(lock, [&] { return over_ || (calls_ != seen && thread <= wanted_); });
        if (over_) return;
        seen = calls_;
        lock.unlock();
        (*work_)(thread);
        lock.lock();
        if (--working_ == 0) ends_.notify_one();
    }
}

}  // namespace gputext
