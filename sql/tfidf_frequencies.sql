-- tfidf_frequencies, tfidf_from_frequencies
\set SHOW_CONTEXT never

SET default_text_search_config = 'pg_catalog.english';
CREATE TABLE articles (id bigint PRIMARY KEY, shard integer, body text);
INSERT INTO articles VALUES
    (1, 0, 'How to boil an egg: boil the water, add the egg.'),
    (2, 1, 'Poaching eggs. The water must not boil, or the eggs break.'),
    (3, 0, 'Changing a tyre on the road, not in the water'),
    (4, 1, ''),
    (5, 0, NULL);

-- How many texts have each term; without a term, how many texts there are. Terms come as texts have them.
SELECT * FROM tfidf_frequencies('SELECT id, body FROM articles WHERE shard = 0');
SELECT * FROM tfidf_frequencies('SELECT id, to_tsvector(body) FROM articles WHERE shard = 1 ORDER BY id DESC');
SELECT * FROM tfidf_frequencies(items => 'SELECT md5(id::text), body FROM articles WHERE id <= 2', id_type => NULL::text, config => 'simple') ORDER BY documents DESC, term LIMIT 4;
SELECT * FROM tfidf_frequencies('SELECT id, body FROM articles WHERE false');

-- The sum of all weighs the terms of a part as all of them would.
CREATE TABLE frequencies AS
SELECT term, sum(documents) AS documents, min(first_id) AS first_id FROM (
    SELECT * FROM tfidf_frequencies('SELECT id, body FROM articles WHERE shard = 0') UNION ALL
    SELECT * FROM tfidf_frequencies('SELECT id, body FROM articles WHERE shard = 1')) AS shards GROUP BY term;
SELECT * FROM frequencies ORDER BY first_id NULLS FIRST, term COLLATE "C";
SELECT count(*) AS terms, count(*) FILTER (WHERE (o.documents, o.first_id) IS DISTINCT FROM (f.documents, f.first_id)) AS differing
FROM frequencies AS f FULL JOIN tfidf_frequencies('SELECT id, body FROM articles') AS o ON coalesce(o.term, '') = coalesce(f.term, '');
SELECT id, term, round(weight::numeric, 6) AS weight FROM tfidf_from_frequencies('SELECT id, body FROM articles WHERE shard = 1', 'TABLE frequencies');
-- Terms without a frequency are left out, as are those that fewer documents have than are wanted.
SELECT * FROM tfidf_from_frequencies($$VALUES (1, 'egg bicycle water')$$, $$VALUES (NULL, 10), ('egg', 5)$$);
SELECT * FROM tfidf_from_frequencies($$VALUES (1, 'egg bicycle water')$$, $$VALUES (NULL, 10), ('egg', 5), ('bicycl', 1), ('water', 0)$$, min_document_frequency => 2);
SELECT * FROM tfidf_from_frequencies($$VALUES ('a', 'egg')$$, $$VALUES (NULL, 10::numeric), ('egg', 5)$$, NULL::text);

-- Random texts on five servers against one, every weight to the last bit
CREATE TABLE texts AS
SELECT i::bigint AS id, i % 5 AS shard, md5(i::text)::uuid AS code,
    (SELECT string_agg('w' || abs(hashint8(i * 131 + j)) % (1 + abs(hashint8(i + j * 7)) % 300), ' ') FROM generate_series(1, i % 40) AS j) AS body
FROM generate_series(1, 500) AS i;
DELETE FROM texts WHERE body IS NULL;
CREATE TABLE sums AS
SELECT term, sum(documents) AS documents, min(first_id) AS first_id
FROM generate_series(0, 4) AS shard, LATERAL tfidf_frequencies('SELECT id, body FROM texts WHERE shard = ' || shard) GROUP BY term;
CREATE TABLE text_sums AS
SELECT term, sum(documents)::bigint AS documents, min(first_id) AS first_id
FROM generate_series(0, 4) AS shard, LATERAL tfidf_frequencies('SELECT code::text, body FROM texts WHERE shard = ' || shard, NULL::text) GROUP BY term;
CREATE FUNCTION of_shards(fewest integer) RETURNS TABLE (id bigint, term text, weight float8) LANGUAGE sql AS $$
    SELECT s.* FROM generate_series(0, 4) AS shard, LATERAL tfidf_from_frequencies('SELECT id, body FROM texts WHERE shard = ' || shard, 'TABLE sums', min_document_frequency => fewest) AS s
$$;
CREATE FUNCTION compared(fewest integer) RETURNS TABLE (weights bigint, differing bigint) LANGUAGE sql AS $$
    SELECT count(*), count(*) FILTER (WHERE o.weight IS DISTINCT FROM s.weight)
    FROM tfidf('SELECT id, body FROM texts', min_document_frequency => fewest) AS o FULL JOIN of_shards(fewest) AS s USING (id, term)
