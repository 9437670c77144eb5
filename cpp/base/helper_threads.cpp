#include "cpp/base/helper_threads.hpp"

#include <pthread.h>
#include <signal.h>
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

}  // namespace gputext
