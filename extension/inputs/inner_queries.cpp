#include "extension/inputs/inner_queries.hpp"

namespace gputext {

InnerQueries inner_queries_argument(const Arguments& given, const char* name, const char* rows) {
    const char* const name_of_new = psprintf("new_%s", name);
    InnerQueries queries{};
    queries.two = given.has(name_of_new);
    queries.first.sql = given.text(queries.two ? name_of_new : name);
    queries.first.id_type = id_type_argument(given);
    if (!queries.two) return queries;
    queries.first.id_type_place = {"the inner queries", true};
    queries.second = queries.first;
    queries.second.sql = given.text(psprintf("old_%s", name));
    queries.first.among = psprintf(" among the new %s", rows);
    queries.second.among = psprintf(" among the old %s", rows);
    return queries;
}

}  // namespace gputext
