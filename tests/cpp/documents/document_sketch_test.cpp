#include "cpp/documents/document_sketch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>

#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/length_class.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::kSanitized;
using testing::RandomStrings;
using testing::utf8_of;

constexpr std::size_t kBins[] = {320, 32, 64, 128, 512, 1024};

std::vector<Simd> instruction_sets() {
    std::vector<Simd> sets{Simd::portable};
    for (const Simd simd : {Simd::avx2, Simd::avx512})
        if (simd_available(simd)) sets.push_back(simd);
    return sets;
}

/// A model and its numbers.
class Model {
public:
    Model(SketchShape shape, std::vector<std::uint16_t> numbers)
        : numbers_(std::move(numbers)), model_(shape, numbers_.data()) {
        EXPECT_EQ(numbers_.size(), SketchModel::size(shape));
        EXPECT_TRUE(model_.is_valid());
    }
    static Model general(SketchShape shape = {}) { return {shape, general_sketch_model(shape)}; }
    static Model learned(SketchShape shape, const std::vector<std::string>& documents) {
        SketchModelLearner learner;
        for (const std::string& document : documents)
            learner.add(bytes_of(document), CharacterLengths::utf8());
        return learner.documents() == 0 ? general(shape) : Model(shape, learner.learn(shape));
    }
    /// Any numbers that a model may have.
    static Model arbitrary(RandomStrings& random, SketchShape shape) {
        std::vector<std::uint16_t> numbers(SketchModel::size(shape));
        const SketchModel view(shape, numbers.data());
        const std::uint64_t most = std::uint64_t{1} << random.below(17);
        for (std::uint16_t& number : numbers)
            number = static_cast<std::uint16_t>(random.below(most));
        for (const SketchPart& part : {view.letters(), view.grams()})
            for (std::size_t cell = 0; cell < part.bins.size(); ++cell)
                numbers[static_cast<std::size_t>(&part.bins[cell] - numbers.data())] =
                    static_cast<std::uint16_t>(random.below(part.least.size()));
        return {shape, std::move(numbers)};
    }
    static Model any(RandomStrings& random, const std::vector<std::string>& documents) {
        const SketchShape shape{kBins[random.below(4) == 0 ? random.below(std::size(kBins)) : 0]};
        switch (random.below(3)) {
            case 0:
                return general(shape);
            case 1:
                return learned(shape, documents);
            default:
                return arbitrary(random, shape);
        }
    }

    operator const SketchModel&() const { return model_; }
    SketchShape shape() const { return model_.shape(); }

private:
    std::vector<std::uint16_t> numbers_;  // which keep their place when they are moved
    SketchModel model_;
};

/// Sketches of documents of one length class, in columns of just the size that they take.
struct Page {
    Page(std::size_t count, SketchShape shape)
        : lengths(new std::uint32_t[count]),
          hashes(new std::uint32_t[count]),
          letters(new std::uint8_t[count * SketchShape::letters]),
          grams(new std::uint8_t[count * shape.gram_bytes()]) {}

    SketchColumns columns() const {
        return {lengths.get(), hashes.get(), letters.get(), grams.get()};
    }

    std::unique_ptr<std::uint32_t[]> lengths, hashes;
    std::unique_ptr<std::uint8_t[]> letters, grams;
};

/// Sketches of documents, in pages.
class Sketches {
public:
    Sketches(const std::vector<std::string>& documents, const CharacterLengths& lengths,
             const SketchModel& model) {
        for (std::size_t i = 0; i < documents.size(); ++i)
            numbers_[length_class(static_cast<std::uint32_t>(
                         count_characters(bytes_of(documents[i]), lengths)))]
                .push_back(static_cast<std::uint16_t>(i));
        DocumentSketcher sketcher(model);
        for (const auto& [number, of_class] : numbers_) {
            const Page& page =
                pages_.try_emplace(number, of_class.size(), model.shape()).first->second;
            for (std::size_t i = 0; i < of_class.size(); ++i) {
                const SketchedDocument sketched =
                    sketcher.sketch(bytes_of(documents[of_class[i]]), lengths,
                                    &page.letters[i * SketchShape::letters],
                                    &page.grams[i * model.shape().gram_bytes()]);
                page.lengths[i] = sketched.length;
                page.hashes[i] = sketched.hash;
            }
        }
    }

