-- What gputextd keeps of tables, as far as it does not depend on time: the view, the function that forgets, and their
-- errors. tests/live/resident_test.cpp has what is kept.

SELECT attname AS column, format_type(atttypid, atttypmod) AS type FROM pg_attribute
WHERE attrelid = 'gputext_resident'::regclass AND attnum > 0 ORDER BY attnum;
SELECT obj_description('gputext_resident'::regclass, 'pg_class') <> '' AS view_commented,
       obj_description('gputext_resident()'::regprocedure, 'pg_proc') <> '' AS function_commented,
       obj_description('gputext_forget(regclass)'::regprocedure, 'pg_proc') <> '' AND
       obj_description('gputext_forget()'::regprocedure, 'pg_proc') <> '' AS forget_commented;

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
SELECT gputext_forget('numbers'), gputext_forget('small'), gputext_forget('small_index'), gputext_forget('ids'),
       gputext_forget('shown'), gputext_forget('parted');
-- Nothing was read by more than one statement, or of a size that is worth it.
SELECT count(*) FROM gputext_resident WHERE relation IN ('numbers'::regclass, 'small', 'shown', 'parted');

SELECT gputext_forget('missing');
SELECT gputext_forget(1);
SELECT gputext_forget(0);

-- Whoever does not own a relation cannot make gputextd forget it, even if he may read and write it.
CREATE ROLE regress_gputext_reader;
GRANT ALL ON small TO regress_gputext_reader;
SET ROLE regress_gputext_reader;
SELECT gputext_forget('small');
SELECT gputext_forget('small_index');
SELECT gputext_forget('shown');
SELECT gputext_forget('pg_class');
-- All of a database is its owner's.
SELECT gputext_forget() = 0 AS forgotten;
SELECT gputext_forget(NULL) IS NULL AS nothing;
-- Everybody may ask for what he may read.
SELECT count(*) FROM gputext_resident;
RESET ROLE;
ALTER TABLE small OWNER TO regress_gputext_reader;
SET ROLE regress_gputext_reader;
SELECT gputext_forget('small');
RESET ROLE;
SELECT gputext_forget() >= 0 AS forgotten, gputext_forget(to_regclass('missing')) IS NULL AS nothing;
SELECT count(*) FROM gputext_resident;

DROP VIEW shown;
DROP TABLE numbers, small, parted;
DROP SEQUENCE ids;
DROP ROLE regress_gputext_reader;
