// Settings that users may not change, where the library is not loaded before a session begins: what
// a connection's options say of them is refused, as it is where it was loaded at the server's
// start.

#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

class Settings : public ::testing::Test {
protected:
    void SetUp() override {
        try {
            server_.start();
            Session session(server_.connection());
            session.rows("CREATE EXTENSION gputext");
            session.rows("CREATE ROLE plain LOGIN");
            session.rows(
                "CREATE TABLE docs (body text, EXCLUDE USING gputext (body WITH ~=) WITH "
                "(threshold = 0.2))");
            session.rows("INSERT INTO docs VALUES ('It was a bright cold day in April')");
            session.rows("GRANT SELECT, INSERT ON docs TO plain");
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }

    /// A session with these options.
    Session open(const std::string& user, const std::string& options) {
        ConnectionString connection = server_.connection();
        const std::size_t at = connection.text.find("user=gputext");
        connection.text.replace(at, 12, "user=" + user);
        connection.text += " options='" + options + "'";
        return Session(connection);
    }

    /// The SQLSTATE of a call, which is the same one again.
    static std::string state_of_calls(Session& session) {
        const std::string first = session.sqlstate("SELECT edit_distance('a', 'b')");
        EXPECT_EQ(session.sqlstate("SELECT edit_distance('a', 'b')"), first);
        return first;
    }

    static std::string value_of(Session& session, const std::string& setting) {
        EXPECT_EQ(state_of_calls(session), "ok") << session.message();
        return session.value("SELECT current_setting('gputext." + setting + "')");
    }

    PrivateServer server_{
        "gputext.max_host_memory = '100MB'\ngputext.max_cpu_threads = 1\n"
        "gputext.max_helper_threads = 3\n"};
};

// Each of them that the server has
TEST_F(Settings, AreRefusedAsOptions) {
    std::vector<std::string> options;
    {
        Session session = open("gputext", "");
        EXPECT_EQ(state_of_calls(session), "ok");
        const auto rows = session.rows(
            "SELECT name || '=' || CASE vartype WHEN 'bool' THEN 'on' WHEN 'string' THEN 'x' ELSE "
            "'1' END FROM pg_settings WHERE name LIKE 'gputext.%' AND context NOT IN ('user', "
            "'internal')");
        for (const auto& row : rows) options.push_back(row[0].template as<std::string>());
    }
    EXPECT_GE(options.size(), 7u);
    for (const std::string& option : options) {
        SCOPED_TRACE(option);
        Session session = open("plain", "-c " + option);
        EXPECT_EQ(state_of_calls(session), "42501");
        EXPECT_NE(session.message().find(option.substr(0, option.find('='))), std::string::npos)
            << session.message();
        // What the library would have compared is not written, either.
        EXPECT_EQ(session.sqlstate("INSERT INTO docs VALUES ('It was a bright cold day in May')"),
                  "42501");
        Session capital = open("plain", "-c GPU" + option.substr(3));
        EXPECT_EQ(state_of_calls(capital), "42501");
    }
}

TEST_F(Settings, AreAsConfiguredWithOtherOptions) {
    Session session =
        open("plain", "-c gputext.cpu_threads=2 -c gputext.near_duplicate_threshold=0.3");
    EXPECT_EQ(value_of(session, "cpu_threads"), "2");
    EXPECT_EQ(value_of(session, "near_duplicate_threshold"), "0.3");
    EXPECT_EQ(value_of(session, "max_host_memory"), "100MB");
    EXPECT_EQ(value_of(session, "max_cpu_threads"), "1");
    EXPECT_EQ(value_of(session, "max_helper_threads"), "3");
    EXPECT_EQ(session.sqlstate("SET gputext.host_memory_limit = '101MB'"), "22023");
    EXPECT_EQ(session.sqlstate("INSERT INTO docs VALUES ('It was a bright cold day in May')"),
              "23P01");
}

TEST_F(Settings, CanBeSetByWhoMay) {
    Session superuser = open("gputext", "-c gputext.max_host_memory=1GB");
    EXPECT_EQ(value_of(superuser, "max_host_memory"), "1GB");
    superuser.rows("GRANT SET ON PARAMETER gputext.max_host_memory TO plain");
    Session granted = open("plain", "-c gputext.max_host_memory=2GB");
    EXPECT_EQ(value_of(granted, "max_host_memory"), "2GB");
    Session other = open("plain", "-c gputext.max_cpu_threads=2");
    EXPECT_EQ(state_of_calls(other), "42501");
    superuser.rows("ALTER DATABASE postgres SET gputext.max_cpu_threads = 4");
    superuser.rows("ALTER ROLE plain SET gputext.max_cpu_threads = 5");
    Session configured = open("plain", "");
    EXPECT_EQ(value_of(configured, "max_cpu_threads"), "5");
    // Before the session has loaded the library, SET takes any value, which then counts for
    // nothing.
    Session early = open("plain", "");
    early.rows("SET gputext.max_cpu_threads = 64");
    EXPECT_EQ(value_of(early, "max_cpu_threads"), "5");
}

}  // namespace
}  // namespace gputext::live
