-- knn_merge
\set SHOW_CONTEXT never

-- The k nearest of each query, ranked anew. Columns are those of gpu_knn, or without the rank.
SELECT * FROM knn_merge('VALUES (1, 7, 1, 0.5::float8), (1, 8, 2, 0.7), (2, 7, 1, 0.1), (1, 9, 1, 0.6), (2, 9, 1, 0.05)', 2);
SELECT * FROM knn_merge('VALUES (2, 7, 0.5::float8), (1, 8, 0.7), (2, 9, 0.25), (1, 9, 0.6)', k => 1);
-- A null keeps all.
SELECT * FROM knn_merge('VALUES (2, 7, 0.5::float8), (1, 8, 0.7), (2, 9, 0.25), (1, 9, 0.6)', k => NULL);
SELECT * FROM knn_merge('SELECT 1, 2, 0.5::float8 WHERE false', 3);
-- Items at one distance rank by their ids, or in the order of the query.
SELECT * FROM knn_merge('VALUES (1, 10, 0.5::float8), (1, 9, 0.5), (1, -3, 0.5), (1, 8, 0.5)', 3);
SELECT * FROM knn_merge('SELECT q, i, d FROM (VALUES (2, 10, 0.5::float8, 1), (2, 9, 0.5, 2), (1, -3, 0.5, 3), (2, 8, 0.5, 4), (2, 1, 0.75, 0)) AS a(q, i, d, n) ORDER BY n', 3);
SELECT * FROM knn_merge('VALUES (1, 2, 0::float8), (1, 1, ''-0''), (1, 3, ''-infinity''), (1, 4, ''infinity''), (1, 0, ''infinity'')', 4);
-- An item that two answers have counts twice, as two rows of items do. UNION removes equal rows.
SELECT * FROM knn_merge('VALUES (1, 7, 0.5::float8), (1, 7, 0.5), (1, 8, 0.75)', 2);
SELECT * FROM knn_merge('VALUES (1, 7, 0.5::float8) UNION VALUES (1, 7, 0.5::float8), (1, 8, 0.75)', 2);
-- All that a bigint can be
SELECT * FROM knn_merge('VALUES (9223372036854775807, 1, 0.5::float8), (-9223372036854775808, 9223372036854775807, 0.5), (-9223372036854775808, -9223372036854775808, 0.5), (0, -1, 0.5)', 2);

-- Ids of other types
CREATE DOMAIN number AS integer;
SELECT * FROM knn_merge('VALUES (4294967295::oid, 1::number, 0.5::float8), (1, 2::number, 0.5)', 2);
SELECT pg_typeof(query_id), * FROM knn_merge('VALUES (-2::smallint, 7::smallint, 0.5::float8), (-2::smallint, -7::smallint, 0.5)', NULL::smallint, 2);
SELECT * FROM knn_merge('VALUES (''q''::text, ''b''::text, 0.5::float8), (''q'', ''a'', 0.5), (''p'', ''c'', 0.25), (''q'', ''c'', 0.5)', NULL::text, 2);
SELECT * FROM knn_merge(partial_answers => 'VALUES (''q''::text, ''b''::text, 0.5::float8), (''q'', ''a'', 0.5), (''p'', ''c'', 0.25) ORDER BY 1 DESC, 2 DESC', id_type => NULL::text, k => 1);
SELECT * FROM knn_merge('SELECT md5(i::text)::uuid, md5((i % 3)::text)::uuid, 0.5::float8 FROM generate_series(0, 2) AS i, generate_series(1, 2)', NULL::uuid, 1);
-- Equal ids are one query, however they are written.
SELECT * FROM knn_merge('SELECT * FROM (VALUES (1.0, 2.5, 0.5::float8), (1.00, 1.5, 0.5), (1, 0.5, 0.75)) AS a ORDER BY 3', NULL::numeric, 2);
SELECT * FROM knn_merge('VALUES (ARRAY[1, 2], ARRAY[1], 0.5::float8), (ARRAY[1, 2], ARRAY[0], 0.5)', NULL::integer[], 5);

