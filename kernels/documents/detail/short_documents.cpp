#include "kernels/documents/detail/short_documents.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/stoppable.hpp"
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
                            UploadRing& ring, Execution& execution, const TakeNearDocuments& take) {
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
    const auto comes_first = [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(documents.lengths[a], a) < std::pair(documents.lengths[b], b);
    };

    PairSearch search(work, ring, execution);
    GPUTEXT_TRY(search.set(StringMetric::edit_rate, codes.bits(), coded_rows,
                           triangle ? nullptr : &coded_columns, {}));
    GPUTEXT_TRY(search.limit(threshold));
    execution.begin_phase("comparing documents", coded_rows.places());
    const auto take_pairs = [&](const PlaceRange& some, const std::vector<StringPair>& pairs,
                                RowLimits* limits) -> Status {
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (i % kLookEvery == 0 && execution.stop_requested()) return Status::cancelled();
            const std::uint32_t row = coded_rows.numbers[pairs[i].row];
            const std::uint32_t column = all_columns.numbers[pairs[i].column];
            if (row == column || (columns.empty() && !triangle && !comes_first(row, column)))
                continue;
            const std::size_t lengths =
                std::size_t{documents.lengths[row]} + documents.lengths[column];
            if (pairs[i].counts <= most_edits_within(threshold, lengths))
                take(row, column, pairs[i].counts);
        }
        return execution.checkpoint(limits == nullptr ? some.end - some.begin : 0);
    };
    return search.run(false, take_pairs);
}

}  // namespace gputext::gpu
