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
    /// Gives the values that were missing. `resident`: as in KeptValues.
    bool keep(std::uint64_t bytes, const FileParts& files, std::uint64_t& resident);
    /// Takes all values.
    bool take();
    /// After take(), with their bytes. The caller may move the files and the mapping away.
    ValuesTaken& taken() { return taken_; }
    MappedFile& taken_bytes() { return taken_bytes_; }

    /// Asks what it keeps.
    bool list();
    /// After list().
    const TablesKept& kept() const { return kept_; }
    /// Forgets what it keeps of a TOAST table of a database, or of all for 0. `values`: how many
    /// there were.
    bool forget(Oid database, Oid table, std::uint64_t& values);

private:
    template <class Event>
    bool wait_for(Event& event);

    std::unique_ptr<DaemonConnection> connection_;
    ValuesFound found_;
    ValuesTaken taken_;
    MappedFile taken_bytes_;
    TablesKept kept_;
};

}  // namespace gputext
