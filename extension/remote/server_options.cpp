#include "extension/remote/server_options.hpp"

extern "C" {
#include "access/reloptions.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "mb/pg_wchar.h"
#include "utils/syscache.h"
}

#include <libpq-fe.h>

#include <cstring>

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

const PQconninfoOption* option_of(const char* name) {
    static const PQconninfoOption* all = nullptr;
    if (all == nullptr) all = PQconndefaults();
    if (all == nullptr) ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    for (const PQconninfoOption* option = all; option->keyword != nullptr; ++option)
        if (std::strcmp(option->keyword, name) == 0) return option;
    return nullptr;
}

/// Whether libpq takes the option, and from there: names and secrets of users from a user mapping,
/// all others from elsewhere. The encoding is set by this code.
bool is_of_connection(const char* name, bool in_mapping) {
    const PQconninfoOption* const option = option_of(name);
    if (option == nullptr || std::strchr(option->dispchar, 'D') != nullptr ||
        std::strcmp(name, "client_encoding") == 0)
        return false;
    const bool is_of_user =
        std::strcmp(name, "user") == 0 || std::strchr(option->dispchar, '*') != nullptr;
    return is_of_user == in_mapping;
}

class OptionList {
public:
    OptionList(ServerOptions& to, int most) : to_(to) {
        to_.keywords = static_cast<const char**>(palloc0(sizeof(char*) * (most + 1)));
        to_.values = static_cast<const char**>(palloc0(sizeof(char*) * (most + 1)));
    }
    void add(const char* keyword, const char* value) {
        to_.keywords[count_] = keyword;
        to_.values[count_++] = value;
    }
    void add(List* options, bool in_mapping) {
        ListCell* cell;
        foreach (cell, options) {
            auto* const option = static_cast<DefElem*>(lfirst(cell));
            if (is_of_connection(option->defname, in_mapping))
                add(option->defname, defGetString(option));
        }
    }

private:
    ServerOptions& to_;
    int count_ = 0;
};

bool has_mapping(Oid user, Oid server) {
    return SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(user),
                                 ObjectIdGetDatum(server));
}

const char* value_of(const ServerOptions& options, const char* keyword) {
    const char* found = nullptr;
    for (int i = 0; options.keywords[i] != nullptr; ++i)
        if (std::strcmp(options.keywords[i], keyword) == 0) found = options.values[i];
    return found;
}

}  // namespace

ServerOptions options_of_server(const char* name) {
    const ForeignServer* const server = GetForeignServerByName(name, true);
    if (server == nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("server \"%s\" does not exist", name)));
    if (!has_mapping(GetUserId(), server->serverid) && !has_mapping(InvalidOid, server->serverid))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("server \"%s\": user mapping not found for \"%s\"", name,
                               GetUserNameFromId(GetUserId(), false))));
    if (!may_use_server(server->serverid))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("server \"%s\": permission denied for foreign server", name)));
    const UserMapping* const mapping = GetUserMapping(GetUserId(), server->serverid);
    const ForeignDataWrapper* const wrapper = GetForeignDataWrapper(server->fdwid);

    ServerOptions options = {};
    OptionList list(options, list_length(wrapper->options) + list_length(server->options) +
                                 list_length(mapping->options) + 2);
    list.add("fallback_application_name", "gputext");
    list.add(wrapper->options, false);
    list.add(server->options, false);
    list.add(mapping->options, true);
    list.add("client_encoding", GetDatabaseEncodingName());

    const char* const password = value_of(options, "password");
    if (!superuser() && (password == nullptr || *password == '\0'))
        ereport(ERROR,
                (errcode(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED),
                 errmsg("server \"%s\": a password is required", name),
                 errdetail("Those who are no superusers need a password in their user mapping.")));
    const char* const timeout = value_of(options, "connect_timeout");
    if (timeout != nullptr) options.connect_timeout = atoi(timeout);
    return options;
}

}  // namespace gputext
