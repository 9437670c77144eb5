// Indexes whose files are damaged: each search, insert and VACUUM ends in an error that names the
// block, or does what it can. The server stays, nothing takes forever, no row is found that is not
// to be found, and REINDEX mends all.
//
// GPUTEXT_INDEX_DAMAGES says how many indexes are damaged, and GPUTEXT_TEST_SEED repeats a run.

#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "tests/live/index_use.hpp"
#include "tests/live/plain_session.hpp"
#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

constexpr std::size_t kPool = 300, kIndexes = 17;
constexpr std::size_t kPage = 8192, kHeader = 24, kTrailer = kPage - 16;
// Offsets within the trailer
constexpr std::size_t kMagic = 0, kVersion = 4, kKind = 6, kClass = 7, kCount = 8, kBins = 10;

/// An index's file, in memory.
class File {
public:
    explicit File(fs::path path) : path_(std::move(path)), bytes_(contents(path_)) {}

    std::size_t pages() const { return bytes_.size() / kPage; }
    std::string& bytes() { return bytes_; }
    char* page(std::size_t number) { return bytes_.data() + number * kPage; }
    template <class T>
    T get(std::size_t number, std::size_t offset) {
        T value;
        std::memcpy(&value, page(number) + offset, sizeof(value));
        return value;
    }
    template <class T>
    void set(std::size_t number, std::size_t offset, T value) {
        std::memcpy(page(number) + offset, &value, sizeof(value));
    }
    /// Of a page of sketches (extension/index/format.hpp)
    std::size_t capacity() {
        const std::size_t bins = get<std::uint16_t>(0, kTrailer + kBins);
        return (kTrailer - kHeader) / (14 + 16 + bins / 2);
    }
    /// Addresses of rows of a page of sketches: two numbers of the block, and one of the row.
    char* rows(std::size_t number) { return page(number) + kHeader + 8 * capacity(); }

    /// In place, so that it stays its owner's.
    void write() const { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes_; }

private:
    fs::path path_;
    std::string bytes_;
};

/// Damages a file in a way that the dice choose; says which.
std::string damage(File& file, Dice& dice) {
    const std::size_t page = dice.below(file.pages());
    const std::size_t other = dice.below(file.pages());
    const std::string at = " of block " + std::to_string(page);
    switch (dice.below(14)) {
        case 0:
            for (int i = 0; i < 20; ++i)
                file.page(page)[dice.below(kPage)] ^= static_cast<char>(1 << dice.below(8));
            return "bits" + at;
        case 1:
            for (std::size_t i = kHeader; i < kTrailer; ++i)
                file.page(page)[i] = static_cast<char>(dice.below(256));
            return "contents" + at;
        case 2:
            for (std::size_t i = kHeader; i < kTrailer; ++i) file.page(page)[i] = '\xff';
            return "contents to ones" + at;
        case 3:
            std::memset(file.page(page), 0, kPage);
            return "zeroes" + at;
        case 4:
            std::swap_ranges(file.page(page), file.page(page) + kPage, file.page(other));
            return "exchange with block " + std::to_string(other) + at;
        case 5:
            file.bytes().resize(page * kPage);
            return "end before block " + std::to_string(page);
        case 6:
            file.bytes().resize(page * kPage + dice.below(kPage));
            return "end within block " + std::to_string(page);
        case 7:
            file.set(page, kTrailer + kCount, static_cast<std::uint16_t>(dice.below(65536)));
            return "count" + at;
        case 8:
            file.page(page)[kTrailer + dice.below(16)] = static_cast<char>(dice.below(256));
            return "trailer" + at;
        case 9:
            file.page(page)[dice.below(kHeader)] = static_cast<char>(dice.below(256));
            return "header" + at;
        case 10:
            for (std::size_t i = kHeader; i < kTrailer; i += 1 + dice.below(16))
                file.page(1)[i] = static_cast<char>(dice.below(256));
            return "the directory";
        case 11:
            // An address of no row that a table can have
            std::memset(file.rows(page), 0xff, 6 * file.capacity());
            return "rows to ones" + at;
        case 12:
            for (std::size_t i = 0; i < 6 * file.capacity(); ++i)
                if (i % 6 != 0 && i % 6 != 1 && dice.percent(50))
                    file.rows(page)[i] = static_cast<char>(dice.below(256));
            return "rows" + at;
        default:
            for (std::size_t i = kTrailer; i < kPage; ++i)
                file.page(page)[i] = static_cast<char>(dice.below(256));
            return "whole trailer" + at;
    }
}

class IndexDamage : public ::testing::Test {
protected:
    static void TearDownTestSuite() { server_.reset(); }

