// Random calls of every function of the extension, by a role without rights: whatever they are
// given, the server lives, and each call ends in rows or in an error that is no internal one.
//
// The functions come from pg_depend, the types of columns and arguments from pg_type, and their
// values from what the types' input functions accept; so nothing has to be added here for a new
// function or type. GPUTEXT_FUZZ_SEED, which is printed, repeats a run, GPUTEXT_FUZZ_CALLS and
// GPUTEXT_FUZZ_SECONDS say how long it is. With GPUTEXT_FUZZ_LOG, every call is printed before it
// is made.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>

#include "tests/live/dice.hpp"
#include "tests/live/plain_session.hpp"
#include "tests/live/private_server.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {
namespace {

struct Argument {
    std::string name;  // empty where the function gives none
    std::string type;
    std::string otherwise;  // the expression of its default, empty where it has none

    bool optional() const { return !otherwise.empty(); }
};

struct Function {
    std::string name;
    bool aggregate;
    bool returns_set;
    std::vector<Argument> arguments;
};

/// What a server has: functions to call, and values of its types as expressions of SQL.
struct Catalog {
    std::vector<Function> functions;
    std::vector<std::string> types;
    std::map<std::string, std::vector<std::string>> values;  // by type; there is always NULL
};

// ---- What there is ----

/// What a role may make; and text that an input function may take, or not.
const char* const kObjects = R"(
CREATE SCHEMA fuzz;
SET search_path = fuzz, public;
CREATE DOMAIN text_domain AS text;
CREATE DOMAIN text_domain_domain AS text_domain CHECK (length(value) < 100);
CREATE DOMAIN vector_domain AS real[];
CREATE DOMAIN words_domain AS text[];
CREATE DOMAIN id_domain AS integer NOT NULL;
CREATE DOMAIN vector AS real[];
CREATE TYPE halfvec AS ENUM ('a', 'b', '');
CREATE TYPE sparsevec AS (dimensions integer, stored real);
CREATE DOMAIN sparsevec_domain AS sparsevec;
CREATE TYPE word AS (word text, count bigint, vector real[], output_vector real[]);
CREATE TYPE text_range AS RANGE (subtype = text);
CREATE TABLE dropped (a integer, id bigint, b text, body text, c real[], place real[]);
INSERT INTO dropped SELECT 0, i, 'x', 'body ' || i, '{}', ARRAY[i, 1] FROM generate_series(1, 5) AS i;
ALTER TABLE dropped DROP a, DROP b, DROP c;
CREATE TABLE no_columns ();
INSERT INTO no_columns SELECT FROM generate_series(1, 3);
CREATE TABLE tries AS
SELECT trie_agg(word) AS front, trie_agg(word, 'xbw') AS xbw
FROM (VALUES ('to'), ('be'), ('or'), ('not'), ('question'), (repeat('long', 1000)), (U&'\00e4\+01F600')) AS v(word);
CREATE TABLE linkage (field text, level integer, condition text, term_frequency boolean, m float8, u float8);
INSERT INTO linkage VALUES
    (NULL, NULL, 'prior', NULL, 0.1, 0.9), ('x', 1, 'exact', true, 0.9, 0.1), ('x', 0, 'else', true, 0.1, 0.9),
    ('n', 1, 'within 3', false, 0.9, 0.1), ('n', 0, 'else', false, 0.1, 0.9),
    ('name', 2, 'exact', false, 0.7, 0.01), ('name', 1, 'jaro_winkler >= 0.8', false, 0.2, 0.05), ('name', 0, 'else', false, 0.1, 0.9);
CREATE TABLE model AS
SELECT word, n AS count, ARRAY[n, 1, -n]::real[] AS vector, ARRAY[1, n, 0]::real[] AS output_vector
FROM unnest('{to,be,or,not,that,is,the,question,x,a}'::text[]) WITH ORDINALITY AS v(word, n);
CREATE FUNCTION accepted(literals text[], type text) RETURNS SETOF text LANGUAGE plpgsql AS
$$ DECLARE literal text;
   BEGIN
       FOREACH literal IN ARRAY literals LOOP
           BEGIN
               EXECUTE format('SELECT %L::%s', literal, type);
               RETURN NEXT format('%L::%s', literal, type);
           EXCEPTION WHEN OTHERS THEN
           END;
       END LOOP;
   END $$;
)";

