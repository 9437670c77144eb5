#include "extension/inputs/term_arguments.hpp"

extern "C" {
#include "utils/syscache.h"
}

namespace gputext {
namespace {

/// With more, weights might be too small for a float, and then none is above 0.
constexpr double kMostK1 = 1e6;

}  // namespace

Oid config_argument(const Arguments& arguments) {
    const Oid config = arguments.oid("config");
    if (!SearchSysCacheExists1(TSCONFIGOID, ObjectIdGetDatum(config)))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("text search configuration with OID %u does not exist", config)));
    return config;
}

TermParameters term_arguments(const Arguments& arguments, bool bm25, const char* wanted) {
    TermParameters terms;
    terms.weighting = bm25 ? TermWeighting::bm25 : TermWeighting::tf_idf;
    terms.min_document_frequency = arguments.count("min_document_frequency");
    if (!arguments.has("k1")) return terms;
    const TermParameters usual = terms;
    terms.k1 = arguments.number("k1");
    terms.b = arguments.number("b");
    if (!(terms.k1 >= 0 && terms.k1 <= kMostK1))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k1 must be from 0 to %.0f, not %g", kMostK1, terms.k1),
                        errhint("Usual values are from 1.2 to 2.")));
    if (!(terms.b >= 0 && terms.b <= 1))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("b must be from 0 to 1, not %g", terms.b),
                        errhint("With 0 the length of a text does not count, with 1 it counts "
                                "fully; 0.75 is usual.")));
    if (!bm25 && (terms.k1 != usual.k1 || terms.b != usual.b))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k1 and b are parameters of BM25 alone"),
                        errhint("Leave them out, or pass %s.", wanted)));
    return terms;
}

}  // namespace gputext
