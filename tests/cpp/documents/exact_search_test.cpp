#include "cpp/documents/detail/exact_search.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

#include "cpp/documents/detail/count_filter.hpp"
#include "cpp/documents/detail/gram_filter.hpp"
#include "cpp/documents/detail/gram_index.hpp"
#include "cpp/documents/detail/lane_distance.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/plain_rates.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::kEachSimd;
using testing::kFewer;
using testing::kSanitized;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::Packed;
using testing::plain_rates;
using testing::RandomStrings;
using testing::utf8_of;
using testing::within;

class ExactSearchOnEach : public OnEachSimd {};

INSTANTIATE_TEST_SUITE_P(Simd, ExactSearchOnEach, kEachSimd, name_of_simd);

using Matrix = std::vector<std::vector<std::size_t>>;

/// [i][j]: the distance of the first i symbols of a and the first j of b.
Matrix prefix_distances(std::string_view a, std::string_view b) {
    Matrix distances(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            std::size_t best = i == 0 ? j : i;
            if (i > 0 && j > 0)
                best = std::min({distances[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
                                 distances[i - 1][j] + 1, distances[i][j - 1] + 1});
            distances[i][j] = best;
        }
    }
    return distances;
}

/// [i][j]: the distance of a from i on and b from j on.
Matrix suffix_distances(std::string a, std::string b) {
    std::reverse(a.begin(), a.end());
    std::reverse(b.begin(), b.end());
    Matrix distances = prefix_distances(a, b);
    std::reverse(distances.begin(), distances.end());
    for (auto& row : distances) std::reverse(row.begin(), row.end());
    return distances;
}

/// Texts of many kinds that resemble one another: few letters, periods, words, runs.
std::vector<std::string> related_texts(RandomStrings& random, std::size_t count,
                                       std::size_t longest) {
    constexpr std::string_view alphabets[] = {"ab", "acgt", "etaoinshrdlu \n", "x"};
    std::vector<std::string> texts;
    while (texts.size() < count) {
        const std::string_view letters = alphabets[random.below(4)];
        std::string text = random.string(random.below(longest), letters);
        if (random.below(4) == 0 && text.size() > 8)
            for (std::size_t i = 7; i < text.size(); ++i) text[i] = text[i - 7];
        for (int version = 0; version < 4; ++version) {
            texts.push_back(text.substr(0, longest));
            text = random.edited(text, random.below(1 + text.size() / 6), letters);
            // A part moves to the other end: all grams stay, in other places.
            if (random.below(5) == 0)
                std::rotate(text.begin(),
                            text.begin() + static_cast<std::ptrdiff_t>(text.size() / 3),
                            text.end());
        }
    }
    return texts;
}

TEST_P(ExactSearchOnEach, GramsNeverExcludeANearPair) {
    RandomStrings random;
    for (int round = 0; round < (kFewer ? 4 : 16); ++round) {
        const std::size_t longest = 20 + random.below(round % 4 == 0 ? 400 : 120);
        const auto texts = related_texts(random, round % 2 == 0 ? 30 : 90, longest);
        const double threshold = 0.005 * static_cast<double>(random.below(99));
        const std::size_t most = most_edits_within(threshold, 2 * longest);
        std::vector<Bytes> columns;
        for (const std::string& text : texts) columns.push_back(bytes_of(text));
        const auto gram = static_cast<unsigned>(
            GramTile::shortest_gram +
            random.below(GramTile::longest_gram - GramTile::shortest_gram + 1));
        GramTile tile(GetParam());
        ASSERT_TRUE(tile.build(columns, gram, longest, most,
                               std::size_t{1} << (14 + random.below(12)), {}));
        GramTile::Mask wanted{};
        for (std::size_t c = 0; c < texts.size(); ++c) wanted[c / 64] |= std::uint64_t{1} << c % 64;
        for (std::size_t row = 0; row < texts.size(); row += 5) {
            const std::size_t edits = random.below(most + 1);
            const auto mask = tile.may_be_within(bytes_of(texts[row]), edits, wanted, {});
            for (std::size_t c = 0; c < texts.size(); ++c) {
                const bool passed = (mask[c / 64] >> c % 64 & 1) != 0;
                const auto prefixes = prefix_distances(texts[row], texts[c]);
                if (prefixes.back().back() > edits) continue;
                ASSERT_TRUE(passed) << texts[row] << " | " << texts[c] << " gram " << gram;
                // On any way that is near enough the rest takes as many edits as counted.
                const auto suffixes = suffix_distances(texts[row], texts[c]);
                for (std::size_t i = 0; i <= texts[row].size(); i += 3) {
                    const std::size_t least = tile.least_edits_from(c, i);
                    for (std::size_t j = 0; j <= texts[c].size(); ++j) {
                        if (prefixes[i][j] + suffixes[i][j] > edits) continue;
                        ASSERT_LE(least, suffixes[i][j]) << i << ", " << j;
                    }
                }
            }
            for (std::size_t c = texts.size(); c < GramTile::most_columns; ++c)
                ASSERT_EQ(mask[c / 64] >> c % 64 & 1, 0u);
        }
    }
}

