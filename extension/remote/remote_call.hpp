// extension/remote/remote_call.hpp - a call that asks several servers at once
//
// Nothing here waits for a server in a way that a cancel or a timeout could not end, whatever the
// server does or fails to do: neither connecting, nor sending, nor reading. A call ends with
// end_remote_call(), or with the transaction or subtransaction that it was begun in, and its
// connections and what still runs at their other ends with it. Errors name the server.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/tuplestore.h"
}

namespace gputext {

class RemoteCall;

/// Connects to servers by the current user's mappings, to all of them at once. `operation` is shown
/// with progress. Returns the number of the call, by which the same user finds it.
int begin_remote_call(const char* operation, const char* const* servers, int count);

/// Raises an error where the current user has begun no such call, or while a function uses it that
/// has not returned.
RemoteCall& find_remote_call(int number);
int servers_of(const RemoteCall& call);

/// Has each server begin a statement, one for each server, which returns when all are sent.
void send_statements(RemoteCall& call, const char* const* statements);

/// The rows of all answers, in the order in which they come: the server's number, from 1, and the
/// columns.
void read_answers(RemoteCall& call, TupleDesc columns, Tuplestorestate* rows);

void end_remote_call(RemoteCall& call);

}  // namespace gputext
