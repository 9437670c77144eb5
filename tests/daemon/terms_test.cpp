// gputextd as a process of its own, and the terms of texts that it keeps.

#include <signal.h>

#include <optional>
#include <string>

#include "tests/support/daemon_process.hpp"
#include "tests/support/resident_term_files.hpp"

namespace gputext {
namespace {

using namespace testing;

const ValueKind kTerms{7, ValueForm::word_positions, ElementType::float32, 0, 123};

class GputextdTerms : public ::testing::Test {
protected:
    void start(const std::string& memory = "10000000") {
        daemon_.emplace(socket_,
                        DaemonProcess::Arguments{"--resident-memory=" + memory, "--allow-faults"});
    }
    std::unique_ptr<DaemonConnection> connect() { return connect_to(socket_); }

    /// The rows that are missing.
    static Result<std::vector<std::uint32_t>> find(DaemonConnection& connection,
                                                   const ResidentValueList& values) {
        GPUTEXT_TRY(
            connection.find_values({1, 100, kTerms, static_cast<std::uint32_t>(values.size())},
                                   term_pointer_file(values).get()));
        const auto found = next<ValuesFound>(connection);
        if (!found.ok()) return found.status();
        return found->missing();
    }

    static Result<std::uint64_t> keep(DaemonConnection& connection, const ResidentValueList& values,
                                      std::span<const std::uint32_t> rows,
                                      const std::string& words = "word") {
        const FilesOfTerms terms(values, rows, some_words(words, 100));
        GPUTEXT_TRY(connection.add_terms(terms.message, terms.descriptors()));
        const auto kept = next<AddedValues>(connection);
        if (!kept.ok()) return kept.status();
        return kept->resident;
    }

    static Result<MappedTerms> take(DaemonConnection& connection) {
        GPUTEXT_TRY(connection.take_terms());
        const auto taken = next<TermsTaken>(connection);
        if (!taken.ok()) return taken.status();
        return taken->map();
    }

