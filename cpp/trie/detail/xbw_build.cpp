// Builds images: cpp/trie/detail/xbw.hpp.

#include <algorithm>
#include <bit>

#include "cpp/trie/detail/xbw.hpp"
#include "cpp/trie/detail/xbw_layout.hpp"
#include "cpp/trie/detail/xbw_nodes.hpp"

namespace gputext {
namespace {

using Words = std::span<const std::string_view>;

/// The number of each value of 15 bits among those of its class.
std::vector<std::uint16_t> numbers_of_blocks() {
    std::vector<std::uint16_t> numbers(kXbwBlockValues.size());
    for (unsigned k = 0; k < 16; ++k)
        for (unsigned i = kXbwClassBegins[k]; i < kXbwClassBegins[k + 1]; ++i)
            numbers[kXbwBlockValues[i]] = static_cast<std::uint16_t>(i - kXbwClassBegins[k]);
    return numbers;
}

/// A string of bits that grows.
class BitWriter {
public:
    std::uint64_t size() const { return bytes_.size() * 8 + used_; }

    void put(std::uint32_t number, unsigned bits) {
        last_ |= std::uint64_t{number} << used_;
        for (used_ += bits; used_ >= 8; used_ -= 8, last_ >>= 8)
            bytes_.push_back(static_cast<std::uint8_t>(last_));
    }
    std::vector<std::uint8_t> finish() {
        if (used_ > 0) bytes_.push_back(static_cast<std::uint8_t>(last_));
        return std::move(bytes_);
    }

private:
    std::vector<std::uint8_t> bytes_;
    std::uint64_t last_ = 0;
    unsigned used_ = 0;
};

/// What a task makes of kXbwPart superblocks. Cells and payloads count from its own beginning.
struct Part {
    std::vector<XbwCell> cells;
    std::vector<XbwSuperblock> stored;
    std::vector<std::uint8_t> payload;
};

class PartMaker {
public:
    PartMaker(const XbwNodes& nodes, const XbwLayout& layout,
              const std::vector<std::uint16_t>& numbers, std::vector<std::uint32_t>& samples)
        : nodes_(nodes), layout_(layout), numbers_(numbers), samples_(samples) {}

    Part make(std::uint32_t begin, std::uint32_t end);

private:
    XbwSuperblock next_superblock(std::uint32_t symbol, std::uint64_t end);

