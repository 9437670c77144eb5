// extension/inputs/inner_queries.hpp - the arguments of functions that compare the rows of an inner
// query, or the new rows of one with the old ones of another

#pragma once

#include "extension/base/postgres.hpp"

#include "extension/inputs/arguments.hpp"
#include "extension/queries/inner_query.hpp"

namespace gputext {

struct InnerQueries {
    InnerQuery first;
    InnerQuery second;  // where there are two
    bool two = false;
};

/// Of the parameter `name`, or of new_name and old_name where the function has those, and of
/// id_type. `rows` is what the queries give, in messages. Raises an error for a null.
InnerQueries inner_queries_argument(const Arguments& given, const char* name, const char* rows);

}  // namespace gputext
