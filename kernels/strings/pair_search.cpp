#include "kernels/strings/pair_search.hpp"

#include <algorithm>
#include <chrono>

#include "kernels/base/launch.hpp"

namespace gputext::gpu {
namespace {

/// Pairs that one launch filters: some 20 ms.
constexpr double kPairsAtOnce = 4e10;
/// A column of so many more symbols counts as one more column.
constexpr double kSymbolsOfPair = 64;
/// A search begins with so many times fewer rows, and takes more while a launch, which a cancel
/// waits for, takes less time than this.
constexpr std::uint32_t kFirstRows = 16;
constexpr double kLongLaunch = 0.2;
constexpr std::uint64_t kMostPairs = std::uint64_t{1} << 25;
constexpr std::uint64_t kLeastPairs = std::uint64_t{1} << 15;
/// There is a place for a pair that is left for so many pairs.
constexpr std::uint64_t kPairsOfLeft = 2;
static_assert(kLeastPairs / kPairsOfLeft >= kBlockRows * kTilePlaces);
constexpr std::uint64_t kBytesOfPair = sizeof(StringPair) + sizeof(StringCandidate) / kPairsOfLeft;
/// With so many pairs a row for each neighbor, limits are lowered before all pairs are found.
constexpr std::uint64_t kManyPairs = 16;
constexpr std::uint32_t kTilesOfStep = 16;
/// Blocks that keep all multiprocessors busy: four for each place that 132 of them have. A few more
/// would have the device to themselves.
constexpr std::uint32_t kPlentyOfBlocks = 1056;
/// A block that has fewer tiles takes longer to begin than to filter.
constexpr std::uint32_t kLeastTiles = 64;
constexpr std::uint64_t kBytesOfMask = 2 * sizeof(uint4) + sizeof(std::uint16_t);
constexpr std::size_t kProbesOfNeighbor = 4;
constexpr std::uint32_t kLeastProbes = 32;

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::uint64_t plane_words(std::uint16_t length) {
    return length > kMostPlaneSymbols ? 0 : (length + 63u) / 64;
}

}  // namespace

// ---- Strings ----

std::uint64_t DeviceStrings::bytes(StringMetric metric, const CodedStrings& strings, bool are_rows,
                                   unsigned bits) {
    const std::uint64_t places = strings.places();
    std::uint64_t all = places * (kBytesOfMask + sizeof(std::uint16_t) + sizeof(std::uint64_t) +
                                  2 * sizeof(std::uint32_t)) +
                        (counts_edits(metric) ? places * kBytesOfMask : 0) +
                        strings.codes().size() * sizeof(std::uint16_t) +
                        strings.trigrams().size() * sizeof(std::uint32_t) +
                        strings.groups.size() * sizeof(StringGroup);
    if (!are_rows || !strings.trigrams().empty()) return all;
    std::uint64_t words = 0;
    for (const std::uint16_t length : strings.lengths) words += plane_words(length);
    return all + places * sizeof(std::uint64_t) + words * bits * sizeof(std::uint64_t);
}

Status DeviceStrings::upload(StringMetric metric, const CodedStrings& strings,
                             std::span<const std::uint32_t> keys, bool are_rows, unsigned bits,
                             UploadRing& ring, Execution& execution, cudaStream_t stream) {
    const auto copy = [&]<class T>(DeviceBuffer<T>& to, std::span<const T> from) -> Status {
        GPUTEXT_TRY(to.allocate(from.size(), stream));
        if (from.empty()) return {};
        // The ring's stream must not write before the memory is there.
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "allocating device memory"));
        return ring.copy(reinterpret_cast<std::uint8_t*>(to.data()),
                         {reinterpret_cast<const std::uint8_t*>(from.data()), from.size_bytes()},
                         execution);
    };
    places_ = static_cast<std::uint32_t>(strings.places());
    GPUTEXT_TRY(copy(lengths_, std::span(strings.lengths)));
    GPUTEXT_TRY(copy(numbers_, std::span(strings.numbers)));
    GPUTEXT_TRY(copy(begins_, std::span(strings.begins)));
    GPUTEXT_TRY(copy(codes_, strings.codes()));
    GPUTEXT_TRY(copy(trigrams_, strings.trigrams()));
    GPUTEXT_TRY(copy(groups_, std::span(strings.groups)));
    GPUTEXT_TRY(masks_.allocate(2 * strings.places(), stream));
    GPUTEXT_TRY(excess_.allocate(strings.places(), stream));
    if (counts_edits(metric)) {
        GPUTEXT_TRY(letters_.allocate(2 * strings.places(), stream));
        GPUTEXT_TRY(letter_excess_.allocate(strings.places(), stream));
    }
    if (!keys.empty()) {
        std::vector<std::uint32_t> of_places(strings.places(), 0);
        for (std::size_t place = 0; place < of_places.size(); ++place) {
            const std::uint32_t number = strings.numbers[place];
            if (number != kNoString) of_places[place] = keys[number];
        }
        GPUTEXT_TRY(copy(keys_, std::span<const std::uint32_t>(of_places)));
    }
    if (!are_rows || !strings.trigrams().empty()) return {};
    std::vector<std::uint64_t> plane_begins(1, 0);
    plane_begins.reserve(strings.places() + 1);
    for (const std::uint16_t length : strings.lengths)
        plane_begins.push_back(plane_begins.back() + plane_words(length));
    GPUTEXT_TRY(copy(plane_begins_, std::span<const std::uint64_t>(plane_begins)));
    return planes_.allocate(std::max<std::uint64_t>(plane_begins.back() * bits, 1), stream);
}

