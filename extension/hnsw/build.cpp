#include "extension/hnsw/build.hpp"

extern "C" {
#include "access/amapi.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "catalog/pg_type.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "cpp/base/byte_text.hpp"
#include "cpp/hnsw/builder.hpp"
#include "cpp/link/device_choice.hpp"
#include "cpp/link/file_parts.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/hnsw/index_kind.hpp"
#include "extension/hnsw/pages.hpp"
#include "extension/hnsw/table_rows.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/session_job.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/time_split.hpp"
#include "extension/types/vector_type.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext::hnsw {
namespace {

/// Nearest rows among which the neighbors of a row are chosen: for each two of m so many, and
/// ef_construction where that is more. docs/hnsw-build.md has the recall that this gives.
constexpr std::size_t kCandidatesOfTwoM = 25;

/// Rows that are searched for together on the CPU: at least, and at most.
constexpr std::size_t kLeastBlock = 1024, kBlock = 16384;

/// Rows up to which all rows are compared, where gputext.hnsw_exact_rows does not say.
constexpr std::size_t kExactRows = std::size_t{1} << 18;
/// Up to so many dimensions, and by other metrics than Euclidean distance, devices have no kernels
/// that probe clusters. They compare all rows in less time than threads compare a quarter of them.
constexpr std::size_t kFewDimensions = 64;

std::size_t exact_rows(const IndexKind& kind, std::size_t dimensions, bool on_device) {
    if (hnsw_exact_rows() > 0) return hnsw_exact_rows();
    const bool probes = kind.metric == Metric::euclidean && dimensions > kFewDimensions;
    return on_device && !probes ? SIZE_MAX : kExactRows;
}

void begin_phase(Phase phase) {
    pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, phase);
}

void leave_to_pgvector(Relation index, const Reason& reason) {
    const bool is_warning = reason.hint[0] != '\0';
    ereport(is_warning ? WARNING : DEBUG1,
            (errmsg("index \"%s\" is built by pgvector, not by gputext",
                    RelationGetRelationName(index)),
             errdetail("gputext does not build it, because %s.", reason.text),
             is_warning ? errhint("%s", reason.hint) : 0));
}

/// The same of a build that has begun, in this context.
IndexBuildResult* leave_after(MemoryContext context, MemoryContext outside, Relation index,
                              const Reason& reason) {
    MemoryContextSwitchTo(outside);
    MemoryContextDelete(context);
    leave_to_pgvector(index, reason);
    return nullptr;
}

// ---- Memory ----

/// What the build may take.
std::size_t memory_limit() {
    return std::min(static_cast<std::size_t>(maintenance_work_mem) * 1024, host_memory_limit());
}

/// Bytes that a row takes beside its values, as they are put in order.
constexpr std::size_t kBytesOfRow = 40;

/// Bytes that an element takes beside its values, from the reading to the last page: the links of
/// the graph and of the builder, and what HnswBuilder, TableElements and write_pages() say.
std::size_t bytes_of_element(unsigned m) {
    return 2 * std::size_t{m} * (4 * sizeof(std::uint32_t) + sizeof(double)) + 64;
}

/// What the graph takes, and the values of its upper layers, of which the builder has a copy.
std::size_t bytes_of_graph(const IndexKind& kind, std::size_t elements) {
    return elements * (bytes_of_element(kind.m) + kind.row_bytes() / kind.m);
}

/// Whether the values may be more than fit into memory: twice, as each process has those of its
/// rows and then all are put in order, and then once beside the graph. They take about what the
/// table takes on disk, or, where they are made of less by an expression or lie there compressed,
/// what as many values take as it has rows.
bool have_to_be_on_disk(Relation table, const IndexKind& kind) {
    const Datum size =
        DirectFunctionCall1(pg_table_size, ObjectIdGetDatum(RelationGetRelid(table)));
    BlockNumber pages;
    double rows, all_visible;
    estimate_rel_size(table, nullptr, &pages, &rows, &all_visible);
    const double bytes = std::max(static_cast<double>(DatumGetInt64(size)),
                                  rows * static_cast<double>(kind.row_bytes()));
    const auto graph = static_cast<double>(bytes_of_graph(kind, static_cast<std::size_t>(rows)));
    return std::max(2 * bytes, bytes + graph) > static_cast<double>(memory_limit());
}

// ---- The graph ----

/// The links of a layer.
class LayerComputation final : public Computation {
public:
    LayerComputation(const HnswBuilder& builder, const TableElements& elements)
        : layer_(builder.layer()),
          elements_(builder.layer_is_lowest() ? &elements : nullptr),
          linked_(builder.linked()) {}

    std::vector<std::uint32_t> neighbors;

    JobSize size() const override {
        const Vectors& values = layer_.values.rows;
        Vectors before = values;
        before.rows /= 2;
        const std::uint64_t bytes =
            values.rows * values.dimensions * gputext::element_size(values.type);
        return {values.rows, bytes, knn_cpu_seconds(values, before, cpu_threads())};
    }
    Status compute(Execution& execution) override { return keep(link_layer(layer_, execution)); }
    void prepare_for_device() override {}
    Status submit(DaemonConnection& connection, Stop stop) override {
        HnswLinksRequest request;
        request.parameters = layer_.parameters;
        request.values =
            elements_ != nullptr ? elements_->files() : VectorFiles{layer_.values.rows, {}, -1};
        request.linked = static_cast<std::uint32_t>(layer_.rows);
        request.centroids = layer_.values.centroids;
        request.limits.device_memory_limit = gpu_memory_limit();
        return connection.submit(request, stop);
    }
    Status take(const DaemonEvent& event, Stop stop) override {
        return keep(std::get<HnswLinksAnswer>(event).read(stop));
    }
    void show(const Step& step) override {
        if (std::strcmp(step.phase, "linking rows") == 0)
            pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
                                         static_cast<int64>(linked_ + step.done));
    }

private:
    Status keep(Result<std::vector<std::uint32_t>> answer) {
        if (answer.ok()) neighbors = std::move(*answer);
        return answer.status();
    }

    LayerToLink layer_;
    const TableElements* elements_;  // where these are the layer's
    std::uint64_t linked_;           // elements of layers above
};

