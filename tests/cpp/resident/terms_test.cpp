// The store, of terms of texts: what is found, in which chunks, with which words, and what goes.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "cpp/resident/resident_values.hpp"
#include "cpp/resident/term_chunks.hpp"
#include "tests/support/resident_term_files.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using namespace testing;

constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;
constexpr std::size_t kWords = 10;

const ValueKind kTerms{7, ValueForm::counted_terms, ElementType::float32, 0, 123};
const ValueKind kPositions{7, ValueForm::word_positions, ElementType::float32, 0, 123};
const ValueKind kVectors{7, ValueForm::vector, ElementType::float32, 10};

/// A connection of a session, and what it asks the store for.
class Session {
public:
    explicit Session(ResidentValues& store) : store_(store) {}

    /// Returns the rows that are missing.
    std::vector<std::uint32_t> find(const ResidentValueList& values, const ValueKind& kind = kTerms,
                                    std::uint64_t horizon = 100, std::uint64_t run = 1) {
        values_ = values;
        const FindValues message{run, horizon, kind, static_cast<std::uint32_t>(values.size())};
        const auto pointers = term_pointer_file(values);
        const Status status = store_.find(message, pointers.get(), request_, {});
        EXPECT_TRUE(status.ok()) << status.message();
        return ResidentValues::missing(request_);
    }

    Result<std::uint64_t> keep(const std::string& words = "word") {
        FilesOfTerms terms(values_, ResidentValues::missing(request_), some_words(words, kWords));
        return store_.add_terms(request_, terms.message, std::move(terms.files));
    }

    /// The terms of all rows, which have to be what the rows point to.
    MappedTerms take() {
        auto given = store_.take_terms(request_);
        EXPECT_TRUE(given.ok()) << given.status().message();
        if (!given.ok()) return {};
        ResidentValues::TakenChunks& chunks = *given;
        TermsTaken taken{{static_cast<std::uint32_t>(chunks.chunks.size()), chunks.values}, {}};
        taken.files.push_back(std::move(chunks.list));
        for (const auto& chunk : chunks.chunks) {
            auto files = chunk->duplicate_files();
            EXPECT_TRUE(files.ok());
            for (FileDescriptor& file : *files) taken.files.push_back(std::move(file));
        }
        EXPECT_EQ(taken.files.size(), taken.reply.files());
        auto terms = taken.map();
        EXPECT_TRUE(terms.ok()) << terms.status().message();
        if (!terms.ok()) return {};
        expect_terms(*terms, values_);
        return std::move(*terms);
    }

    /// Finds, keeps what is missing, and takes all.
    MappedTerms read(const ResidentValueList& values, const std::string& words = "word",
                     const ValueKind& kind = kTerms, std::uint64_t horizon = 100) {
        if (!find(values, kind, horizon).empty()) {
            const auto kept = keep(words);
            EXPECT_TRUE(kept.ok()) << kept.status().message();
        }
        return take();
    }

    ValueRequest& request() { return request_; }

private:
    ResidentValues& store_;
    ValueRequest request_;
    ResidentValueList values_;
};

class ResidentTerms : public ::testing::Test {
protected:
    void set_limits(ResidentLimits limits) { store_.emplace(limits); }
    ResidentValues& store() { return *store_; }
    std::size_t missing(const ResidentValueList& values, const ValueKind& kind = kTerms,
                        std::uint64_t horizon = 100) {
        return Session(store()).find(values, kind, horizon).size();
    }
    MappedTerms read(const ResidentValueList& values, const std::string& words = "word",
                     const ValueKind& kind = kTerms) {
        return Session(store()).read(values, words, kind);
    }

    std::optional<ResidentValues> store_{std::in_place, ResidentLimits{kMuch, 1000}};
};

/// What a chunk of these counts for.
std::uint64_t cost(const ResidentValueList& values, const std::string& words = "word") {
    return bytes_of_all(values).size() + word_file(some_words(words, kWords)).size() +
           96 * values.size();
}

