#include "extension/operators/word2vec_training.hpp"

#include "extension/server/settings.hpp"

namespace gputext {

JobSize Word2VecComputation::size() const {
    const std::size_t tokens = words_.tokens.size();
    return {tokens, words_.tokens.bytes() + words_.known.size(),
            word2vec_cpu_seconds(parameters_, tokens, cpu_threads()),
            word2vec_device_seconds(parameters_, tokens)};
}

Status Word2VecComputation::compute(Execution& execution) {
    TrainingRun run(
        {parameters_, sample_, words_.tokens.view(), words_.chosen.counts, words_.known_vectors()});
    GPUTEXT_TRY(run.prepare(execution));
    GPUTEXT_TRY(run.run_on_cpu(execution));
    model = run.model();
    hub = run.hub();
    return {};
}

void Word2VecComputation::prepare_for_device() {
    words_file_ = words_.tokens.words().share();
    positions_file_ = words_.tokens.positions().share();
    if (words_.known_words() > 0) known_file_ = words_.known.share();
}

Status Word2VecComputation::submit(DaemonConnection& connection, Stop stop) {
    Word2VecRequest request;
    request.parameters = parameters_;
    request.sample = sample_;
    request.tokens = words_.tokens.size();
    request.words = words_file_.get();
    request.positions = positions_file_.get();
    request.counts = words_.chosen.counts;
    request.known_words = words_.known_words();
    request.known = known_file_.get();
    request.host_memory_limit = host_memory_limit();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status Word2VecComputation::take(const DaemonEvent& event, Stop stop) {
    const auto& answer = std::get<Word2VecAnswer>(event);
    auto read = answer.read(stop);
    if (!read.ok()) return read.status();
    model = std::move(*read);
    hub = {answer.summary.hub_lists, answer.summary.hub_of};
    return {};
}

void check_training_memory(const TrainingParameters& parameters, std::uint64_t words,
                           std::uint64_t tokens) {
    const std::uint64_t needed = training_bytes(parameters, words, tokens, cpu_threads());
    ereport(DEBUG1, (errmsg_internal("training " UINT64_FORMAT " words in %u dimensions takes "
                                     "" UINT64_FORMAT " bytes",
                                     words, parameters.dimensions, needed)));
    if (needed <= host_memory_limit()) return;
    ereport(ERROR,
            (errcode(ERRCODE_OUT_OF_MEMORY),
             errmsg("training " UINT64_FORMAT " words in %u dimensions would take " UINT64_FORMAT
                    " bytes of memory",
                    words, parameters.dimensions, needed),
             errdetail("gputext.host_memory_limit is %zu bytes.", host_memory_limit()),
             errhint("Fewer dimensions, a larger min_count or fewer replicas take less, or raise "
                     "gputext.host_memory_limit.")));
}

}  // namespace gputext