TEST_P(ExactSearchOnEach, GramsExcludeWhatHasNoneInCommon) {
    const std::string row(200, 'a');
    const std::vector<std::string> texts{row, std::string(200, 'b'), row.substr(0, 195)};
    const std::vector<Bytes> columns{bytes_of(texts[0]), bytes_of(texts[1]), bytes_of(texts[2])};
    for (unsigned gram = GramTile::shortest_gram; gram <= GramTile::longest_gram; ++gram) {
        GramTile tile(GetParam());
        ASSERT_TRUE(tile.build(columns, gram, 200, 20, std::size_t{1} << 20, {}));
        EXPECT_EQ(tile.may_be_within(bytes_of(row), 20, {7}, {}), (GramTile::Mask{5}));
        EXPECT_EQ(tile.may_be_within(bytes_of(row), 20, {3}, {}), (GramTile::Mask{1}));
    }
}

/// Of edits that are apart from one another each takes a character and three trigrams.
TEST_P(ExactSearchOnEach, CountsNeverExcludeANearPair) {
    RandomStrings random;
    std::string letters;
    for (int letter = 1; letter < 128; ++letter) letters.push_back(static_cast<char>(letter));
    const SharedFeatures shared = shared_features(GetParam());
    const CharacterLengths lengths = CharacterLengths::single_byte();
    for (int round = 0; round < 1000; ++round) {
        const std::string text = random.string(40, letters);
        std::string other = text;
        const std::size_t edits = 1 + random.below(6);
        for (std::size_t i = 0; i < edits; ++i) other[4 + 5 * i] = '\x80';
        DocumentFeatures a, b;
        ASSERT_TRUE(a.set(bytes_of(text), lengths) && b.set(bytes_of(other), lengths));
        ASSERT_TRUE(may_be_within(shared, a, b, text.size(), edits)) << edits;
    }
}

TEST_P(ExactSearchOnEach, LanesGiveTheDistance) {
    RandomStrings random;
    LaneDistance lanes(GetParam());
    EditDistance plain;
    std::size_t found = 0;
    for (int round = 0; round < (kSanitized ? 40 : kFewer ? 80 : 250); ++round) {
        const std::size_t longest = std::array{5, 70, 300, 900}[random.below(4)];
        auto texts = related_texts(random, LaneDistance::lanes, longest);
        const std::string pattern =
            random.edited(texts[random.below(texts.size())], random.below(10), "ab");
        if (pattern.empty()) continue;
        std::vector<LaneDistance::Text> some;
        for (const std::string& text : texts) {
            if (text.empty() || some.size() == LaneDistance::lanes) continue;
            const std::size_t difference =
                std::max(text.size(), pattern.size()) - std::min(text.size(), pattern.size());
            // The limit is now any, now just the distance, so that the band is as narrow as can be.
            std::size_t limit = difference + random.below(pattern.size() + 1);
            if (random.below(2) == 0) limit = *plain(bytes_of(pattern), bytes_of(text));
            some.push_back({bytes_of(text), limit});
        }
        some.resize(std::min(some.size(), 1 + random.below(LaneDistance::lanes)));
        // The best bounds that there are.
        const std::size_t steps =
            (pattern.size() + LaneDistance::rest_step - 1) / LaneDistance::rest_step + 1;
        std::vector<std::uint32_t> rest(steps * LaneDistance::lanes);
        for (std::size_t lane = 0; lane < some.size(); ++lane) {
            const std::string text(reinterpret_cast<const char*>(some[lane].symbols.data()),
                                   some[lane].symbols.size());
            const auto suffixes = suffix_distances(pattern, text);
            for (std::size_t step = 0; step < steps; ++step) {
                const auto& row =
                    suffixes[std::min(pattern.size(), step * LaneDistance::rest_step)];
                rest[step * LaneDistance::lanes + lane] =
                    static_cast<std::uint32_t>(*std::min_element(row.begin(), row.end()));
            }
        }
        lanes.set_pattern(bytes_of(pattern));
        for (const bool bounded : {false, true}) {
            const auto distances = lanes(
                some,
                bounded ? std::span<const std::uint32_t>(rest) : std::span<const std::uint32_t>(),
                {});
            for (std::size_t lane = 0; lane < some.size(); ++lane) {
                const std::size_t limit = some[lane].limit;
                const std::size_t distance = *plain(bytes_of(pattern), some[lane].symbols, limit);
                ASSERT_EQ(distances[lane], distance > limit ? LaneDistance::far
                                                            : static_cast<std::uint32_t>(distance));
                found += distance <= limit;
            }
        }
    }
    EXPECT_GT(found, 50u);
}