ResidentValueList slice(const ResidentValueList& values, std::size_t begin, std::size_t end) {
    return {values.begin() + static_cast<std::ptrdiff_t>(begin),
            values.begin() + static_cast<std::ptrdiff_t>(end)};
}

ResidentValueList joined(ResidentValueList first, const ResidentValueList& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

TEST_F(ResidentTerms, AreFoundWithTheirWords) {
    const auto values = some_terms(3, 1000, 500);
    Session first(store());
    EXPECT_EQ(first.find(values).size(), 500u);
    const auto id = first.keep("own");
    ASSERT_TRUE(id.ok()) << id.status().message();
    ASSERT_NE(*id, 0u);
    // Whoever has read all of them can take them, too.
    const MappedTerms own = first.take();
    ASSERT_EQ(own.chunks().size(), 1u);
    EXPECT_EQ(own.chunks()[0].id, *id);

    Session second(store());
    EXPECT_TRUE(second.find(values).empty());
    const MappedTerms terms = second.take();
    ASSERT_EQ(terms.chunks().size(), 1u);
    EXPECT_EQ(terms.chunks()[0].id, *id);
    EXPECT_EQ(words_of(terms.chunks()[0]), some_words("own", kWords));
    EXPECT_EQ(store().bytes(), cost(values, "own"));
}

TEST_F(ResidentTerms, AreFoundInAnyOrder) {
    const auto values = some_terms(3, 1, 500);
    const std::uint64_t id = read(values).chunks()[0].id;
    auto others = joined(slice(values, 100, 400), slice(values, 300, 310));
    std::shuffle(others.begin(), others.end(), std::mt19937(1));
    Session session(store());
    EXPECT_TRUE(session.find(others).empty());
    EXPECT_EQ(session.take().chunks()[0].id, id) << "nothing is copied";
    EXPECT_EQ(store().bytes(), cost(values));
}

TEST_F(ResidentTerms, TellSourcesFormsAndTablesApart) {
    const auto values = some_terms(3, 1, 10);
    read(values);
    EXPECT_EQ(missing(values), 0u);
    EXPECT_EQ(missing(some_terms(4, 1, 10)), 10u);
    EXPECT_EQ(missing(values, kPositions), 10u);
    ValueKind other = kTerms;
    ++other.source;
    EXPECT_EQ(missing(values, other), 10u);
    auto parsed_otherwise = values;
    for (ResidentValue& value : parsed_otherwise) ++value.content;
    read(parsed_otherwise, "word", other);
    read(parsed_otherwise, "word", other);
    read(values);
}

TEST_F(ResidentTerms, LieInSeveralChunks) {
    const auto values = some_terms(3, 1, 900);
    const std::uint64_t first = read(slice(values, 0, 300), "first").chunks()[0].id;
    const std::uint64_t second = read(slice(values, 300, 700), "second").chunks()[0].id;
    auto all = values;
    std::shuffle(all.begin(), all.end(), std::mt19937(1));
    std::sort(all.begin() + 450, all.end(),
              [](const auto& one, const auto& other) { return one.number < other.number; });
    Session session(store());
    EXPECT_EQ(session.find(all).size(), 200u);
    const auto id = session.keep("third");
    ASSERT_TRUE(id.ok());
    const MappedTerms terms = session.take();
    ASSERT_EQ(terms.chunks().size(), 3u);
    const std::map<std::uint64_t, std::string> names{
        {first, "first"}, {second, "second"}, {*id, "third"}};
    for (const auto& chunk : terms.chunks()) {
        ASSERT_TRUE(names.contains(chunk.id));
        EXPECT_EQ(words_of(chunk), some_words(names.at(chunk.id), kWords));
    }
    EXPECT_EQ(missing(all), 0u);
    EXPECT_EQ(store().bytes(), cost(slice(values, 0, 300), "first") +
                                   cost(slice(values, 300, 700), "second") +
                                   cost(slice(values, 700, 900), "third"));
}

TEST_F(ResidentTerms, AreUsedOnlyBeforeTheirHorizon) {
    auto values = some_terms(3, 1, 100);
    read(values);
    for (auto& value : values) value.since = 99;
    EXPECT_EQ(missing(values), 0u);
    for (auto& value : values) value.since = 100;
    EXPECT_EQ(missing(values), 100u);
    // The numbers have been given to other texts, of other sizes.
    for (auto& value : values) {
        value.since = 150;
        value.content += 1;
        value.size = 4 * (value.number % 11);
    }
    Session(store()).read(values, "word", kTerms, 200);
    read(values);
    EXPECT_EQ(missing(values), 0u);
    EXPECT_EQ(store().bytes(), cost(values)) << "the old ones are gone";
}

TEST_F(ResidentTerms, CanBeTakenWithoutBeingKept) {
    set_limits({0, 1000});
    const auto values = some_terms(3, 1, 100);
    Session session(store());
    EXPECT_EQ(session.find(values).size(), 100u);
    const auto kept = session.keep();
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(*kept, 0u);
    EXPECT_EQ(session.take().chunks().size(), 1u);
    EXPECT_EQ(missing(values), 100u);
    EXPECT_EQ(store().bytes(), 0u);
}

TEST_F(ResidentTerms, OfTextsWithoutWordsAreKept) {
    auto values = some_terms(3, 1, 20);
    for (auto& value : values) value.size = 0;
    read(values);
    EXPECT_EQ(missing(values), 0u);
    read(values);
    EXPECT_EQ(store().tables().at(0).values, 20u);
    Session nothing(store());
    EXPECT_TRUE(nothing.find({}).empty());
    EXPECT_TRUE(nothing.take().chunks().empty());
}

// ---- Many chunks ----

/// Tables of unlike sizes, each in a chunk of its own: so many rows of each.
ResidentValueList in_chunks(ResidentValues& store, const std::vector<std::size_t>& rows) {
    ResidentValueList all;
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
        const auto values = some_terms(i + 1, 1, rows[i]);
        Session(store).read(values);
        all = joined(std::move(all), values);
    }
    std::shuffle(all.begin(), all.end(), std::mt19937(1));
    return all;
}

