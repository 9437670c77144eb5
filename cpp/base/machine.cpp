#include "cpp/base/machine.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

namespace gputext {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// Whether a list of names, divided by commas, has this one.
bool has_name(std::string_view names, std::string_view name) {
    while (true) {
        const std::size_t end = names.find(',');
        if (names.substr(0, end) == name) return true;
        if (end == std::string_view::npos) return false;
        names.remove_prefix(end + 1);
    }
}

/// Calls function(folder) for the folders of the control groups of this process and for those
/// around them: where version 2 is mounted with `controller` empty, else where version 1 has this
/// controller. A container may see the folder of its own group as the whole mount, and its group's
/// path as that of the host. So folders that are missing are no error; the caller finds no files
/// there.
template <class Function>
void each_group(const std::string& root, std::string_view controller, Function&& function) {
    std::string mount = root + "/sys/fs/cgroup";
    if (!controller.empty()) mount.append("/").append(controller);
    std::ifstream groups(root + "/proc/self/cgroup");
    // A line is NUMBER:CONTROLLERS:/PATH.
    for (std::string line; std::getline(groups, line);) {
        const std::size_t names = line.find(':');
        const std::size_t path = names == line.npos ? line.npos : line.find(':', names + 1);
        if (path == line.npos) continue;
        if (!has_name(std::string_view(line).substr(names + 1, path - names - 1), controller))
            continue;
        std::string group = line.substr(path + 1);
        while (group.size() > 1) {
            function(mount + group);
            group.resize(group.rfind('/'));
        }
    }
    function(mount);
}

/// The number in a file; kNoLimit where there is none, or a word such as "max".
std::uint64_t number_in(const std::string& file) {
    std::uint64_t number = 0;
    return std::ifstream(file) >> number ? number : kNoLimit;
}

/// Processors: `quota` of each `period`, in microseconds.
void lower(double& least, double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
}

}  // namespace

std::uint64_t usable_memory(const std::string& root) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    std::uint64_t least = kNoLimit;
    if (pages > 0 && page > 0) least = static_cast<std::uint64_t>(pages) * page;
    each_group(root, "", [&](const std::string& group) {
        least = std::min(least, number_in(group + "/memory.max"));
    });
    each_group(root, "memory", [&](const std::string& group) {
        least = std::min(least, number_in(group + "/memory.limit_in_bytes"));
    });
    return least == kNoLimit ? 0 : least;
}

unsigned usable_processors(const std::string& root) {
    cpu_set_t processors;
    double least = 1;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0)
        least = std::max(1, CPU_COUNT(&processors));
    each_group(root, "", [&](const std::string& group) {
        double quota = 0, period = 0;  // a quota "max" is no number
        if (std::ifstream(group + "/cpu.max") >> quota >> period) lower(least, quota, period);
    });
    each_group(root, "cpu", [&](const std::string& group) {
        double quota = 0, period = 0;  // a quota of -1 is none
        if (std::ifstream(group + "/cpu.cfs_quota_us") >> quota &&
            std::ifstream(group + "/cpu.cfs_period_us") >> period)
            lower(least, quota, period);
    });
    return static_cast<unsigned>(std::max(1.0, std::ceil(least)));
}

}  // namespace gputext