-- Shards of items against all items on one server, with equal vectors and so with ties
CREATE TABLE items AS
SELECT i::bigint AS id, i % 5 AS shard, ARRAY[i * 7 % 11, i * 5 % 7, 1]::real[] AS vector, md5(i::text) AS name, md5(i::text)::uuid AS code FROM generate_series(1, 400) AS i;
CREATE TABLE queries AS SELECT -i::bigint AS id, vector, name, code FROM items, LATERAL (SELECT id AS i) AS n WHERE id % 9 = 0;
CREATE FUNCTION shards(type text, search text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(format(search, shard), ' UNION ALL ') FROM generate_series(0, 4) AS shard
$$;
CREATE FUNCTION differing(one text, merged text) RETURNS TABLE (rows bigint, differing bigint) LANGUAGE plpgsql AS $$
BEGIN
    -- With the number of the row: the order of rows is the same, too.
    RETURN QUERY EXECUTE format('SELECT count(*), count(*) FILTER (WHERE o IS DISTINCT FROM m)
        FROM (SELECT row_number() OVER () AS n, * FROM %s AS r) AS o FULL JOIN (SELECT row_number() OVER () AS n, * FROM %s AS r) AS m USING (n)', one, merged);
END $$;
SELECT metric, k, d.* FROM (VALUES ('cosine'), ('euclidean'), ('inner_product')) AS m(metric), (VALUES (1), (3), (10), (100), (1000)) AS ks(k),
    LATERAL differing(format('gpu_knn(''SELECT id, vector FROM queries'', ''SELECT id, vector FROM items'', %s, %L)', k, metric),
        format('knn_merge(%L, %s)', shards('', format('SELECT * FROM gpu_knn(''SELECT id, vector FROM queries'', ''SELECT id, vector FROM items WHERE shard = %%s'', %s, %L)', k, metric)), k)) AS d;
SELECT column_name, k, d.* FROM (VALUES ('name', 'text'), ('code', 'uuid')) AS c(column_name, type), (VALUES (1), (3), (30)) AS ks(k),
    LATERAL differing(format('gpu_knn(''SELECT %1$s, vector FROM queries'', ''SELECT %1$s, vector FROM items'', NULL::%2$s, %3$s)', column_name, type, k),
        format('knn_merge(%L, NULL::%s, %s)', shards('', format('SELECT * FROM gpu_knn(''SELECT %1$s, vector FROM queries'', ''SELECT %1$s, vector FROM items WHERE shard = %%s'', NULL::%2$s, %3$s)', column_name, type, k)), type, k)) AS d;
SELECT radius, d.* FROM (VALUES (0.0), (0.01), (0.1)) AS r(radius),
    LATERAL differing(format('gpu_knn_within(''SELECT id, vector FROM queries'', ''SELECT id, vector FROM items'', %s)', radius),
        format('knn_merge(%L, NULL::integer)', shards('', format('SELECT * FROM gpu_knn_within(''SELECT id, vector FROM queries'', ''SELECT id, vector FROM items WHERE shard = %%s'', %s)', radius)))) AS d;

-- Random answers against window functions: few distances, so that many tie
CREATE TABLE answers AS
SELECT n, (hashint8(n) % 40)::bigint AS query_id, hashint8extended(n, 5) % 1000 AS item_id, 0 AS rank, (abs(hashint8(n * 31)) % 50 / 8.0)::float8 AS distance FROM generate_series(1, 20000::bigint) AS n;
CREATE FUNCTION plain_merge(k bigint) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance float8) LANGUAGE sql STABLE AS $$
    SELECT query_id, item_id, r::integer, distance FROM (
        SELECT query_id, item_id, distance, row_number() OVER (PARTITION BY query_id ORDER BY distance, item_id) AS r FROM answers) AS ranked
    WHERE r <= k ORDER BY query_id, r
$$;
SELECT k, d.* FROM (VALUES (1), (2), (7), (100), (2147483647)) AS ks(k), LATERAL differing(format('plain_merge(%s)', k), format('knn_merge(''SELECT query_id, item_id, distance FROM answers'', %s)', k)) AS d;
SELECT k, count(*) AS rows, count(*) FILTER (WHERE p.item_id::text IS DISTINCT FROM m.item_id OR p.distance <> m.distance) AS differing
FROM (VALUES (1), (2), (7), (100)) AS ks(k),
    LATERAL (SELECT query_id, item_id, distance, row_number() OVER (PARTITION BY query_id ORDER BY distance, item_id::text) AS rank FROM answers) AS p
    JOIN LATERAL (SELECT * FROM knn_merge('SELECT query_id::text, item_id::text, distance FROM answers', NULL::text, k)) AS m ON m.query_id = p.query_id::text AND m.rank = p.rank
GROUP BY k ORDER BY k;

-- What it refuses
SELECT * FROM knn_merge(NULL, 1);
SELECT * FROM knn_merge('VALUES (1, 2, 0.5::float8)', 0);
SELECT * FROM knn_merge('VALUES (1, 2, 0.5::float8)', -1);
\set VERBOSITY terse
SELECT * FROM knn_merge('SELECT 1, 2');
\set VERBOSITY default
SELECT * FROM knn_merge('SELECT 1, 2', 1);
SELECT * FROM knn_merge('VALUES (1, 2, 1, 0.5::float8, 1)', 1);
SELECT * FROM knn_merge('VALUES (1, 2, 0.5)', 1);
SELECT * FROM knn_merge('VALUES (1, 2, 0.5::float8, 1)', 1);
SELECT * FROM knn_merge('VALUES (1, ''a''::text, 0.5::float8)', 1);
SELECT * FROM knn_merge('VALUES (''a''::text, ''b''::text, 0.5::float8)', 1);
SELECT * FROM knn_merge('VALUES (1, 2, 0.5::float8), (NULL, 2, 0.5)', 1);
SELECT * FROM knn_merge('VALUES (1, 2, 0.5::float8), (1, NULL, 0.5)', 1);
SELECT * FROM knn_merge('VALUES (1, 2, 0.5::float8), (1, 3, NULL)', 1);
SELECT * FROM knn_merge('VALUES (1, 2, 0.5::float8), (3, 4, ''NaN'')', 1);
SELECT * FROM knn_merge('VALUES (''q''::text, ''i''::text, ''NaN''::float8)', NULL::text, 1);
SELECT * FROM knn_merge('VALUES (''{}''::json, ''{}''::json, 0.5::float8)', NULL::json, 1);
SELECT * FROM knn_merge('VALUES (1::money, 2::money, 0.5::float8)', NULL::money, 1);
SELECT * FROM knn_merge('DELETE FROM answers RETURNING 1, 2, 0.5::float8', 1);
-- Memory that does not suffice is an error; with k there is no need for more.
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM knn_merge('SELECT i % 3, i, i::float8 FROM generate_series(1, 200000) AS i', NULL);
SELECT count(*), sum(item_id) FROM knn_merge('SELECT i % 3, i, -i::float8 FROM generate_series(1, 200000) AS i', 100);
RESET gputext.host_memory_limit;

-- Rows that are many enough are reduced in parallel workers: those of whole tables, partitions, several tables, joins and expressions. The answer is that of
-- rows which all come to the session.
SET min_parallel_table_scan_size = 0;
SET seq_page_cost = 50;
SET cpu_tuple_cost = 0.5;
CREATE TABLE many (shard integer, query_id integer, item_id bigint, unused text, distance float8) PARTITION BY LIST (shard);
CREATE TABLE many_0 (distance float8, unused text, item_id bigint, query_id integer, shard integer);
ALTER TABLE many ATTACH PARTITION many_0 FOR VALUES IN (0);
CREATE TABLE many_1 PARTITION OF many FOR VALUES IN (1);
INSERT INTO many SELECT i % 2, hashint8(i) % 300, hashint8extended(i, 3), 'a text', abs(hashint8(i * 7)) % 1000 / 8.0 FROM generate_series(1, 200000::bigint) AS i;
-- A column that rows of old do not have
ALTER TABLE many ADD COLUMN item bigint DEFAULT 7;
INSERT INTO many SELECT 1, i % 300, i, NULL, i % 77, -i FROM generate_series(1, 3000) AS i;
CREATE FUNCTION digest(statement text, workers integer) RETURNS TABLE (rows bigint, digest numeric) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('gputext.read_workers', workers::text, true);
    RETURN QUERY EXECUTE 'SELECT count(*), sum(hashint8extended(query_id, 1)::numeric * rank + hashint8extended(item_id, rank) + distance::numeric * rank) FROM ' || statement;
END $$;
SELECT statement, w.rows, w = e AS same
FROM (VALUES ('knn_merge(''SELECT query_id, item_id, distance FROM many'', 20)'), ('knn_merge(''SELECT query_id, item, distance FROM many'', 20)'),
             ('knn_merge(''SELECT query_id, item_id, distance FROM many'', NULL)'),
             ('knn_merge(''SELECT query_id, item_id, shard, distance FROM many_1 UNION ALL SELECT query_id, item, shard, distance FROM many'', 50)'),
             ('knn_merge(''SELECT query_id, item_id, distance FROM many WHERE distance > 3'', 20)'),
             ('knn_merge(''SELECT query_id / 2, item_id / 3, -distance FROM many'', 20)'),
             ('knn_merge(''SELECT a.query_id::smallint, b.item_id, a.distance FROM many AS a JOIN many AS b USING (item_id)'', 7)'),
             ('knn_merge(''SELECT query_id, item_id, min(distance) FROM many GROUP BY 1, 2'', 7)'),
             ('knn_merge(''SELECT query_id, item_id, distance FROM many UNION SELECT query_id, item, distance FROM many'', 7)'),
             ('knn_merge(''SELECT query_id, item_id, distance FROM many LIMIT 0'', 20)')) AS s(statement),
    LATERAL digest(statement, 3) AS w, LATERAL digest(statement, 0) AS e;
-- Columns of tables that have all of them in all rows are read where they lie: in one table, and in several where they have the same places.
CREATE TABLE whole AS SELECT shard, query_id, unused, item_id, item, distance FROM many;
CREATE TABLE parts (LIKE whole) PARTITION BY LIST (shard);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES IN (0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
INSERT INTO parts SELECT * FROM whole;
CREATE TABLE dropped AS TABLE whole;
ALTER TABLE dropped DROP COLUMN unused;
ANALYZE whole, parts, dropped;
SELECT statement, w.rows, w = e AS same
FROM (VALUES ('query_id, item_id, distance', 'whole'), ('distance::bigint, query_id, item_id, distance', 'whole'), ('item, query_id, item_id, distance', 'whole WHERE distance > 9'),
             ('query_id, item_id, distance', 'parts'), ('query_id, item_id, item, distance', 'parts WHERE distance > 3'), ('query_id, item_id, distance', 'dropped'),
             ('query_id, item_id, distance', 'whole UNION ALL SELECT query_id, item, distance FROM whole')) AS s(columns, source),
    LATERAL (SELECT format('knn_merge(''SELECT %s FROM %s'', 20)', columns, source)) AS f(statement),
    LATERAL digest(statement, 3) AS w, LATERAL digest(statement, 0) AS e;
DROP TABLE whole, parts, dropped;
-- Where the workers' memory does not suffice, all rows come to the session.
SET gputext.host_memory_limit = '1MB';
SELECT w.rows, w = e AS same FROM digest('knn_merge(''SELECT query_id, item_id, distance FROM many'', 25)', 3) AS w, digest('knn_merge(''SELECT query_id, item_id, distance FROM many'', 25)', 0) AS e;
SELECT count(*) FROM knn_merge('SELECT query_id, item_id, distance FROM many', NULL);
RESET gputext.host_memory_limit;
-- Rows of a transaction that has not ended
BEGIN;
DELETE FROM many WHERE query_id <> 7;
INSERT INTO many VALUES (0, 7, 1, '', -1);
SELECT w.rows, w = e AS same FROM digest('knn_merge(''SELECT query_id, item_id, distance FROM many'', 20)', 3) AS w, digest('knn_merge(''SELECT query_id, item_id, distance FROM many'', 20)', 0) AS e;
ROLLBACK;
-- The rights are those of the caller, and so are policies.
CREATE ROLE regress_gputext_merger;
SET ROLE regress_gputext_merger;
SELECT count(*) FROM knn_merge('SELECT query_id, item_id, distance FROM many', 1);
RESET ROLE;
GRANT SELECT (query_id, item_id, distance) ON many TO regress_gputext_merger;
SET ROLE regress_gputext_merger;
SELECT count(*) FROM knn_merge('SELECT query_id, item_id, distance FROM many', 1);
SELECT count(*) FROM knn_merge('SELECT query_id, item, distance FROM many', 1);
RESET ROLE;
ALTER TABLE many ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON many USING (query_id BETWEEN 0 AND 9);
SET ROLE regress_gputext_merger;
SELECT count(*) FROM knn_merge('SELECT query_id, item_id, distance FROM many', 1);
RESET ROLE;
-- Nulls and NaN are errors there, too.
INSERT INTO many VALUES (1, 1, 1, '', 'NaN');
SELECT * FROM knn_merge('SELECT query_id, item_id, distance FROM many', 1);
UPDATE many SET distance = NULL WHERE distance = 'NaN';
\set VERBOSITY terse
SELECT * FROM knn_merge('SELECT query_id, item_id, distance FROM many', 1);
\set VERBOSITY default
UPDATE many SET query_id = NULL WHERE distance IS NULL;
SELECT * FROM knn_merge('SELECT query_id, item_id, distance FROM many_1 WHERE query_id IS NULL', 1);

RESET min_parallel_table_scan_size;
RESET seq_page_cost;
RESET cpu_tuple_cost;
DROP TABLE many;
DROP ROLE regress_gputext_merger;
DROP FUNCTION digest(text, integer);
DROP TABLE items, queries, answers;
DROP FUNCTION shards(text, text), differing(text, text), plain_merge(bigint);
DROP DOMAIN number;
