#include "extension/server/value_store.hpp"

extern "C" {
#include "utils/timestamp.h"
}

#include <cstring>
#include <utility>

#include "extension/base/failure.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/session_job.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// gputextd answers after it has done what was asked before, also by other sessions, a fraction of
/// a second for each gigabyte.
constexpr long kTimeToAnswer = 10000;  // milliseconds

const char* const kPhase = "asking for values that gputextd keeps";

void report(const Failure& failure) {
    ereport(DEBUG1, (errmsg("reading values without gputextd: %s", failure.message)));
}

bool succeeds(auto&& work) {
    Failure failure;
    if (attempt(failure, work)) return true;
    report(failure);
    return false;
}

/// Ok with the event, or without one so far. Failed is an error.
template <class Event>
Status receive(DaemonConnection& connection, Event& event, bool& received) {
    for (;;) {
        Result<std::optional<DaemonEvent>> next = connection.receive();
        if (!next.ok()) return next.status();
        if (!next->has_value()) return {};
        if (const auto* failed = std::get_if<Failed>(&**next)) return failed->status;
        if (auto* answer = std::get_if<Event>(&**next)) {
            event = std::move(*answer);
            received = true;
            return {};
        }
    }
}

}  // namespace

bool ValueStore::connect() {
    Failure failure;
    if (!connect_to_daemon(connection_, failure)) {
        report(failure);
        return false;
    }
    const char* const fault = injected_fault();
    return std::strstr(fault, "_values:") == nullptr ||
           succeeds([&] { return connection_->inject_fault(fault); });
}

template <class Event>
bool ValueStore::wait_for(Event& event) {
    const TimestampTz begin = GetCurrentTimestamp();
    for (bool received = false;;) {
        if (!succeeds([&] { return receive(*connection_, event, received); })) return false;
        if (received) return true;
        if (TimestampDifferenceMilliseconds(begin, GetCurrentTimestamp()) > kTimeToAnswer) {
            doubt_daemon();
            ereport(DEBUG1, (errmsg("reading values without gputextd, which does not answer")));
            return false;
        }
        show_step({kPhase, 0, 0, kNowhereYet});
        wait_until_readable(connection_->fd(), kLookEveryMilliseconds);
    }
}

void ValueStore::close() {
    connection_.reset();
}

bool ValueStore::find(const FindValues& wanted, int pointers) {
    return succeeds([&] { return connection_->find_values(wanted, pointers); }) && wait_for(found_);
}

bool ValueStore::missing(std::vector<std::uint32_t>& rows) const {
    return succeeds([&]() -> Status {
        auto missing = found_.missing();
        if (!missing.ok()) return missing.status();
        rows = std::move(*missing);
        return {};
    });
}

bool ValueStore::keep(std::uint64_t bytes, const FileParts& files, std::uint64_t& resident) {
    AddedValues kept;
    if (!succeeds([&] { return connection_->add_values(bytes, files); }) || !wait_for(kept))
        return false;
    resident = kept.resident;
    return true;
}

bool ValueStore::add_terms(const AddTerms& terms, const TermFiles& files, std::uint64_t& resident) {
    AddedValues kept;
    if (!succeeds([&] { return connection_->add_terms(terms, files); }) || !wait_for(kept))
        return false;
    resident = kept.resident;
    return true;
}

bool ValueStore::take(const TakeValues& request) {
    return succeeds([&] { return connection_->take_values(request); }) && wait_for(taken_);
}

bool ValueStore::take_resident(std::uint64_t resident) {
    return succeeds([&] { return connection_->take_resident(resident); }) &&
           wait_for(taken_kept_) && taken_kept_.reply.there;
}

bool ValueStore::await(std::uint64_t resident) {
    AwaitedValues awaited;
    return succeeds([&] { return connection_->await_values(resident); }) && wait_for(awaited);
}

bool ValueStore::take_terms() {
    TermsTaken taken;
    return succeeds([&] { return connection_->take_terms(); }) && wait_for(taken) &&
           succeeds([&]() -> Status {
               auto mapped = taken.map();
               if (!mapped.ok()) return mapped.status();
               taken_terms_ = std::move(*mapped);
               return {};
           });
}

bool ValueStore::list() {
    return succeeds([&] { return connection_->ask_resident_tables(); }) && wait_for(kept_);
}

bool ValueStore::forget(Oid database, Oid table, std::uint64_t& values) {
    ForgottenValues forgotten;
    if (!succeeds([&] { return connection_->forget_values(database, table); }) ||
        !wait_for(forgotten))
        return false;
    values = forgotten.values;
    return true;
}

}  // namespace gputext
