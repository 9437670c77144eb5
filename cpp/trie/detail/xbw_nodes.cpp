#include "cpp/trie/detail/xbw_nodes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

using Words = std::span<const std::string_view>;

/// Words, nodes or entries of a task; and those of a loop between two looks at a stop request.
constexpr std::size_t kTask = std::size_t{1} << 16;

/// A node and its sort key. Until all keys differ, only their order matters.
struct Entry {
    std::uint64_t key;
    std::uint32_t node;
};

/// Entries that were equal in all rounds so far.
struct Tie {
    std::size_t begin, end;
};

std::size_t tasks_of(std::size_t size) {
    return (size + kTask - 1) / kTask;
}

/// Meaningless after a stop request.
std::uint32_t shared_length(std::string_view a, std::string_view b, Stop stop) {
    const std::size_t size = std::min(a.size(), b.size());
    std::size_t at = 0;
    while (at < size) {
        const std::size_t end = std::min(size, at + kLookEvery);
        const auto differs = std::mismatch(a.begin() + at, a.begin() + end, b.begin() + at).first;
        at = static_cast<std::size_t>(differs - a.begin());
        if (at < end || stop()) break;
    }
    return static_cast<std::uint32_t>(at);
}

bool less(const Entry& a, const Entry& b) {
    return a.key < b.key;
}

/// Sorts by key. Pieces are parted in three, for most keys are often the same, until they are
/// small. False if stopped.
bool sort_entries(std::span<Entry> entries, Stop stop) {
    while (entries.size() > kTask) {
        // Nine keys at equal distances: the median parts what is in order, too.
        std::array<std::uint64_t, 9> keys;
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = entries[(2 * i + 1) * entries.size() / (2 * keys.size())].key;
        std::ranges::nth_element(keys, keys.begin() + 4);
        const std::uint64_t pivot = keys[4];
        std::size_t below = 0, above = entries.size();
        for (std::size_t at = 0, steps = 0; at < above; ++steps) {
            if (steps % kTask == 0 && stop()) return false;
            if (entries[at].key < pivot)
                std::swap(entries[below++], entries[at++]);
            else if (entries[at].key > pivot)
                std::swap(entries[at], entries[--above]);
            else
                ++at;
        }
        // The smaller part first, so that calls are at most log2(size) deep.
        std::span<Entry> smaller = entries.first(below), larger = entries.subspan(above);
        if (smaller.size() > larger.size()) std::swap(smaller, larger);
        if (!sort_entries(smaller, stop)) return false;
        entries = larger;
    }
    std::sort(entries.begin(), entries.end(), less);
    return true;
}

/// Nodes are first numbered in the order of the words: word i adds its prefixes that are longer
/// than the bytes that it shares with the word before.
class Numbering {
public:
    Numbering(Words words, Execution& execution) : words_(words), execution_(execution) {}

    Result<XbwNodes> run();

private:
    Status look_at_words();
    Status add_nodes();
    Status sort_keys();
    Status refine();
    Status double_ancestors();
    Status finish();

    template <class Body>
    Status for_all(const char* phase, std::size_t size, Body body) {
        execution_.begin_phase(phase, tasks_of(size));
        return execution_.parallel_for(tasks_of(size), [&](std::size_t task, unsigned) -> Status {
            const std::size_t begin = task * kTask, end = std::min(size, begin + kTask);
            for (std::size_t i = begin; i < end; ++i) body(i);
            return {};
        });
    }
    bool rank_and_split(Tie all, std::vector<Tie>& ties);
    /// The vector becomes so many zeros; cancelled when stopped.
    template <class T>
    Status make_zeros(std::vector<T>& vector, std::size_t size) {
        return stoppable_assign(vector, size, T{}, execution_.stop()) ? Status()
                                                                      : Status::cancelled();
    }

    Words words_;
    Execution& execution_;
    XbwNodes nodes_;
    std::array<std::uint8_t, 256> symbol_of_{};
    std::vector<std::uint32_t> shared_;  // of each word with the one before
    std::size_t count_ = 0;              // of nodes
    unsigned key_bits_ = 0, key_symbols_ = 0;
    std::vector<std::uint64_t> keys_;
    std::vector<std::uint32_t> parents_, ancestors_;  // ancestors: by as many symbols as are sorted
    std::vector<Entry> entries_;                      // all nodes but the root
    std::vector<std::uint32_t> numbers_;              // of the nodes, or of the first one of a tie
    std::vector<Tie> ties_;
};

