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
#include <memory>
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
    /// After gather(); of a state that another process gathered, its words.
    Words words() const { return of_other_.size() > 0 ? of_other_ : words_.words(); }
    /// What another process gathered, in memory that lasts as long as this.
    void view(const Words& words) { of_other_ = words; }
    /// Adds words of another state. False when stopped.
    bool add_all(const Words& words, Stop stop);

    TrieStructure structure = TrieStructure::front;

private:
    ContextMemory memory_;
    Words of_other_;
    Vocabulary words_{&memory_};
    PendingWords pending_{&memory_};
};

bool Gathered::add_all(const Words& words, Stop stop) {
    std::array<std::string_view, 1024> some;
    for (std::size_t begin = 0; begin < words.size(); begin += some.size()) {
        const std::size_t count = std::min(some.size(), words.size() - begin);
        for (std::size_t i = 0; i < count; ++i) some[i] = words[begin + i];
        if (stop() || !words_.add_all(std::span(some).first(count), stop)) return false;
    }
    return true;
}

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

/// It has to be the same in all rows.
void set_structure(Gathered* gathered, TrieStructure structure) {
    if (!gathered->empty() && structure != gathered->structure)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a dictionary has one structure, and not both %s and %s",
                               name_of(gathered->structure), name_of(structure))));
    gathered->structure = structure;
}

/// The transition function's third argument, where it has one.
void choose_structure(FunctionCallInfo fcinfo, Gathered* gathered) {
    if (PG_NARGS() < 3) return;
    if (PG_ARGISNULL(2))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("the structure of a dictionary must not be null")));
    set_structure(gathered, structure_argument(view_of(PG_GETARG_VARLENA_PP(2))));
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
    TrieBuildComputation(TrieStructure structure, const Words& words)
        : structure_(structure), words_(words) {}

    std::vector<std::uint8_t> image;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override {}  // submit() copies the words
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& answer, Stop stop) override;

private:
    TrieStructure structure_;
    Words words_;
};

JobSize TrieBuildComputation::size() const {
    return {words_.size(), words_.byte_count() + words_.size() * sizeof words_.begins[0],
            trie_build_cpu_seconds(words_.size(), words_.byte_count(), cpu_threads())};
}

Status TrieBuildComputation::compute(Execution& execution) {
    return take_value(build_trie(structure_, words_, execution), image);
}

