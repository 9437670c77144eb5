#include "cpp/documents/detail/exact_search.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "cpp/documents/detail/exact_search_methods.hpp"
#include "cpp/documents/detail/exact_search_space.hpp"

namespace gputext {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Rows and columns: what a method takes of fewer is not worth an estimate, which looks at pairs.
constexpr std::size_t kLeastEstimated = 4096;

/// Chooses a method for each range of lengths, and runs them.
class ExactSearch {
public:
    ExactSearch(SearchSpace& space, ExactMethod method)
        : space_(space),
          method_(method),
          counts_(space),
          index_(space, method == ExactMethod::index),
          tiles_(space) {}

    Status run(std::vector<NearPair>& pairs, ExactSearchCounts* counts) {
        GPUTEXT_TRY(space_.prepare());
        GPUTEXT_TRY(choose({0, space_.columns().size()}, begin_of_counted()));
        for (const PlaceRange& columns : std::exchange(counted_, {})) {
            const double limit = method_ == ExactMethod::counts ? kNever : tiles_.seconds(columns);
            bool joined = false;
            GPUTEXT_TRY(counts_.join(columns, limit, joined));
            if (!joined) GPUTEXT_TRY(choose(columns, columns.end));
        }
        GPUTEXT_TRY(tiles_.join(tiled_));
        space_.take(pairs);
        if (counts == nullptr) return {};
        counts_.add_to(*counts);
        index_.add_to(*counts);
        tiles_.add_to(*counts);
        counts->verified += space_.verified();
        return {};
    }

private:
    /// The first column that is long enough for counts, if these are wanted; else behind all.
    std::size_t begin_of_counted() const {
        const bool wanted = method_ == ExactMethod::counts ||
                            (method_ == ExactMethod::estimated &&
                             space_.parameters.threshold <= kMostCountedThreshold);
        return wanted && counts_.has_room() ? space_.first_column_of(kLeastCounted)
                                            : space_.columns().size();
    }

    /// Joins ranges of the columns by an index where this is faster, and adds the other ones to
    /// those for counts, from `counted` on, and to those for tiles.
    Status choose(PlaceRange all, std::size_t counted) {
        for (std::size_t begin = all.begin; begin < all.end;) {
            const std::size_t last = begin < counted ? std::min(all.end, counted) : all.end;
            const PlaceRange columns{begin, index_.end_of_range(begin, last)};
            begin = columns.end;
            double counts = kNever, tiles = std::numeric_limits<double>::max();
            GPUTEXT_TRY(estimate(columns, columns.begin >= counted, counts, tiles));
            bool joined = false;
            if (method_ != ExactMethod::tiles)
                GPUTEXT_TRY(index_.join(columns, std::min(counts, tiles), joined));
            if (!joined) add(columns, counts <= tiles ? counted_ : tiled_);
        }
        return {};
    }

    /// Leaves the seconds as they are where a method is not to be taken, or none is estimated.
    Status estimate(PlaceRange columns, bool countable, double& counts, double& tiles) {
        if (countable) counts = 0;
        if (countable && method_ == ExactMethod::counts) return {};
        if (space_.rows_beside(columns).size() + columns.size() < kLeastEstimated) return {};
        tiles = tiles_.seconds(columns);
        return countable ? counts_.seconds(columns, counts) : Status();
    }

    /// Neighboring ranges become one.
    static void add(PlaceRange columns, std::vector<PlaceRange>& ranges) {
        if (!ranges.empty() && ranges.back().end == columns.begin)
            ranges.back().end = columns.end;
        else
            ranges.push_back(columns);
    }

    SearchSpace& space_;
    const ExactMethod method_;
    CountsMethod counts_;
    IndexMethod index_;
    TilesMethod tiles_;
    std::vector<PlaceRange> counted_, tiled_;  // by the method that joins them
};

}  // namespace

Status find_exact_pairs(const NearDuplicateParameters& parameters,
                        const DistinctDocuments& documents, Execution& execution,
                        std::vector<NearPair>& pairs, ExactSearchCounts* counts, ExactMethod method,
                        const PairPart& part, WantedPairs* wanted) {
    if (documents.size() == 0) return {};
    std::optional<WantedPairs> own;
    if (wanted == nullptr) wanted = &own.emplace(documents);
    SearchSpace space({parameters, documents, part, execution, *wanted});
    return ExactSearch(space, method).run(pairs, counts);
}

}  // namespace gputext
