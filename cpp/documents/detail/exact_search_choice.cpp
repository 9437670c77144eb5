#include <algorithm>
#include <cmath>

#include "cpp/documents/detail/exact_search_methods.hpp"

namespace gputext {
namespace {

/// Whether the classes of the characters of two documents, one in each, leave them a pair.
bool classes_share(ClassFilter filter, const DocumentFeatures& a, const DocumentFeatures& b,
                   std::size_t least) {
    CharacterClasses row, column;
    row.resize(1);
    row.set(0, a);
    column.resize(1);
    column.set(0, b);
    std::array<std::uint32_t, CharacterClasses::vector + 1> hits;
    return filter(row.column(0), column, 0, 1,
                  static_cast<std::uint16_t>(std::min<std::size_t>(least, UINT16_MAX)),
                  hits.data()) > 0;
}

}  // namespace

std::size_t ExactSearch::begin_of_counted() const {
    const bool wanted =
        method_ == ExactMethod::counts ||
        (method_ == ExactMethod::estimated && parameters_.threshold <= kMostCountedThreshold);
    // In smaller tiles, computing features again and again takes longer than grams do.
    if (!wanted || count_bytes() < kLeastTile * sizeof(DocumentFeatures)) return columns_.size();
    return begin_of(kLeastCounted, columns_);
}

Status ExactSearch::choose(Range all, std::size_t counted, Ranges& ranges) {
    const auto add = [](Range columns, std::vector<Range>& to) {
        if (!to.empty() && to.back().end == columns.begin)
            to.back().end = columns.end;
        else
            to.push_back(columns);
    };
    for (std::size_t begin = all.begin; begin < all.end;) {
        const std::size_t last = begin < counted ? std::min(all.end, counted) : all.end;
        const Range columns{begin, end_of_class(begin, last)};
        begin = columns.end;
        MethodTimes times;
        GPUTEXT_TRY(estimate(columns, columns.begin >= counted, times));
        bool wanted = false, joined = false;
        GPUTEXT_TRY(may_be_indexed(columns, times.otherwise(), wanted));
        if (wanted) GPUTEXT_TRY(try_index(columns, times.otherwise(), joined));
        if (!joined) add(columns, times.counts <= times.tiles ? ranges.counted : ranges.tiled);
    }
    return {};
}

std::size_t ExactSearch::end_of_class(std::size_t begin, std::size_t last) const {
    const auto grams_of = [&](std::size_t column) {
        return GramIndex::count_chunks(length(column), parameters_.threshold, between_sides());
    };
    std::size_t end = begin + 1;
    for (std::size_t grams = grams_of(begin); end < last && end - begin < GramIndex::most_columns &&
                                              length(end) <= length(begin) + length(begin) / 4 + 8;
         ++end) {
        grams += grams_of(end);
        if (GramIndex::bytes_of(grams) > index_bytes()) break;
    }
    return end;
}

std::vector<std::size_t> ExactSearch::sample_rows(Range columns, std::size_t most) const {
    const Range rows = rows_beside(columns);
    const std::size_t samples = std::min(rows.size(), most);
    std::vector<std::size_t> sample(samples);
    for (std::size_t i = 0; i < samples; ++i) sample[i] = rows.begin + rows.size() * i / samples;
    return sample;
}

double ExactSearch::sum_over_rows(Range columns,
                                  const std::function<double(std::size_t)>& of_row) const {
    const std::vector<std::size_t> sample = sample_rows(columns, kSampledRows);
    double sum = 0;
    for (const std::size_t row : sample) {
        if (execution_.stop_requested()) break;
        sum += of_row(row);
    }
    if (sample.empty()) return 0;
    return sum * static_cast<double>(rows_beside(columns).size()) /
           static_cast<double>(sample.size());
}

Status ExactSearch::estimate(Range columns, bool countable, MethodTimes& times) const {
    if (method_ == ExactMethod::counts && countable) {
        times.counts = 0;
        return {};
    }
    const std::size_t documents = rows_beside(columns).size() + columns.size();
    if (documents < kLeastEstimated) {
        times.counts = countable ? 0 : times.counts;
        return {};
    }
    times.tiles = sum_over_rows(columns, [&](std::size_t row) { return tile_time(row, columns); });
    if (!countable) return {};
    double pair_time = 0;
    GPUTEXT_TRY(sample_pair_time(columns, pair_time));
    times.counts = sum_over_rows(columns, [&](std::size_t row) {
        return static_cast<double>(row_length(row)) * kFeatureTime +
               static_cast<double>(columns_beside(row, columns).size()) * pair_time;
    });
    return {};
}

Status ExactSearch::sample_pair_time(Range columns, double& time) const {
    constexpr double golden = 0.6180339887498949;
    const ClassFilter filter = class_filter(parameters_.simd);
    DocumentFeatures own, other;
    double sum = 0;
    std::size_t pairs = 0;
    for (const std::size_t row : sample_rows(columns, kSampledPairs)) {
        const Range beside = columns_beside(row, columns);
        if (beside.size() == 0) continue;
        // Columns all over the range, in another order than the rows.
        const double place = static_cast<double>(++pairs) * golden;
        const auto column =
            beside.begin + static_cast<std::size_t>((place - std::floor(place)) *
                                                    static_cast<double>(beside.size()));
        const auto single = CharacterLengths::single_byte();
        if (!own.set(folded(rows_[row]), single, execution_.stop()) ||
            !other.set(folded(columns_[column]), single, execution_.stop()))
            return Status::cancelled();
        const std::size_t longer = std::max(row_length(row), length(column));
        const std::size_t edits = most_edits(row, column);
        sum += kClassesTime;
        if (!classes_share(filter, own, other, longer - std::min(longer, edits))) continue;
        sum += kCharactersTime;
        if (shared_.characters(own, other) + edits >= longer) sum += kTrigramsTime;
    }
    time = pairs == 0 ? 0 : sum / static_cast<double>(pairs);
    return {};
}

double ExactSearch::tile_time(std::size_t row, Range columns) const {
    const Range beside = columns_beside(row, columns);
    if (beside.size() == 0) return 0;
    const double tiles =
        1 + static_cast<double>(beside.size()) / static_cast<double>(GramTile::most_columns);
    return static_cast<double>(row_length(row)) * tiles * kTileTime;
}

Status ExactSearch::may_be_indexed(Range columns, double otherwise, bool& wanted) {
    wanted = false;
    if (method_ == ExactMethod::tiles) return {};
    const ProbeRows rows = probe_rows_beside(columns);
    if (rows.range.size() == 0 ||
        GramIndex::gram_length(columns_, columns, rows, parameters_.threshold) == 0)
        return {};
    if (method_ == ExactMethod::index) {
        wanted = true;
        return {};
    }
    if (columns.size() < kLeastIndexed || index_bytes() < kLeastIndexBytes) return {};
    double time = build_time(columns) + look_up_time(columns);
    wanted = time < otherwise;
    if (!wanted || columns.size() < kLeastTried) return {};
    // How many entries rows find is seen in an index of a part of the columns.
    const std::size_t middle = columns.begin + columns.size() / 2;
    const Range part{middle, middle + columns.size() / kTriedPart};
    GramIndex index;
    GPUTEXT_TRY(
        index.build(columns_, part, probe_rows_beside(part), parameters_.threshold, execution_));
    time += entry_time(index, part) * kTriedPart;
    wanted = time < otherwise;
    return {};
}

double ExactSearch::build_time(Range columns) const {
    const std::size_t characters = columns.size() * length(columns.begin + columns.size() / 2);
    return static_cast<double>(characters) * kBuildTime;
}

double ExactSearch::look_up_time(Range columns) const {
    return sum_over_rows(columns, [&](std::size_t row) {
        return static_cast<double>(row_length(row)) * kProbeTime;
    });
}

double ExactSearch::entry_time(const GramIndex& index, Range columns) {
    return sum_over_rows(columns, [&](std::size_t row) -> double {
        const Range beside = columns_beside(row, columns);
        if (beside.size() == 0) return 0;
        const GramIndex::Query query = query_of(row, beside);
        const std::uint64_t entries =
            index.count_entries({&query, 1}, workers_.front().probe, execution_.stop());
        return static_cast<double>(entries) * kEntryTime;
    });
}

}  // namespace gputext
