#include "tests/emulator/warps.hpp"

#include <ucontext.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

uint3 threadIdx, blockIdx;
dim3 gridDim;

namespace gputext::emulator {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

/// A lane has a stack of its own, on which it runs one kernel after the other.
struct Lane {
    std::unique_ptr<char[]> stack;
    ucontext_t beginning;
    std::jmp_buf place;
    const char* instruction = nullptr;  // at which it waits; null when the kernel has returned
    std::size_t bytes = 0;
};

Lane lanes[kLanes];
unsigned current = 0;    // the lane that runs
std::jmp_buf scheduler;  // where it leaves off to
unsigned meetings = 0;
alignas(kMostBytes) unsigned char values[2][kLanes * kMostBytes];  // of this meeting, and the last
const std::function<void()>* kernel_of_lanes = nullptr;

// swapcontext() would ask the operating system for the mask of signals each time.

/// Until the lane is resumed.
void pause() {
    if (_setjmp(lanes[current].place) == 0) _longjmp(scheduler, 1);
}

void live() {
    for (;;) {
        pause();
        (*kernel_of_lanes)();
        lanes[current].instruction = nullptr;
    }
}

/// Until the lane pauses.
void resume(unsigned lane) {
    current = lane;
    if (_setjmp(scheduler) == 0) _longjmp(lanes[lane].place, 1);
}

void begin(unsigned lane) {
    current = lane;
    Lane& own = lanes[lane];
    own.stack = std::make_unique<char[]>(kStackBytes);
    getcontext(&own.beginning);
    own.beginning.uc_stack.ss_sp = own.stack.get();
    own.beginning.uc_stack.ss_size = kStackBytes;
    makecontext(&own.beginning, live, 0);
    if (_setjmp(scheduler) == 0) setcontext(&own.beginning);
}

/// Whether the lanes wait at an instruction; false if all have returned.
bool wait_together() {
    for (const Lane& lane : lanes) {
        const char* const first = lanes[0].instruction;
        if (lane.instruction == first && first == nullptr) continue;
        if (lane.instruction != nullptr && first != nullptr && lane.bytes == lanes[0].bytes &&
            std::strcmp(lane.instruction, first) == 0)
            continue;
        std::fprintf(stderr, "lanes of a warp diverge: one is at %s, another at %s\n",
                     first == nullptr ? "the end" : first,
                     lane.instruction == nullptr ? "the end" : lane.instruction);
        std::abort();
    }
    return lanes[0].instruction != nullptr;
}

void run_warp(unsigned first_thread) {
    do {
        ++meetings;
        for (unsigned i = 0; i < kLanes; ++i) {
            const unsigned lane = meetings % 2 == 0 ? i : kLanes - 1 - i;
            threadIdx = {first_thread + lane, 0, 0};
            resume(lane);
        }
    } while (wait_together());
}

}  // namespace

const void* meet(const char* instruction, const void* value, std::size_t bytes) {
    unsigned char* const all = values[meetings % 2];
    std::memcpy(all + current * bytes, value, bytes);
    lanes[current].instruction = instruction;
    lanes[current].bytes = bytes;
    pause();
    return all;
}

void run(dim3 blocks, unsigned threads, const std::function<void()>& kernel) {
    if (lanes[0].stack == nullptr)
        for (unsigned lane = 0; lane < kLanes; ++lane) begin(lane);
    kernel_of_lanes = &kernel;
    gridDim = blocks;
    for (unsigned y = 0; y < blocks.y; ++y)
        for (unsigned x = 0; x < blocks.x; ++x) {
            blockIdx = {x, y, 0};
            for (unsigned thread = 0; thread < threads; thread += kLanes) run_warp(thread);
        }
}

}  // namespace gputext::emulator
