// tests/live/plain_session.hpp - session that reports when an answer arrives

#pragma once

#include <libpq-fe.h>

#include "tests/live/server.hpp"

namespace gputext::live {

/// A session by libpq's own functions: libpqxx waits until the server takes the next statement, and
/// so does not tell when an error arrived.
class PlainSession {
public:
    explicit PlainSession(const ConnectionString& where = {})
        : connection_(PQconnectdb(where.text.c_str())) {
        if (PQstatus(connection_) != CONNECTION_OK)
            throw std::runtime_error(PQerrorMessage(connection_));
        run("SET gputext.device = cpu");
        run("SET gputext.cpu_threads = 2");
        run("SET statement_timeout = '60s'");
    }
    ~PlainSession() { PQfinish(connection_); }
    PlainSession(const PlainSession&) = delete;

    int pid() const { return PQbackendPID(connection_); }
    void run(const std::string& sql) {
        if (sqlstate(sql) != "ok") throw std::runtime_error(sql + ": " + message_);
    }

    /// As Session's.
    std::string sqlstate(const std::string& sql) {
        std::string state = "gone";
        message_.clear();
        PQsendQuery(connection_, sql.c_str());
        bool first = true;
        while (PGresult* result = PQgetResult(connection_)) {
            if (first) {
                arrived_ = Clock::now();
                const char* field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
                state = PQresultStatus(result) != PGRES_FATAL_ERROR ? "ok"
                        : field == nullptr                          ? "gone"
                                                                    : field;
                message_ = PQresultErrorMessage(result);
            }
            first = false;
            PQclear(result);
        }
        return state;
    }
    const std::string& message() const { return message_; }
    /// When the last statement's result or error arrived.
    Clock::time_point arrived() const { return arrived_; }

private:
    PGconn* connection_;
    std::string message_;
    Clock::time_point arrived_;
};

}  // namespace gputext::live