std::vector<std::size_t> sizes_of_chunks(std::size_t chunks) {
    std::vector<std::size_t> rows(chunks);
    for (std::size_t i = 0; i < chunks; ++i) rows[i] = 10 + (i * 7) % chunks;
    return rows;
}

TEST_F(ResidentTerms, ComeTogetherWhenTheyLieInTooManyChunks) {
    auto rows = sizes_of_chunks(40);
    const auto all = in_chunks(store(), rows);
    std::sort(rows.begin(), rows.end());
    const std::size_t fewest = std::accumulate(rows.begin(), rows.begin() + 9, std::size_t{0});
    Session session(store());
    EXPECT_EQ(session.find(all).size(), fewest) << "of the smallest chunks";
    ASSERT_NE(*session.keep(), 0u);
    EXPECT_EQ(session.take().chunks().size(), kMostTermChunks);
    // The small chunks have been given up, as others have their values.
    EXPECT_EQ(store().given_up().size(), 9u);
    std::uint64_t bytes = bytes_of_all(all).size() + 96 * all.size();
    EXPECT_EQ(store().bytes(), bytes + 32 * word_file(some_words("word", kWords)).size());
    EXPECT_EQ(missing(all), 0u);
    EXPECT_EQ(read(all).chunks().size(), kMostTermChunks);
}

TEST_F(ResidentTerms, MayLieInAsManyChunksAsAReplyHas) {
    const auto rows = sizes_of_chunks(kMostTermChunks);
    auto all = in_chunks(store(), rows);
    EXPECT_EQ(missing(all), 0u);
    EXPECT_EQ(read(all).chunks().size(), kMostTermChunks);
    // One row more is missing, and makes the smallest chunk missing with it.
    all = joined(some_terms(99, 1, 1), all);
    Session session(store());
    EXPECT_EQ(session.find(all).size(), 1 + *std::min_element(rows.begin(), rows.end()));
    ASSERT_NE(*session.keep(), 0u);
    EXPECT_EQ(session.take().chunks().size(), kMostTermChunks);
    EXPECT_EQ(missing(all), 0u);
}

