#include "cpp/documents/document_sketch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "cpp/documents/detail/document_kinds.hpp"
#include "cpp/documents/detail/sketch_counts.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/sketch_model.hpp"
#include "cpp/documents/sketch_model_learner.hpp"
#include "tests/fuzz/sketch_seeds.hpp"
#include "tests/fuzz/sketch_target.hpp"
#include "tests/support/learned_models.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::kSanitized;
using testing::learn;
using testing::RandomStrings;
using testing::utf8_of;

constexpr std::size_t kBins[] = {320, 32, 64, 128, 512, 1024};

std::vector<Simd> instruction_sets() {
    std::vector<Simd> sets{Simd::portable};
    for (const Simd simd : {Simd::avx2, Simd::avx512})
        if (simd_available(simd)) sets.push_back(simd);
    return sets;
}

/// Models that own their numbers.
class Models {
public:
    Models(std::vector<OwnedSketchModel> owned) : owned_(std::move(owned)) {
        for (const OwnedSketchModel& model : owned_) {
            EXPECT_EQ(model.numbers.size(), SketchModel::size(model.shape));
            EXPECT_TRUE(model.shape.is_valid() && model.view().is_valid());
            views_.push_back(model.view());
        }
    }
    Models(Models&&) = default;  // the numbers keep their place

    static Models general(std::size_t bins = SketchShape::default_bins) {
        return {{general_sketch_model(bins)}};
    }
    static Models learned(const std::vector<std::string>& documents,
                          std::size_t bins = SketchShape::default_bins, std::size_t most = 1) {
        return {learn(documents, bins, most)};
    }

    operator std::span<const SketchModel>() const { return views_; }
    std::size_t size() const { return views_.size(); }
    const SketchModel& operator[](std::size_t number) const { return views_[number]; }

private:
    std::vector<OwnedSketchModel> owned_;
    std::vector<SketchModel> views_;
};

/// Any numbers that a model of the shape may have; its typical document may be a given one, so that
/// models which are used together are all chosen.
OwnedSketchModel arbitrary_model(RandomStrings& random, SketchShape shape,
                                 const std::string& typical) {
    OwnedSketchModel model{shape, std::vector<std::uint16_t>(SketchModel::size(shape))};
    const std::uint64_t most = std::uint64_t{1} << random.below(17);
    for (std::uint16_t& number : model.numbers)
        number = static_cast<std::uint16_t>(random.below(most));
    for (const SketchPart& part : {model.view().letters(), model.view().grams()})
        for (const std::uint16_t& bin : part.bins)
            model.numbers[static_cast<std::size_t>(&bin - model.numbers.data())] =
                static_cast<std::uint16_t>(random.below(part.least.size()));
    if (random.below(4) == 0) return model;
    SketchCounts counts;
    LetterRoots roots;
    counts.count(bytes_of(typical), CharacterLengths::utf8(), {});
    find_roots(counts.letters(), counts.length(), roots);
    std::ranges::copy(roots, model.numbers.begin());
    return model;
}

constexpr std::u32string_view kAlphabets[] = {U"etaoinshrdlu ,.\n",
                                              U"ab",
                                              U"a",
                                              U"0123456789ABCDEFabcdef#",
                                              U"аеиоунтсäöü€漢字🙂 e",
                                              U"abcdefghijklmnopqrstuvwxyz \x01\x7f\x80\xff\xe9"};

/// General and learned models, from which tests take some.
class ManyModels {
public:
    explicit ManyModels(RandomStrings& random) : random_(random) {
        for (const std::size_t bins : kBins) {
            made_.push_back(general_sketch_model(bins));
            std::vector<std::string> documents;
            for (const auto letters : kAlphabets)
                for (int i = 0; i < 30; ++i)
                    documents.push_back(
                        utf8_of(random.string<std::u32string>(40 + random.below(400), letters)));
            for (OwnedSketchModel& model : learn(documents, bins, 4))
                made_.push_back(std::move(model));
        }
        // Of which the first kind is told apart by halves.
        std::vector<std::string> documents = random.shuffled_blocks(100);
        for (int i = 0; i < 300; ++i) documents.push_back(random.string(300, "0123456789"));
        for (OwnedSketchModel& model : learn(documents, 320, 2)) made_.push_back(std::move(model));
        EXPECT_TRUE(std::ranges::any_of(
            made_, [](const OwnedSketchModel& model) { return model.shape.halves; }));
    }

