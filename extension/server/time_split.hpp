// extension/server/time_split.hpp - reports where a call's time went, at client_min_messages =
// debug1

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
#include "portability/instr_time.h"
}

#include <cstddef>
#include <vector>

#include "cpp/base/execution.hpp"

namespace gputext {

/// Laps of one call, from its making on.
class TimeSplit {
public:
    TimeSplit();

    /// What has happened since the last lap, and perhaps its own phases.
    void lap(const char* what, const char* phases = "");
    /// Shows them all.
    void report(const char* operation);

private:
    instr_time last_;
    StringInfoData laps_;
};

/// Text for lap(), which a call has one of at most.
struct PhaseText {
    char text[1000] = "";

    /// Calls nothing of PostgreSQL.
    void set(const std::vector<PhaseTime>& times) noexcept;
    /// Appends something else that is to be told of the phases. The same.
    void add(const char* more) noexcept;
};

}  // namespace gputext
