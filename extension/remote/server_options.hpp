// extension/remote/server_options.hpp - how the current user connects to a foreign server

#pragma once

#include "extension/base/postgres.hpp"

namespace gputext {

/// For PQconnectStartParams(), in the memory that is current.
struct ServerOptions {
    const char** keywords;
    const char** values;
    int connect_timeout;  // in seconds; 0: none
};

/// What the foreign-data wrapper, the server and the current user's mapping say, as dblink takes
/// it. Raises an error where the user has no right to use the server or no mapping for it, and,
/// unless he is a superuser, where the mapping has no password: nobody connects by what the
/// server's own operating system user could.
ServerOptions options_of_server(const char* name);

}  // namespace gputext
