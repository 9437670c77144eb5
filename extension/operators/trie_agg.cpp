#include "extension/base/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/memutils.h"
#include "utils/palloc.h"
}

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <span>
#include <vector>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/vocabulary.hpp"
#include "cpp/trie/trie.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/time_split.hpp"
#include "extension/types/text_arguments.hpp"
#include "extension/types/trie_value.hpp"

namespace gputext {
namespace {

/// What PostgreSQL counts as a context's memory, and limits by that. Raises no error of
/// PostgreSQL's: containers throw std::bad_alloc. They have to be destroyed before the context's
/// memory goes, as those in an object of make_owned() are.
class ContextMemory final : public std::pmr::memory_resource {
public:
    explicit ContextMemory(MemoryContext context) : context_(context) {}

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        void* const memory =
            alignment > MAXIMUM_ALIGNOF || bytes > MaxAllocHugeSize
                ? nullptr
                : MemoryContextAllocExtended(context_, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
        if (memory == nullptr) throw std::bad_alloc();
        if (bytes >= kLarge) prefer_large_pages(static_cast<std::uint8_t*>(memory), bytes);
        return memory;
    }
    void do_deallocate(void* memory, std::size_t, std::size_t) override { pfree(memory); }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }

    /// Bytes that are worth large pages.
    static constexpr std::size_t kLarge = std::size_t{1} << 22;

    MemoryContext context_;
};

/// Words on their way into a vocabulary, which takes many at once in less time.
class PendingWords {
public:
    explicit PendingWords(std::pmr::memory_resource* memory) : bytes_(memory), ends_(memory) {}

    bool empty() const { return ends_.empty(); }
    /// False without room for the word.
    bool keep(std::string_view word) noexcept {
        if (ends_.size() >= std::min(ends_.capacity(), kMost) ||
            bytes_.capacity() - bytes_.size() < word.size())
            return false;
        bytes_.insert(bytes_.end(), word.begin(), word.end());
        ends_.push_back(bytes_.size());
        return true;
    }
    /// Adds them to the vocabulary, and makes room for as many as are worth their memory beside
    /// what that has. False when stopped.
    bool hand_over(Vocabulary& words, Stop stop) {
        std::array<std::string_view, kMost> pending;
        for (std::size_t i = 0, begin = 0; i < ends_.size(); begin = ends_[i++])
            pending[i] = {bytes_.data() + begin, ends_[i] - begin};
        if (!words.add_all(std::span(pending).first(ends_.size()), stop)) return false;
        bytes_.clear();
        ends_.clear();
        const std::size_t room = std::min<std::size_t>(words.size() / kPart, kMost);
        ends_.reserve(room);
        bytes_.reserve(room * kBytesOfWord);
        return true;
    }

private:
    static constexpr std::size_t kMost = 64, kPart = 16, kBytesOfWord = 32;

    std::pmr::vector<char> bytes_;
    std::pmr::vector<std::size_t> ends_;
};

/// The state of the aggregate: words that come again take no more memory. All of it lies in the
/// aggregate's context, so that a HashAggregate sees what its groups take.
class Gathered {
public:
    explicit Gathered(MemoryContext context) : memory_(context) {}

    bool empty() const { return words_.size() == 0 && pending_.empty(); }
    /// False where only add() can take the word.
    bool keep(std::string_view word) noexcept { return pending_.keep(word); }
    /// False when stopped.
    bool add(std::string_view word, Stop stop) {
        return pending_.hand_over(words_, stop) &&
               (keep(word) || words_.add(word, stop) != Vocabulary::kNone);
    }
    /// Every word that came. False when stopped.
    bool gather(Stop stop) { return pending_.hand_over(words_, stop); }
    /// After gather().
    const Vocabulary& words() const { return words_; }

    TrieStructure structure = TrieStructure::front;

private:
    ContextMemory memory_;
    Vocabulary words_{&memory_};
    PendingWords pending_{&memory_};
};

TrieStructure structure_argument(std::string_view name) {
    if (const auto structure = structure_named(name)) return *structure;
    StringInfoData names;
    initStringInfo(&names);
    for (const TrieStructure structure : kTrieStructures)
        appendStringInfo(&names, "%s%s", names.len == 0 ? "" : ", ", name_of(structure));
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("there is no structure of dictionaries named \"%.*s\"",
                           static_cast<int>(name.size()), name.data()),
                    errhint("The structures are: %s.", names.data)));
}