const std::vector<std::string> kLiterals = {
    "",
    "0",
    "1",
    "-1",
    "2",
    "5",
    "0.05",
    "0.49",
    "1e308",
    "1e-320",
    "-0",
    "NaN",
    "Infinity",
    "-Infinity",
    "32767",
    "-32768",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "1e400",
    "a",
    "to be or not to be",
    "that is the question",
    " \t\n ",
    "x'; DROP TABLE tries; --",
    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
    "true",
    "2026-11-22",
    "infinity",
    "12:00:00",
    "-178000000 years",
    "{}",
    "{1}",
    "{1,2,3}",
    "{3,2,1}",
    "{0,0,0}",
    "{NULL}",
    "{1,NULL}",
    "{NaN,1,2}",
    "{Infinity,-Infinity,1}",
    "{1e38,1e38,-1e38}",
    "{1e-45,0,0}",
    "{{1,2},{3,4}}",
    "[5:7]={1,2,3}",
    "{2147483647,-2147483648}",
    "{to,be,or,not,to,be}",
    "{that,is,the,question}",
    "{\"\"}",
    "{\"\",NULL,x}",
    "[1,5)",
    "empty",
    "(,)",
    "{[1,2),[5,6)}",
    "(1,2)",
    "((0,0),(1,1))",
    "<(1,2),3>",
    "\\x",
    "\\x00",
    "\\x646f63756d656e74",
    "101",
    "{\"a\": [1, null]}",
    "null",
    "<a>b</a>",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "192.168.0.1/24",
    "08:00:2b:01:02:03",
    "08:00:2b:01:02:03:04:05",
    "16/B374D848",
    "10:20:10,14,15",
    "'to':1 'be':2,3A",
    "to & be",
    "$.a[*]",
    "pg_class",
    "simple",
    "english",
    "en_US",
    "3:abc:def",
    "96:s4Ud1Lj96tHHlZDrwciQmA+4uy1I0G4HYuL8N3TzS8QsO/wqWXLcMSx:sF1LjEtHHlZDrJzrhm"};

/// Values that no text is. Their types are asked of the server.
const std::vector<std::string> kExpressions = {
    "repeat('word ', 2000)",
    "repeat('x', 1000000)",
    "string_agg(i::text, ' ') FROM generate_series(1, 500) AS s(i)",
    "decode(repeat('00ff', 50000), 'hex')",
    "array_fill(1::real, ARRAY[3])",
    "array_fill(1::real, ARRAY[20000])",
    "array_fill(0.5::double precision, ARRAY[3])",
    "array_fill(NULL::real, ARRAY[3])",
    "array_fill(1::real, ARRAY[2, 2, 2])",
    "array_fill(7, ARRAY[3], ARRAY[-5])",
    "array_fill('word'::text, ARRAY[5000])",
    "array_fill(repeat('w', 3000), ARRAY[3])",
    "array_fill(''::text, ARRAY[2, 3])",
    "ARRAY[ARRAY['a', NULL], ARRAY['b', 'c']]",
    "ARRAY[repeat('y', 100000)::varchar]",
    "ARRAY['a'::text_domain]",
    "ROW(1, 'a', NULL, ARRAY[1])",
    "ROW()",
    "ROW(1, repeat('z', 100000))::record",
    "front FROM tries",
    "xbw FROM tries",
    "trie_agg(NULL::text)",
    "trie_agg('')",
    "ctph_signature('to be or not to be')",
    "ctph_signature(repeat('to be or not ', 1000))",
    "ctph_signature(''::text)",
    "ctph_signature('\\x00'::bytea)",
    "to_tsvector('english', 'the quick brown foxes jumped')",
    "t FROM dropped AS t LIMIT 1",
    "t FROM no_columns AS t LIMIT 1",
    "t FROM pg_class AS t LIMIT 1",
    "'a'::cstring",
    "tableoid FROM dropped LIMIT 1",
    "10000000000.5::numeric",
    "numrange(1, 2)",
    "jsonb_build_object('a', repeat('b', 10000))",
    "convert_to(repeat('abc ', 1000), 'UTF8')",
    "ssdeep_hash(repeat('to be or not ', 500))"};

