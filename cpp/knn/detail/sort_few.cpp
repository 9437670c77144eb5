#include "cpp/knn/detail/sort_few.hpp"

#include <algorithm>
#include <limits>

#include "cpp/base/lanes.hpp"

namespace gputext {
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
