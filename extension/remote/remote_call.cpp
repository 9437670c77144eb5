// extension/remote/remote_call.cpp - gputext_connect(), gputext_send(), gputext_answers(),
// gputext_disconnect(): calls that ask several servers at once, for the functions _distributed of
// SQL
//
// Nothing here waits for a server in a way that a cancel or a timeout could not end, whatever the
// server does or fails to do: neither connecting, nor sending, nor reading. A call ends with
// gputext_disconnect(), or with the transaction or subtransaction that it was begun in, and its
// connections and what still runs at their other ends with it. Errors name the server.

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"
}

#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <memory>
#include <mutex>

#include "cpp/base/helper_threads.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/local_setting.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/remote/server_options.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

struct RemoteConnection {
    const char* server;
    PGconn* libpq;
    PGresult* result;  // that is being read
    bool has_descriptor;
    TimestampTz connect_until;  // 0: no limit
};

struct RemoteCall {
    RemoteCall* next;
    MemoryContext context;  // it lies in this one itself
    int number;
    Oid user;
    SubTransactionId level;
    SubTransactionId used_in;  // by a function that has not returned; invalid: by none
    const char* operation;
    int count;
    RemoteConnection* connections;
};

RemoteCall* calls = nullptr;

// ---- The end ----

/// How long the end of a call waits for servers to take requests for cancelling.
constexpr std::chrono::milliseconds kCancelling{300};

/// Asks servers to cancel what they run. libpq's function blocks, on a thread that is left alone
/// when it takes too long.
class Cancelling {
public:
    void start(PGconn* connection) {
        PGcancel* const request = PQgetCancel(connection);
        if (request == nullptr) return;
        {
            const std::lock_guard lock(state_->mutex);
            ++state_->running;
        }
        try {
            start_thread_without_signals([request, state = state_] {
                char message[256];
                PQcancel(request, message, sizeof message);
                PQfreeCancel(request);
                state->end_one();
            }).detach();
        } catch (const std::system_error&) {
            PQfreeCancel(request);
            state_->end_one();
        }
    }
    void wait() const {
        std::unique_lock lock(state_->mutex);
        state_->ended.wait_for(lock, kCancelling, [this] { return state_->running == 0; });
    }

private:
    struct State {
        std::mutex mutex;
        std::condition_variable ended;
        int running = 0;

        void end_one() {
            const std::lock_guard lock(mutex);
            --running;
            ended.notify_all();
        }
    };
    const std::shared_ptr<State> state_ = std::make_shared<State>();
};

void cancel_statements(const RemoteCall& call) {
    const auto runs = [](const RemoteConnection& connection) {
        return PQtransactionStatus(connection.libpq) == PQTRANS_ACTIVE;
    };
    if (std::none_of(call.connections, call.connections + call.count, runs)) return;
    Failure failure;  // the servers see within a second that the connections are gone
    attempt(failure, [&]() -> Status {
        Cancelling cancelling;
        for (int i = 0; i < call.count; ++i)
            if (runs(call.connections[i])) cancelling.start(call.connections[i].libpq);
        cancelling.wait();
        return {};
    });
}

/// Raises no errors.
void end_call(RemoteCall* call) {
    RemoteCall** place = &calls;
    while (*place != call) place = &(*place)->next;
    *place = call->next;
    cancel_statements(*call);
    for (int i = 0; i < call->count; ++i) {
        const RemoteConnection& connection = call->connections[i];
        PQclear(connection.result);
        PQfinish(connection.libpq);
        if (connection.has_descriptor) ReleaseExternalFD();
    }
    MemoryContextDelete(call->context);
}

/// Until end_use(), or the end of the transaction or subtransaction, nobody finds the call: reading
/// values may run functions of their types, which must not end what is being read.
void begin_use(RemoteCall& call) {
    call.used_in = GetCurrentSubTransactionId();
}

/// Clears what an error has left.
void end_use(RemoteCall& call) {
    for (int i = 0; i < call.count; ++i) {
        PQclear(call.connections[i].result);
        call.connections[i].result = nullptr;
    }
    call.used_in = InvalidSubTransactionId;
}

template <class Condition>
void end_calls(const Condition& condition) {
    for (RemoteCall *call = calls, *next; call != nullptr; call = next) {
        next = call->next;
        if (condition(*call)) end_call(call);
    }
}

