#include "extension/base/postgres.hpp"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "utils/acl.h"
#include "utils/guc.h"
}

#include <algorithm>
#include <climits>
#include <exception>
#include <span>

#include "cpp/base/machine.hpp"
#include "cpp/link/protocol.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/server/release.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostHelperThreads = 65536;
constexpr int kMostResidentByDefault = 8 * 1024 * 1024;  // kB

int cpu_threads_setting = 0;
int max_cpu_threads_setting = 0;
int max_helper_threads_setting = -1;
int read_workers_setting = -1;
int resident_memory_kb = -1;
int scan_memory_kb = 64 * 1024;
int host_memory_limit_kb = 4 * 1024 * 1024;
int max_host_memory_kb = 0;
int device = static_cast<int>(DeviceSetting::automatic);
int gpu_memory_limit_kb = 0;
bool progress = false;
double near_duplicate_threshold_setting = 0.05;
bool build_hnsw = false;
int hnsw_exact_rows_setting = 0;
int plan_nearest_setting = static_cast<int>(PlanNearest::off);
char* fault = nullptr;
char* version = nullptr;

const config_enum_entry kDevices[] = {{"auto", static_cast<int>(DeviceSetting::automatic), false},
                                      {"gpu", static_cast<int>(DeviceSetting::gpu), false},
                                      {"cpu", static_cast<int>(DeviceSetting::cpu), false},
                                      {nullptr, 0, false}};
const config_enum_entry kPlanNearest[] = {{"off", static_cast<int>(PlanNearest::off), false},
                                          {"on", static_cast<int>(PlanNearest::on), false},
                                          {"force", static_cast<int>(PlanNearest::force), false},
                                          {nullptr, 0, false}};
/// Values that 0.1.0 knew. No value has an effect any more.
enum class TrieOutput { bytes, summary };
int trie_output = static_cast<int>(TrieOutput::bytes);
const config_enum_entry kTrieOutputs[] = {{"bytes", static_cast<int>(TrieOutput::bytes), false},
                                          {"summary", static_cast<int>(TrieOutput::summary), false},
                                          {nullptr, 0, false}};
int fake_devices_setting = 0;
bool allow_faults_setting = false;

struct Machine {
    int processors;
    std::uint64_t memory;  // bytes; 0 where the system does not tell it
};

/// What this process may use of the machine, as it was when it first asked.
const Machine& machine() {
    static const Machine found = []() noexcept -> Machine {
        try {
            return {std::min(static_cast<int>(usable_processors()), kMostThreads), usable_memory()};
        } catch (const std::exception&) {  // no memory
            return {1, 0};
        }
    }();
    return found;
}

/// That part of the memory; `otherwise` where the system does not tell it.
int part_of_memory_kb(unsigned parts, int otherwise) {
    if (machine().memory == 0) return otherwise;
    const std::uint64_t part = machine().memory / 1024 / parts;
    return static_cast<int>(std::clamp<std::uint64_t>(part, 1024, MAX_KILOBYTES));
}

/// gputext.max_host_memory in kB, with 0 replaced by half of the memory.
int most_host_memory_kb() {
    return max_host_memory_kb > 0 ? max_host_memory_kb : part_of_memory_kb(2, MAX_KILOBYTES);
}

/// Only a SET is refused. Values from elsewhere may be there before the maximum is known, and count
/// as the maximum.
bool check_host_memory_limit(int* limit_kb, void**, GucSource source) {
    if (source < PGC_S_INTERACTIVE || source == PGC_S_TEST || InitializingParallelWorker)
        return true;
    const int most = most_host_memory_kb();
    if (*limit_kb <= most) return true;
    GUC_check_errmsg("gputext.host_memory_limit must not be above gputext.max_host_memory");
    GUC_check_errdetail("%d kB are wanted, and the maximum is %d kB.", *limit_kb, most);
    GUC_check_errhint("A superuser may raise gputext.max_host_memory.");
    return false;
}

/// Edit rates from 0.5 on do not tell documents apart.
bool check_near_duplicate_threshold(double* threshold, void**, GucSource) {
    if (*threshold < 0.5) return true;
    GUC_check_errdetail("The edit rate must be below 0.5.");
    return false;
}

// ---- What a connection's options may not set ----

/// Settings of superusers, and of those who were granted SET.
const char* const kLimits[] = {"gputext.max_cpu_threads", "gputext.max_host_memory",
                               "gputext.inject_fault"};
/// Settings of the server's configuration alone.
const char* const kServerSettings[] = {"gputext.max_helper_threads", "gputext.resident_memory",
                                       "gputext.fake_devices", "gputext.allow_faults"};

bool is_among(const char* name, std::span<const char* const> names) {
    return std::any_of(names.begin(), names.end(),
                       [name](const char* other) { return pg_strcasecmp(name, other) == 0; });
}

