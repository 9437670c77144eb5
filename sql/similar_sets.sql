-- Sets that are similar, compared with plain SQL
\set SHOW_CONTEXT never
CREATE SCHEMA similar_sets;
SET search_path = similar_sets, public;
SET gputext.device = cpu;

CREATE TABLE notes (id integer, body text);
INSERT INTO notes VALUES
    (1, 'the quick brown fox jumps over the lazy dog'),
    (2, 'The quick brown fox jumps over a lazy dog!'),
    (3, 'the quick brown fox jumps over the lazy dog and runs away from the old grey wolf'),
    (4, 'a fox'),
    (5, ''),
    (6, NULL);

-- ---- Shingles of texts ----

SELECT * FROM similar_sets('SELECT id, body FROM notes', threshold => 0.4, shingle => 2);
SELECT * FROM similar_sets('SELECT id, body FROM notes WHERE id < 6', threshold => 0.4, shingle => 2, fold_case => true);
-- A text in a longer one
SELECT * FROM similar_sets('SELECT id, body FROM notes WHERE id < 6', measure => 'containment', threshold => 1);
SELECT * FROM similar_sets('SELECT id, body FROM notes WHERE id < 6', measure => 'containment', threshold => 1, shingle => 1);
SELECT * FROM similar_sets('SELECT id, body FROM notes WHERE id < 6', threshold => 0.6, shingle => 3, unit => 'characters', fold_case => true, fold_blanks => true);
SELECT * FROM similar_sets_between('SELECT id, body FROM notes WHERE id = 3', 'SELECT id, body FROM notes WHERE id < 3', threshold => 5, measure => 'overlap', shingle => 1);

-- In the order of ids, whatever the order in which rows are read
CREATE VIEW shuffled AS SELECT id, body FROM notes WHERE id < 6 ORDER BY md5(id::text) OFFSET 0;
SELECT * FROM similar_sets('TABLE shuffled', threshold => 0.4, shingle => 2);
SELECT id1, id2, common FROM similar_sets_between('TABLE shuffled', 'SELECT id, body FROM notes WHERE id < 3', threshold => 0.4, shingle => 2);
SELECT id1, id2, common FROM similar_sets_between('SELECT id, body FROM notes WHERE id < 3', 'TABLE shuffled', threshold => 0.4, shingle => 2);

-- ---- Arrays ----

CREATE TABLE baskets (id text, items text[]);
INSERT INTO baskets VALUES ('ann', '{milk,bread,tea}'), ('bob', '{tea,milk,bread,bread,NULL}'), ('cid', '{milk,eggs}'), ('dora', '{}'), ('eve', '{milk,tea}');
SELECT * FROM similar_sets('SELECT id, items FROM baskets', id_type => NULL::text, threshold => 0.5);
SELECT * FROM similar_sets('SELECT id, items FROM baskets ORDER BY id DESC', id_type => NULL::text, threshold => 0.5, measure => 'cosine');
SELECT * FROM similar_sets('SELECT 1, ARRAY[1, 2, 3] UNION ALL SELECT 2, ARRAY[3, 2, 5]', threshold => 0.5);
-- A tsvector is the array of its lexemes.
SELECT * FROM similar_sets('SELECT id, to_tsvector(''simple'', body) FROM notes', threshold => 0.4);
SELECT * FROM similar_sets_between('SELECT id, to_tsvector(''simple'', body) FROM notes WHERE id < 3',
    'SELECT id, tsvector_to_array(to_tsvector(''simple'', body)) FROM notes WHERE id = 3', threshold => 0.4);

-- Elements are equal if = of their type says so by their collation.
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TYPE sizes AS (width numeric, height numeric);
CREATE DOMAIN duration AS interval;
SELECT type, common, size1, size2
FROM (VALUES ('text[]'), ('text[] COLLATE any_case'), ('varchar(9)[] COLLATE any_case'), ('char(4)[] COLLATE any_case'), ('char(4)[]'), ('name[]')) AS v (type),
    similar_sets(format('VALUES (1, ARRAY[''Ann'', ''Bob'', ''BOB'', ''x'']::%s), (2, ARRAY[''ann'', ''Bob'', ''x '']::%1$s)', type), threshold => 0.1);
