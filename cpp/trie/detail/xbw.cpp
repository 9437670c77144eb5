#include "cpp/trie/detail/xbw.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "cpp/trie/detail/xbw_layout.hpp"
#include "cpp/trie/detail/xbw_steps.hpp"

namespace gputext {
namespace {

/// Words whose codes are read together.
constexpr std::size_t kGroup = 64;

/// The root.
constexpr std::uint32_t kRoot = 0;

/// Goes through the trie depth first, children in the order of their bytes.
class XbwCursor final : public TrieCursor {
public:
    XbwCursor(const Trie& trie, const XbwImage& image, const std::uint8_t* bytes, CodeRange range)
        : trie_(trie), image_(image), bytes_(bytes), range_(range) {}

    bool next() override;

private:
    void begin();
    void step();
    bool ends_here() const;

    const Trie& trie_;
    const XbwImage& image_;
    const std::uint8_t* bytes_;
    const XbwSteps& steps_ = xbw_steps();
    CodeRange range_;
    std::string characters_;
    std::vector<std::uint32_t> path_;  // from the root to the node of the word
};

class XbwTrie final : public Trie {
public:
    XbwTrie(const XbwImage& image, const TrieStats& stats) : image_(image) {
        stats_ = stats;
        for (unsigned byte = 0; byte < 256; ++byte)
            if (image.occurs(static_cast<std::uint8_t>(byte)))
                bytes_[image.symbol_of(static_cast<std::uint8_t>(byte))] =
                    static_cast<std::uint8_t>(byte);
    }

    using Trie::decode;
    using Trie::lookup;
    void lookup(std::span<const std::string_view> words,
                std::span<std::uint32_t> codes) const override;
    std::uint32_t lower_bound(std::string_view word) const override;
    std::size_t decode(std::uint32_t code, char* out) const override;
    std::unique_ptr<TrieCursor> cursor(CodeRange range) const override {
        return std::make_unique<XbwCursor>(*this, image_, bytes_.data(), range);
    }
    void prefixes_of(std::string_view text, std::vector<PrefixWord>& found) const override;
    bool has_nodes() const override { return true; }
    std::uint32_t node(std::string_view word) const override;

private:
    bool ends_in(std::uint32_t node, std::uint32_t& code) const;
    std::uint32_t code_in(std::uint32_t node) const;
    std::uint32_t node_of(std::uint32_t code) const;