TEST_F(ResidentTerms, OfASlowSessionStayWhereTheyWere) {
    const auto all = in_chunks(store(), sizes_of_chunks(40));
    // With an early horizon its values are no better than those that are there.
    Session session(store());
    const std::size_t left_out = session.find(all, kTerms, 50).size();
    EXPECT_GT(left_out, 0u);
    const auto kept = session.keep();
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(*kept, 0u);
    EXPECT_EQ(session.take().chunks().size(), kMostTermChunks);
    EXPECT_EQ(missing(all), left_out);
}

// ---- Limits ----

TEST_F(ResidentTerms, CountTheirWordsAndFiles) {
    const auto a = some_terms(1, 1, 100), b = some_terms(2, 1, 100);
    set_limits({cost(a) + cost(b) - 1, 1000});
    read(a);
    read(b);
    EXPECT_EQ(missing(a), 100u);
    EXPECT_EQ(missing(b), 0u);
    set_limits({cost(a) + cost(b), 1000});
    read(a);
    read(b);
    EXPECT_EQ(missing(a) + missing(b), 0u);
    set_limits({cost(a, "word") - 1, 1000});
    read(a);
    EXPECT_EQ(missing(a), 100u);
    // Two files each.
    set_limits({kMuch, 3});
    read(a);
    read(b);
    EXPECT_EQ(missing(a), 100u);
    EXPECT_EQ(missing(b), 0u);
}

TEST_F(ResidentTerms, AreListedAndForgotten) {
    const auto a = some_terms(1, 1, 100), b = some_terms(2, 1, 300);
    read(joined(a, b));
    missing(a);
    const std::uint64_t words = word_file(some_words("word", kWords)).size();
    const auto tables = store().tables();
    ASSERT_EQ(tables.size(), 2u);
    EXPECT_EQ(tables[0].values, 100u);
    EXPECT_EQ(tables[0].bytes, bytes_of_all(a).size() + words / 4);
    EXPECT_EQ(tables[0].hits, 100u);
    EXPECT_EQ(tables[0].misses, 100u);
    EXPECT_EQ(tables[1].bytes, bytes_of_all(b).size() + words * 3 / 4);

    Session slow(store());
    EXPECT_TRUE(slow.find(joined(b, a)).empty());
    EXPECT_EQ(store().forget(7, 2), 300u);
    EXPECT_EQ(missing(b), 300u);
    EXPECT_EQ(missing(a), 0u);
    EXPECT_EQ(store().forget(7, 0), 100u);
    EXPECT_EQ(store().bytes(), 0u);
    slow.take();
}

TEST_F(ResidentTerms, AreForgottenInAnotherRun) {
    const auto values = some_terms(3, 1, 100);
    read(values);
    Session early(store());
    EXPECT_EQ(early.find(some_terms(4, 1, 10)).size(), 10u);
    EXPECT_EQ(Session(store()).find(values, kTerms, 100, 2).size(), 100u);
    const auto kept = early.keep();
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(*kept, 0u);
    early.take();
}

// ---- What must not come ----

