#include "cpp/documents/detail/document_kinds.hpp"

#include <algorithm>
#include <numeric>
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

/// A document that is chosen with a probability in proportion to its squared distance.
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
    double cost;  // the sum of squared distances
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

Split best_split(std::span<const LetterRoots> documents, const DocumentNumbers& numbers,
                 std::mt19937& random) {
    Split best = split_once(documents, numbers, random);
    for (int i = 1; i < kTries; ++i) {
        Split next = split_once(documents, numbers, random);
        if (next.cost < best.cost) best = std::move(next);
    }
    return best;
}

}  // namespace

std::vector<DocumentKind> document_kinds(
    std::span<const LetterRoots> documents, std::size_t most,
    const std::function<double(const DocumentNumbers&)>& difficulty, Stop stop) {
    DocumentNumbers all(documents.size());
    std::iota(all.begin(), all.end(), 0);
    std::vector<DocumentKind> kinds{{mean_of(documents, all), all}};
    std::vector<double> difficulties{most > 1 ? difficulty(all) : 0};
    std::mt19937 random(1);
    while (kinds.size() < most && !stop()) {
        const auto hardest =
            static_cast<std::size_t>(std::ranges::max_element(difficulties) - difficulties.begin());
        if (difficulties[hardest] <= 0) break;
        Split split = best_split(documents, kinds[hardest].documents, random);
        if (std::min(split.first.documents.size(), split.second.documents.size()) <
            kLeastDocuments) {
            difficulties[hardest] = 0;
            continue;
        }
        difficulties[hardest] = difficulty(split.first.documents);
        difficulties.push_back(difficulty(split.second.documents));
        kinds[hardest] = std::move(split.first);
        kinds.push_back(std::move(split.second));
    }
    for (DocumentKind& kind : kinds) kind.documents.clear();
    for (std::size_t number = 0; number < documents.size(); ++number)
        std::ranges::min_element(kinds, {}, [&](const DocumentKind& kind) {
            return square_distance(documents[number], kind.typical);
        })->documents.push_back(number);
    return kinds;
}

}  // namespace gputext