StringSide DeviceStrings::side() const {
    return {places_,         lengths_.data(), begins_.data(), numbers_.data(),
            codes_.data(),   trigrams_.data(), keys_.data(),  masks_.data(),
            excess_.data(),  letters_.data(), letter_excess_.data(),
            planes_.data(),  plane_begins_.data()};
}

// ---- The search ----

Status PairSearch::set(StringMetric metric, unsigned bits, const CodedStrings& rows,
                       const CodedStrings* columns, const Keys& keys) {
    std::uint64_t needed = DeviceStrings::bytes(metric, rows, true, bits) +
                           rows.places() * (sizeof(double) + sizeof(std::uint32_t));
    if (columns != nullptr) needed += DeviceStrings::bytes(metric, *columns, false, bits);
    const std::uint64_t least = needed + kLeastPairs * kBytesOfPair;
    if (least > work_.bytes) return too_little_memory("strings take", least, work_.bytes);
    bytes_left_ = work_.bytes - needed;
    const CodedStrings& others = columns != nullptr ? *columns : rows;
    column_weight_ =
        static_cast<double>(others.places()) +
        static_cast<double>(others.codes().size() + others.trigrams().size()) / kSymbolsOfPair;
    execution_.begin_phase("copying strings", 0);
    search_.metric = metric;
    search_.bits = bits;
    search_.triangle = columns == nullptr;
    GPUTEXT_TRY(event_.create());
    GPUTEXT_TRY(rows_.upload(metric, rows, keys.rows, true, bits, ring_, execution_, work_.stream));
    if (columns != nullptr)
        GPUTEXT_TRY(columns_.upload(metric, *columns, keys.columns, false, bits, ring_, execution_,
                                    work_.stream));
    GPUTEXT_TRY(event_.hold(work_.stream, ring_.stream()));
    search_.rows = rows_.side();
    search_.columns = columns != nullptr ? columns_.side() : search_.rows;
    search_.groups = columns != nullptr ? columns_.groups() : rows_.groups();
    search_.group_count = static_cast<std::uint32_t>(
        columns != nullptr ? columns->groups.size() : rows.groups.size());
    GPUTEXT_TRY(make_masks(metric, bits, search_.rows, work_.stream));
    if (columns != nullptr) GPUTEXT_TRY(make_masks(metric, bits, search_.columns, work_.stream));
    GPUTEXT_TRY(limits_.allocate(rows.places(), work_.stream));
    GPUTEXT_TRY(limit_numbers_.allocate(rows.places(), work_.stream));
    search_.limits = limits_.data();
    search_.limit_numbers = limit_numbers_.data();
    GPUTEXT_TRY(found_.allocate(2, work_.stream));
    return cuda_status(cudaStreamSynchronize(work_.stream), "copying strings to the device");
}

