#include "extension/base/postgres.hpp"

#include "cpp/knn/outlier_factor.hpp"

#include <cstring>

#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/vector_arguments.hpp"
#include "extension/inputs/vector_query.hpp"
#include "extension/operators/scored_items.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// What a call's arguments say.
struct OutlierFactorArguments {
    InnerQuery items;
    OutlierParameters parameters;
};

/// What a call needs until its last row; dies with the call's memory context.
class OutlierFactorComputation : public ScoredItems {
public:
    OutlierFactorComputation(const OutlierFactorArguments& arguments, const IdType& id_type,
                             std::size_t memory_limit)
        : ScoredItems(id_type, memory_limit), parameters_(arguments.parameters) {}

    JobSize size() const override {
        const Vectors vectors = items.view();
        return {items.size(), items.bytes(), knn_cpu_seconds(vectors, vectors, cpu_threads()), 0,
                items.resident_bytes()};
    }
    Status compute(Execution& execution) override {
        return take_value(local_outlier_factors(parameters_, items.view(), execution), scores);
    }
    void prepare_for_device() override { items.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override {
        return connection.submit(
            OutlierFactorRequest{parameters_, items.files(), {gpu_memory_limit(), -1}}, stop);
    }

private:
    OutlierParameters parameters_;
};

TieRule ties_argument(const Arguments& given) {
    const char* const ties = given.text("ties");
    if (std::strcmp(ties, "sklearn") == 0) return TieRule::sklearn;
    if (std::strcmp(ties, "breunig") == 0) return TieRule::breunig;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("ties must be 'sklearn' or 'breunig', not \"%s\"", ties)));
    pg_unreachable();
}

OutlierFactorArguments read_arguments(const Arguments& given) {
    OutlierFactorArguments arguments{};
    arguments.items.sql = given.text("items");
    arguments.items.id_type = id_type_argument(given);
    arguments.parameters.k = given.count("k");
    arguments.parameters.metric = distance_argument(given);
    arguments.parameters.ties = ties_argument(given);
    arguments.parameters.memory_limit = host_memory_limit();
    arguments.parameters.answer_limit = host_memory_limit();
    return arguments;
}

Datum answer(FunctionCallInfo fcinfo) {
    const OutlierFactorArguments arguments = read_arguments(Arguments(fcinfo));
    SetCall set(fcinfo, "local_outlier_factor");
    OutlierFactorComputation* work = make_owned<OutlierFactorComputation>(
        set.context(), arguments, id_type_of(arguments.items.id_type), host_memory_limit());
    return answer_with_scores(arguments.items, *work, set);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_local_outlier_factor) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_local_outlier_factor_typed, gputext_local_outlier_factor);
}
