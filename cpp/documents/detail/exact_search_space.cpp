#include "cpp/documents/detail/exact_search_space.hpp"

#include <algorithm>

#include "cpp/base/radix_sort.hpp"

namespace gputext {
namespace {

/// What a pair takes until it is part of the answer.
constexpr std::size_t kPairBytes = 48;
constexpr std::size_t kPairsAtOnce = 256;
constexpr std::size_t kSampledRows = 1024;
/// Measured seconds to verify a pair: for a character, and for a step of its band.
constexpr double kVerifyTime = 5e-9, kStepTime = 1e-9;

/// How many of the ordered places come before the first one that is not `below`.
template <class Below>
std::size_t count_below(std::span<const PlacedDocument> places, Below&& below) {
    return static_cast<std::size_t>(std::ranges::partition_point(places, below) - places.begin());
}

}  // namespace

Status SearchSpace::prepare() {
    GPUTEXT_TRY(folded_.fold(documents.documents, documents.lengths, execution));
    if (!rows_of_part(documents.lengths, part, execution.stop(), part_rows_))
        return Status::cancelled();
    const std::uint8_t side = between_sides() ? row_side(documents.sides) : 0;
    if (!sort_side(kBothSides ^ side, columns_)) return Status::cancelled();
    if (between_sides() && !sort_side(side, other_rows_)) return Status::cancelled();
    rows_ = between_sides() ? other_rows_ : columns_;
    return {};
}

bool SearchSpace::sort_side(std::uint8_t side, std::vector<Place>& places) const {
    std::vector<std::uint64_t> keys;
    keys.reserve(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i)
        if (!between_sides() || (documents.sides[i] & side) != 0)
            keys.push_back(std::uint64_t{documents.lengths[i]} << 32 | i);
    if (!radix_sort(keys, execution.stop())) return false;
    places.reserve(keys.size());
    for (const std::uint64_t key : keys) {
        const auto document = static_cast<std::uint32_t>(key);
        const Bytes folded = folded_[document];
        places.push_back({folded.data(), static_cast<std::uint32_t>(folded.size()), document});
    }
    return true;
}

std::size_t SearchSpace::first_column_of(std::size_t length) const {
    return count_below(columns_, [&](const Place& column) { return column.size < length; });
}

SearchSpace::Range SearchSpace::rows_beside(Range columns) const {
    const std::size_t shortest = length(columns.begin), longest = length(columns.end - 1);
    const std::size_t begin =
        count_below(rows_, [&](const Place& row) { return too_long(shortest, row.size); });
    if (!between_sides()) return {std::min(begin, columns.begin), columns.end};
    return {begin,
            count_below(rows_, [&](const Place& row) { return !too_long(row.size, longest); })};
}

SearchSpace::Range SearchSpace::columns_beside(std::size_t row, Range columns) const {
    const std::span<const Place> all = std::span(columns_).subspan(columns.begin, columns.size());
    const std::size_t own = row_length(row);
    const std::size_t end = columns.begin + count_below(all, [&](const Place& column) {
                                return !too_long(column.size, own);
                            });
    const std::size_t begin =
        between_sides()
            ? columns.begin +
                  count_below(all, [&](const Place& column) { return too_long(own, column.size); })
            : std::max(row + 1, columns.begin);
    return {std::min(begin, end), end};
}

std::vector<std::size_t> SearchSpace::sample_rows(Range columns, std::size_t most) const {
    const Range rows = rows_beside(columns);
    const std::size_t samples = std::min(rows.size(), most);
    std::vector<std::size_t> sample(samples);
    for (std::size_t i = 0; i < samples; ++i) sample[i] = rows.begin + rows.size() * i / samples;
    return sample;
}

double SearchSpace::sum_over_rows(Range columns,
                                  const std::function<double(std::size_t)>& of_row) const {
    const std::vector<std::size_t> sample = sample_rows(columns, kSampledRows);
    double sum = 0;
    for (const std::size_t row : sample) {
        if (execution.stop_requested()) break;
        sum += of_row(row);
    }
    if (sample.empty()) return 0;
    return sum * static_cast<double>(rows_beside(columns).size()) /
           static_cast<double>(sample.size());
}

Status SearchSpace::add(std::size_t row, std::size_t column, std::size_t distance,
                        unsigned worker) {
    const auto [first, second] = std::minmax(rows_[row].document, columns_[column].document);
    if (!wanted.take(first, second)) return {};
    Verifier& verifier = verifiers_[worker];
    if (verifier.found.size() == verifier.room) {
        GPUTEXT_TRY(budget_.take(kPairsAtOnce * kPairBytes, "the pairs"));
        verifier.room += kPairsAtOnce;
    }
    verifier.found.push_back(
        {first, second, edit_rate(distance, row_length(row) + length(column))});
    return {};
}

Status SearchSpace::verify(std::size_t row, std::size_t column, unsigned worker) {
    if (!are_pair(row, column)) return {};
    const std::size_t most = most_edits(row, column);
    const auto [first, second] = std::minmax(rows_[row].document, columns_[column].document);
    if (!wanted.are_signatures_near(first, second)) return {};
    Verifier& verifier = verifiers_[worker];
    ++verifier.verified;
    const std::uint64_t steps = verifier.edit_distance.band_steps();
    const Result<std::size_t> distance =
        verifier.edit_distance.of_texts(documents.documents[first], documents.documents[second],
                                        documents.documents.characters, most, execution.stop());
    if (!distance.ok()) return distance.status();
    if (*distance <= most) return add(row, column, *distance, worker);
    verifier.far_characters += row_length(row) + length(column);
    verifier.far_steps += verifier.edit_distance.band_steps() - steps;
    return {};
}

double SearchSpace::far_seconds() const {
    std::uint64_t characters = 0, steps = 0;
    for (const Verifier& verifier : verifiers_) {
        characters += verifier.far_characters;
        steps += verifier.far_steps;
    }
    return kVerifyTime * static_cast<double>(characters) + kStepTime * static_cast<double>(steps);
}

std::uint64_t SearchSpace::verified() const {
    std::uint64_t count = 0;
    for (const Verifier& verifier : verifiers_) count += verifier.verified;
    return count;
}

std::vector<std::size_t> SearchSpace::added() const {
    std::vector<std::size_t> added;
    for (const Verifier& verifier : verifiers_) added.push_back(verifier.found.size());
    return added;
}

void SearchSpace::drop_added_since(std::span<const std::size_t> added) {
    for (std::size_t i = 0; i < verifiers_.size(); ++i) verifiers_[i].found.resize(added[i]);
}

void SearchSpace::take(std::vector<NearPair>& pairs) {
    pairs.clear();
    for (Verifier& verifier : verifiers_) {
        pairs.insert(pairs.end(), verifier.found.begin(), verifier.found.end());
        verifier.found = {};
    }
}

}  // namespace gputext