std::string quoted(const std::string& text) {
    std::string quote = text.find('\\') == std::string::npos ? "'" : " E'";
    for (const char c : text) quote += c == '\'' ? "''" : c == '\\' ? "\\\\" : std::string(1, c);
    return quote + "'";
}

std::string array_of(const std::vector<std::string>& texts) {
    std::string array = "ARRAY[";
    for (const std::string& text : texts) array += (array.back() == '[' ? "" : ",") + quoted(text);
    return array + "]::text[]";
}

std::vector<Function> functions_of(Session& session) {
    std::vector<Function> functions;
    const pqxx::result rows = session.rows(
        "SELECT p.oid::regproc, p.prokind = 'a', coalesce(a.n, 0), "
        "       coalesce(p.proargnames[a.n], ''), coalesce(format_type(a.type, NULL), ''), "
        "       coalesce(pg_get_function_arg_default(p.oid, a.n::integer), ''), p.proretset "
        "FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid "
        "     JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND "
        "          d.refobjid = e.oid AND d.deptype = 'e' "
        "     LEFT JOIN LATERAL unnest(p.proargtypes) WITH ORDINALITY AS a(type, n) ON true "
        "WHERE e.extname = 'gputext' "
        "ORDER BY p.proname, pg_get_function_identity_arguments(p.oid), a.n");
    for (const auto& row : rows) {
        if (row[2].as<int>() <= 1)
            functions.push_back({row[0].c_str(), row[1].as<bool>(), row[6].as<bool>(), {}});
        if (row[2].as<int>() > 0)
            functions.back().arguments.push_back({row[3].c_str(), row[4].c_str(), row[5].c_str()});
    }
    return functions;
}

Catalog catalog_of(Session& session) {
    Catalog catalog;
    catalog.functions = functions_of(session);
    const pqxx::result types = session.rows(
        "SELECT format_type(oid, NULL) FROM pg_type "
        "WHERE typtype <> 'p' AND typisdefined AND (typrelid = 0 OR typname ~ '^(sparsevec|word)') "
        "  AND typnamespace <> 'information_schema'::regnamespace "
        "  AND NOT (typtype = 'b' AND typname LIKE '\\_pg\\_%') ORDER BY typname, oid");
    for (const auto& row : types) {
        const std::string type = row[0].c_str();
        catalog.types.push_back(type);
        std::vector<std::string>& values = catalog.values[type];
        values.push_back("NULL::" + type);
        for (const auto& value :
             session.rows("SELECT accepted(" + array_of(kLiterals) + ", " + quoted(type) + ")"))
            values.push_back(value[0].c_str());
    }
    for (const std::string& expression : kExpressions) {
        const std::string value = "(SELECT " + expression + ")";
        std::vector<std::string>& values =
            catalog.values[session.value("SELECT pg_typeof(" + value + ")")];
        if (values.empty()) values.push_back(value);
        // So that they come as often as all literals do.
        for (int i = 0; i < 5; ++i) values.push_back(value);
    }
    for (const auto& [type, values] : catalog.values)
        if (std::find(catalog.types.begin(), catalog.types.end(), type) == catalog.types.end())
            catalog.types.push_back(type);
    return catalog;
}

// ---- Calls ----

/// Most calls are tame: arguments of the right types, most of them moderate, and inner
/// queries of likely columns, so that many come as far as the computing; the others are anything.
class Calls {
public:
    Calls(const Catalog& catalog, Dice& dice) : catalog_(catalog), dice_(dice) {}