    /// One to four models.
    Models some(const std::vector<std::string>& documents) {
        std::vector<OwnedSketchModel> models;
        for (std::size_t count = 1 + random_.below(4); models.size() < count;)
            if (random_.below(2) == 0)
                models.push_back(made_[random_.below(made_.size())]);
            else
                models.push_back(arbitrary_model(
                    random_,
                    {kBins[random_.below(4) == 0 ? random_.below(std::size(kBins)) : 0],
                     random_.below(2) == 0},
                    documents[random_.below(documents.size())]));
        return {std::move(models)};
    }

private:
    RandomStrings& random_;
    std::vector<OwnedSketchModel> made_;
};

/// A class and a model.
using Kind = std::pair<std::uint8_t, std::uint8_t>;

/// Sketches of documents of one kind, in columns of just the size that they take.
struct Page {
    /// The bytes of letters of document d and d + 1 lie beside each other; those of other documents
    /// than the `count` ones may have any value.
    Page(std::size_t count, std::size_t room, SketchShape shape, std::uint8_t others = 0)
        : stride(room),
          lengths(new std::uint32_t[count]),
          hashes(new std::uint32_t[count]),
          letters(new std::uint8_t[letter_bytes(count, room)]),
          grams(new std::uint8_t[count * shape.gram_bytes()]) {
        std::fill_n(letters.get(), letter_bytes(count, room), others);
    }

    /// So that 64 bytes from each 64th document's on can be read.
    static std::size_t letter_bytes(std::size_t count, std::size_t room) {
        return (SketchShape::letters - 1) * room + (count + 63) / 64 * 64;
    }
    SketchColumns columns() const {
        return {lengths.get(), hashes.get(), letters.get(), stride, grams.get()};
    }

    std::size_t stride;
    std::unique_ptr<std::uint32_t[]> lengths, hashes;
    std::unique_ptr<std::uint8_t[]> letters, grams;
};

/// A document's sketch.
struct Sketch {
    SketchedDocument document;
    std::array<std::uint8_t, SketchShape::letters> letters;
    std::vector<std::uint8_t> grams;
};

Sketch sketch_of(std::string_view document, const CharacterLengths& lengths,
                 DocumentSketcher& sketcher, std::span<const SketchModel> models) {
    constexpr std::uint8_t untouched = 0xa5;
    Sketch sketch{{}, {}, std::vector<std::uint8_t>(SketchShape::most_bins / 2, untouched)};
    sketch.document =
        sketcher.sketch(bytes_of(document), lengths, sketch.letters.data(), sketch.grams.data());
    EXPECT_LT(sketch.document.model, models.size());
    const std::size_t bytes = models[sketch.document.model].shape().gram_bytes();
    EXPECT_TRUE(std::ranges::all_of(std::span(sketch.grams).subspan(bytes),
                                    [](std::uint8_t byte) { return byte == untouched; }));
    sketch.grams.resize(bytes);
    return sketch;
}

