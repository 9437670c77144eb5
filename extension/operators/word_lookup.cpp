#include "extension/operators/word_lookup.hpp"

#include "extension/server/settings.hpp"

namespace gputext {

JobSize WordLookupComputation::size() const {
    return {rows_, words_.bytes() + image_.size(),
            word_lookup_cpu_seconds(words_.size(), image_.size(), cpu_threads())};
}

Status WordLookupComputation::compute(Execution& execution) {
    codes.resize(words_.size());
    return lookup_words(trie_, words_.view(), codes, execution);
}

Status WordLookupComputation::submit(DaemonConnection& connection, Stop stop) {
    WordLookupRequest request;
    request.dictionary = image_;
    request.dictionary_words = trie_.stats().words;
    request.words = words_.files();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status WordLookupComputation::take(const DaemonEvent& answer, Stop stop) {
    auto read = std::get<WordLookupAnswer>(answer).read(stop);
    if (!read.ok()) return read.status();
    codes = std::move(*read);
    return {};
}

}  // namespace gputext
