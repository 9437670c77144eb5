// tests/live/resident_use.hpp - how statements use what gputextd keeps of a table

#pragma once

#include <ostream>
#include <string>

#include "tests/live/daemon_test.hpp"

namespace gputext::live {

/// Values that were found at gputextd, and values that had to be read.
struct Use {
    long hits = 0, misses = 0;

    friend bool operator==(const Use&, const Use&) = default;
    friend Use operator-(const Use& a, const Use& b) {
        return {a.hits - b.hits, a.misses - b.misses};
    }
};

inline void PrintTo(const Use& use, std::ostream* out) {
    *out << use.hits << " hits, " << use.misses << " misses";
}

/// Of the table so far.
inline Use use_of(Session& session, const std::string& table) {
    const auto rows = session.rows("SELECT hits, misses FROM gputext_resident WHERE relation = '" +
                                   table + "'::regclass");
    if (rows.empty()) return {};
    return {rows[0][0].as<long>(), rows[0][1].as<long>()};
}

class ResidentTest : public DaemonTest {
protected:
    /// Of what it has kept, too.
    void expect_nothing_left_when_forgotten() {
        session().rows("SELECT gputext_evict()");
        expect_nothing_left();
    }
};

}  // namespace gputext::live