/// Whether the searches for so many elements run on a device, as it looks now.
bool searches_on_device(const Vectors& values) {
    Vectors before = values;
    before.rows /= 2;
    const std::uint64_t bytes =
        values.rows * values.dimensions * gputext::element_size(values.type);
    return has_device_for({values.rows, bytes, knn_cpu_seconds(values, before, cpu_threads())});
}

/// Begins the graph of the elements: their levels.
HnswBuilder* begin_graph(const HnswParameters& parameters, const TableElements& elements,
                         MemoryContext context) {
    auto* const builder =
        make_owned<HnswBuilder>(context, parameters, elements.values(), elements.copy_of());
    run_threaded([builder](Execution& execution) { return builder->begin(execution); });
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
                                 static_cast<int64>(builder->to_link()));
    return builder;
}

/// Links the elements, on a device where that is faster.
HnswGraph* make_graph(HnswBuilder* builder, const TableElements& elements, TimeSplit& times,
                      MemoryContext context) {
    const MemoryContext of_layer =
        AllocSetContextCreate(context, "gputext layer of an index", ALLOCSET_DEFAULT_SIZES);
    while (builder->has_layer()) {
        TimeSplit unused;  // of layers above, which have few elements
        TimeSplit& of_layer_times = builder->layer_is_lowest() ? times : unused;
        if (builder->layer_is_lowest()) times.lap("upper layers linked");
        auto* const layer = make_owned<LayerComputation>(of_layer, *builder, elements);
        run_computation(*layer, of_layer_times, of_layer);
        run_threaded([builder, layer](Execution& execution) {
            return builder->add(layer->neighbors, execution);
        });
        MemoryContextReset(of_layer);
        pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
                                     static_cast<int64>(builder->linked()));
    }
    auto* const made = make_owned<HnswGraph>(context);
    attempt_or_raise([&] { *made = builder->take(); });
    times.lap("graph made");
    return made;
}

