#include "cpp/link/resident_answers.hpp"

#include <gtest/gtest.h>

#include "tests/support/resident_value_files.hpp"

namespace gputext {
namespace {

using namespace testing;

template <class T>
std::vector<FileDescriptor> one_file(const std::vector<T>& array) {
    std::vector<FileDescriptor> files;
    files.push_back(sealed_file(
        {reinterpret_cast<const std::uint8_t*>(array.data()), array.size() * sizeof(T)}));
    return files;
}

using Numbers = std::vector<std::uint32_t>;

Result<Numbers> missing(const FoundValues& reply, std::vector<FileDescriptor> files) {
    const auto found = read_reply(reply, std::move(files));
    if (!found.ok()) return found.status();
    return found->missing();
}

TEST(ResidentAnswers, SayWhichRowsAreMissing) {
    EXPECT_EQ(*missing({10, 3}, one_file<std::uint32_t>({0, 4, 9})), (Numbers{0, 4, 9}));
    EXPECT_EQ(*missing({3, 3}, {}), (Numbers{0, 1, 2}));
    EXPECT_EQ(*missing({3, 0}, {}), Numbers());
    EXPECT_EQ(*missing({0, 0}, {}), Numbers());
    for (const Numbers& wrong : {Numbers{4, 0, 9}, Numbers{0, 4, 4}, Numbers{0, 4, 10},
                                 Numbers{0, 4}, Numbers{0, 4, 5, 6}})
        EXPECT_EQ(missing({10, 3}, one_file(wrong)).status().code(), ErrorCode::unavailable);
}

TEST(ResidentAnswers, HaveTheBytesOfAllValues) {
    const ByteList bytes = bytes_of_all(some_values(1, 1, 100, 200));
    ValueFiles files(bytes, 1);
    const auto taken =
        read_reply(TakenValues{bytes.size(), files.shape, 0}, std::move(files.files));
    ASSERT_TRUE(taken.ok());
    const auto mapped = taken->map();
    ASSERT_TRUE(mapped.ok());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), mapped->bytes().begin()));
    const auto longer = read_reply(TakenValues{bytes.size() + 1, {}, 0}, one_file(bytes));
    ASSERT_TRUE(longer.ok());
    EXPECT_EQ(longer->map().status().code(), ErrorCode::unavailable);
}

TEST(ResidentAnswers, ListTables) {
    const std::vector<ResidentTable> tables{{1, 2, 3, 4, 5, 6, 7, 0.5}, {1, 3, 3, 4, 5, 6, 7, 0.5}};
    const auto kept = read_reply(ResidentTables{2, 8, 100}, one_file(tables));
    ASSERT_TRUE(kept.ok());
    ASSERT_EQ(kept->tables().size(), 2u);
    EXPECT_EQ(kept->tables()[1].table, 3u);
    EXPECT_EQ(kept->tables()[1].idle_seconds, 0.5);
    EXPECT_TRUE(read_reply(ResidentTables{0, 0, 100}, {})->tables().empty());
    EXPECT_EQ(read_reply(ResidentTables{3, 8, 100}, one_file(tables)).status().code(),
              ErrorCode::unavailable);
}

}  // namespace
}  // namespace gputext