Status PairSearch::limit(double radius) {
    const std::uint32_t places = search_.rows.places;
    RowLimits limits{std::vector<double>(places, radius),
                     std::vector<std::uint32_t>(places, UINT32_MAX)};
    return copy_limits({0, places}, limits, cudaMemcpyHostToDevice);
}

/// Of as many rows as `limits` has.
Status PairSearch::copy_limits(const PlaceRange& rows, RowLimits& limits,
                               cudaMemcpyKind direction) {
    const auto copy = [&](auto* device, auto& host) {
        void* const here = host.data();
        void* const there = device + rows.begin;
        const bool up = direction == cudaMemcpyHostToDevice;
        return cuda_status(cudaMemcpyAsync(up ? there : here, up ? here : there,
                                           host.size() * sizeof(host[0]), direction, work_.stream),
                           "copying limits of strings");
    };
    GPUTEXT_TRY(copy(search_.limits, limits.distances));
    GPUTEXT_TRY(copy(search_.limit_numbers, limits.numbers));
    return cuda_status(cudaStreamSynchronize(work_.stream), "copying limits of strings");
}

/// Rows whose pairs with all columns are filtered by one launch.
std::uint32_t PairSearch::rows_at_once() const {
    const double rows = std::min(kPairsAtOnce / std::max(column_weight_, 1.0), 1e9);
    return std::max(kBlockRows, static_cast<std::uint32_t>(rows) / kBlockRows * kBlockRows);
}

std::uint32_t PairSearch::first_column(std::uint32_t row) const {
    if (search_.triangle) return row;
    return first_columns_.empty() ? 0 : first_columns_[row];
}

/// Parts of the columns for blocks of their own.
std::uint32_t PairSearch::splits_of(const PlaceRange& rows, std::uint32_t columns) const {
    const std::uint32_t blocks = (rows.end - rows.begin + kBlockRows - 1) / kBlockRows;
    const std::uint32_t most = std::max(1u, columns / kTilePlaces / kLeastTiles);
    return std::clamp(kPlentyOfBlocks / blocks, 1u, most);
}

Status PairSearch::limit_by_nearest(std::size_t k) {
    const std::uint32_t places = search_.rows.places, columns = search_.columns.places;
    const auto wanted = static_cast<std::uint32_t>(
        std::max<std::size_t>(kLeastProbes, kProbesOfNeighbor * k));
    // Each split leaves probes of its own, so that one of few columns has enough.
    const auto splits_for = [&](const PlaceRange& rows) {
        const std::uint32_t most = std::max(1u, columns / kTilePlaces);
        return std::min(most, std::max((wanted + kProbesOfBlock - 1) / kProbesOfBlock,
                                       splits_of(rows, columns)));
    };
    execution_.begin_phase("looking for near strings", places);
    DeviceBuffer<std::uint32_t> probes;
    DeviceBuffer<double> distances;
    constexpr std::uint64_t kBytesOfProbe = sizeof(std::uint32_t) + sizeof(double);
    std::uint32_t at_once = rows_at_once();
    const PlaceRange first{0, std::min(at_once, places)};
    while (at_once > kBlockRows && std::uint64_t{at_once} * splits_for(first) * kProbesOfBlock *
                                           kBytesOfProbe > bytes_left_ / 2)
        at_once = std::max(kBlockRows, at_once / 2 / kBlockRows * kBlockRows);
    for (std::uint32_t at = 0; at < places; at += at_once) {
        const PlaceRange rows{at, std::min(places, at + at_once)};
        const std::uint32_t splits = splits_for(rows), each = splits * kProbesOfBlock;
        const std::size_t count = std::size_t{rows.end - rows.begin} * each;
        if (count > probes.size()) {
            GPUTEXT_TRY(probes.allocate(count, work_.stream));
            GPUTEXT_TRY(distances.allocate(count, work_.stream));
        }
        GPUTEXT_TRY(find_probes(search_, rows, splits, probes.data(), work_.stream));
        GPUTEXT_TRY(limit_by_probes(search_, rows, each, static_cast<std::uint32_t>(k),
                                    probes.data(), distances.data(), work_.stream));
        GPUTEXT_TRY(
            cuda_status(cudaStreamSynchronize(work_.stream), "looking for near strings"));
        GPUTEXT_TRY(execution_.checkpoint(rows.end - rows.begin));
    }
    return {};
}

