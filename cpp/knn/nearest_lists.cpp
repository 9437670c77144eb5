#include "cpp/knn/nearest_lists.hpp"

#include <algorithm>
#include <limits>

#include "cpp/base/lanes.hpp"
#include "cpp/base/simd.hpp"

namespace gputext {
namespace {

/// Sorts, many in pieces of a few milliseconds. False if stopped.
bool stoppable_sort(std::vector<Candidate>& list, Stop stop) {
    if (std::is_sorted(list.begin(), list.end())) return true;
    if (sort_few(list, best_simd())) return true;
    constexpr std::size_t piece = std::size_t{1} << 15;
    const auto at = [&list](std::size_t i) {
        return list.begin() + static_cast<std::ptrdiff_t>(std::min(i, list.size()));
    };
    for (std::size_t begin = 0; begin < list.size(); begin += piece) {
        if (begin > 0 && stop()) return false;
        std::sort(at(begin), at(begin + piece));
    }
    for (std::size_t width = piece; width < list.size(); width *= 2) {
        for (std::size_t begin = 0; begin < list.size(); begin += 2 * width) {
            if (stop()) return false;
            std::inplace_merge(at(begin), at(begin + width), at(begin + 2 * width));
        }
    }
    return true;
}

}  // namespace

double NearestLists::limit(std::size_t query) const {
    const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
    return limits_[query];
}

/// Sorts and keeps the k nearest, each once: a query may be searched again in higher precision.
Status NearestLists::cut(std::vector<Candidate>& list, Stop stop) const {
    if (!stoppable_sort(list, stop)) return Status::cancelled();
    const auto same = [](const Candidate& a, const Candidate& b) { return a.item == b.item; };
    list.erase(std::unique(list.begin(), list.end(), same), list.end());
    if (list.size() <= k_) return {};
    auto end = list.begin() + static_cast<std::ptrdiff_t>(k_);
    const double last = end[-1].distance;
    while (include_ties_ && end != list.end() && end->distance == last) ++end;
    list.erase(end, list.end());
    return {};
}

/// A full list grows by at least a half.
Status NearestLists::make_room(std::vector<Candidate>& list, std::size_t more) {
    const std::size_t wanted = list.size() + more, before = list.capacity();
    if (wanted <= before) return {};
    const std::size_t room = std::max(wanted, before + before / 2);
    GPUTEXT_TRY(budget_.take((room - before) * sizeof(Candidate), "the neighbors"));
    list.reserve(room);
    return {};
}

Status NearestLists::add(std::size_t query, std::vector<Candidate>& candidates, Stop stop) {
    std::erase_if(candidates, [this](const Candidate& c) { return !(c.distance <= radius_); });
    if (candidates.size() > k_) GPUTEXT_TRY(cut(candidates, stop));
    const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
    std::vector<Candidate>& list = lists_[query];
    const bool sorted = list.empty();
    GPUTEXT_TRY(make_room(list, candidates.size()));
    list.insert(list.end(), candidates.begin(), candidates.end());
    candidates.clear();
    if (list.size() < k_ || (!sorted && list.size() < k_ + k_ / 2)) return {};
    GPUTEXT_TRY(cut(list, stop));
    if (list.size() < k_) return {};
    limits_[query] = std::min(limits_[query], list[k_ - 1].distance);
    return {};
}

Status NearestLists::take(std::size_t query, std::vector<Candidate>& nearest, Stop stop) {
    nearest = std::move(lists_[query]);
    budget_.give_back(nearest.capacity() * sizeof(Candidate));
    return cut(nearest, stop);
}

namespace {

constexpr std::size_t kFew = kFewCandidates;

/// For each of `count` distances how many are less. Both arrays have whole blocks of 32, with
/// infinity behind the distances.
template <std::size_t W>
[[gnu::always_inline]] inline void count_less_here(const double* distances, std::size_t count,
                                                   std::int64_t* less) {
    constexpr std::size_t vectors = 32 / W;
    for (std::size_t begin = 0; begin < count; begin += 32) {
        Vector<double, W> block[vectors];
        Vector<std::int64_t, W> counts[vectors] = {};
        std::memcpy(block, distances + begin, sizeof block);
        for (std::size_t i = 0; i < count; ++i)
            // A comparison that holds is -1.
            for (std::size_t v = 0; v < vectors; ++v) counts[v] -= block[v] > distances[i];
        std::memcpy(less + begin, counts, sizeof counts);
    }
}

#ifdef GPUTEXT_X86
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void count_less_avx2(const double* distances,
                                                                 std::size_t count,
                                                                 std::int64_t* less) {
    count_less_here<4>(distances, count, less);
}
[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 void
count_less_avx512(const double* distances, std::size_t count, std::int64_t* less) {
    count_less_here<8>(distances, count, less);
}
#endif

}  // namespace

bool sort_few(std::vector<Candidate>& list, Simd simd) {
    if (list.size() > kFew) return false;
#ifdef GPUTEXT_X86
    if (simd < Simd::avx2) return false;
    const std::size_t count = list.size();
    alignas(64) double distances[kFew];
    alignas(64) std::int64_t less[kFew];
    for (std::size_t i = 0; i < count; ++i) distances[i] = list[i].distance;
    std::fill(distances + count, distances + kFew, std::numeric_limits<double>::infinity());
    (simd >= Simd::avx512 ? count_less_avx512 : count_less_avx2)(distances, count, less);

    const std::vector<Candidate> from = list;
    bool taken[kFew] = {};
    bool ties = false;
    for (std::size_t i = 0; i < count; ++i) {
        auto place = static_cast<std::size_t>(less[i]);
        for (; taken[place]; ++place) ties = true;
        taken[place] = true;
        list[place] = from[i];
    }
    if (ties)  // which are side by side now, in the order of the input
        std::sort(list.begin(), list.end());
    return true;
#else
    (void)simd;
    return false;
#endif
}

}  // namespace gputext
