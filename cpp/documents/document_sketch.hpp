// cpp/documents/document_sketch.hpp - a few bytes of a document that exclude most documents that
// are not near it
//
// An edit changes one character of a document, and so at most one character and two pairs of
// neighboring characters (bigrams) of it. Documents within distance k therefore share
// max(|a|, |b|) - k characters and max(|a|, |b|) - 1 - 2k bigrams, counted as multisets (Ukkonen
// 1992; Gravano et al. 2001). A sketch holds counts of characters and of bigrams in bins, rounded
// up to 16 levels, as a model says (sketch_model.hpp). Bins, and counts that are rounded up, can
// only make the shared number look larger: no near document is ever excluded.
//
// Where bigrams are counted by halves of the document, those that k edits move from one half to the
// other are not shared either. To move many takes insertions on one side of the middle and
// deletions on the other one, and a deletion destroys one shared bigram, not two: documents whose
// lengths differ by d share max(|a|, |b|) - 1 - 2k - (d / 2 + 1) bigrams in their halves.
//
// Sketches lie in indexes on disk: their format is part of the version of the index's pages, and
// tests hold sketches of fixed documents.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cpp/base/characters.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext {

/// What a sketch says besides its counts.
struct SketchedDocument {
    std::uint32_t length;  // in characters
    std::uint32_t hash;    // of all characters: equal documents have equal ones
    std::uint8_t model;    // the number of the model that it was made by
};

/// Computes sketches; keeps its scratch memory between calls; one thread uses it at a time.
class DocumentSketcher {
public:
    /// Copies what it needs of the models, 1 to kMostSketchModels.
    explicit DocumentSketcher(std::span<const SketchModel> models);
    ~DocumentSketcher();
    DocumentSketcher(DocumentSketcher&&) noexcept;
    DocumentSketcher& operator=(DocumentSketcher&&) noexcept;

    /// Chooses a model for the document, and writes SketchShape::letters bytes to `letters` and the
    /// model's gram_bytes() to `grams`. O(size). Documents are only comparable if they were read
    /// with the same `lengths`. When `stop` says so it ends early, with an answer that is of no
    /// use.
    SketchedDocument sketch(Bytes document, const CharacterLengths& lengths, std::uint8_t* letters,
                            std::uint8_t* grams, Stop stop = {});

private:
    struct Scratch;
    std::unique_ptr<Scratch> scratch_;
};

/// Sketches of several documents of one length class that one model has made, as a page of an index
/// has them. A byte of letters lies beside that byte of the next document: byte i of document d is
/// letters[i * letters_stride + d]. It must be safe to read 64 bytes from each 64th document's on.
struct SketchColumns {
    const std::uint32_t* lengths;
    const std::uint32_t* hashes;
    const std::uint8_t* letters;
    std::size_t letters_stride;
    const std::uint8_t* grams;  // gram_bytes() a document, one after the other
};

/// A document that sketches are compared with.
class SketchQuery {
public:
    /// O(size + models * bins). 0 <= threshold < 0.5. For sketches made by these models, of which
    /// it keeps nothing.
    SketchQuery(Bytes document, const CharacterLengths& lengths, double threshold,
                std::span<const SketchModel> models, Simd simd = best_simd(), Stop stop = {});
    ~SketchQuery();
    SketchQuery(SketchQuery&&) noexcept;
    SketchQuery& operator=(SketchQuery&&) noexcept;

    /// Lengths that a near document may have.
    std::uint32_t least_length() const;
    std::uint32_t most_length() const;

    /// Before sketches of this class and model are compared. O(bins), nothing if that has been
    /// done.
    void prepare(std::uint8_t length_class, std::uint8_t model);

    /// The numbers of the documents below `count` that may have an edit rate of at most the
    /// threshold, ascending, into `places`, which has room for `count`; returns how many. All
    /// documents have this length class and model; only their lengths exclude documents if these
    /// were not prepared. About 1 ns a document for its letters, and 60 ns for the bigrams of one
    /// that letters leave. Whatever bytes are in the columns, this is safe.
    std::size_t candidates(const SketchColumns& columns, std::uint8_t length_class,
                           std::uint8_t model, std::size_t count, std::uint16_t* places) const;

private:
    struct Bounds;
    std::unique_ptr<Bounds> bounds_;
};

}  // namespace gputext
