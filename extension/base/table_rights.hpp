// extension/base/table_rights.hpp - what the current user may read, and expressions that run as a
// table's owner

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "miscadmin.h"
#include "utils/guc.h"
}

#include "extension/base/server_versions.hpp"

namespace gputext {

/// Whether the user may read all columns of the relation, and row-level security hides no row. A
/// relation that has been dropped meanwhile is none that anybody may read.
bool may_read_whole(Oid relation);

/// Whoever owns a table chooses the functions of its indexes' expressions and conditions. Whoever
/// calls something that evaluates them must not lend them rights. From construction to end() the
/// session runs as the owner, in a security-restricted operation; settings that functions change
/// are set back. An error ends it, too, as it ends the transaction or subtransaction.
class AsOwner {
public:
    explicit AsOwner(Oid owner) {
        GetUserIdAndSecContext(&user_, &context_);
        SetUserIdAndSecContext(owner, context_ | SECURITY_RESTRICTED_OPERATION);
        settings_ = NewGUCNestLevel();
        restrict_search_path();
    }

    void end() {
        AtEOXact_GUC(false, settings_);
        SetUserIdAndSecContext(user_, context_);
    }

private:
    Oid user_;
    int context_, settings_;
};

}  // namespace gputext