using Pair = std::tuple<std::uint32_t, std::uint32_t, double>;

std::vector<Pair> pairs_found(const Packed& packed, const NearDuplicateParameters& parameters,
                              unsigned threads, ExactMethod method = ExactMethod::estimated,
                              ExactSearchCounts* counts = nullptr,
                              std::span<const std::uint8_t> sides = {}) {
    std::vector<std::uint32_t> lengths;
    const Documents& documents = packed.documents();
    for (std::size_t i = 0; i < documents.size(); ++i)
        lengths.push_back(
            static_cast<std::uint32_t>(count_characters(documents[i], documents.characters)));
    Execution execution(threads);
    std::vector<NearPair> pairs;
    const Status status = find_exact_pairs(parameters, {documents, lengths, {}, sides}, execution,
                                           pairs, counts, method);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<Pair> found;
    for (const NearPair& pair : pairs) {
        EXPECT_LT(pair.first, pair.second);
        found.emplace_back(pair.first, pair.second, pair.edit_rate);
    }
    std::sort(found.begin(), found.end());
    return found;
}

TEST_P(ExactSearchOnEach, FindsEveryPair) {
    RandomStrings random;
    for (int corpus = 0; corpus < 3; ++corpus) {
        std::vector<std::string> texts;
        if (corpus == 0) {
            texts = related_texts(random, kFewer ? 60 : 150, 400);
        } else if (corpus == 1) {
            // More than a tile of short texts, of few lengths.
            texts = related_texts(random, kFewer ? 300 : 900, 12);
        } else {
            const std::u32string_view letters = U"aé€ß漢字かな한글🙂🙃z etnoi";
            while (texts.size() < (kFewer ? 40u : 120u)) {
                auto text = random.string<std::u32string>(random.below(300), letters);
                for (int version = 0; version < 3; ++version) {
                    texts.push_back(utf8_of(text));
                    text = random.edited(text, random.below(40), letters);
                }
                texts.push_back(random.string(random.below(300), "etaoin "));
            }
        }
        const Packed packed(texts);
        for (const double threshold : {0.0, 0.005, 0.01, 0.05, 0.1, 0.2, 0.33, 0.49}) {
            const auto expected = within(plain_rates(texts), threshold);
            NearDuplicateParameters parameters{threshold, NearDuplicateMode::exact};
            parameters.simd = GetParam();
            // Room for little more than the pairs, and plenty.
            const std::size_t little = 64 * expected.size() + 65536;
            for (const auto& [memory, threads] :
                 {std::pair(little, 3u), std::pair(std::size_t{1} << 30, 1u)}) {
                parameters.memory_limit = memory;
                for (const ExactMethod method :
                     {ExactMethod::estimated, ExactMethod::tiles, ExactMethod::index})
                    ASSERT_EQ(pairs_found(packed, parameters, threads, method), expected)
                        << "corpus " << corpus << ", threshold " << threshold << ", method "
                        << static_cast<int>(method);
            }
        }
    }
}

