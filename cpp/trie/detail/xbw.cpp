#include "cpp/trie/detail/xbw.hpp"

#include <algorithm>
#include <array>
#include <bit>

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
            // The least one that occurs and is greater
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

/// To the next word, which there is.
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

}  // namespace gputext