$$;
SELECT fewest, c.* FROM (VALUES (1), (3), (40)) AS l(fewest), LATERAL compared(fewest) AS c ORDER BY fewest;
SELECT count(*), count(*) FILTER (WHERE o.weight IS DISTINCT FROM s.weight) AS differing
FROM tfidf('SELECT code::text, body FROM texts', NULL::text) AS o FULL JOIN (
    SELECT s.* FROM generate_series(0, 4) AS shard, LATERAL tfidf_from_frequencies('SELECT code::text, body FROM texts WHERE shard = ' || shard, 'TABLE text_sums', NULL::text) AS s) AS s USING (id, term);


-- Neighbors of texts on five servers, merged, against one: rows, ranks and distances to the last bit
CREATE FUNCTION neighbors(search text, condition text, rest text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT * FROM %s(%L, %L, %s)', search, 'SELECT id, body FROM texts WHERE id % 7 = 0', 'SELECT id, body FROM texts WHERE ' || condition, rest);
END $$;
CREATE FUNCTION compared(search text, bound text, options text, k integer) RETURNS TABLE (rows bigint, differing bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT count(*), count(*) FILTER (WHERE o IS DISTINCT FROM m)
        FROM (SELECT row_number() OVER () AS n, * FROM neighbors(%L, ''true'', %L) AS (query_id bigint, item_id bigint, rank integer, distance float8)) AS o
        FULL JOIN (SELECT row_number() OVER () AS n, * FROM knn_merge(%L, %L)) AS m USING (n)',
        search, bound || options,
        (SELECT string_agg(format('SELECT * FROM neighbors(%L, %L, %L) AS (query_id bigint, item_id bigint, rank integer, distance float8)',
            search, 'shard = ' || shard, bound || ', exclude_key => false, frequencies => ''TABLE sums''' || options), ' UNION ALL ') FROM generate_series(0, 4) AS shard), k);
END $$;
SELECT k, options, c.* FROM (VALUES (1), (10), (1000)) AS ks(k), (VALUES (''), (', min_document_frequency => 5'), (', exclude_self => true')) AS o(options),
    LATERAL compared('gpu_knn', 'k => ' || k, options, k) AS c ORDER BY k, options;
SELECT radius, c.* FROM (VALUES (0.5), (0.9), (1.0)) AS r(radius), LATERAL compared('gpu_knn_within', 'radius => ' || radius, '', NULL) AS c ORDER BY radius;
-- A device has the same factors. Where there is none, the CPU is compared with itself.
SELECT set_config('gputext.device', CASE WHEN bool_or(device IS NOT NULL) THEN 'gpu' ELSE 'cpu' END, false) FROM gputext_devices() \gset ignored_
SELECT c.* FROM compared('gpu_knn', 'k => 10', '', 10) AS c;
RESET gputext.device;
-- Terms in the order of the query, or of their bytes, change no more than the last bits.
SELECT count(*), count(*) FILTER (WHERE abs(a.distance - b.distance) > 1e-14) AS far
FROM gpu_knn('SELECT id, body FROM texts', 'SELECT id, body FROM texts', 1000, false, frequencies => 'SELECT term, documents FROM sums') AS a
FULL JOIN gpu_knn('SELECT id, body FROM texts', 'SELECT id, body FROM texts', 1000, false, frequencies => 'SELECT term, documents FROM sums ORDER BY md5(term)') AS b USING (query_id, item_id);

-- What it refuses
SELECT * FROM tfidf_frequencies(NULL);
SELECT * FROM tfidf_frequencies('SELECT id FROM articles');
SELECT * FROM tfidf_frequencies('SELECT id, id FROM articles');
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', NULL);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', 'SELECT 1');
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', 'SELECT 1, 2');
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES ('egg', 'egg')$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES ('egg', 1)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES (NULL, 1), (NULL, 2)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES (NULL, 1), ('egg', 1), ('egg', 1)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES (NULL, 1), ('egg', 2)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES (NULL, 1), ('egg', NULL)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES (NULL, 1), ('egg', -1)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES (NULL, 4294967296), ('egg', 1)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES (NULL, 1, 1), ('egg', 1, NULL)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM articles', $$VALUES (NULL, 1, '{}'::json)$$);
SELECT * FROM tfidf_from_frequencies('SELECT id::text, body FROM articles', $$VALUES (NULL, 1)$$);
SELECT * FROM gpu_knn('SELECT 1, ARRAY[1.0::real]', 'SELECT 1, ARRAY[1.0::real]', 1, false, frequencies => 'TABLE sums');
SELECT * FROM gpu_knn('SELECT 1, ARRAY[1], ARRAY[1.0::real]', 'SELECT 1, ARRAY[1], ARRAY[1.0::real]', 1, false, frequencies => 'TABLE sums');
SELECT * FROM gpu_knn('SELECT id, body FROM texts', 'SELECT id, body FROM texts', 1, false, frequencies => 'SELECT 1');

DROP TABLE articles, frequencies, texts, sums, text_sums;
DROP FUNCTION of_shards(integer), compared(integer), compared(text, text, text, integer), neighbors(text, text, text);
