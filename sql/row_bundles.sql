-- Rows that parallel workers bundle: the same answers as with rows that come one by one.
-- The table is small, and reading it is to be worth workers.
SET min_parallel_table_scan_size = 0;
SET seq_page_cost = 50;
SET cpu_tuple_cost = 0.5;
LOAD 'gputext';
SET gputext.device = cpu;
CREATE TABLE bundled_items (id bigint, name text, code uuid, v real[], lang text, tenant integer, body text);
-- Some vectors, texts and keys are null, and some rows have a text that is stored out of line.
INSERT INTO bundled_items
SELECT i, 'item ' || i % 29000, md5(i::text)::uuid,
       CASE WHEN i % 1000 <> 7 THEN ARRAY(SELECT ((i::bigint * d * 7919) % 1009)::real / 1009 - 0.5 FROM generate_series(1, 40) AS d) END,
       CASE WHEN i % 11 <> 0 THEN 'lang ' || i % 13 END,
       CASE WHEN i % 17 <> 0 THEN i % 501 END,
       CASE WHEN i % 500 = 3 THEN (SELECT string_agg(md5((i * 1000 + n)::text), ' ') FROM generate_series(1, 200) AS n)
            ELSE (SELECT string_agg('w' || left(md5((i % 25000 * n)::text), 3), ' ') FROM generate_series(1, 8) AS n) END
FROM generate_series(1, 30000) AS i;
-- The order of the table is not that of its ids.
CREATE TABLE bundled AS SELECT * FROM bundled_items ORDER BY md5(id::text);
ALTER TABLE bundled ALTER body SET STORAGE EXTERNAL;
ANALYZE bundled;
CREATE TABLE wanted AS SELECT * FROM bundled WHERE id % 400 = 1;