// ---- The index as pgvector sees it ----

/// Has pgvector search the index for a value of it: what it refuses to read, or finds nothing in,
/// is no index of its format. Raises an error then. Calls the access method itself, as the server
/// allows no scan of an index while it is built.
void let_pgvector_search(Relation table, Relation index, const IndexKind& kind,
                         const Elements& elements) {
    const IndexAmRoutine& method = *index->rd_indam;
    const Snapshot snapshot = RegisterSnapshot(GetTransactionSnapshot());
    const IndexScanDesc scan = begin_method_scan(table, index, snapshot);
    ScanKeyData order;
    ScanKeyEntryInitialize(&order, SK_ORDER_BY, 1, 1, InvalidOid, InvalidOid, InvalidOid,
                           new_vector_value({VectorType::Form::dense, kind.element},
                                            elements.values, elements.values.rows / 2));
    method.amrescan(scan, nullptr, 0, &order, 1);
    if (!method.amgettuple(scan, ForwardScanDirection))
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("pgvector finds nothing in index \"%s\", which gputext has built",
                               RelationGetRelationName(index)),
                        errhint("Set gputext.build_hnsw to off.")));
    method.amendscan(scan);
    UnregisterSnapshot(snapshot);
}

// ---- The build ----

unsigned wanted_processes(Relation table, Relation index, const IndexInfo* info) {
    return 1 + static_cast<unsigned>(std::max(0, wanted_build_workers(table, index, info)));
}

HnswParameters parameters_of(const IndexKind& kind, std::size_t memory, const Vectors& values,
                             bool on_device) {
    HnswParameters parameters;
    parameters.m = kind.m;
    parameters.links.candidates =
        std::max<std::size_t>(kCandidatesOfTwoM * kind.m / 2, kind.ef_construction);
    parameters.links.metric = kind.metric;
    parameters.highest_level = highest_level(kind.m);
    parameters.links.exact_rows = exact_rows(kind, values.dimensions, on_device);
    parameters.links.block_rows =
        std::clamp(memory / 4 / (16 * parameters.links.candidates), kLeastBlock, kBlock);
    parameters.links.memory_limit = std::max<std::size_t>(memory / 2, std::size_t{16} << 20);
    return parameters;
}

/// For the log: what all processes did, one after the other.
const char* text_of(const WriteTimes& times, const char* when) {
    return psprintf("%s %u pages: filling %.1f, logging %.1f, writing %.1f", when, times.pages,
                    times.filling, times.logging, times.writing);
}

IndexBuildResult* result_of(const BuildCounts& counts) {
    auto* const result = static_cast<IndexBuildResult*>(palloc(sizeof(IndexBuildResult)));
    result->heap_tuples = counts.rows;
    result->index_tuples = counts.index_tuples;
    return result;
}

void set_too_large(Reason& reason, const char* of, std::size_t count, std::size_t bytes) {
    std::snprintf(reason.text, sizeof reason.text, "the graph of its %zu %s takes %s", count, of,
                  byte_text(bytes).c_str());
    std::snprintf(reason.hint, sizeof reason.hint,
                  "Set maintenance_work_mem and gputext.host_memory_limit to '%zuMB' or more.",
                  (bytes >> 20) + 1);
}

/// Before so many rows are put in order: sets the reason where they are too many to have numbers of
/// 32 bits, or where even that takes more than the limit, or the graph does with as few elements as
/// these rows may have.
void check_limit(const IndexKind& kind, std::size_t rows, Reason& reason) {
    if (rows >= kNoElement) {
        std::snprintf(reason.text, sizeof reason.text, "%zu rows are more than it can number",
                      rows);
        return;
    }
    const std::size_t least = std::max(rows * kBytesOfRow, bytes_of_graph(kind, rows / kMostRows));
    if (least > memory_limit()) set_too_large(reason, "rows", rows, bytes_of_graph(kind, rows));
}