    XbwImage image_;
    std::array<std::uint8_t, 256> bytes_{};  // of the symbols
    const XbwSteps& steps_ = xbw_steps();
};

// ---- Codes ----

/// Whether a word ends there, and its code.
bool XbwTrie::ends_in(std::uint32_t node, std::uint32_t& code) const {
    bool ends;
    const std::uint32_t rank = steps_.rank(image_, image_.layout.ends, node, ends);
    if (ends) code = image_.packed(image_.layout.codes, rank);
    return ends;
}

std::uint32_t XbwTrie::code_in(std::uint32_t node) const {
    std::uint32_t code = kNone;
    ends_in(node, code);
    return code;
}

/// The node that the word ends in.
std::uint32_t XbwTrie::node_of(std::uint32_t code) const {
    const XbwLayout& layout = image_.layout;
    std::uint32_t word = code;
    for (bool jumped = false;;) {
        const std::uint32_t next = image_.packed(layout.codes, word);
        if (next == code) break;
        bool marked = false;
        const std::uint32_t rank = jumped ? 0 : steps_.rank(image_, layout.marks, word, marked);
        word = marked ? image_.packed(layout.shortcut_table, rank) : next;
        jumped |= marked;
    }
    // The line in which the word's bit is, then the bit.
    const std::uint8_t* const lines = image_.bytes + layout.ends;
    std::uint32_t number = 0;
    for (std::uint32_t left = (layout.nodes - 1) / kXbwLineBits + 1; left > 1;) {
        const std::uint32_t half = left / 2;
        number += load_at<std::uint32_t>(lines + 32ull * (number + half)) <= word ? half : 0;
        left -= half;
    }
    const auto line = load_at<XbwLine>(lines + 32ull * number);
    std::uint32_t left = word - line.before, at = 0;
    for (;; ++at) {
        const auto here = static_cast<std::uint32_t>(std::popcount(line.bits[at]));
        if (left < here) break;
        left -= here;
    }
    std::uint32_t bits = line.bits[at];
    for (; left > 0; --left) bits &= bits - 1;
    return number * kXbwLineBits + 32 * at + static_cast<std::uint32_t>(std::countr_zero(bits));
}

// ---- Looking words up ----

void XbwTrie::lookup(std::span<const std::string_view> words,
                     std::span<std::uint32_t> codes) const {
    const XbwLayout& layout = image_.layout;
    steps_.walk(image_, words, codes.data());
    for (std::size_t begin = 0; begin < words.size(); begin += kGroup) {
        const std::span<std::uint32_t> group =
            codes.subspan(begin, std::min(kGroup, words.size() - begin));
        for (const std::uint32_t node : group)
            if (node != kNone) __builtin_prefetch(image_.line_address(layout.ends, node));
        for (std::uint32_t& code : group) {
            if (code == kNone) continue;
            bool ends;
            const std::uint32_t rank = steps_.rank(image_, layout.ends, code, ends);
            code = ends ? rank : kNone;
            __builtin_prefetch(image_.bytes + layout.codes +
                               std::uint64_t{rank} * layout.code_bits / 8);
        }
        for (std::uint32_t& code : group)
            if (code != kNone) code = image_.packed(layout.codes, code);
    }
}

std::uint32_t XbwTrie::node(std::string_view word) const {
    std::uint32_t node = kNone;
    steps_.walk(image_, {&word, 1}, &node);
    return node != kNone && code_in(node) != kNone ? node : kNone;
}

/// There are words below every node. So the first word behind the one that is looked for is the
/// first one below the node at which it leaves the trie, below the next child, or it follows the
/// last word there.
std::uint32_t XbwTrie::lower_bound(std::string_view word) const {
    if (stats_.words == 0) return 0;
    std::uint32_t node = kRoot, code = 0;
    XbwChild next{0, kRoot};
    for (std::size_t at = 0; at < word.size(); ++at) {
        const auto byte = static_cast<std::uint8_t>(word[at]);
        std::uint32_t symbol = image_.symbol_of(byte);
        if (image_.occurs(byte)) {
            const std::uint32_t child = steps_.child(image_, node, symbol);
            if (child != kXbwNone) {
                node = next.node = child;
                continue;
            }
        } else {
            // The least symbol that occurs and is greater.
            symbol = static_cast<std::uint32_t>(
                std::upper_bound(bytes_.begin(), bytes_.begin() + image_.layout.symbols, byte) -
                bytes_.begin());
        }
        next = steps_.next_child(image_, node, symbol);
        break;
    }
    if (next.node != kXbwNone) {
        for (node = next.node; !ends_in(node, code);)
            node = steps_.next_child(image_, node, 0).node;
        return code;
    }
    for (;;) {
        next = steps_.last_child(image_, node, image_.layout.symbols);
        if (next.node == kXbwNone) return code_in(node) + 1;
        node = next.node;
    }
}

void XbwTrie::prefixes_of(std::string_view text, std::vector<PrefixWord>& found) const {
    found.clear();
    std::uint32_t node = kRoot, code = 0;
    for (std::size_t length = 0;; ++length) {
        if (ends_in(node, code)) found.push_back({code, length});
        if (length == text.size()) return;
        const auto byte = static_cast<std::uint8_t>(text[length]);
        if (!image_.occurs(byte)) return;
        node = steps_.child(image_, node, image_.symbol_of(byte));
        if (node == kXbwNone) return;
    }
}

// ---- Reading words ----

std::size_t XbwTrie::decode(std::uint32_t code, char* out) const {
    char* const end = out + stats_.longest;
    char* begin = end;
    for (std::uint32_t node = node_of(code); node != kRoot;) {
        const std::uint32_t symbol = xbw_symbol_of(image_, node);
        *--begin = static_cast<char>(bytes_[symbol]);
        node = steps_.parent(image_, node, symbol);
    }
    const auto length = static_cast<std::size_t>(end - begin);
    std::memmove(out, begin, length);
    return length;
}

bool XbwCursor::ends_here() const {
    bool ends;
    steps_.rank(image_, image_.layout.ends, path_.back(), ends);
    return ends;
}

void XbwCursor::begin() {
    characters_ = trie_.decode(range_.first);
    path_.assign(1, kRoot);
    for (const char byte : characters_)
        path_.push_back(
            steps_.child(image_, path_.back(), image_.symbol_of(static_cast<std::uint8_t>(byte))));
}

/// Moves to the next word; there must be one.
void XbwCursor::step() {
    std::uint32_t from = 0;
    do {
        XbwChild child = steps_.next_child(image_, path_.back(), from);
        while (child.node == kXbwNone) {
            path_.pop_back();
            from = image_.symbol_of(static_cast<std::uint8_t>(characters_.back())) + 1u;
            characters_.pop_back();
            child = steps_.next_child(image_, path_.back(), from);
        }
        path_.push_back(child.node);
        characters_.push_back(static_cast<char>(bytes_[child.symbol]));
        from = 0;
    } while (!ends_here());
}

bool XbwCursor::next() {
    if (range_.first >= range_.end) return false;
    if (path_.empty())
        begin();
    else
        step();
    code_ = range_.first++;
    word_ = characters_;
    return true;
}

}  // namespace

Result<std::unique_ptr<Trie>> open_xbw_trie(std::span<const std::uint8_t> image) {
    const Result<XbwLayout> layout = read_xbw_layout(image);
    if (!layout.ok()) return layout.status();
    const TrieStats stats = stats_of(load_at<TrieHeader>(image.data()));
    const XbwImage parts{image.data(), *layout};
    return std::unique_ptr<Trie>(std::make_unique<XbwTrie>(parts, stats));
}

namespace {

/// Superblocks, or nodes, after which a stop request is looked for.
constexpr std::uint32_t kLookEverySuperblocks = 1024, kLookEveryNodes = 1u << 16;

/// Part after part, reading nothing before it is known to lie in its part. When the bit vectors are
/// right, every node but the root is the child of one node, so that going down from the root cannot
/// come back to a node.
class Checker {
public:
    Checker(std::span<const std::uint8_t> bytes, const XbwLayout& layout, Stop stop)
        : bytes_(bytes), layout_(layout), image_{bytes.data(), layout}, stop_(stop) {}

