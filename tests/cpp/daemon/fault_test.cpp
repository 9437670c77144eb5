#include "cpp/daemon/fault.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace gputext {
namespace {

void expect_fault(std::string_view text, FaultPoint point, FaultKind kind, unsigned count,
                  std::int32_t device) {
    const Result<Fault> fault = parse_fault(text);
    ASSERT_TRUE(fault.ok()) << text;
    EXPECT_EQ(fault->point, point) << text;
    EXPECT_EQ(fault->kind, kind) << text;
    EXPECT_EQ(fault->count, count) << text;
    EXPECT_EQ(fault->device, device) << text;
}

TEST(Fault, IsWrittenWithOrWithoutACountAndADevice) {
    expect_fault("in_job:crash", FaultPoint::in_job, FaultKind::crash, 1, -1);
    expect_fault("before_reply:short_file", FaultPoint::before_reply, FaultKind::short_file, 1, -1);
    expect_fault("fill_values:slow:300", FaultPoint::fill_values, FaultKind::slow, 300, -1);
    expect_fault("in_job:device_lost:1:0", FaultPoint::in_job, FaultKind::device_lost, 1, 0);
    expect_fault("in_job:out_of_memory:5:12", FaultPoint::in_job, FaultKind::out_of_memory, 5, 12);
}

TEST(Fault, HoldsUntilItHasBeenLifted) {
    Fault once = *parse_fault("in_job:hold"), twice = *parse_fault("in_job:hold:2");
    Execution execution(1);
    lift_faults();
    EXPECT_TRUE(suffer(once, FaultPoint::before_job, execution).ok());
    EXPECT_TRUE(suffer(once, FaultPoint::in_job, execution).ok());
    std::thread later(lift_faults);
    EXPECT_TRUE(suffer(twice, FaultPoint::in_job, execution).ok());
    later.join();
    Fault cancelled = *parse_fault("in_job:hold");
    execution.request_stop();
    EXPECT_EQ(suffer(cancelled, FaultPoint::in_job, execution).code(), ErrorCode::cancelled);
}

TEST(Fault, IsNothingElse) {
    for (const char* text :
         {"", "in_job", "nowhere:crash", "in_job:tea", "in_job:slow:x", "in_job:slow:1x",
          "in_job:slow:-1", "in_job:slow:99999999999", "in_job:slow::1", "in_job:slow:1:x",
          "in_job:slow:1:-1", "in_job:slow:1:2:3", "in_job:slow:1:99999999999",
          // Only a job's parts are of several devices.
          "before_job:device_lost:1:0", "accept:hang:1:0"})
        EXPECT_EQ(parse_fault(text).status().code(), ErrorCode::invalid_argument) << text;
}

}  // namespace
}  // namespace gputext
