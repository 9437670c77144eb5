// cpp/documents/ssdeep.cpp - ssdeep's fuzzy hash and its score, bit for bit as in libfuzzy 2.14

#include "cpp/documents/ssdeep.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/hash_batches.hpp"

namespace gputext {
namespace {

constexpr std::uint64_t block_size(int level) {
    return std::uint64_t{3} << level;
}

// Cuts. A position cuts at level n, block size 3 * 2^n, iff its hash + 1 is a multiple of the
// block size and has not wrapped round to zero; so it cuts at all levels up to its own.

constexpr std::uint32_t third = 0xaaaaaaab;             // the inverse of 3 modulo 2^32
constexpr int levels = SsdeepSignature::max_level + 2;  // one more, for the doubled block size
constexpr std::size_t single_limit = 64;                // letters in the first part
constexpr std::size_t doubled_limit = 32;

/// Whether a hash cuts at level `floor` or above: the quotient by 3 is at most (2^32 - 1) / 3 for
/// multiples of 3 only; turning it right brings its low `floor` bits, which must be zero, to the
/// top. The 1 taken away excludes zero.
constexpr bool cuts(std::uint32_t hash, int floor) {
    return std::rotr((hash + 1) * third, floor) - 1 < (0x55555555U >> floor);
}

/// The highest level at which a hash cuts; it must cut at level 0.
constexpr int level_of(std::uint32_t hash) {
    return std::countr_zero((hash + 1) * third);
}

struct Cut {
    std::size_t end;  // of the piece that the cut ends, in bytes from the document's begin
    int level;
};

/// The cuts of a document at a level and above. No part has more than 63 pieces before its last,
/// so of each level's cuts the first 63, their number and the last are all that can matter; this
/// bounds the memory whatever the document.
struct Cuts {
    static constexpr std::size_t kept = single_limit - 1;

    std::array<std::size_t, levels> count = {};  // of cuts whose highest level is the index
    std::array<std::size_t, levels> last = {};   // the end of the last of them
    std::array<Cut, kept * levels> first;        // ascending; left uninitialised for speed
    std::size_t first_size = 0;
    std::uint32_t final_hash = 0;

    void clear() {
        count = {};
        last = {};
        first_size = 0;
        final_hash = 0;
    }

    void add(std::size_t end, std::uint32_t hash) {
        const int level = level_of(hash);
        if (count[level]++ < kept) first[first_size++] = {end, level};
        last[level] = end;
    }

    std::size_t count_from(int level) const {
        std::size_t sum = 0;
        for (int l = level; l < levels; ++l) sum += count[l];
        return sum;
    }

    std::size_t last_from(int level) const {
        return *std::max_element(last.begin() + level, last.end());
    }
};

/// Hashes that cut at a level or above.
struct CutMark {
    int floor;
    [[gnu::always_inline]] bool operator()(std::uint32_t hash) const { return cuts(hash, floor); }
};

/// False if stopped.
bool find_cuts(std::span<const std::uint8_t> document, int floor, Cuts& out, Stop stop) {
    out.clear();
    const auto add = [&out](std::size_t end, std::uint32_t hash) { out.add(end, hash); };
    return for_each_marked(document, CutMark{floor}, add, out.final_hash, stop);
}

/// The smallest level whose block size would, in 64 pieces, reach the document's size.
int first_guess(std::size_t size) {
    int level = 0;
    while (level < SsdeepSignature::max_level && block_size(level) * single_limit < size) ++level;
    return level;
}

/// The highest level from `floor` to `guess` that cuts into enough pieces, or else `floor`.
int choose_level(const Cuts& found, int floor, int guess) {
    int level = guess;
    while (level > floor && found.count_from(level) < single_limit / 2) --level;
    return level;
}

/// Finds the cuts and returns the level. Cuts below the level do not matter, and most documents
/// have theirs just below the first guess; only where that fails are all cuts looked at. No level
/// if stopped.
std::optional<int> find_level(std::span<const std::uint8_t> document, Cuts& out, Stop stop) {
    const int guess = first_guess(document.size());
    const int floor = std::max(guess - 2, 0);
    if (!find_cuts(document, floor, out, stop)) return std::nullopt;
    if (floor > 0 && out.count_from(floor) < single_limit / 2) {
        if (!find_cuts(document, 0, out, stop)) return std::nullopt;
        return choose_level(out, 0, floor - 1);
    }
    return choose_level(out, floor, guess);
}

// Pieces. A piece's hash has a fixed start and takes each byte c as (19 * hash) xor c modulo 64;
// high bits never reach low ones, so they may hold anything until the letter is read.

constexpr std::uint32_t first_hash = 0x27;

struct Piece {
    const std::uint8_t* at;
    const std::uint8_t* end;
    std::uint32_t hash;