    /// A statement that calls the function.
    std::string of(const Function& function) {
        tame_ = dice_.percent(60);
        shape_ = dice_.below(60);
        returns_set_ = function.returns_set;
        id_type_ = "bigint";
        of_records_ = false;
        for (const Argument& argument : function.arguments) {
            if (argument.type == "anyelement") id_type_ = random_type();
            of_records_ |= argument.name.starts_with("records");
        }
        const std::string call = dice_.percent(50) ? named(function) : positional(function);
        if (function.aggregate)
            return "SELECT count(r::text) FROM (SELECT " + call +
                   " AS r FROM generate_series(1, 3)) AS s";
        switch (dice_.below(10)) {
            case 0:
                return "SELECT count(*) FROM " + call;
            case 1:
                return "SELECT " + call + " AS r LIMIT 5";
            default:
                return "SELECT count(r::text) FROM " + call + " AS r";
        }
    }

private:
    using Types = std::vector<std::string>;

    std::string value_of(const std::string& type) {
        const auto found = catalog_.values.find(type);
        return found == catalog_.values.end() ? "NULL" : dice_.of(found->second);
    }

    // ---- Inner queries ----

    std::string random_type() {
        // Types that functions look for come as often as all others.
        static const Types likely = {
            "text",   "text",    "text[]",   "real[]", "double precision[]", "integer[]", "bigint",
            "bytea",  "integer", "tsvector", "ctph",   "varchar[]",          "real",      "oid",
            "vector", "halfvec", "sparsevec", "bit varying"};
        return dice_.percent(50) ? dice_.of(likely) : dice_.of(catalog_.types);
    }

    /// Moderate values of a type, another one in each row; empty for types that have none here.
    std::string moderate(const std::string& type) {
        static const std::map<std::string, Types> expressions = {
            {"bigint", {"i::bigint", "abs(i)::bigint"}},
            {"integer", {"i", "1"}},
            {"text",
             {"'to be or not to be ' || i", "md5((i / 2)::text)", "'w' || i", "'to be'",
              "repeat(md5((i / 2)::text), 20) || i"}},
            {"text[]",
             {"string_to_array('to be or not to be ' || i, ' ')", "ARRAY['w' || i, 'w' || i + 1]",
              "'{to,be}'::text[]", "ARRAY['x', NULL, 'to', '']"}},
            {"real[]", {"ARRAY[i, 1, i % 3]::real[]", "ARRAY[1, 2, 3]::real[]"}},
            {"integer[]", {"ARRAY[1, i + 10, 3]", "ARRAY[1, 2, 3]"}},
            {"bytea", {"decode(md5((i / 2)::text), 'hex')", "'\\x00ff00'::bytea"}},
            {"bit varying", {"i::bit(20)::bit varying", "B'0110'::bit varying"}},
            {"tsvector", {"to_tsvector('simple', 'to be or not ' || i)"}},
            {"ctph", {"ctph_signature('to be or not to be ' || i)", "NULL::ctph"}}};
        const auto found = expressions.find(type);
        return found == expressions.end() ? "" : dice_.of(found->second);
    }

    /// An expression of that type, not the same in all rows.
    std::string column_of(const std::string& type) {
        const std::string tame = moderate(type);
        if (!tame.empty() && dice_.percent(tame_ ? 85 : 30)) return tame;
        if (dice_.percent(30)) return value_of(type);
        return "CASE i % 3 WHEN 0 THEN " + value_of(type) + " WHEN 1 THEN " + value_of(type) +
               " ELSE " + value_of(type) + " END";
    }

    /// Columns as functions take them; "id" is the type of id_type.
    const std::vector<Types>& shapes() const {
        static const std::vector<Types> some = {{"id", "text"},
                                                {"id", "real[]"},
                                                {"id", "text[]"},
                                                {"id", "text[]", "text[]"},
                                                {"id", "integer[]", "real[]"},
                                                {"text"},
                                                {"text[]"},
                                                {"text", "integer", "text", "bigint"},
                                                {"text", "real[]"},
                                                {"text", "real[]", "real[]"},
                                                {"text", "bigint", "real[]", "real[]"},
                                                {"id", "bytea"},
                                                {"id", "bit varying"},
                                                {"id", "text", "ctph"},
                                                {"id", "tsvector"}};
        return some;
    }