void on_transaction(XactEvent event, void*) {
    if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT ||
        event == XACT_EVENT_PRE_PREPARE)
        return;
    end_calls([](const RemoteCall&) { return true; });
}

void on_subtransaction(SubXactEvent event, SubTransactionId level, SubTransactionId parent, void*) {
    if (event == SUBXACT_EVENT_ABORT_SUB) {
        end_calls([level](const RemoteCall& call) { return call.level == level; });
        for (RemoteCall* call = calls; call != nullptr; call = call->next)
            if (call->used_in == level) end_use(*call);
    }
    if (event != SUBXACT_EVENT_COMMIT_SUB) return;
    for (RemoteCall* call = calls; call != nullptr; call = call->next)
        if (call->level == level) call->level = parent;
}

// ---- Errors ----

/// A server's words, if they are in this database's encoding. They outlive its result.
const char* words(const char* text) {
    if (text == nullptr) return "";
    const auto length = static_cast<int>(strlen(text));
    if (!pg_verify_mbstr(GetDatabaseEncoding(), text, length, true))
        return "(a message in another encoding)";
    return pchomp(text);
}

[[noreturn]] void raise_broken(const RemoteConnection& connection) {
    ereport(ERROR,
            (errcode(ERRCODE_CONNECTION_FAILURE), errmsg("server \"%s\": %s", connection.server,
                                                         words(PQerrorMessage(connection.libpq)))));
}

[[noreturn]] void raise_unconnected(const RemoteConnection& connection, const char* why) {
    ereport(ERROR, (errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
                    errmsg("server \"%s\": could not establish connection", connection.server),
                    errdetail_internal("%s", why)));
}

[[noreturn]] void raise_answer(const RemoteConnection& connection) {
    const auto field = [&](int code) { return words(PQresultErrorField(connection.result, code)); };
    const char* const state = PQresultErrorField(connection.result, PG_DIAG_SQLSTATE);
    if (state == nullptr || strlen(state) != 5) raise_broken(connection);
    const char* const detail = field(PG_DIAG_MESSAGE_DETAIL);
    const char* const hint = field(PG_DIAG_MESSAGE_HINT);
    const char* const context = field(PG_DIAG_CONTEXT);
    ereport(ERROR, (errcode(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])),
                    errmsg("server \"%s\": %s", connection.server, field(PG_DIAG_MESSAGE_PRIMARY)),
                    *detail != '\0' ? errdetail_internal("%s", detail) : 0,
                    *hint != '\0' ? errhint("%s", hint) : 0,
                    *context != '\0' ? errcontext("%s", context) : 0));
}

// ---- Waiting ----

/// What has to happen before a connection can go on.
enum class Need { nothing, input, output, any };

int events_of(Need need) {
    switch (need) {
        case Need::nothing:
            return 0;
        case Need::input:
            return WL_SOCKET_READABLE;
        case Need::output:
            return WL_SOCKET_WRITEABLE;
        case Need::any:
            break;
    }
    return WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE;
}

constexpr long kMilliseconds = 1000;  // between two looks at the clock

/// Waits until one of the connections can go on, and says which ones can.
void wait_for_any(const RemoteCall& call, const Need* needs, bool* ready) {
    WaitEventSet* const set = new_wait_event_set(call.count + 2);
    AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, nullptr);
    AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, nullptr, nullptr);
    for (int i = 0; i < call.count; ++i) {
        if (needs[i] == Need::nothing) continue;
        const pgsocket descriptor = PQsocket(call.connections[i].libpq);
        if (descriptor == PGINVALID_SOCKET)
            ready[i] = true;
        else
            AddWaitEventToSet(set, events_of(needs[i]), descriptor, nullptr, &ready[i]);
    }
    const bool is_ready = std::any_of(ready, ready + call.count, [](bool r) { return r; });
    WaitEvent events[16];
    const int count = WaitEventSetWait(set, is_ready ? 0 : kMilliseconds, events,
                                       static_cast<int>(std::size(events)), PG_WAIT_EXTENSION);
    FreeWaitEventSet(set);
    for (int i = 0; i < count; ++i) {
        if ((events[i].events & WL_LATCH_SET) != 0) ResetLatch(MyLatch);
        if (events[i].user_data != nullptr) *static_cast<bool*>(events[i].user_data) = true;
    }
}