    std::size_t left() const { return static_cast<std::size_t>(end - at); }
    char letter() const { return kSignatureAlphabet[hash & 0x3f]; }
};

constexpr std::size_t lanes = 4;

/// Takes `bytes` more bytes into each of N pieces. One piece's hash waits for its multiplication
/// at every byte; several side by side fill the wait.
template <std::size_t N>
void advance(const std::array<Piece*, lanes>& active, std::size_t bytes) {
    std::array<const std::uint8_t*, N> at;
    std::array<std::uint32_t, N> hash;
// Unrolled, the arrays become registers.
#pragma GCC unroll 8
    for (std::size_t k = 0; k < N; ++k) {
        at[k] = active[k]->at;
        hash[k] = active[k]->hash;
    }
    for (std::size_t i = 0; i < bytes; ++i) {
#pragma GCC unroll 8
        for (std::size_t k = 0; k < N; ++k) hash[k] = hash[k] * 19 ^ at[k][i];
    }
#pragma GCC unroll 8
    for (std::size_t k = 0; k < N; ++k) {
        active[k]->at += bytes;
        active[k]->hash = hash[k];
    }
}

/// Bytes of each active piece between two looks at the stop request.
constexpr std::size_t stride = std::size_t{1} << 21;

/// False if stopped.
bool hash_pieces(std::span<Piece> pieces, Stop stop) {
    std::array<Piece*, lanes> active = {};
    std::size_t width = 0;
    std::size_t next = 0;
    for (;;) {
        while (width < lanes && next < pieces.size()) active[width++] = &pieces[next++];
        if (width == 0) return true;
        if (stop()) return false;
        std::size_t bytes = std::min(stride, active[0]->left());
        for (std::size_t k = 1; k < width; ++k) bytes = std::min(bytes, active[k]->left());
        switch (width) {
            case 4:
                advance<4>(active, bytes);
                break;
            case 3:
                advance<3>(active, bytes);
                break;
            case 2:
                advance<2>(active, bytes);
                break;
            default:
                advance<1>(active, bytes);
                break;
        }
        for (std::size_t k = width; k-- > 0;) {
            if (active[k]->left() == 0) active[k] = active[--width];
        }
    }
}

/// The pieces of one part of the signature. All but the last letter stand for one piece each; the
/// last stands for the rest of the document, however many more cuts that has. A document that ends
/// in zeros, whose final hash is zero, has no unfinished piece: then the rest ends with its last
/// cut, and without a cut there is no last letter.
struct Division {
    std::size_t rest_begin = 0;
    std::size_t rest_end = 0;
    bool has_rest = false;
    std::array<std::size_t, single_limit> ends;  // the last is room for an end that does not count
    std::size_t size = 0;                        // of `ends`
};

void divide(const Cuts& found, int level, std::size_t limit, std::size_t size, Division& out) {
    for (std::size_t i = 0; i < found.first_size && out.size < limit - 1; ++i) {
        // About half of the cuts count, at random: a branch would often be mispredicted.
        out.ends[out.size] = found.first[i].end;
        out.size += found.first[i].level >= level;
    }
    const bool unfinished = found.final_hash != 0;
    out.has_rest = unfinished || found.count_from(level) >= limit;
    if (!out.has_rest) return;
    out.rest_begin = out.size == 0 ? 0 : out.ends[out.size - 1];
    out.rest_end = unfinished ? size : found.last_from(level);
}

struct PieceList {
    std::array<Piece, single_limit + doubled_limit> pieces;
    std::size_t size = 0;