    std::vector<std::uint16_t> candidates(const SketchQuery& query) const {
        std::vector<std::uint16_t> found;
        for (const auto& [number, of_class] : numbers_) {
            std::vector<std::uint16_t> places(of_class.size());
            places.resize(query.candidates(pages_.at(number).columns(), number, of_class.size(),
                                           places.data()));
            EXPECT_TRUE(std::ranges::is_sorted(places));
            for (const std::uint16_t place : places) found.push_back(of_class[place]);
        }
        std::ranges::sort(found);
        return found;
    }

private:
    std::map<std::uint8_t, std::vector<std::uint16_t>> numbers_;  // of documents
    std::map<std::uint8_t, Page> pages_;
};

/// The candidates, which have to be the same by all instruction sets.
std::vector<std::uint16_t> candidates(std::string_view query, const CharacterLengths& lengths,
                                      double threshold, const SketchModel& model,
                                      const Sketches& sketches) {
    std::vector<std::uint16_t> first;
    for (const Simd simd : instruction_sets()) {
        const SketchQuery prepared(bytes_of(query), lengths, threshold, model, simd);
        const auto places = sketches.candidates(prepared);
        if (simd == Simd::portable)
            first = places;
        else
            EXPECT_EQ(places, first) << simd_name(simd);
    }
    return first;
}

/// A version of a text, and a number of edits that certainly suffices.
struct Version {
    std::u32string text;
    std::size_t edits;
};

/// Versions that are hard on counts: edits that destroy as many letters and bigrams as they can,
/// or all of the same kind.
Version version(RandomStrings& random, const std::u32string& text, std::u32string_view letters,
                std::size_t edits) {
    std::u32string result = text;
    const char32_t other = letters[random.below(letters.size())];
    std::size_t done = 0;
    switch (random.below(7)) {
        case 0:
            return {random.edited(text, edits, letters), edits};
        case 1: {  // an unusual letter at equal distances: two bigrams an edit
            const std::size_t step = std::max<std::size_t>(2, text.size() / (edits + 1));
            for (std::size_t at = step / 2; at < result.size() && done < edits; at += step, ++done)
                result[at] = U'#';
            return {result, done};
        }
        case 2: {  // one letter becomes another
            const char32_t from = text.empty() ? other : text[random.below(text.size())];
            for (char32_t& letter : result)
                if (letter == from && done < edits) letter = other, ++done;
            return {result, done};
        }
        case 3: {  // one letter goes
            const char32_t from = text.empty() ? other : text[random.below(text.size())];
            std::u32string kept;
            for (const char32_t letter : text)
                if (letter == from && done < edits)
                    ++done;
                else
                    kept += letter;
            return {kept, done};
        }
        case 4:  // a run
            result.insert(random.below(result.size() + 1), edits, other);
            return {result, edits};
        case 5: {  // a block moved
            const std::size_t size = std::min(edits / 2, text.size());
            const std::u32string block = result.substr(random.below(text.size() - size + 1), size);
            result.erase(result.find(block), size);
            result.insert(random.below(result.size() + 1), block);
            return {result, 2 * size};
        }
        default: {  // one end cut off
            const std::size_t size = std::min(edits, text.size());
            return {
                random.below(2) == 0 ? result.substr(size) : result.substr(0, text.size() - size),
                size};
        }
    }
}

std::size_t random_length(RandomStrings& random) {
    switch (random.below(40)) {
        case 0:
            return 2000 + random.below(3000);
        case 1:
            return random.below(3);
        case 2:
            return 255 * random.below(4) + random.below(3);
        default:
            return random.below(150);
    }
}

