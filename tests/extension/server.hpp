// tests/extension/server.hpp - the few functions of PostgreSQL that the files of extension/ under
// test call, without a server: memory from malloc(), and errors as C++ exceptions

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "utils/rel.h"
}

#include <cstring>
#include <stdexcept>
#include <string>

namespace gputext::testing {

/// What ereport(ERROR, ...) raises here.
struct ServerError : std::runtime_error {
    using std::runtime_error::runtime_error;

    int sqlstate = 0;
    std::string detail;
};

/// A relation that has nothing but a name.
class NamedRelation {
public:
    explicit NamedRelation(const char* name) {
        std::strncpy(NameStr(class_.relname), name, NAMEDATALEN - 1);
        relation_.rd_rel = &class_;
    }
    operator Relation() { return &relation_; }

private:
    FormData_pg_class class_{};
    RelationData relation_{};
};

/// The message of the error that `work` raises, and its detail; empty if it raises none.
template <class Work>
std::string error_of(Work&& work) {
    try {
        work();
        return "";
    } catch (const ServerError& error) {
        return std::string(error.what()) + (error.detail.empty() ? "" : ": " + error.detail);
    }
}

}  // namespace gputext::testing
