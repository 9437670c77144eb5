-- A walk through HNSW indexes that pgvector builds and changes (tests/module/hnsw_walk.cpp): all its rules are pgvector's, too.
SET client_min_messages = warning;
-- Of the module of the tests (tests/module/), which servers of scripts/cluster have; expected/hnsw_walk_pgvector_1.out is for others, and for those
-- without pgvector.
DO $$ BEGIN
    CREATE FUNCTION hnsw_walk(index regclass, OUT dimensions integer, OUT m integer, OUT ef_construction integer, OUT pages bigint, OUT unused_pages bigint,
        OUT elements bigint, OUT deleted bigint, OUT without_rows bigint, OUT "rows" bigint, OUT highest_level integer, OUT links bigint[],
        OUT laid_out boolean, OUT unlinked bigint, OUT unreached bigint) LANGUAGE c STRICT AS '$libdir/gputext', 'gputext_hnsw_walk';
EXCEPTION WHEN undefined_function THEN NULL;
END $$;
SELECT to_regproc('hnsw_walk') IS NULL OR count(*) = 0 AS left_out FROM pg_available_extensions WHERE name = 'vector' \gset
\if :left_out
\quit
\endif
CREATE EXTENSION vector;

CREATE FUNCTION random_vector(dimensions integer, i integer) RETURNS vector LANGUAGE sql AS
'SELECT array_agg(random())::vector FROM generate_series(1, dimensions) AS j WHERE i IS NOT NULL';
-- Levels are random, so that the other facts are.
CREATE FUNCTION walk(index regclass, OUT dimensions integer, OUT m integer, OUT elements bigint, OUT deleted bigint, OUT without_rows bigint, OUT "rows" bigint,
    OUT laid_out boolean, OUT is_in_layers boolean) LANGUAGE sql AS $$
    SELECT dimensions, m, elements, deleted, without_rows, "rows", laid_out, cardinality(links) = highest_level + 1 AND (links[1] <= 2 * m * elements) IS NOT FALSE
    FROM hnsw_walk(index)
$$;

CREATE TABLE none (v vector(3));
CREATE INDEX none_index ON none USING hnsw (v vector_l2_ops);
SELECT * FROM walk('none_index');
-- Up to ten rows to an element
-- A temporary table, as VACUUM takes all that is deleted there, whatever other sessions see
CREATE TEMPORARY TABLE small AS SELECT i AS id, random_vector(5, i) AS v FROM generate_series(1, 150) AS i;
INSERT INTO small SELECT 1000 + i, v FROM small, generate_series(1, 11) AS i WHERE id <= 10;
INSERT INTO small VALUES (2000, NULL), (2001, '[0,0,0,0,0]');
CREATE INDEX small_bits ON small USING hnsw ((binary_quantize(v)::bit(5)) bit_hamming_ops) WHERE id <= 20;
SELECT dimensions, m, "rows", elements < "rows" AS shared, laid_out, is_in_layers FROM walk('small_bits');
CREATE INDEX small_sparse ON small USING hnsw ((v::sparsevec(5)) sparsevec_l2_ops) WHERE id <= 20;
SELECT dimensions, m, "rows", laid_out, is_in_layers FROM walk('small_sparse');
DROP INDEX small_bits, small_sparse;
CREATE INDEX small_index ON small USING hnsw ((v::vector(5)) vector_l2_ops) WITH (m = 2, ef_construction = 4);
SELECT dimensions, m, "rows", elements < "rows" AS shared, laid_out, is_in_layers FROM walk('small_index');
CREATE INDEX small_halves ON small USING hnsw ((v::halfvec(5)) halfvec_cosine_ops) WITH (m = 30, ef_construction = 60);
SELECT dimensions, m, "rows", laid_out, is_in_layers FROM walk('small_halves');
-- Two elements to a page; one, and its neighbors on the next
CREATE TABLE large AS SELECT i AS id, random_vector(2000, i) AS v FROM generate_series(1, 40) AS i;
CREATE INDEX large_index ON large USING hnsw ((v::vector(2000)) vector_l2_ops) WITH (m = 40, ef_construction = 80);
SELECT * FROM walk('large_index');
CREATE INDEX large_halves ON large USING hnsw ((v::halfvec(2000)) halfvec_l2_ops) WITH (m = 4, ef_construction = 8);
SELECT * FROM walk('large_halves');

-- Inserts, deletes, VACUUM, and inserts into the places of what was deleted
CREATE FUNCTION compare() RETURNS TABLE (index text, rows_of_table boolean, without_rows bigint, deleted boolean) LANGUAGE sql AS $$
    SELECT i.name, w."rows" = i.there, w.without_rows, w.deleted > 0
    FROM (SELECT 'small_index', count(v) FROM small UNION ALL SELECT 'small_halves', count(*) FROM small WHERE v <> '[0,0,0,0,0]') AS i(name, there),
         LATERAL walk(i.name) AS w
$$;
INSERT INTO small SELECT 3000 + i, random_vector(5, i) FROM generate_series(1, 50) AS i;
SELECT * FROM compare();
DELETE FROM small WHERE id % 3 = 0;
VACUUM small;
SELECT * FROM compare();
INSERT INTO small SELECT 4000 + i, random_vector(5, i) FROM generate_series(1, 30) AS i;
SELECT * FROM compare();
DELETE FROM small;
VACUUM small;
SELECT * FROM compare();

DROP FUNCTION compare, walk, hnsw_walk;
DROP EXTENSION vector CASCADE;
