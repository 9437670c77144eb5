#include "extension/base/table_rights.hpp"

extern "C" {
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/rls.h"
}

namespace gputext {

bool may_read_whole(Oid relation) {
    bool dropped = false;
    const AclResult table = pg_class_aclcheck_ext(relation, GetUserId(), ACL_SELECT, &dropped);
    if (dropped) return false;
    if (table != ACLCHECK_OK &&
        pg_attribute_aclcheck_all(relation, GetUserId(), ACL_SELECT, ACLMASK_ALL) != ACLCHECK_OK)
        return false;
    return check_enable_rls(relation, InvalidOid, true) != RLS_ENABLED;
}

}  // namespace gputext
