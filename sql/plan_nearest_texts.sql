-- gputext.plan_nearest with the distance of texts by pg_trgm
SET client_min_messages = warning;
LOAD 'gputext';
SET gputext.device = cpu;
SET extra_float_digits = 1;
\getenv directory PG_ABS_SRCDIR
\set compare :directory '/tests/plans/compare.sql'
\i :compare
CREATE SCHEMA trigrams;
CREATE EXTENSION pg_trgm SCHEMA trigrams;
SET search_path = public, trigrams;

-- Names in several scripts, equal ones, empty ones, some of none but other characters, long ones, and nulls
CREATE FUNCTION any_name(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN i % 23 = 0 THEN NULL WHEN i % 29 = 0 THEN '' WHEN i % 31 = 0 THEN '--- !' WHEN i % 37 = 0 THEN repeat(md5(i::text) || ' ', 12)
                ELSE (ARRAY['Anna', 'Maria', 'Peter', 'José', 'Иван', 'Zoë', '山田', 'O''Neil', 'ANNA', 'Ἀθηνᾶ'])[1 + i % 10] || (ARRAY[' ', '-', '  ', ', '])[1 + i % 4]
                     || (ARRAY['Smith', 'Müller', 'García', 'Иванов', '太郎'])[1 + i / 7 % 5] || substr(md5((i / 3)::text), 1, i % 5) END $$;
CREATE TABLE canon (id int, kind int, name text);
INSERT INTO canon SELECT i, i % 4, any_name(i) FROM generate_series(1, 400) i;
CREATE TABLE dirty (id int, kind int, name text);
INSERT INTO dirty SELECT i, i % 5, any_name(i * 11 + 3) FROM generate_series(1, 50) i;
ANALYZE canon, dirty;

-- Rows of a join. Which of the rows at one distance come is not defined: the distances are compared, and that those of other rows are theirs.
SELECT * FROM compare('SELECT d.id, n.distance, n.distance = n.name <-> d.name AS is_its FROM dirty d, LATERAL (SELECT name, name <-> d.name AS distance FROM canon ORDER BY name <-> d.name LIMIT 10) n');
SELECT * FROM compare('SELECT d.id, n.distance, pg_typeof(n.distance), n.distance = d.name <-> n.name AS is_its FROM dirty d, LATERAL (SELECT name, d.name <-> name AS distance FROM canon ORDER BY d.name <-> name LIMIT 1) n');
SELECT * FROM compare('SELECT d.id, n.near, n.similar FROM dirty d, LATERAL (SELECT similarity(name, d.name) AS similar, 1 - (name <-> d.name) AS near FROM canon WHERE name <> '''' ORDER BY name <-> d.name LIMIT 3 OFFSET 2) n');
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d LEFT JOIN LATERAL (SELECT lower(name) <-> upper(d.name) AS distance FROM canon WHERE id < 4 ORDER BY lower(name) <-> upper(d.name) LIMIT 5) n ON true');
SELECT same, planned FROM compare('SELECT d.id, n.distance FROM dirty d JOIN LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY name <-> d.name LIMIT 500) n ON n.distance < 0.5');
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d LEFT JOIN LATERAL (SELECT name <-> d.name AS distance FROM canon c WHERE c.kind = d.kind ORDER BY name <-> d.name LIMIT 2) n ON true');
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <-> d.name AS distance FROM canon c WHERE c.kind = d.kind AND c.id > 30 ORDER BY name <-> d.name LIMIT 120) n');
-- Below an aggregate that uses no column of the subquery. A use of its whole row is left to the planner.
SELECT same, planned FROM compare('SELECT count(*) FROM dirty d, LATERAL (SELECT c.id FROM canon c ORDER BY c.name <-> d.name LIMIT 1) n');
SELECT same, planned FROM compare('SELECT count(*) FROM dirty d LEFT JOIN LATERAL (SELECT c.id FROM canon c WHERE c.kind = d.kind ORDER BY c.name <-> d.name LIMIT 2) n ON true');
SELECT same, planned FROM compare('SELECT count(n) FROM dirty d, LATERAL (SELECT c.id FROM canon c ORDER BY c.name <-> d.name LIMIT 1) n');
-- Other types of strings, and collations, which pg_trgm takes no notice of
SELECT * FROM compare('SELECT d.id, n.distance FROM (SELECT id, name::varchar(50) FROM dirty) d, LATERAL (SELECT name::varchar(20) <-> d.name AS distance FROM canon ORDER BY name::varchar(20) <-> d.name LIMIT 2) n');
SELECT * FROM compare('SELECT d.id, n.distance FROM (SELECT id, name::char(300) FROM dirty WHERE length(name) < 300) d, LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY name <-> d.name LIMIT 2) n');
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name COLLATE "C" <-> d.name AS distance FROM canon ORDER BY name COLLATE "C" <-> d.name LIMIT 2) n');

-- One text
SELECT * FROM compare_in_order('SELECT name <-> ''anna mueller'' AS distance FROM canon ORDER BY name <-> ''anna mueller'' LIMIT 10');
SELECT * FROM compare_in_order('SELECT ''Иван'' <-> name AS distance FROM canon WHERE kind < 3 ORDER BY distance LIMIT 4 OFFSET 3');
SELECT * FROM compare_in_order('SELECT name <-> '''' AS distance FROM canon ORDER BY name <-> '''' LIMIT 3');
SELECT * FROM compare_in_order('SELECT name <-> NULL AS distance FROM canon ORDER BY name <-> NULL LIMIT 3');
SELECT * FROM compare_in_order('SELECT name <-> ''Anna'' AS distance FROM canon ORDER BY name <-> ''Anna'' LIMIT 500');
SELECT * FROM compare_in_order('SELECT name <-> ''Anna'' AS distance FROM canon WHERE id < 0 ORDER BY name <-> ''Anna'' LIMIT 5');
SELECT * FROM compare_in_order('SELECT n.distance FROM (SELECT name <-> ''Anna'' AS distance FROM canon ORDER BY name <-> ''Anna'' LIMIT 9) n WHERE n.distance > 0.1');
SELECT * FROM compare_in_order('SELECT name OPERATOR(trigrams.<->) ''Anna'' AS distance FROM canon ORDER BY 1 LIMIT 9');

-- Texts of all ASCII characters, alone and in random rows, on which the trigrams of both have to agree
CREATE TABLE ascii AS SELECT i AS id, string_agg(chr(32 + abs(hashint4(i * 61 + j)) % 95), '' ORDER BY j) AS name FROM generate_series(1, 250) i, generate_series(1, 1 + i % 29) j GROUP BY i;
INSERT INTO ascii SELECT 2000 + a, chr(a) FROM generate_series(1, 127) a;
INSERT INTO ascii SELECT 3000 + a, 'x' || chr(a) || 'y' FROM generate_series(1, 127) a WHERE a % 16 > 9;
SELECT * FROM compare('SELECT d.id, n.distance, n.distance = n.name <-> d.name AS is_its FROM ascii d, LATERAL (SELECT name, name <-> d.name AS distance FROM ascii ORDER BY name <-> d.name LIMIT 5) n');
SELECT count(*) AS pairs, count(*) FILTER (WHERE found.distance::real IS DISTINCT FROM q.name <-> i.name) AS differ
FROM gpu_knn('SELECT id, name FROM ascii WHERE id % 3 = 0', 'SELECT id, name FROM ascii', k => 2000, metric => 'trigram') found
     JOIN ascii q ON q.id = query_id JOIN ascii i ON i.id = item_id;

-- Long texts, and more than fit into memory, are the ordinary plan's
SET gputext.host_memory_limit = '1MB';
SELECT * FROM compare('SELECT d.id, n.distance FROM (SELECT * FROM dirty WHERE id < 3) d, LATERAL (SELECT name <-> d.name AS distance FROM (SELECT repeat(name || md5(id::text), 100) AS name FROM canon WHERE id < 100) c ORDER BY name <-> d.name LIMIT 2) n');
RESET gputext.host_memory_limit;
INSERT INTO canon VALUES (1001, 1, repeat('Anna ', 210000));
SELECT * FROM compare('SELECT d.id, n.distance FROM (SELECT * FROM dirty WHERE id = 2) d, LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY name <-> d.name LIMIT 2) n');
SELECT * FROM compare_in_order('SELECT name <-> ''Anna'' AS distance FROM canon ORDER BY name <-> ''Anna'' LIMIT 2');
DELETE FROM canon WHERE id = 1001;

-- Other shapes, and other operators of pg_trgm, are left to the planner
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <->> d.name AS distance FROM canon ORDER BY name <->> d.name LIMIT 2) n');
SELECT same, planned FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <-> d.name AS distance FROM canon WHERE name % d.name ORDER BY name <-> d.name LIMIT 2) n');
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY name <-> d.name DESC LIMIT 2) n');
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY name <-> d.name NULLS FIRST LIMIT 2) n');
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY (name <-> d.name)::float8 LIMIT 2) n');
-- So is an operator of the same name that is another's
CREATE FUNCTION length_difference(text, text) RETURNS real LANGUAGE sql IMMUTABLE STRICT AS 'SELECT abs(length($1) - length($2))::real';
CREATE OPERATOR public.<-> (LEFTARG = text, RIGHTARG = text, FUNCTION = length_difference);
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name OPERATOR(public.<->) d.name AS distance FROM canon ORDER BY name OPERATOR(public.<->) d.name LIMIT 2) n');
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name OPERATOR(trigrams.<->) d.name AS distance FROM canon ORDER BY name OPERATOR(trigrams.<->) d.name LIMIT 2) n');
DROP FUNCTION length_difference CASCADE;

-- Errors are the ordinary ones
SET gputext.plan_nearest = force;
SELECT name FROM canon ORDER BY name <-> 'Anna' LIMIT -1;
SELECT d.id, n.name FROM dirty d, LATERAL (SELECT name FROM canon ORDER BY name <-> d.name LIMIT -1) n;
SELECT d.id, n.name FROM dirty d, LATERAL (SELECT name FROM canon ORDER BY name <-> (1 / (d.id - 3))::text LIMIT 1) n;
SELECT name FROM canon ORDER BY (1 / (id - 3))::text <-> 'Anna' LIMIT 1;

-- EXPLAIN
SELECT plan_of('SELECT d.id, n.name FROM dirty d, LATERAL (SELECT name FROM canon c WHERE c.kind = d.kind ORDER BY name <-> d.name LIMIT 2) n');
SELECT plan_of('SELECT name FROM canon ORDER BY name <-> ''Anna'' LIMIT 2');
-- By its cost: a join, also below an aggregate, and a sort of one process. An index in the order of the operator is taken for few rows, and the node for many.
SET gputext.plan_nearest = on;
SET max_parallel_workers_per_gather = 0;
INSERT INTO canon SELECT i, i % 4, 'name ' || i FROM generate_series(2000, 6000) i;
ANALYZE canon;
SELECT plan_of('SELECT d.id, n.name FROM dirty d, LATERAL (SELECT name FROM canon ORDER BY name <-> d.name LIMIT 2) n');
SELECT plan_of('SELECT count(*) FROM dirty d, LATERAL (SELECT id FROM canon ORDER BY name <-> d.name LIMIT 1) n');
SELECT plan_of('SELECT name FROM canon ORDER BY name <-> ''Anna'' LIMIT 2');
CREATE INDEX ON canon USING gist (name gist_trgm_ops);
SELECT plan_of('SELECT name FROM canon ORDER BY name <-> ''Anna'' LIMIT 2');
SELECT plan_of('SELECT d.id, n.name FROM canon d, LATERAL (SELECT name FROM canon ORDER BY name <-> d.name LIMIT 2) n');
RESET max_parallel_workers_per_gather;

-- Prepared statements
SET gputext.plan_nearest = force;
SET plan_cache_mode = force_generic_plan;
PREPARE nearest (text, int) AS SELECT name <-> $1 AS distance FROM canon ORDER BY name <-> $1 LIMIT $2;
EXECUTE nearest('Peter-Smith', 1);
EXECUTE nearest(NULL, 0);
SELECT plan_of('EXECUTE nearest(''Peter'', 2)');
PREPARE matches (int) AS SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY name <-> d.name LIMIT $1) n WHERE d.id IN (2, 3);
EXECUTE matches(2);
-- What the plan needs of pg_trgm may go: the ordinary plan answers, or there is an error
ALTER EXTENSION pg_trgm DROP FUNCTION show_trgm(text);
EXECUTE matches(2);
EXECUTE nearest('Peter-Smith', 1);
ALTER EXTENSION pg_trgm ADD FUNCTION show_trgm(text);
EXECUTE matches(2);
RESET plan_cache_mode;

-- Rights: to the operator's function, not to the one that makes trigrams; row-level security
CREATE ROLE gputext_reader;
GRANT USAGE ON SCHEMA trigrams TO gputext_reader;
GRANT SELECT ON canon, dirty TO gputext_reader;
REVOKE EXECUTE ON FUNCTION show_trgm(text) FROM public;
ALTER TABLE canon ENABLE ROW LEVEL SECURITY;
CREATE POLICY first_rows ON canon TO gputext_reader USING (id < 50);
SET ROLE gputext_reader;
SELECT * FROM compare('SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY name <-> d.name LIMIT 60) n');
SELECT * FROM compare_in_order('SELECT name <-> ''Anna'' AS distance FROM canon ORDER BY name <-> ''Anna'' LIMIT 60');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION similarity_dist(text, text) FROM public;
SET ROLE gputext_reader;
SET gputext.plan_nearest = force;
SELECT d.id, n.distance FROM dirty d, LATERAL (SELECT name <-> d.name AS distance FROM canon ORDER BY name <-> d.name LIMIT 60) n;
SELECT name FROM canon ORDER BY name <-> 'Anna' LIMIT 60;
RESET ROLE;
SET gputext.plan_nearest = off;
DROP TABLE canon, dirty, ascii;
DROP FUNCTION any_name, compare, compare_in_order, plan_of, rows_of;
DROP SCHEMA trigrams CASCADE;
DROP ROLE gputext_reader;
DEALLOCATE ALL;
