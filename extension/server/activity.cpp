#include "extension/server/activity.hpp"

extern "C" {
#include "storage/ipc.h"
#include "utils/timestamp.h"
}

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "extension/base/failure.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/server/progress_text.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

constexpr double kSecondsBetweenShows = 0.1;
constexpr double kFastLook = 0.01;
constexpr int kMostBetweenLooks = 31;
constexpr double kSecondsBetweenLines = 1;

struct Activity {
    std::intptr_t number;
    SharedActivity shown;
};

/// Activities of this session, the innermost last; that one is shown. Operators nested deeper than
/// this in each other's inner queries are not shown.
Activity activities[8];
int depth = 0;
std::intptr_t last_number = 0;

// When it was last shown, its phase and steps then, when that phase was first shown and with how
// many steps done, and when the client was last told of it.
double shown_at = 0;
char phase_shown[sizeof SharedActivity::phase];
std::uint64_t done_shown = 0;
double phase_shown_first = 0;
std::uint64_t done_first = 0;
double told_at = 0;

// When the clock was last looked at for rows, and how many of them go by before the next look.
double looked_at = 0;
int rows_between_looks = 0;
int rows_until_look = 0;

/// Seconds of a clock that is cheap to read and ticks some hundred times a second.
double seconds_now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

SharedActivity* slot() {
    SharedState* shared = shared_state();
    const int index = session_number();
    return index >= 0 && index < shared->activities ? &shared->activity[index] : nullptr;
}

SharedActivity& innermost() {
    return activities[depth - 1].shown;
}

/// Shows the innermost activity, or that there is none. SharedActivity says what is counted.
void publish() {
    shown_at = seconds_now();
    SharedActivity* const shared = slot();
    if (shared == nullptr) return;
    SharedActivity now = depth > 0 ? innermost() : SharedActivity{};
    now.changes = ++shared->changes;
    pg_write_barrier();
    *shared = now;
    pg_write_barrier();
    ++shared->changes;
}

/// Also those within it, which an error has left.
void end_activity(void* number) {
    int level = 0;
    while (level < depth && activities[level].number != reinterpret_cast<std::intptr_t>(number))
        ++level;
    if (level == depth) return;
    depth = level;
    publish();
}

void end_at_exit(int, Datum) {
    depth = 0;
    publish();
}

void prepare_for_exit() {
    static bool prepared = false;
    if (prepared) return;
    before_shmem_exit(end_at_exit, 0);
    prepared = true;
}

// ---- Lines for the client ----

void tell_client(const SharedActivity& activity, double elapsed) {
    char progress[96];
    char training[64];
    char place[32] = "";
    format_progress(progress, activity.done, activity.total, elapsed);
    format_training(training, activity.epoch, activity.loss);
    if (activity.device >= 0) snprintf(place, sizeof place, " (device %d)", activity.device);
    if (activity.device == kOnCpu) copy_text(place, " (CPU)");
    ereport(INFO,
            (errmsg("%s: %s%s%s%s", activity.operation, activity.phase, progress, training, place),
             errhidestmt(true), errhidecontext(true)));
}

/// A phase that has begun again, with fewer steps done, is another one.
void time_phase(SharedActivity& activity) {
    const double now = seconds_now();
    if (std::strcmp(phase_shown, activity.phase) != 0 || activity.done < done_shown) {
        copy_text(phase_shown, activity.phase);
        phase_shown_first = now;
        done_first = activity.done;
    }
    done_shown = activity.done;
    const double elapsed = now - phase_shown_first;
    activity.rate = elapsed > 0 ? static_cast<double>(activity.done - done_first) / elapsed : 0;
}

void show() {
    time_phase(innermost());
    publish();
    const SharedActivity& activity = innermost();
    if (!progress_wanted() || shown_at - told_at < kSecondsBetweenLines) return;
    told_at = shown_at;
    tell_client(activity, shown_at - phase_shown_first);
}

}  // namespace

void begin_activity(const char* operation, MemoryContext context) {
    slot();  // raises what it raises before anything has begun
    prepare_for_exit();
    auto* callback = static_cast<MemoryContextCallback*>(
        MemoryContextAllocZero(context, sizeof(MemoryContextCallback)));
    if (depth == static_cast<int>(std::size(activities))) return;
    callback->func = end_activity;
    callback->arg = reinterpret_cast<void*>(++last_number);
    MemoryContextRegisterResetCallback(context, callback);
    ++depth;
    activities[depth - 1].number = last_number;
    SharedActivity& activity = innermost();
    activity = {};
    activity.pid = MyProcPid;
    activity.role = GetUserId();
    activity.device = kNowhereYet;
    activity.start = GetCurrentTimestamp();
    copy_text(activity.operation, operation);
    copy_text(activity.phase, "reading rows");
    publish();
    told_at = phase_shown_first = shown_at;
    done_first = done_shown = 0;
    rows_between_looks = rows_until_look = 0;
    copy_text(phase_shown, activity.phase);
}

void show_step(const Step& step) {
    if (depth == 0) return;
    SharedActivity& activity = innermost();
    const bool same_phase = std::strcmp(activity.phase, step.phase) == 0;
    copy_text(activity.phase, step.phase);
    activity.done = step.done;
    activity.total = step.total;
    activity.device = step.device;
    activity.epoch = step.epoch;
    activity.loss = step.loss;
    if (!same_phase || seconds_now() - shown_at >= kSecondsBetweenShows) show();
}

bool rows_are_due(std::uint64_t rows) {
    if (depth == 0) return false;
    innermost().done = innermost().rows = rows;
    if (rows_until_look == 0) return true;
    --rows_until_look;
    return false;
}

void show_rows(std::uint64_t rows, std::uint64_t bytes) {
    if (depth == 0) return;
    innermost().done = innermost().rows = rows;
    innermost().bytes = bytes;
    if (rows_until_look-- > 0) return;
    // The clock takes as long as a row that is fast, which is most of a million; some of these pass
    // between two looks.
    const double now = seconds_now();
    rows_between_looks =
        now - looked_at < kFastLook ? std::min(2 * rows_between_looks + 1, kMostBetweenLooks) : 0;
    rows_until_look = rows_between_looks;
    looked_at = now;
    if (now - shown_at >= kSecondsBetweenShows) show();
}

}  // namespace gputext
