#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/hash_table.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/passages/passages.hpp"

namespace gputext {
namespace {

/// All passages as paths from a root, which those that begin alike have in common at first. Each
/// node has a link to the node of the longest end of its path that is a path, too. So the passages
/// that end in a place of a stretch are those on the way along the links from its node there,
/// however long they are: a repetition takes no longer than other texts.
///
/// Source: Aho and Corasick 1975, "Efficient string matching: an aid to bibliographic search".
template <class Symbol>
class PassageTree {
public:
    PassageTree(const Symbol* symbols, const std::vector<SharedStretch>& stretches,
                std::size_t memory_limit, Execution& execution)
        : symbols_(symbols),
          stretches_(stretches),
          budget_(memory_limit),
          execution_(execution),
          labels_(1),
          flags_(1, kFirst),
          passage_(1, kNone),
          branches_(1) {}

    Result<std::vector<CommonPassage>> run() {
        GPUTEXT_TRY(insert_stretches());
        GPUTEXT_TRY(link_nodes());
        GPUTEXT_TRY(count());
        return std::move(passages_);
    }

private:
    using Node = std::uint32_t;
    static constexpr Node kRoot = 0;
    static constexpr std::uint32_t kNone = UINT32_MAX;
    /// A node that is no child of the one before it; a node with other children than the next one.
    static constexpr std::uint8_t kFirst = 1, kBranches = 2;
    static constexpr std::size_t kBytesOfNode =
        sizeof(Symbol) + sizeof(std::uint8_t) + 2 * sizeof(std::uint32_t);

    /// Nodes that follow each other, each the child of the one before.
    struct Chain {
        Node first, parent;
        std::uint64_t depth;  // of the first one; that of the root is 0
    };
    struct Branch {
        Node parent, child;

        static Branch nothing() { return {kRoot, kRoot}; }
        bool free() const { return child == kRoot; }
    };

    std::span<const Symbol> symbols_of(const SharedStretch& stretch) const {
        return {symbols_ + stretch.symbol, static_cast<std::size_t>(stretch.symbols)};
    }
    static std::uint64_t hash_of(Node parent, Symbol symbol) {
        const std::uint64_t hash =
            (std::uint64_t{parent} << 32 | symbol) * std::uint64_t{0x9e3779b97f4a7c15};
        return hash ^ hash >> 32;
    }
    Branch& branch(Node parent, Symbol symbol) {
        return branches_.find(hash_of(parent, symbol), [&](const Branch& other) {
            return other.parent == parent && labels_[other.child] == symbol;
        });
    }
    /// The child of that symbol, or the root.
    Node child(Node node, Symbol symbol) {
        const std::size_t next = std::size_t{node} + 1;
        if (next < labels_.size() && labels_[next] == symbol && !(flags_[next] & kFirst))
            return static_cast<Node>(next);
        return flags_[node] & kBranches ? branch(node, symbol).child : kRoot;
    }

    /// Whether so many steps since the last look are to be followed by one, and it says to stop.
    bool stopped(std::size_t steps) {
        steps_ += steps;
        if (steps_ < kLookEvery) return false;
        steps_ = 0;
        return execution_.stop_requested();
    }

    Status insert_stretches();
    Status append_chain(Node parent, std::uint64_t depth, std::span<const Symbol> symbols);
    Status link_nodes();
    void link(Node node, Node parent);
    Status count();