/// Sketches of documents, in pages.
class Sketches {
public:
    Sketches(const std::vector<std::string>& documents, const CharacterLengths& lengths,
             std::span<const SketchModel> models) {
        DocumentSketcher sketcher(models);
        std::vector<Sketch> sketches;
        for (const std::string& document : documents) {
            sketches.push_back(sketch_of(document, lengths, sketcher, models));
            const SketchedDocument& made = sketches.back().document;
            EXPECT_EQ(made.length, count_characters(bytes_of(document), lengths));
            numbers_[{length_class(made.length), made.model}].push_back(
                static_cast<std::uint16_t>(sketches.size() - 1));
        }
        for (const auto& [kind, of_kind] : numbers_) {
            const SketchShape shape = models[kind.second].shape();
            const Page& page =
                pages_
                    .try_emplace(kind, of_kind.size(), of_kind.size() + documents.size() % 5, shape)
                    .first->second;
            for (std::size_t i = 0; i < of_kind.size(); ++i) {
                const Sketch& from = sketches[of_kind[i]];
                page.lengths[i] = from.document.length;
                page.hashes[i] = from.document.hash;
                for (std::size_t byte = 0; byte < SketchShape::letters; ++byte)
                    page.letters[byte * page.stride + i] = from.letters[byte];
                std::ranges::copy(from.grams, &page.grams[i * shape.gram_bytes()]);
            }
        }
    }

    std::size_t pages() const { return pages_.size(); }

    void prepare(SketchQuery& query) const {
        for (const auto& [kind, page] : pages_) query.prepare(kind.first, kind.second);
    }
    std::vector<std::uint16_t> candidates(const SketchQuery& query) const {
        std::vector<std::uint16_t> found;
        for (const auto& [kind, of_kind] : numbers_) {
            std::vector<std::uint16_t> places(of_kind.size());
            places.resize(query.candidates(pages_.at(kind).columns(), kind.first, kind.second,
                                           of_kind.size(), places.data()));
            EXPECT_TRUE(std::ranges::is_sorted(places));
            for (const std::uint16_t place : places) found.push_back(of_kind[place]);
        }
        std::ranges::sort(found);
        return found;
    }

private:
    std::map<Kind, std::vector<std::uint16_t>> numbers_;  // of documents
    std::map<Kind, Page> pages_;
};