/// The transition function's third argument, where it has one; it has to be the same in all rows.
void choose_structure(FunctionCallInfo fcinfo, Gathered* gathered) {
    if (PG_NARGS() < 3) return;
    if (PG_ARGISNULL(2))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("the structure of a dictionary must not be null")));
    const TrieStructure structure = structure_argument(view_of(PG_GETARG_VARLENA_PP(2)));
    if (!gathered->empty() && structure != gathered->structure)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a dictionary has one structure, and not both %s and %s",
                               name_of(gathered->structure), name_of(structure))));
    gathered->structure = structure;
}

MemoryContext aggregate_context(FunctionCallInfo fcinfo) {
    MemoryContext context;
    if (!AggCheckCallContext(fcinfo, &context))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("this function can only be called by the aggregate trie_agg")));
    return context;
}

// ---- Building ----

class TrieBuildComputation final : public Computation {
public:
    /// The words outlive this.
    TrieBuildComputation(TrieStructure structure, const Vocabulary& words)
        : structure_(structure), words_(words) {}

    std::vector<std::uint8_t> image;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override {}  // submit() copies the words
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& answer, Stop stop) override;

private:
    TrieStructure structure_;
    const Vocabulary& words_;
};

JobSize TrieBuildComputation::size() const {
    const Words words = words_.words();
    return {words.size(), words.byte_count() + words.size() * sizeof words.begins[0],
            trie_build_cpu_seconds(words.size(), words.byte_count(), cpu_threads())};
}

Status TrieBuildComputation::compute(Execution& execution) {
    return take_value(build_trie(structure_, words_.words(), execution), image);
}

Status TrieBuildComputation::submit(DaemonConnection& connection, Stop stop) {
    TrieBuildRequest request;
    request.structure = structure_;
    request.words.words = words_.words();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status TrieBuildComputation::take(const DaemonEvent& answer, Stop stop) {
    return take_value(std::get<TrieBuildAnswer>(answer).read(stop), image);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_trie_agg_transition) {
    MemoryContext context = aggregate_context(fcinfo);
    auto* gathered = PG_ARGISNULL(0) ? nullptr : reinterpret_cast<Gathered*>(PG_GETARG_POINTER(0));
    if (PG_ARGISNULL(1)) {
        if (gathered == nullptr) PG_RETURN_NULL();
        PG_RETURN_POINTER(gathered);
    }
    if (gathered == nullptr) gathered = make_owned<Gathered>(context, context);
    choose_structure(fcinfo, gathered);
    const std::string_view word = view_of(PG_GETARG_VARLENA_PP(1));
    if (!gathered->keep(word)) attempt_or_raise([&] { gathered->add(word, stop_on_interrupt()); });
    PG_RETURN_POINTER(gathered);
}

SQL_FUNCTION(gputext_trie_agg_final) {
    MemoryContext context = aggregate_context(fcinfo);
    if (PG_ARGISNULL(0)) PG_RETURN_NULL();
    auto& gathered = *reinterpret_cast<Gathered*>(PG_GETARG_POINTER(0));
    attempt_or_raise([&] { gathered.gather(stop_on_interrupt()); });
    // Ends before the words do.
    MemoryContext own = AllocSetContextCreate(context, "gputext trie_agg", ALLOCSET_SMALL_SIZES);
    begin_activity("trie_agg", own);
    TimeSplit times;
    TrieBuildComputation* const build =
        make_owned<TrieBuildComputation>(own, gathered.structure, gathered.words());
    run_computation(*build, times, own);
    varlena* const value = new_trie_value(build->image.size());
    std::memcpy(VARDATA(value), build->image.data(), build->image.size());
    times.lap("making the value");
    times.report("trie_agg");
    MemoryContextDelete(own);
    PG_RETURN_POINTER(value);
}
}