    Status check();

private:
    Status check_symbols();
    Status check_vectors();
    Status check_row(std::uint32_t number);
    Status check_superblock(std::uint32_t number, std::uint32_t symbol);
    Status check_samples(std::uint32_t group) const;
    bool end_part();
    Status check_ends();
    Status check_words();
    Status enter(std::uint32_t node, std::uint64_t depth, bool leaf);
    Status check_shortcuts();
    bool zeros(std::uint64_t begin, std::uint64_t end) const;
    bool zeros_behind(std::uint64_t part, std::uint64_t bits, std::uint64_t end) const;
    bool counted(std::uint64_t lines, std::uint32_t size, std::uint64_t end,
                 std::uint32_t set) const;

    std::span<const std::uint8_t> bytes_;
    const XbwLayout& layout_;
    XbwImage image_;
    Stop stop_;

    std::vector<std::uint32_t> next_;  // the node that the next set bit of each symbol leads to
    std::uint32_t stored_ = 0;         // superblocks that have been checked
    std::uint64_t payload_ = 0;        // bits of their blocks' numbers

    std::vector<std::uint32_t> codes_;
    std::uint32_t words_ = 0, entered_ = 0;
    std::uint64_t text_bytes_ = 0, longest_ = 0;
};

/// Whether these bytes of the image are zero.
bool Checker::zeros(std::uint64_t begin, std::uint64_t end) const {
    return std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(begin),
                       bytes_.begin() + static_cast<std::ptrdiff_t>(end),
                       [](std::uint8_t byte) { return byte == 0; });
}

/// Whether all is zero from that bit of a part to where the next one begins.
bool Checker::zeros_behind(std::uint64_t part, std::uint64_t bits, std::uint64_t end) const {
    const std::uint64_t at = part + bits / 8;
    if (bits % 8 == 0) return zeros(at, end);
    return bytes_[at] >> bits % 8 == 0 && zeros(at + 1, end);
}

/// Whether lines with so many bits have so many set ones, and count them rightly.
bool Checker::counted(std::uint64_t lines, std::uint32_t size, std::uint64_t end,
                      std::uint32_t set) const {
    std::uint64_t before = 0, at = lines;
    for (std::uint64_t first = 0; first < size; first += kXbwLineBits, at += sizeof(XbwLine)) {
        const auto line = load_at<XbwLine>(bytes_.data() + at);
        if (line.before != before) return false;
        for (std::uint32_t i = 0; i < 7; ++i) {
            const std::uint64_t begin = first + 32 * i;
            const std::uint64_t left = begin < size ? size - begin : 0;
            if (left < 32 && line.bits[i] >> left != 0) return false;
            before += static_cast<std::uint64_t>(std::popcount(line.bits[i]));
        }
    }
    return before == set && zeros(at, end);
}

Status Checker::check_symbols() {
    const Status wrong = broken_trie("its symbols are wrong");
    std::uint32_t symbols = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const std::uint8_t symbol = image_.symbol_of(static_cast<std::uint8_t>(byte));
        if (symbol < layout_.symbols ? symbol != symbols++ : symbol != 255) return wrong;
    }
    if (symbols != layout_.symbols || image_.begin(0) != 1 ||
        image_.begin(symbols) != layout_.nodes)
        return wrong;
    for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
        next_.push_back(image_.begin(symbol));
        if (image_.begin(symbol) >= image_.begin(symbol + 1)) return wrong;
    }
    return zeros(layout_.begins + 4 * (std::uint64_t{symbols} + 1), layout_.cells) ? Status()
                                                                                   : wrong;
}

