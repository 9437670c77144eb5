#include "extension/index/query_value.hpp"

#include <cstring>

namespace gputext::index {

QueryValue* make_query_value(Bytes document, bool binary, double threshold) {
    const Size size = sizeof(QueryValue) + document.size();
    auto* const value = static_cast<QueryValue*>(palloc(size));
    *value = {};
    SET_VARSIZE(value, size);
    value->binary = binary;
    value->threshold = threshold;
    if (!document.empty()) std::memcpy(value + 1, document.data(), document.size());
    return value;
}

const QueryValue* query_value(Datum value) {
    const auto* const query = reinterpret_cast<const QueryValue*>(PG_DETOAST_DATUM(value));
    if (VARSIZE(query) < sizeof(QueryValue))
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("a value of the type near_duplicate_query is too short")));
    return query;
}

void check_threshold(double threshold) {
    if (!(threshold >= 0 && threshold < 0.5))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("threshold must be at least 0 and below 0.5, not %g", threshold),
                        errdetail("It is an edit rate: the edit distance of two documents over the "
                                  "sum of their lengths. 0 is for equal documents."),
                        threshold > 0.5 && threshold < 1
                            ? errhint("For documents that are alike to %g, write %g.", threshold,
                                      1 - threshold)
                            : 0));
}

}  // namespace gputext::index
