// cpp/documents/document_sketch.hpp - a few bytes of a document that exclude most documents that
// are not near it
//
// An edit changes one character of a document, and so at most one character and two pairs of
// neighbouring characters (bigrams) of it. Documents within distance k therefore share
// max(|a|, |b|) - k characters and max(|a|, |b|) - 1 - 2k bigrams, counted as multisets (Ukkonen
// 1992; Gravano et al. 2001). A sketch holds counts of characters and of bigrams in bins, rounded
// up to 16 levels, as a model says (sketch_model.hpp). Bins, and counts that are rounded up, can
// only make the shared number look larger: no near document is ever excluded.
//
// Sketches lie in indexes on disk: their format is part of the version of the index's pages, and
// tests hold sketches of fixed documents.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpp/base/characters.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext {

/// What a sketch says besides its counts.
struct SketchedDocument {
    std::uint32_t length;  // in characters
    std::uint32_t hash;    // of all characters: equal documents have equal ones
};

/// Computes sketches; keeps its scratch memory between calls; one thread uses it at a time.
class DocumentSketcher {
public:
    /// Copies what it needs of the model.
    explicit DocumentSketcher(const SketchModel& model);
    ~DocumentSketcher();
    DocumentSketcher(DocumentSketcher&&) noexcept;
    DocumentSketcher& operator=(DocumentSketcher&&) noexcept;

    /// Writes SketchShape::letters bytes to `letters` and shape.gram_bytes() to `grams`. O(size).
    /// Documents are only comparable if they were read with the same `lengths`. When `stop` says
    /// so it ends early, with an answer that is of no use.
    SketchedDocument sketch(Bytes document, const CharacterLengths& lengths, std::uint8_t* letters,
                            std::uint8_t* grams, Stop stop = {});

private:
    struct Scratch;
    std::unique_ptr<Scratch> scratch_;
};

/// Sketches of several documents of one length class, as a page of an index has them: columns of
/// equal length.
struct SketchColumns {
    const std::uint32_t* lengths;
    const std::uint32_t* hashes;
    const std::uint8_t* letters;  // SketchShape::letters bytes a document, one after the other
    const std::uint8_t* grams;    // shape.gram_bytes() a document
};

/// A document that sketches are compared with.
class SketchQuery {
public:
    /// O(size + bins * length classes). 0 <= threshold < 0.5. For sketches made by the model, of
    /// which it keeps nothing.
    SketchQuery(Bytes document, const CharacterLengths& lengths, double threshold,
                const SketchModel& model, Simd simd = best_simd(), Stop stop = {});
    ~SketchQuery();
    SketchQuery(SketchQuery&&) noexcept;
    SketchQuery& operator=(SketchQuery&&) noexcept;

    /// Lengths that a near document may have.
    std::uint32_t least_length() const;
    std::uint32_t most_length() const;

    /// The numbers of the documents below `count` that may have an edit rate of at most the
    /// threshold, ascending, into `places`, which has room for `count`; returns how many. All
    /// documents have this length class. About 5 ns a document for its letters, and 60 ns for the
    /// bigrams of one that letters leave. Whatever bytes are in the columns, this is safe.
    std::size_t candidates(const SketchColumns& columns, std::uint8_t length_class,
                           std::size_t count, std::uint16_t* places) const;

private:
    struct Bounds;
    std::unique_ptr<Bounds> bounds_;
};

}  // namespace gputext
