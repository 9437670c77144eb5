-- What the extension consists of

-- Every object of it has a comment, but for array types and row types, which belong to it since PostgreSQL 17.
WITH members AS (
    SELECT d.classid, d.objid
    FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid
    WHERE d.refclassid = 'pg_extension'::regclass AND e.extname = 'gputext' AND d.deptype = 'e'
      AND NOT EXISTS (SELECT FROM pg_type t WHERE d.classid = 'pg_type'::regclass AND t.oid = d.objid
                                              AND (t.typcategory = 'A' OR t.typtype = 'c'))
)
SELECT classid::regclass AS catalog, count(*),
       count(*) FILTER (WHERE coalesce(obj_description(objid, classid::regclass::name), '') = '') AS without_comment
FROM members GROUP BY classid ORDER BY classid::regclass::text COLLATE "C";
SELECT obj_description(oid, 'pg_extension') AS extension FROM pg_extension WHERE extname = 'gputext';

-- Functions that give a value may be used in generated columns, indexes and parallel workers.
SELECT p.oid::regprocedure AS function,
       CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END AS volatility,
       proisstrict AS strict, CASE proparallel WHEN 's' THEN 'safe' WHEN 'u' THEN 'unsafe' ELSE 'restricted' END AS parallel,
       proretset AS set
FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'gputext'
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- The operators know each other, and hash and merge joins.
SELECT o.oid::regoperator AS operator, oprcom::regoperator AS commutator, oprnegate::regoperator AS negator,
       oprcanmerge AS merges, oprcanhash AS hashes, oprrest AS restrict, oprjoin AS join
FROM pg_operator o JOIN pg_depend d ON d.objid = o.oid AND d.classid = 'pg_operator'::regclass AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'gputext'
ORDER BY o.oid::regoperator::text COLLATE "C";

-- Operator classes, and what PostgreSQL finds wrong with them
SELECT amname, opcname, opcdefault, amvalidate(c.oid) AS valid
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod JOIN pg_depend d ON d.objid = c.oid AND d.classid = 'pg_opclass'::regclass AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'gputext'
ORDER BY amname, opcname;

-- Parallel workers compute scalar functions.
CREATE TABLE docs AS SELECT i AS id, repeat(md5(i::text), 10) AS body FROM generate_series(1, 2000) AS i;
ANALYZE docs;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS off) SELECT count(ctph_signature(body)) FROM docs WHERE edit_distance(body, 'x') > 300;
SELECT count(ctph_signature(body)) FROM docs WHERE edit_distance(body, 'x') > 300;

-- The extension can be moved to another schema, or dropped and created again there.
CREATE SCHEMA elsewhere;
DROP EXTENSION gputext;
CREATE EXTENSION gputext SCHEMA elsewhere;
\set VERBOSITY terse
SELECT near_duplicates('TABLE docs');
\set VERBOSITY default
SELECT count(*) FROM elsewhere.near_duplicates('SELECT id::bigint, body, elsewhere.ctph_signature(body) FROM docs WHERE id < 9');
-- A table keeps it from being dropped.
CREATE TABLE signatures (signature elsewhere.ctph);
DROP EXTENSION gputext;
DROP TABLE docs, signatures;
DROP EXTENSION gputext;
DROP SCHEMA elsewhere;
-- Other tests need it.
CREATE EXTENSION gputext;