void check_time_to_connect(const RemoteCall& call, const Need* needs) {
    for (int i = 0; i < call.count; ++i) {
        const RemoteConnection& connection = call.connections[i];
        if (needs[i] != Need::nothing && connection.connect_until != 0 &&
            GetCurrentTimestamp() > connection.connect_until)
            raise_unconnected(connection, "The time of connect_timeout is over.");
    }
}

void tell_progress(const RemoteCall& call, const Need* needs, TimestampTz& told) {
    if (!TimestampDifferenceExceeds(told, GetCurrentTimestamp(), 1000)) return;
    told = GetCurrentTimestamp();
    if (!progress_wanted()) return;
    const char* names = "";
    int waiting = 0;
    for (int i = 0; i < call.count; ++i)
        if (needs[i] != Need::nothing)
            names =
                psprintf("%s%s%s", names, waiting++ == 0 ? "" : ", ", call.connections[i].server);
    ereport(INFO, (errmsg("%s: waiting for %d of %d servers: %s", call.operation, waiting,
                          call.count, names)));
}

/// Calls `step` for each connection, which says what it needs next, until none needs anything.
template <class Step>
void step_until_done(RemoteCall& call, Need first, const Step& step) {
    auto* const needs = static_cast<Need*>(palloc(sizeof(Need) * call.count));
    auto* const ready = static_cast<bool*>(palloc(sizeof(bool) * call.count));
    std::fill_n(needs, call.count, first);
    std::fill_n(ready, call.count, first == Need::nothing);
    TimestampTz told = GetCurrentTimestamp();
    for (;;) {
        for (int i = 0; i < call.count; ++i)
            if (ready[i]) needs[i] = step(call.connections[i], i);
        if (std::all_of(needs, needs + call.count, [](Need n) { return n == Need::nothing; }))
            break;
        std::fill_n(ready, call.count, false);
        wait_for_any(call, needs, ready);
        CHECK_FOR_INTERRUPTS();
        check_time_to_connect(call, needs);
        tell_progress(call, needs, told);
    }
    pfree(needs);
    pfree(ready);
}

// ---- Connecting ----

void start_connecting(RemoteConnection& connection) {
    const ServerOptions options = options_of_server(connection.server);
    if (!AcquireExternalFD())
        raise_unconnected(connection, "There are too many open files on this server.");
    connection.has_descriptor = true;
    connection.libpq = PQconnectStartParams(options.keywords, options.values, 0);
    if (connection.libpq == nullptr) raise_unconnected(connection, "Out of memory.");
    if (PQstatus(connection.libpq) == CONNECTION_BAD)
        raise_unconnected(connection, words(PQerrorMessage(connection.libpq)));
    // By default notices of other servers would go to the server's log.
    PQsetNoticeProcessor(
        connection.libpq, [](void*, const char*) {}, nullptr);
    if (options.connect_timeout > 0)
        connection.connect_until =
            TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 1000L * options.connect_timeout);
}

Need go_on_connecting(RemoteConnection& connection) {
    switch (PQconnectPoll(connection.libpq)) {
        case PGRES_POLLING_OK:
            break;
        case PGRES_POLLING_READING:
            return Need::input;
        case PGRES_POLLING_WRITING:
            return Need::output;
        default:
            raise_unconnected(connection, words(PQerrorMessage(connection.libpq)));
    }
    connection.connect_until = 0;
    if (!superuser() && !PQconnectionUsedPassword(connection.libpq))
        ereport(ERROR, (errcode(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED),
                        errmsg("server \"%s\": a password is required", connection.server),
                        errdetail("Those who are no superusers cannot connect to a server that "
                                  "does not ask for a password."),
                        errhint("Change the server's authentication method.")));
    if (PQsetnonblocking(connection.libpq, 1) != 0) raise_broken(connection);
    return Need::nothing;
}

// ---- Rows ----

struct Reader {
    AttInMetadata* columns;
    Tuplestorestate* rows;
    MemoryContext row_context;
    Datum* values;
    bool* nulls;
};

void check_encoding(const char* value, int length) {
    pg_verify_mbstr(GetDatabaseEncoding(), value, length, false);
}

