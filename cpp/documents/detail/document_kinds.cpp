#include "cpp/documents/detail/document_kinds.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

namespace gputext {
namespace {

constexpr int kTries = 3, kSteps = 12;       // of k-means
constexpr std::size_t kLeastDocuments = 32;  // of a kind that is split off

LetterRoots mean_of(std::span<const LetterRoots> documents, const DocumentNumbers& numbers) {
    std::array<std::int64_t, kLetterCells> sums{};
    for (const std::size_t number : numbers)
        for (std::size_t cell = 0; cell < sums.size(); ++cell)
            sums[cell] += documents[number][cell];
    LetterRoots mean;
    const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, numbers.size()));
    for (std::size_t cell = 0; cell < sums.size(); ++cell)
        mean[cell] = static_cast<std::int16_t>(sums[cell] / count);
    return mean;
}

/// Chooses a document with a probability in proportion to its squared distance.
std::size_t far_document(std::span<const LetterRoots> documents, const DocumentNumbers& numbers,
                         const LetterRoots& from, std::mt19937& random) {
    double sum = 0;
    for (const std::size_t number : numbers) sum += square_distance(documents[number], from);
    double at = sum * (static_cast<double>(random()) / 4294967296.0);
    for (const std::size_t number : numbers) {
        at -= square_distance(documents[number], from);
        if (at < 0) return number;
    }
    return numbers.back();
}

struct Split {
    DocumentKind first, second;
    double first_difficulty, second_difficulty;
    double cost;  // the sum of squared distances
};

/// A kind that may be split.
struct Leaf {
    DocumentKind kind;
    double difficulty;
    std::optional<Split> split;  // once it has been looked for
};

Split split_once(std::span<const LetterRoots> documents, const DocumentNumbers& numbers,
                 std::mt19937& random) {
    Split split{};
    split.first.typical = documents[numbers[random() % numbers.size()]];
    split.second.typical = documents[far_document(documents, numbers, split.first.typical, random)];
    for (int step = 0; step < kSteps; ++step) {
        split.first.documents.clear();
        split.second.documents.clear();
        split.cost = 0;
        for (const std::size_t number : numbers) {
            const std::uint32_t first = square_distance(documents[number], split.first.typical);
            const std::uint32_t second = square_distance(documents[number], split.second.typical);
            (second < first ? split.second : split.first).documents.push_back(number);
            split.cost += std::min(first, second);
        }
        if (step + 1 == kSteps) break;
        split.first.typical = mean_of(documents, split.first.documents);
        split.second.typical = mean_of(documents, split.second.documents);
    }
    return split;
}

Split best_split(std::span<const LetterRoots> documents, const DocumentNumbers& numbers) {
    std::mt19937 random(1);
    Split best = split_once(documents, numbers, random);
    for (int i = 1; i < kTries; ++i) {
        Split next = split_once(documents, numbers, random);
        if (next.cost < best.cost) best = std::move(next);
    }
    return best;
}

/// Splits the most difficult kinds that have not been split, one on each thread: whichever is the
/// most difficult one of all, it has been split then.
Status split_leaves(std::span<const LetterRoots> documents,
                    const std::function<double(const DocumentNumbers&)>& difficulty,
                    std::vector<Leaf>& leaves, Execution& execution) {
    std::vector<Leaf*> wanted;
    for (Leaf& leaf : leaves)
        if (leaf.difficulty > 0 && !leaf.split) wanted.push_back(&leaf);
    std::ranges::stable_sort(wanted, std::greater(), &Leaf::difficulty);
    wanted.resize(std::min<std::size_t>(wanted.size(), execution.threads()));
    return execution.parallel_for(wanted.size(), [&](std::size_t index, unsigned) {
        Leaf& leaf = *wanted[index];
        Split split = best_split(documents, leaf.kind.documents);
        if (std::min(split.first.documents.size(), split.second.documents.size()) <
            kLeastDocuments) {
            leaf.difficulty = 0;
            return Status();
        }
        split.first_difficulty = difficulty(split.first.documents);
        split.second_difficulty = difficulty(split.second.documents);
        leaf.split = std::move(split);
        return Status();
    });
}

}  // namespace

Result<std::vector<DocumentKind>> document_kinds(
    std::span<const LetterRoots> documents, std::size_t most,
    const std::function<double(const DocumentNumbers&)>& difficulty, Execution& execution) {
    DocumentNumbers all(documents.size());
    std::iota(all.begin(), all.end(), 0);
    std::vector<Leaf> leaves;
    leaves.push_back({{mean_of(documents, all), all}, most > 1 ? difficulty(all) : 0, {}});
    while (leaves.size() < most) {
        Leaf& hardest = *std::ranges::max_element(leaves, {}, &Leaf::difficulty);
        if (hardest.difficulty <= 0) break;
        if (!hardest.split) {
            Status status = split_leaves(documents, difficulty, leaves, execution);
            if (!status.ok()) return status;
            continue;
        }
        Split split = std::move(*hardest.split);
        hardest = {std::move(split.first), split.first_difficulty, {}};
        leaves.push_back({std::move(split.second), split.second_difficulty, {}});
    }
    std::vector<DocumentKind> kinds;
    for (Leaf& leaf : leaves) kinds.push_back({leaf.kind.typical, {}});
    for (std::size_t number = 0; number < documents.size(); ++number)
        std::ranges::min_element(kinds, {}, [&](const DocumentKind& kind) {
            return square_distance(documents[number], kind.typical);
        })->documents.push_back(number);
    return kinds;
}

}  // namespace gputext