SELECT type, common, size1, size2
FROM (VALUES ('interval', '24 hours', '1 day'), ('duration', '24 hours', '1 day'), ('numrange', '[1,2)', '[1.0,2.00)'), ('jsonb', '{"a": 1.0}', '{"a": 1.00}'),
    ('sizes', '(1.0,2)', '(1,2.0)'), ('float8', '0', '-0'), ('float4', 'NaN', '-NaN'), ('numeric', '1.0', '1.00'), ('timestamptz', '2026-01-01 12:00+00', '2026-01-01 13:00+01'),
    ('uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'a0eebc999c0b4ef8bb6d6bb9bd380a11'), ('bool', 'yes', 'on')) AS v (type, a, b),
    similar_sets(format('VALUES (1, ARRAY[%L, %L]::%s[]), (2, ARRAY[%2$L]::%3$s[])', a, b, type), threshold => 0.1);
SELECT * FROM similar_sets('VALUES (1, ARRAY[ROW (1.0)]), (2, ARRAY[ROW (1.00), ROW (2)])', threshold => 0.1);
SELECT * FROM similar_sets_between('SELECT 1, ARRAY[interval ''24 hours'', ''1 mon'']', 'SELECT 2, ARRAY[interval ''1 day'', ''30 days'']', threshold => 0.1);
SELECT * FROM similar_sets_between('SELECT 1, ARRAY[text ''A''] COLLATE any_case', 'SELECT 2, ARRAY[varchar ''a''] COLLATE any_case', threshold => 0.1);
SELECT * FROM similar_sets_between('SELECT 1, ARRAY[text ''A''] COLLATE any_case', 'SELECT 2, ARRAY[text ''a'']', threshold => 0.1);
SELECT * FROM similar_sets_between('SELECT 1, ARRAY[text ''A''] COLLATE any_case', 'SELECT 2, ARRAY[''a''::char(4)] COLLATE any_case', threshold => 0.1);
SELECT * FROM similar_sets_between('SELECT 1, ARRAY[interval ''1 day'']', 'SELECT 2, ARRAY[time ''1:00'']', threshold => 0.1);
SELECT * FROM similar_sets('SELECT 1, ARRAY[point ''1, 2'']');
SELECT common FROM similar_sets('SELECT i, ARRAY[point ''1, 2'']::text[] FROM generate_series(1, 2) AS i');
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM similar_sets('SELECT i, ARRAY[make_interval(secs => i)] FROM generate_series(1, 40000) AS i');
RESET gputext.host_memory_limit;

-- ---- Against all pairs ----

CREATE TABLE random AS
SELECT i::bigint AS id, ARRAY(SELECT (hashint4(i * 1000 + j)::bigint & 1023)::integer % (3 + i % 40) FROM generate_series(1, (i * 7) % 23) AS j) AS tokens
FROM generate_series(1, 150) AS i;
CREATE VIEW pairs AS
SELECT a.id AS id1, b.id AS id2, c::integer AS common, n::integer AS size1, m::integer AS size2
FROM random AS a JOIN random AS b ON a.id <> b.id, LATERAL (SELECT count(DISTINCT t) AS n FROM unnest(a.tokens) AS t) AS na, LATERAL (SELECT count(DISTINCT t) AS m FROM unnest(b.tokens) AS t) AS nb,
    LATERAL (SELECT count(*) AS c FROM (SELECT unnest(a.tokens) INTERSECT SELECT unnest(b.tokens)) AS i) AS ic WHERE n > 0 AND m > 0;
CREATE TABLE measured AS
SELECT measure, s AS similarity, id1, id2, common, size1, size2
FROM pairs, LATERAL (VALUES ('jaccard', common::float8 / (size1 + size2 - common)), ('containment', common::float8 / least(size1, size2)),
    ('cosine', common / sqrt(size1::float8 * size2)), ('overlap', common::float8)) AS v (measure, s);
CREATE FUNCTION compare(measure text, threshold float8) RETURNS TABLE (missing bigint, extra bigint, same bigint) LANGUAGE SQL AS $$
    WITH f AS (SELECT similarity, id1, id2, common, size1, size2 FROM similar_sets('SELECT id, tokens FROM random', compare.threshold, compare.measure)),
         e AS (SELECT similarity, id1, id2, common, size1, size2 FROM measured AS m WHERE m.measure = compare.measure AND similarity >= compare.threshold AND id1 < id2),
         g AS (SELECT id1, id2, common FROM similar_sets_between('SELECT id, tokens FROM random WHERE id % 3 = 0', 'SELECT id, tokens FROM random WHERE id % 3 > 0', compare.threshold, compare.measure)),
         h AS (SELECT id1, id2, common FROM measured AS m WHERE m.measure = compare.measure AND similarity >= compare.threshold AND id1 % 3 = 0 AND id2 % 3 > 0)
    SELECT (SELECT count(*) FROM (TABLE e EXCEPT TABLE f) AS x) + (SELECT count(*) FROM (TABLE h EXCEPT TABLE g) AS x),
        (SELECT count(*) FROM (TABLE f EXCEPT TABLE e) AS x) + (SELECT count(*) FROM (TABLE g EXCEPT TABLE h) AS x),
        (SELECT count(*) FROM (TABLE e INTERSECT TABLE f) AS x) + (SELECT count(*) FROM (TABLE g INTERSECT TABLE h) AS x)
$$;
SELECT measure, threshold, c.* FROM (VALUES ('jaccard', 0.2), ('jaccard', 0.5), ('jaccard', 1), ('containment', 0.5), ('containment', 0.9), ('cosine', 0.3),
    ('cosine', 0.75), ('overlap', 1), ('overlap', 6)) AS v (measure, threshold), compare(measure, threshold) AS c;
-- Only the nearest of each new set, of equal ones the first ones
WITH f AS (SELECT id1, id2, similarity FROM similar_sets_between('SELECT id, tokens FROM random WHERE id % 3 = 0', 'SELECT id, tokens FROM random WHERE id % 3 > 0', 0.1, k => 3)),
     e AS (SELECT id1, id2, similarity
           FROM (SELECT *, row_number() OVER (PARTITION BY id1 ORDER BY similarity DESC, id2) AS rank FROM measured
                 WHERE measure = 'jaccard' AND similarity >= 0.1 AND id1 % 3 = 0 AND id2 % 3 > 0) AS m
           WHERE rank <= 3)
SELECT (SELECT count(*) FROM (TABLE e EXCEPT TABLE f) AS x) AS missing, (SELECT count(*) FROM (TABLE f EXCEPT TABLE e) AS x) AS extra, (SELECT count(*) FROM f) AS same;
SELECT id1, id2, similarity
FROM similar_sets_between('SELECT id, items FROM baskets', 'SELECT id, items FROM baskets', id_type => NULL::text, threshold => 0.1, k => 2) WHERE id1 <> id2;
-- Rare elements count more.
CREATE TABLE weights AS
SELECT t AS token, round(ln((SELECT count(*) FROM random)::float8 / count(DISTINCT id)) * 65536)::bigint AS weight FROM random, unnest(tokens) AS t GROUP BY t;
CREATE FUNCTION total(tokens integer[]) RETURNS bigint LANGUAGE sql AS
    $$SELECT coalesce(sum(weight), 0)::bigint FROM weights WHERE token = ANY (tokens)$$;
CREATE TABLE weighed AS
SELECT a.id AS id1, b.id AS id2, total(a.tokens) AS n, total(b.tokens) AS m, total(ARRAY(SELECT unnest(a.tokens) INTERSECT SELECT unnest(b.tokens))) AS c
FROM random AS a JOIN random AS b ON a.id <> b.id AND a.tokens && b.tokens;
CREATE FUNCTION compare_weighed(measure text, threshold float8) RETURNS TABLE (missing bigint, extra bigint, same bigint) LANGUAGE sql AS $$
    WITH f AS (SELECT id1, id2, similarity FROM similar_sets('SELECT id, tokens FROM random', compare_weighed.threshold, compare_weighed.measure, idf => true)
               UNION ALL
               SELECT id1, id2, similarity FROM similar_sets_between('SELECT id, tokens FROM random WHERE id % 2 = 0', 'SELECT id, tokens FROM random WHERE id % 2 > 0',
                   compare_weighed.threshold, compare_weighed.measure, idf => true)),
         w AS (SELECT *, CASE compare_weighed.measure WHEN 'jaccard' THEN c::float8 / nullif(n + m - c, 0) WHEN 'containment' THEN c::float8 / nullif(least(n, m), 0)
                   WHEN 'cosine' THEN c / nullif(sqrt(n::float8 * m), 0) ELSE c::float8 / 65536 END AS similarity FROM weighed),
         e AS (SELECT id1, id2, similarity FROM w WHERE similarity >= compare_weighed.threshold AND id1 < id2
               UNION ALL
               SELECT id1, id2, similarity FROM w WHERE similarity >= compare_weighed.threshold AND id1 % 2 = 0 AND id2 % 2 > 0)
    SELECT (SELECT count(*) FROM (TABLE e EXCEPT ALL TABLE f) AS x), (SELECT count(*) FROM (TABLE f EXCEPT ALL TABLE e) AS x), (SELECT count(*) FROM f)
$$;
SELECT measure, threshold, c.* FROM (VALUES ('jaccard', 0.3), ('containment', 0.6), ('cosine', 0.4), ('overlap', 0.5), ('overlap', 7)) AS v (measure, threshold),
    compare_weighed(measure, threshold) AS c;
-- Shingles of texts are the sets of their arrays of shingles.
CREATE TABLE texts AS SELECT id, array_to_string(tokens, ' ') AS body FROM random;
CREATE VIEW shingles AS
SELECT id, ARRAY(SELECT w[i] || ' ' || w[i + 1] || ' ' || w[i + 2] FROM generate_series(1, cardinality(w) - 2) AS i) AS shingles
FROM texts, LATERAL string_to_array(body, ' ') AS w;
SELECT count(*), count(a) AS of_texts, count(b) AS of_arrays
FROM similar_sets('SELECT id, body FROM texts', threshold => 0.1, shingle => 3) AS a
    FULL JOIN similar_sets('SELECT id, shingles FROM shingles', threshold => 0.1) AS b USING (id1, id2, similarity, common, size1, size2);
SELECT count(*), count(a) AS of_texts, count(b) AS of_arrays
FROM similar_sets_between('SELECT id, body FROM texts WHERE id < 40', 'SELECT id, body FROM texts WHERE id > 30', threshold => 0.1, shingle => 3, idf => true) AS a
    FULL JOIN similar_sets_between('SELECT id, shingles FROM shingles WHERE id < 40', 'SELECT id, shingles FROM shingles WHERE id > 30', threshold => 0.1, idf => true) AS b
    USING (id1, id2, similarity, common, size1, size2);

-- ---- Errors ----

SELECT * FROM similar_sets('SELECT id, body FROM notes', threshold => 0);
SELECT * FROM similar_sets('SELECT id, body FROM notes', threshold => 1.1);
SELECT * FROM similar_sets('SELECT id, body FROM notes', threshold => 'NaN');
SELECT * FROM similar_sets('SELECT id, body FROM notes', threshold => 0.5, measure => 'overlap');
SELECT * FROM similar_sets('SELECT id, body FROM notes', threshold => 'NaN', measure => 'overlap');
-- Any other number will do, however small or large.
SELECT count(*) FROM similar_sets('SELECT id, body FROM notes WHERE id < 4', threshold => 1e-320, shingle => 1);
SELECT count(*) FROM similar_sets('SELECT id, body FROM notes WHERE id < 4', threshold => 1e-320, measure => 'overlap', shingle => 1, idf => true);
SELECT threshold, idf, (SELECT count(*) FROM similar_sets('SELECT id, body FROM notes WHERE id < 4', threshold, 'overlap', 1, idf => idf)) AS found
FROM (VALUES (1e9::float8), (1e300), ('Infinity')) AS v (threshold), (VALUES (false), (true)) AS w (idf);
SELECT * FROM similar_sets('SELECT id, body FROM notes', NULL::integer);
SELECT * FROM similar_sets('SELECT id, body FROM notes', id_type => NULL::integer, threshold => NULL);
SELECT * FROM similar_sets('SELECT id, body FROM notes', threshold => 0, measure => 'overlap', idf => true);
SELECT * FROM similar_sets_between('SELECT id, body FROM notes', 'SELECT id, body FROM notes', k => 0);
SELECT * FROM similar_sets_between('SELECT id, body FROM notes WHERE id < 4', 'SELECT id, body FROM notes WHERE id < 4', max_pairs => 1, k => 1, shingle => 1);
SELECT * FROM similar_sets('SELECT id, body FROM notes', measure => 'dice');
SELECT * FROM similar_sets('SELECT id, body FROM notes', shingle => 0);
SELECT * FROM similar_sets('SELECT id, body FROM notes', unit => 'lines');
SELECT * FROM similar_sets('SELECT id, body FROM notes', max_pairs => 0);
SELECT * FROM similar_sets('SELECT id, items FROM baskets', id_type => NULL::text, threshold => 0.1, max_pairs => 2);
SELECT * FROM similar_sets('SELECT id, body::bytea FROM notes WHERE id = 1');
SELECT * FROM similar_sets_between('SELECT id, body FROM notes WHERE id < 3', 'SELECT id, to_tsvector(body) FROM notes');
SELECT * FROM similar_sets('SELECT id FROM notes');
SELECT * FROM similar_sets_between('SELECT id, body FROM notes WHERE id < 3', 'SELECT 1, ARRAY[1]');
SELECT * FROM similar_sets_between('SELECT 1, ARRAY[1]', 'SELECT 1, ARRAY[1.0::real]');
SELECT * FROM similar_sets_between('SELECT 1, set::text[] AS set FROM (SELECT ARRAY[1]) AS s (set)', 'SELECT 1, set::text[] AS set FROM (SELECT ARRAY[1.0::real]) AS s (set)');
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM similar_sets('SELECT i, ARRAY[1, 2] FROM generate_series(1, 1000) AS i');
SELECT count(*) FROM similar_sets('SELECT i, repeat(''a word '', 10000) || i % 2 FROM generate_series(1, 4) AS i', shingle => 9000);
RESET gputext.host_memory_limit;
SELECT * FROM similar_sets('SELECT id, body FROM notes WHERE false');
SELECT * FROM similar_sets_between('SELECT id, body FROM notes WHERE id = 1', 'SELECT id, body FROM notes WHERE false');

SET client_min_messages = warning;
DROP SCHEMA similar_sets CASCADE;