Status Numbering::look_at_words() {
    shared_.resize(words_.size());
    const std::size_t tasks = tasks_of(words_.size());
    std::vector<std::bitset<256>> alphabets(tasks);
    std::vector<std::uint64_t> added(tasks), bytes(tasks), longest(tasks);
    execution_.begin_phase("comparing words", tasks);
    Status status = execution_.parallel_for(tasks, [&](std::size_t task, unsigned) -> Status {
        const std::size_t end = std::min(words_.size(), (task + 1) * kTask);
        for (std::size_t i = task * kTask; i < end; ++i) {
            const std::string_view word = words_[i];
            if (word.size() >= UINT32_MAX - 8)
                return {ErrorCode::invalid_argument, "the words of a dictionary are too long"};
            shared_[i] = i == 0 ? 0 : shared_length(words_[i - 1], word, execution_.stop());
            for (std::size_t at = shared_[i]; at < word.size(); at += kLookEvery) {
                for (const char byte : word.substr(at, kLookEvery))
                    alphabets[task].set(static_cast<std::uint8_t>(byte));
                if (word.size() > kLookEvery && execution_.stop_requested())
                    return Status::cancelled();
            }
            added[task] += word.size() - shared_[i];
            bytes[task] += word.size();
            longest[task] = std::max<std::uint64_t>(longest[task], word.size());
        }
        return {};
    });
    if (!status.ok()) return status;
    std::bitset<256> alphabet;
    std::uint64_t count = 1;
    for (std::size_t task = 0; task < tasks; ++task) {
        alphabet |= alphabets[task];
        count += added[task];
        nodes_.text_bytes += bytes[task];
        nodes_.longest = std::max(nodes_.longest, static_cast<std::uint32_t>(longest[task]));
    }
    if (count >= UINT32_MAX)
        return {ErrorCode::invalid_argument, "the words of a dictionary are too long",
                "They may have 4294967294 different prefixes."};
    count_ = static_cast<std::size_t>(count);
    for (unsigned byte = 0; byte < 256; ++byte) {
        if (!alphabet[byte]) continue;
        symbol_of_[byte] = static_cast<std::uint8_t>(nodes_.alphabet.size());
        nodes_.alphabet.push_back(static_cast<std::uint8_t>(byte));
    }
    return {};
}

/// A key holds the last symbols of a prefix, each plus 1, the last one on top; zeros where the
/// prefix has no more.
Status Numbering::add_nodes() {
    const std::size_t symbols = nodes_.alphabet.size();
    key_bits_ = static_cast<unsigned>(std::bit_width(symbols));
    key_symbols_ = 64 / key_bits_;
    const unsigned top = (key_symbols_ - 1) * key_bits_;
    GPUTEXT_TRY(make_zeros(keys_, count_));
    GPUTEXT_TRY(make_zeros(parents_, count_));
    GPUTEXT_TRY(make_zeros(ancestors_, count_));
    nodes_.word_nodes.resize(words_.size());
    std::vector<std::uint32_t> path;
    GPUTEXT_TRY(make_zeros(path, std::size_t{nodes_.longest} + 1));
    std::vector<std::uint32_t> counts(symbols);
    std::uint32_t node = 0;
    execution_.begin_phase("making nodes", words_.size());
    std::size_t looked = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
        const std::string_view word = words_[i];
        for (std::size_t at = shared_[i]; at < word.size(); ++at) {
            const std::uint8_t symbol = symbol_of_[static_cast<std::uint8_t>(word[at])];
            const std::uint32_t parent = path[at];
            path[at + 1] = ++node;
            ++counts[symbol];
            parents_[node] = parent;
            keys_[node] = (symbol + std::uint64_t{1}) << top | keys_[parent] >> key_bits_;
            ancestors_[node] = at + 1 > key_symbols_ ? path[at + 1 - key_symbols_] : 0;
            if (node % kTask == 0 && execution_.stop_requested()) return Status::cancelled();
        }
        nodes_.word_nodes[i] = path[word.size()];
        if (node - looked < kTask && i % kTask != 0) continue;
        looked = node;
        if (execution_.stop_requested()) return Status::cancelled();
    }
    nodes_.begins.assign(1, 1);
    for (const std::uint32_t count : counts) nodes_.begins.push_back(nodes_.begins.back() + count);
    return {};
}

