#include "extension/server/shared_state.hpp"

extern "C" {
#include "miscadmin.h"
#include "storage/dsm.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"
}

#include <algorithm>

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

constexpr const char* kNameOfLocks = "gputext";

/// What lies in the main shared memory.
struct Anchor {
    dsm_handle segment;  // DSM_HANDLE_INVALID until there is one
    int tranche;         // of SharedState::lock
};

SharedState* attached = nullptr;

std::size_t state_size() {
    return add_size(offsetof(SharedState, activity), mul_size(MaxBackends, sizeof(SharedActivity)));
}

std::uint64_t random_number() {
    std::uint64_t number = 0;
    while (number == 0)
        if (!pg_strong_random(&number, sizeof number))
            ereport(ERROR,
                    (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not get a random number")));
    return number;
}

void initialize(SharedState* state, int tranche) {
    memset(state, 0, state_size());
    state->run = random_number();
    LWLockInitialize(&state->lock, tranche);
    ConditionVariableInit(&state->changed);
    state->daemon.phase = DaemonPhase::absent;
    state->since = GetCurrentTimestamp();
    for (auto& counter : state->counters) pg_atomic_init_u64(&counter, 0);
    for (auto& counter : state->fallbacks) pg_atomic_init_u64(&counter, 0);
    pg_atomic_init_u32(&state->helper_threads, 0);
    state->activities = MaxBackends;
}

/// While an upgrade is installed and the server not restarted, sessions of both releases run. They
/// share nothing if they differ in what is shared.
void name_state(char (&name)[64]) {
    snprintf(name, sizeof name, "gputext %d.%zu.%zu", kSharedStateVersion,
             offsetof(SharedState, activity), sizeof(SharedActivity));
}

/// Requires AddinShmemInitLock.
SharedState* make_or_attach(Anchor* anchor) {
    if (anchor->segment != DSM_HANDLE_INVALID) {
        dsm_segment* segment = dsm_attach(anchor->segment);
        if (segment == nullptr)
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                            errmsg("could not map the shared memory of gputext")));
        dsm_pin_mapping(segment);
        return static_cast<SharedState*>(dsm_segment_address(segment));
    }
    dsm_segment* segment = dsm_create(state_size(), 0);
    auto* state = static_cast<SharedState*>(dsm_segment_address(segment));
    initialize(state, anchor->tranche);
    dsm_pin_segment(segment);
    dsm_pin_mapping(segment);
    anchor->segment = dsm_segment_handle(segment);
    return state;
}

}  // namespace

SharedState* shared_state() {
    if (attached != nullptr) return attached;
    char name[64];
    name_state(name);
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    bool found = false;
    auto* anchor = static_cast<Anchor*>(ShmemInitStruct(name, sizeof(Anchor), &found));
    if (!found) {
        anchor->segment = DSM_HANDLE_INVALID;
        anchor->tranche = new_kind_of_locks(kNameOfLocks);
    }
    SharedState* state = make_or_attach(anchor);
    name_kind_of_locks(anchor->tranche, kNameOfLocks);
    LWLockRelease(AddinShmemInitLock);
    return attached = state;
}

const char* name_of(Fallback reason) {
    switch (reason) {
        case Fallback::no_device:
            return "no device";
        case Fallback::no_worker_slot:
            return "no free background worker";
        case Fallback::not_ready:
            return "gputextd not ready";
        case Fallback::out_of_memory:
            return "out of device memory";
        case Fallback::device_error:
            return "device error";
        case Fallback::daemon_lost:
            return "gputextd ended";
        case Fallback::count:
            break;
    }
    pg_unreachable();
}

std::uint64_t server_run() {
    return shared_state()->run;
}

unsigned take_helper_threads(unsigned wanted, unsigned most) {
    pg_atomic_uint32* const threads = &shared_state()->helper_threads;
    uint32 taken = pg_atomic_read_u32(threads);
    for (;;) {
        const unsigned take = std::min(wanted, taken < most ? most - taken : 0);
        if (take == 0 || pg_atomic_compare_exchange_u32(threads, &taken, taken + take)) return take;
    }
}

void give_helper_threads_back(unsigned threads) {
    if (threads > 0)
        pg_atomic_fetch_sub_u32(&shared_state()->helper_threads, static_cast<int32>(threads));
}

void add_to_counter(Counter counter, std::uint64_t amount) {
    pg_atomic_fetch_add_u64(&shared_state()->counters[static_cast<int>(counter)],
                            static_cast<int64>(amount));
}

void count_fallback(Fallback reason) {
    pg_atomic_fetch_add_u64(&shared_state()->fallbacks[static_cast<int>(reason)], 1);
}

}  // namespace gputext