TEST_F(ResidentTerms, AreOneSortOfValues) {
    const auto values = some_terms(1, 1, 10);
    const auto pointers = term_pointer_file(values);
    const auto with_sizes = pointer_file(values);
    ValueRequest request;
    const auto find = [&](const ValueKind& kind, int file) {
        return store().find({1, 100, kind, 10}, file, request, {}).code();
    };
    EXPECT_EQ(find(kTerms, with_sizes.get()), ErrorCode::invalid_argument);
    ValueKind wrong = kTerms;
    wrong.dimensions = 3;
    EXPECT_EQ(find(wrong, pointers.get()), ErrorCode::invalid_argument);
    const auto vectors = pointer_file(some_values(1, 1, 10, 40));
    wrong = kVectors;
    wrong.source = 1;
    EXPECT_EQ(find(wrong, vectors.get()), ErrorCode::invalid_argument);

    Execution execution(1);
    const auto add_terms = [&] {
        FilesOfTerms terms(values, ResidentValues::missing(request), {});
        return store().add_terms(request, terms.message, std::move(terms.files)).status().code();
    };
    const auto add_values = [&](std::uint64_t size) {
        ValueFiles files(ByteList(static_cast<std::size_t>(size), 1));
        return store().add(request, {size, {}}, std::move(files.files)).status().code();
    };
    const auto take_terms = [&] { return store().take_terms(request).status().code(); };
    const auto take_values = [&] { return store().take(request, {}, execution).status().code(); };
    EXPECT_EQ(add_terms(), ErrorCode::invalid_argument) << "without a request";
    EXPECT_EQ(take_terms(), ErrorCode::invalid_argument);

    ASSERT_EQ(find(kVectors, vectors.get()), ErrorCode::ok);
    EXPECT_EQ(add_terms(), ErrorCode::invalid_argument);
    ASSERT_EQ(add_values(400), ErrorCode::ok);
    EXPECT_EQ(take_terms(), ErrorCode::invalid_argument);
    ASSERT_EQ(find(kVectors, vectors.get()), ErrorCode::ok);
    EXPECT_EQ(take_terms(), ErrorCode::invalid_argument);
    EXPECT_EQ(take_values(), ErrorCode::ok);

    ASSERT_EQ(find(kTerms, pointers.get()), ErrorCode::ok);
    EXPECT_EQ(add_values(0), ErrorCode::invalid_argument);
    EXPECT_EQ(take_values(), ErrorCode::invalid_argument);
    EXPECT_EQ(take_terms(), ErrorCode::invalid_argument) << "they are missing";
    ASSERT_EQ(add_terms(), ErrorCode::ok);
    EXPECT_EQ(add_terms(), ErrorCode::invalid_argument) << "they are not missing any more";
    EXPECT_EQ(take_values(), ErrorCode::invalid_argument);
    EXPECT_EQ(take_terms(), ErrorCode::ok);
    EXPECT_EQ(take_terms(), ErrorCode::invalid_argument) << "once";
    EXPECT_EQ(take_values(), ErrorCode::invalid_argument);
}

