-- What is known of the transactions that made the rows of an inner query (extension/values/row_versions.hpp)
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET gputext.device = 'cpu';
-- Of the module of the tests (tests/module/), which servers of scripts/cluster have; expected/row_versions_1.out is for others.
DO $$ BEGIN
    CREATE FUNCTION row_versions(query text, OUT id bigint, OUT version xid, OUT toast_table oid, OUT number oid, OUT since bigint, OUT horizon bigint)
    RETURNS SETOF record LANGUAGE c STRICT AS '$libdir/gputext', 'gputext_row_versions';
    CREATE FUNCTION latest_it_can_be(id xid, next bigint) RETURNS bigint LANGUAGE c STRICT AS '$libdir/gputext', 'gputext_latest_it_can_be';
    CREATE FUNCTION server_run() RETURNS bigint LANGUAGE c STRICT AS '$libdir/gputext', 'gputext_server_run';
EXCEPTION WHEN undefined_function THEN NULL;
END $$;
SELECT to_regproc('row_versions') IS NULL AS left_out \gset
\if :left_out
\quit
\endif

-- Each row has a value out of line, and is of a transaction of its own.
CREATE TABLE docs (id bigint PRIMARY KEY, body text, title varchar, place real[], owner text DEFAULT 'clerk', secret text, "group" int);
ALTER TABLE docs ALTER body SET STORAGE EXTERNAL, ALTER title SET STORAGE EXTERNAL, ALTER place SET STORAGE EXTERNAL;
DO $$ BEGIN
    FOR i IN 1..6 LOOP
        INSERT INTO docs SELECT i, repeat(md5(i::text), 100), repeat(md5(i::text), 90), array_fill(i::real, ARRAY[900]), CASE WHEN i < 4 THEN 'clerk' ELSE 'boss' END, 'secret', i % 2;
        COMMIT;
    END LOOP;
END $$;
SELECT count(DISTINCT xmin::text) AS transactions FROM docs;

