// extension/index/format.hpp - the pages of an index of documents
//
// Block 0 is the meta page. Behind it lie groups of blocks: a directory page, and the
// kGroupEntries sketch pages that it describes.
//
//   block   0      1          2 ..                         4078       4079 ..
//           meta   directory  model pages, sketch pages    directory  sketch pages ..
//
// The meta page says how many models of sketches there are (cpp/documents/sketch_model.hpp). A
// model lies on a page of its own, and never changes.
//
// A sketch page has sketches of documents of about one length, its length class, which were made by
// one model; a directory page says the class and the model of each of its sketch pages. So a search
// reads the directory, and only sketch pages of the lengths that a near-duplicate may have. A
// sketch never moves to another page, and VACUUM removes sketches of a page while it holds the
// page's lock. So a search that reads each page once, under its lock, sees each row once. What it
// sees may be out of date: the executor rechecks each row in the table.
//
// A sketch page holds columns: lengths, hashes, row addresses, each byte of the letters, and
// bigrams, each for `capacity` sketches of which `count` are in use.
//
// Locks: of a directory page and a sketch page that it describes, the directory page is locked
// first. Whoever extends the relation holds its extension lock, and no page's.
// Changes are written to WAL as generic records, so the server replays them without this library.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"
}

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/documents/document_sketch.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext::index {

inline constexpr std::uint32_t kMagic = 0x78546770;  // "pgTx"
inline constexpr std::uint16_t kVersion = 3;

inline constexpr BlockNumber kMetaBlock = 0;

/// Where the model of a number lies.
inline constexpr BlockNumber kFirstModelBlock = 2;
constexpr BlockNumber model_block(std::uint8_t number) {
    return kFirstModelBlock + number;
}

enum class PageKind : std::uint8_t { meta = 1, directory = 2, sketches = 3, unused = 4, model = 5 };

/// What the sketches of a page have in common.
struct SketchKind {
    std::uint8_t length_class;
    std::uint8_t model;  // its number
    bool operator==(const SketchKind&) const = default;
};

/// The special space of every page.
struct PageTrailer {
    std::uint32_t magic;
    std::uint16_t version;
    PageKind kind;
    std::uint8_t halves;  // of the sketches of the page, or of its model
    std::uint16_t bins;   // of these
    std::uint16_t count;  // of its sketches; of a meta page, of the models
    SketchKind sketches;  // of a sketch page; a model's page has its model's number
};

/// What of a page is left for its contents.
inline constexpr std::size_t kPageRoom =
    BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(PageTrailer));

/// A directory's word for a sketch page.
struct DirectoryEntry {
    std::uint8_t length_class;  // kNoClass: the page is not in use
    std::uint8_t model : 7;
    std::uint8_t full : 1;  // 1 if an insert has found no room; VACUUM sets it back

    SketchKind sketches() const { return {length_class, model}; }
};
inline constexpr std::uint8_t kNoClass = 255, kModelClass = 254;  // the latter: of a model's page
static_assert(sizeof(DirectoryEntry) == 2 && kLengthClasses <= kModelClass);
inline constexpr std::uint32_t kGroupEntries = kPageRoom / sizeof(DirectoryEntry);
inline constexpr std::uint32_t kGroupBlocks = kGroupEntries + 1;

constexpr BlockNumber directory_block(std::uint32_t group) {
    return 1 + group * kGroupBlocks;
}
constexpr std::uint32_t group_of(BlockNumber block) {
    return (block - 1) / kGroupBlocks;
}
constexpr bool is_directory(BlockNumber block) {
    return block > kMetaBlock && (block - 1) % kGroupBlocks == 0;
}
/// The number of a sketch page's entry in its directory.
constexpr std::uint32_t entry_of(BlockNumber block) {
    return (block - 1) % kGroupBlocks - 1;
}
/// All blocks of so many groups have numbers.
inline constexpr std::uint32_t kMostGroups = (MaxBlockNumber - 1) / kGroupBlocks;
/// How many groups have a directory page in a relation of so many blocks.
constexpr std::uint32_t groups_in(BlockNumber blocks) {
    return blocks <= 1 ? 0 : group_of(blocks - 1) + 1;
}