/// The candidates, which have to be the same by all instruction sets.
std::vector<std::uint16_t> candidates(std::string_view query, const CharacterLengths& lengths,
                                      double threshold, std::span<const SketchModel> models,
                                      const Sketches& sketches) {
    std::vector<std::uint16_t> first;
    for (const Simd simd : instruction_sets()) {
        SketchQuery prepared(bytes_of(query), lengths, threshold, models, simd);
        sketches.prepare(prepared);
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
    switch (random.below(9)) {
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
        case 6: {  // more before the middle and less behind it, or the other way round
            const std::size_t size = std::min(edits / 2, text.size());
            const std::u32string added(edits - size, other);
            if (random.below(2) == 0) return {added + text.substr(0, text.size() - size), edits};
            return {text.substr(size) + added, edits};
        }
        case 7:  // more before the middle
            return {std::u32string(edits, other) + text, edits};
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

/// Two digits a byte.
std::string hex(std::span<const std::uint8_t> bytes) {
    std::string digits;
    for (const std::uint8_t byte : bytes)
        for (const unsigned half : {byte >> 4, byte & 15}) digits += "0123456789abcdef"[half];
    return digits;
}

/// The text in an encoding: characters above 255 are not in one of single bytes.
std::string encoded(std::u32string_view text, bool single_byte) {
    if (!single_byte) return utf8_of(text);
    std::string bytes;
    for (const char32_t letter : text) bytes += static_cast<char>(letter);
    return bytes;
}

/// As many pairs as GPUTEXT_TEST_PAIRS says.
TEST(DocumentSketch, NeverExcludesANearDocument) {
    const char* wanted = std::getenv("GPUTEXT_TEST_PAIRS");
    const std::uint64_t most =
        wanted == nullptr ? (kSanitized ? 8'000 : 100'000) : std::strtoull(wanted, nullptr, 10);
    RandomStrings random;
    ManyModels many(random);
    const auto utf8 = CharacterLengths::utf8(), bytes = CharacterLengths::single_byte();
    std::size_t in_several_pages = 0;
    for (std::uint64_t pairs = 0; pairs < most;) {
        const auto letters = kAlphabets[random.below(std::size(kAlphabets))];
        const bool single_byte = std::ranges::max(letters) < 256 && random.below(2) == 0;
        const CharacterLengths& lengths = single_byte ? bytes : utf8;
        const auto text = random.string<std::u32string>(random_length(random), letters);
        std::vector<Version> versions;
        std::vector<std::string> documents;
        for (int i = 0; i < 12; ++i) {
            const std::size_t edits = random.below(2) == 0 ? random.below(text.size() / 10 + 2)
                                                           : random.below(text.size() + 2);
            versions.push_back(version(random, text, letters, edits));
            documents.push_back(encoded(versions.back().text, single_byte));
        }
        const Models models = many.some(documents);
        const Sketches sketches(documents, lengths, models);
        in_several_pages += sketches.pages() > 1;
        const auto& chosen = versions[random.below(versions.size())];
        // Just so much that the chosen version is near, or some threshold.
        const double rate = edit_rate(chosen.edits, text.size() + chosen.text.size());
        const double threshold =
            rate < 0.5 && random.below(4) != 0 ? rate : static_cast<double>(random.below(50)) / 100;
        const std::string query = encoded(text, single_byte);
        const auto places = candidates(query, lengths, threshold, models, sketches);
        for (std::size_t i = 0; i < versions.size(); ++i) {
            if (edit_rate(versions[i].edits, text.size() + versions[i].text.size()) > threshold)
                continue;
            ++pairs;
            ASSERT_TRUE(std::ranges::binary_search(places, i))
                << "threshold " << threshold << ", " << versions[i].edits << " edits, "
                << models.size() << " models\n"
                << query << "\n"
                << documents[i];
        }
    }
    EXPECT_GT(in_several_pages, most / 50);
}

/// Counts far beyond what a sketch holds.
TEST(DocumentSketch, NeverExcludesANearLongDocument) {
    RandomStrings random;
    ManyModels many(random);
    const auto utf8 = CharacterLengths::utf8();
    const std::u32string_view alphabets[] = {U"a", U"ab", U"etaoinshrdlu ,.\n", U"漢字 "};
    for (int round = 0; round < testing::rounds(kSanitized ? 40 : 400); ++round) {
        const auto letters = alphabets[random.below(std::size(alphabets))];
        const auto text = random.string<std::u32string>(
            random.below(round % 10 == 0 ? 300'000 : 30'000), letters);
        const std::size_t most_edits = text.size() / (random.below(3) == 0 ? 4 : 20);
        const auto [edited, edits] = version(random, text, letters, random.below(most_edits + 1));
        const double threshold = edit_rate(edits, text.size() + edited.size());
        if (threshold >= 0.5) continue;
        const Models models = many.some({utf8_of(edited), utf8_of(text)});
        const Sketches sketches({utf8_of(edited)}, utf8, models);
        ASSERT_EQ(candidates(utf8_of(text), utf8, threshold, models, sketches).size(), 1u)
            << text.size() << " characters, " << edits << " edits";
    }
}

/// A model that rounds nothing, of few bins or of many: its bounds are as tight as they can be.
OwnedSketchModel exact_model(SketchShape shape) {
    OwnedSketchModel model{shape, std::vector<std::uint16_t>(SketchModel::size(shape))};
    for (const SketchPart& part : {model.view().letters(), model.view().grams()})
        for (std::size_t cell = 0; cell < part.bins.size(); ++cell)
            model.numbers[static_cast<std::size_t>(&part.bins[cell] - model.numbers.data())] =
                static_cast<std::uint16_t>(cell * part.least.size() / part.bins.size());
    return model;
}

/// By the distance itself, on documents so short and alike that every bound is reached.
TEST(DocumentSketch, ExcludesOnlyDocumentsThatAreFar) {
    RandomStrings random;
    ManyModels many(random);
    const auto bytes = CharacterLengths::single_byte();
    EditDistance distance;
    std::size_t excluded = 0;
    for (int round = 0; round < (kSanitized ? 200 : 4000); ++round) {
        const std::string_view letters = round % 3 == 0 ? "abcdefghijklmnopqrstuvwxyz" : "abc";
        std::vector<std::string> documents;
        for (int i = 0; i < 20; ++i) documents.push_back(random.string(random.below(14), letters));
        const std::string query = random.string(random.below(14), letters);
        const double threshold = static_cast<double>(random.below(50)) / 100;
        const Models models = round % 2 == 0 ? many.some(documents)
                                             : Models({exact_model({1024, random.below(2) == 0})});
        const auto places =
            candidates(query, bytes, threshold, models, Sketches(documents, bytes, models));
        for (std::size_t i = 0; i < documents.size(); ++i) {
            if (std::ranges::binary_search(places, i)) continue;
            const double rate = edit_rate(*distance(bytes_of(query), bytes_of(documents[i])),
                                          query.size() + documents[i].size());
            ASSERT_GT(rate, threshold) << query << "\n" << documents[i];
            ++excluded;
        }
    }
    EXPECT_GT(excluded, kSanitized ? 2600u : 52'000u);
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
        for (const Models& models : {Models::general(), Models::learned(documents)}) {
            const Sketches sketches(documents, utf8, models);
            std::size_t left = 0;
            for (int i = 0; i < 20; ++i)
                left +=
                    candidates(text_of_words(random, length), utf8, 0.03, models, sketches).size();
            EXPECT_LT(left, 20u * 200 / 20) << length;
        }
    }
}

/// Of the same blocks in another order, which the counts of whole documents do not show.
TEST(DocumentSketch, TellsOrdersApartByHalves) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    const std::string a = random.string(300, "abcdef "), b = random.string(300, "uvwxyz,");
    for (const bool halves : {false, true}) {
        const Models models({exact_model({1024, halves})});
        const Sketches sketches({a + b, b + a}, utf8, models);
        EXPECT_EQ(candidates(a + b, utf8, 0.05, models, sketches).size(), halves ? 1u : 2u);
        EXPECT_EQ(candidates(b + a, utf8, 0.05, models, sketches).size(), halves ? 1u : 2u);
    }
}

TEST(DocumentSketch, LeavesEqualDocumentsOnlyWhereNoEditIsAllowed) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    const Models models = Models::general();
    for (const std::size_t length : {0, 1, 2, 9, 19, 500}) {
        std::vector<std::string> documents;
        for (int i = 0; i < 50; ++i) documents.push_back(random.string(length, "abcdefghij"));
        const Sketches sketches(documents, utf8, models);
        for (const double threshold : {0.0, 0.001}) {
            const auto places = candidates(documents[7], utf8, threshold, models, sketches);
            ASSERT_TRUE(std::ranges::binary_search(places, 7));
            for (const std::uint16_t place : places) ASSERT_EQ(documents[place], documents[7]);
        }
    }
}

/// Their number goes beyond what a sketch holds, or is rounded up.
TEST(DocumentSketch, FindsNearDocumentsOfBlanks) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    const Models models = Models::general();
    for (const std::size_t length : {7, 100, 2040, 2041, 2100, 4000, 4097, 20'000}) {
        const std::size_t edits = most_edits_within(0.05, 2 * length);
        const std::string query(length, ' ');
        std::vector<std::string> documents(20, query);
        for (std::string& document : documents)
            for (std::size_t i = 0; i < edits; ++i)
                document[random.below(length)] = static_cast<char>('a' + random.below(26));
        EXPECT_EQ(candidates(query, utf8, 0.05, models, Sketches(documents, utf8, models)).size(),
                  documents.size())
            << length;
        EXPECT_EQ(candidates(documents[0], utf8, 0.05, models,
                             Sketches(std::vector<std::string>(1, query), utf8, models))
                      .size(),
                  1u)
            << length;
    }
}

TEST(DocumentSketch, KnowsTheLengthsOfNearDocuments) {
    const Models models = Models::general();
    for (const double threshold : {0.0, 1e-9, 0.01, 0.05, 0.1, 1.0 / 3, 0.49, 0.49999}) {
        for (std::size_t length = 0; length < 130; ++length) {
            const SketchQuery query(bytes_of(std::string(length, 'a')), CharacterLengths::utf8(),
                                    threshold, models);
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

TEST(DocumentSketch, ExcludesByLengthsOnlyWhatWasNotPrepared) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    const std::string text = text_of_words(random, 1000);
    const Models models({general_sketch_model(64), exact_model({320, true})});
    constexpr std::size_t count = 130;
    const std::uint8_t of_query = length_class(1000);
    for (const std::uint8_t number : {std::uint8_t{0}, std::uint8_t{1}}) {
        // No sketch is like the query's.
        const Page page(count, count, models[number].shape());
        std::fill_n(page.grams.get(), count * models[number].shape().gram_bytes(), std::uint8_t{0});
        std::size_t comparable = 0;
        SketchQuery query(bytes_of(text), utf8, 0.05, models);
        for (std::size_t i = 0; i < count; ++i) {
            page.lengths[i] = static_cast<std::uint32_t>(870 + 2 * i);
            page.hashes[i] = 1;
            comparable +=
                page.lengths[i] >= query.least_length() && page.lengths[i] <= query.most_length();
        }
        std::vector<std::uint16_t> places(count);
        const auto found = [&](std::uint8_t length_class, std::uint8_t model) {
            return query.candidates(page.columns(), length_class, model, count, places.data());
        };
        ASSERT_GT(comparable, 50u);
        ASSERT_LT(comparable, count);
        EXPECT_EQ(found(of_query, number), comparable);
        for (std::size_t i = 0; i < comparable; ++i) {
            EXPECT_GE(page.lengths[places[i]], query.least_length());
            EXPECT_LE(page.lengths[places[i]], query.most_length());
        }
        // Other classes and models, of which some are none.
        const auto other = static_cast<std::uint8_t>(1 - number);
        query.prepare(of_query, other);
        query.prepare(static_cast<std::uint8_t>(of_query + 1), number);
        for (const unsigned none : {2, 15, 255})
            query.prepare(of_query, static_cast<std::uint8_t>(none));
        for (const unsigned none : {0, 255}) query.prepare(static_cast<std::uint8_t>(none), number);
        EXPECT_EQ(found(of_query, number), comparable);
        EXPECT_EQ(found(0, number), comparable);
        EXPECT_EQ(found(255, number), comparable);
        EXPECT_EQ(found(of_query, 255), comparable);
        query.prepare(of_query, number);
        EXPECT_EQ(found(of_query, number), 0u);
        query.prepare(of_query, number);
        EXPECT_EQ(found(of_query, number), 0u);
    }
}

/// Any sketches, of which each is judged as if it were the only one of its page, whatever lies
/// behind them.
TEST(DocumentSketch, TakesAnyBytes) {
    RandomStrings random;
    ManyModels many(random);
    const auto utf8 = CharacterLengths::utf8();
    std::size_t left = 0, excluded = 0;
    for (int round = 0; round < 300; ++round) {
        const std::string query = random.string(random.below(3000), "\x80\xffz abc\xe2\x82");
        const Models models = many.some({query});
        const auto model = static_cast<std::uint8_t>(random.below(models.size()));
        const std::size_t count = 1 + random.below(300), room = count + random.below(70);
        const SketchShape shape = models[model].shape();
        const std::size_t bytes = shape.gram_bytes();
        const Page page(count, room, shape, static_cast<std::uint8_t>(random.below(256)));
        const auto length = static_cast<std::uint32_t>(count_characters(bytes_of(query), utf8));
        const auto kinds = 1 + random.below(8);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t kind = random.below(kinds);
            page.lengths[i] = kind == 1 ? UINT32_MAX - static_cast<std::uint32_t>(i)
                                        : length + static_cast<std::uint32_t>(random.below(9));
            page.hashes[i] = static_cast<std::uint32_t>(random.below(UINT32_MAX));
            // High codes exclude less.
            const auto letter_bits = static_cast<std::uint8_t>(random.below(256));
            const auto gram_bits = static_cast<std::uint8_t>(random.below(256));
            for (std::size_t k = 0; k < SketchShape::letters; ++k)
                page.letters[k * room + i] = static_cast<std::uint8_t>(
                    kind == 2 ? random.below(256) | letter_bits : 255 - random.below(2));
            for (std::size_t k = 0; k < bytes; ++k)
                page.grams[i * bytes + k] = static_cast<std::uint8_t>(
                    kind == 3 ? random.below(256) | gram_bits : 255 - random.below(2));
        }
        const std::uint8_t number = random.below(2) == 0
                                        ? length_class(length)
                                        : static_cast<std::uint8_t>(random.below(256));
        const bool prepares = random.below(4) != 0;
        std::vector<std::uint16_t> first;
        for (const Simd simd : instruction_sets()) {
            SketchQuery prepared(bytes_of(query), utf8, 0.3, models, simd);
            if (prepares) prepared.prepare(number, model);
            if (simd == Simd::portable)
                for (std::size_t i = 0; i < count; ++i) {
                    const Page alone(1, 1, shape, static_cast<std::uint8_t>(random.below(256)));
                    alone.lengths[0] = page.lengths[i];
                    alone.hashes[0] = page.hashes[i];
                    for (std::size_t k = 0; k < SketchShape::letters; ++k)
                        alone.letters[k] = page.letters[k * room + i];
                    std::copy_n(&page.grams[i * bytes], bytes, alone.grams.get());
                    std::uint16_t place;
                    if (prepared.candidates(alone.columns(), number, model, 1, &place) != 0)
                        first.push_back(static_cast<std::uint16_t>(i));
                }
            std::vector<std::uint16_t> places(count);
            places.resize(prepared.candidates(page.columns(), number, model, count, places.data()));
            ASSERT_EQ(places, first) << simd_name(simd) << " " << count;
        }
        left += first.size();
        excluded += count - first.size();
    }
    EXPECT_GT(left, 3000u);
    EXPECT_GT(excluded, 3000u);
}

/// One that has been made once lies in indexes: this never changes but with the pages' version.
TEST(DocumentSketch, IsWhatItWas) {
    const auto utf8 = CharacterLengths::utf8();
    const auto digest_by = [&](const std::string& document, const Models& models) {
        DocumentSketcher sketcher(models);
        const Sketch sketch = sketch_of(document, utf8, sketcher, models);
        std::uint64_t hash = std::uint64_t{sketch.document.length} << 32 | sketch.document.hash;
        const auto add = [&](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
        for (const std::uint8_t byte : sketch.letters) add(byte);
        for (const std::uint8_t byte : sketch.grams) add(byte);
        add(sketch.document.model);
        return hash;
    };
    const auto digest = [&](const std::string& document, std::size_t bins) {
        return digest_by(document, Models::general(bins));
    };
    std::string all;
    for (unsigned byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
    std::string prose;
    for (int i = 0; i < 9000; ++i)
        prose += "The quick brown fox, 0.5 x 17; jumps\n"[(i * i + i / 7) % 37];
    EXPECT_EQ(digest("", 320), 0xa271b36f5bb3e8a4u);
    EXPECT_EQ(digest("a", 320), 0x3a6a5972ff403f1eu);
    EXPECT_EQ(digest("Near-duplicate texts: 2 of 10.\n", 320), 0x60e798fb37d156f2u);
    EXPECT_EQ(digest(all, 512), 0x5918f3b84da86a47u);
    EXPECT_EQ(digest("Привет, мир! Ähnliche Texte. 你好世界 🙂", 320),
              0xf16310db6a8e2b90u);
    EXPECT_EQ(digest(prose, 320), 0x68bba0eade0d7004u);
    EXPECT_EQ(digest(prose, 1024), 0x1df75076fd4e0d5fu);
    EXPECT_EQ(digest(std::string(100'000, 'a'), 32), 0x5205e4b4cc1ba796u);

    // Models that no change of the general model touches; letters of the second one begin at '0'.
    std::vector<OwnedSketchModel> fixed{exact_model({96, true}), exact_model({64, false})};
    for (std::size_t cell = '0'; cell <= '9'; ++cell) fixed[1].numbers[cell] = 10'000;
    for (OwnedSketchModel& model : fixed)
        for (const SketchPart& part : {model.view().letters(), model.view().grams()})
            for (const std::span<const std::uint16_t> numbers : {part.least, part.steps})
                for (std::size_t i = 0; i < numbers.size(); ++i)
                    model.numbers[static_cast<std::size_t>(&numbers[i] - model.numbers.data())] =
                        static_cast<std::uint16_t>(i * i % 977);
    const Models two(std::move(fixed));
    EXPECT_EQ(digest_by(prose, two), 0xbaac6a8e2f825967u);
    EXPECT_EQ(digest_by("12 of 3456, and 7890 of 1234", two), 0x4665e819c9b53703u);
    std::uint8_t letters[SketchShape::letters], grams[48];
    const SketchedDocument sketched =
        DocumentSketcher(two).sketch(bytes_of("abracadabra"), utf8, letters, grams);
    EXPECT_EQ(sketched.model, 0);
    EXPECT_EQ(hex(letters), "00000000000009020000000000000000");
    EXPECT_EQ(hex(grams),
              "000100000000000002000000000000000010000001000001000000010000000000000000000000100000"
              "011000000000");
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
        DocumentSketcher(Models::general())
            .sketch(bytes_of("ab"), CharacterLengths::single_byte(), letters, grams);
    EXPECT_EQ(sketched.length, 2u);
    EXPECT_EQ(sketched.model, 0);
    EXPECT_EQ(sum_of_codes(letters), 2);
    EXPECT_EQ(sum_of_codes(grams), 1);
}

TEST(DocumentSketch, StopsWhenAsked) {
    const std::string text(std::size_t{1} << 26, 'a');
    const Models models = Models::general();
    const auto asked_in = [&](auto&& work) {
        int asked = 0;
        work(Stop{[](void* count) { return ++*static_cast<int*>(count) > 3; }, &asked});
        return asked;
    };
    std::uint8_t letters[SketchShape::letters], grams[160];
    EXPECT_EQ(asked_in([&](Stop stop) {
                  DocumentSketcher(models).sketch(bytes_of(text), CharacterLengths::utf8(), letters,
                                                  grams, stop);
              }),
              4);
    EXPECT_EQ(asked_in([&](Stop stop) {
                  // Of no use, and safe.
                  SketchQuery query(bytes_of(text), CharacterLengths::utf8(), 0.05, models,
                                    best_simd(), stop);
                  query.prepare(length_class(1u << 26), 0);
                  const Page page(1, 1, models[0].shape());
                  page.lengths[0] = page.hashes[0] = 0;
                  std::uint16_t place;
                  query.candidates(page.columns(), 0, 0, 1, &place);
              }),
              4);
}

/// What the fuzzer of models and sketches begins with: read_sketches() ends the program where a
/// sketch excludes a near document.
TEST(SketchTarget, TakesChangedSeeds) {
    RandomStrings random;
    for (const std::string& seed : testing::sketch_seeds()) {
        testing::read_sketches(bytes_of(seed));
        for (int round = 0; round < testing::rounds(kSanitized ? 20 : 300); ++round) {
            std::string changed = seed.substr(0, random.below(seed.size() + 1));
            for (std::size_t i = random.below(4); i > 0 && !changed.empty(); --i)
                changed[random.below(changed.size())] = static_cast<char>(random.below(256));
            testing::read_sketches(bytes_of(changed));
        }
    }
}

}  // namespace
}  // namespace gputext
