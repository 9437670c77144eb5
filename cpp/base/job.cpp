#include "cpp/base/job.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <system_error>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/helper_threads.hpp"

namespace gputext {
namespace {

void signal_ready(int fd) {
    const std::uint64_t one = 1;
    // A new eventfd takes one count always; there is nothing to do about a failure here.
    [[maybe_unused]] const auto written = write(fd, &one, sizeof one);
}

}  // namespace

std::unique_ptr<Job> Job::start(unsigned threads, Work work) {
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return nullptr;
    std::unique_ptr<Job> job(new (std::nothrow) Job(threads, fd));
    if (job == nullptr) {
        close(fd);
        return nullptr;
    }
    try {
        job->thread_ = start_thread_without_signals([self = job.get(), work = std::move(work)] {
            self->status_ = status_or_exception([&] { return work(self->execution_); });
            signal_ready(self->ready_fd_);
        });
    } catch (const std::system_error&) {
        return nullptr;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    return job;
}

Job::~Job() {
    execution_.request_stop();
    if (thread_.joinable()) thread_.join();
    close(ready_fd_);
}

const Status& Job::wait() {
    if (thread_.joinable()) thread_.join();
    return status_;
}

}  // namespace gputext