inline PageTrailer* trailer(Page page) {
    return reinterpret_cast<PageTrailer*>(PageGetSpecialPointer(page));
}
inline DirectoryEntry* directory_entries(Page page) {
    return reinterpret_cast<DirectoryEntry*>(PageGetContents(page));
}

/// Where the columns of a sketch page lie, which depends on the number of bins alone. Behind the
/// letters are grams that take as much room or more, so that 64 bytes from any of them can be read.
class SketchPages {
public:
    explicit SketchPages(SketchShape shape) : shape_(shape), capacity_(capacity_of(shape)) {}

    SketchShape shape() const { return shape_; }
    std::uint16_t capacity() const { return capacity_; }

    std::uint32_t* lengths(Page page) const { return at<std::uint32_t>(page, 0); }
    std::uint32_t* hashes(Page page) const { return at<std::uint32_t>(page, 4); }
    ItemPointerData* rows(Page page) const { return at<ItemPointerData>(page, 8); }
    /// Byte i of the letters of the sketch at a place is at letters(page)[i * capacity() + place].
    std::uint8_t* letters(Page page) const { return at<std::uint8_t>(page, 14); }
    std::uint8_t* grams(Page page) const {
        return at<std::uint8_t>(page, 14 + SketchShape::letters);
    }
    SketchColumns columns(Page page) const {
        return {lengths(page), hashes(page), letters(page), capacity_, grams(page)};
    }

    /// Requires room. The sketch has the letters, and the grams behind them.
    void append(Page page, ItemPointerData row, SketchedDocument document,
                const std::uint8_t* sketch) const;
    /// Copies the bytes of a sketch, as append() took them.
    void copy(Page page, std::uint16_t place, std::uint8_t* sketch) const;
    /// Overwrites one sketch by another one of the page.
    void move(Page page, std::uint16_t from, std::uint16_t to) const;

private:
    static std::uint16_t capacity_of(SketchShape shape) {
        return static_cast<std::uint16_t>(kPageRoom /
                                          (14 + SketchShape::letters + shape.gram_bytes()));
    }
    template <class T>
    T* at(Page page, std::size_t bytes_before) const {
        return reinterpret_cast<T*>(PageGetContents(page) + bytes_before * capacity_);
    }

    SketchShape shape_;
    std::uint16_t capacity_;
};

/// Makes an empty page. Directory pages begin with entries that are not in use.
void initialize_directory(Page page);
void initialize_sketches(Page page, SketchShape shape, SketchKind sketches);

/// Makes a page for so many models.
void initialize_meta_page(Page page, std::size_t models);
void initialize_model_page(Page page, std::uint8_t number, const SketchModel& model);

/// Raises an error that names the block if the page is no directory of an index of this version. A
/// page that was never written passes.
void check_directory(Relation index, BlockNumber block, Page page);
/// Checks a page of sketches by one of these models. A page that is not in use passes, too.
void check_sketches(Relation index, BlockNumber block, Page page, std::span<const SketchModel>);
/// Checks the meta page; returns the number of models.
std::size_t check_meta_page(Relation index, Page page);
/// Checks the page of the model of this number; returns a view of the page.
SketchModel check_model_page(Relation index, std::uint8_t number, Page page);

/// Whether a page that check_sketches() has passed has sketches.
inline bool is_in_use(Page page) {
    return !PageIsNew(page) && trailer(page)->kind == PageKind::sketches;
}

/// Raises the error of a damaged page.
[[noreturn]] void raise_damaged(Relation index, BlockNumber block, const char* detail);

}  // namespace gputext::index
