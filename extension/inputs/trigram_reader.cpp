#include "extension/inputs/trigram_reader.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "extension/base/server_versions.hpp"
#include "extension/types/distance_names.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

constexpr std::uint32_t kBeforeWord = ' ' << 8 | ' ';
constexpr std::uint32_t kLowBytes = 0xffffff;
/// Longer texts are left to show_trgm(), whose time they take in any case.
constexpr std::size_t kLongestAscii = 64 * 1024;

/// A trigram of three bytes, or of other characters as the number that stands for them: 0x123456.
std::uint32_t trigram_number(const text* trigram) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(trigram));
    const std::size_t size = VARSIZE_ANY_EXHDR(trigram);
    if (size == 3)
        return static_cast<std::uint32_t>(bytes[0]) << 16 |
               static_cast<std::uint32_t>(bytes[1]) << 8 | bytes[2];
    char digits[9] = {};
    if (size != 8 || std::memcmp(bytes, "0x", 2) != 0)
        elog(ERROR, "show_trgm gave a trigram of %zu bytes", size);
    std::memcpy(digits, bytes, 8);
    return static_cast<std::uint32_t>(std::strtoul(digits, nullptr, 16));
}

/// Sorts numbers, leaves one of each, and returns how many there are.
std::size_t sort_different(std::uint32_t* numbers, std::size_t count) {
    std::sort(numbers, numbers + count);
    return static_cast<std::size_t>(std::unique(numbers, numbers + count) - numbers);
}

Datum text_of(std::string_view characters) {
    return PointerGetDatum(
        cstring_to_text_with_len(characters.data(), static_cast<int>(characters.size())));
}

}  // namespace

Oid trigram_function() {
    CatCList* const functions = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("show_trgm"));
    Oid found = InvalidOid;
    for (int i = 0; i < functions->n_members; ++i) {
        HeapTuple tuple = &functions->members[i]->tuple;
        // Nobody but a superuser makes one in C.
        const auto* const function = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
        if (function->prolang == ClanguageId && function->pronargs == 1 &&
            function->proargtypes.values[0] == TEXTOID && function->prorettype == TEXTARRAYOID &&
            belongs_to_extension(ProcedureRelationId, function->oid, "pg_trgm"))
            found = function->oid;
    }
    ReleaseSysCacheList(functions);
    return found;
}

TrigramReader::TrigramReader(Oid function) : context_(CurrentMemoryContext) {
    fmgr_info(function, &function_);
    learn_characters();
}

/// Room for so many numbers. What was there is lost.
void TrigramReader::reserve(std::size_t count) {
    if (count <= capacity_) return;
    if (numbers_ != nullptr) pfree(numbers_);
    numbers_ = nullptr;
    capacity_ = 0;
    const std::size_t wanted = std::max<std::size_t>(64, 2 * count);
    numbers_ = static_cast<std::uint32_t*>(
        MemoryContextAllocHuge(context_, wanted * sizeof(std::uint32_t)));
    capacity_ = wanted;
}

std::span<const std::uint32_t> TrigramReader::ask(Datum value) {
    const Datum array = FunctionCall1Coll(&function_, DEFAULT_COLLATION_OID, value);
    Datum* trigrams;
    int count;
    deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &trigrams,
                      nullptr, &count);
    reserve(static_cast<std::size_t>(count) + 1);
    for (int i = 0; i < count; ++i) numbers_[i] = trigram_number(DatumGetTextPP(trigrams[i]));
    return {numbers_, sort_different(numbers_, static_cast<std::size_t>(count))};
}

/// What a character becomes within a word: a word of it alone has the trigrams "  c" and " c ". 0
/// where it is in no word; none where it becomes something else than one character of ASCII.
std::optional<std::uint8_t> TrigramReader::ask_character(char character) {
    const std::span<const std::uint32_t> found = ask(text_of({&character, 1}));
    if (found.empty()) return 0;
    const std::uint32_t becomes = found.front() & 0x7f;
    if (found.size() != 2 || becomes <= ' ' || found[0] != (kBeforeWord << 8 | becomes) ||
        found[1] != (static_cast<std::uint32_t>(' ') << 16 | becomes << 8 | ' '))
        return std::nullopt;
    return static_cast<std::uint8_t>(becomes);
}

/// Whether both ways give the same trigrams of a text with all characters.
bool TrigramReader::reads_as_asked() {
    char all[2 * 127];
    for (int c = 1; c < 128; ++c) {
        all[2 * c - 2] = static_cast<char>(c);
        all[2 * c - 1] = static_cast<char>(128 - c);
    }
    const Datum text = text_of({all, sizeof all});
    const std::span<const std::uint32_t> asked = ask(text);
    auto* const kept = static_cast<std::uint32_t*>(palloc(asked.size_bytes() + 1));
    std::copy(asked.begin(), asked.end(), kept);
    const std::size_t count = asked.size();
    reserve(sizeof all + 1);
    const std::size_t read =
        read_known(bytes_of(reinterpret_cast<const varlena*>(DatumGetPointer(text))), numbers_);
    return std::equal(numbers_, numbers_ + read, kept, kept + count);
}

void TrigramReader::learn_characters() {
    const MemoryContext memory =
        AllocSetContextCreate(context_, "gputext trigrams", ALLOCSET_SMALL_SIZES);
    const MemoryContext before = MemoryContextSwitchTo(memory);
    bool known = true;
    for (std::size_t c = 1; c < characters_.size() && known; ++c) {
        const std::optional<std::uint8_t> becomes = ask_character(static_cast<char>(c));
        known = becomes.has_value();
        characters_[c] = becomes.value_or(0);
    }
    knows_characters_ = known && reads_as_asked();
    MemoryContextSwitchTo(before);
    MemoryContextDelete(memory);
}

/// The trigrams of a text of ASCII characters, not sorted.
std::size_t TrigramReader::read_ascii(Bytes text, std::uint32_t* numbers) const {
    std::size_t count = 0;
    std::uint32_t last = kBeforeWord;
    bool in_word = false;
    const auto append = [&](std::uint8_t character) {
        last = (last << 8 | character) & kLowBytes;
        numbers[count++] = last;
    };
    for (const std::uint8_t byte : text) {
        if (const std::uint8_t character = characters_[byte]) {
            append(character);
            in_word = true;
        } else if (in_word) {
            append(' ');
            last = kBeforeWord;
            in_word = false;
        }
    }
    if (in_word) append(' ');
    return count;
}

bool TrigramReader::knows(Bytes text) const {
    return knows_characters_ && text.size() <= kLongestAscii &&
           std::ranges::all_of(text, [this](auto byte) { return byte < characters_.size(); });
}

std::size_t TrigramReader::read_known(Bytes text, std::uint32_t* numbers) const {
    return sort_different(numbers, read_ascii(text, numbers));
}

std::span<const std::uint32_t> TrigramReader::read(Datum value) {
    text* const unpacked = DatumGetTextPP(value);
    const Bytes bytes = bytes_of(unpacked);
    if (!knows(bytes)) return ask(PointerGetDatum(unpacked));
    reserve(bytes.size() + 1);
    return {numbers_, read_known(bytes, numbers_)};
}

}  // namespace gputext