    /// By the names that parameters have so far: others get any of the shapes.
    std::vector<Types> likely_shapes(const std::string& parameter) const {
        static const std::map<std::string, std::vector<Types>> known = {
            {"docs",
             {{"id", "text"}, {"text"}, {"text[]"}, {"id", "text", "ctph"}, {"id", "bytea"}}},
            {"items",
             {{"id", "real[]"}, {"id", "text"}, {"id", "integer[]", "real[]"}, {"id", "bit varying"}}},
            {"queries",
             {{"id", "real[]"}, {"id", "text"}, {"id", "integer[]", "real[]"}, {"id", "bit varying"}}},
            {"words", {{"id", "text"}}},
            {"pairs", {{"id", "text[]", "text[]"}}},
            {"matches", {{"id", "id"}}},
            {"sequences", {{"id", "text[]"}}},
            {"cooccurrences", {{"text", "integer", "text", "bigint"}}}};
        const auto found = known.find(parameter);
        return found == known.end() ? shapes() : found->second;
    }

    std::string rows_of(const Types& types) {
        static const Types sources = {"generate_series(1, 0)", "generate_series(1, 1)",
                                      "generate_series(1, 3)", "generate_series(1, 7)",
                                      "generate_series(-5, 40)"};
        static const Types names = {"word", "vector", "count", "output_vector", "id"};
        std::string query = "SELECT ";
        for (std::size_t i = 0; i < types.size(); ++i) {
            query += (i == 0 ? "" : ", ") + column_of(types[i] == "id" ? id_type_ : types[i]);
            if (!tame_ && dice_.percent(10)) query += " AS " + dice_.of(names);
        }
        return query + " FROM " + dice_.of(sources) + " AS g(i)";
    }

    /// Records with the fields of linkage models below.
    std::string records() {
        return "SELECT " + column_of(id_type_) + " AS id, " + column_of("text") + " AS name, " +
               column_of(random_type()) + " AS x, i AS n, date '2000-01-01' + i AS born FROM " +
               "generate_series(" + dice_.of(Types{"1, 0", "1, 1", "1, 7", "-20, 60"}) +
               ") AS g(i)";
    }

    std::string tame_query(const std::string& parameter) {
        static const Types models = {
            "TABLE model", "SELECT word, vector, output_vector FROM model",
            "SELECT word, count, array_fill(1e38::real, ARRAY[3]) AS vector, output_vector FROM "
            "model",
            "SELECT 'w' || i AS word, abs(i) AS count, ARRAY[i, 1]::real[] AS vector, "
            "ARRAY[1, i]::real[] AS output_vector FROM generate_series(-3, 30) AS i",
            "SELECT 'w' || i, ARRAY[i, 1]::float8[] FROM generate_series(1, 30) AS i"};
        static const Types linkage_models = {
            "TABLE linkage", "SELECT * FROM linkage WHERE field IS DISTINCT FROM 'x'",
            "SELECT field, level, condition, field = 'x' AS term_frequency, m, u FROM linkage"};
        if (parameter == "model" && of_records_) return dice_.of(linkage_models);
        if (parameter.starts_with("records")) return records();
        if (parameter == "model" || parameter == "initial") return dice_.of(models);
        const std::vector<Types> shapes = likely_shapes(parameter);
        return rows_of(shapes[shape_ % shapes.size()]);
    }