Status TrieBuildComputation::submit(DaemonConnection& connection, Stop stop) {
    TrieBuildRequest request;
    request.structure = structure_;
    request.words.words = words_;
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status TrieBuildComputation::take(const DaemonEvent& answer, Stop stop) {
    return take_value(std::get<TrieBuildAnswer>(answer).read(stop), image);
}

/// The dictionary of what was gathered, as a value of type trie in the memory that is current.
varlena* build_value(MemoryContext context, TrieStructure structure, const Words& words) {
    // Ends before the words do.
    MemoryContext own = AllocSetContextCreate(context, "gputext trie_agg", ALLOCSET_SMALL_SIZES);
    begin_activity("trie_agg", own);
    TimeSplit times;
    TrieBuildComputation* const build = make_owned<TrieBuildComputation>(own, structure, words);
    run_computation(*build, times, own);
    varlena* const value = new_trie_value(build->image.size());
    std::memcpy(VARDATA(value), build->image.data(), build->image.size());
    times.lap("making the value");
    times.report("trie_agg");
    MemoryContextDelete(own);
    return value;
}

// ---- From one process to another ----

/// What is carried begins with this. Behind it are where the words begin, as in Words, and their
/// bytes; or, where they would be too large for a value, their dictionary of structure front.
struct CarriedHeader {
    std::uint64_t words;  // 0 before a dictionary
    TrieStructure structure;
    std::uint32_t unused;
};

bytea* new_carried(const CarriedHeader& header, std::size_t size) {
    auto* const carried = static_cast<bytea*>(palloc(VARHDRSZ + sizeof header + size));
    SET_VARSIZE(carried, VARHDRSZ + sizeof header + size);
    std::memcpy(VARDATA(carried), &header, sizeof header);
    return carried;
}

/// The bytes behind the header.
char* behind_header(bytea* carried) {
    return VARDATA(carried) + sizeof(CarriedHeader);
}

/// As a value may have 1 GB, and the memory that the setting allows.
std::size_t most_carried() {
    return std::min<std::size_t>(MaxAllocSize - VARHDRSZ - sizeof(CarriedHeader),
                                 host_memory_limit());
}

bytea* carry(MemoryContext context, TrieStructure structure, const Words& words) {
    const std::size_t begins = (words.size() + 1) * sizeof words.begins[0];
    if (begins + words.byte_count() > most_carried()) {
        const varlena* const value = build_value(context, TrieStructure::front, words);
        bytea* const carried = new_carried({0, structure, 0}, VARSIZE(value) - VARHDRSZ);
        std::memcpy(behind_header(carried), VARDATA(value), VARSIZE(value) - VARHDRSZ);
        return carried;
    }
    bytea* const carried = new_carried({words.size(), structure, 0}, begins + words.byte_count());
    std::memcpy(behind_header(carried), words.begins, begins);
    std::memcpy(behind_header(carried) + begins, words.bytes, words.byte_count());
    return carried;
}

/// Adds the words of a dictionary. Error: cancelled.
Status add_words_of(std::span<const std::uint8_t> image, Gathered& gathered, Stop stop) {
    const Result<std::unique_ptr<Trie>> trie = open_trie(image);
    if (!trie.ok()) return trie.status();
    const std::unique_ptr<TrieCursor> cursor = (*trie)->cursor({0, (*trie)->stats().words});
    while (cursor->next())
        if (!gathered.keep(cursor->word()) && (stop() || !gathered.add(cursor->word(), stop)))
            return Status::cancelled();
    return {};
}

/// In the memory that is current.
Gathered* gathered_of(const bytea* carried) {
    CarriedHeader header;
    std::memcpy(&header, VARDATA_ANY(carried), sizeof header);
    const std::size_t size = VARSIZE_ANY_EXHDR(carried) - sizeof header;
    auto* const bytes = static_cast<std::uint8_t*>(palloc(size));
    std::memcpy(bytes, VARDATA_ANY(carried) + sizeof header, size);
    Gathered* const gathered = make_owned<Gathered>(CurrentMemoryContext, CurrentMemoryContext);
    gathered->structure = header.structure;
    if (header.words > 0) {
        const auto* const begins = reinterpret_cast<const std::uint64_t*>(bytes);
        gathered->view({bytes + (header.words + 1) * sizeof *begins, begins, header.words});
    } else {
        attempt_or_raise([&]() -> Status {
            const Stop stop = stop_on_interrupt();
            GPUTEXT_TRY(add_words_of({bytes, size}, *gathered, stop));
            return gathered->gather(stop) ? Status() : Status::cancelled();
        });
    }
    return gathered;
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
    PG_RETURN_POINTER(build_value(context, gathered.structure, gathered.words()));
}

SQL_FUNCTION(gputext_trie_agg_combine) {
    MemoryContext context = aggregate_context(fcinfo);
    auto* gathered = PG_ARGISNULL(0) ? nullptr : reinterpret_cast<Gathered*>(PG_GETARG_POINTER(0));
    if (PG_ARGISNULL(1)) {
        if (gathered == nullptr) PG_RETURN_NULL();
        PG_RETURN_POINTER(gathered);
    }
    auto& other = *reinterpret_cast<Gathered*>(PG_GETARG_POINTER(1));
    if (gathered == nullptr) gathered = make_owned<Gathered>(context, context);
    set_structure(gathered, other.structure);
    attempt_or_raise([&] {
        const Stop stop = stop_on_interrupt();
        if (other.gather(stop)) gathered->add_all(other.words(), stop);
    });
    PG_RETURN_POINTER(gathered);
}

SQL_FUNCTION(gputext_trie_agg_serialize) {
    MemoryContext context = aggregate_context(fcinfo);
    auto& gathered = *reinterpret_cast<Gathered*>(PG_GETARG_POINTER(0));
    attempt_or_raise([&] { gathered.gather(stop_on_interrupt()); });
    PG_RETURN_BYTEA_P(carry(context, gathered.structure, gathered.words()));
}

SQL_FUNCTION(gputext_trie_agg_deserialize) {
    aggregate_context(fcinfo);
    PG_RETURN_POINTER(gathered_of(PG_GETARG_BYTEA_PP(0)));
}
}
