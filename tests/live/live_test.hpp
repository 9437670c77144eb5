// tests/live/live_test.hpp - fixture of tests on a server of the program's own, which none of them ends

#pragma once

#include "tests/live/private_server.hpp"

namespace gputext::live {

/// Nearly all pairs of such documents differ by a little more than the threshold allows, so that
/// their distances have to be computed: runs for minutes.
inline const std::string kFarDocuments =
    "near_duplicates($$SELECT i::bigint, string_agg(md5(i || '.' || j), '') "
    "FROM generate_series(1, 10000) i, generate_series(1, 40) j GROUP BY i$$, "
    "threshold => 0.3, mode => 'exact')";

/// Each test has two sessions and a schema of its own, first in their search paths. All tests of a
/// program share a server, so that programs run beside each other; sessions that say nothing else
/// are its.
class LiveTest : public ::testing::Test {
protected:
    void SetUp() override {
        try {
            if (server_ == nullptr) make_server();
            session_ = std::make_unique<Session>();
            other_ = std::make_unique<Session>();
            schema_ = "live_" + std::to_string(session_->pid());
            path_ = "SET search_path = " + schema_ + ", public";
            session().rows("DROP SCHEMA IF EXISTS " + schema_ + " CASCADE");
            session().rows("CREATE SCHEMA " + schema_);
            session().rows(path_);
            other().rows(path_);
            foreign_descriptors(session().pid());
        } catch (const std::exception& error) {
            FAIL() << "no server to test: " << error.what();
        }
    }

    void TearDown() override {
        if (HasFailure() && server_ != nullptr) {
            const std::string log = server_->log();
            std::puts(log.substr(log.size() - std::min<std::size_t>(log.size(), 5000)).c_str());
        }
        if (schema_.empty() || other_ == nullptr) return;
        session_.reset();
        other().rows("DROP SCHEMA IF EXISTS " + schema_ + " CASCADE");
        for (const std::string& role : roles_) {
            other().rows("DROP OWNED BY " + role);
            other().rows("DROP ROLE " + role);
        }
    }

    Session& session() { return *session_; }
    Session& other() { return *other_; }
    const std::string& schema() const { return schema_; }

    /// Removes all rows that are gone: plain VACUUM leaves those that an older snapshot may see, such
    /// as one of autovacuum, which is on here.
    void vacuum(const std::string& table) {
        EXPECT_TRUE(eventually([&] {
            return session().value("SELECT count(*) FROM pg_stat_activity WHERE pid <> "
                                   "pg_backend_pid() AND age(backend_xmin) > 0") == "0";
        })) << "an older snapshot stays";
        session().rows("VACUUM " + table);
    }

    /// A role that may log in and use the schema; dropped after the test.
    std::string new_role(const std::string& name) {
        const std::string role = schema_ + "_" + name;
        session().rows("CREATE ROLE " + role + " LOGIN");
        roles_.push_back(role);
        session().rows("GRANT USAGE ON SCHEMA " + schema_ + " TO " + role);
        session().rows("ALTER ROLE " + role + " SET search_path = " + schema_ + ", public");
        return role;
    }

private:
    static void make_server() {
        auto server = std::make_unique<PrivateServer>("autovacuum = on\nshared_buffers = 128MB\n");
        server->start();
        setenv("PGHOST", server->root().c_str(), 1);
        setenv("PGPORT", "5432", 1);
        setenv("PGUSER", "gputext", 1);
        setenv("PGDATABASE", "postgres", 1);
        setenv("GPUTEXT_DATA_DIRECTORY", server->data().c_str(), 1);
        Session().rows("CREATE EXTENSION gputext");
        server_ = std::move(server);
    }

    static inline std::unique_ptr<PrivateServer> server_;
    std::unique_ptr<Session> session_, other_;
    std::string schema_, path_;
    std::vector<std::string> roles_;
};

}  // namespace gputext::live