/// As many pairs as GPUTEXT_TEST_PAIRS says.
TEST(DocumentSketch, NeverExcludesANearDocument) {
    const char* wanted = std::getenv("GPUTEXT_TEST_PAIRS");
    const std::uint64_t most =
        wanted == nullptr ? (kSanitized ? 20'000 : 200'000) : std::strtoull(wanted, nullptr, 10);
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    const std::u32string_view alphabets[] = {U"etaoinshrdlu ,.\n", U"ab", U"a",
                                             U"0123456789ABCDEFabcdef#",
                                             U"аеиоунтсäöü€漢字🙂 e"};
    for (std::uint64_t pairs = 0; pairs < most;) {
        const auto letters = alphabets[random.below(std::size(alphabets))];
        const auto text = random.string<std::u32string>(random_length(random), letters);
        std::vector<Version> versions;
        std::vector<std::string> documents;
        for (int i = 0; i < 12; ++i) {
            const std::size_t edits = random.below(2) == 0 ? random.below(text.size() / 10 + 2)
                                                           : random.below(text.size() + 2);
            versions.push_back(version(random, text, letters, edits));
            documents.push_back(utf8_of(versions.back().text));
        }
        const Model model = Model::any(random, documents);
        const Sketches sketches(documents, utf8, model);
        const auto& chosen = versions[random.below(versions.size())];
        // Just so much that the chosen version is near, or some threshold.
        const double rate = edit_rate(chosen.edits, text.size() + chosen.text.size());
        const double threshold =
            rate < 0.5 && random.below(4) != 0 ? rate : static_cast<double>(random.below(50)) / 100;
        const std::string query = utf8_of(text);
        const auto places = candidates(query, utf8, threshold, model, sketches);
        for (std::size_t i = 0; i < versions.size(); ++i) {
            if (edit_rate(versions[i].edits, text.size() + versions[i].text.size()) > threshold)
                continue;
            ++pairs;
            ASSERT_TRUE(std::ranges::binary_search(places, i))
                << "threshold " << threshold << ", " << versions[i].edits << " edits, "
                << model.shape().bins << " bins\n"
                << query << "\n"
                << documents[i];
        }
    }
}

/// Counts far beyond what a sketch holds.
TEST(DocumentSketch, NeverExcludesANearLongDocument) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    const std::u32string_view alphabets[] = {U"a", U"ab", U"etaoinshrdlu ,.\n", U"漢字 "};
    for (int round = 0; round < (kSanitized ? 60 : 600); ++round) {
        const auto letters = alphabets[random.below(std::size(alphabets))];
        const auto text = random.string<std::u32string>(
            random.below(round % 10 == 0 ? 300'000 : 30'000), letters);
        const std::size_t most_edits = text.size() / (random.below(3) == 0 ? 4 : 20);
        const auto [edited, edits] = version(random, text, letters, random.below(most_edits + 1));
        const double threshold = edit_rate(edits, text.size() + edited.size());
        if (threshold >= 0.5) continue;
        const Model model = Model::any(random, {utf8_of(edited), utf8_of(text)});
        const Sketches sketches({utf8_of(edited)}, utf8, model);
        ASSERT_EQ(candidates(utf8_of(text), utf8, threshold, model, sketches).size(), 1u)
            << text.size() << " characters, " << edits << " edits";
    }
}

