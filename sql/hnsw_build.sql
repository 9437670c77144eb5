-- gputext.build_hnsw: pgvector's HNSW indexes built by gputext; expected/hnsw_build_1.out is for servers without pgvector 0.7 or later.
SELECT NOT coalesce((SELECT default_version ~ '^0\.[78]\.' FROM pg_available_extensions WHERE name = 'vector'), false) AS without_pgvector \gset
\if :without_pgvector
\quit
\endif
SET client_min_messages = warning;
CREATE EXTENSION vector;
LOAD 'gputext';
RESET client_min_messages;
CREATE SCHEMA regress_hnsw_build;
SET search_path = regress_hnsw_build, public;

-- Nulls, zeros, a value of 45 rows, one of 12. No row is updated: builds that others' snapshots hold up would have the old ones, too.
SELECT setseed(0.25);
CREATE TABLE items (id integer, v vector(6));
INSERT INTO items SELECT i, CASE WHEN i % 100 = 1 THEN NULL WHEN i % 40 = 3 THEN '[0,0,0,0,0,0]' WHEN i BETWEEN 1000 AND 1044 THEN '[1,2,3,4,5,6]'
    WHEN i BETWEEN 1200 AND 1211 THEN '[6,5,4,3,2,1]' ELSE v END
FROM (SELECT i, array_agg((random() + i % 7)::real)::vector AS v FROM generate_series(1, 1500) AS i, generate_series(1, 6) GROUP BY i) AS made;
CREATE TABLE queries AS SELECT -i AS id, array_agg((random() * 7)::real)::vector(6) AS v FROM generate_series(1, 40) AS i, generate_series(1, 6) GROUP BY i;

-- The bytes of an index, but the places where pages note their last changes. pgvector draws lots: its builds differ.
CREATE FUNCTION bytes(index regclass, first integer DEFAULT 0) RETURNS text LANGUAGE sql AS $$
    SELECT md5(string_agg(substr(file, page * 8192 + 11, 8182)::text, '' ORDER BY page))
    FROM pg_read_binary_file(pg_relation_filepath(index)) AS file, generate_series(first, length(file) / 8192 - 1) AS page
