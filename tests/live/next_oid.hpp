// tests/live/next_oid.hpp - sets the server's counter of OIDs, as if it had gone round

#pragma once

#include "tests/live/private_server.hpp"

namespace gputext::live {

/// SQL that creates set_next_oid(oid) in the database of a private server: what is given a number
/// next gets this one, unless it is in use. The module lies where the server's user sees it.
inline std::string create_set_next_oid(const PrivateServer& server) {
    const fs::path module = server.root() / "next_oid.so";
    const fs::path built = fs::read_symlink("/proc/self/exe").parent_path() / "next_oid.so";
    fs::copy_file(built, module, fs::copy_options::overwrite_existing);
    fs::permissions(module, fs::perms(0755));
    return "CREATE OR REPLACE FUNCTION set_next_oid(oid) RETURNS void STRICT LANGUAGE c AS '" +
           module.string() + "', 'set_next_oid';";
}

}  // namespace gputext::live
