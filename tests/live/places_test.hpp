// tests/live/places_test.hpp - fixture of tests with a table of vectors that gputextd keeps

#pragma once

#include <string>

#include "tests/live/resident_use.hpp"

namespace gputext::live {

inline constexpr long kRows = 12000;

class PlacesTest : public ResidentTest {
protected:
    void SetUp() override {
        DaemonTest::SetUp();
        if (HasFailure()) return;
        session().rows("DROP TABLE IF EXISTS places");
        make_places("places");
    }

    /// How vectors are stored: out of line by default.
    virtual std::string storage() const { return "EXTERNAL"; }
    /// Enough vectors to be worth a question; ids from 1 to kRows.
    void make_places(const std::string& name) {
        session().rows("CREATE TABLE " + name + " (id bigint, kind int, place real[])");
        session().rows("ALTER TABLE " + name + " ALTER place SET STORAGE " + storage());
        insert(name, 1, kRows, 0);
    }
    void insert(const std::string& name, long first, long last, int salt) {
        session().rows(
            "WITH begins AS MATERIALIZED (SELECT i, ARRAY(SELECT ((i * 31 + j * 17 + "
            "i * j + " +
            std::to_string(salt) +
            ") % 101)::real "
            "FROM generate_series(1, 595) AS j) AS elements "
            "FROM generate_series(0, 100) AS i) INSERT INTO " +
            name +
            " SELECT n, n % 3, elements || ARRAY[n, n % 7, n % 11, n % 13, n % 17]::real[] "
            "FROM generate_series(" +
            std::to_string(first) + ", " + std::to_string(last) +
            ") AS n JOIN begins ON i = n % 101");
    }

    /// Of rows in any order: a sum of hashes takes a third of the time of sorting their texts.
    static std::string digest_of(const std::string& inner) {
        return "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(s::text, 0)), 0) "
               "FROM cosine_similarities(array_fill(0.5, ARRAY[600]), $$" +
               inner + "$$) AS s";
    }
    /// The answer, with what gputextd has of the rows.
    static std::string answer(Session& session, const std::string& from) {
        return session.value(digest_of("SELECT id, place FROM " + from));
    }
    /// The answer of values that have no pointers.
    static std::string expected(Session& session, const std::string& from) {
        return session.value(digest_of(
            "SELECT id, CASE WHEN place IS NOT NULL THEN place || '{}'::real[] END FROM " + from));
    }
};

}  // namespace gputext::live