$$;
CREATE TABLE built (index text, bytes text);
CREATE PROCEDURE keep(index text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO built VALUES (index, bytes(index::regclass)); END $$;
-- What has been built again since is the same
CREATE VIEW same AS SELECT b.index, bool_and(b.bytes = bytes(b.index::regclass)) AS same FROM built AS b GROUP BY b.index;
-- All nearest rows, by the index and by sorting; rows as far as the last may be others
CREATE FUNCTION differing(operator text, expression text DEFAULT 'v', condition text DEFAULT 'true') RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off SET hnsw.ef_search = 1000 AS $$
DECLARE differing bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM queries AS q,
        LATERAL (SELECT array_agg(d) AS d FROM (SELECT %2$s %1$s q.v::%4$s AS d FROM items WHERE %3$s ORDER BY %2$s %1$s q.v::%4$s LIMIT 20) AS n) AS by_index,
        LATERAL (SELECT array_agg(d) AS d FROM (SELECT %2$s %1$s q.v::%4$s AS d FROM items WHERE %3$s AND %2$s %1$s q.v::%4$s <> ''NaN'' ORDER BY 1 LIMIT 20) AS n) AS sorted
        WHERE by_index.d IS DISTINCT FROM sorted.d', operator, expression, condition, CASE WHEN expression ~ 'half' THEN 'halfvec' ELSE 'vector' END) INTO differing;
    RETURN differing;
END $$;

SET gputext.build_hnsw = on;
CREATE INDEX l2 ON items USING hnsw (v vector_l2_ops);
SELECT differing('<->');
CREATE INDEX ip ON items USING hnsw (v vector_ip_ops) WITH (m = 4, ef_construction = 200);
SELECT differing('<#>');
CREATE INDEX cosine ON items USING hnsw (v vector_cosine_ops);
SELECT differing('<=>');
CREATE INDEX l1 ON items USING hnsw (v vector_l1_ops) WITH (m = 24, ef_construction = 64);
SELECT differing('<+>');
CREATE INDEX half ON items USING hnsw ((v::halfvec(6)) halfvec_l2_ops) WHERE id % 2 = 0;
SELECT differing('<->', 'v::halfvec(6)', 'id % 2 = 0');
CREATE INDEX half_cosine ON items USING hnsw ((v::halfvec(6)) halfvec_cosine_ops);
SELECT differing('<=>', 'v::halfvec(6)');
CREATE INDEX CONCURRENTLY later ON items USING hnsw (v vector_l2_ops) WITH (m = 2);
CHECKPOINT;
CALL keep('l2');
CALL keep('ip');
CALL keep('cosine');
CALL keep('l1');
CALL keep('half');
CALL keep('half_cosine');
CALL keep('later');

-- Rows that were updated beside their places are found last of their pages, but have the same places.
CREATE TABLE updated WITH (fillfactor = 60) AS SELECT id, v FROM items WHERE id <= 400;
CREATE INDEX updated_l2 ON updated USING hnsw (v vector_l2_ops);
CREATE TEMPORARY TABLE before AS SELECT bytes('updated_l2');
UPDATE updated SET id = -id WHERE id % 7 = 0;
REINDEX INDEX updated_l2;
SELECT bytes = bytes('updated_l2') AS same FROM before;

-- Rows of one value, more than an element has. The planner may not take the index of few links.
BEGIN;
DROP INDEX later;
SET enable_seqscan = off;
SET hnsw.ef_search = 1000;
SELECT value, (SELECT count(*) FROM (SELECT v FROM items ORDER BY v <-> value LIMIT 30) AS n WHERE v = value)
FROM (VALUES ('[0,0,0,0,0,0]'::vector), ('[1,2,3,4,5,6]')) AS many (value);
RESET enable_seqscan;
RESET hnsw.ef_search;
ROLLBACK;
-- Neighbors are chosen among 12.5 * m rows, and more where ef_construction is larger. The first page has ef_construction itself.
CREATE INDEX among_200 ON items USING hnsw (v vector_l2_ops) WITH (ef_construction = 200);
CREATE INDEX among_400 ON items USING hnsw (v vector_l2_ops) WITH (ef_construction = 400);
SELECT bytes('among_200', 1) = bytes('l2', 1) AS among_200, bytes('among_400', 1) = bytes('l2', 1) AS among_400;
DROP INDEX among_200, among_400;
-- An index by cosine has vectors of length 1, as pgvector rounds them.
CREATE INDEX of_units ON items USING hnsw ((l2_normalize(v)::vector(6)) vector_l2_ops) WHERE vector_norm(v) > 0;
CREATE INDEX of_half_units ON items USING hnsw ((l2_normalize(v::halfvec)::halfvec(6)) halfvec_l2_ops) WHERE vector_norm(v) > 0;
SELECT bytes('of_units') = bytes('cosine') AS units, bytes('of_half_units') = bytes('half_cosine') AS half_units;
DROP INDEX of_units, of_half_units;

-- The same again: by one thread, in parallel workers, on disk, concurrently, as the whole table is written anew
SET gputext.cpu_threads = 1;
REINDEX TABLE items;
RESET gputext.cpu_threads;
CHECKPOINT;
SELECT * FROM same ORDER BY index;
ALTER TABLE items SET (parallel_workers = 3);
SET min_parallel_table_scan_size = 0;
SET max_parallel_maintenance_workers = 3;
SET gputext.host_memory_limit = '4MB';
REINDEX INDEX l2;
REINDEX INDEX CONCURRENTLY ip;
REINDEX INDEX CONCURRENTLY half;
RESET gputext.host_memory_limit;
REINDEX INDEX cosine;
REINDEX INDEX later;
CHECKPOINT;
SELECT * FROM same ORDER BY index;
VACUUM FULL items;
CHECKPOINT;
SELECT * FROM same ORDER BY index;
ALTER TABLE items RESET (parallel_workers);
RESET max_parallel_maintenance_workers;
RESET min_parallel_table_scan_size;

-- With fewer rows that are compared with all before them
SET gputext.hnsw_exact_rows = 200;
CREATE INDEX fewer ON items USING hnsw (v vector_cosine_ops);
SET gputext.cpu_threads = 1;
REINDEX INDEX cosine;
RESET gputext.cpu_threads;
CHECKPOINT;
SELECT bytes('fewer') = bytes('cosine') AS same, same.same AS same_as_before FROM same WHERE index = 'cosine';
DROP INDEX fewer;
RESET gputext.hnsw_exact_rows;
REINDEX INDEX cosine;
CHECKPOINT;
SELECT * FROM same WHERE index = 'cosine';

-- Vectors that do not fit into the memory lie on disk.
CREATE TABLE wide AS SELECT i AS id, array_agg(sin(i * j))::vector(600) AS v FROM generate_series(1, 1000) AS i, generate_series(1, 600) AS j GROUP BY i;
CREATE INDEX in_memory ON wide USING hnsw (v vector_l2_ops);
CHECKPOINT;
CALL keep('in_memory');
SET gputext.host_memory_limit = '2MB';
REINDEX INDEX in_memory;
CHECKPOINT;
SELECT * FROM same WHERE index = 'in_memory';
ALTER TABLE wide SET (parallel_workers = 2);
SET max_parallel_maintenance_workers = 2;
REINDEX INDEX in_memory;
CHECKPOINT;
SELECT * FROM same WHERE index = 'in_memory';
SET max_parallel_maintenance_workers = 0;
SET temp_file_limit = '1MB';
REINDEX INDEX in_memory;
-- Those of expressions do, too, whose table is small. They lie there twice.
CREATE TABLE narrow AS SELECT i FROM generate_series(1, 1000) AS i;
CREATE FUNCTION widened(i integer) RETURNS vector IMMUTABLE LANGUAGE sql AS 'SELECT array_fill(i::real, ARRAY[600])::public.vector';
CREATE INDEX ON narrow USING hnsw ((widened(i)::vector(600)) vector_l2_ops);
SET temp_file_limit = '4MB';
CREATE INDEX ON narrow USING hnsw ((widened(i)::vector(600)) vector_l2_ops);
SET temp_file_limit = '40MB';
CREATE INDEX ON narrow USING hnsw ((widened(i)::vector(600)) vector_l2_ops);
-- There is room for the vectors twice, but not beside the graph.
SET gputext.host_memory_limit = '1MB';
SET temp_file_limit = '1kB';
CREATE TABLE short AS SELECT format('[%s,%s,1]', i, i % 7)::vector(3) AS v FROM generate_series(1, 1200) AS i;
VACUUM short;
CREATE INDEX ON short USING hnsw (v vector_l2_ops);
RESET temp_file_limit;
RESET gputext.host_memory_limit;
RESET max_parallel_maintenance_workers;

-- pgvector builds another one each time.
SET gputext.build_hnsw = off;
REINDEX INDEX l2;
CHECKPOINT;
SELECT * FROM same WHERE index = 'l2';
SET gputext.build_hnsw = on;
REINDEX INDEX l2;
CHECKPOINT;
SELECT * FROM same WHERE index = 'l2';

-- What pgvector does with it afterwards
DELETE FROM items WHERE id % 5 = 0;
VACUUM items;
INSERT INTO items SELECT 10000 + id, v FROM items WHERE id % 3 = 0;
UPDATE items SET id = id + 20000 WHERE id % 7 = 0;
VACUUM items;
SELECT differing('<->'), differing('<=>'), differing('<+>'), differing('<->', 'v::halfvec(6)', 'id % 2 = 0');

-- Partitions, tables of other kinds, empty ones, and an index that is given up
CREATE TABLE parts (id integer, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (500) TO (1000);
INSERT INTO parts SELECT i, ARRAY[i, i % 10, i % 7]::real[]::vector FROM generate_series(0, 999) AS i;
CREATE INDEX ON parts USING hnsw (v vector_l2_ops);
CREATE UNLOGGED TABLE unlogged AS SELECT * FROM parts;
CREATE INDEX ON unlogged USING hnsw (v vector_l2_ops);
CREATE TEMPORARY TABLE temporary AS SELECT * FROM parts;
CREATE INDEX ON temporary USING hnsw (v vector_l2_ops);
CREATE TABLE empty (v vector(3));
CREATE INDEX ON empty USING hnsw (v vector_l2_ops);
INSERT INTO empty VALUES ('[1,2,3]'), (NULL);
SET enable_seqscan = off;
SELECT * FROM empty ORDER BY v <-> '[1,1,1]' LIMIT 2;
SELECT 'parts' AS of, array_agg(id) FROM (SELECT id FROM parts ORDER BY v <-> '[500,5,5]', id LIMIT 2) AS n
UNION ALL SELECT 'unlogged', array_agg(id) FROM (SELECT id FROM unlogged ORDER BY v <-> '[500,5,5]' LIMIT 2) AS n
UNION ALL SELECT 'temporary', array_agg(id) FROM (SELECT id FROM temporary ORDER BY v <-> '[500,5,5]' LIMIT 2) AS n;
RESET enable_seqscan;
BEGIN;
SAVEPOINT before;
CREATE INDEX given_up ON parts USING hnsw (v vector_l2_ops);
ROLLBACK TO before;
CREATE INDEX kept ON part_1 USING hnsw (v vector_cosine_ops);
COMMIT;
SELECT to_regclass('given_up') IS NULL AS given_up, to_regclass('kept') IS NULL AS not_kept;

-- What is left to pgvector: other types, and a graph that is larger than the memory
SET max_parallel_maintenance_workers = 0;
SET client_min_messages = debug1;
CREATE INDEX bits ON items USING hnsw ((binary_quantize(v)::bit(6)) bit_hamming_ops);
RESET client_min_messages;
RESET max_parallel_maintenance_workers;
SET maintenance_work_mem = '1MB';
SET client_min_messages = warning;
CREATE INDEX large ON items USING hnsw (v vector_l2_ops) WITH (m = 100, ef_construction = 200);
-- Rows take memory before it is known how many of them are equal.
CREATE TABLE ten_each AS SELECT ARRAY[i % 2800]::real[]::vector(1) AS v FROM generate_series(1, 28000) AS i;
CREATE INDEX many ON ten_each USING hnsw (v vector_l2_ops) WITH (m = 2, ef_construction = 4);
RESET client_min_messages;
RESET maintenance_work_mem;
-- A release of pgvector that nobody has looked at
BEGIN;
UPDATE pg_extension SET extversion = '0.9.0' WHERE extname = 'vector';
SET LOCAL client_min_messages = warning;
CREATE INDEX unknown ON part_1 USING hnsw (v vector_l2_ops);
ROLLBACK;
-- Vectors of other dimensions than the column says, which only a changed catalogue has
BEGIN;
CREATE TABLE other_dimensions AS SELECT '[1,2]'::vector AS v;
UPDATE pg_attribute SET atttypmod = 3 WHERE attrelid = 'other_dimensions'::regclass AND attname = 'v';
CREATE INDEX ON other_dimensions USING hnsw (v vector_l2_ops);
ROLLBACK;
-- An operator class that is not pgvector's may have another distance.
SET client_min_messages = warning;
CREATE OPERATOR CLASS other_ops FOR TYPE vector USING hnsw AS OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops, FUNCTION 1 l1_distance(vector, vector);
CREATE INDEX other ON part_1 USING hnsw (v other_ops);
RESET client_min_messages;
-- The handler of another access method, whatever its function is called in C, and whoever has the operator class
BEGIN;
CREATE FUNCTION other_handler(internal) RETURNS index_am_handler LANGUAGE c AS '$libdir/vector', 'hnswhandler';
CREATE ACCESS METHOD other_hnsw TYPE INDEX HANDLER other_handler;
CREATE OPERATOR CLASS other_l2_ops FOR TYPE vector USING other_hnsw AS OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_l2_squared_distance(vector, vector);
ALTER EXTENSION vector ADD OPERATOR CLASS other_l2_ops USING other_hnsw;
CREATE INDEX of_part ON part_1 USING hnsw (v vector_l2_ops);
CREATE INDEX of_other ON part_1 USING other_hnsw (v other_l2_ops);
SELECT bytes('of_other') = bytes('of_part') AS by_gputext;
ROLLBACK;
-- How far a build is
SELECT phase, pg_indexam_progress_phasename(oid, phase) FROM pg_am, generate_series(1, 6) AS phase WHERE amname = 'hnsw' ORDER BY phase;
CREATE FUNCTION watched(v vector) RETURNS vector IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_stat_clear_snapshot();
    RAISE NOTICE '%', (SELECT format('%s, %s', phase, tuples_done) FROM pg_stat_progress_create_index WHERE pid = pg_backend_pid());
    RETURN v;
END $$;
CREATE INDEX ON part_1 USING hnsw ((watched(v)::vector(3)) vector_l2_ops) WHERE id < 3;
-- What pgvector refuses is refused
DO $$ BEGIN
    CREATE TABLE without_dimensions (v vector);
    CREATE INDEX ON without_dimensions USING hnsw (v vector_l2_ops);
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM;
END $$;
DO $$ BEGIN
    CREATE INDEX ON items USING hnsw (v vector_l2_ops) WITH (m = 40, ef_construction = 60);
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM;
END $$;

-- Expressions run as the table's owner, who may not do what the builder may.
CREATE ROLE regress_hnsw_owner;
CREATE TABLE public.regress_hnsw_secrets AS SELECT 'hidden' AS secret;
CREATE SCHEMA regress_hnsw AUTHORIZATION regress_hnsw_owner;
CREATE TABLE regress_hnsw.mine (v vector(2));
CREATE FUNCTION regress_hnsw.peek(v vector) RETURNS vector IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'as %', current_user;
    PERFORM secret FROM public.regress_hnsw_secrets;
    RETURN v;
END $$;
INSERT INTO regress_hnsw.mine VALUES ('[1,2]');
ALTER TABLE regress_hnsw.mine OWNER TO regress_hnsw_owner;
CREATE INDEX ON regress_hnsw.mine USING hnsw ((regress_hnsw.peek(v)::vector(2)) vector_l2_ops);
DROP SCHEMA regress_hnsw CASCADE;
DROP TABLE public.regress_hnsw_secrets;
DROP ROLE regress_hnsw_owner;

SET client_min_messages = warning;
DROP TABLE temporary;
DROP SCHEMA regress_hnsw_build CASCADE;
DROP EXTENSION vector;