/// What is left of the limit when so many elements have been read; none where the graph does not
/// fit.
std::size_t left_of_limit(const IndexKind& kind, std::size_t elements, bool on_disk,
                          Reason& reason) {
    const std::size_t limit = memory_limit();
    const std::size_t values = on_disk ? 0 : elements * kind.row_bytes();
    const std::size_t needed = bytes_of_graph(kind, elements);
    if (needed > limit) {
        set_too_large(reason, "elements", elements, needed);
        return 0;
    }
    return limit > needed + values ? limit - needed - values : 1;
}

}  // namespace

const char* phase_name(int64 phase) {
    switch (phase) {
        case kInitializing:
            return "initializing";
        case kReading:
            return "loading tuples";
        case kOrdering:
            return "ordering vectors";
        case kLinking:
            return "finding neighbors";
        case kWriting:
            return "writing pages";
        default:
            return nullptr;
    }
}

IndexBuildResult* build_index(Relation table, Relation index, IndexInfo* info) {
    if (RelationGetNumberOfBlocks(index) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INTERNAL_ERROR),
                 errmsg("index \"%s\" already contains data", RelationGetRelationName(index))));
    Reason reason;
    const IndexKind kind = kind_of(index, reason);
    if (reason.given()) {
        leave_to_pgvector(index, reason);
        return nullptr;
    }
    const MemoryContext context = AllocSetContextCreate(
        CurrentMemoryContext, "gputext build of an HNSW index", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext of_files =
        AllocSetContextCreate(context, "gputext files of vectors", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    begin_activity("build_hnsw", context);
    TimeSplit times;

    begin_phase(kReading);
    const bool on_disk = have_to_be_on_disk(table, kind);
    // For the parts that the values lie in, and those that they are put together from
    make_owned<DescriptorRoom>(context)->reserve(on_disk ? 2 : 2 * kMostParts);
    ReadFiles files = open_files(wanted_processes(table, index, info), on_disk, of_files);
    const BuildCounts counts = read_rows(table, index, info, kind, files);
    times.lap("table read");
    check_limit(kind, files.rows(), reason);
    if (reason.given()) return leave_after(context, outside, index, reason);

    begin_phase(kOrdering);
    auto* const elements = make_owned<TableElements>(context);
    const TableElements::Disk disk{on_disk ? open_file(true, of_files) : -1,
                                   on_disk ? open_file(true, of_files) : -1};
    auto* const phases = static_cast<PhaseText*>(palloc0(sizeof(PhaseText)));
    run_threaded([&, elements, phases](Execution& execution) {
        const Status status = elements->set({files.found, files.processes}, kind, disk, execution);
        phases->set(execution.phase_times());
        return status;
    });
    MemoryContextDelete(of_files);
    times.lap("vectors ordered", phases->text);
    const std::size_t count = elements->values().rows;
    const std::size_t memory = left_of_limit(kind, count, on_disk, reason);
    if (reason.given()) return leave_after(context, outside, index, reason);

    begin_phase(kLinking);
    const bool on_device = searches_on_device(elements->values());
    HnswBuilder* const builder =
        begin_graph(parameters_of(kind, memory, elements->values(), on_device), *elements, context);
    times.lap("levels drawn");
    Elements all{builder->graph(), kind.ef_construction, elements->values(), elements->first_rows(),
                 elements->rows()};
    const VectorFiles values = elements->files();
    BegunPages* const pages = begin_pages(
        index, all,
        {static_cast<int>(files.processes) - 1, values.elements, info->ii_Concurrent, on_device});
    times.lap("pages begun");
    const HnswGraph* const graph = make_graph(builder, *elements, times, context);
    all.graph = graph->view();
    begin_phase(kWriting);
    const PageTimes written = end_pages(pages, all.graph);
    times.lap("pages written", psprintf("placing %.1f, sharing %.1f; %s; %s", written.placing,
                                        written.sharing, text_of(written.before_links, "before"),
                                        text_of(written.with_links, "then")));
    if (count > 0) let_pgvector_search(table, index, kind, all);
    times.lap("searched by pgvector");
    times.report("build_hnsw");

    MemoryContextSwitchTo(outside);
    IndexBuildResult* const result = result_of(counts);
    MemoryContextDelete(context);
    return result;
}

}  // namespace gputext::hnsw
