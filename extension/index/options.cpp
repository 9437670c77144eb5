#include "extension/index/options.hpp"

extern "C" {
#include "access/reloptions.h"
#include "utils/rel.h"
}

#include <cstddef>

#include "cpp/documents/document_sketch.hpp"

namespace gputext::index {
namespace {

struct IndexOptions {
    int32 vl_len_;
    int bins;
    double threshold;
};

/// The kind of this access method's options, made when the first index is looked at.
relopt_kind options_kind() {
    static relopt_kind kind{};
    static bool made = false;
    if (!made) {
        kind = add_reloption_kind();
        add_int_reloption(kind, "bins", "Sets the average number of counts of bigrams in a sketch.",
                          SketchShape::default_bins, SketchShape::least_bins,
                          SketchShape::most_bins, AccessExclusiveLock);
        add_real_reloption(kind, "threshold",
                           "Sets the edit rate up to which an exclusion constraint refuses "
                           "documents.",
                           kDefaultThreshold, 0, 0.5, AccessExclusiveLock);
        made = true;
    }
    return kind;
}

/// Null where none was given.
const IndexOptions* options_of(Relation index) {
    return reinterpret_cast<const IndexOptions*>(index->rd_options);
}

double threshold_of(const IndexOptions* options) {
    return options == nullptr ? kDefaultThreshold : options->threshold;
}

relopt_parse_elt element(const char* name, relopt_type type, std::size_t offset) {
    relopt_parse_elt made{};  // a release may have more members
    made.optname = name;
    made.opttype = type;
    made.offset = static_cast<int>(offset);
    return made;
}

}  // namespace

bytea* read_options(Datum options, bool validate) {
    const relopt_parse_elt elements[] = {
        element("bins", RELOPT_TYPE_INT, offsetof(IndexOptions, bins)),
        element("threshold", RELOPT_TYPE_REAL, offsetof(IndexOptions, threshold))};
    auto* const read = static_cast<bytea*>(build_reloptions(
        options, validate, options_kind(), sizeof(IndexOptions), elements, lengthof(elements)));
    if (read == nullptr || !validate) return read;
    const IndexOptions& given = *reinterpret_cast<IndexOptions*>(read);
    if (given.bins % 32 != 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("bins must be a multiple of 32, not %d", given.bins)));
    if (given.threshold >= 0.5)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("threshold must be at least 0 and below 0.5, not %g", given.threshold)));
    return read;
}

std::size_t wanted_bins(Relation index) {
    const IndexOptions* const options = options_of(index);
    return options == nullptr ? SketchShape::default_bins : static_cast<std::size_t>(options->bins);
}

double threshold_of(Relation index) {
    return threshold_of(options_of(index));
}

double threshold_in(Datum options) {
    return threshold_of(reinterpret_cast<const IndexOptions*>(read_options(options, false)));
}

void raise_no_constraint() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("threshold is an option of exclusion constraints"),
                    errdetail("An index serves every threshold, which conditions name.")));
    pg_unreachable();
}

}  // namespace gputext::index