    void add(const std::uint8_t* begin, const std::uint8_t* end) {
        pieces[size++] = {begin, end, first_hash};
    }
    void add_finished(const std::uint8_t* document, const Division& division) {
        std::size_t begin = 0;
        for (std::size_t i = 0; i < division.size; ++i) {
            add(document + begin, document + division.ends[i]);
            begin = division.ends[i];
        }
    }
};

/// Appends one part: the letters of its finished pieces, which lie in sequence, and of the rest.
void append_part(const Division& division, const Piece* finished, const Piece& rest,
                 std::string& out) {
    std::array<char, single_limit> letters;
    std::size_t size = 0;
    while (size < division.size) {
        letters[size] = finished[size].letter();
        ++size;
    }
    if (division.has_rest) letters[size++] = rest.letter();
    out.append(letters.data(), size);
}

}  // namespace

Result<std::string> ssdeep_hash(std::span<const std::uint8_t> document, Stop stop) {
    Cuts found;
    const std::optional<int> level_found = find_level(document, found, stop);
    if (!level_found) return Status::cancelled();
    const int level = *level_found;
    Division single;
    Division doubled;
    divide(found, level, single_limit, document.size(), single);
    divide(found, level + 1, doubled_limit, document.size(), doubled);

    // The rests may be half of the document each; begun first, they run beside the others.
    PieceList list;
    const std::uint8_t* data = document.data();
    list.add(data + single.rest_begin, data + single.rest_end);
    list.add(data + doubled.rest_begin, data + doubled.rest_end);
    list.add_finished(data, single);
    list.add_finished(data, doubled);
    if (!hash_pieces({list.pieces.data(), list.size}, stop)) return Status::cancelled();

    const Piece* finished = &list.pieces[2];
    std::string text;
    text.reserve(10 + 1 + single_limit + 1 + doubled_limit);
    text += std::to_string(block_size(level));
    text += ':';
    append_part(single, finished, list.pieces[0], text);
    text += ':';
    append_part(doubled, finished + single.size, list.pieces[1], text);
    return text;
}

namespace {

constexpr std::size_t longest_run = 3;  // longer runs say little and would look alike

/// The text between quotes, its first 80 bytes, what is not printable ASCII as '?': a cut inside a
/// multibyte character must not make an invalid message.
std::string quoted(std::string_view text) {
    constexpr std::size_t shown = 80;
    std::string out = "\"";
    for (const char c : text.substr(0, shown)) out += c >= ' ' && c <= '~' ? c : '?';
    out += text.size() > shown ? "...\"" : "\"";
    return out;
}

std::optional<int> parse_block_size(std::string_view digits) {
    std::uint32_t size = 0;
    const char* end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, size);
    if (error != std::errc() || rest != end || digits.front() == '0') return std::nullopt;
    if (size % 3 != 0 || !std::has_single_bit(size / 3)) return std::nullopt;
    return std::countr_zero(size);
}

/// Reads a part; returns what is wrong with it, nullptr if nothing is.
const char* parse_part(std::string_view text, SsdeepPart& out) {
    std::size_t run = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::uint8_t letter = signature_letter_value(text[i]);
        if (letter == kNoLetter) return "holds a character outside A-Z, a-z, 0-9, + and /";
        run = i > 0 && text[i] == text[i - 1] ? run + 1 : 1;
        if (run > longest_run) continue;
        if (out.size == SsdeepPart::max_size) return "has more than 64 letters in one part";
        out.letters[out.size++] = letter;
    }
    return nullptr;
}

/// For each letter the set of its places in a part.
struct Places {
    std::array<std::uint64_t, kSignatureAlphabet.size()> of = {};

    explicit Places(const SsdeepPart& part) {
        for (std::size_t i = 0; i < part.size; ++i) of[part.letters[i]] |= std::uint64_t{1} << i;
    }
};

