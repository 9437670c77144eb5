#include "extension/base/postgres.hpp"

#include <cstring>
#include <optional>

#include "cpp/documents/near_duplicate_cost.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/index/query_value.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/document_query.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/ctph_value.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

enum class NearDuplicateForm { pairs, groups, between };

/// What a call's arguments say.
struct NearDuplicatesArguments {
    NearDuplicateForm form;
    InnerQueries queries;
    NearDuplicateParameters parameters;
    bool chooses_mode;  // mode auto: that of the parameters is set when the documents are known
};

/// What a call needs until its last row; dies with the call's memory context.
class NearDuplicatesComputation : public Computation {
public:
    NearDuplicatesComputation(const NearDuplicatesArguments& arguments, IdType id_type,
                              std::size_t memory_limit)
        : rows(id_type, true, memory_limit), arguments_(arguments) {}

    DocumentRows rows;
    NearDuplicates answer;
    std::vector<NearDuplicate> neighbors;
    std::vector<std::uint32_t> components;
    std::vector<std::int64_t> component_sizes;

    void read();
    /// When all rows are read.
    void estimate();

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override { rows.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& answer, Stop stop) override;

private:
    CharacterLengths characters() const {
        return rows.binary ? CharacterLengths::single_byte() : database_characters();
    }
    Status keep(Result<NearDuplicates> result, Stop stop);

    NearDuplicatesArguments arguments_;
    NearDuplicateSeconds seconds_;  // that it is estimated to take
};

double threshold_argument(const Arguments& given) {
    refuse_null_after_queries(given, "threshold");
    const double threshold = given.number("threshold");
    index::check_threshold(threshold);
    return threshold;
}

/// None for auto.
std::optional<NearDuplicateMode> mode_argument(const Arguments& given) {
    const char* const mode = given.text("mode");
    if (std::strcmp(mode, "auto") == 0) return std::nullopt;
    if (std::strcmp(mode, "ctph") == 0) return NearDuplicateMode::ctph;
    if (std::strcmp(mode, "exact") == 0) return NearDuplicateMode::exact;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("mode must be 'auto', 'exact' or 'ctph', not \"%s\"", mode)));
    pg_unreachable();
}

NearDuplicatesArguments read_arguments(const Arguments& given, NearDuplicateForm form) {
    NearDuplicatesArguments arguments{};
    arguments.form = form;
    arguments.queries = inner_queries_argument(given, "docs", "documents");
    arguments.parameters.threshold = threshold_argument(given);
    const std::optional<NearDuplicateMode> mode = mode_argument(given);
    arguments.parameters.mode = mode.value_or(NearDuplicateMode::exact);
    arguments.chooses_mode = !mode;
    arguments.parameters.signature_length = signature_length(given.integer("max_length"));
    arguments.parameters.components_only = form == NearDuplicateForm::groups;
    arguments.parameters.memory_limit = host_memory_limit();
    return arguments;
}

void NearDuplicatesComputation::read() {
    run_document_queries(arguments_.queries, rows);
    if (!arguments_.queries.two) return;
    // Without new documents all are on one side, too, but behind no split.
    const std::size_t split = rows.ids.size() > 0 ? rows.ids.size() : rows.extents.size();
    arguments_.parameters.split = static_cast<std::uint32_t>(split);
}

void NearDuplicatesComputation::estimate() {
    const bool signatures_given = !rows.signatures.empty();
    seconds_ = estimate_near_duplicates(rows.extents, arguments_.parameters.threshold,
                                        signatures_given, arguments_.parameters.split);
    if (!arguments_.chooses_mode) return;
    if (signatures_given) arguments_.parameters.mode = NearDuplicateMode::ctph;
    ereport(DEBUG1, (signatures_given ? errmsg("mode ctph chosen, since signatures are given")
                                      : errmsg("mode exact chosen, since no signatures are given"),
                     errdetail("Mode exact is estimated to take %.3g s on one processor, mode ctph "
                               "%.3g s.",
                               seconds_.exact, seconds_.ctph)));
}

JobSize NearDuplicatesComputation::size() const {
    return {rows.extents.size(), rows.values.unpacked_bytes() - VARHDRSZ * rows.extents.size(),
            near_duplicates_cpu_seconds(arguments_.parameters.mode, seconds_, cpu_threads()),
            arguments_.parameters.components_only ? seconds_.device_groups : seconds_.device,
            rows.laid_out.resident() == 0 ? 0 : rows.laid_out.size()};
}