    /// Finds, keeps and takes, and checks the terms.
    static Result<MappedTerms> read(DaemonConnection& connection, const ResidentValueList& values,
                                    const std::string& words = "word") {
        const auto missing = find(connection, values);
        if (!missing.ok()) return missing.status();
        if (!missing->empty()) {
            const auto kept = keep(connection, values, *missing, words);
            if (!kept.ok()) return kept.status();
        }
        auto terms = take(connection);
        if (terms.ok()) expect_terms(*terms, values);
        return terms;
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    const ResidentValueList values_ = some_terms(3, 1, 1000);
    std::optional<DaemonProcess> daemon_;
};

TEST_F(GputextdTerms, OfOneSessionAreGivenToAnotherOne) {
    start();
    const auto first = connect(), second = connect();
    const auto missing = find(*first, values_);
    ASSERT_TRUE(missing.ok()) << missing.status().message();
    EXPECT_EQ(missing->size(), values_.size());
    const auto kept = keep(*first, values_, *missing, "first");
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    EXPECT_NE(*kept, 0u);
    ASSERT_TRUE(take(*first).ok());

    // Some are missing in the middle.
    auto more = some_terms(3, 5000, 10);
    more.insert(more.begin() + 5, values_.begin(), values_.end());
    const auto terms = read(*second, more, "second");
    ASSERT_TRUE(terms.ok()) << terms.status().message();
    ASSERT_EQ(terms->chunks().size(), 2u);
    EXPECT_EQ(terms->chunks()[0].id, *kept);
    EXPECT_EQ(words_of(terms->chunks()[0]), some_words("first", 100));
    EXPECT_EQ(words_of(terms->chunks()[1]), some_words("second", 100));
    // They stay as they are while gputextd forgets them, and when it ends.
    ASSERT_TRUE(first->forget_values(7, 0).ok());
    EXPECT_EQ(next<ForgottenValues>(*first)->values, 1010u);
    EXPECT_EQ(find(*first, more)->size(), 1010u);
    daemon_.reset();
    expect_terms(*terms, more);
}

TEST_F(GputextdTerms, AreTakenFromManyChunks) {
    start();
    const auto connection = connect();
    ResidentValueList all;
    for (std::uint32_t i = 0; i < 35; ++i) {
        const auto values = some_terms(3, 1 + 100 * i, 20 + i);
        ASSERT_TRUE(read(*connection, values).ok());
        all.insert(all.end(), values.begin(), values.end());
    }
    const auto missing = find(*connection, all);
    ASSERT_TRUE(missing.ok());
    EXPECT_EQ(missing->size(), 20u + 21 + 22 + 23);
    for (int times = 0; times < 2; ++times) {
        const auto terms = read(*connection, all);
        ASSERT_TRUE(terms.ok()) << terms.status().message();
        EXPECT_EQ(terms->chunks().size(), kMostTermChunks);
    }
}

TEST_F(GputextdTerms, AreGivenBackWithoutBeingKept) {
    start("0");
    const auto connection = connect();
    for (int times = 0; times < 2; ++times) {
        const auto missing = find(*connection, values_);
        ASSERT_TRUE(missing.ok());
        EXPECT_EQ(missing->size(), values_.size());
        const auto kept = keep(*connection, values_, *missing);
        ASSERT_TRUE(kept.ok());
        EXPECT_EQ(*kept, 0u);
        const auto terms = take(*connection);
        ASSERT_TRUE(terms.ok());
        expect_terms(*terms, values_);
    }
}

TEST_F(GputextdTerms, LeaveNothingOpen) {
    start();
    { ASSERT_TRUE(read(*connect(), values_).ok()); }
    const std::size_t before = open_descriptors(daemon_->pid());
    for (int i = 0; i < 5; ++i) {
        const auto connection = connect();
        const auto others = some_terms(9, 1, 100);
        ASSERT_TRUE(read(*connection, others).ok());
        ASSERT_TRUE(read(*connection, others).ok());
        ASSERT_TRUE(connection->forget_values(7, 9).ok());
        ASSERT_TRUE(next<ForgottenValues>(*connection).ok());
        // What is handed over, and never taken.
        const auto missing = find(*connection, others);
        ASSERT_TRUE(missing.ok());
        ASSERT_TRUE(keep(*connection, others, *missing).ok());
        ASSERT_TRUE(connection->forget_values(7, 9).ok());
        ASSERT_TRUE(next<ForgottenValues>(*connection).ok());
    }
    EXPECT_TRUE(soon([&] { return open_descriptors(daemon_->pid()) <= before; }));
}

// ---- What goes wrong ----

TEST_F(GputextdTerms, SayWhatDoesNotFitTheRequest) {
    start();
    const auto connection = connect();
    EXPECT_EQ(take(*connection).status().code(), ErrorCode::invalid_argument);
    ASSERT_TRUE(find(*connection, values_).ok());
    EXPECT_EQ(take(*connection).status().code(), ErrorCode::invalid_argument);
    ASSERT_TRUE(connection->take_values().ok());
    EXPECT_EQ(next<ValuesTaken>(*connection).status().code(), ErrorCode::invalid_argument);
    const std::vector<std::uint32_t> one{1};
    EXPECT_EQ(keep(*connection, values_, one).status().code(), ErrorCode::invalid_argument);
    FilesOfTerms terms(values_, one, {});
    terms.message.word_bytes = 7;
    EXPECT_EQ(connection->add_terms(terms.message, terms.descriptors()).code(),
              ErrorCode::invalid_argument);
    EXPECT_TRUE(read(*connection, values_).ok()) << "the connection is as good as before";
}

TEST_F(GputextdTerms, EndWithGputextd) {
    for (const std::string point : {"find_values", "add_values", "take_values"})
        for (const std::string kind : {"crash", "no_reply", "wrong_magic", "wrong_length"}) {
            SCOPED_TRACE(point + ":" + kind);
            start();
            const auto connection = connect();
            ASSERT_TRUE(connection->inject_fault(point + ":" + kind).ok());
            EXPECT_EQ(read(*connection, values_).status().code(), ErrorCode::unavailable);
            if (kind == "crash") {
                EXPECT_EQ(daemon_->ending_signal(), SIGSEGV);
            }
        }
}

TEST_F(GputextdTerms, MustComeInTheirFiles) {
    start();
    for (const std::string kind : {"wrong_counts", "wrong_answer", "short_file", "unsealed_file",
                                   "no_file", "too_many_files"}) {
        SCOPED_TRACE(kind);
        const auto connection = connect();
        ASSERT_TRUE(read(*connection, values_).ok());
        ASSERT_TRUE(connection->inject_fault("take_values:" + kind).ok());
        EXPECT_EQ(read(*connection, values_).status().code(), ErrorCode::unavailable);
    }
    const auto connection = connect();
    for (const std::string point : {"find_values", "add_values", "take_values"}) {
        ASSERT_TRUE(connection->inject_fault(point + ":out_of_memory").ok());
        EXPECT_EQ(read(*connection, some_terms(4, 1, 10)).status().code(),
                  ErrorCode::out_of_memory);
    }
    EXPECT_TRUE(read(*connection, values_).ok());
}

TEST_F(GputextdTerms, AreForgottenWhenTheSessionCloses) {
    start();
    for (const std::string point : {"add_values", "take_values"}) {
        SCOPED_TRACE(point);
        auto connection = connect();
        const auto values = some_terms(50, 1, 200);
        const auto missing = find(*connection, values);
        ASSERT_TRUE(missing.ok());
        const FilesOfTerms terms(values, *missing, {});
        ASSERT_TRUE(connection->inject_fault(point + ":hang").ok());
        if (point == "add_values") {
            ASSERT_TRUE(connection->add_terms(terms.message, terms.descriptors()).ok());
        } else {
            ASSERT_TRUE(connection->take_terms().ok());
        }
        EXPECT_EQ(connection->take_terms().code(), ErrorCode::invalid_argument) << "one at a time";
        connection.reset();
        EXPECT_EQ(find(*connect(), values)->size(), values.size());
    }
}

}  // namespace
}  // namespace gputext