    void SetUp() override {
        try {
            if (server_ == nullptr) make_server();
            if (!server().running()) server().start();
            logged_ = server().log().size();
            connect();
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }

    void TearDown() override {
        if (HasFailure() && server_ != nullptr) std::puts(server().log().substr(logged_).c_str());
    }

    static PrivateServer& server() { return *server_; }
    PlainSession& session() { return *session_; }

    static void make_server() {
        auto server = std::make_unique<PrivateServer>();
        server->start();
        Session session(server->connection());
        session.rows("CREATE EXTENSION gputext");
        create_pool(session, kPool);
        // Tables with live rows, dead ones and pages of the index that are not in use
        for (std::size_t number = 0; number < kIndexes; ++number) {
            const std::string docs = table(number);
            session.rows("CREATE TABLE " + docs +
                         " AS SELECT i AS id, body FROM pool, "
                         "generate_series(id, 599, 300) AS i");
            session.rows("CREATE INDEX " + index(number) + " ON " + docs + " USING gputext (body)" +
                         (number % 4 == 0 ? " WITH (bins = 1024)" : ""));
            session.rows("INSERT INTO " + docs +
                         " SELECT 2000 + i, repeat('y', 30 * i) "
                         "FROM generate_series(1, 40) AS i");
            session.rows("DELETE FROM " + docs + " WHERE id > 2010");
            session.rows("VACUUM " + docs);
            session.rows("DELETE FROM " + docs + " WHERE id % 10 = 0");
        }
        server_ = std::move(server);
    }

    static std::string table(std::size_t number) { return "docs" + std::to_string(number); }
    static std::string index(std::size_t number) {
        return "docs" + std::to_string(number) + "_index";
    }

    void connect() {
        session_ = std::make_unique<PlainSession>(server().connection());
        session().run("SET statement_timeout = '20s'");
    }

    /// Stops the server, does something to the files of all indexes, and starts it.
    void change_files(const std::function<void(std::size_t, File&)>& change) {
        std::vector<fs::path> paths;
        {
            Session asking(server().connection());
            for (std::size_t number = 0; number < kIndexes; ++number)
                paths.push_back(server().data() / asking.value("SELECT pg_relation_filepath('" +
                                                               index(number) + "')"));
        }
        session_.reset();
        server().signal_server(SIGINT);
        ASSERT_TRUE(server().ended());
        for (std::size_t number = 0; number < kIndexes; ++number) {
            File file(paths[number]);
            ASSERT_GT(file.pages(), 10u);
            change(number, file);
            file.write();
        }
        server().start();
        connect();
    }

    static std::string near_rows(std::size_t number) {
        return "SELECT p.id, d.id FROM pool p, LATERAL (SELECT id FROM " + table(number) +
               " d WHERE is_near_duplicate(d.body, p.body, 0.05) OFFSET 0) d "
               "WHERE p.id % 30 = 1 AND length(p.body) < 1500";
    }

    static std::set<std::string> rows_of(Session& asking, const Way& way,
                                         const std::string& statement) {
        asking.rows("BEGIN");
        std::set<std::string> found;
        for (const auto& row : asking.rows(way.settings + statement))
            found.insert(std::string(row[0].c_str()) + " " + row[1].c_str());
        asking.rows("COMMIT");
        return found;
    }

    /// An error that says of a damaged index what is known: from the extension, or from the server,
    /// which finds that a block is not there or has no page's header.
    void expect_fit(const std::string& state, const std::string& message, const std::string& what) {
        ++outcomes_[state];
        EXPECT_TRUE(state == "ok" || state == "XX002" || state == "XX001")
            << state << " from " << what << ": " << message;
        EXPECT_TRUE(state != "XX002" || message.find("block") != std::string::npos ||
                    message.find("lacks the sketch of the row at") != std::string::npos)
            << message;
    }
    void expect_fit_of(const std::string& statement, const std::string& what) {
        const std::string state = session().sqlstate(statement);
        expect_fit(state, session().message(), what);
    }

    /// Searches in all ways: what is found is to be found.
    void expect_no_wrong_row(std::size_t number, const std::string& what) {
        Session asking(server().connection());
        asking.rows("SET statement_timeout = '20s'");
        const auto expected = rows_of(asking, kWithoutIndex, near_rows(number));
        ASSERT_GT(expected.size(), 2u);
        for (const Way& way : kWithIndex) {
            try {
                for (const std::string& row : rows_of(asking, way, near_rows(number)))
                    EXPECT_TRUE(expected.contains(row)) << row << " from " << what;
                expect_fit("ok", "", what);
            } catch (const pqxx::sql_error& error) {
                asking.rows("ROLLBACK");
                expect_fit(std::string(error.sqlstate()), error.what(),
                           what + " when searched by " + way.name);
            }
        }
    }

    void expect_alive() {
        EXPECT_TRUE(server().running());
        expect_no_crash(server().log());
    }

    void expect_mended(std::size_t number) {
        ASSERT_EQ(session().sqlstate("REINDEX INDEX " + index(number)), "ok")
            << session().message();
        Session asking(server().connection());
        const auto expected = rows_of(asking, kWithoutIndex, near_rows(number));
        for (const Way& way : kWithIndex)
            EXPECT_EQ(rows_of(asking, way, near_rows(number)), expected) << way.name;
        expect_sound(asking, index(number));
    }

    static bool has_check() {
        return Session(server().connection())
                   .value("SELECT to_regprocedure('gputext_index_check(regclass,boolean)')") !=
               "NULL";
    }

    std::map<std::string, std::size_t> outcomes_;

private:
    static inline std::unique_ptr<PrivateServer> server_;
    std::unique_ptr<PlainSession> session_;
    std::size_t logged_ = 0;
};

TEST_F(IndexDamage, OfAnyKindDoesNotReachTheServer) {
    Dice dice(testing::seed());
    const std::size_t most = number_from("GPUTEXT_INDEX_DAMAGES", 9);
    for (std::size_t done = 0; done < most && !HasFailure(); done += kIndexes) {
        std::vector<std::string> damages(kIndexes);
        const std::size_t count = std::min(kIndexes, most - done);
        change_files([&](std::size_t number, File& file) {
            if (number < count) damages[number] = damage(file, dice);
        });
        for (std::size_t number = 0; number < count; ++number) {
            const std::string docs = table(number);
            const std::string& what = damages[number];
            SCOPED_TRACE(what);
            // Before and after what may write to the index
            expect_no_wrong_row(number, what);
            if (has_check())
                expect_fit_of("SELECT gputext_index_check('" + index(number) + "', true)",
                              what + " when checked");
            for (int i = 0; i < 4; ++i)
                expect_fit_of(
                    "INSERT INTO " + docs +
                        " SELECT 3000 + id, body FROM pool WHERE id % 4 = " + std::to_string(i),
                    what + " when inserted into");
            expect_fit_of("VACUUM (INDEX_CLEANUP ON) " + docs, what + " when vacuumed");
            expect_fit_of(
                "INSERT INTO " + docs + " SELECT 4000 + id, body FROM pool WHERE id < 200",
                what + " when inserted into again");
            expect_no_wrong_row(number, what);
            expect_alive();
            expect_mended(number);
            session().run("DELETE FROM " + docs + " WHERE id >= 3000 OR id % 10 = 0");
        }
    }
    std::string counts;
    for (const auto& [state, count] : outcomes_)
        counts += " " + state + " " + std::to_string(count);
    std::printf("outcomes:%s\n", counts.c_str());
    EXPECT_GT(outcomes_["ok"], 0u);
    EXPECT_GT(outcomes_["XX002"], 0u);
}

TEST_F(IndexDamage, IsNamedWithItsBlock) {
    struct Case {
        std::size_t page, offset;
        std::uint16_t value;
        bool is_byte;
        std::string message;
    };
    const std::size_t t = kTrailer;
    const std::vector<Case> cases = {
        {0, t + kVersion, 7, false,
         "has a page of version 7 at block 0, and this gputext reads version 2"},
        {1, t + kVersion, 1, false,
         "has a page of version 1 at block 1, and this gputext reads version 2"},
        {3, t + kVersion, 0, false,
         "has a page of version 0 at block 3, and this gputext reads version 2"},
        {0, t + kMagic, 7, false, "has a damaged page at block 0"},
        {1, t + kMagic, 7, false, "has a damaged page at block 1"},
        {3, t + kMagic, 7, false, "has a damaged page at block 3"},
        {0, t + kKind, 3, true, "has a damaged page at block 0"},
        {1, t + kKind, 3, true, "has a damaged page at block 1"},
        {3, t + kKind, 2, true, "has a damaged page at block 3"},
        {3, t + kKind, 9, true, "has a damaged page at block 3"},
        {0, t + kBins, 7, false, "has a damaged page at block 0"},
        {0, t + kBins, 60000, false, "has a damaged page at block 0"},
        {0, kHeader + 1000, 7, false, "has a damaged page at block 0"},  // of the model
        {3, t + kBins, 64, false, "has a damaged page at block 3"},
        {3, t + kCount, 500, false, "has a damaged page at block 3"},
        {3, t + kCount, 65535, false, "has a damaged page at block 3"},
        {3, t + kClass, 255, true, "has a damaged page at block 3"},
    };
    ASSERT_LE(cases.size(), kIndexes);
    change_files([&](std::size_t number, File& file) {
        if (number >= cases.size()) return;
        const Case& one = cases[number];
        if (one.is_byte)
            file.set(one.page, one.offset, static_cast<std::uint8_t>(one.value));
        else
            file.set(one.page, one.offset, one.value);
    });
    session().run("SET enable_seqscan = off");
    for (std::size_t number = 0; number < cases.size(); ++number) {
        const std::string expected = "index \"" + index(number) + "\" " + cases[number].message;
        for (const std::string& statement : {"SELECT FROM pool p, " + table(number) +
                                                 " d WHERE is_near_duplicate(d.body, p.body, 0)",
                                             "VACUUM (INDEX_CLEANUP ON) " + table(number)}) {
            // VACUUM reads no directory that it has nothing to say to.
            if (cases[number].page == 1 && statement.rfind("VACUUM", 0) == 0) continue;
            EXPECT_EQ(session().sqlstate(statement), "XX002") << statement << "\n" << expected;
            EXPECT_NE(session().message().find(expected), std::string::npos)
                << session().message() << expected;
            EXPECT_NE(session().message().find("REINDEX"), std::string::npos)
                << session().message();
        }
        expect_mended(number);
    }
    expect_alive();
}

}  // namespace
}  // namespace gputext::live