    std::string wild_query() {
        static const Types others = {
            "",
            "SELECT",
            "SELECT UNION ALL SELECT",
            "TABLE no_columns",
            "TABLE dropped",
            "TABLE model",
            "SELECT t FROM dropped AS t",
            "SELECT t.*, t FROM dropped AS t",
            "SELECT id, place FROM dropped",
            "SELECT id, body FROM dropped",
            "SELECT id, string_to_array(body, ' ') FROM dropped",
            "SELECT id, '{to,be}'::text[], '{or,not,x}'::text[] FROM dropped",
            "SELECT * FROM word_cooccurrences('SELECT body FROM dropped', min_count => 1)",
            "VALUES (1, 'to be'), (2, NULL), (NULL, 'or')",
            "VALUES (1, '{1,2}'::real[]), (1, '{1}')",
            "SELECT 1; SELECT 2",
            "SELECT 1/0, 'x'",
            "SELECT i, 'x' || 1 / (i - 3) FROM generate_series(1, 9) AS i",
            "INSERT INTO no_columns DEFAULT VALUES",
            "SELECT * FROM nothing",
            "SELECT $1, $2",
            "SELECT NULL, NULL",
            "SELECT '', ''",
            "SELECT pg_sleep(0), pg_sleep(0)",
            "SELECT ROW(1), ROW(2)",
            "SELECT 'a'::cstring, 'b'::cstring",
            "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 50) "
            "SELECT i, i::text FROM r",
            "\x01\x02 nonsense"};
        switch (dice_.below(10)) {
            case 0:
            case 1:
                return rows_of({});
            case 2:
            case 3:
                return dice_.of(others);
            case 4:
            case 5:
            case 6: {
                Types types = dice_.of(shapes());
                types[dice_.below(types.size())] = random_type();
                return rows_of(types);
            }
            default: {
                Types types(dice_.below(7));
                for (std::string& type : types) type = random_type();
                return rows_of(types);
            }
        }
    }

    // ---- Arguments ----

    std::string text_argument(const Argument& argument) {
        static const Types options = {
            "ctph",          "exact",   "cosine",  "euclidean", "manhattan",
            "inner_product", "lin",     "relaxed", "skipgram",  "cbow",
            "unigram",       "sklearn", "breunig", "front",     "xbw",
            "jaccard",       "hamming", "pmi",     "raw",     "frequency", "int main() { return 0; }"};
        const bool query = returns_set_ && (!argument.optional() || argument.name == "initial" ||
                                            argument.name == "matches");
        if (query && dice_.percent(90))
            return quoted(tame_ ? tame_query(argument.name) : wild_query());
        return argument.optional() && dice_.percent(70) ? quoted(dice_.of(options)) : plain("text");
    }

    /// Of the records above.
    std::string list_of_fields(const std::string& parameter) {
        static const Types comparisons = {
            "'{\"name: exact, jaro_winkler >= 0.9\",x: exact}'", "'{x: exact}'",
            "'{\"n: exact, within 3, within 50 percent\",\"born: day_month_exchanged, within "
            "9\",\"name: osa <= 2, edit_rate <= 0.4, jaro >= 0.5\"}'",
            "'{\"x: exact, overlap >= 1\",\"n: within 2\"}'", "'{\"x: levenshtein <= 3\"}'"};
        static const Types fields = {"'{}'", "'{x}'", "'{name}'", "'{\"x, n\",born}'",
                                     "'{n,name}'"};
        return dice_.of(parameter == "comparisons" ? comparisons : fields);
    }

    std::string plain(const std::string& type) {
        static const std::map<std::string, Types> moderate = {
            {"integer", {"1", "2", "3", "5", "100"}},
            {"bigint", {"0", "1", "3", "7"}},
            {"double precision", {"0.05", "0.1", "0.3", "0.49", "1"}},
            {"boolean", {"true", "false"}},
            {"regconfig", {"'simple'", "'english'"}},
            {"trie", {"(SELECT front FROM tries)", "(SELECT xbw FROM tries)"}},
            {"double precision[]", {"'{1,2,3}'", "'{0,0,1}'", "'{1e300,-1e300,1}'"}}};
        const auto found = moderate.find(type);
        if (tame_ && found != moderate.end() && dice_.percent(85)) return dice_.of(found->second);
        if (!tame_ && dice_.percent(5)) return value_of(dice_.of(catalog_.types));
        return !tame_ && dice_.percent(5) ? "NULL" : value_of(type);
    }

