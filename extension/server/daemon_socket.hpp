// extension/server/daemon_socket.hpp - where gputextd listens

#pragma once

namespace gputext {

/// Relative to the data directory, where every process of the server works. Base backups and
/// pg_rewind leave out what is named so.
inline constexpr char kDaemonSocket[] = "pgsql_tmp_gputext.sock";
inline constexpr char kDaemonSocketLock[] = "pgsql_tmp_gputext.sock.lock";  // ListeningSocket's

}  // namespace gputext
