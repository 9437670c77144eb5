#include "extension/server/daemon_log.hpp"

#include <unistd.h>

#include <cerrno>

#include "extension/base/postgres.hpp"

namespace gputext {
namespace {

struct Level {
    const char* prefix;
    int level;
};

constexpr Level kLevels[] = {{"DEBUG1 ", DEBUG1}, {"LOG ", LOG}, {"WARNING ", WARNING}};

}  // namespace

bool DaemonLog::forward(int descriptor) {
    for (;;) {
        const ssize_t count = read(descriptor, buffer_ + used_, sizeof buffer_ - 1 - used_);
        if (count == 0) return false;
        if (count < 0) return errno == EAGAIN || errno == EINTR;
        used_ += static_cast<std::size_t>(count);
        log_lines();
    }
}

void DaemonLog::log_lines() {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < used_; ++at) {
        if (buffer_[at] != '\n') continue;
        buffer_[at] = '\0';
        log_line(buffer_ + begin);
        begin = at + 1;
    }
    used_ -= begin;
    memmove(buffer_, buffer_ + begin, used_);
    if (used_ < sizeof buffer_ - 1) return;
    buffer_[used_] = '\0';  // not a line of gputextd's
    log_line(buffer_);
    used_ = 0;
}

/// What has no level came from a library's own messages.
void DaemonLog::log_line(char* line) {
    int level = LOG;
    for (const Level& known : kLevels) {
        const std::size_t length = strlen(known.prefix);
        if (strncmp(line, known.prefix, length) != 0) continue;
        level = known.level;
        line += length;
        break;
    }
    for (char* c = line; *c != '\0'; ++c)
        if (*c < ' ' || *c > '~') *c = '?';  // whatever the server's encoding is
    if (level == WARNING) strlcpy(last_warning_, line, sizeof last_warning_);
    ereport(level, (errmsg_internal("%s", line)));
}

}  // namespace gputext