void put_row(const Reader& to, const RemoteConnection& connection, int server, int row) {
    const TupleDesc columns = to.columns->tupdesc;
    if (PQnfields(connection.result) != columns->natts - 1)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("server \"%s\": the answer has %d columns, not %d", connection.server,
                        PQnfields(connection.result), columns->natts - 1)));
    const MemoryContext before = MemoryContextSwitchTo(to.row_context);
    to.values[0] = Int32GetDatum(server + 1);
    to.nulls[0] = false;
    for (int i = 1; i < columns->natts; ++i) {
        to.nulls[i] = PQgetisnull(connection.result, row, i - 1) != 0;
        char* const value = to.nulls[i] ? nullptr : PQgetvalue(connection.result, row, i - 1);
        if (value != nullptr) check_encoding(value, PQgetlength(connection.result, row, i - 1));
        to.values[i] = InputFunctionCall(&to.columns->attinfuncs[i], value,
                                         to.columns->attioparams[i], to.columns->atttypmods[i]);
    }
    tuplestore_putvalues(to.rows, columns, to.values, to.nulls);
    MemoryContextSwitchTo(before);
    MemoryContextReset(to.row_context);
}

/// Up to the end of the answer, or of what has come of it.
Need read_on(const RemoteCall& call, RemoteConnection& connection, int server, const Reader& to) {
    if (PQconsumeInput(connection.libpq) == 0) raise_broken(connection);
    while (PQisBusy(connection.libpq) == 0) {
        CHECK_FOR_INTERRUPTS();
        connection.result = PQgetResult(connection.libpq);
        if (connection.result == nullptr) {
            ereport(DEBUG1, (errmsg_internal("%s: server \"%s\" has an answer", call.operation,
                                             connection.server)));
            return Need::nothing;
        }
        switch (PQresultStatus(connection.result)) {
            case PGRES_SINGLE_TUPLE:
            case PGRES_TUPLES_OK:
                for (int row = 0; row < PQntuples(connection.result); ++row)
                    put_row(to, connection, server, row);
                break;
            case PGRES_COMMAND_OK:
                break;
            case PGRES_FATAL_ERROR:
                raise_answer(connection);
            default:
                ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION),
                                errmsg("server \"%s\": an answer that is none of a query",
                                       connection.server)));
        }
        PQclear(connection.result);
        connection.result = nullptr;
    }
    return Need::input;
}

/// Connects to servers by the current user's mappings, to all of them at once. `operation` is shown
/// with progress. Returns the number of the call, by which the same user finds it.
int begin_remote_call(const char* operation, const char* const* servers, int count) {
    static bool is_registered = false;
    static int last = 0;
    if (!is_registered) {
        RegisterXactCallback(on_transaction, nullptr);
        RegisterSubXactCallback(on_subtransaction, nullptr);
        is_registered = true;
    }
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext remote call", ALLOCSET_SMALL_SIZES);
    const MemoryContext before = MemoryContextSwitchTo(context);
    auto* const call = static_cast<RemoteCall*>(palloc0(sizeof(RemoteCall)));
    call->context = context;
    call->number = ++last;
    call->user = GetUserId();
    call->level = GetCurrentSubTransactionId();
    call->operation = pstrdup(operation);
    call->connections =
        static_cast<RemoteConnection*>(palloc0(sizeof(RemoteConnection) * (count + 1)));
    for (int i = 0; i < count; ++i) call->connections[i].server = pstrdup(servers[i]);
    call->count = count;
    MemoryContextSwitchTo(before);
    MemoryContextSetParent(context, TopMemoryContext);
    call->next = calls;
    calls = call;
    for (int i = 0; i < count; ++i) start_connecting(call->connections[i]);
    step_until_done(*call, Need::output,
                    [](RemoteConnection& connection, int) { return go_on_connecting(connection); });
    return call->number;
}

/// Raises an error where the current user has begun no such call, or while a function uses it that
/// has not returned.
RemoteCall& find_remote_call(int number) {
    for (RemoteCall* call = calls; call != nullptr; call = call->next)
        if (call->number == number && call->user == GetUserId()) {
            if (call->used_in == InvalidSubTransactionId) return *call;
            ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                            errmsg("the call of the number %d is being used", number)));
        }
    ereport(ERROR, (errcode(ERRCODE_CONNECTION_DOES_NOT_EXIST),
                    errmsg("there is no call of the number %d on other servers", number)));
}

