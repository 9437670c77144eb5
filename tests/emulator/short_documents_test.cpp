#include "kernels/documents/detail/short_documents.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cpp/documents/edit_distance.hpp"
#include "kernels/strings/coded_strings.hpp"
#include "kernels/strings/pair_search.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/plain_strings.hpp"

namespace gputext {
namespace {

using testing::RandomNames;
using testing::String;

/// Texts of a byte a character, no two of them alike.
class Texts {
public:
    Texts(RandomNames& random, std::size_t count) {
        std::set<String> distinct;
        for (String& text : random.strings(count, kLongest)) {
            for (std::uint32_t& symbol : text) symbol %= 256;
            if (text.size() <= kLongest) distinct.insert(text);
        }
        texts_.assign(distinct.begin(), distinct.end());
        for (const String& text : texts_) {
            extents_.push_back({bytes_.size(), text.size()});
            lengths_.push_back(static_cast<std::uint32_t>(text.size()));
            bytes_.insert(bytes_.end(), text.begin(), text.end());
        }
    }

    std::size_t size() const { return texts_.size(); }
    const String& operator[](std::size_t i) const { return texts_[i]; }
    DistinctDocuments view() const {
        return {{bytes_.data(), extents_, CharacterLengths::single_byte()}, lengths_, {}, {}, {}};
    }

private:
    static constexpr std::size_t kLongest = 64;

    std::vector<String> texts_;
    std::vector<std::uint8_t> bytes_;
    std::vector<Extent> extents_;
    std::vector<std::uint32_t> lengths_;
};

using Marks = std::vector<std::uint8_t>;
using NearDocuments = std::set<std::tuple<std::size_t, std::size_t, double>>;

class ShortDocumentsOnEmulator : public testing::RingTest {
protected:
    Marks random_marks(std::size_t count) {
        Marks marks(count);
        for (auto& mark : marks) mark = random_.below(2) == 0 ? 0 : 1;
        return marks;
    }

    NearDocuments found(double threshold, const Texts& texts, const Marks& rows,
                        const Marks& columns) {
        NearDocuments pairs;
        std::vector<NearPair> near;
        Execution execution(2);
        const Status status = gpu::join_short_documents(threshold, texts.view(), rows, columns,
                                                        work, ring(), execution, near);
        for (const NearPair& pair : near) {
            EXPECT_LT(pair.first, pair.second);
            const bool is_new = pairs.emplace(pair.first, pair.second, pair.edit_rate).second;
            EXPECT_TRUE(is_new || !columns.empty()) << pair.first << ", " << pair.second;
        }
        EXPECT_TRUE(status.ok()) << status.message();
        return pairs;
    }

    /// By the definition of kernels/documents/detail/exact_join.hpp.
    static NearDocuments expected(double threshold, const Texts& texts, const Marks& rows,
                                  const Marks& columns) {
        NearDocuments pairs;
        for (std::size_t a = 0; a < texts.size(); ++a)
            for (std::size_t b = a + 1; b < texts.size(); ++b) {
                const std::size_t first = texts[b].size() < texts[a].size() ? b : a;
                const bool wanted = columns.empty() ? rows.empty() || rows[first] == 1
                                                    : (rows[a] == 1 && columns[b] == 1) ||
                                                          (rows[b] == 1 && columns[a] == 1);
                const std::size_t edits =
                    wanted ? testing::plain_edits(texts[a], texts[b], false) : 0;
                const std::size_t lengths = texts[a].size() + texts[b].size();
                if (wanted && edits <= most_edits_within(threshold, lengths))
                    pairs.emplace(a, b, edit_rate(edits, lengths));
            }
        return pairs;
    }

    RandomNames random_;
};

TEST_F(ShortDocumentsOnEmulator, AreJoinedAsByAllCells) {
    const std::size_t calls = testing::rounds<std::size_t>(30, 500);
    for (std::size_t call = 0; call < calls; ++call) {
        const Texts texts(random_, 1 + random_.below(200));
        const double threshold = 0.01 * static_cast<double>(random_.below(51));
        Marks rows, columns;
        if (call % 3 > 0) rows = random_marks(texts.size());
        if (call % 3 > 1) columns = random_marks(texts.size());
        work.bytes = std::size_t{random_.below(2) == 0 ? 3u : 300u} << 20;
        SCOPED_TRACE("call " + std::to_string(call) + ", " + std::to_string(texts.size()) +
                     " documents, threshold " + std::to_string(threshold));
        ASSERT_EQ(found(threshold, texts, rows, columns),
                  expected(threshold, texts, rows, columns));
    }
}

class PairSearchOnEmulator : public testing::RingTest {};

TEST_F(PairSearchOnEmulator, LeavesOutColumnsBeforeTheFirstOfItsRows) {
    const std::vector<std::uint32_t> symbols(40, 7);
    std::vector<std::uint64_t> begins;
    for (std::uint64_t i = 0; i <= 40; ++i) begins.push_back(i);
    const gpu::StringsAsSource source({begins, symbols.data()});
    const gpu::StringSource* const sources[] = {&source};
    std::vector<std::uint32_t> all(40);
    std::iota(all.begin(), all.end(), 0u);
    Execution execution(1);
    gpu::SymbolCodes codes;
    gpu::CodedStrings rows, columns;
    ASSERT_TRUE(codes.set(sources, execution).ok());
    ASSERT_TRUE(rows.set(source, all, &codes, execution).ok());
    ASSERT_TRUE(columns.set(source, all, &codes, execution).ok());
    gpu::PairSearch search(work, ring(), execution);
    ASSERT_TRUE(search.set(StringMetric::edit_rate, codes.bits(), rows, &columns, {}).ok());
    search.begin_columns(std::vector<std::uint32_t>(rows.places(), 16));
    ASSERT_TRUE(search.limit(0).ok());
    std::set<std::uint32_t> found;
    const auto take = [&](const gpu::PlaceRange&, const std::vector<gpu::StringPair>& pairs,
                          gpu::RowLimits*) {
        EXPECT_EQ(pairs.size(), 40u * 24u);
        for (const gpu::StringPair& pair : pairs) found.insert(columns.numbers[pair.column]);
        return Status();
    };
    ASSERT_TRUE(search.run(false, take).ok());
    EXPECT_EQ(found, std::set<std::uint32_t>(all.begin() + 16, all.end()));
}

}  // namespace
}  // namespace gputext
