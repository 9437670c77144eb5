// extension/server/value_store.hpp - a session's conversation with the gputextd that keeps values

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/link/client.hpp"
#include "cpp/link/resident_values.hpp"

namespace gputext {

/// One connection. Functions that return false have failed: the session goes on without gputextd,
/// which is no error. They wait, serve interrupts meanwhile, and may raise the errors of those.
class ValueStore {
public:
    bool connect();
    /// When it is of no more use: gputextd forgets what was asked for.
    void close();

    /// Asks for values; `pointers` is a file of ValuePointer.
    bool find(const FindValues& wanted, int pointers);
    /// After find(): how many are missing.
    std::size_t missing() const { return found_.reply.missing; }
    /// After find(): the rows whose values are missing.
    bool missing(std::vector<std::uint32_t>& rows) const;
    /// Gives the values that were missing. `resident`: as in AddedValues.
    bool keep(std::uint64_t bytes, const FileParts& files, std::uint64_t& resident);
    /// Gives terms of texts that were missing. `resident`: as in AddedValues.
    bool add_terms(const AddTerms& terms, const TermFiles& files, std::uint64_t& resident);
    /// Takes all values.
    bool take(const TakeValues& request);
    /// After take(). The caller may move the files away.
    ValuesTaken& taken() { return taken_; }
    /// Takes the bytes that gputextd calls so; false also where it keeps them no more.
    bool take_resident(std::uint64_t resident);
    /// After take_resident(). The caller may move the files away.
    ResidentTaken& taken_kept() { return taken_kept_; }
    /// Waits until gputextd has filled the files that it calls so, or never will.
    bool await(std::uint64_t resident);

    /// Takes the terms of all texts.
    bool take_terms();
    /// After take_terms(). The caller may move it away.
    MappedTerms& taken_terms() { return taken_terms_; }

    /// Asks what it keeps.
    bool list();
    /// After list().
    const ResidentTableList& kept() const { return kept_; }
    /// Forgets what it keeps of a TOAST table of a database, or of all for 0. `values`: how many
    /// there were.
    bool forget(Oid database, Oid table, std::uint64_t& values);

private:
    template <class Event>
    bool wait_for(Event& event);

    std::unique_ptr<DaemonConnection> connection_;
    ValuesFound found_;
    ValuesTaken taken_;
    ResidentTaken taken_kept_;
    MappedTerms taken_terms_;
    ResidentTableList kept_;
};

}  // namespace gputext
