#include "extension/operators/trie_build.hpp"

#include "extension/server/settings.hpp"

namespace gputext {

JobSize TrieBuildComputation::size() const {
    const Words words = words_.words();
    return {words.size(), words.byte_count() + words.size() * sizeof words.begins[0],
            trie_build_cpu_seconds(words.size(), words.byte_count(), cpu_threads())};
}

Status TrieBuildComputation::compute(Execution& execution) {
    auto built = build_trie(structure_, words_.words(), execution);
    if (!built.ok()) return built.status();
    image = std::move(*built);
    return {};
}

Status TrieBuildComputation::submit(DaemonConnection& connection, Stop stop) {
    TrieBuildRequest request;
    request.structure = structure_;
    request.words.words = words_.words();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status TrieBuildComputation::take(const DaemonEvent& answer, Stop stop) {
    auto read = std::get<TrieBuildAnswer>(answer).read(stop);
    if (!read.ok()) return read.status();
    image = std::move(*read);
    return {};
}

}  // namespace gputext