-- Of a query: how many rows it gives, of how many the version is known, whether that is always the xmin of the row
-- of the table with this id, and how many values are out of line
CREATE FUNCTION versions(query text, source text DEFAULT 'docs', OUT "rows" bigint, OUT known bigint, OUT "right" boolean, OUT pointers bigint) LANGUAGE plpgsql AS
$$ BEGIN
    EXECUTE format('SELECT count(*), count(v.version), bool_and(v.version = d.xmin), count(v.number)
        FROM row_versions(%L) AS v LEFT JOIN %s AS d USING (id)', query, source) INTO "rows", known, "right", pointers;
   END $$;
CREATE VIEW plain_view AS SELECT id, body, title FROM docs;
CREATE VIEW barrier_view WITH (security_barrier) AS SELECT * FROM docs WHERE id > 0;
CREATE VIEW view_of_views AS SELECT b.title, p.body, p.id FROM plain_view AS p JOIN barrier_view AS b USING (id);
CREATE VIEW sorting_view AS SELECT id, body FROM docs ORDER BY owner, id DESC LIMIT 5;
CREATE MATERIALIZED VIEW copied AS SELECT id, body FROM docs;
ALTER MATERIALIZED VIEW copied ALTER body SET STORAGE EXTERNAL;
REFRESH MATERIALIZED VIEW copied;
CREATE TABLE names (id bigint, name text);
INSERT INTO names SELECT i, 'name ' || i FROM generate_series(1, 9) AS i;
CREATE FUNCTION cut(body text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT body $$;

CREATE TABLE queries (number serial PRIMARY KEY, known boolean, query text);
INSERT INTO queries(known, query) VALUES
    (true, 'SELECT id, body FROM docs'),
    (true, 'SELECT id, place FROM docs'),
    (true, 'SELECT id, title FROM docs'),
    (true, 'SELECT id, title::text FROM docs'),
    (true, 'SELECT id, body FROM docs WHERE id IN (2, 3) OR body LIKE ''a%'''),
    (true, 'SELECT id, body FROM docs ORDER BY owner, id DESC'),
    (true, 'SELECT id, body FROM docs ORDER BY owner DESC, secret, id LIMIT 3 OFFSET 1'),
    (true, 'SELECT id, body FROM ONLY docs'),
    (true, 'SELECT id, body FROM docs TABLESAMPLE system (100)'),
    (true, 'SELECT row_number() OVER (ORDER BY id), body FROM docs'),
    (true, 'SELECT id, body FROM plain_view'),
    (true, 'SELECT id, title FROM barrier_view'),
    (true, 'SELECT id, body FROM view_of_views'),
    (true, 'SELECT id, title FROM view_of_views'),
    (true, 'SELECT id, body FROM sorting_view'),
    (true, 'SELECT id, body FROM (SELECT body, id FROM (SELECT * FROM docs) AS b ORDER BY owner) AS a'),
    (true, 'SELECT id, body FROM (SELECT body, id FROM docs LIMIT 4) AS a'),
    (true, 'SELECT id, body FROM docs JOIN names USING (id)'),
    (true, 'SELECT j.id, j.body FROM (docs JOIN names USING (id)) AS j'),
    (true, 'SELECT names.id, body FROM names LEFT JOIN docs USING (id)'),
    (true, 'SELECT names.id, body FROM names LEFT JOIN plain_view USING (id)'),
    (true, 'SELECT names.id, s.body FROM names, LATERAL (SELECT body FROM docs WHERE docs.id = names.id OFFSET 0) AS s'),
    (true, 'SELECT id, body FROM docs WHERE id IN (SELECT max(id) FROM names GROUP BY name)'),
    (true, 'WITH few AS (SELECT id FROM names) SELECT docs.id, body FROM docs JOIN few USING (id)'),
    (false, 'WITH few AS (SELECT id, body FROM docs) SELECT id, body FROM few'),
    (false, 'SELECT DISTINCT id, body FROM docs'),
    (false, 'SELECT DISTINCT ON (id) id, body FROM docs'),
    (false, 'SELECT id, body FROM docs GROUP BY id'),
    (false, 'SELECT id, max(body) FROM docs GROUP BY id'),
    (false, 'SELECT id, body FROM (SELECT DISTINCT id, body FROM docs) AS s'),
    (false, 'SELECT id, body FROM docs UNION ALL SELECT id, body FROM docs WHERE false'),
    (false, 'SELECT id, body FROM (SELECT id, body FROM docs UNION ALL SELECT id, body FROM docs WHERE false) AS s'),
    (false, 'SELECT id, substr(body, 1, 3000) FROM docs'),
    (false, 'SELECT id, cut(body) FROM docs'),
    (false, 'SELECT id, coalesce(body) || '''' FROM docs'),
    (false, 'SELECT id, (SELECT body FROM docs AS d WHERE d.id = names.id) FROM names'),
    (false, 'SELECT id + generate_series(0, 0), body FROM docs'),
    (false, 'SELECT id, body FROM (SELECT *, generate_series(0, 0) FROM docs) AS s'),
    (false, 'SELECT id, body FROM (SELECT id, body FROM docs) AS s WHERE s IS NOT NULL'),
    (false, 'SELECT id, body FROM (SELECT id, body FROM docs) AS s WHERE (SELECT count(*) FROM names WHERE s IS NOT NULL) > 0'),
    (false, 'SELECT id, body FROM plain_view WHERE row_to_json(plain_view)::text LIKE ''{"id":%"title":"%"}'''),
    (false, 'SELECT * FROM (VALUES (1, ''one''), (2, ''two'')) AS v'),
    (false, 'VALUES (1, ''one'')'),
    (false, 'SELECT pronargs, prosrc FROM pg_proc WHERE pronargs > 0 ORDER BY oid LIMIT 9');
SELECT number, v.rows, v.known, v.right, v.pointers, query FROM queries, versions(query) AS v ORDER BY number;
SELECT query AS unexpected FROM queries AS q, versions(query) AS v
WHERE CASE WHEN q.known THEN v.known = 0 OR v.known < v.rows OR NOT v.right ELSE v.known > 0 END;
-- A materialized view has rows of its own.
SELECT * FROM versions('SELECT id, body FROM copied', 'copied');

-- Partitions, also of partitions, and children
CREATE TABLE parted (id bigint, body text) PARTITION BY LIST (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1, 2);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (3, 4) PARTITION BY LIST (id);
CREATE TABLE parted_2_3 PARTITION OF parted_2 FOR VALUES IN (3);
CREATE TABLE parted_2_4 PARTITION OF parted_2 DEFAULT;
ALTER TABLE parted_1 ALTER body SET STORAGE EXTERNAL;
ALTER TABLE parted_2_3 ALTER body SET STORAGE EXTERNAL;
ALTER TABLE parted_2_4 ALTER body SET STORAGE EXTERNAL;
CREATE TABLE parent (id bigint, body text);
ALTER TABLE parent ALTER body SET STORAGE EXTERNAL;
CREATE TABLE child (more text, body text, id bigint);
ALTER TABLE child ALTER body SET STORAGE EXTERNAL;
ALTER TABLE child INHERIT parent;
DO $$ BEGIN
    FOR i IN 1..4 LOOP
        INSERT INTO parted VALUES (i, repeat(md5(i::text), 100));
        COMMIT;
        IF i < 3 THEN INSERT INTO parent VALUES (i, repeat(md5(i::text), 100)); END IF;
        IF i > 2 THEN INSERT INTO child VALUES ('more', repeat(md5(i::text), 100), i); END IF;
        COMMIT;
    END LOOP;
END $$;
SELECT * FROM versions('SELECT id, body FROM parted', 'parted');
SELECT * FROM versions('SELECT id, body FROM parted WHERE id = 4', 'parted');
SELECT * FROM versions('SELECT id, body FROM (SELECT * FROM parted ORDER BY id DESC LIMIT 3) AS s', 'parted');
SELECT * FROM versions('SELECT id, body FROM parent', 'parent');
SELECT * FROM versions('SELECT id, body FROM ONLY parent', 'parent');
SELECT count(DISTINCT toast_table) AS tables, bool_and(t.relkind = 't') AS toast FROM row_versions('TABLE parted'), pg_class AS t WHERE t.oid = toast_table;
-- A foreign child has no versions that mean anything, and so no other row has one.
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE distant (id bigint, body text) SERVER files OPTIONS (program 'echo 5 five', delimiter ' ');
SELECT id, version, toast_table FROM row_versions('SELECT id, body FROM distant');
ALTER FOREIGN TABLE distant INHERIT parent;
SELECT * FROM versions('SELECT id, body FROM ONLY parent', 'ONLY parent');
SELECT count(*) AS "rows", count(version) AS known FROM row_versions('SELECT id, body FROM parent');
ALTER FOREIGN TABLE distant NO INHERIT parent;
SELECT * FROM versions('SELECT id, body FROM parent', 'parent');
-- Rows of a table of this session alone, which parallel workers cannot read
CREATE TEMPORARY TABLE passing AS SELECT id, body FROM docs;
SELECT * FROM versions('SELECT id, body FROM passing', 'passing');
-- A function that workers must not run has each value read at once: there is no pointer.
CREATE FUNCTION restless() RETURNS boolean LANGUAGE plpgsql PARALLEL UNSAFE AS $$ BEGIN RETURN true; END $$;
SELECT * FROM versions('SELECT id, body FROM docs WHERE restless()');
-- Workers give the versions along with the rows.
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
SELECT * FROM versions('SELECT id, body FROM docs');
SELECT * FROM versions('SELECT id, body FROM parted ORDER BY id', 'parted');
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET max_parallel_workers_per_gather;
-- Every kind of scan
SET enable_seqscan = off;
SELECT * FROM versions('SELECT id, body FROM docs WHERE id > 2');
SET enable_indexscan = off;
SELECT * FROM versions('SELECT id, body FROM docs WHERE id > 2');
SELECT * FROM versions('SELECT id, body FROM docs WHERE ctid > ''(0,1)''');
RESET enable_seqscan; RESET enable_indexscan;
CREATE INDEX docs_by_id_with_owner ON docs (id) INCLUDE (owner);
VACUUM docs;
SELECT count(version) AS known FROM row_versions('SELECT id, owner FROM docs WHERE id < 3');

-- Rights: two columns, and the rows that a policy leaves
CREATE ROLE gputext_clerk;
GRANT SELECT (id, body) ON docs TO gputext_clerk;
GRANT SELECT ON plain_view TO gputext_clerk;
GRANT EXECUTE ON FUNCTION row_versions TO gputext_clerk;
SET ROLE gputext_clerk;
SELECT xmin FROM docs;
SELECT id, version IS NOT NULL AS known FROM row_versions('SELECT id, body FROM docs') ORDER BY id;
SELECT id, version IS NOT NULL AS known FROM row_versions('SELECT id, title FROM plain_view') ORDER BY id;
SELECT id FROM row_versions('SELECT id, title FROM docs');
RESET ROLE;
CREATE POLICY own ON docs TO gputext_clerk USING (owner = 'clerk');
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
SET ROLE gputext_clerk;
SELECT id, version IS NOT NULL AS known FROM row_versions('SELECT id, body FROM docs') ORDER BY id;
SELECT id, version IS NOT NULL AS known FROM row_versions('SELECT id, body FROM (SELECT * FROM (SELECT id, body FROM docs) AS a LIMIT 9) AS b') ORDER BY id;
RESET ROLE;
ALTER TABLE docs DISABLE ROW LEVEL SECURITY;

-- The same statement again, as functions and prepared statements keep it; and tables that change in between
CREATE FUNCTION known(query text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(version) || ' of ' || count(*) FROM row_versions(query)); END $$;
PREPARE known AS SELECT known('SELECT * FROM parent');
EXECUTE known;
EXECUTE known;
ALTER TABLE parent ADD added text;
EXECUTE known;
ALTER TABLE parent DROP added;
EXECUTE known;
-- As many columns as a query may have
SELECT string_agg('1', ', ') AS ones FROM generate_series(1, 1662) \gset
SELECT * FROM row_versions('SELECT id, body, ' || :'ones' || ' FROM docs');

-- What the other functions give and refuse stays as it is.
SELECT query_id, item_id, round(distance::numeric, 3) AS distance
FROM gpu_knn('SELECT id, place FROM docs WHERE id < 3', 'SELECT id, place FROM barrier_view', 2, metric => 'euclidean') ORDER BY 1, 3, 2;
SELECT * FROM near_duplicates('SELECT id, body FROM docs');
SELECT * FROM near_duplicates('SELECT id, body, ctph(body), 1 FROM docs');
SELECT * FROM near_duplicates('SELECT id FROM docs');
SELECT * FROM near_duplicates('SELECT id, body, xmin FROM docs');
SELECT * FROM gpu_knn('SELECT id, place, place, place FROM docs', 'SELECT id, place FROM docs', 1);
SELECT id FROM row_versions('SELECT names.id, body FROM names LEFT JOIN docs USING (id) WHERE names.id = 9');

-- Who made a row, as a full transaction id: the latest that it can be
SELECT count(*) AS "rows", bool_and(since = pg_current_xact_id()::text::bigint) AS own, bool_and(since < horizon) AS kept FROM row_versions('SELECT id, body FROM docs');
BEGIN;
UPDATE docs SET owner = owner WHERE id = 1;
SELECT v.id, since = pg_current_xact_id()::text::bigint AS own, since < horizon AS may_be_found FROM row_versions('SELECT id, body FROM docs') AS v ORDER BY id;
ROLLBACK;
SELECT v.id, since = docs.xmin::text::bigint AS by_row, since < horizon AS may_be_found FROM row_versions('SELECT id, body FROM docs') AS v JOIN docs USING (id) ORDER BY id;
-- VACUUM FULL keeps the rows' versions, and a row that it freezes keeps its own.
CREATE TABLE before AS SELECT v.id, version, number, toast_table FROM row_versions('SELECT id, body FROM docs') AS v;
VACUUM FREEZE docs;
SELECT count(*) AS "rows", bool_and(v.version = b.version) AS same FROM row_versions('SELECT id, body FROM docs') AS v JOIN before AS b USING (id);
SELECT pg_current_xact_id()::text::bigint AS rewritten \gset
VACUUM FULL docs;
SELECT count(*) AS "rows", bool_and(v.version = b.version) AS same_rows, bool_and(v.number = b.number AND v.toast_table = b.toast_table) AS same_values,
    bool_and(v.since > :rewritten) AS changed FROM row_versions('SELECT id, body FROM docs') AS v JOIN before AS b USING (id);
CREATE INDEX docs_by_owner ON docs (owner);
SELECT pg_current_xact_id()::text::bigint AS rewritten \gset
CLUSTER docs USING docs_by_owner;
SELECT count(*) AS "rows", bool_and(v.version = b.version) AS same_rows, bool_and(v.number = b.number AND v.toast_table = b.toast_table) AS same_values,
    bool_and(v.since > :rewritten) AS changed FROM row_versions('SELECT id, body FROM docs') AS v JOIN before AS b USING (id);
-- VACUUM FULL stores a value out of line that was not, in a row that it does not change.
CREATE TABLE moved (id bigint, body text);
ALTER TABLE moved ALTER body SET STORAGE MAIN;
INSERT INTO moved SELECT 1, string_agg(md5(i::text), '') FROM generate_series(1, 100) AS i;
SELECT version IS NOT NULL AS known, number IS NOT NULL AS out_of_line FROM row_versions('SELECT id, body FROM moved');
ALTER TABLE moved ALTER body SET STORAGE EXTERNAL;
SELECT pg_current_xact_id()::text::bigint AS rewritten \gset
VACUUM FULL moved;
SELECT version = xmin AS same_row, number IS NOT NULL AS out_of_line, version::text::bigint < :rewritten AS made_before, since > :rewritten AS changed
FROM row_versions('SELECT id, body FROM moved'), moved;
-- COPY FREEZE and REFRESH MATERIALIZED VIEW
BEGIN;
CREATE TABLE frozen (id bigint, body text);
COPY frozen FROM PROGRAM 'echo 1 one' WITH (FREEZE, DELIMITER ' ');
SELECT version = pg_current_xact_id()::xid AS own FROM row_versions('SELECT id, body FROM frozen');
REFRESH MATERIALIZED VIEW copied;
SELECT bool_and(version = pg_current_xact_id()::xid) AS own FROM row_versions('SELECT id, body FROM copied');
COMMIT;
-- 32 bits of an id, and the next id that is to be given out
SELECT id, next, latest_it_can_be(id::text::xid, next) AS latest FROM (VALUES (0, 1000), (1, 1000), (2, 1000), (3, 1000), (999, 1000), (1000, 1000), (1001, 1000),
    (3, 4294967296 + 1000), (1000, 4294967296 + 1000), (1001, 4294967296 + 1000), (4294967295, 4294967296 + 1000), (4294967295, 4294967295), (3, 3 * 4294967296)) AS v(id, next);
SELECT server_run() = server_run() AS same, server_run() <> 0 AS given;

DROP TABLE docs, names, parted, parent, child, moved, frozen, before, queries CASCADE;
DROP EXTENSION file_fdw CASCADE;
DROP FUNCTION row_versions;
DROP ROLE gputext_clerk;