/// Has each server begin a statement, one for each server, which returns when all are sent.
void send_statements(RemoteCall& call, const char* const* statements) {
    begin_use(call);
    for (int i = 0; i < call.count; ++i) {
        PGconn* const libpq = call.connections[i].libpq;
        // The extended protocol takes one statement only, whatever its text has in it.
        if (PQsendQueryParams(libpq, statements[i], 0, nullptr, nullptr, nullptr, nullptr, 0) ==
                0 ||
            PQsetSingleRowMode(libpq) == 0)
            raise_broken(call.connections[i]);
    }
    step_until_done(call, Need::nothing, [](RemoteConnection& connection, int) {
        // A server that is sent much may have to be read from first.
        if (PQconsumeInput(connection.libpq) == 0) raise_broken(connection);
        const int left = PQflush(connection.libpq);
        if (left < 0) raise_broken(connection);
        return left == 0 ? Need::nothing : Need::any;
    });
    end_use(call);
}

/// The rows of all answers, in the order in which they come: the server's number, from 1, and the
/// columns.
void read_answers(RemoteCall& call, TupleDesc columns, Tuplestorestate* rows) {
    if (TupleDescAttr(columns, 0)->atttypid != INT4OID)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the first column is the number of the server, an integer")));
    const Reader reader = {
        TupleDescGetAttInMetadata(columns), rows,
        AllocSetContextCreate(CurrentMemoryContext, "gputext remote row", ALLOCSET_DEFAULT_SIZES),
        static_cast<Datum*>(palloc(sizeof(Datum) * columns->natts)),
        static_cast<bool*>(palloc(sizeof(bool) * columns->natts))};
    begin_use(call);
    // The servers write values in the form that these settings read.
    const int level = NewGUCNestLevel();
    set_locally("datestyle", "ISO");
    set_locally("intervalstyle", "postgres");
    step_until_done(call, Need::nothing, [&](RemoteConnection& connection, int server) {
        return read_on(call, connection, server, reader);
    });
    AtEOXact_GUC(true, level);
    end_use(call);
    MemoryContextDelete(reader.row_context);
}

// ---- The functions ----

struct Strings {
    const char** texts;
    int count;
};

/// The elements of an array of text or of name.
Strings strings_of(ArrayType* array) {
    const bool is_name = ARR_ELEMTYPE(array) == NAMEOID;
    Datum* values;
    bool* nulls;
    Strings strings;
    deconstruct_array(array, ARR_ELEMTYPE(array), is_name ? NAMEDATALEN : -1, false,
                      is_name ? TYPALIGN_CHAR : TYPALIGN_INT, &values, &nulls, &strings.count);
    strings.texts = static_cast<const char**>(palloc(sizeof(char*) * (strings.count + 1)));
    for (int i = 0; i < strings.count; ++i) {
        if (nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("an element of the array is null")));
        strings.texts[i] =
            is_name ? NameStr(*DatumGetName(values[i])) : TextDatumGetCString(values[i]);
    }
    return strings;
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_connect) {
    const Strings servers = strings_of(PG_GETARG_ARRAYTYPE_P(1));
    PG_RETURN_INT32(
        begin_remote_call(text_to_cstring(PG_GETARG_TEXT_PP(0)), servers.texts, servers.count));
}

SQL_FUNCTION(gputext_send) {
    RemoteCall& call = find_remote_call(PG_GETARG_INT32(0));
    const Strings statements = strings_of(PG_GETARG_ARRAYTYPE_P(1));
    if (statements.count != call.count)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("there are %d statements for %d servers", statements.count, call.count)));
    send_statements(call, statements.texts);
    PG_RETURN_VOID();
}

SQL_FUNCTION(gputext_answers) {
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    const auto* const result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    read_answers(find_remote_call(PG_GETARG_INT32(0)), result->setDesc, result->setResult);
    PG_RETURN_NULL();
}

SQL_FUNCTION(gputext_disconnect) {
    end_call(&find_remote_call(PG_GETARG_INT32(0)));
    PG_RETURN_VOID();
}
}
