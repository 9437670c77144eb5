-- Pages of HNSW indexes (extension/hnsw), of made-up elements, and what a walk through them finds wrong
SET client_min_messages = warning;
-- Of the module of the tests (tests/module/), which servers of scripts/cluster have; expected/hnsw_pages_1.out is for others.
DO $$ BEGIN
    CREATE FUNCTION hnsw_walk(index regclass, OUT dimensions integer, OUT m integer, OUT ef_construction integer, OUT pages bigint, OUT unused_pages bigint,
        OUT elements bigint, OUT deleted bigint, OUT without_rows bigint, OUT "rows" bigint, OUT highest_level integer, OUT links bigint[],
        OUT laid_out boolean, OUT unlinked bigint, OUT unreached bigint) LANGUAGE c STRICT AS '$libdir/gputext', 'gputext_hnsw_walk';
    CREATE FUNCTION hnsw_write(index regclass, elements integer, dimensions integer, m integer) RETURNS double precision LANGUAGE c STRICT
    AS '$libdir/gputext', 'gputext_hnsw_write';
    CREATE FUNCTION set_page_byte(index regclass, block bigint, place integer, value integer) RETURNS integer LANGUAGE c STRICT
    AS '$libdir/gputext', 'gputext_set_page_byte';
EXCEPTION WHEN undefined_function THEN NULL;
END $$;
SELECT to_regproc('hnsw_walk') IS NULL AS left_out \gset
\if :left_out
\quit
\endif

-- The pages take the place of those of indexes of any kind
CREATE TABLE logged (i integer);
CREATE INDEX logged_index ON logged (i);
CREATE UNLOGGED TABLE unlogged (i integer);
CREATE INDEX unlogged_index ON unlogged (i);
CREATE TEMPORARY TABLE temporary (i integer);
CREATE INDEX temporary_index ON temporary (i);
CREATE TABLE written (index regclass, elements integer, dimensions integer, m integer);
INSERT INTO written VALUES ('logged_index', 0, 3, 16), ('logged_index', 1, 3, 16), ('logged_index', 20000, 3, 2), ('logged_index', 1000, 100, 16),
    ('logged_index', 500, 768, 16), ('logged_index', 200, 1536, 16), ('logged_index', 200, 2000, 100), ('unlogged_index', 1000, 100, 5),
    ('temporary_index', 1000, 100, 5);
SELECT w.index, walk.* FROM written AS w, LATERAL (SELECT hnsw_write(w.index, w.elements, w.dimensions, w.m) AS seconds) AS wrote,
    LATERAL hnsw_walk(CASE WHEN wrote.seconds >= 0 THEN w.index END) AS walk;

-- A byte of a page is another one.
SELECT hnsw_write('logged_index', 1000, 100, 16) >= 0 AS wrote;
CREATE FUNCTION walk_with(block bigint, place integer, value integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before integer := set_page_byte('logged_index', block, place, value);
    said text := 'nothing';
BEGIN
    BEGIN
        PERFORM hnsw_walk('logged_index');
    EXCEPTION WHEN index_corrupted THEN said := SQLERRM;
    END;
    PERFORM set_page_byte('logged_index', block, place, before);
    RETURN said;
END $$;
-- Of the meta page; then of block 1: its end, and the tuples of its first two elements, which are at level 0
SELECT d.what, walk_with(d.block, d.place, d.value) FROM (VALUES
    ('nothing', 0, 24, 83), ('magic', 0, 24, 0), ('version', 0, 28, 2), ('m', 0, 36, 17), ('no m', 0, 36, 0), ('entry block', 0, 41, 77),
    ('entry offset', 0, 44, 2), ('entry level', 0, 46, 1), ('insert page', 0, 49, 77), ('page', 0, 8190, 0), ('next of meta', 0, 8184, 1),
    ('next', 1, 8184, 3), ('next is itself', 1, 8184, 1), ('next is none', 1, 8185, 77), ('page id', 1, 8190, 0), ('item', 1, 25, 30), ('item place', 1, 24, 25),
    ('item length', 1, 27, 1), ('type of element', 1, 7704, 3), ('element as neighbors', 1, 7704, 2), ('level', 1, 7705, 1), ('deleted', 1, 7706, 1),
    ('neither deleted nor not', 1, 7706, 2), ('version', 1, 7707, 2), ('row of another', 1, 7712, 2), ('no row', 1, 7712, 0), ('neighbors', 1, 7772, 4),
    ('element as its neighbors', 1, 7772, 1), ('neighbors beyond', 1, 7768, 1), ('size of value', 1, 7776, 0), ('type of neighbors', 1, 7504, 1), ('version of neighbors', 1, 7505, 2), ('count', 1, 7506, 31),
    ('neighbor is none', 1, 7512, 0), ('neighbor is no element', 1, 7512, 2), ('neighbor beyond', 1, 7508, 1)) AS d(what, block, place, value);
-- Neighbors, six bytes each, that are there, but not to be there
CREATE FUNCTION walk_with_neighbor(place integer, bytes integer[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before integer[];
    said text := 'nothing';
BEGIN
    FOR i IN 1 .. 6 LOOP before[i] := set_page_byte('logged_index', 1, 7508 + 6 * place + i - 1, bytes[i]); END LOOP;
    BEGIN
        PERFORM hnsw_walk('logged_index');
    EXCEPTION WHEN index_corrupted THEN said := SQLERRM;
    END;
    FOR i IN 1 .. 6 LOOP PERFORM set_page_byte('logged_index', 1, 7508 + 6 * place + i - 1, before[i]); END LOOP;
    RETURN said;
END $$;
SELECT walk_with_neighbor(0, '{0,0,1,0,1,0}') AS itself, walk_with_neighbor(31, '{0,0,1,0,5,0}') AS another;
SELECT walk_with_neighbor(31, array_agg(byte ORDER BY i)) AS twice
FROM (SELECT i, set_page_byte('logged_index', 1, 7508 + i, 0) AS byte FROM generate_series(0, 5) AS i) AS first,
    LATERAL (SELECT set_page_byte('logged_index', 1, 7508 + i, byte)) AS again(was);
SELECT elements FROM hnsw_walk('logged_index');

CREATE INDEX written_index ON written (m);
SELECT hnsw_walk('written_index');
SELECT hnsw_walk('written');
-- What is left of them is no use.
DROP TABLE logged, unlogged, temporary;
DROP FUNCTION hnsw_walk, hnsw_write, set_page_byte;