Status NearDuplicatesComputation::compute(Execution& execution) {
    const Documents documents{rows.bytes(), rows.extents, characters()};
    return keep(near_duplicates(arguments_.parameters, documents, rows.signatures, execution),
                execution.stop());
}

Status NearDuplicatesComputation::submit(DaemonConnection& connection, Stop stop) {
    NearDuplicatesRequest request;
    request.parameters = arguments_.parameters;
    request.limits.device_memory_limit = gpu_memory_limit();
    request.bytes_file = rows.files();
    request.resident = rows.laid_out.resident();
    request.bytes_size = rows.byte_count();
    request.extents = rows.extents;
    request.characters = characters();
    request.signatures = rows.signatures;
    return connection.submit(request, stop);
}

Status NearDuplicatesComputation::take(const DaemonEvent& event, Stop stop) {
    return keep(std::get<NearDuplicatesAnswer>(event).read(stop), stop);
}

Status NearDuplicatesComputation::keep(Result<NearDuplicates> result, Stop stop) {
    if (!result.ok()) return result.status();
    answer = std::move(*result);
    if (arguments_.form == NearDuplicateForm::pairs) return {};
    Result<std::vector<std::uint32_t>> found = answer.components(stop);
    if (!found.ok()) return found.status();
    components = std::move(*found);
    component_sizes.resize(components.size());
    for (const std::uint32_t first : components) ++component_sizes[first];
    return {};
}

/// Reads the documents and compares them; the answer is in the returned work.
NearDuplicatesComputation* compare_documents(const NearDuplicatesArguments& arguments,
                                             SetCall& set) {
    NearDuplicatesComputation* work = make_owned<NearDuplicatesComputation>(
        set.context(), arguments, id_type_of(arguments.queries.first.id_type), host_memory_limit());
    work->read();
    set.times().lap("reading rows");
    work->estimate();
    run_computation(*work, set.times(), set.context());
    work->rows.release_bytes();
    return work;
}

void put_pairs(NearDuplicatesComputation* work, SetCall& set) {
    const std::size_t count = work->answer.documents();
    bool nulls[3] = {};
    for (std::uint32_t document = 0; document < count; ++document) {
        attempt_or_raise([&] { work->answer.later_neighbors(document, work->neighbors); });
        CHECK_FOR_INTERRUPTS();
        for (std::size_t i = 0; i < work->neighbors.size(); ++i) {
            const NearDuplicate& neighbor = work->neighbors[i];
            if (i % 1024 == 1023) CHECK_FOR_INTERRUPTS();
            Datum values[3] = {work->rows.id(document), work->rows.id(neighbor.document),
                               Float8GetDatum(neighbor.edit_rate)};
            set.put(values, nulls);
        }
    }
}

void put_groups(NearDuplicatesComputation* work, SetCall& set) {
    const RowIds& ids = work->rows.ids;
    bool nulls[3] = {};
    for (std::uint32_t document = 0; document < work->components.size(); ++document) {
        if (document % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const std::uint32_t first = work->components[document];
        Datum values[3] = {ids.at(document), ids.at(first),
                           Int64GetDatum(work->component_sizes[first])};
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo, NearDuplicateForm form) {
    const NearDuplicatesArguments arguments = read_arguments(Arguments(fcinfo), form);
    SetCall set(fcinfo,
                form == NearDuplicateForm::between ? "near_duplicates_between" : "near_duplicates");
    NearDuplicatesComputation* work = compare_documents(arguments, set);
    if (form == NearDuplicateForm::groups)
        put_groups(work, set);
    else
        put_pairs(work, set);
    work->rows.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_near_duplicates) {
    return answer(fcinfo, NearDuplicateForm::pairs);
}
SQL_ALIAS(gputext_near_duplicates_typed, gputext_near_duplicates);

SQL_FUNCTION(gputext_near_duplicates_between) {
    return answer(fcinfo, NearDuplicateForm::between);
}
SQL_ALIAS(gputext_near_duplicates_between_typed, gputext_near_duplicates_between);

SQL_FUNCTION(gputext_near_duplicate_groups) {
    return answer(fcinfo, NearDuplicateForm::groups);
}
SQL_ALIAS(gputext_near_duplicate_groups_typed, gputext_near_duplicate_groups);
}