/// Appends the pairs of a part, or none where there are too many at once.
Status PairSearch::find(const Part& part, std::vector<StringPair>& pairs, bool& fit) {
    const auto begin = std::chrono::steady_clock::now();
    unsigned long long found[2] = {};
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(found_.data(), 0, sizeof(found), work_.stream),
                            "beginning to compare strings"));
    const FoundList<StringPair> list{pairs_.data(), pairs_.size(), found_.data()};
    GPUTEXT_TRY(find_pairs(search_, part.rows, part.columns, part.tiles,
                           splits_of(part.rows, part.columns.end - part.columns.begin), list,
                           {left_.data(), left_.size(), found_.data() + 1}, work_.stream));
    GPUTEXT_TRY(download(found_.data(), found, 2, work_.stream, "filtering pairs of strings"));
    if (found[1] > 0 && found[1] <= left_.size()) {
        GPUTEXT_TRY(compare_left(search_, left_.data(), found[1], list, work_.stream));
        GPUTEXT_TRY(download_value(found_.data(), found[0], work_.stream, "comparing strings"));
    }
    last_found_ = std::max<std::uint64_t>(found[0], kPairsOfLeft * found[1]);
    fit = found[0] <= pairs_.size() && found[1] <= left_.size();
    if (fit && found[0] > 0) {
        const std::size_t before = pairs.size();
        pairs.resize(before + found[0]);
        GPUTEXT_TRY(ring_.copy_back({reinterpret_cast<std::uint8_t*>(pairs.data() + before),
                                     found[0] * sizeof(StringPair)},
                                    reinterpret_cast<const std::uint8_t*>(pairs_.data()),
                                    work_.stream, execution_));
    }
    longest_launch_ = std::max(longest_launch_, seconds_since(begin));
    return {};
}

/// As many columns at once as fit, or rows, where one tile of columns has too many pairs. Hands
/// pairs on before they are too many for the host; `pairs` gets the others.
Status PairSearch::find_in_parts(const Part& part, const Take& take,
                                 std::vector<StringPair>& pairs) {
    const PlaceRange &rows = part.rows, &columns = part.columns;
    std::uint32_t at_once = columns.end - columns.begin;
    for (std::uint32_t at = columns.begin; at < columns.end;) {
        const Part some{rows, {at, std::min(columns.end - at, at_once) + at}, part.tiles};
        bool fit = false;
        GPUTEXT_TRY(find(some, pairs, fit));
        if (execution_.stop_requested()) return Status::cancelled();
        if (!fit && at_once > kTilePlaces) {
            at_once = std::max(kTilePlaces, at_once / 4 / kTilePlaces * kTilePlaces);
            continue;
        }
        // A block's rows and a tile's columns always fit.
        for (std::uint32_t row = rows.begin; !fit && row < rows.end; row += kBlockRows) {
            bool all = false;
            GPUTEXT_TRY(find({{row, std::min(rows.end - row, kBlockRows) + row},
                              some.columns,
                              part.tiles},
                             pairs, all));
        }
        at = some.columns.end;
        if (pairs.size() >= kMostPairs) {
            GPUTEXT_TRY(lower_limits(rows, pairs, take));
            pairs.clear();
        }
    }
    return {};
}

