-- Values that lie within their rows are read there (extension/values/row_places.hpp)
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET gputext.device = 'cpu';
-- Of the module of the tests (tests/module/), which servers of scripts/cluster have; expected/row_places_1.out is for others.
DO $$ BEGIN
    CREATE FUNCTION row_places(query text, OUT id bigint, OUT relation regclass, OUT "row" tid)
    RETURNS SETOF record LANGUAGE c STRICT AS '$libdir/gputext', 'gputext_row_places';
EXCEPTION WHEN undefined_function THEN NULL;
END $$;
SELECT to_regproc('row_places') IS NULL AS left_out \gset
\if :left_out
\quit
\endif

-- Which values of a query are read where
CREATE FUNCTION places(query text) RETURNS TABLE (relation regclass, "rows" bigint) LANGUAGE sql
AS 'SELECT relation, count(*) FROM row_places(query) GROUP BY 1 ORDER BY min(relation::text)';
-- The sum of the vectors that the query gives, read by an aggregate, and read by gputext: must be the same
CREATE FUNCTION is_right(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE expected text; found text;
BEGIN
    EXECUTE format('SELECT string_agg(i.id || %L || round((SELECT sum(x * n) FROM unnest(v) WITH ORDINALITY AS t (x, n))::numeric, 1), %L ORDER BY i.id) FROM (%s) AS i (id, v)', ':', ' ', query) INTO expected;
    EXECUTE format('SELECT string_agg(item_id || %L || round(-distance::numeric, 1), %L ORDER BY item_id) FROM gpu_knn(%L, %L, 1000, %L)', ':', ' ',
        'SELECT 1, (SELECT array_agg(n::real) FROM generate_series(1, 200) AS n)', query, 'inner_product') INTO found;
    IF found IS DISTINCT FROM expected THEN RAISE WARNING 'expected %, found %', expected, found; END IF;
    RETURN found = expected;
END $$;

-- Vectors of 200 numbers lie within their rows, whose column is not the same in all tables.
CREATE FUNCTION vector(n int) RETURNS real[] LANGUAGE sql AS 'SELECT array_agg((n * i % 97)::real) FROM generate_series(1, 200) AS i';
CREATE TABLE points (id int PRIMARY KEY, gone text, v real[], owner text DEFAULT 'clerk');
INSERT INTO points SELECT i, 'gone', vector(i), CASE WHEN i % 2 = 0 THEN 'clerk' ELSE 'boss' END FROM generate_series(1, 40) AS i;
SELECT * FROM places('SELECT id, v FROM points');
SELECT is_right('SELECT id, v FROM points');
ALTER TABLE points DROP COLUMN gone;
SELECT * FROM places('SELECT id, v FROM points WHERE id < 4');
SELECT is_right('SELECT id, v FROM points WHERE id < 4');
-- What the statement sees is what it is, also within a transaction that has changed it.
BEGIN;
UPDATE points SET v = vector(100 + id) WHERE id < 10;
DELETE FROM points WHERE id BETWEEN 20 AND 30;
INSERT INTO points SELECT i, vector(i) FROM generate_series(41, 50) AS i;
SELECT * FROM places('SELECT id, v FROM points');
SELECT is_right('SELECT id, v FROM points');
SAVEPOINT here;
UPDATE points SET v = vector(200 + id);
SELECT is_right('SELECT id, v FROM points');
ROLLBACK TO here;
SELECT is_right('SELECT id, v FROM points');
COMMIT;
SELECT is_right('SELECT id, v FROM points');
VACUUM (FULL, ANALYZE) points;
SELECT is_right('SELECT id, v FROM points');

-- Of terms and their weights the first ones are read there, the others are copied.
CREATE TABLE weighted AS SELECT i AS id, ARRAY(SELECT generate_series(i, i + 199)) AS words, vector(i) AS weights FROM generate_series(1, 20) AS i;
ANALYZE weighted;
SELECT * FROM places('SELECT id, words FROM weighted');
SELECT count(*) AS neighbors, count(*) FILTER (WHERE places IS DISTINCT FROM copies) AS other
FROM gpu_knn('SELECT id, words, weights FROM weighted', 'SELECT id, words, weights FROM weighted', 3) AS places
     FULL JOIN gpu_knn('SELECT id, words || 0, weights || 0.0::real FROM weighted', 'SELECT id, words || 0, weights || 0.0::real FROM weighted', 3) AS copies
     USING (query_id, rank);
DROP TABLE weighted;

-- Views, subqueries, joins, orders; an outer join without a row; a value twice
CREATE VIEW seen AS SELECT id, v FROM points WHERE id < 30;
SELECT * FROM places('TABLE seen');
SELECT is_right('TABLE seen');
SELECT * FROM places('SELECT a.id, b.v FROM points AS a JOIN points AS b ON b.id = a.id + 1 ORDER BY b.id DESC');
SELECT is_right('SELECT a.id, b.v FROM points AS a JOIN points AS b ON b.id = a.id + 1 ORDER BY b.id DESC');
SELECT * FROM places('SELECT n, v FROM generate_series(38, 60) AS n LEFT JOIN (SELECT * FROM points OFFSET 0) AS p ON p.id = n');
SELECT is_right('SELECT n, v FROM (SELECT n, v FROM generate_series(38, 60) AS n LEFT JOIN (SELECT * FROM points OFFSET 0) AS p ON p.id = n) AS x WHERE v IS NOT NULL');
SELECT * FROM places('SELECT id, v FROM (SELECT id, v FROM points ORDER BY id LIMIT 3) AS few');

-- Values that an expression makes, that are short, or that a function which is not safe might change are copied.
SELECT * FROM places('SELECT id, v || ''{}'' FROM points');
SELECT * FROM places('SELECT id, v FROM points GROUP BY id, v');
SELECT * FROM places('SELECT id, owner FROM points');
CREATE FUNCTION unsafe(i int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN i > 0; END';
SELECT * FROM places('SELECT id, v FROM points WHERE unsafe(id)');
SELECT is_right('SELECT id, v FROM points WHERE unsafe(id)');
CREATE TEMPORARY TABLE brief AS TABLE points;
ANALYZE brief;
SELECT * FROM places('SELECT id, v FROM brief');

-- Partitions and children, whose columns lie elsewhere
CREATE TABLE parts (id int, v real[], kind int) PARTITION BY LIST (kind);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 (unused int, kind int, v real[], id int);
ALTER TABLE parts_2 DROP COLUMN unused;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
INSERT INTO parts SELECT i, vector(i), i % 2 + 1 FROM generate_series(1, 30) AS i;
ANALYZE parts;
SELECT * FROM places('SELECT id, v FROM parts');
SELECT is_right('SELECT id, v FROM parts');
-- More partitions than are open at a time, one after the other
DO $$ BEGIN
    FOR k IN 3..40 LOOP
        EXECUTE format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%s)', k, k);
    END LOOP;
END $$;
INSERT INTO parts SELECT i, vector(i), i % 40 + 1 FROM generate_series(31, 180) AS i;
ANALYZE parts;
SELECT count(*) AS relations, sum("rows") AS "rows" FROM places('SELECT id, v FROM parts ORDER BY id');
SELECT is_right('SELECT id, v FROM parts ORDER BY id');
CREATE TABLE child (extra text) INHERITS (points);
INSERT INTO child SELECT i, vector(i), 'clerk', 'x' FROM generate_series(60, 65) AS i;
ANALYZE points, child;
SELECT * FROM places('SELECT id, v FROM points WHERE id > 45');
SELECT is_right('SELECT id, v FROM points');
SELECT * FROM places('SELECT id, v FROM ONLY points WHERE id > 45');

-- A column that was added with a default value, which no row has
ALTER TABLE child ADD COLUMN w real[] DEFAULT array_fill(2.5::real, ARRAY[200]);
SELECT * FROM places('SELECT id, w FROM child');
SELECT is_right('SELECT id, w FROM child');

-- Row-level security
CREATE ROLE row_places_clerk;
GRANT SELECT ON points TO row_places_clerk;
ALTER TABLE points ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON points USING (owner = 'clerk');
SET ROLE row_places_clerk;
SELECT * FROM places('SELECT id, v FROM points WHERE id < 20');
SELECT is_right('SELECT id, v FROM points WHERE id < 20');
RESET ROLE;

-- Texts
CREATE TABLE notes AS SELECT i AS id, string_agg(md5((i * j)::text), ' ') AS body FROM generate_series(1, 30) AS i, generate_series(1, 20) AS j GROUP BY i;
ANALYZE notes;
SELECT * FROM places('SELECT id, body FROM notes');
SELECT count(*), sum(abs(hashtext(a::text))) = (SELECT sum(abs(hashtext(b::text))) FROM tfidf('SELECT id, body || '''' FROM notes') AS b) AS same FROM tfidf('SELECT id, body FROM notes') AS a;
SELECT count(*), sum(abs(hashtext(a::text))) = (SELECT sum(abs(hashtext(b::text))) FROM word_similarity('SELECT body || '''' FROM notes', min_count => 1) AS b) AS same FROM word_similarity('SELECT body FROM notes', min_count => 1) AS a;

-- Documents, plain and compressed within their rows, beside short ones, such out of line and none
CREATE FUNCTION page(i int) RETURNS text LANGUAGE sql AS $$
    SELECT CASE i % 4 WHEN 0 THEN t WHEN 3 THEN 'short ' || i / 8 ELSE repeat(left(t, 700), 20 + i % 2) END
    FROM (SELECT string_agg(md5((i / 8 * 100 + j)::text), ' ') FROM generate_series(1, 40) AS j) AS made(t) $$;
CREATE TABLE pages AS SELECT i * 31 % 251 AS id, page(i) AS body FROM generate_series(1, 250) AS i;
INSERT INTO pages SELECT 1000 + i, string_agg(md5(j::text), ' ') FROM generate_series(1, 3) AS i, generate_series(1, 200) AS j GROUP BY i;
INSERT INTO pages VALUES (2000, NULL);
UPDATE pages SET body = body || ' or not' WHERE id % 5 = 0;
DELETE FROM pages WHERE id % 7 = 0;
CREATE TABLE bytes AS SELECT id, convert_to(body, 'UTF8') AS body FROM pages;
VACUUM ANALYZE pages, bytes;
SELECT relation, count(*) > 60 AS many FROM row_places('SELECT id, body FROM pages WHERE body IS NOT NULL') GROUP BY 1 ORDER BY 1;
SELECT relation, count(*) > 60 AS many FROM row_places('SELECT id, body FROM bytes WHERE body IS NOT NULL') GROUP BY 1 ORDER BY 1;
-- The answer with values that lie within rows, and with copies of them, as values that an expression makes are: $ is replaced.
CREATE FUNCTION same_of_copies(call text, OUT "rows" bigint, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE placed text; copied text;
BEGIN
    EXECUTE 'SELECT count(*), md5(string_agg(t::text, chr(10))) FROM ' || replace(call, '$', '') || ' AS t' INTO "rows", placed;
    EXECUTE 'SELECT md5(string_agg(t::text, chr(10))) FROM ' || replace(call, '$', ' || ''''''''') || ' AS t' INTO copied;
    same := placed IS NOT DISTINCT FROM copied;
END $$;
CREATE TABLE page_calls (number int GENERATED ALWAYS AS IDENTITY, call text);
INSERT INTO page_calls (call) VALUES
    ('near_duplicates(''SELECT id, body$ FROM pages WHERE length(body) < 2000'')'),
    ('near_duplicates(''SELECT id, body$ FROM bytes'', mode => ''ctph'')'),
    ('near_duplicate_groups(''SELECT id, body$ FROM pages ORDER BY id DESC'', mode => ''ctph'')'),
    ('near_duplicates_between(''SELECT id + 3000, body$ FROM pages WHERE id < 90'', ''SELECT id, body$ FROM pages'', mode => ''ctph'')'),
    ('near_duplicates_between(''SELECT id + 3000, body::varchar FROM pages WHERE unsafe(id) AND id < 90'', ''SELECT id, body$ FROM pages'', mode => ''ctph'')'),
    ('near_duplicates_between(''SELECT id + 3000, body$ FROM bytes WHERE id < 90'', ''SELECT id, body$ FROM bytes WHERE unsafe(id)'', mode => ''ctph'')');
SELECT number, (same_of_copies(call)).* FROM page_calls ORDER BY number;
SET gputext.read_workers = 0;
SELECT number, (same_of_copies(call)).* FROM page_calls ORDER BY number;
RESET gputext.read_workers;
-- Beyond the limit of memory they go into a temporary file.
SET gputext.host_memory_limit = '1MB';
SELECT number, (same_of_copies(call)).* FROM page_calls WHERE number IN (1, 4) ORDER BY number;
SET temp_file_limit = '512kB';
\set VERBOSITY sqlstate
SELECT count(*) FROM near_duplicates('SELECT id, body FROM pages', mode => 'ctph');
\set VERBOSITY default
RESET temp_file_limit;
RESET gputext.host_memory_limit;
SET client_min_messages = notice;
SELECT count(*) FROM near_duplicates('SELECT id, body FROM pages WHERE id < 4 OR id >= 2000');
SET client_min_messages = warning;

DROP TABLE points CASCADE;
DROP TABLE parts, notes, pages, bytes, page_calls;
DROP ROLE row_places_clerk;