Status Checker::check_samples(std::uint32_t group) const {
    for (std::uint32_t symbol = 0; symbol < layout_.symbols; ++symbol)
        if (load_at<std::uint32_t>(bytes_.data() + layout_.samples +
                                   4 * (std::uint64_t{symbol} * layout_.sample_groups + group)) !=
            next_[symbol])
            return broken_trie("a sample of its nodes is wrong");
    return {};
}

/// Skips to the next whole byte.
bool Checker::end_part() {
    if (payload_ % 8 != 0) {
        if (image_.bytes[layout_.payload + payload_ / 8] >> payload_ % 8 != 0) return false;
        payload_ += 8 - payload_ % 8;
    }
    return true;
}

Status Checker::check_superblock(std::uint32_t number, std::uint32_t symbol) {
    const Status wrong = broken_trie("a superblock of its nodes is wrong");
    if (stored_ == layout_.stored) return wrong;
    const XbwSuperblock superblock = image_.superblock(stored_++);
    std::uint32_t& next = next_[symbol];
    if (superblock.child != next || superblock.payload != payload_ || superblock.classes == 0)
        return wrong;
    for (std::uint32_t block = 0; block < kXbwBlocks; ++block) {
        const auto k = static_cast<std::uint32_t>(superblock.classes >> 4 * block & 15);
        if (k == 0) continue;
        if (payload_ + kXbwWidths[k] > 8 * layout_.payload_bytes) return wrong;
        const auto at = static_cast<std::uint32_t>(payload_);
        const std::uint32_t bits =
            load_at<std::uint32_t>(image_.bytes + layout_.payload + at / 8) >> at % 8;
        const std::uint32_t own = bits & ((1u << kXbwWidths[k]) - 1);
        if (own >= static_cast<std::uint32_t>(kXbwClassBegins[k + 1] - kXbwClassBegins[k]))
            return wrong;
        const std::uint64_t parent =
            std::uint64_t{number} * kXbwSuperblockBits + block * kXbwBlockBits +
            static_cast<std::uint32_t>(
                std::bit_width<std::uint32_t>(kXbwBlockValues[kXbwClassBegins[k] + own]) - 1);
        if (parent >= layout_.nodes || k > image_.begin(symbol + 1) - next) return wrong;
        payload_ += kXbwWidths[k];
        next += k;
    }
    return {};
}

Status Checker::check_row(std::uint32_t number) {
    for (std::uint32_t first = 0; first < layout_.symbols; first += 32) {
        const XbwCell cell = image_.cell(number, first);
        const std::uint32_t symbols = std::min(32u, layout_.symbols - first);
        if (cell.base != stored_ || (symbols < 32 && cell.bits >> symbols != 0))
            return broken_trie("a cell of its nodes is wrong");
        for (std::uint32_t bits = cell.bits; bits != 0; bits &= bits - 1) {
            const auto symbol = first + static_cast<std::uint32_t>(std::countr_zero(bits));
            GPUTEXT_TRY(check_superblock(number, symbol));
        }
    }
    return {};
}

