#include "extension/server/waiting.hpp"

extern "C" {
#include "storage/latch.h"
#include "utils/wait_event.h"
}

namespace gputext {

bool wait_until_readable(int descriptor, long milliseconds) {
    const int events = WaitLatchOrSocket(
        MyLatch, WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, descriptor,
        milliseconds, PG_WAIT_EXTENSION);
    if ((events & WL_LATCH_SET) != 0) ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    return (events & WL_SOCKET_READABLE) != 0;
}

}  // namespace gputext
