-- linkage_model and linkage_model_between
\set SHOW_CONTEXT never
CREATE SCHEMA linkage_model;
SET search_path = linkage_model, public;

-- 400 records of 200 people: the second one often has a typo, another city or nothing.
CREATE FUNCTION dice(seed text, sides integer) RETURNS integer LANGUAGE SQL IMMUTABLE AS
    $$SELECT abs(('x' || substr(md5(seed), 1, 8))::bit(32)::integer::bigint % sides)::integer$$;
CREATE TABLE people AS
SELECT 2 * i + r AS id, i AS person,
       CASE WHEN r = 1 AND dice('n' || i, 4) = 0 THEN overlay(name PLACING 'x' FROM 3) WHEN dice('z' || i || r, 20) > 0 THEN name END AS name,
       CASE WHEN r = 1 AND dice('b' || i, 5) = 0 THEN born + 3 ELSE born END AS born,
       CASE WHEN r = 1 AND dice('m' || i, 4) = 0 THEN 'Rome' ELSE city END AS city
FROM (SELECT i, substr(md5('name' || dice('a' || i, 150)), 1, 9) AS name, '1950-01-01'::date + dice('d' || i, 15000) AS born, (ARRAY['Rome', 'Rome', 'Oslo', 'Lima'])[1 + dice('c' || i, 4)] AS city
      FROM generate_series(1, 200) AS i) AS p, generate_series(0, 1) AS r;

CREATE TABLE model AS
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: exact, jaro_winkler >= 0.85","born: exact, within 31",city: exact}');
-- The prior comes first, then the fields in their order, the highest level first.
SELECT field, level, condition, term_frequency, round(m::numeric, 2) AS m, round(u::numeric, 4) AS u, round(match_weight::numeric, 1) AS match_weight FROM model;
-- Probabilities of the levels of a field, and of the prior, sum to 1.
SELECT field, abs(sum(m) - 1) < 1e-12 AS m, abs(sum(u) - 1) < 1e-12 AS u FROM model WHERE field IS NOT NULL GROUP BY field ORDER BY field;
SELECT m + u AS prior, abs(max(abs(match_weight - ln(m / u) / ln(2))) OVER ()) < 1e-12 AS weights FROM model WHERE field IS NULL;
-- The pairs that it finds: right ones, and others
SELECT count(*) FILTER (WHERE a.person = b.person) AS matches, count(*) FILTER (WHERE a.person <> b.person) AS others
FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', 0) JOIN people AS a ON a.id = id1 JOIN people AS b ON b.id = id2;
-- The same model, whatever the order in which rows come, and on threads
SET gputext.cpu_threads = 3;
SELECT count(*) FROM (SELECT * FROM linkage_model('SELECT * FROM people ORDER BY id DESC', '{"name: exact, jaro_winkler >= 0.85","born: exact, within 31",city: exact}')
    EXCEPT SELECT * FROM model) AS d;
RESET gputext.cpu_threads;
SET client_min_messages = warning;
-- Term frequencies are a property of the field, and change no probability.
SELECT l.field, bool_and(l.term_frequency) AS term_frequency, count(*), count(*) FILTER (WHERE (l.m, l.u) = (m.m, m.u)) AS same
FROM linkage_model('SELECT * FROM people', '{"name: exact, jaro_winkler >= 0.85","born: exact, within 31",city: exact}', term_frequencies => '{name,city}') AS l
JOIN model AS m ON (m.field, m.level) IS NOT DISTINCT FROM (l.field, l.level) GROUP BY l.field ORDER BY l.field;
-- u is counted over all pairs, of which no match is taken out where a key leaves none: how many levels, and how many are as counted, half a pair added to each of k levels
CREATE VIEW patterns AS
SELECT a.id AS id1, b.id AS id2,
       CASE WHEN a.name IS NULL OR b.name IS NULL THEN NULL WHEN a.name = b.name THEN 2 WHEN jaro_winkler_similarity(a.name, b.name) >= 0.85 THEN 1 ELSE 0 END AS name,
       CASE WHEN a.born = b.born THEN 2 WHEN abs(a.born - b.born) <= 31 THEN 1 ELSE 0 END AS born, (a.city = b.city)::integer AS city