-- Makes a table of the answer with rows one by one, and one with workers, and compares them.
CREATE FUNCTION compare_bundles(statement text) RETURNS TABLE (rows bigint, differ bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('client_min_messages', 'warning', true);
    PERFORM set_config('gputext.read_workers', '0', true);
    EXECUTE 'CREATE TEMPORARY TABLE one_by_one AS ' || statement;
    PERFORM set_config('gputext.read_workers', '3', true);
    EXECUTE 'CREATE TEMPORARY TABLE in_bundles AS ' || statement;
    RETURN QUERY EXECUTE 'SELECT (SELECT count(*) FROM one_by_one),
        (SELECT count(*) FROM ((SELECT a::text FROM one_by_one a EXCEPT ALL SELECT b::text FROM in_bundles b)
                               UNION ALL (SELECT b::text FROM in_bundles b EXCEPT ALL SELECT a::text FROM one_by_one a)) d)';
    DROP TABLE one_by_one, in_bundles;
END $$;

-- That workers are there to bundle rows.
CREATE FUNCTION plan_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
        IF line ~ 'Gputext|Gather|Scan' THEN RETURN NEXT regexp_replace(line, '^[ >-]*', ''); END IF;
    END LOOP;
END $$;
SET gputext.plan_nearest = force;
SET gputext.read_workers = 2;
SELECT plan_of('SELECT w.id, n.id FROM wanted w, LATERAL (SELECT id FROM bundled ORDER BY v <-> w.v LIMIT 2) n');
SET gputext.read_workers = 0;
SELECT plan_of('SELECT w.id, n.id FROM wanted w, LATERAL (SELECT id FROM bundled ORDER BY v <-> w.v LIMIT 2) n');
RESET gputext.read_workers;

-- Vectors
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id, v FROM bundled', 5)$$);
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id, v FROM bundled', 5, exclude_self => true)$$);
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT code, v, tenant FROM wanted', 'SELECT code, v, tenant FROM bundled', NULL::uuid, 3)$$);
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, v, lang, tenant FROM wanted', 'SELECT id, v, lang, tenant FROM bundled', 3, exclude_key => true)$$);
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, v, ROW(lang, tenant) FROM wanted', 'SELECT id, v, ROW(lang, tenant) FROM bundled', 3)$$);
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id::integer, v::double precision[] FROM wanted', 'SELECT id::integer, v::double precision[] FROM bundled', 5)$$);
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT b.id, b.v FROM bundled b LEFT JOIN wanted w USING (id)', 2)$$);
SELECT * FROM compare_bundles($$SELECT * FROM k_means('SELECT id, v FROM bundled', 8, seed => 1)$$);

-- Texts
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, body FROM wanted', 'SELECT id, body FROM bundled', 2)$$);
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, to_tsvector(''simple'', body), tenant FROM wanted', 'SELECT id, to_tsvector(''simple'', body), tenant FROM bundled', 2)$$);
SELECT * FROM compare_bundles($$SELECT * FROM tfidf('SELECT id, body FROM bundled WHERE id <= 20500')$$);
SELECT * FROM compare_bundles($$SELECT * FROM near_duplicates('SELECT id, body FROM bundled', 0.02)$$);
SELECT * FROM compare_bundles($$SELECT * FROM near_duplicates_between('SELECT name, body FROM wanted', 'SELECT name, body FROM bundled', NULL::text, 0.2)$$);

-- Partitions, one of which has the columns in another order. Vectors have one number more, so that no two are alike and no row has two
-- items at one distance.
CREATE TABLE parted (v real[], id bigint) PARTITION BY HASH (id);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_1 (id bigint, gone text, v real[]);
ALTER TABLE parted_1 DROP gone;
ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parted SELECT CASE WHEN v IS NOT NULL THEN v || id::real / 30000 END, id FROM bundled;
ANALYZE parted;
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, v || 0::real FROM wanted', 'SELECT id, v FROM parted', 5)$$);

-- The node, with keys and columns to show
SET gputext.plan_nearest = force;
SET gputext.read_workers = 2;
SELECT plan_of('SELECT w.id, n.* FROM wanted w, LATERAL (SELECT id, name FROM bundled b WHERE b.tenant = w.tenant AND b.id > 900 ORDER BY v <-> w.v LIMIT 3) n');
RESET gputext.read_workers;
SELECT * FROM compare_bundles($$SELECT w.id AS query, n.* FROM wanted w, LATERAL
    (SELECT id, name, v, lang, v <-> w.v AS distance FROM bundled b WHERE b.tenant = w.tenant AND b.id > 900 ORDER BY v <-> w.v LIMIT 3) n WHERE w.v IS NOT NULL$$);
SELECT * FROM compare_bundles($$SELECT w.id AS query, n.* FROM wanted w, LATERAL
    (SELECT id, v <=> (w.v || 0::real) AS distance FROM parted ORDER BY v <=> (w.v || 0::real) LIMIT 3) n WHERE w.v IS NOT NULL$$);
RESET gputext.plan_nearest;

-- Errors are those of rows that come one by one.
SET gputext.read_workers = 3;
INSERT INTO bundled (id, v) VALUES (-5, '{1,2}'), (-3, '{1,2,3}');
SELECT count(*) FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id, v FROM bundled', 5);
DELETE FROM bundled WHERE id < 0;
SELECT count(*) FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id, v, 1, 2 FROM bundled', 5);
\set VERBOSITY sqlstate
SELECT count(*) FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id / (id - 25000), v FROM bundled', 5);
\set VERBOSITY default
INSERT INTO bundled (v) SELECT v FROM wanted LIMIT 1;
\set VERBOSITY sqlstate
SELECT count(*) FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id, v FROM bundled', 5);
\set VERBOSITY default
DELETE FROM bundled WHERE id IS NULL;

-- What the transaction itself has changed, and a function that workers must not call
BEGIN;
DELETE FROM bundled WHERE id > 27000;
SELECT count(*), max(item_id) FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id, v FROM bundled', 5);
ROLLBACK;
CREATE FUNCTION only_here(vector real[]) RETURNS real[] LANGUAGE plpgsql PARALLEL UNSAFE AS 'BEGIN RETURN vector; END';
SELECT * FROM compare_bundles($$SELECT * FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id, only_here(v) FROM bundled', 5)$$);

-- Row-level security
CREATE ROLE bundled_reader;
GRANT SELECT ON bundled, wanted TO bundled_reader;
ALTER TABLE bundled ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenants ON bundled USING (tenant < 300);
SET ROLE bundled_reader;
SET gputext.device = cpu;
SELECT count(*), count(*) FILTER (WHERE item_id % 501 >= 300) AS forbidden FROM gpu_knn('SELECT id, v FROM wanted', 'SELECT id, v FROM bundled', 5);
RESET ROLE;

DROP TABLE bundled_items, bundled, wanted, parted;
DROP FUNCTION compare_bundles, plan_of, only_here;
DROP ROLE bundled_reader;