/// By the distance itself, on documents so short and alike that every bound is reached.
TEST(DocumentSketch, ExcludesOnlyDocumentsThatAreFar) {
    RandomStrings random;
    const auto bytes = CharacterLengths::single_byte();
    EditDistance distance;
    std::size_t excluded = 0;
    for (int round = 0; round < (kSanitized ? 300 : 6000); ++round) {
        const std::string_view letters = round % 3 == 0 ? "abcdefghijklmnopqrstuvwxyz" : "abc";
        std::vector<std::string> documents;
        for (int i = 0; i < 20; ++i) documents.push_back(random.string(random.below(14), letters));
        const std::string query = random.string(random.below(14), letters);
        const double threshold = static_cast<double>(random.below(50)) / 100;
        const Model model = Model::any(random, documents);
        const auto places =
            candidates(query, bytes, threshold, model, Sketches(documents, bytes, model));
        for (std::size_t i = 0; i < documents.size(); ++i) {
            if (std::ranges::binary_search(places, i)) continue;
            const double rate = edit_rate(*distance(bytes_of(query), bytes_of(documents[i])),
                                          query.size() + documents[i].size());
            ASSERT_GT(rate, threshold) << query << "\n" << documents[i];
            ++excluded;
        }
    }
    EXPECT_GT(excluded, kSanitized ? 4000u : 80'000u);
}

/// A text of some words of its own, as texts have their subjects.
std::string text_of_words(RandomStrings& random, std::size_t length) {
    std::vector<std::string> words;
    while (words.size() < 60)
        words.push_back(
            random.string(1 + random.below(9), "eeeeeettttaaaooiinnsshhrrddlucmfwygpbvkxjqz"));
    std::string text;
    while (text.size() < length) {
        text += words[random.below(1 + random.below(words.size()))];
        text += random.below(10) == 0 ? ". " : " ";
    }
    text.resize(length);
    return text;
}

TEST(DocumentSketch, ExcludesUnrelatedTexts) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    for (const std::size_t length : {300, 1000, 2000, 3000, 20'000}) {
        std::vector<std::string> documents;
        for (int i = 0; i < 200; ++i) documents.push_back(text_of_words(random, length));
        for (const Model& model : {Model::general(), Model::learned({}, documents)}) {
            const Sketches sketches(documents, utf8, model);
            std::size_t left = 0;
            for (int i = 0; i < 20; ++i)
                left +=
                    candidates(text_of_words(random, length), utf8, 0.03, model, sketches).size();
            EXPECT_LT(left, 20u * 200 / 20) << length;
        }
    }
}

TEST(DocumentSketch, LeavesEqualDocumentsOnlyWhereNoEditIsAllowed) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    for (const std::size_t length : {0, 1, 2, 9, 19, 500}) {
        std::vector<std::string> documents;
        for (int i = 0; i < 50; ++i) documents.push_back(random.string(length, "abcdefghij"));
        const Model model = Model::general();
        const Sketches sketches(documents, utf8, model);
        for (const double threshold : {0.0, 0.001}) {
            const auto places = candidates(documents[7], utf8, threshold, model, sketches);
            ASSERT_TRUE(std::ranges::binary_search(places, 7));
            for (const std::uint16_t place : places) ASSERT_EQ(documents[place], documents[7]);
        }
    }
}

/// Their number goes beyond what a sketch holds, or is rounded up.
TEST(DocumentSketch, FindsNearDocumentsOfBlanks) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    const Model model = Model::general();
    for (const std::size_t length : {7, 100, 2040, 2041, 2100, 4000, 4097, 20'000}) {
        const std::size_t edits = most_edits_within(0.05, 2 * length);
        const std::string query(length, ' ');
        std::vector<std::string> documents(20, query);
        for (std::string& document : documents)
            for (std::size_t i = 0; i < edits; ++i)
                document[random.below(length)] = static_cast<char>('a' + random.below(26));
        EXPECT_EQ(candidates(query, utf8, 0.05, model, Sketches(documents, utf8, model)).size(),
                  documents.size())
            << length;
        EXPECT_EQ(candidates(documents[0], utf8, 0.05, model,
                             Sketches(std::vector<std::string>(1, query), utf8, model))
                      .size(),
                  1u)
            << length;
    }
}

TEST(DocumentSketch, KnowsTheLengthsOfNearDocuments) {
    const Model model = Model::general();
    for (const double threshold : {0.0, 1e-9, 0.01, 0.05, 0.1, 1.0 / 3, 0.49, 0.49999}) {
        for (std::size_t length = 0; length < 130; ++length) {
            const SketchQuery query(bytes_of(std::string(length, 'a')), CharacterLengths::utf8(),
                                    threshold, model);
            std::size_t least = SIZE_MAX, most = 0;
            for (std::size_t other = 0; other < 4 * length + 4; ++other) {
                const std::size_t difference = std::max(other, length) - std::min(other, length);
                if (difference > most_edits_within(threshold, length + other)) continue;
                least = std::min(least, other);
                most = other;
            }
            ASSERT_EQ(query.least_length(), least) << threshold << " " << length;
            ASSERT_EQ(query.most_length(), most) << threshold << " " << length;
        }
    }
}