FROM people AS a, people AS b;
CREATE FUNCTION counted(pairs text) RETURNS TABLE (field text, level integer, n bigint, compared bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT m.field, m.level, count(*) FILTER (WHERE v.level = m.level), count(v.level)
        FROM model AS m, patterns, LATERAL (VALUES (''name'', name), (''born'', born), (''city'', city)) AS v (field, level)
        WHERE v.field = m.field AND %s GROUP BY m.field, m.level', pairs);
END$$;
SELECT count(*), count(*) FILTER (WHERE abs(u - (n + 0.5) / (compared + CASE field WHEN 'city' THEN 1 ELSE 1.5 END)) < 1e-12) AS as_counted
FROM linkage_model('SELECT id, * FROM people', '{"name: exact, jaro_winkler >= 0.85","born: exact, within 31",city: exact}', keys => '{id}') JOIN counted('id1 < id2') USING (field, level);
SELECT count(*), count(*) FILTER (WHERE abs(u - (n + 0.5) / (compared + CASE field WHEN 'city' THEN 1 ELSE 1.5 END)) < 1e-12) AS as_counted
FROM linkage_model_between('SELECT id, * FROM people WHERE id % 2 = 0', 'SELECT id, * FROM people WHERE id % 2 = 1', '{"name: exact, jaro_winkler >= 0.85","born: exact, within 31",city: exact}', keys => '{id}')
JOIN counted('id1 % 2 = 0 AND id2 % 2 = 1') USING (field, level);
RESET client_min_messages;
-- Known matches: m is counted from them, of n matches c of a level as (c + s) / (n + 1), where s is 0.9 for the highest level, and the lower ones share 0.1. A pair may come twice and either way round.
CREATE TABLE known AS SELECT 2 * i AS id1, 2 * i + 1 AS id2 FROM generate_series(1, 200) AS i;
SELECT count(*), count(*) FILTER (WHERE abs(m - (n + CASE WHEN level = 2 OR (level = 1 AND field = 'city') THEN 0.9 WHEN field = 'city' THEN 0.1 ELSE 0.05 END) / (compared + 1)) < 1e-12) AS as_counted
FROM linkage_model('SELECT * FROM people', '{"name: exact, jaro_winkler >= 0.85","born: exact, within 31",city: exact}',
                   matches => 'SELECT id1, id2, ''seen'' FROM known UNION ALL SELECT id2, id1, NULL FROM known UNION ALL SELECT NULL, 2, NULL')
JOIN counted('(id1, id2) IN (SELECT * FROM known)') USING (field, level);
SELECT count(*) FROM linkage_model('SELECT id::text, name FROM people', '{name: exact}', id_type => NULL::text, matches => 'SELECT id1::text, id2::text FROM known');
SELECT count(*) FROM linkage_model('SELECT id::smallint, name FROM people', '{name: exact}', matches => 'SELECT id1::smallint, id2::integer FROM known');
SELECT count(*) FROM linkage_model('SELECT id, name FROM people', '{name: exact}', matches => 'SELECT * FROM known LIMIT 1');
-- Two tables: the first id of a match is of the first one
SELECT count(*) FROM linkage_model_between('SELECT * FROM people WHERE id % 2 = 0', 'SELECT * FROM people WHERE id % 2 = 1', '{name: exact}', matches => 'SELECT * FROM known');
SELECT count(*) FROM linkage_model_between('SELECT * FROM people WHERE id % 2 = 0', 'SELECT * FROM people WHERE id % 2 = 1', '{name: exact}', matches => 'SELECT id2, id1 FROM known');
-- Keys: training pairs are those alone that agree in one of them.
SELECT field, level, abs(l.u - m.u) < 0.001 AS similar_u FROM linkage_model('SELECT * FROM people', '{"name: exact, jaro_winkler >= 0.85","born: exact, within 31",city: exact}', keys => '{born,"name,city"}') AS l JOIN model AS m USING (field, level);
SELECT count(*) FROM linkage_model('SELECT id, * FROM people', '{"name: exact, jaro_winkler >= 0.85","born: exact, within 31",city: exact}', keys => '{id}');
-- Pairs to train with, and records, that do not fit into the memory
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM linkage_model('SELECT i, i % 20 AS a, i % 20 AS b, i % 20 AS c, i % 20 AS d FROM generate_series(1, 2000) AS i', '{a: exact,b: exact,c: exact,d: exact}');
SELECT count(*) FROM linkage_model('SELECT i, i AS a FROM generate_series(1, 20000) AS i', '{a: exact}');
RESET gputext.host_memory_limit;
SET client_min_messages = warning;
-- One field; a name in quotes
SELECT field, level, condition FROM linkage_model('SELECT id, name AS "The ""name"": full" FROM people', ARRAY['"The ""name"": full": exact, edit_rate <= 0.10, jaro>=.5']);
-- Conditions as they are read
SELECT field, condition FROM linkage_model('SELECT id, name AS n, id::numeric AS x, ARRAY[city, name] AS a FROM people',
    ARRAY[' n :exact,osa<=2,  levenshtein <= 3 ', 'x: within 5 percent, within 1e1', 'a: exact, overlap >= 2, overlap >= 1']) WHERE level > 0;

RESET client_min_messages;

-- ---- Errors ----

SELECT * FROM linkage_model(NULL, '{name: exact}');
SELECT * FROM linkage_model('SELECT * FROM people', NULL::text[]);
SELECT * FROM linkage_model('SELECT * FROM people', '{}');
SELECT * FROM linkage_model('SELECT * FROM people', '{NULL}');
SELECT * FROM linkage_model('SELECT * FROM people', '{name}');
SELECT * FROM linkage_model('SELECT * FROM people', '{": exact"}');
SELECT * FROM linkage_model('SELECT * FROM people', ARRAY['"name: exact']);
SELECT * FROM linkage_model('SELECT * FROM people', '{"name:"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: exact, "}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: exact; osa <= 1"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: jaro_winkler"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: jaro_winkler <= 0.9"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: jaro_winkler >= 90"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: osa <= two"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: metaphone"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: within 3"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"born: exact, osa <= 1"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: osa <= 2, osa <= 1"}');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact,"name: osa <= 1"}');
SELECT * FROM linkage_model('SELECT * FROM people', (SELECT array_agg('f' || i || ': exact') FROM generate_series(1, 33) AS i));
SELECT * FROM linkage_model('SELECT * FROM people', ARRAY[(SELECT 'born: ' || string_agg('within ' || i, ', ') FROM generate_series(1, 16) AS i)]);
SELECT * FROM linkage_model('SELECT * FROM people', '{Name: exact}');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact}', term_frequencies => '{city}');
SELECT * FROM linkage_model('SELECT * FROM people', '{"name: osa <= 1"}', term_frequencies => '{name}');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact}', term_frequencies => '{NULL}');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact}', keys => '{street}');
SELECT * FROM linkage_model('SELECT id::text, name FROM people', '{name: exact}');
SELECT * FROM linkage_model_between('SELECT id::text, name FROM people', 'SELECT * FROM people', '{name: exact}');
SELECT * FROM linkage_model('SELECT * FROM people WHERE id = 2', '{name: exact}');
SELECT * FROM linkage_model_between('SELECT * FROM people', 'SELECT * FROM people WHERE false', '{name: exact}');
SELECT * FROM linkage_model('SELECT id, name, NULL::text AS phone FROM people', '{name: exact,phone: exact}');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact}', matches => 'SELECT 2, 1000');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact}', matches => 'SELECT 2, 2');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact}', matches => 'SELECT 2');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact}', matches => 'SELECT * FROM known WHERE false');
SELECT * FROM linkage_model('SELECT * FROM people', '{name: exact}', matches => 'SELECT id1, id2::text FROM known');
SELECT * FROM linkage_model('SELECT id / 2, name FROM people', '{name: exact}', matches => 'SELECT 2, 3');
SELECT * FROM linkage_model_between('SELECT * FROM people WHERE id % 2 = 0', 'SELECT * FROM people WHERE id % 2 = 1', '{name: exact}', matches => 'SELECT 3, 3');

SET client_min_messages = warning;
DROP SCHEMA linkage_model CASCADE;