    const XbwNodes& nodes_;
    const XbwLayout& layout_;
    const std::vector<std::uint16_t>& numbers_;
    std::vector<std::uint32_t>& samples_;
    std::vector<std::uint32_t> next_;  // node of each symbol
    BitWriter payload_;
};

/// Superblock of the children by a symbol whose parents are below `end`.
XbwSuperblock PartMaker::next_superblock(std::uint32_t symbol, std::uint64_t end) {
    std::uint16_t blocks[kXbwBlocks] = {};
    std::uint32_t& next = next_[symbol];
    XbwSuperblock superblock{next, static_cast<std::uint32_t>(payload_.size()), 0};
    for (; next < nodes_.begins[symbol + 1] && nodes_.parents[next] < end; ++next) {
        const std::uint32_t place = nodes_.parents[next] % kXbwSuperblockBits;
        blocks[place / kXbwBlockBits] =
            static_cast<std::uint16_t>(blocks[place / kXbwBlockBits] | 1u << place % kXbwBlockBits);
    }
    for (unsigned i = 0; i < kXbwBlocks; ++i) {
        const auto k = static_cast<unsigned>(std::popcount(blocks[i]));
        superblock.classes |= std::uint64_t{k} << 4 * i;
        payload_.put(numbers_[blocks[i]], kXbwWidths[k]);
    }
    return superblock;
}

Part PartMaker::make(std::uint32_t begin, std::uint32_t end) {
    Part part;
    next_.resize(layout_.symbols);
    const auto parents = nodes_.parents.begin();
    for (std::uint32_t symbol = 0; symbol < layout_.symbols; ++symbol)
        next_[symbol] = static_cast<std::uint32_t>(
            std::lower_bound(parents + nodes_.begins[symbol], parents + nodes_.begins[symbol + 1],
                             begin * kXbwSuperblockBits) -
            parents);
    for (std::uint32_t number = begin; number < end; ++number) {
        if (number % kXbwSampleSuperblocks == 0)
            for (std::uint32_t symbol = 0; symbol < layout_.symbols; ++symbol)
                samples_[std::size_t{symbol} * layout_.sample_groups +
                         number / kXbwSampleSuperblocks] = next_[symbol];
        const std::uint64_t limit = (std::uint64_t{number} + 1) * kXbwSuperblockBits;
        for (std::uint32_t symbol = 0; symbol < layout_.symbols; ++symbol) {
            if (symbol % 32 == 0)
                part.cells.push_back({static_cast<std::uint32_t>(part.stored.size()), 0});
            const std::uint32_t next = next_[symbol];
            if (next == nodes_.begins[symbol + 1] || nodes_.parents[next] >= limit) continue;
            part.cells.back().bits |= 1u << symbol % 32;
            part.stored.push_back(next_superblock(symbol, limit));
        }
    }
    part.payload = payload_.finish();
    return part;
}

/// The parts of the image.
struct Parts {
    std::vector<Part> parts;
    std::vector<std::uint32_t> samples;
    std::vector<XbwLine> ends;
    std::vector<std::uint32_t> codes;  // of the words in the order of nodes
    CodeShortcuts shortcuts;
};

Status make_parts(const XbwNodes& nodes, const XbwLayout& layout, Parts& made,
                  Execution& execution) {
    const std::vector<std::uint16_t> numbers = numbers_of_blocks();
    made.samples.resize(std::size_t{layout.symbols} * layout.sample_groups);
    made.parts.resize((layout.superblocks + kXbwPart - 1) / kXbwPart);
    execution.begin_phase("packing nodes", made.parts.size());
    return execution.parallel_for(made.parts.size(), [&](std::size_t task, unsigned) -> Status {
        const auto begin = static_cast<std::uint32_t>(task * kXbwPart);
        PartMaker maker(nodes, layout, numbers, made.samples);
        made.parts[task] = maker.make(begin, std::min(begin + kXbwPart, layout.superblocks));
        return {};
    });
}

Status make_codes(const XbwNodes& nodes, Parts& made, Execution& execution) {
    const std::vector<std::uint32_t>& word_nodes = nodes.word_nodes;
    execution.begin_phase("numbering codes", word_nodes.size());
    made.ends = xbw_lines(static_cast<std::uint32_t>(nodes.parents.size()));
    for (const std::uint32_t node : word_nodes) set_bit(made.ends, node);
    count_lines(made.ends);
    made.codes.resize(word_nodes.size());
    constexpr std::size_t kStep = std::size_t{1} << 16;
    for (std::size_t i = 0; i < word_nodes.size(); ++i) {
        if (i % kStep == 0) GPUTEXT_TRY(execution.checkpoint(kStep));
        made.codes[rank_in(made.ends, word_nodes[i])] = static_cast<std::uint32_t>(i);
    }
    return find_shortcuts(made.codes, made.shortcuts, execution.stop()) ? Status()
                                                                        : Status::cancelled();
}

template <class T>
void copy_to(std::uint8_t* to, const std::vector<T>& from) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(T));
}