constexpr std::size_t needed_run = 7;  // letters that two parts must share in sequence

/// Whether seven consecutive letters of `part` are consecutive in the other part too. Each window
/// of seven is matched from its end backwards; after k matches and a mismatch no window can hold
/// the mismatched place, so the next one starts behind it.
bool share_run(const Places& other, const SsdeepPart& part) noexcept {
    for (std::size_t begin = 0; begin + needed_run <= part.size;) {
        std::size_t i = needed_run - 1;
        std::uint64_t places = other.of[part.letters[begin + i]];
        while (places != 0) {
            if (i == 0) return true;
            --i;
            places = (places >> 1) & other.of[part.letters[begin + i]];
        }
        begin += i + 1;
    }
    return false;
}

/// The length of the longest common subsequence, a column of the table a step (H. Hyyro,
/// "Bit-parallel LCS-length computation revisited", AWOCA 2004).
int longest_common_subsequence(const Places& other, const SsdeepPart& part) noexcept {
    std::uint64_t column = ~std::uint64_t{0};
    for (std::size_t i = 0; i < part.size; ++i) {
        const std::uint64_t matches = column & other.of[part.letters[i]];
        column = (column + matches) | (column - matches);
    }
    return std::popcount(~column);
}

/// The score of two parts of block size 3 * 2^level. The divisions round down one by one, as the
/// program's do.
int score_parts(const SsdeepPart& a, const SsdeepPart& b, int level) noexcept {
    if (a.size < needed_run || b.size < needed_run) return 0;
    const Places places(a);
    if (!share_run(places, b)) return 0;
    const int letters = static_cast<int>(a.size + b.size);
    const int distance = letters - 2 * longest_common_subsequence(places, b);
    const int score = 100 - 100 * (distance * 64 / letters) / 64;
    if (block_size(level) >= 45) return score;
    // Short pieces match by chance; few of them must not score high.
    return std::min(score, static_cast<int>(std::min(a.size, b.size)) << level);
}

}  // namespace

Result<SsdeepSignature> parse_ssdeep(std::string_view text, std::string_view name) {
    const auto malformed = [&](std::string_view reason) {
        return Status(ErrorCode::invalid_argument,
                      std::string(name) + " " + std::string(reason) + ": " + quoted(text));
    };
    const std::size_t first = text.find(':');
    if (first == std::string_view::npos) return malformed("has no colon");
    const std::optional<int> level = parse_block_size(text.substr(0, first));
    if (!level) {
        return malformed("does not begin with a block size of 3 * 2^n, 3 to 3221225472");
    }
    const std::size_t second = text.find(':', first + 1);
    if (second == std::string_view::npos) return malformed("has no second colon");
    SsdeepSignature out;
    out.level = *level;
    const std::string_view rest = text.substr(second + 1);
    const char* wrong = parse_part(text.substr(first + 1, second - first - 1), out.single);
    if (wrong == nullptr) wrong = parse_part(rest.substr(0, rest.find(',')), out.doubled);
    if (wrong != nullptr) return malformed(wrong);
    return out;
}

int compare_ssdeep(const SsdeepSignature& a, const SsdeepSignature& b) noexcept {
    if (a.level == b.level) {
        if (a == b) return 100;
        return std::max(score_parts(a.single, b.single, a.level),
                        score_parts(a.doubled, b.doubled, a.level + 1));
    }
    if (a.level == b.level + 1) return score_parts(a.single, b.doubled, a.level);
    if (b.level == a.level + 1) return score_parts(a.doubled, b.single, b.level);
    return 0;
}

Result<int> ssdeep_compare(std::string_view a, std::string_view b) {
    const Result<SsdeepSignature> first = parse_ssdeep(a, "first ssdeep signature");
    if (!first.ok()) return first.status();
    const Result<SsdeepSignature> second = parse_ssdeep(b, "second ssdeep signature");
    if (!second.ok()) return second.status();
    return compare_ssdeep(*first, *second);
}

}  // namespace gputext