TEST_F(ResidentTerms, AreRefusedWhereFilesDoNotAddUp) {
    const auto values = some_terms(1, 1, 10);
    Session session(store());
    const auto rows = session.find(values);
    const auto keep = [&](auto&& spoil) {
        FilesOfTerms terms(values, rows, {"a", "b"});
        spoil(terms);
        return store()
            .add_terms(session.request(), terms.message, std::move(terms.files))
            .status()
            .code();
    };
    using Ends = std::vector<std::uint64_t>;
    const std::uint64_t size = bytes_of_all(values).size();
    const auto with_ends = [&](const Ends& ends) {
        return keep([&](FilesOfTerms& terms) { terms.files[1] = sealed_array(ends); });
    };
    ASSERT_GT(size, 100u);
    for (const Ends& ends :
         {Ends(9, size), Ends(11, size), Ends(10, size - 4), Ends(10, size + 4), Ends(10, 0),
          Ends{0, 8, 4, size, size, size, size, size, size, size},
          Ends{0, 2, size, size, size, size, size, size, size, size},
          Ends{0, size + 4, size, size, size, size, size, size, size, size},
          Ends{UINT64_MAX - 3, size, size, size, size, size, size, size, size, size}})
        EXPECT_EQ(with_ends(ends), ErrorCode::invalid_argument);
    EXPECT_EQ(keep([](FilesOfTerms& terms) { ++terms.message.bytes; }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(keep([](FilesOfTerms& terms) { terms.message.bytes -= 4; }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(keep([](FilesOfTerms& terms) { ++terms.message.word_bytes; }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(keep([](FilesOfTerms& terms) { terms.files.pop_back(); }),
              ErrorCode::invalid_argument);
    for (std::size_t file = 0; file < 3; ++file) {
        SCOPED_TRACE(file);
        EXPECT_EQ(keep([&](FilesOfTerms& terms) { terms.files[file] = {}; }),
                  ErrorCode::invalid_argument);
        EXPECT_EQ(
            keep([&](FilesOfTerms& terms) {
                FileDescriptor changeable(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
                const off_t length = lseek(terms.files[file].get(), 0, SEEK_END);
                EXPECT_EQ(ftruncate(changeable.get(), length), 0);
                terms.files[file] = std::move(changeable);
            }),
            ErrorCode::invalid_argument);
    }
    EXPECT_EQ(store().bytes(), 0u);
    EXPECT_EQ(ResidentValues::missing(session.request()), rows) << "the request is as it was";
    ASSERT_TRUE(session.keep().ok());
    session.take();
    EXPECT_EQ(missing(values), 0u);
}

TEST(TermChunks, ChecksEndsOfValues) {
    using Ends = std::vector<std::uint64_t>;
    constexpr std::uint64_t large = std::uint64_t{1} << 32;
    EXPECT_TRUE(check_ends({}, 0).ok());
    EXPECT_TRUE(check_ends(Ends{0, 4, 4, 12}, 12).ok());
    EXPECT_TRUE(check_ends(Ends{large - 4, 2 * large - 8}, 2 * large - 8).ok());
    EXPECT_FALSE(check_ends({}, 4).ok());
    EXPECT_FALSE(check_ends(Ends{0, large}, large).ok()) << "4 GB, which no place says";
}

// ---- Compared with a simple model ----

/// Texts come, go and change, their numbers are given again, and sessions read them at different
/// times. What a session takes is what its rows pointed to when it asked.
TEST_F(ResidentTerms, AreAlwaysThoseOfTheRow) {
    // The first ones have all limits.
    const std::uint32_t seeds = testing::tests_are_small() ? 3 : 8;
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto below = [&](std::uint64_t end) { return random() % end; };
        set_limits({seed % 2 == 0 ? kMuch : 30000, seed % 3 == 0 ? 40u : 1000u});
        std::map<std::uint32_t, ResidentValue> rows;
        Session sessions[] = {Session(store()), Session(store()), Session(store()),
                              Session(store())};
        std::vector<bool> asked(4);
        std::uint64_t now = 1000, found = 0, wanted = 0;
        for (int step = 0; step < 2000 && !HasFailure(); ++step) {
            for (std::uint64_t i = 0; i < below(4); ++i) {
                const auto number = static_cast<std::uint32_t>(below(400));
                ++now;
                if (rows.erase(number) == 0)
                    rows[number] = {1 + number % 3, number, now, now, 4 * below(30)};
            }
            const std::size_t at = below(4);
            if (!asked[at]) {
                ResidentValueList values;
                for (const auto& [number, value] : rows) values.push_back(value);
                if (below(2) == 0) std::shuffle(values.begin(), values.end(), random);
                values.resize(values.size() / (1 + below(3)));
                for (auto& value : values)
                    if (below(100) == 0) value.since = ValuePointer::never;
                wanted += values.size();
                found +=
                    values.size() - sessions[at].find(values, kTerms, now + 1 - below(20)).size();
                asked[at] = true;
            } else {
                if (sessions[at].request().missing > 0) {
                    ASSERT_TRUE(sessions[at].keep().ok());
                }
                EXPECT_LE(sessions[at].take().chunks().size(), kMostTermChunks);
                asked[at] = false;
            }
            store().given_up();
            EXPECT_LE(store().bytes(), store().limit());
        }
        EXPECT_GT(found, wanted / 4);
    }
}

}  // namespace
}  // namespace gputext
