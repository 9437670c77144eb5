#include "extension/postgres.hpp"

#include "cpp/knn.hpp"

#include <cmath>

#include "extension/computation.hpp"
#include "extension/owned.hpp"
#include "extension/row_keys.hpp"
#include "extension/set_call.hpp"
#include "extension/settings.hpp"
#include "extension/vector_arguments.hpp"
#include "extension/vector_query.hpp"

namespace gputext {
namespace {

/// What a call's arguments say.
struct Call {
    const char* operation;
    InnerQuery queries;
    InnerQuery items;
    KnnParameters parameters;
    bool exclude_self;
};

/// What a call needs until its last row; dies with the call's memory context.
class Work : public Computation {
public:
    Work(const Call& call, const IdType& id_type, std::size_t memory_limit)
        : queries("query", id_type, memory_limit),
          items("item", id_type, memory_limit),
          call_(call) {}

    VectorRows queries;
    VectorRows items;
    NumberedIds numbers;
    Neighbours answer;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override {
        queries.share();
        items.share();
    }
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& event, Stop stop) override {
        return keep(std::get<NeighboursAnswer>(event).read(stop));
    }

private:
    RowKeys keys() const { return {numbers.queries, numbers.items}; }
    Status keep(Result<Neighbours> found);

    Call call_;
};

double radius_argument(FunctionCallInfo fcinfo, int argument) {
    refuse_null(fcinfo, argument, "radius");
    const double radius = PG_GETARG_FLOAT8(argument);
    if (std::isnan(radius) || radius == -INFINITY)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("radius must be a number, not %g", radius)));
    return radius;
}

/// Arguments: queries, items, id_type where there is one, k or radius, metric, exclude_self.
Call read_call(FunctionCallInfo fcinfo, bool within, bool typed) {
    const int first = typed ? 3 : 2;
    Call call{};
    call.operation = within ? "gpu_knn_within" : "gpu_knn";
    call.queries.sql = text_argument(fcinfo, 0, "queries");
    call.items.sql = text_argument(fcinfo, 1, "items");
    call.queries.id_type = call.items.id_type = id_type_argument(fcinfo, 2, typed);
    call.queries.id_type_place = call.items.id_type_place = "behind the inner queries";
    if (within) {
        call.parameters.k = KnnParameters::all_items;
        call.parameters.radius = radius_argument(fcinfo, first);
    } else {
        call.parameters.k = k_argument(fcinfo, first);
    }
    call.parameters.metric = metric_argument(fcinfo, first + 1);
    call.parameters.memory_limit = host_memory_limit();
    refuse_null(fcinfo, first + 2, "exclude_self");
    call.exclude_self = PG_GETARG_BOOL(first + 2);
    return call;
}

JobSize Work::size() const {
    return {queries.size() + items.size(), queries.bytes() + items.bytes(),
            knn_cpu_seconds(queries.view(), items.view(), cpu_threads())};
}

Status Work::compute(Execution& execution) {
    return keep(
        nearest_neighbours(call_.parameters, queries.view(), items.view(), keys(), execution));
}

Status Work::submit(DaemonConnection& connection, Stop stop) {
    NeighboursRequest request;
    request.parameters = call_.parameters;
    request.queries = queries.files();
    request.items = items.files();
    request.keys = keys();
    request.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status Work::keep(Result<Neighbours> found) {
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    return {};
}

void read_rows(const Call& call, Work& work) {
    run_vector_query(call.queries, work.queries);
    run_vector_query(call.items, work.items, {work.queries.size(), work.queries.bytes()});
    check_same_dimensions(work.queries, work.items);
    if (call.exclude_self) number_ids(work.queries, work.items, work.numbers);
}

void put_neighbours(const Work& work, SetCall& set) {
    const Neighbours& answer = work.answer;
    bool nulls[4] = {};
    for (std::size_t query = 0; query < work.queries.size(); ++query) {
        CHECK_FOR_INTERRUPTS();
        const std::uint64_t begin = answer.begins[query], end = answer.begins[query + 1];
        if (end - begin > PG_INT32_MAX)
            ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                            errmsg("%s has more than %d neighbours",
                                   work.queries.name_of(work.queries.id(query)), PG_INT32_MAX)));
        for (std::uint64_t i = begin; i < end; ++i) {
            if ((i - begin) % 1024 == 1023) CHECK_FOR_INTERRUPTS();
            Datum values[4] = {work.queries.id(query), work.items.id(answer.items[i]),
                               Int32GetDatum(static_cast<int32>(i - begin + 1)),
                               Float8GetDatum(answer.distances[i])};
            set.put(values, nulls);
        }
    }
}

Datum answer(FunctionCallInfo fcinfo, bool within, bool typed) {
    const Call call = read_call(fcinfo, within, typed);
    SetCall set(fcinfo, call.operation);
    Work* work =
        make_owned<Work>(set.context(), call, id_type_of(call.items.id_type), host_memory_limit());
    read_rows(call, *work);
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    put_neighbours(*work, set);
    work->queries.release();
    work->items.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_knn);
PG_FUNCTION_INFO_V1(gputext_knn_typed);
PG_FUNCTION_INFO_V1(gputext_knn_within);
PG_FUNCTION_INFO_V1(gputext_knn_within_typed);

PGDLLEXPORT Datum gputext_knn(PG_FUNCTION_ARGS) {
    return answer(fcinfo, false, false);
}

PGDLLEXPORT Datum gputext_knn_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo, false, true);
}

PGDLLEXPORT Datum gputext_knn_within(PG_FUNCTION_ARGS) {
    return answer(fcinfo, true, false);
}

PGDLLEXPORT Datum gputext_knn_within_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo, true, true);
}
}
