// What a session takes as the terms of texts, and what it refuses.

#include "cpp/link/resident_answers.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/resident_term_files.hpp"

namespace gputext {
namespace {

using namespace testing;

/// A reply with two chunks, which a test may spoil before it is read.
struct Reply {
    TermsTaken taken() {
        ByteList list(chunks.size() * sizeof(TermChunk) + places.size() * sizeof(TermPlace));
        std::memcpy(list.data(), chunks.data(), chunks.size() * sizeof(TermChunk));
        std::memcpy(list.data() + chunks.size() * sizeof(TermChunk), places.data(),
                    places.size() * sizeof(TermPlace));
        TermsTaken taken{{2, values}, {}};
        taken.files.push_back(sealed_file(list));
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            taken.files.push_back(sealed_file(bytes[i]));
            taken.files.push_back(sealed_file(words[i]));
        }
        return taken;
    }
    bool refused() { return taken().map().status().code() == ErrorCode::unavailable; }
    std::uint64_t& begin(std::size_t chunk, std::size_t word) {
        return reinterpret_cast<std::uint64_t*>(words[chunk].data())[word];
    }

    std::uint64_t values = 3;
    ByteList bytes[2] = {ByteList(100, 1), ByteList(40, 2)};
    ByteList words[2] = {word_file({"one", "", "two"}), word_file({})};
    std::vector<TermChunk> chunks{{11, 100, 3, words[0].size()}, {12, 40, 0, 8}};
    std::vector<TermPlace> places{{0, 60, 40}, {1, 40, 0}, {1, 0, 40}};
};

TEST(MappedTerms, AreMapped) {
    auto mapped = Reply().taken().map();
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    const MappedTerms terms = std::move(*mapped);
    ASSERT_EQ(terms.chunks().size(), 2u);
    EXPECT_EQ(terms.chunks()[0].id, 11u);
    EXPECT_EQ(words_of(terms.chunks()[0]), (std::vector<std::string>{"one", "", "two"}));
    EXPECT_EQ(terms.chunks()[1].id, 12u);
    EXPECT_EQ(terms.chunks()[1].words.size(), 0u);
    ASSERT_EQ(terms.places().size(), 3u);
    EXPECT_EQ(terms.value(terms.places()[0]).size(), 60u);
    EXPECT_EQ(terms.value(terms.places()[0]).data(), terms.chunks()[0].bytes.data() + 40);
    EXPECT_EQ(terms.value(terms.places()[1]).front(), 2);
    EXPECT_TRUE(terms.value(terms.places()[2]).empty());
}

TEST(MappedTerms, OfNoTextsAreNone) {
    TermsTaken taken{{0, 0}, {}};
    taken.files.push_back(sealed_file({}));
    const auto terms = taken.map();
    ASSERT_TRUE(terms.ok());
    EXPECT_TRUE(terms->places().empty() && terms->chunks().empty());
}

TEST(MappedTerms, AreRefusedOutsideTheirChunks) {
    const TermPlace wrong[] = {
        {2, 0, 0},   {UINT32_MAX, 0, 0},     {0, 61 + 3, 40},        {0, 4, 100},
        {0, 0, 104}, {0, 4, UINT64_MAX - 3}, {1, UINT32_MAX - 3, 0}, {0, 3, 0},
        {0, 4, 2}};
    for (const TermPlace& place : wrong) {
        Reply reply;
        reply.places[1] = place;
        EXPECT_TRUE(reply.refused()) << place.chunk << ' ' << place.size << ' ' << place.offset;
    }
}

TEST(MappedTerms, AreRefusedWithoutAllOfTheirWords) {
    const auto refused = [](std::size_t word, std::uint64_t begin) {
        Reply reply;
        reply.begin(0, word) = begin;
        return reply.refused();
    };
    EXPECT_FALSE(refused(1, 3));
    EXPECT_TRUE(refused(0, 1));
    EXPECT_TRUE(refused(2, 2));
    EXPECT_TRUE(refused(2, UINT64_MAX));
    EXPECT_TRUE(refused(3, 5));
    EXPECT_TRUE(refused(3, 7));
    for (const std::uint64_t words : {std::uint64_t{2}, std::uint64_t{4}, std::uint64_t{UINT32_MAX},
                                      UINT64_MAX, UINT64_MAX / 8}) {
        Reply reply;
        reply.chunks[0].words = words;
        EXPECT_TRUE(reply.refused()) << words;
    }
}

TEST(MappedTerms, AreRefusedInOtherFiles) {
    Reply reply;
    ++reply.chunks[0].bytes;
    EXPECT_TRUE(reply.refused());
    reply = {};
    --reply.chunks[0].word_bytes;
    EXPECT_TRUE(reply.refused());
    reply = {};
    reply.values = 4;
    EXPECT_TRUE(reply.refused());
    reply.values = 2;
    EXPECT_TRUE(reply.refused());
    for (std::size_t file = 0; file < 5; ++file) {
        SCOPED_TRACE(file);
        TermsTaken taken = Reply().taken();
        const off_t size = lseek(taken.files[file].get(), 0, SEEK_END);
        FileDescriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        ByteList bytes(static_cast<std::size_t>(size));
        ASSERT_EQ(pread(taken.files[file].get(), bytes.data(), bytes.size(), 0), size);
        ASSERT_TRUE(write_file(unsealed.get(), bytes, 0).ok());
        taken.files[file] = std::move(unsealed);
        EXPECT_EQ(taken.map().status().code(), ErrorCode::unavailable);
        ASSERT_TRUE(seal_memory_file(taken.files[file].get()).ok());
        EXPECT_TRUE(taken.map().ok());
        taken.files[file] = {};
        EXPECT_EQ(taken.map().status().code(), ErrorCode::unavailable);
    }
}

}  // namespace
}  // namespace gputext
