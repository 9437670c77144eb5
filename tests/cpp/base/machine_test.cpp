#include "cpp/base/machine.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace gputext {
namespace {

/// A folder that stands for the root of the file system.
class MachineTest : public testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/gputext-machine-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root = name;
        // What the machine has, and the processors that the test may use.
        machine_memory = usable_memory(root);
        machine_processors = usable_processors(root);
    }
    void TearDown() override { std::filesystem::remove_all(root); }

    void write(const std::string& file, const std::string& text) {
        const std::filesystem::path path = root + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }

    std::string root;
    std::uint64_t machine_memory = 0;
    unsigned machine_processors = 0;
};

TEST_F(MachineTest, HasMemoryAndProcessors) {
    EXPECT_GT(machine_memory, std::uint64_t{1} << 26);
    EXPECT_GE(machine_processors, 1u);
    EXPECT_LE(usable_memory(), machine_memory);
    EXPECT_LE(usable_processors(), machine_processors);
}

TEST_F(MachineTest, IsTheMachineWithoutLimits) {
    write("/proc/self/cgroup", "0::/system.slice/postgresql.service\n");
    write("/sys/fs/cgroup/system.slice/postgresql.service/memory.max", "max\n");
    write("/sys/fs/cgroup/system.slice/postgresql.service/cpu.max", "max 100000\n");
    EXPECT_EQ(usable_memory(root), machine_memory);
    EXPECT_EQ(usable_processors(root), machine_processors);
}

TEST_F(MachineTest, ObeysItsGroup) {
    write("/proc/self/cgroup", "0::/system.slice/postgresql.service\n");
    write("/sys/fs/cgroup/system.slice/postgresql.service/memory.max", "16777216\n");
    write("/sys/fs/cgroup/system.slice/postgresql.service/cpu.max", "50000 100000\n");
    EXPECT_EQ(usable_memory(root), 16777216u);
    EXPECT_EQ(usable_processors(root), 1u);
}

TEST_F(MachineTest, ObeysTheGroupsAroundIt) {
    write("/proc/self/cgroup", "0::/a/b/c\n");
    write("/sys/fs/cgroup/a/b/c/memory.max", "33554432\n");
    write("/sys/fs/cgroup/a/memory.max", "16777216\n");
    EXPECT_EQ(usable_memory(root), 16777216u);
    write("/sys/fs/cgroup/memory.max", "8388608\n");  // as within a container
    EXPECT_EQ(usable_memory(root), 8388608u);
}

TEST_F(MachineTest, FindsItsGroupWhereAContainerShowsItAsTheWholeMount) {
    write("/proc/self/cgroup", "0::/docker/0123456789ab\n");
    write("/sys/fs/cgroup/memory.max", "16777216\n");
    EXPECT_EQ(usable_memory(root), 16777216u);
}

TEST_F(MachineTest, ObeysVersionOne) {
    write("/proc/self/cgroup", "5:memory:/a\n3:cpuacct,cpu:/a\n1:name=systemd:/a\n");
    write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "16777216\n");
    write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
    write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(usable_memory(root), 16777216u);
    EXPECT_EQ(usable_processors(root), 1u);
    write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    EXPECT_EQ(usable_memory(root), machine_memory);
    EXPECT_EQ(usable_processors(root), machine_processors);
}

TEST_F(MachineTest, RoundsAShareOfProcessorsUp) {
    write("/proc/self/cgroup", "0::/\n");
    write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    EXPECT_EQ(usable_processors(root), std::min(2u, machine_processors));
    write("/sys/fs/cgroup/cpu.max", "10000 100000\n");
    EXPECT_EQ(usable_processors(root), 1u);
}

TEST_F(MachineTest, IgnoresWhatItDoesNotUnderstand) {
    write("/proc/self/cgroup", "nonsense\n1:\n::\n0::\n");
    write("/sys/fs/cgroup/memory.max", "\n");
    write("/sys/fs/cgroup/cpu.max", "100000 0\n");
    EXPECT_EQ(usable_memory(root), machine_memory);
    EXPECT_EQ(usable_processors(root), machine_processors);
}

}  // namespace
}  // namespace gputext
