-- A session does not scan a table again that has not changed. Answers, notices and errors are those of a scan, whether or
-- not the session keeps what a scan gave. tests/live/kept_scans_test.cpp has when it does, and changes by other sessions.
SET gputext.device = 'cpu';
SET gputext.cpu_threads = 2;
CREATE SCHEMA kept_scans;
SET search_path = kept_scans, public;

-- A session knows the setting once it has used something of gputext.
SELECT edit_distance('a', 'b');
\set VERBOSITY sqlstate
SET gputext.scan_memory = -1;
\set VERBOSITY default
SET gputext.scan_memory = '1GB';
SHOW gputext.scan_memory;
RESET gputext.scan_memory;
SHOW gputext.scan_memory;

CREATE TABLE places (id bigint, kind int, place real[]);
ALTER TABLE places ALTER place SET STORAGE EXTERNAL;
INSERT INTO places SELECT i, i % 3, array_fill((i % 97)::real, ARRAY[598]) || ARRAY[i % 7, i]::real[]
FROM generate_series(1, 9000) AS i;
INSERT INTO places VALUES (9001, 1, NULL), (9002, 2, NULL);
VACUUM places;

-- Answers four times with what is kept and once without: whether they are the same. Errors are answers.
CREATE FUNCTION same(inner_query text, id anyelement) RETURNS text LANGUAGE plpgsql AS
$$ DECLARE memory text; digest text; place text; digests text[];
   BEGIN
       FOREACH memory IN ARRAY ARRAY['64MB', '64MB', '64MB', '0', '64MB'] LOOP
           PERFORM set_config('gputext.scan_memory', memory, false);
           BEGIN
               SELECT count(*) || ' rows ' || md5(string_agg(s::text, chr(10))) INTO digest
               FROM cosine_similarities(array_fill(0.5, ARRAY[600]), inner_query, id_type => id) AS s;
           EXCEPTION WHEN OTHERS THEN
               GET STACKED DIAGNOSTICS place = PG_EXCEPTION_CONTEXT;
               digest := SQLSTATE || ' ' || SQLERRM || ' (' || split_part(place, chr(10), 1) || ')';
           END;
           digests := digests || digest;
       END LOOP;
       IF (SELECT count(DISTINCT d) FROM unnest(digests) AS d) > 1 THEN RETURN array_to_string(digests, chr(10)); END IF;
       RETURN CASE WHEN digest LIKE '% rows %' THEN split_part(digest, ' ', 1) || ' rows' ELSE digest END;
   END $$;

SELECT same('SELECT id, place FROM places', NULL::bigint);
SET client_min_messages = warning;
SELECT same('SELECT kind, place FROM places', NULL::int), same('SELECT id, place FROM places', NULL::int),
       same('SELECT id, place, kind FROM places', NULL::bigint), same('SELECT place, id FROM places', NULL::bigint),
       same('SELECT id FROM places', NULL::bigint), same('SELECT id, place FROM places WHERE id < 100', NULL::bigint),
       same('SELECT id, place FROM places ORDER BY id DESC', NULL::bigint);

-- Changes of the session's own, committed and not
UPDATE places SET place = array_fill(2, ARRAY[600])::real[] WHERE id = 17;
VACUUM places;
SELECT same('SELECT id, place FROM places', NULL::bigint);
BEGIN;
DELETE FROM places WHERE id > 8000;
SELECT same('SELECT id, place FROM places', NULL::bigint);
ROLLBACK;
SELECT same('SELECT id, place FROM places', NULL::bigint);
BEGIN;
ALTER TABLE places RENAME TO gone;
CREATE TABLE places AS SELECT id, kind, place FROM gone WHERE kind = 1;
SELECT same('SELECT id, place FROM places', NULL::bigint);
ROLLBACK;
SELECT same('SELECT id, place FROM places', NULL::bigint);
DELETE FROM places WHERE id % 9 = 0;
VACUUM places;
SELECT same('SELECT id, place FROM places', NULL::bigint);
INSERT INTO places VALUES (NULL, 3, array_fill(1, ARRAY[600]));
VACUUM places;
SELECT same('SELECT id, place FROM places', NULL::bigint);
DELETE FROM places WHERE id IS NULL;
INSERT INTO places VALUES (20000, 3, array_fill(1, ARRAY[601]));
VACUUM places;
SELECT same('SELECT id, place FROM places', NULL::bigint);
DELETE FROM places WHERE id = 20000;
VACUUM places;
SELECT same('SELECT id, place FROM places', NULL::bigint);

-- Rows that are both queries and items, as gpu_knn has one text for both: after changes, too.
CREATE TABLE neighbors (id bigint, place real[]);
ALTER TABLE neighbors ALTER place SET STORAGE EXTERNAL;
INSERT INTO neighbors SELECT id, place FROM places WHERE id <= 5300;
VACUUM neighbors;
CREATE FUNCTION same_neighbors() RETURNS text LANGUAGE plpgsql AS
$$ DECLARE addition text; digest text; digests text[];
   BEGIN
       FOREACH addition IN ARRAY ARRAY['', '', ' ORDER BY id'] LOOP  -- which is scanned
           EXECUTE format('SELECT count(*) || '' rows '' || md5(string_agg(n::text, chr(10))) FROM gpu_knn(%1$L, %1$L, 2, ''euclidean'') AS n', 'SELECT id, place FROM neighbors' || addition) INTO digest;
           digests := digests || digest;
       END LOOP;
       RETURN CASE WHEN (SELECT count(DISTINCT d) FROM unnest(digests) AS d) = 1 THEN split_part(digest, ' ', 1) || ' rows' ELSE array_to_string(digests, chr(10)) END;
   END $$;
SELECT same_neighbors();
DELETE FROM neighbors WHERE id IN (2, 4000);
SELECT same_neighbors();
INSERT INTO neighbors SELECT i, array_fill((i % 97)::real, ARRAY[600]) FROM generate_series(9100, 9102) AS i;
SELECT same_neighbors();

-- Values of a temporary table lie in memory of the session's own, where workers do not read.
CREATE TEMPORARY TABLE own_places (id bigint, place real[]);
ALTER TABLE own_places ALTER place SET STORAGE EXTERNAL;
INSERT INTO own_places SELECT id, place FROM places;
SELECT same('SELECT id, place FROM own_places', NULL::bigint);
DROP TABLE own_places;

-- Rights are those of the role that asks.
CREATE ROLE regress_gputext_reader;
GRANT USAGE ON SCHEMA kept_scans TO regress_gputext_reader;
SET ROLE regress_gputext_reader;
SELECT same('SELECT id, place FROM places', NULL::bigint);
RESET ROLE;
GRANT SELECT (id, place) ON places TO regress_gputext_reader;
SELECT same('SELECT id, place FROM places', NULL::bigint);
SET ROLE regress_gputext_reader;
SELECT same('SELECT id, place FROM places', NULL::bigint), same('SELECT kind, place FROM places', NULL::int);
RESET ROLE;
ALTER TABLE places ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON places USING (kind = 0);
SELECT same('SELECT id, place FROM places', NULL::bigint);
SET ROLE regress_gputext_reader;
SELECT same('SELECT id, place FROM places', NULL::bigint);
SET row_security = off;
SELECT same('SELECT id, place FROM places', NULL::bigint);
RESET row_security;
RESET ROLE;

DROP OWNED BY regress_gputext_reader;
DROP SCHEMA kept_scans CASCADE;
DROP ROLE regress_gputext_reader;