Status Checker::check_vectors() {
    for (std::uint32_t number = 0; number < layout_.superblocks; ++number) {
        if (number % kLookEverySuperblocks == 0 && stop_()) return Status::cancelled();
        if (number % kXbwPart == 0 && !end_part())
            return broken_trie("the numbers of its blocks have bits to spare");
        if (number % kXbwSampleSuperblocks == 0)
            GPUTEXT_TRY(check_samples(number / kXbwSampleSuperblocks));
        GPUTEXT_TRY(check_row(number));
    }
    if (!end_part() || payload_ != 8 * layout_.payload_bytes || stored_ != layout_.stored)
        return broken_trie("its parts have bytes to spare");
    for (std::uint32_t symbol = 0; symbol < layout_.symbols; ++symbol)
        if (next_[symbol] != image_.begin(symbol + 1))
            return broken_trie("a node has no node that leads to it");
    const std::uint64_t cells =
        sizeof(XbwCell) * std::uint64_t{layout_.superblocks} * layout_.row_cells;
    const std::uint64_t samples = 4 * std::uint64_t{layout_.symbols} * layout_.sample_groups;
    if (!zeros(layout_.cells + cells, layout_.superblock_table) ||
        !zeros(layout_.payload + layout_.payload_bytes, layout_.ends) ||
        !zeros(layout_.samples + samples, layout_.bytes))
        return broken_trie("its parts have bytes to spare");
    return {};
}

Status Checker::check_ends() {
    if (!counted(layout_.ends, layout_.nodes, layout_.codes, layout_.words))
        return broken_trie("the ends of its words are wrong");
    if (!zeros_behind(layout_.codes, std::uint64_t{layout_.words} * layout_.code_bits,
                      layout_.marks))
        return broken_trie("its codes have bits to spare");
    codes_.resize(layout_.words);
    for (std::uint32_t i = 0; i < layout_.words; ++i) codes_[i] = image_.packed(layout_.codes, i);
    return {};
}

/// A node, in the order of words.
Status Checker::enter(std::uint32_t node, std::uint64_t depth, bool leaf) {
    ++entered_;
    bool ends;
    const std::uint32_t rank = xbw_steps().rank(image_, layout_.ends, node, ends);
    if (ends) {
        if (codes_[rank] != words_++) return broken_trie("a code is not that of its word");
        text_bytes_ += depth;
        longest_ = std::max(longest_, depth);
    } else if (leaf && layout_.nodes > 1) {
        return broken_trie("no word ends where there is no more");
    }
    return {};
}

Status Checker::check_words() {
    const XbwSteps& steps = xbw_steps();
    struct Step {
        std::uint32_t node, from;
    };
    std::vector<Step> path{{0, 0}};
    while (!path.empty()) {
        const Step top = path.back();
        const XbwChild child = steps.next_child(image_, top.node, top.from);
        if (top.from == 0) {
            if (entered_ % kLookEveryNodes == 0 && stop_()) return Status::cancelled();
            GPUTEXT_TRY(enter(top.node, path.size() - 1, child.node == kXbwNone));
        }
        if (child.node == kXbwNone) {
            path.pop_back();
        } else {
            path.back().from = child.symbol + 1;
            path.push_back({child.node, 0});
        }
    }
    if (entered_ != layout_.nodes) return broken_trie("a node has no way to it from the root");
    const auto header = load_at<TrieHeader>(bytes_.data());
    if (text_bytes_ != header.text_bytes || longest_ != header.longest ||
        header.alphabet != header.symbols || longest_ > UINT32_MAX - Trie::kSlack)
        return broken_trie("its statistics are wrong");
    return {};
}

Status Checker::check_shortcuts() {
    CodeShortcuts right;
    if (!find_shortcuts(codes_, right, stop_)) return Status::cancelled();
    const Status wrong = broken_trie("its shortcuts are wrong");
    if (right.targets.size() != layout_.shortcuts) return wrong;
    const std::uint64_t size = right.marks.size() * sizeof(XbwLine);
    if (size > 0 && std::memcmp(right.marks.data(), bytes_.data() + layout_.marks, size) != 0)
        return wrong;
    for (std::uint32_t i = 0; i < layout_.shortcuts; ++i)
        if (image_.packed(layout_.shortcut_table, i) != right.targets[i]) return wrong;
    return zeros_behind(layout_.shortcut_table,
                        std::uint64_t{layout_.shortcuts} * layout_.code_bits, layout_.samples)
               ? Status()
               : wrong;
}

Status Checker::check() {
    GPUTEXT_TRY(check_symbols());
    GPUTEXT_TRY(check_vectors());
    GPUTEXT_TRY(check_ends());
    GPUTEXT_TRY(check_words());
    return check_shortcuts();
}

}  // namespace

Status validate_xbw_trie(std::span<const std::uint8_t> image, Stop stop) {
    const Result<XbwLayout> layout = read_xbw_layout(image);
    if (!layout.ok()) return layout.status();
    return Checker(image, *layout, stop).check();
}

}  // namespace gputext