bool may_set(const config_generic& setting) {
    if (setting.reset_scontext != PGC_BACKEND) return true;
    return IsTransactionState() &&
           pg_parameter_aclcheck(setting.name, setting.reset_srole, ACL_SET) == ACLCHECK_OK;
}

}  // namespace

void refuse_settings_of_connection() {
    int count = 0;
    config_generic* const* const settings = all_settings(count);
    for (int i = 0; i < count; ++i) {
        const config_generic& setting = *settings[i];
        // The server keeps the name and value of a setting that nobody has defined yet.
        if ((setting.flags & GUC_CUSTOM_PLACEHOLDER) == 0 || setting.reset_source != PGC_S_CLIENT)
            continue;
        const bool is_refused = is_among(setting.name, kServerSettings) ||
                                (is_among(setting.name, kLimits) && !may_set(setting));
        if (!is_refused) continue;
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("permission denied to set parameter \"%s\"", setting.name),
                        errdetail("The options of the connection set it, and gputext does not work "
                                  "without the value that the server has for it."),
                        errhint("Connect without this option (PGOPTIONS, or options=...).")));
    }
}

void define_settings() {
    DefineCustomIntVariable(
        "gputext.cpu_threads",
        "Sets the number of threads that a statement of gputext may compute on.",
        "0 takes as many as there are processors. gputext.max_cpu_threads bounds it.",
        &cpu_threads_setting, 0, 0, kMostThreads, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "gputext.max_cpu_threads",
        "Sets the maximum number of threads that a statement of gputext computes on, whatever "
        "gputext.cpu_threads is.",
        "0 takes as many as there are processors.", &max_cpu_threads_setting, 0, 0, kMostThreads,
        PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "gputext.max_helper_threads",
        "Sets the maximum number of threads of all sessions together that help statements of "
        "gputext to compute.",
        "Each statement computes on one thread beside them. -1 takes twice as many as there are "
        "processors.",
        &max_helper_threads_setting, -1, -1, kMostHelperThreads, PGC_SIGHUP, 0, nullptr, nullptr,
        nullptr);
    DefineCustomIntVariable(
        "gputext.read_workers",
        "Sets the maximum number of parallel workers that a statement of gputext reads rows in.",
        "-1 takes as many as max_parallel_workers. 0 reads in the session alone.",
        &read_workers_setting, -1, -1, kMostThreads, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "gputext.max_host_memory", "Sets the most that gputext.host_memory_limit may be set to.",
        "0 is half of the memory of the machine, or of the container or service.",
        &max_host_memory_kb, 0, 0, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB, nullptr, nullptr,
        nullptr);
    DefineCustomIntVariable(
        "gputext.host_memory_limit",
        "Sets the memory that the rows of an inner query may take before they go to a temporary "
        "file.",
        "What is computed from the rows may take as much again. At most gputext.max_host_memory "
        "counts.",
        &host_memory_limit_kb, 4 * 1024 * 1024, 1024, MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB,
        check_host_memory_limit, nullptr, nullptr);
    DefineCustomIntVariable(
        "gputext.resident_memory",
        "Sets the memory in which gputextd keeps values that have been read, so that later "
        "statements need not read them.",
        "-1 is an eighth of that memory, at most 8GB. 0 keeps nothing.", &resident_memory_kb, -1,
        -1, MAX_KILOBYTES, PGC_SIGHUP, GUC_UNIT_KB, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "gputext.scan_memory",
        "Sets the memory in which a session keeps what scans of whole tables have given, so that a "
        "table that has not changed is not scanned again.",
        "0 keeps nothing, so that each statement scans its tables.", &scan_memory_kb, 64 * 1024, 0,
        MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB, nullptr, nullptr, nullptr);
    DefineCustomEnumVariable(
        "gputext.device", "Sets where a statement of gputext computes.",
        "auto takes a GPU for jobs that are large enough to gain by it, and the CPU where there is "
        "no GPU; gpu fails there.",
        &device, device, kDevices, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("gputext.gpu_memory_limit",
                            "Sets the memory of a GPU that a statement of gputext may take.",
                            "0 takes as much as is free.", &gpu_memory_limit_kb, 0, 0,
                            MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable(
        "gputext.progress",
        "Sends the client a line a second that says how far a running statement of gputext is.",
        nullptr, &progress, false, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomEnumVariable(
        "gputext.plan_nearest",
        "Sets whether the planner may find the nearest rows for all rows of a join, or for one "
        "vector, at once.",
        "Of subqueries LATERAL (... ORDER BY vector <=> vector LIMIT k), and of statements. on "
        "takes the plan where it costs less, force whatever it costs.",
        &plan_nearest_setting, plan_nearest_setting, kPlanNearest, PGC_USERSET, GUC_EXPLAIN,
        nullptr, nullptr, nullptr);
    DefineCustomBoolVariable(
        "gputext.build_hnsw",
        "Sets whether gputext builds indexes of pgvector's access method hnsw in its place.",
        "Of the types vector and halfvec. They are pgvector's indexes as others are.", &build_hnsw,
        false, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "gputext.hnsw_exact_rows",
        "Sets the number of rows up to which an HNSW index is made of exact nearest rows.",
        "Further rows are compared with some of those before them. 0 takes 262144 rows, and on a "
        "GPU all rows of up to 64 dimensions or by the metric l1.",
        &hnsw_exact_rows_setting, 0, 0, INT_MAX, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomRealVariable(
        "gputext.near_duplicate_threshold",
        "Sets the edit rate up to which documents are near-duplicates for the operator ~=.",
        "Exclusion constraints have a threshold of their own, the option threshold.",
        &near_duplicate_threshold_setting, 0.05, 0, 0.5, PGC_USERSET, GUC_EXPLAIN,
        check_near_duplicate_threshold, nullptr, nullptr);
    DefineCustomEnumVariable(
        "gputext.trie_output", "Has no effect; configurations and dumps of gputext 0.1.0 set it.",
        "The text form of a dictionary is always all of it; trie_summary() gives a line about it.",
        &trie_output, trie_output, kTrieOutputs, PGC_USERSET, GUC_NOT_IN_SAMPLE, nullptr, nullptr,
        nullptr);
    // Installation and update scripts compare it with their own.
    DefineCustomStringVariable(
        "gputext.version", "Shows the version of the gputext library that the session has loaded.",
        nullptr, &version, module_version(), PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
        nullptr, nullptr, nullptr);
    DefineCustomStringVariable(
        "gputext.inject_fault", "For tests: the fault that each job asks gputextd for.",
        "POINT:KIND or POINT:KIND:COUNT. gputextd refuses it unless gputext.allow_faults is on.",
        &fault, "", PGC_SUSET, GUC_NOT_IN_SAMPLE, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "gputext.fake_devices",
        "Sets the number of devices without a GPU that gputextd presents in place of its GPUs.",
        "For tests. 0 leaves gputextd its GPUs.", &fake_devices_setting, 0, 0,
        static_cast<int>(kMaxDevices), PGC_SIGHUP, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, nullptr,
        nullptr, nullptr);
    DefineCustomBoolVariable("gputext.allow_faults",
                             "Lets superusers ask gputextd for faults to happen.", "For tests.",
                             &allow_faults_setting, false, PGC_SIGHUP,
                             GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, nullptr, nullptr, nullptr);
    MarkGUCPrefixReserved("gputext");
}

unsigned cpu_threads() {
    const int most = max_cpu_threads_setting > 0 ? max_cpu_threads_setting : machine().processors;
    const int wanted = cpu_threads_setting > 0 ? cpu_threads_setting : machine().processors;
    return static_cast<unsigned>(std::min(wanted, most));
}

unsigned max_helper_threads() {
    return static_cast<unsigned>(max_helper_threads_setting >= 0 ? max_helper_threads_setting
                                                                 : 2 * machine().processors);
}

unsigned read_workers() {
    if (IsParallelWorker()) return 0;
    const int wanted = read_workers_setting >= 0 ? read_workers_setting : max_parallel_workers;
    return static_cast<unsigned>(std::min(wanted, max_parallel_workers));
}

std::size_t host_memory_limit() {
    return static_cast<std::size_t>(std::min(host_memory_limit_kb, most_host_memory_kb())) * 1024;
}

std::uint64_t resident_memory() {
    const int kb = resident_memory_kb >= 0
                       ? resident_memory_kb
                       : std::min(part_of_memory_kb(8, 0), kMostResidentByDefault);
    return static_cast<std::uint64_t>(kb) * 1024;
}

std::size_t scan_memory() {
    return static_cast<std::size_t>(scan_memory_kb) * 1024;
}

DeviceSetting device_setting() {
    return static_cast<DeviceSetting>(device);
}

std::uint64_t gpu_memory_limit() {
    return static_cast<std::uint64_t>(gpu_memory_limit_kb) * 1024;
}

bool progress_wanted() {
    return progress;
}

bool build_hnsw_wanted() {
    return build_hnsw;
}

std::size_t hnsw_exact_rows() {
    return static_cast<std::size_t>(hnsw_exact_rows_setting);
}

PlanNearest plan_nearest() {
    return static_cast<PlanNearest>(plan_nearest_setting);
}

double near_duplicate_threshold() {
    return near_duplicate_threshold_setting;
}

const char* injected_fault() {
    return fault;
}

DaemonSettings daemon_settings() {
    return {fake_devices_setting, allow_faults_setting, resident_memory()};
}

}  // namespace gputext