TEST(DocumentSketch, TakesAnyBytes) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    for (int round = 0; round < 300; ++round) {
        const Model model = Model::any(random, {});
        const std::size_t count = 1 + random.below(150), grams = model.shape().gram_bytes();
        const Page page(count, model.shape());
        const std::string query = random.string(random.below(3000), "\x80\xffz abc\xe2\x82");
        const auto length = static_cast<std::uint32_t>(count_characters(bytes_of(query), utf8));
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t kind = random.below(4);
            page.lengths[i] = kind == 0 ? UINT32_MAX - static_cast<std::uint32_t>(i)
                                        : length + static_cast<std::uint32_t>(random.below(9));
            page.hashes[i] = static_cast<std::uint32_t>(random.below(UINT32_MAX));
            for (std::size_t k = 0; k < SketchShape::letters; ++k)
                page.letters[i * SketchShape::letters + k] =
                    static_cast<std::uint8_t>(random.below(256));
            for (std::size_t k = 0; k < grams; ++k)
                page.grams[i * grams + k] =
                    static_cast<std::uint8_t>(kind == 1 ? 255 : random.below(256));
        }
        const std::uint8_t number = random.below(2) == 0
                                        ? length_class(length)
                                        : static_cast<std::uint8_t>(random.below(256));
        std::vector<std::uint16_t> first;
        for (const Simd simd : instruction_sets()) {
            std::vector<std::uint16_t> places(count);
            places.resize(SketchQuery(bytes_of(query), utf8, 0.3, model, simd)
                              .candidates(page.columns(), number, count, places.data()));
            ASSERT_TRUE(std::ranges::is_sorted(places));
            ASSERT_TRUE(places.empty() || places.back() < count);
            if (simd == Simd::portable) first = places;
            ASSERT_EQ(places, first);
        }
    }
}

/// One that has been made once lies in indexes: this never changes but with the pages' version.
TEST(DocumentSketch, IsWhatItWas) {
    const auto utf8 = CharacterLengths::utf8();
    const auto digest = [&](const std::string& document, std::size_t bins) {
        const Model model = Model::general({bins});
        std::vector<std::uint8_t> letters(SketchShape::letters), grams(model.shape().gram_bytes());
        const SketchedDocument sketched =
            DocumentSketcher(model).sketch(bytes_of(document), utf8, letters.data(), grams.data());
        letters.insert(letters.end(), grams.begin(), grams.end());
        std::uint64_t hash = std::uint64_t{sketched.length} << 32 | sketched.hash;
        for (const std::uint8_t byte : letters) hash = (hash ^ byte) * 0x100000001b3u;
        return hash;
    };
    std::string all;
    for (unsigned byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
    std::string prose;
    for (int i = 0; i < 9000; ++i)
        prose += "The quick brown fox, 0.5 x 17; jumps\n"[(i * i + i / 7) % 37];
    EXPECT_EQ(digest("", 320), 0x71b271866f703accu);
    EXPECT_EQ(digest("a", 320), 0x775303a3b2ab0e8au);
    EXPECT_EQ(digest("Near-duplicate texts: 2 of 10.\n", 320), 0x5be7f992f9f33944u);
    EXPECT_EQ(digest(all, 512), 0xd1d039167358d911u);
    EXPECT_EQ(digest("Привет, мир! Ähnliche Texte. 你好世界 🙂", 320),
              0xb3750566b18b46f2u);
    EXPECT_EQ(digest(prose, 320), 0x5bdc0bb082a6a9a6u);
    EXPECT_EQ(digest(prose, 1024), 0x215914f3d79099dbu);
    EXPECT_EQ(digest(std::string(100'000, 'a'), 32), 0x1e65a703895e2532u);
}

/// The sum of the codes.
int sum_of_codes(std::span<const std::uint8_t> sketch) {
    int sum = 0;
    for (const std::uint8_t byte : sketch) sum += (byte & 15) + (byte >> 4);
    return sum;
}

TEST(DocumentSketch, HasALetterAndABigramOnce) {
    std::uint8_t letters[SketchShape::letters], grams[160];
    const SketchedDocument sketched =
        DocumentSketcher(Model::general())
            .sketch(bytes_of("ab"), CharacterLengths::single_byte(), letters, grams);
    EXPECT_EQ(sketched.length, 2u);
    EXPECT_EQ(sum_of_codes(letters), 2);
    EXPECT_EQ(sum_of_codes(grams), 1);
}

TEST(DocumentSketch, StopsWhenAsked) {
    const std::string text(std::size_t{1} << 26, 'a');
    int asked = 0;
    const Stop after_three{[](void* count) { return ++*static_cast<int*>(count) > 3; }, &asked};
    std::uint8_t letters[SketchShape::letters], grams[160];
    DocumentSketcher(Model::general())
        .sketch(bytes_of(text), CharacterLengths::utf8(), letters, grams, after_three);
    EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace gputext
