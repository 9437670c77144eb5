#include "kernels/documents/detail/short_documents.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "kernels/base/bit_product.cuh"
#include "kernels/strings/coded_strings.hpp"
#include "kernels/strings/pair_search.hpp"

namespace gputext::gpu {
namespace {

/// The characters of documents.
class DocumentSource final : public StringSource {
public:
    explicit DocumentSource(const DistinctDocuments& documents) : documents_(documents) {}

    std::size_t size() const override { return documents_.size(); }
    std::size_t length(std::size_t document) const override {
        return documents_.lengths[document];
    }
    Symbols read(std::size_t document, std::vector<std::uint32_t>& scratch) const override {
        const Bytes bytes = documents_.documents[document];
        scratch.clear();
        for (std::size_t at = 0; at < bytes.size();)
            scratch.push_back(next_character(bytes, documents_.documents.characters, at));
        return scratch;
    }

private:
    const DistinctDocuments& documents_;
};

/// The documents that are marked; all where nothing is.
std::vector<std::uint32_t> marked(std::size_t count, std::span<const std::uint8_t> marks) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < count; ++i)
        if (marks.empty() || marks[i] != 0) found.push_back(i);
    return found;
}

/// By row, the tile of columns that its document is in, where all documents are columns.
std::vector<std::uint32_t> own_tiles(const CodedStrings& rows, const CodedStrings& columns) {
    std::vector<std::uint32_t> place_of(columns.places());  // by document
    for (std::uint32_t place = 0; place < columns.places(); ++place)
        if (columns.numbers[place] != kNoString) place_of[columns.numbers[place]] = place;
    std::vector<std::uint32_t> tiles(rows.places());
    std::uint32_t before = 0;  // of the places that no document has
    for (std::size_t row = 0; row < rows.places(); ++row) {
        if (rows.numbers[row] != kNoString)
            before = place_of[rows.numbers[row]] / kTilePlaces * kTilePlaces;
        tiles[row] = before;
    }
    return tiles;
}

/// Which of the pairs of a row and a column.
enum class Wanted {
    once,       // those that a search of a triangle finds
    row_first,  // those whose row comes before the column, in order of length
    all         // all but those of a document and itself
};

/// Pairs that a search has found, of which the near ones are kept, many at a time by all threads.
class FoundPairs {
public:
    FoundPairs(double threshold, const DistinctDocuments& documents, const CodedStrings& rows,
               const CodedStrings& columns, Wanted wanted)
        : threshold_(threshold),
          documents_(documents),
          rows_(rows),
          columns_(columns),
          wanted_(wanted) {}

    Status add(const std::vector<StringPair>& pairs, Execution& execution,
               std::vector<NearPair>& near) {
        waiting_.insert(waiting_.end(), pairs.begin(), pairs.end());
        return waiting_.size() < kTogether ? Status() : flush(execution, near);
    }

    Status flush(Execution& execution, std::vector<NearPair>& near) {
        const std::size_t steps = (waiting_.size() + kStep - 1) / kStep;
        std::vector<std::vector<NearPair>> kept(steps);
        Execution own(execution.threads(), execution);  // whose steps are not the phase's
        GPUTEXT_TRY(own.parallel_for(steps, [&](std::size_t step, unsigned) {
            const std::size_t end = std::min(waiting_.size(), (step + 1) * kStep);
            for (std::size_t i = step * kStep; i < end; ++i) keep(waiting_[i], kept[step]);
            return Status();
        }));
        waiting_.clear();
        for (const std::vector<NearPair>& some : kept)
            near.insert(near.end(), some.begin(), some.end());
        return {};
    }

private:
    static constexpr std::size_t kTogether = std::size_t{1} << 20;
    static constexpr std::size_t kStep = std::size_t{1} << 13;

    void keep(const StringPair& pair, std::vector<NearPair>& kept) const {
        const std::uint32_t row = rows_.numbers[pair.row], column = columns_.numbers[pair.column];
        const std::uint32_t of_row = documents_.lengths[row], of_column = documents_.lengths[column];
        if (row == column) return;
        if (wanted_ == Wanted::row_first && std::pair(of_column, column) < std::pair(of_row, row))
            return;
        const std::size_t lengths = std::size_t{of_row} + of_column;
        if (pair.counts > most_edits_within(threshold_, lengths)) return;
        const auto [first, second] = std::minmax(row, column);
        kept.push_back({first, second, edit_rate(pair.counts, lengths)});
    }

    const double threshold_;
    const DistinctDocuments& documents_;
    const CodedStrings &rows_, &columns_;
    const Wanted wanted_;
    std::vector<StringPair> waiting_;
};

}  // namespace

Status are_short(const DistinctDocuments& documents, bool& are) {
    const auto is_short = [](std::uint32_t length) { return length <= kQuickSymbols; };
    GPUTEXT_TRY(has_bit_product(are));
    are = are && std::ranges::all_of(documents.lengths, is_short);
    return {};
}

Status join_short_documents(double threshold, const DistinctDocuments& documents,
                            std::span<const std::uint8_t> rows,
                            std::span<const std::uint8_t> columns, const DeviceWork& work,
                            UploadRing& ring, Execution& execution, std::vector<NearPair>& near) {
    const std::size_t count = documents.size();
    execution.begin_phase("coding documents", 0);
    const DocumentSource strings(documents);
    const StringSource* const sources[] = {&strings};
    SymbolCodes codes;
    GPUTEXT_TRY(codes.set(sources, execution));
    if (!codes.fit()) return Status::out_of_memory();
    CodedStrings coded_rows, coded_columns;
    GPUTEXT_TRY(coded_rows.set(strings, marked(count, rows), &codes, execution));
    const bool triangle = rows.empty() && columns.empty();
    if (!triangle)
        GPUTEXT_TRY(coded_columns.set(strings, marked(count, columns), &codes, execution));
    const CodedStrings& all_columns = triangle ? coded_rows : coded_columns;
    FoundPairs found(threshold, documents, coded_rows, all_columns,
                     triangle ? Wanted::once : columns.empty() ? Wanted::row_first : Wanted::all);

    PairSearch search(work, ring, execution);
    GPUTEXT_TRY(search.set(StringMetric::edit_rate, codes.bits(), coded_rows,
                           triangle ? nullptr : &coded_columns, {}));
    // Else each part of a search looks at as many pairs as the whole one.
    if (!triangle && columns.empty()) search.begin_columns(own_tiles(coded_rows, coded_columns));
    GPUTEXT_TRY(search.limit(threshold));
    execution.begin_phase("comparing documents", coded_rows.places());
    const auto take = [&](const PlaceRange& some, const std::vector<StringPair>& pairs,
                          RowLimits* limits) -> Status {
        GPUTEXT_TRY(found.add(pairs, execution, near));
        return execution.checkpoint(limits == nullptr ? some.end - some.begin : 0);
    };
    GPUTEXT_TRY(search.run(false, take));
    return found.flush(execution, near);
}

}  // namespace gputext::gpu