    std::string argument_of(const Argument& argument) {
        if (tame_ && argument.optional() && dice_.percent(40)) return argument.otherwise;
        if (argument.type == "text") return text_argument(argument);
        if (argument.type == "text[]" && tame_) return list_of_fields(argument.name);
        if (argument.type != "anyelement") return plain(argument.type);
        const std::string type = tame_ ? id_type_ : random_type();
        return dice_.percent(70) ? "NULL::" + type : value_of(type);
    }

    std::string positional(const Function& function) {
        std::string list;
        for (const Argument& argument : function.arguments) {
            if (argument.optional() && dice_.percent(tame_ ? 80 : 50)) break;
            list += (list.empty() ? "" : ", ") + argument_of(argument);
        }
        return function.name + "(" + list + ")";
    }

    std::string named(const Function& function) {
        Types list;
        for (const Argument& argument : function.arguments) {
            if (argument.name.empty()) return positional(function);
            if (argument.optional() ? dice_.percent(80) : !tame_ && dice_.percent(2)) continue;
            list.push_back(argument.name + " => " + argument_of(argument));
        }
        // Not std::shuffle, which libraries do differently.
        if (!tame_ && dice_.percent(15))
            for (std::size_t i = list.size(); i > 1; --i)
                std::swap(list[i - 1], list[dice_.below(i)]);
        std::string text;
        for (const std::string& one : list) text += (text.empty() ? "" : ", ") + one;
        return function.name + "(" + text + ")";
    }

    const Catalog& catalog_;
    Dice& dice_;
    bool tame_ = false;
    std::size_t shape_ = 0;  // of a tame call's inner queries, as those of two go together
    bool returns_set_ = false;
    bool of_records_ = false;
    std::string id_type_;
};

// ---- The test ----

/// A session of the role that calls.
class Caller {
public:
    explicit Caller(const ConnectionString& where) : session_(where) {
        for (const char* setting : {"search_path = fuzz, public", "statement_timeout = '500ms'",
                                    "client_min_messages = error",
                                    "gputext.host_memory_limit = '8MB'", "work_mem = '4MB'"})
            session_.run(std::string("SET ") + setting);
    }

    PlainSession& session() { return session_; }

private:
    PlainSession session_;
};

bool reports_crash(const std::string& log) {
    for (const char* sign : {"terminated by signal", "PANIC:", "abnormal", "exited with exit code",
                             "TRAP:", "was killed", "runtime error:"})
        if (log.find(sign) != std::string::npos) return true;
    return false;
}

class RandomCalls : public ::testing::Test {
protected:
    void SetUp() override {
        server_ = std::make_unique<PrivateServer>("temp_file_limit = '256MB'\n");
        server_->start();
        Session administrator(server_->connection());
        administrator.rows("CREATE EXTENSION gputext");
        administrator.rows("CREATE ROLE caller LOGIN");
        administrator.rows("GRANT CREATE ON DATABASE postgres TO caller");
        monitor_ = std::make_unique<Session>(server_->connection());
        monitor_->rows("SET statement_timeout = 0");
        started_ = monitor_->value("SELECT pg_postmaster_start_time()");
    }

    ConnectionString as_caller() const { return {server_->connection().text + " user=caller"}; }
    Catalog catalog() {
        Session caller(as_caller());
        caller.rows(kObjects);
        Session administrator(server_->connection());
        administrator.rows(
            "INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, "
            "    extversion) "
            "SELECT pg_nextoid('pg_extension', 'oid', 'pg_extension_oid_index'), 'vector', oid, "
            "    'fuzz'::regnamespace, true, '0' FROM pg_roles WHERE rolname = 'caller'");
        // Which the owner of an extension may do.
        caller.rows("ALTER EXTENSION vector ADD DOMAIN vector");
        caller.rows("ALTER EXTENSION vector ADD TYPE halfvec");
        caller.rows("ALTER EXTENSION vector ADD TYPE sparsevec");
        return catalog_of(caller);
    }

