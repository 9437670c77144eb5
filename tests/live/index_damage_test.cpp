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

constexpr std::size_t kPool = 300, kIndexes = 22;
constexpr std::size_t kPage = 8192, kHeader = 24, kTrailer = kPage - 16;
// Offsets within the trailer
constexpr std::size_t kMagic = 0, kVersion = 4, kKind = 6, kHalves = 7, kBins = 8, kCount = 10,
                      kClass = 12, kModel = 13;

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
    std::size_t capacity(std::size_t number) {
        const std::size_t bins = get<std::uint16_t>(number, kTrailer + kBins);
        return (kTrailer - kHeader) / (14 + 16 + bins / 2);
    }
    /// Addresses of rows of a page of sketches: two numbers of the block, and one of the row.
    char* rows(std::size_t number) { return page(number) + kHeader + 8 * capacity(number); }

    /// In place, so that it stays its owner's.
    void write() const { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes_; }

private:
    fs::path path_;
    std::string bytes_;
};

/// Damages a file in a way that the dice choose; says which.
std::string damage(File& file, Dice& dice) {
    // Often one of those without which no other is read: the meta page, the directory, a model
    const std::size_t page = dice.below(dice.percent(25) ? 3 : file.pages());
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
            std::memset(file.rows(page), 0xff, 6 * file.capacity(page));
            return "rows to ones" + at;
        case 12:
            for (std::size_t i = 0; i < 6 * file.capacity(page); ++i)
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
        // PostgreSQL itself refuses damaged pages where they have checksums, as by default since 18.
        auto server = std::make_unique<PrivateServer>("ignore_checksum_failure = on\n");
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

    void disconnect() { session_.reset(); }

    /// Stops the server, does something to the files of all indexes, and starts it.
    void change_files(const std::function<void(std::size_t, File&)>& change) {
        std::vector<fs::path> paths;
        {
            Session asking(server().connection());
            for (std::size_t number = 0; number < kIndexes; ++number)
                paths.push_back(server().data() / asking.value("SELECT pg_relation_filepath('" +
                                                               index(number) + "')"));
        }
        disconnect();
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
         "has a page of version 7 at block 0, and this gputext reads version 3"},
        {1, t + kVersion, 1, false,
         "has a page of version 1 at block 1, and this gputext reads version 3"},
        {3, t + kVersion, 0, false,
         "has a page of version 0 at block 3, and this gputext reads version 3"},
        {0, t + kMagic, 7, false, "has a damaged page at block 0"},
        {1, t + kMagic, 7, false, "has a damaged page at block 1"},
        {3, t + kMagic, 7, false, "has a damaged page at block 3"},
        {0, t + kKind, 3, true, "has a damaged page at block 0"},
        {1, t + kKind, 3, true, "has a damaged page at block 1"},
        {3, t + kKind, 2, true, "has a damaged page at block 3"},
        {3, t + kKind, 9, true, "has a damaged page at block 3"},
        {0, t + kCount, 0, false, "has a damaged page at block 0"},  // of its models
        {0, t + kCount, 2, false, "has a damaged page at block 3"},
        {0, t + kCount, 17, false, "has a damaged page at block 0"},
        {2, t + kKind, 3, true, "has a damaged page at block 2"},
        {2, t + kBins, 7, false, "has a damaged page at block 2"},
        {2, t + kBins, 60000, false, "has a damaged page at block 2"},
        {2, kHeader + 1000, 7, false, "has a damaged page at block 2"},  // of the model
        {3, t + kBins, 64, false, "has a damaged page at block 3"},
        {3, t + kCount, 500, false, "has a damaged page at block 3"},
        {3, t + kCount, 65535, false, "has a damaged page at block 3"},
        {3, t + kClass, 255, true, "has a damaged page at block 3"},
        {3, t + kModel, 1, true, "has a damaged page at block 3"},
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

TEST_F(IndexDamage, OfAddressesDoesNotExtendTheTable) {
    // The block that stands for none, and a row that a page can have
    change_files([](std::size_t number, File& file) {
        for (std::size_t page = 3; number == 0 && page < file.pages(); ++page)
            for (std::size_t i = 0; i < file.capacity(page); ++i) {
                std::memset(file.rows(page) + 6 * i, 0xff, 4);
                std::memcpy(file.rows(page) + 6 * i + 4, "\1", 2);
            }
    });
    Session asking(server().connection());
    const std::string size = "SELECT pg_relation_size('" + table(0) + "')";
    const std::string before = asking.value(size);
    for (const Way& way : kWithIndex) {
        try {
            rows_of(asking, way, near_rows(0));
            ADD_FAILURE() << "no error when searched by " << way.name;
        } catch (const pqxx::sql_error& error) {
            asking.rows("ROLLBACK");
            EXPECT_EQ(std::string(error.sqlstate()), "XX002") << error.what();
        }
    }
    EXPECT_EQ(asking.value(size), before);
    expect_mended(0);
    expect_alive();
}

// ---- An index with several models ----

/// The directory's entries for the blocks from the second one on (extension/index/format.hpp): the
/// class of lengths, and the model below a bit that says that the page is full.
constexpr std::uint8_t kNoClass = 255, kModelClass = 254;

/// `change(length class, model and bit)` of each entry for sketches.
void change_entries(File& file, const std::function<void(char&, char&)>& change) {
    for (char* entry = file.page(1) + kHeader; entry < file.page(1) + kTrailer; entry += 2)
        if (static_cast<std::uint8_t>(*entry) < kModelClass) change(entry[0], entry[1]);
}

TEST_F(IndexDamage, OfModelsIsFoundOrDoesNoHarm) {
    int models = 0;
    fs::path path;
    std::string near;
    std::set<std::string> expected;
    {
        Session making(server().connection());
        create_kinds(making);
        making.rows("CREATE INDEX docs_index ON docs USING gputext (body)");
        models = models_of(making);
        path = server().data() / making.value("SELECT pg_relation_filepath('docs_index')");
        near =
            "SELECT p.id, d.id FROM (SELECT body, id FROM docs WHERE id % 3000 < 4) p, LATERAL "
            "(SELECT id FROM docs d WHERE is_near_duplicate(d.body, p.body, 0.05) OFFSET 0) d";
        expected = rows_of(making, kWithoutIndex, near);
    }
    ASSERT_GT(models, 1);
    ASSERT_GT(expected.size(), 100u);
    const auto last = static_cast<std::size_t>(models) + 1;  // block of a model
    const std::size_t t = kTrailer;

    /// What ends in an error of a damaged page: s(earch), i(nsert), v(acuum) and c(heck).
    struct Case {
        const char* name;
        std::string block;  // where all say the same
        std::string fail;
        std::function<void(File&)> damage;
    };
    const std::string at_last = std::to_string(last);
    const std::vector<Case> cases = {
        {"a checksum", at_last, "sivc", [&](File& file) { file.page(last)[kHeader] ^= 1; }},
        {"a number", at_last, "sivc", [&](File& file) { file.page(last)[kHeader + 100] ^= 64; }},
        {"halves", at_last, "sivc", [&](File& file) { file.page(last)[t + kHalves] ^= 1; }},
        {"a possible number of bins", at_last, "sivc",
         [&](File& file) { file.set(last, t + kBins, std::uint16_t{64}); }},
        {"too few bins", at_last, "sivc",
         [&](File& file) { file.set(last, t + kBins, std::uint16_t{0}); }},
        {"too many bins", at_last, "sivc",
         [&](File& file) { file.set(last, t + kBins, std::uint16_t{1056}); }},
        {"zeroes", at_last, "sivc", [&](File& file) { std::memset(file.page(last), 0, kPage); }},
        {"models in each other's place", "2", "sivc",
         [&](File& file) { std::swap_ranges(file.page(2), file.page(3), file.page(3)); }},
        {"a model more", std::to_string(last + 1), "sivc",
         [&](File& file) { ++file.page(0)[t + kCount]; }},
        {"a model less", "", "svc", [&](File& file) { --file.page(0)[t + kCount]; }},
        {"sketches of no model", "", "sivc",
         [&](File& file) {
             for (std::size_t page = last + 1; page < file.pages(); ++page)
                 file.page(page)[t + kModel] = 40;
         }},
        {"entries of no model", "", "sc",
         [](File& file) { change_entries(file, [](char&, char& model) { model = 40; }); }},
        {"entries of another model", "", "c",
         [&](File& file) {
             change_entries(file, [&](char&, char& model) {
                 model = static_cast<char>(((model & 127) + 1) % models);
             });
         }},
        {"a model's page among those that are not in use", "2", "ic",
         [](File& file) {
             change_entries(file, [](char&, char& model) { model |= static_cast<char>(128); });
             file.page(1)[kHeader] = static_cast<char>(kNoClass);
         }},
        {"a model's page among those of sketches", "2", "sc", [&](File& file) {
             // Of documents that are searched, and not inserted
             const char* const entry = file.page(1) + kHeader + 2 * (file.pages() / 2);
             file.set(1, kHeader, entry[0]);
             file.set(1, kHeader + 1, static_cast<char>(entry[1] | 128));
         }}};

    const auto expect = [&](const Case& one, char statement, const std::string& state,
                            const std::string& message) {
        const bool fails = one.fail.find(statement) != std::string::npos;
        EXPECT_EQ(state, fails ? "XX002" : "ok") << statement << " " << message;
        if (!fails) return;
        EXPECT_NE(message.find("index \"docs_index\" has a damaged page at block " + one.block),
                  std::string::npos)
            << statement << " " << message;
    };
    disconnect();
    for (const Case& one : cases) {
        SCOPED_TRACE(one.name);
        server().signal_server(SIGINT);
        ASSERT_TRUE(server().ended());
        const File undamaged(path);
        File file(path);
        ASSERT_EQ(file.get<std::uint16_t>(0, t + kCount), models);
        one.damage(file);
        file.write();
        server().start();
        {
            Session asking(server().connection());
            for (const Way& way : {kWithIndex[0], kWithIndex[1]}) {
                try {
                    EXPECT_EQ(rows_of(asking, way, near), expected);
                    expect(one, 's', "ok", "");
                } catch (const pqxx::sql_error& error) {
                    asking.rows("ROLLBACK");
                    expect(one, 's', std::string(error.sqlstate()), error.what());
                }
            }
            const auto run = [&](char name, const std::string& statement) {
                const std::string state = asking.sqlstate(statement);
                expect(one, name, state, state == "ok" ? "" : asking.message());
            };
            run('c', "SELECT gputext_index_check('docs_index', true)");
            asking.rows("BEGIN");
            run('i', "INSERT INTO docs SELECT i, 0, " + kind_of_document("i") +
                         " FROM generate_series(900001, 900400) AS i");
            asking.rows("ROLLBACK");
            run('v', "VACUUM (INDEX_CLEANUP ON) docs");
        }
        server().signal_server(SIGINT);
        ASSERT_TRUE(server().ended());
        undamaged.write();
        server().start();
    }
    connect();
    EXPECT_EQ(session().sqlstate("SELECT gputext_index_check('docs_index', true)"), "ok")
        << session().message();
    session().run("DROP TABLE docs");
    expect_alive();
}

}  // namespace
}  // namespace gputext::live