    const Symbol* symbols_;
    const std::vector<SharedStretch>& stretches_;
    MemoryBudget budget_;
    Execution& execution_;
    std::size_t steps_ = 0;
    // Of each node
    std::vector<Symbol> labels_;
    std::vector<std::uint8_t> flags_;
    std::vector<std::uint32_t> passage_;  // the longest one that its path ends with, once linked
    std::vector<Node> links_;
    std::vector<Chain> chains_;
    HashTable<Branch> branches_;
    // Of each passage
    std::vector<CommonPassage> passages_;
    std::vector<std::uint32_t> within_;  // the longest other one that it ends with
};

template <class Symbol>
Status PassageTree<Symbol>::insert_stretches() {
    execution_.begin_phase("collecting passages", stretches_.size());
    for (std::uint32_t i = 0; i < stretches_.size(); ++i) {
        GPUTEXT_TRY(execution_.checkpoint());
        const std::span<const Symbol> symbols = symbols_of(stretches_[i]);
        Node node = kRoot;
        for (std::size_t at = 0; at < symbols.size(); ++at) {
            if (stopped(1)) return Status::cancelled();
            const Node next = child(node, symbols[at]);
            if (next == kRoot) {
                GPUTEXT_TRY(append_chain(node, at + 1, symbols.subspan(at)));
                node = static_cast<Node>(labels_.size() - 1);
                break;
            }
            node = next;
        }
        if (passage_[node] != kNone) continue;
        passage_[node] = static_cast<std::uint32_t>(passages_.size());
        passages_.push_back({stretches_[i], 0, 0});
    }
    return {};
}

template <class Symbol>
Status PassageTree<Symbol>::append_chain(Node parent, std::uint64_t depth,
                                         std::span<const Symbol> symbols) {
    GPUTEXT_TRY(budget_.take(symbols.size() * kBytesOfNode + sizeof(Chain) + 2 * sizeof(Branch),
                             "common passages"));
    if (labels_.size() + symbols.size() > kNone)
        return {ErrorCode::memory_limit, "common passages have more than 4294967295 symbols"};
    const Node first = static_cast<Node>(labels_.size());
    labels_.insert(labels_.end(), symbols.begin(), symbols.end());
    flags_.resize(labels_.size());
    passage_.resize(labels_.size(), kNone);
    chains_.push_back({first, parent, depth});
    flags_[first] |= kFirst;
    flags_[parent] |= kBranches;
    branches_.grow(chains_.size(), [&](const Branch& other) {
        return hash_of(other.parent, labels_[other.child]);
    });
    branch(parent, symbols[0]) = {parent, first};
    return stopped(symbols.size()) ? Status::cancelled() : Status();
}

/// Nodes of a depth have links to nodes of a lower one.
template <class Symbol>
Status PassageTree<Symbol>::link_nodes() {
    execution_.begin_phase("comparing passages", labels_.size());
    if (!stoppable_assign(links_, labels_.size(), kRoot, execution_.stop()))
        return Status::cancelled();
    within_.resize(passages_.size(), kNone);
    const auto lower = [](const Chain& a, const Chain& b) { return a.depth < b.depth; };
    if (!stoppable_sort(chains_.begin(), chains_.end(), lower, execution_.stop()))
        return Status::cancelled();
    std::vector<Node> nodes;  // of a depth
    auto chain = chains_.begin();
    for (std::uint64_t depth = 1; chain != chains_.end() || !nodes.empty(); ++depth) {
        std::size_t kept = 0;
        for (const Node node : nodes) {
            const std::size_t next = std::size_t{node} + 1;
            if (next == labels_.size() || flags_[next] & kFirst) continue;
            nodes[kept++] = static_cast<Node>(next);
        }
        nodes.resize(kept);
        for (const Node node : nodes) link(node, node - 1);
        for (; chain != chains_.end() && chain->depth == depth; ++chain) {
            link(chain->first, chain->parent);
            nodes.push_back(chain->first);
        }
        if (stopped(nodes.size() + 1)) return Status::cancelled();
        execution_.advance(nodes.size());
    }
    return {};
}

template <class Symbol>
void PassageTree<Symbol>::link(Node node, Node parent) {
    Node end = parent;
    while (end != kRoot && links_[node] == kRoot) {
        end = links_[end];
        links_[node] = child(end, labels_[node]);
    }
    const std::uint32_t within = passage_[links_[node]];
    if (passage_[node] == kNone)
        passage_[node] = within;
    else
        within_[passage_[node]] = within;
}

/// Where a passage stands, there are as many stretches of its symbols as places. Stretches ascend, so
/// that the first place that is met is the first one, also within a longer stretch.
template <class Symbol>
Status PassageTree<Symbol>::count() {
    execution_.begin_phase("counting passages", stretches_.size());
    std::vector<std::uint32_t> last(passages_.size(), kNone);  // document
    for (const SharedStretch& stretch : stretches_) {
        GPUTEXT_TRY(execution_.checkpoint());
        Node node = kRoot;
        for (std::uint64_t end = stretch.symbol + 1; end <= stretch.symbol + stretch.symbols;
             ++end) {
            if (stopped(1)) return Status::cancelled();
            node = child(node, symbols_[end - 1]);
            std::uint32_t passage = passage_[node];
            if (passage == kNone) continue;
            ++passages_[passage].occurrences;
            for (; passage != kNone && last[passage] != stretch.document;
                 passage = within_[passage]) {
                SharedStretch& first = passages_[passage].first;
                if (last[passage] == kNone)
                    first = {stretch.document, end - first.symbols, first.symbols};
                last[passage] = stretch.document;
                ++passages_[passage].documents;
                if (stopped(1)) return Status::cancelled();
            }
        }
    }
    // What a passage ends with is shorter.
    std::vector<std::uint32_t> longest(passages_.size());
    std::iota(longest.begin(), longest.end(), 0);
    const auto longer = [&](std::uint32_t a, std::uint32_t b) {
        return passages_[a].first.symbols > passages_[b].first.symbols;
    };
    if (!stoppable_sort(longest.begin(), longest.end(), longer, execution_.stop()))
        return Status::cancelled();
    for (const std::uint32_t passage : longest)
        if (within_[passage] != kNone)
            passages_[within_[passage]].occurrences += passages_[passage].occurrences;
    const auto before = [](const CommonPassage& a, const CommonPassage& b) {
        return std::tie(a.first.symbol, a.first.symbols) <
               std::tie(b.first.symbol, b.first.symbols);
    };
    if (!stoppable_sort(passages_.begin(), passages_.end(), before, execution_.stop()))
        return Status::cancelled();
    return {};
}

}  // namespace

Result<std::vector<CommonPassage>> common_passages(const PassageTexts& texts,
                                                   const std::vector<SharedStretch>& stretches,
                                                   std::size_t memory_limit,
                                                   Execution& execution) {
    return status_or_exception([&] {
        if (texts.narrow())
            return PassageTree(texts.bytes(), stretches, memory_limit, execution).run();
        return PassageTree(texts.numbers(), stretches, memory_limit, execution).run();
    });
}

}  // namespace gputext