/// In the order of length.
std::vector<PlacedDocument> places_of(std::vector<std::string>& texts) {
    std::sort(texts.begin(), texts.end(),
              [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::vector<PlacedDocument> places;
    for (const std::string& text : texts)
        places.push_back({bytes_of(text).data(), static_cast<std::uint32_t>(text.size()), 0});
    return places;
}

TEST(GramIndex, HasAGramOfEachChunk) {
    RandomStrings random;
    for (int round = 0; round < 20; ++round) {
        const double threshold = 0.005 * static_cast<double>(random.below(30));
        // Grams of long texts are chosen in parts.
        const std::size_t longest = 40 + random.below(round % 4 == 0 ? 3000 : 300);
        std::vector<std::string> texts = related_texts(random, 60, longest);
        std::erase_if(texts, [](const std::string& text) { return text.size() < 20; });
        const std::vector<PlacedDocument> places = places_of(texts);
        const PlaceRange all{0, places.size()};
        const ProbeRows rows{places, all, round % 2 == 1};
        const std::size_t gram = GramIndex::gram_length(places, all, rows, threshold);
        if (gram == 0) continue;
        const auto most_edits = [&](std::size_t length) {
            std::size_t row = length;
            while (rows.may_be_longer &&
                   row + 1 - length <= most_edits_within(threshold, length + row + 1))
                ++row;
            return most_edits_within(threshold, length + row);
        };
        for (const unsigned threads : {1u, 3u}) {
            GramIndex index;
            Execution execution(threads);
            ASSERT_TRUE(index.build(places, all, rows, threshold, execution).ok());
            ASSERT_EQ(index.gram(), gram);
            std::vector<std::vector<std::size_t>> begins(texts.size());
            for (const GramIndex::Entry& entry : index.entries()) {
                const std::size_t at =
                    entry.at() - (texts.back().size() - texts[entry.column()].size());
                ASSERT_EQ(at % 2, 0u);
                begins[entry.column()].push_back(at / 2);
            }
            for (std::size_t i = 0; i < texts.size(); ++i) {
                std::sort(begins[i].begin(), begins[i].end());
                const Chunks chunks = index.chunks(i);
                ASSERT_GT(chunks.count(), most_edits(texts[i].size()));
                ASSERT_LE(chunks.count(), most_edits(texts[i].size() + 2) + 1);
                ASSERT_EQ(begins[i].size(), chunks.count());
                ASSERT_EQ(chunks.begin(0), 0u);
                ASSERT_EQ(chunks.begin(chunks.count()), texts[i].size());
                for (std::size_t c = 0; c < chunks.count(); ++c) {
                    ASSERT_EQ(begins[i][c], chunks.gram(c));
                    ASSERT_GE(chunks.gram(c), chunks.begin(c));
                    ASSERT_LE(chunks.gram(c) + gram, chunks.begin(c + 1));
                }
            }
        }
    }
}

TEST(GramIndex, ChoosesTheRarestGrams) {
    RandomStrings random;
    // Texts of common words, with two rare ones side by side.
    std::vector<std::string> texts;
    const std::string rare_letters = "BCDFGJKLMPQVXYZ";
    for (int i = 0; i < 500; ++i) {
        std::string text;
        while (text.size() < 120) text += "and then there was nothing left of it ";
        text.resize(120);
        text.replace(random.below(97), 24, random.string(24, rare_letters));
        texts.push_back(text);
    }
    const double threshold = 1.5 / 240;  // 1 edit, so 2 chunks
    const std::vector<PlacedDocument> places = places_of(texts);
    const PlaceRange all{0, places.size()};
    GramIndex index;
    Execution execution(2);
    ASSERT_TRUE(index.build(places, all, {places, all, false}, threshold, execution).ok());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const Chunks chunks = index.chunks(i);
        ASSERT_EQ(chunks.count(), 2u);
        // They may share a few symbols with the words around.
        EXPECT_GE(chunks.gram(0) + index.gram(), texts[i].find_first_of(rare_letters));
        EXPECT_LE(chunks.gram(1), texts[i].find_last_of(rare_letters));
    }
}

TEST(GramIndex, SeesAnEditBehindAGram) {
    RandomStrings random;
    std::size_t near = 0;
    for (int round = 0; round < 2000; ++round) {
        const std::string next = random.string(8, "acgt");
        const std::string row = random.edited(next, random.below(2), "acgt") + "................";
        GramIndex::Entry entry(1, 0, 0);
        // Without symbols behind the gram nothing is known.
        EXPECT_TRUE(entry.is_near_next(bytes_of(row).data()));
        std::uint64_t symbols;
        std::memcpy(&symbols, next.data(), sizeof symbols);
        entry.set_next(symbols);
        ASSERT_TRUE(entry.is_near_next(bytes_of(row).data())) << next << " | " << row;
        const std::string other = random.string(16, "ACGT");
        near += entry.is_near_next(bytes_of(other).data());
    }
    EXPECT_LT(near, 200u);
}

// Tiles look at counts first where documents are long.
TEST(ExactSearch, FindsLongDocumentsWithinEachRate) {
    RandomStrings random;
    std::vector<std::string> texts;
    while (texts.size() < (kSanitized ? 16 : 40)) {
        std::string text = random.string(4000 + random.below(300), "etaoinshrdlu ");
        for (int version = 0; version < 8; ++version) {
            texts.push_back(text);
            text = random.edited(text, 80 + random.below(160), "etaoinshrdlu ");
        }
    }
    const Packed packed(texts);
    for (const double threshold : {0.05, 0.08, 0.12}) {
        std::vector<Pair> expected;
        for (std::uint32_t i = 0; i < texts.size(); ++i)
            for (std::uint32_t j = i + 1; j < texts.size(); ++j) {
                const std::size_t distance =
                    *EditDistance()(bytes_of(texts[i]), bytes_of(texts[j]));
                const double rate = edit_rate(distance, texts[i].size() + texts[j].size());
                if (rate <= threshold) expected.emplace_back(i, j, rate);
            }
        EXPECT_GT(expected.size(), texts.size());
        for (const ExactMethod method : {ExactMethod::tiles, ExactMethod::estimated})
            EXPECT_EQ(pairs_found(packed, {threshold, NearDuplicateMode::exact}, 2, method),
                      expected)
                << threshold;
    }
}

TEST(ExactSearch, FindsByCountsWhatTilesFind) {
    RandomStrings random;
    for (const bool wide : {false, true}) {
        std::vector<std::string> texts;
        while (texts.size() < (kFewer ? 40 : 120)) {
            // Around the least length whose counts are compared, and beyond what a bin holds.
            std::string text = random.string(700 + random.below(1500), "etaoinshrdlu ");
            if (random.below(8) == 0) text.append(random.below(40000), 'x');
            for (int version = 0; version < 4; ++version) {
                texts.push_back(wide ? utf8_of(std::u32string(text.begin(), text.end()) + U"漢字")
                                     : text);
                text = random.edited(text, random.below(1 + text.size() / 8), "etaoinshrdlu ");
            }
        }
        const Packed packed(texts);
        for (const double threshold : {0.001, 0.03, 0.066, 0.2}) {
            NearDuplicateParameters parameters{threshold, NearDuplicateMode::exact};
            const auto expected = pairs_found(packed, parameters, 2, ExactMethod::tiles);
            EXPECT_GT(expected.size(), 0u);
            // All features at once, and in tiles.
            for (const std::size_t memory_limit : {std::size_t{1} << 30, std::size_t{24} << 20}) {
                parameters.memory_limit = memory_limit;
                ExactSearchCounts counts;
                ASSERT_EQ(pairs_found(packed, parameters, 3, ExactMethod::counts, &counts),
                          expected)
                    << threshold;
                EXPECT_GT(counts.counted, 0u);
            }
        }
    }
}

/// The distance, or limit + 1, by the dynamic program within the diagonals that the limit leaves.
std::size_t plain_distance_within(std::string_view a, std::string_view b, std::size_t limit) {
    const auto most = static_cast<std::ptrdiff_t>(limit);
    const auto rows = static_cast<std::ptrdiff_t>(a.size());
    const auto columns = static_cast<std::ptrdiff_t>(b.size());
    const std::size_t width = 2 * limit + 3;
    const auto far = static_cast<std::uint32_t>(limit + 1);
    // [1 + limit + column - row]
    std::vector<std::uint32_t> row(width, far);
    for (std::ptrdiff_t j = 0; j <= std::min(most, columns); ++j)
        row[static_cast<std::size_t>(1 + most + j)] = static_cast<std::uint32_t>(j);
    for (std::ptrdiff_t i = 1; i <= rows; ++i) {
        for (std::ptrdiff_t j = std::max<std::ptrdiff_t>(0, i - most); j <= i + most; ++j) {
            std::uint32_t& here = row[static_cast<std::size_t>(1 + most + j - i)];
            if (j > columns) {
                here = far;
                continue;
            }
            std::uint32_t best = std::min(far, (&here)[1] + 1);
            if (j > 0)
                best = std::min({best,
                                 here + (a[static_cast<std::size_t>(i - 1)] !=
                                         b[static_cast<std::size_t>(j - 1)]),
                                 (&here)[-1] + 1});
            here = best;
        }
    }
    if (std::abs(columns - rows) > most) return limit + 1;
    return row[static_cast<std::size_t>(1 + most + columns - rows)];
}

/// Lengths around what 15 and 16 bits count: as many equal characters, and texts of as many.
TEST(ExactSearch, EqualsThePlainDistanceWhereCountsAreLarge) {
    RandomStrings random;
    const double threshold = 0.0005;
    for (const std::size_t border : {32767, 65535}) {
        for (const std::size_t length : {border - 1, border, border + 1}) {
            std::vector<std::string> texts;
            const std::string run(length, 'x');
            const std::string plain = random.string(length, "etaoinshrdlu ");
            for (const std::string& text : {run, plain, run + plain.substr(0, 1000)})
                for (const std::size_t edits : {1, 20, 60})
                    texts.push_back(random.edited(text, edits, "xyz"));
            ExactSearchCounts counts;
            const auto found = pairs_found(Packed(texts), {threshold, NearDuplicateMode::exact}, 1,
                                           ExactMethod::counts, &counts);
            std::vector<Pair> expected;
            for (std::uint32_t i = 0; i < texts.size(); ++i)
                for (std::uint32_t j = i + 1; j < texts.size(); ++j) {
                    const std::size_t sum = texts[i].size() + texts[j].size();
                    const std::size_t most = most_edits_within(threshold, sum);
                    const std::size_t distance = plain_distance_within(texts[i], texts[j], most);
                    if (distance <= most) expected.emplace_back(i, j, edit_rate(distance, sum));
                }
            EXPECT_GT(expected.size(), 3u);
            EXPECT_LT(expected.size(), 9u);
            EXPECT_EQ(found, expected) << length;
        }
    }
}

/// No pair is verified that grams exclude, and none is a candidate whose letters differ, however
/// long the texts are.
TEST(ExactSearch, VerifiesNoLongPairThatAFilterExcludes) {
    RandomStrings random;
    const NearDuplicateParameters parameters{0.05, NearDuplicateMode::exact};
    for (const std::size_t length : {30'000, 70'000, 400'000, 2'000'000}) {
        const std::string period = random.string(32, "0123456789abcdef");
        std::string other = period;
        std::reverse(other.begin(), other.end());
        std::string first, second;
        while (first.size() < length) first += period, second += other;
        ExactSearchCounts counts;
        EXPECT_TRUE(
            pairs_found(Packed({first, second}), parameters, 1, ExactMethod::estimated, &counts)
                .empty());
        EXPECT_EQ(counts.verified, 0u) << length;
        counts = {};
        EXPECT_TRUE(pairs_found(Packed({std::string(length, 'a'), std::string(length, 'b')}),
                                parameters, 1, ExactMethod::estimated, &counts)
                        .empty());
        EXPECT_EQ(counts.counted, 0u) << length;
    }
    // As many of each letter, and nearly as many of each trigram.
    const std::vector<std::string> texts{random.string(30'000, "0123456789abcdef"),
                                         random.string(30'000, "0123456789abcdef")};
    ExactSearchCounts counts;
    EXPECT_TRUE(pairs_found(Packed(texts), parameters, 1, ExactMethod::estimated, &counts).empty());
    EXPECT_EQ(counts.counted, 1u);
    EXPECT_EQ(counts.verified, 0u);
}

/// Pieces that all texts have, in another order each: no count and no gram that is absent tells
/// them apart. After some pairs that were verified in vain the places of their grams do.
TEST(ExactSearch, LeavesCountsWhosePairsTakeLongToVerify) {
    RandomStrings random;
    std::vector<std::string> pieces;
    while (pieces.size() < 100) pieces.push_back(random.string(50, "etaoinshrdlu "));
    std::vector<std::string> texts;
    while (texts.size() < 150) {
        for (std::size_t i = pieces.size(); i > 1; --i)
            std::swap(pieces[i - 1], pieces[random.below(i)]);
        std::string text;
        for (const std::string& piece : pieces) text += piece;
        texts.push_back(text);
        if (texts.size() % 10 == 0) texts.push_back(random.edited(text, 40, "etaoin"));
    }
    const Packed packed(texts);
    const NearDuplicateParameters parameters{0.02, NearDuplicateMode::exact};
    const std::size_t all = texts.size() * (texts.size() - 1) / 2;
    for (const unsigned threads : {1u, 3u}) {
        ExactSearchCounts counts;
        const auto found =
            pairs_found(packed, parameters, threads, ExactMethod::estimated, &counts);
        EXPECT_EQ(counts.counted, 1024u);
        EXPECT_LT(counts.verified, all / 4);
        EXPECT_GT(counts.comparable, 0u);
        EXPECT_EQ(found, pairs_found(packed, parameters, 1, ExactMethod::tiles));
        EXPECT_GT(found.size(), 10u);
        counts = {};
        EXPECT_EQ(found, pairs_found(packed, parameters, threads, ExactMethod::counts, &counts));
        EXPECT_GT(counts.verified, all / 2);
    }
}

// Counts exclude no pair of texts that are all alike: then they are not kept, and tiles compare
// all.
TEST(ExactSearch, LeavesCountsThatExcludeTooLittle) {
    RandomStrings random;
    const std::string text = random.string(1200, "etaoinshrdlu ");
    std::vector<std::string> texts;
    while (texts.size() < 380) texts.push_back(random.edited(text, 8, "etaoinshrdlu "));
    const Packed packed(texts);
    const NearDuplicateParameters parameters{0.02, NearDuplicateMode::exact};
    ExactSearchCounts counts;
    const auto found = pairs_found(packed, parameters, 2, ExactMethod::estimated, &counts);
    EXPECT_EQ(counts.counted, 0u);
    EXPECT_GT(counts.comparable, 0u);
    EXPECT_EQ(found, pairs_found(packed, parameters, 1, ExactMethod::tiles));
    EXPECT_GT(found.size(), 65536 + 8 * texts.size());
}

/// Texts of 1000 characters or more, and edited copies of some, which may be longer. Letters are as
/// frequent in each text below a length; from it on each text has other ones.
std::vector<std::string> long_texts(RandomStrings& random, std::size_t count, std::size_t spread,
                                    std::size_t alike_below) {
    std::vector<std::string> texts;
    while (texts.size() < count) {
        const std::size_t length = 1040 + random.below(spread);
        std::string letters = "0123456789abcdef";
        if (length >= alike_below)
            letters = random.string(16, "0123456789abcdefghijklmnopqrstuvwxyz");
        texts.push_back(random.string(length, letters));
        if (texts.size() % 16 == 0)
            texts.push_back(random.edited(texts.back(), 40, letters) +
                            random.string(random.below(40), letters));
    }
    return texts;
}

// Counts are compared where characters exclude most pairs. Else grams exclude them, one by one or
// by an index: also between few documents and many.
TEST(ExactSearch, TakesCountsWhereCharactersExcludePairs) {
    RandomStrings random;
    const std::size_t count = kSanitized ? 5000 : 16000;
    // The first range of lengths that has one method ends at about 1300.
    for (const std::size_t alike_below : {std::size_t{0}, std::size_t{1300}, SIZE_MAX}) {
        const bool all_alike = alike_below == SIZE_MAX;
        const Packed packed(long_texts(random, count, alike_below == 1300 ? 500 : 20, alike_below));
        std::vector<std::uint8_t> one_of_8(packed.documents().size(), kSecondSide);
        for (std::size_t i = 0; i < one_of_8.size(); i += 8) one_of_8[i] = kFirstSide;
        for (const bool between : {false, true}) {
            std::span<const std::uint8_t> sides;
            if (between) sides = one_of_8;
            NearDuplicateParameters parameters{0.05, NearDuplicateMode::exact};
            const auto expected =
                pairs_found(packed, parameters, 2, ExactMethod::tiles, nullptr, sides);
            EXPECT_GE(expected.size(), count / 40);
            // The other memory limit has room for an index of about a thousand texts.
            for (const std::size_t memory_limit : {std::size_t{1} << 30, std::size_t{64} << 20}) {
                parameters.memory_limit = memory_limit;
                ExactSearchCounts counts;
                ASSERT_EQ(
                    pairs_found(packed, parameters, 2, ExactMethod::estimated, &counts, sides),
                    expected);
                EXPECT_EQ(counts.counted > 0, !all_alike);
                // Of so few texts as under sanitizers, parts are not worth an estimate.
                if (!kSanitized || alike_below != 1300) {
                    EXPECT_EQ(counts.comparable + counts.hits > 0, alike_below > 0);
                }
                if (all_alike && memory_limit == std::size_t{1} << 30 && !kSanitized) {
                    EXPECT_EQ(counts.hits > 0, !between);
                }
            }
        }
    }
}

TEST(ExactSearch, FindsByAnIndexWhatTilesFind) {
    RandomStrings random;
    // Long texts, and so many near ones that a few rows have too many candidates to keep them.
    for (const bool near : {false, true}) {
        const std::string_view letters = "etaoinshrdlu ";
        std::vector<std::string> texts;
        if (near) {
            const std::string text = random.string(60, letters);
            while (texts.size() < 740)
                texts.push_back(random.edited(text, 1 + random.below(3), letters));
        } else {
            while (texts.size() < (kSanitized ? 60 : 300)) {
                const std::string text = random.string(random.below(5000), letters);
                for (int version = 0; version < 4; ++version)
                    texts.push_back(
                        random.edited(text, random.below(1 + text.size() / 8), letters));
            }
        }
        const Packed packed(texts);
        for (const double threshold : {0.01, 0.04, 0.1}) {
            if (kSanitized && near && threshold < 0.1) continue;
            const NearDuplicateParameters parameters{threshold, NearDuplicateMode::exact};
            const auto expected = pairs_found(packed, parameters, 2, ExactMethod::tiles);
            ExactSearchCounts counts;
            ASSERT_EQ(pairs_found(packed, parameters, 2, ExactMethod::index, &counts), expected);
            EXPECT_GT(counts.confirmed, 0u);
            if (near && threshold == 0.1) {
                EXPECT_GT(expected.size(), texts.size() * texts.size() / 4);
            }
        }
    }
}

TEST(ExactSearch, TakesAnIndexWhereItIsFaster) {
    RandomStrings random;
    const std::size_t count = kSanitized ? 3000 : 24000;
    // Random texts share few grams. Texts of nearly one letter share all of them.
    for (const bool indexed : {true, false}) {
        std::vector<std::string> texts;
        while (texts.size() < count) {
            std::string text = indexed ? random.string(100, "etaoinshrdlu") : std::string(100, 'a');
            if (!indexed)
                for (int i = 0; i < 30; ++i) text[random.below(100)] = 'b';
            texts.push_back(text);
            if (texts.size() % 50 == 0) texts.push_back(random.edited(text, 6, "etaoin"));
        }
        const Packed packed(texts);
        const NearDuplicateParameters parameters{0.04, NearDuplicateMode::exact};
        const auto expected = pairs_found(packed, parameters, 2, ExactMethod::tiles);
        ExactSearchCounts counts;
        ASSERT_EQ(pairs_found(packed, parameters, 2, ExactMethod::estimated, &counts), expected);
        EXPECT_GE(expected.size(), count / 60);
        if (!kSanitized) {
            EXPECT_EQ(counts.hits > 0, indexed);
        }
    }
}

TEST(ExactSearch, SaysHowMuchMemoryThePairsTake) {
    // Each text is near all others.
    std::vector<std::string> texts;
    for (int i = 0; i < 800; ++i) texts.push_back(std::string(100, 'x') + std::to_string(i));
    const Packed packed(texts);
    std::vector<std::uint32_t> lengths;
    for (const std::string& text : texts)
        lengths.push_back(static_cast<std::uint32_t>(text.size()));
    NearDuplicateParameters parameters{0.1, NearDuplicateMode::exact};
    for (const std::size_t limit : {std::size_t{1} << 20, std::size_t{1} << 25}) {
        parameters.memory_limit = limit;
        Execution execution(2);
        std::vector<NearPair> pairs;
        const Status status =
            find_exact_pairs(parameters, {packed.documents(), lengths, {}}, execution, pairs);
        if (limit == std::size_t{1} << 25) {
            ASSERT_TRUE(status.ok()) << status.message();
            EXPECT_EQ(pairs.size(), 800u * 799 / 2);
        } else {
            EXPECT_EQ(status.code(), ErrorCode::memory_limit) << status.message();
        }
    }
}

TEST(ExactSearch, EndsWhenAskedToStop) {
    const Packed packed(std::vector<std::string>(3000, "a text"));
    const std::vector<std::uint32_t> lengths(3000, 6);
    Execution execution(2);
    execution.request_stop();
    std::vector<NearPair> pairs;
    for (const ExactMethod method : {ExactMethod::estimated, ExactMethod::index})
        EXPECT_EQ(find_exact_pairs({}, {packed.documents(), lengths, {}}, execution, pairs, nullptr,
                                   method)
                      .code(),
                  ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
