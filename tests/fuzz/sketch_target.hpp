// tests/fuzz/sketch_target.hpp - takes any bytes for models of sketches and for sketches, as they
// may lie on damaged pages of an index

#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "cpp/documents/document_sketch.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext::testing {

inline void require_sketch(bool condition) {
    if (!condition) std::abort();
}

/// Takes bytes off the front of an input. Behind its end are zeroes.
class SketchInput {
public:
    explicit SketchInput(std::span<const std::uint8_t> bytes) : left_(bytes) {}

    std::uint8_t byte() {
        const std::span<const std::uint8_t> taken = bytes(1);
        return taken.empty() ? 0 : taken[0];
    }
    std::span<const std::uint8_t> bytes(std::size_t most) {
        const std::span<const std::uint8_t> taken = left_.first(std::min(most, left_.size()));
        left_ = left_.subspan(taken.size());
        return taken;
    }

private:
    std::span<const std::uint8_t> left_;
};

/// As a page says it: a number of bins that may be impossible, and numbers of which cells may
/// belong to bins that there are not, unless the input asks for others.
inline OwnedSketchModel model_of(SketchInput& input) {
    const std::uint8_t kind = input.byte();
    OwnedSketchModel model;
    model.shape.halves = (kind & 1) != 0;
    model.shape.bins = (std::size_t{input.byte()} % 33 + 1) * ((kind & 2) != 0 ? 16 : 32);
    if (!model.shape.is_valid()) return model;
    model.numbers.resize(SketchModel::size(model.shape));
    const std::span<const std::uint8_t> pattern = input.bytes(input.byte());
    std::uint32_t state = kind;
    for (std::uint16_t& number : model.numbers) {
        state = state * 1664525 + 1013904223;
        const std::size_t place = static_cast<std::size_t>(&number - model.numbers.data());
        const std::uint8_t byte = pattern.empty() ? 0 : pattern[place % pattern.size()];
        number = static_cast<std::uint16_t>((kind & 4) != 0 ? byte * 257 : (state >> 16) * byte);
    }
    if ((kind & 8) != 0) return model;
    const SketchModel view = model.view();
    for (const SketchPart& part : {view.letters(), view.grams()})
        for (const std::uint16_t& bin : part.bins)
            model.numbers[static_cast<std::size_t>(&bin - model.numbers.data())] =
                static_cast<std::uint16_t>(bin % part.least.size());
    return model;
}

/// Sketches of one length class by one model, in the memory that a page has for them.
struct SketchPage {
    static constexpr std::size_t kPlaces = 64;

    explicit SketchPage(SketchShape shape)
        : lengths(kPlaces),
          hashes(kPlaces),
          letters(SketchShape::letters * kPlaces),
          grams(shape.gram_bytes() * kPlaces) {}

    SketchColumns columns() const {
        return {lengths.data(), hashes.data(), letters.data(), kPlaces, grams.data()};
    }
    void put(std::size_t place, SketchedDocument document, const std::uint8_t* letter_bytes,
             const std::vector<std::uint8_t>& gram_bytes, std::size_t size) {
        lengths[place] = document.length;
        hashes[place] = document.hash;
        for (std::size_t i = 0; i < SketchShape::letters; ++i)
            letters[i * kPlaces + place] = letter_bytes[i];
        std::copy_n(gram_bytes.begin(), size,
                    grams.begin() + static_cast<std::ptrdiff_t>(place * size));
    }

    std::vector<std::uint32_t> lengths, hashes;
    std::vector<std::uint8_t> letters, grams;
};

/// Models that pass is_valid(), which indexes check, sketch any document, and exclude none that is
/// near; whatever bytes sketches have, to look at them is safe.
inline void read_sketches(std::span<const std::uint8_t> data) {
    SketchInput input(data);
    std::vector<OwnedSketchModel> owned(std::size_t{input.byte()} % 3 + 1);
    std::vector<SketchModel> models;
    for (OwnedSketchModel& model : owned) {
        model = model_of(input);
        if (!model.shape.is_valid() || !model.view().is_valid()) return;
        models.push_back(model.view());
    }
    const double threshold = input.byte() / 520.0;
    const CharacterLengths lengths = CharacterLengths::single_byte();

    // Two documents, of which the other one begins and ends as the first one does.
    const std::uint8_t repeats = input.byte();
    const std::span<const std::uint8_t> text = input.bytes(std::size_t{input.byte()} + 1);
    std::vector<std::uint8_t> one, other;
    for (int i = 0; i <= repeats % 8; ++i) one.insert(one.end(), text.begin(), text.end());
    const std::size_t from = one.empty() ? 0 : input.byte() % one.size();
    const std::size_t removed = std::min<std::size_t>(input.byte() % 16, one.size() - from);
    const std::span<const std::uint8_t> added = input.bytes(input.byte() % 16);
    other.assign(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(from));
    other.insert(other.end(), added.begin(), added.end());
    other.insert(other.end(), one.begin() + static_cast<std::ptrdiff_t>(from + removed), one.end());

    DocumentSketcher sketcher(models);
    std::uint8_t letters[SketchShape::letters];
    std::vector<std::uint8_t> grams(SketchShape::most_bins / 2);
    const SketchedDocument sketched = sketcher.sketch(other, lengths, letters, grams.data());
    require_sketch(sketched.model < models.size() && sketched.length == other.size());

    const SketchShape shape = models[sketched.model].shape();
    SketchPage page(shape);
    const std::size_t place = input.byte() % SketchPage::kPlaces;
    // The rest of the page is what the input has.
    const std::span<const std::uint8_t> rest = input.bytes(SIZE_MAX);
    const auto fill = [&rest](void* bytes, std::size_t size) {
        for (std::size_t at = 0; at < size && !rest.empty(); at += rest.size())
            std::memcpy(static_cast<std::uint8_t*>(bytes) + at, rest.data(),
                        std::min(rest.size(), size - at));
    };
    fill(page.lengths.data(), page.lengths.size() * sizeof(std::uint32_t));
    fill(page.hashes.data(), page.hashes.size() * sizeof(std::uint32_t));
    fill(page.letters.data(), page.letters.size());
    fill(page.grams.data(), page.grams.size());
    page.put(place, sketched, letters, grams, shape.gram_bytes());

    EditDistance distance;
    const auto edits = distance.of_texts(one, other, lengths);
    require_sketch(edits.ok());
    const bool near = *edits <= most_edits_within(threshold, one.size() + other.size());
    const std::uint8_t of_length = length_class(sketched.length);
    for (const Simd simd : {Simd::portable, best_simd()})
        for (const bool prepared : {false, true}) {
            SketchQuery query(one, lengths, threshold, models, simd);
            if (prepared) query.prepare(of_length, sketched.model);
            std::uint16_t places[SketchPage::kPlaces];
            const std::size_t count = query.candidates(page.columns(), of_length, sketched.model,
                                                       SketchPage::kPlaces, places);
            require_sketch(count <= SketchPage::kPlaces && std::is_sorted(places, places + count));
            require_sketch(count == 0 || places[count - 1] < SketchPage::kPlaces);
            require_sketch(!near || std::binary_search(places, places + count, place));
            // As a directory may say it that is damaged
            const std::uint8_t no_model = repeats, no_class = input.byte();
            query.prepare(no_class, no_model);
            query.candidates(page.columns(), no_class, sketched.model, place, places);
        }
}

}  // namespace gputext::testing