void write_parts(std::uint8_t* image, const XbwLayout& layout, std::vector<Part>& parts) {
    std::uint8_t* cells = image + layout.cells;
    std::uint8_t* stored = image + layout.superblock_table;
    std::uint8_t* payload = image + layout.payload;
    std::uint32_t stored_before = 0, payload_before = 0;
    for (Part& part : parts) {
        for (XbwCell& cell : part.cells) cell.base += stored_before;
        for (XbwSuperblock& superblock : part.stored) superblock.payload += payload_before;
        copy_to(cells, part.cells);
        copy_to(stored, part.stored);
        copy_to(payload, part.payload);
        cells += part.cells.size() * sizeof(XbwCell);
        stored += part.stored.size() * sizeof(XbwSuperblock);
        payload += part.payload.size();
        stored_before += static_cast<std::uint32_t>(part.stored.size());
        payload_before += static_cast<std::uint32_t>(8 * part.payload.size());
        part = {};
    }
}

std::vector<std::uint8_t> assemble(TrieHeader header, const XbwNumbers& numbers,
                                   const XbwNodes& nodes, Parts& made) {
    const XbwLayout layout = xbw_layout_of(header, numbers);
    header.bytes = layout.bytes;
    std::vector<std::uint8_t> image(layout.bytes);
    std::uint8_t* const bytes = image.data();
    std::memcpy(bytes + sizeof header, &numbers, sizeof numbers);
    std::memset(bytes + layout.symbol_table, 255, 256);
    for (std::size_t symbol = 0; symbol < nodes.alphabet.size(); ++symbol)
        bytes[layout.symbol_table + nodes.alphabet[symbol]] = static_cast<std::uint8_t>(symbol);
    copy_to(bytes + layout.begins, nodes.begins);
    write_parts(bytes, layout, made.parts);
    copy_to(bytes + layout.ends, made.ends);
    for (std::size_t i = 0; i < made.codes.size(); ++i)
        pack_number(bytes + layout.codes, i, layout.code_bits, made.codes[i]);
    copy_to(bytes + layout.marks, made.shortcuts.marks);
    for (std::size_t i = 0; i < made.shortcuts.targets.size(); ++i)
        pack_number(bytes + layout.shortcut_table, i, layout.code_bits, made.shortcuts.targets[i]);
    copy_to(bytes + layout.samples, made.samples);
    std::memcpy(bytes, &header, sizeof header);
    header.checksum = trie_checksum(image);
    std::memcpy(bytes, &header, sizeof header);
    return image;
}

}  // namespace

Result<std::vector<std::uint8_t>> build_xbw_trie(std::span<const std::string_view> words,
                                                 Execution& execution) {
    Result<XbwNodes> nodes = number_xbw_nodes(words, execution);
    if (!nodes.ok()) return nodes.status();
    TrieHeader header{};
    std::memcpy(header.magic, TrieHeader::kMagic, sizeof header.magic);
    header.version = TrieHeader::kVersion;
    header.structure = static_cast<std::uint32_t>(TrieStructure::xbw);
    header.words = static_cast<std::uint32_t>(words.size());
    header.longest = nodes->longest;
    header.text_bytes = nodes->text_bytes;
    header.alphabet = header.symbols = static_cast<std::uint32_t>(nodes->alphabet.size());
    XbwNumbers numbers{};
    numbers.nodes = static_cast<std::uint32_t>(nodes->parents.size());

    Parts made;
    GPUTEXT_TRY(make_parts(*nodes, xbw_layout_of(header, numbers), made, execution));
    std::uint64_t stored = 0;
    for (const Part& part : made.parts) {
        stored += part.stored.size();
        numbers.payload += part.payload.size();
    }
    if (numbers.payload >= kXbwMostPayload || stored > UINT32_MAX)
        return Status{ErrorCode::invalid_argument, "the words of a dictionary are too long",
                      "The bits of its nodes may take 512 MB when they are packed."};
    numbers.stored = static_cast<std::uint32_t>(stored);
    GPUTEXT_TRY(make_codes(*nodes, made, execution));
    numbers.shortcuts = static_cast<std::uint32_t>(made.shortcuts.targets.size());
    execution.begin_phase("writing nodes", 0);
    return assemble(header, numbers, *nodes, made);
}

}  // namespace gputext