/// The entries become those of the nodes by their keys. Cut by the keys' upper bits first, so that
/// threads sort pieces that fit their caches.
Status Numbering::sort_keys() {
    const unsigned used = key_symbols_ * key_bits_;
    const unsigned cut = std::min(16u, used), shift = used - cut;
    std::vector<std::size_t> begins((std::size_t{1} << cut) + 1);
    for (std::size_t node = 1; node < count_; ++node) {
        if (node % kLookEvery == 0 && execution_.stop_requested()) return Status::cancelled();
        ++begins[(keys_[node] >> shift) + 1];
    }
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    GPUTEXT_TRY(make_zeros(entries_, count_ - 1));
    execution_.begin_phase("cutting nodes", count_);
    std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
    for (std::size_t node = 1; node < count_; ++node) {
        if (node % kTask == 0) GPUTEXT_TRY(execution_.checkpoint(kTask));
        entries_[next[keys_[node] >> shift]++] = {keys_[node], static_cast<std::uint32_t>(node)};
    }
    keys_ = {};
    GPUTEXT_TRY(make_zeros(numbers_, count_));

    std::vector<Tie> pieces;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
        if (begins[i] == begins[i + 1]) continue;
        if (pieces.empty() || pieces.back().end - pieces.back().begin >= kTask / 4)
            pieces.push_back({begins[i], begins[i]});
        pieces.back().end = begins[i + 1];
    }
    ties_ = std::move(pieces);
    return {};
}

/// Numbers entries that are in order, and adds those that are equal to `ties`. False if stopped.
bool Numbering::rank_and_split(Tie all, std::vector<Tie>& ties) {
    for (std::size_t begin = all.begin, end; begin < all.end; begin = end) {
        for (end = begin; end < all.end && entries_[end].key == entries_[begin].key; ++end) {
            numbers_[entries_[end].node] = static_cast<std::uint32_t>(begin + 1);
            if (end % kTask == 0 && execution_.stop_requested()) return false;
        }
        if (end - begin > 1) ties.push_back({begin, end});
    }
    return true;
}

/// Sorts the entries within each of the ties by their keys.
Status Numbering::refine() {
    const std::size_t tasks = std::min<std::size_t>(ties_.size(), 1024);
    std::vector<std::vector<Tie>> left(tasks);
    execution_.begin_phase("sorting nodes", tasks);
    Status status = execution_.parallel_for(tasks, [&](std::size_t task, unsigned) -> Status {
        const std::size_t begin = task * ties_.size() / tasks;
        const std::size_t end = (task + 1) * ties_.size() / tasks;
        for (std::size_t i = begin; i < end; ++i) {
            const Tie tie = ties_[i];
            const auto entries = std::span(entries_).subspan(tie.begin, tie.end - tie.begin);
            if (!sort_entries(entries, execution_.stop()) || !rank_and_split(tie, left[task]))
                return Status::cancelled();
        }
        return {};
    });
    if (!status.ok()) return status;
    ties_.clear();
    for (const std::vector<Tie>& ties : left) ties_.insert(ties_.end(), ties.begin(), ties.end());
    return {};
}

Status Numbering::double_ancestors() {
    std::vector<std::uint32_t> doubled;
    GPUTEXT_TRY(make_zeros(doubled, count_));
    GPUTEXT_TRY(for_all("doubling prefixes", count_,
                        [&](std::size_t node) { doubled[node] = ancestors_[ancestors_[node]]; }));
    ancestors_.swap(doubled);
    return {};
}

Status Numbering::finish() {
    GPUTEXT_TRY(make_zeros(nodes_.parents, count_));
    GPUTEXT_TRY(for_all("numbering nodes", count_ - 1, [&](std::size_t i) {
        nodes_.parents[i + 1] = numbers_[parents_[entries_[i].node]];
    }));
    return for_all("numbering words", words_.size(),
                   [&](std::size_t i) { nodes_.word_nodes[i] = numbers_[nodes_.word_nodes[i]]; });
}

Result<XbwNodes> Numbering::run() {
    GPUTEXT_TRY(look_at_words());
    if (count_ == 1) {
        nodes_.begins = {1};
        nodes_.parents = {0};
        nodes_.word_nodes.assign(words_.size(), 0);
        return std::move(nodes_);
    }
    GPUTEXT_TRY(add_nodes());
    GPUTEXT_TRY(sort_keys());
    GPUTEXT_TRY(refine());
    while (!ties_.empty()) {
        // Keys are made of old numbers, so all are computed before any number changes.
        GPUTEXT_TRY(for_all("comparing nodes", ties_.size(), [&](std::size_t tie) {
            for (std::size_t i = ties_[tie].begin; i < ties_[tie].end; ++i) {
                if (i % kTask == 0 && execution_.stop_requested()) return;
                entries_[i].key = numbers_[ancestors_[entries_[i].node]];
            }
        }));
        GPUTEXT_TRY(refine());
        if (!ties_.empty()) GPUTEXT_TRY(double_ancestors());
    }
    GPUTEXT_TRY(finish());
    return std::move(nodes_);
}

}  // namespace

Result<XbwNodes> number_xbw_nodes(std::span<const std::string_view> words, Execution& execution) {
    return Numbering(words, execution).run();
}

}  // namespace gputext
