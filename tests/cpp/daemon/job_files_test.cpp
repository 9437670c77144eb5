#include "cpp/daemon/job_files.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/resident_value_files.hpp"

namespace gputext {
namespace {

using namespace testing;

/// Further descriptors of the same files, as a message brings them.
std::vector<FileDescriptor> duplicates(const ResidentChunk& chunk) {
    auto files = chunk.duplicate_files();
    EXPECT_TRUE(files.ok());
    return std::move(*files);
}

Status map(InputBytes& input, JobFiles& files, const PartsShape& parts, std::uint64_t size,
           std::uint64_t resident, Arrival arrival = Arrival::awaited, Stop stop = {}) {
    return input.map(files, parts, size, resident, arrival, stop);
}

TEST(JobFiles, ReadWhatIsKeptWhereItIs) {
    const auto ranges = std::make_shared<ResidentRanges>();
    const auto chunks = ResidentChunks::create(ranges);
    const ByteList bytes = bytes_of_all(some_values(1, 1, 100, 200));
    ValueFiles own(bytes, 1), same(bytes, 1);
    auto chunk = chunks->adopt(std::move(own.files), own.shape, bytes.size());
    ASSERT_TRUE(chunk.ok());
    const std::uint64_t id = (*chunk)->id();
    const std::uint8_t* const kept = (*chunk)->bytes().data();
    const auto files = duplicates(**chunk);

    const auto address = [&](std::span<const FileDescriptor> given, std::uint64_t resident,
                             const ResidentChunks* known) {
        JobFiles job_files(given, known);
        InputBytes input;
        EXPECT_TRUE(map(input, job_files, own.shape, bytes.size(), resident).ok());
        EXPECT_TRUE(job_files.take(0).empty());
        EXPECT_EQ(ByteList(input.bytes().begin(), input.bytes().end()), bytes);
        return input.bytes().data();
    };
    EXPECT_EQ(address(files, id, chunks.get()), kept);
    EXPECT_NE(address(files, 0, chunks.get()), kept);
    EXPECT_NE(address(files, id + 1, chunks.get()), kept);
    EXPECT_NE(address(files, id, nullptr), kept);
    EXPECT_NE(address(same.files, id, chunks.get()), kept) << "these are other files";

    // The job holds it.
    InputBytes input;
    JobFiles job_files(files, chunks.get());
    ASSERT_TRUE(map(input, job_files, own.shape, bytes.size(), id).ok());
    *chunk = nullptr;
    EXPECT_EQ(input.bytes().data(), kept);
    EXPECT_TRUE(ranges->has(id));
    input = {};
    EXPECT_FALSE(ranges->has(id));
    EXPECT_NE(address(files, id, chunks.get()), nullptr) << "from the files then";

    JobFiles too_long(files, chunks.get());
    EXPECT_EQ(map(input, too_long, own.shape, bytes.size() + 1, id).code(),
              ErrorCode::invalid_argument);
}

TEST(JobFiles, AwaitWhatIsBeingFilled) {
    const auto chunks = ResidentChunks::create(nullptr);
    const ByteList bytes = bytes_of_all(some_values(1, 1, 100, 200));
    auto reserved = chunks->reserve(bytes.size(), nullptr);
    ASSERT_TRUE(reserved.ok());
    std::shared_ptr<ResidentChunk> chunk = std::move(*reserved);
    const std::uint64_t id = chunk->id();
    const PartsShape shape = chunk->shape();
    const auto files = duplicates(*chunk);
    InputBytes input;
    const Stop stopped{[](void*) { return true; }, nullptr};
    const auto status_of = [&](std::uint64_t resident, Arrival arrival) {
        JobFiles job_files(files, chunks.get());
        return map(input, job_files, shape, bytes.size(), resident, arrival, stopped).code();
    };
    EXPECT_EQ(status_of(id, Arrival::awaited), ErrorCode::cancelled);
    EXPECT_EQ(status_of(id, Arrival::later), ErrorCode::ok);
    EXPECT_EQ(input.known()->filling(), &chunk->filling());
    EXPECT_EQ(status_of(0, Arrival::later), ErrorCode::invalid_argument) << "it is not sealed";
    EXPECT_EQ(status_of(id + 1, Arrival::later), ErrorCode::unavailable) << "another gputextd's";

    std::thread filling([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_TRUE(chunk->write(0, bytes).ok());
        chunk->end_filling({});
    });
    JobFiles job_files(files, chunks.get());
    EXPECT_TRUE(map(input, job_files, shape, bytes.size(), id).ok());
    EXPECT_EQ(ByteList(input.bytes().begin(), input.bytes().end()), bytes);
    filling.join();

    reserved = chunks->reserve(bytes.size(), nullptr);
    ASSERT_TRUE(reserved.ok());
    const auto never = duplicates(**reserved);
    (*reserved)->end_filling({ErrorCode::out_of_memory, "no memory"});
    JobFiles of_never(never, chunks.get());
    EXPECT_EQ(map(input, of_never, shape, bytes.size(), (*reserved)->id()).code(),
              ErrorCode::unavailable);
}

}  // namespace
}  // namespace gputext
