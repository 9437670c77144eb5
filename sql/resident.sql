-- What gputextd keeps of tables, as far as it does not depend on time: the view, the function that forgets, and their
-- errors. tests/live/resident_test.cpp has what is kept.

SELECT attname AS column, format_type(atttypid, atttypmod) AS type FROM pg_attribute
WHERE attrelid = 'gputext_resident'::regclass AND attnum > 0 ORDER BY attnum;
SELECT obj_description('gputext_resident'::regclass, 'pg_class') <> '' AS view_commented,
       obj_description('gputext_resident()'::regprocedure, 'pg_proc') <> '' AS function_commented,
       obj_description('gputext_evict(regclass)'::regprocedure, 'pg_proc') <> '' AND
       obj_description('gputext_evict()'::regprocedure, 'pg_proc') <> '' AS forget_commented;

-- The memory is one for the whole server, so a session cannot choose it. A session knows the setting once it has used
-- something of gputext.
SELECT edit_distance('a', 'b');
SET gputext.resident_memory = '1GB';
SET gputext.resident_memory = 0;
ALTER ROLE CURRENT_USER SET gputext.resident_memory = 0;
\set VERBOSITY sqlstate
ALTER SYSTEM SET gputext.resident_memory = -2;
\set VERBOSITY default
ALTER SYSTEM SET gputext.resident_memory = 'all';

-- These have nothing that could be kept.
CREATE TABLE numbers (id bigint, x double precision);
CREATE TABLE small (id bigint, place real[]);
INSERT INTO small VALUES (1, '{1,2}');
CREATE INDEX small_index ON small (id);
CREATE SEQUENCE ids;
CREATE VIEW shown AS SELECT * FROM small;
CREATE TABLE parted (id bigint, place real[]) PARTITION BY RANGE (id);
SELECT gputext_evict('numbers'), gputext_evict('small'), gputext_evict('small_index'), gputext_evict('ids'),
       gputext_evict('shown'), gputext_evict('parted');
-- Nothing was read by more than one statement, or of a size that is worth it.
SELECT count(*) FROM gputext_resident WHERE relation IN ('numbers'::regclass, 'small', 'shown', 'parted');

SELECT gputext_evict('missing');
SELECT gputext_evict(1);
SELECT gputext_evict(0);

-- Whoever does not own a relation cannot make gputextd forget it, even if he may read and write it.
CREATE ROLE regress_gputext_reader;
GRANT ALL ON small TO regress_gputext_reader;
SET ROLE regress_gputext_reader;
SELECT gputext_evict('small');
SELECT gputext_evict('small_index');
SELECT gputext_evict('shown');
SELECT gputext_evict('pg_class');
-- All of a database is its owner's.
SELECT gputext_evict() = 0 AS forgotten;
SELECT gputext_evict(NULL) IS NULL AS nothing;
-- Everybody may ask for what he may read.
SELECT count(*) FROM gputext_resident;
RESET ROLE;
ALTER TABLE small OWNER TO regress_gputext_reader;
SET ROLE regress_gputext_reader;
SELECT gputext_evict('small');
RESET ROLE;
SELECT gputext_evict() >= 0 AS forgotten, gputext_evict(to_regclass('missing')) IS NULL AS nothing;
SELECT count(*) FROM gputext_resident;

DROP VIEW shown;
DROP TABLE numbers, small, parted;
DROP SEQUENCE ids;
DROP ROLE regress_gputext_reader;
