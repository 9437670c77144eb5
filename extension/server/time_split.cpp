#include "extension/server/time_split.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace gputext {

TimeSplit::TimeSplit() {
    INSTR_TIME_SET_CURRENT(last_);
    initStringInfo(&laps_);
}

void TimeSplit::lap(const char* what, const char* phases) {
    instr_time now;
    INSTR_TIME_SET_CURRENT(now);
    instr_time passed = now;
    INSTR_TIME_SUBTRACT(passed, last_);
    last_ = now;
    appendStringInfo(&laps_, "%s%s %.1f ms", laps_.len > 0 ? "; " : "", what,
                     INSTR_TIME_GET_MILLISEC(passed));
    if (phases[0] != '\0') appendStringInfo(&laps_, " (%s)", phases);
}

void TimeSplit::report(const char* operation) {
    ereport(DEBUG1, (errmsg_internal("%s: %s", operation, laps_.data)));
}

void PhaseText::set(const std::vector<PhaseTime>& times) noexcept {
    std::size_t used = 0;
    text[0] = '\0';
    for (const PhaseTime& time : times) {
        const int length =
            std::snprintf(text + used, sizeof text - used, "%s%s %.1f", used > 0 ? ", " : "",
                          time.name.c_str(), 1000 * time.seconds);
        used = std::min(sizeof text - 1, used + static_cast<std::size_t>(std::max(length, 0)));
    }
}

void PhaseText::add(const char* more) noexcept {
    const std::size_t used = std::strlen(text);
    std::snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? "; " : "", more);
}

}  // namespace gputext
