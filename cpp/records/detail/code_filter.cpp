#include "cpp/records/detail/code_filter.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpp/base/lanes.hpp"
#include "cpp/base/simd.hpp"

namespace gputext {
namespace {

[[gnu::always_inline]] inline void choose(std::span<const Column> columns, std::size_t count,
                                          std::int32_t least, std::vector<ChosenPlace>& chosen) {
    using Codes = Vector<std::uint32_t, kFilterLanes>;
    using Parts = Vector<std::int32_t, kFilterLanes>;
    const Parts none{};
    for (std::size_t begin = 0; begin < count; begin += kFilterLanes) {
        Parts sum = none;
        for (const Column& column : columns) {
            const CodeQuery& query = column.query;
            Codes codes;
            std::memcpy(&codes, column.codes + begin, sizeof codes);
            Parts parts = none + query.different;
            if (column.bounds->has_near()) {
                const Parts is_near =
                    (codes - query.begin < query.size) | (codes == query.exchanged);
                parts = is_near ? none + query.near : parts;
            }
            parts = codes == query.code ? none + query.equal : parts;
            sum += codes == kNullValue ? none : parts;
        }
        const Parts enough = sum >= least;
        std::uint64_t words[sizeof enough / sizeof(std::uint64_t)];
        std::memcpy(words, &enough, sizeof enough);
        std::uint64_t any = 0;
        for (const std::uint64_t word : words) any |= word;
        if (any == 0) continue;
        for (std::size_t lane = 0; lane < std::min(kFilterLanes, count - begin); ++lane)
            if (enough[lane] != 0) chosen.push_back({static_cast<std::uint32_t>(begin + lane), sum[lane]});
    }
}

void choose_portable(std::span<const Column> columns, std::size_t count, std::int32_t least,
                     std::vector<ChosenPlace>& chosen) {
    choose(columns, count, least, chosen);
}

#ifdef GPUTEXT_X86
GPUTEXT_TARGET_AVX2 void choose_avx2(std::span<const Column> columns, std::size_t count,
                                     std::int32_t least, std::vector<ChosenPlace>& chosen) {
    choose(columns, count, least, chosen);
}

GPUTEXT_TARGET_AVX512 void choose_avx512(std::span<const Column> columns, std::size_t count,
                                         std::int32_t least, std::vector<ChosenPlace>& chosen) {
    choose(columns, count, least, chosen);
}
#endif

}  // namespace

CodeFilter best_code_filter() {
#ifdef GPUTEXT_X86
    if (best_simd() >= Simd::avx512) return choose_avx512;
    if (best_simd() >= Simd::avx2) return choose_avx2;
#endif
    return choose_portable;
}

std::int32_t parts_below(double weight) {
    constexpr double kMost = 1 << 30;  // more than any sum
    return static_cast<std::int32_t>(
        std::clamp(std::floor(weight * PairBounds::kPartsOfBit), -kMost, kMost));
}

}  // namespace gputext