    /// The server and its other sessions as they were.
    void expect_alive(const std::string& after) {
        std::string started, pid;
        try {
            started = monitor_->value("SELECT pg_postmaster_start_time()");
            pid = monitor_->value("SELECT pg_backend_pid()");
        } catch (const std::exception& error) {
            FAIL() << "another session ended: " << error.what() << "\nafter " << after << "\n"
                   << server_->log();
        }
        EXPECT_EQ(started, started_) << "after " << after;
        EXPECT_EQ(pid, std::to_string(monitor_->pid())) << "after " << after;
        EXPECT_FALSE(reports_crash(server_->log())) << server_->log();
    }

    std::unique_ptr<PrivateServer> server_;
    std::unique_ptr<Session> monitor_;
    std::string started_;
};

TEST_F(RandomCalls, EndInRowsOrInProperErrors) {
    const std::uint64_t seed = number_from("GPUTEXT_FUZZ_SEED", std::random_device{}());
    const std::uint64_t most = number_from("GPUTEXT_FUZZ_CALLS", testing::rounds(1000, 6000));
    const auto end = Clock::now() + std::chrono::seconds(number_from("GPUTEXT_FUZZ_SECONDS",
                                                                     testing::rounds(10, 45)));
    const bool shows = std::getenv("GPUTEXT_FUZZ_LOG") != nullptr;
    std::printf("GPUTEXT_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);

    const Catalog all = catalog();
    ASSERT_GE(all.functions.size(), 40u);
    ASSERT_GE(all.types.size(), 150u);
    Dice dice(seed);
    Calls calls(all, dice);
    std::unique_ptr<Caller> caller;
    std::map<std::string, std::size_t> outcomes;       // by SQLSTATE
    std::map<std::string, std::size_t> rows, in_vain;  // by function
    std::size_t count = 0, wrong = 0;
    for (; count < most && (Clock::now() < end || count < all.functions.size()); ++count) {
        if (count % 500 == 0) caller = std::make_unique<Caller>(as_caller());
        if (count % 50 == 0)
            caller->session().run(std::string("SET gputext.device = ") +
                                  (dice.percent(50) ? "cpu" : "gpu"));
        const Function& function = all.functions[count % all.functions.size()];
        const std::string call = calls.of(function);
        if (shows) {
            std::printf("%s;\n", call.c_str());
            std::fflush(stdout);
        }
        const std::string state = caller->session().sqlstate(call);
        if (shows) std::printf("-- %s %s\n", state.c_str(), caller->session().message().c_str());
        ++outcomes[state];
        ++(state == "ok" ? rows : in_vain)[function.name];
        if (state == "gone") {
            expect_alive(call);
            FAIL() << "call " << count << " ended the session: " << call << "\n"
                   << caller->session().message() << server_->log();
        }
        if (state == "XX000") {
            ADD_FAILURE() << "call " << count << ": " << call << "\n"
                          << caller->session().message();
            if (++wrong == 10) break;
        }
        if (count % 100 == 0) expect_alive(call);
    }
    expect_alive("all calls");
    std::printf("%zu calls of %zu functions with values of %zu types:", count, all.functions.size(),
                all.types.size());
    for (const auto& [state, number] : outcomes) std::printf(" %s %zu", state.c_str(), number);
    std::printf("\n");
    // Calls that never get past their arguments would test nothing.
    if (shows)
        for (const auto& [name, number] : in_vain)
            std::printf("%s: rows %zu, errors %zu\n", name.c_str(), rows[name], number);
    EXPECT_GE(outcomes["ok"], count / 10);
    EXPECT_GT(std::stol(monitor_->value("SELECT gpu_jobs FROM gputext_stat")), 0);
    EXPECT_EQ(monitor_->value("SELECT restarts FROM gputext_stat"), "0") << server_->log();
}

}  // namespace
}  // namespace gputext::live