/// Hands some pairs on, and lowers the limits as it is told.
Status PairSearch::lower_limits(const PlaceRange& rows, const std::vector<StringPair>& pairs,
                                const Take& take) {
    const std::size_t count = rows.end - rows.begin;
    RowLimits limits{std::vector<double>(count), std::vector<std::uint32_t>(count)};
    GPUTEXT_TRY(copy_limits(rows, limits, cudaMemcpyDeviceToHost));
    GPUTEXT_TRY(take(rows, pairs, &limits));
    return copy_limits(rows, limits, cudaMemcpyHostToDevice);
}

/// Hands on the pairs of a part in steps, where a first one finds many: the nearest in these limit
/// what is looked for in the others. `pairs` gets those that are still to be handed on. Not `fit`:
/// as in find(), and nothing has been handed on.
Status PairSearch::find_nearest(const Part& part, const Take& take, std::vector<StringPair>& pairs,
                                bool& fit) {
    Part step{part.rows, part.columns, {kTilesOfStep, 0, 1}};
    GPUTEXT_TRY(find(step, pairs, fit));
    if (!fit) return {};
    const std::uint64_t rows = part.rows.end - part.rows.begin;
    const bool many = pairs.size() * kTilesOfStep > kManyPairs * rows;
    for (std::uint32_t first = 1; first < kTilesOfStep; first += step.tiles.count) {
        GPUTEXT_TRY(execution_.checkpoint(0));
        if (many) {
            GPUTEXT_TRY(lower_limits(part.rows, pairs, take));
            pairs.clear();
        }
        // Twice as many tiles each time, unless that takes long
        const std::uint32_t most = longest_launch_ > kLongLaunch ? 1 : kTilesOfStep - first;
        step.tiles = {kTilesOfStep, first, many ? std::min(first, most) : most};
        bool all = false;
        GPUTEXT_TRY(find(step, pairs, all));
        if (!all) GPUTEXT_TRY(find_in_parts(step, take, pairs));
    }
    return {};
}

Status PairSearch::run(bool nearest, const Take& take) {
    const std::uint32_t places = search_.rows.places, columns = search_.columns.places;
    const std::uint64_t most_pairs =
        std::min(kMostPairs, bytes_left_ / 2 / kBytesOfPair);
    GPUTEXT_TRY(pairs_.allocate(most_pairs, work_.stream));
    GPUTEXT_TRY(left_.allocate(most_pairs / kPairsOfLeft, work_.stream));
    const std::uint32_t most = rows_at_once();
    const auto whole = [](std::uint32_t rows) {
        return std::max(kBlockRows, rows / kBlockRows * kBlockRows);
    };
    std::uint32_t at_once = whole(most / kFirstRows);
    std::vector<StringPair> pairs;
    for (std::uint32_t at = 0; at < places;) {
        const PlaceRange rows{at, std::min(places - at, at_once) + at};
        const Part part{rows, {first_column(rows.begin), columns}, {}};
        pairs.clear();
        bool fit = false;
        longest_launch_ = 0;
        GPUTEXT_TRY(nearest ? find_nearest(part, take, pairs, fit) : find(part, pairs, fit));
        GPUTEXT_TRY(execution_.checkpoint(0));
        if (!fit && at_once > kBlockRows) {
            at_once = whole(at_once / 4);
            continue;
        }
        if (!fit) GPUTEXT_TRY(find_in_parts(part, take, pairs));
        GPUTEXT_TRY(take(rows, pairs, nullptr));
        at = rows.end;
        if (longest_launch_ > kLongLaunch)
            at_once = whole(at_once / 2);
        else if (last_found_ < pairs_.size() / 4)
            at_once = std::min(most, 2 * at_once);
    }
    return {};
}

}  // namespace gputext::gpu
