-- Settings

-- A session knows the settings, and their limits, once it has used something of gputext.
SELECT edit_distance('a', 'b');
SELECT name, unit, min_val, max_val, enumvals, boot_val, context, vartype
FROM pg_settings WHERE name LIKE 'gputext.%' AND name <> 'gputext.version' ORDER BY name;
SELECT current_setting('gputext.version') = extversion AS same_version FROM pg_extension WHERE extname = 'gputext';
SHOW gputext.host_memory_limit;
SHOW gputext.cpu_threads;

SET gputext.cpu_threads = -1;
SET gputext.cpu_threads = 1025;
SET gputext.cpu_threads = 'many';
SET gputext.max_cpu_threads = 1025;
SET gputext.max_helper_threads = 1;
\set VERBOSITY sqlstate
SET gputext.host_memory_limit = '1023kB';
SET gputext.host_memory_limit = '-1';
SET gputext.gpu_memory_limit = '-1';
SET gputext.version = '1.0.0';
\set VERBOSITY default
SET gputext.device = 'tpu';
SET gputext.gpu_memory_limit = 'all';
SET gputext.progress = 'much';
SET gputext.fake_devices = 1;
SET gputext.allow_faults = on;
SET gputext.missing = 1;
-- Without an effect since 0.2.0, but dumps and configurations of 0.1.0 set it.
SET gputext.trie_output = 'bytes';
SET gputext.trie_output = 'summary';
SET gputext.trie_output = 'hex';
RESET gputext.trie_output;
-- Faults are a superuser's.
CREATE ROLE regress_gputext_user;
SET ROLE regress_gputext_user;
SET gputext.inject_fault = 'in_job:crash';
SET gputext.max_cpu_threads = 64;
SET gputext.device = 'gpu';
RESET gputext.device;
RESET ROLE;
DROP ROLE regress_gputext_user;

-- How far the memory limit may be raised is a superuser's. Lowered later, the maximum counts.
SET gputext.max_host_memory = '8GB';
SET gputext.host_memory_limit = '8GB';
SET gputext.host_memory_limit = '8193MB';
SHOW gputext.host_memory_limit;
CREATE ROLE regress_gputext_user;
SET ROLE regress_gputext_user;
SET gputext.max_host_memory = '1TB';
SET gputext.host_memory_limit = '1TB';
SELECT set_config('gputext.host_memory_limit', '1TB', false);
SHOW gputext.host_memory_limit;
RESET ROLE;
DROP ROLE regress_gputext_user;
CREATE TABLE points AS SELECT i AS id, ARRAY[i]::real[] AS place FROM generate_series(1, 400) AS i;
SET gputext.max_host_memory = '1MB';
SHOW gputext.host_memory_limit;
SELECT count(*) FROM local_outlier_factor('SELECT id::bigint, place FROM points', k => 399);
RESET gputext.max_host_memory;
SELECT count(*) FROM local_outlier_factor('SELECT id::bigint, place FROM points', k => 399);
RESET gputext.host_memory_limit;
DROP TABLE points;

-- Neighbors beyond the limit are searched for in parts, with the same answer.
CREATE TABLE places AS
SELECT i::bigint AS id, ARRAY[i % 97, i % 89, i % 7]::real[] AS place FROM generate_series(1, 500) AS i;
CREATE TABLE at_once AS
SELECT * FROM gpu_knn_within('SELECT * FROM places', 'SELECT * FROM places', 'Infinity', metric => 'euclidean');
CREATE TABLE nearest_at_once AS
SELECT * FROM gpu_knn('SELECT * FROM places', 'SELECT * FROM places', 300, metric => 'euclidean', exclude_self => true);
SET gputext.host_memory_limit = '1MB';
CREATE TABLE in_parts AS
SELECT * FROM gpu_knn_within('SELECT * FROM places', 'SELECT * FROM places', 'Infinity', metric => 'euclidean');
CREATE TABLE nearest_in_parts AS
SELECT * FROM gpu_knn('SELECT * FROM places', 'SELECT * FROM places', 300, metric => 'euclidean', exclude_self => true);
RESET gputext.host_memory_limit;
SELECT count(*) FROM at_once;
SELECT count(*) FROM nearest_at_once;
SELECT count(*) AS differences FROM (TABLE at_once EXCEPT TABLE in_parts UNION ALL (TABLE in_parts EXCEPT TABLE at_once)) AS d;
SELECT count(*) AS differences FROM (TABLE nearest_at_once EXCEPT TABLE nearest_in_parts UNION ALL (TABLE nearest_in_parts EXCEPT TABLE nearest_at_once)) AS d;
DROP TABLE places, at_once, in_parts, nearest_at_once, nearest_in_parts;

-- 3 MB of documents, which do not fit into 1 MB of memory: they go to a temporary file, and the
-- answer is the same.
CREATE TABLE docs AS
SELECT i::bigint AS id, (SELECT string_agg(md5((i % 100) || '/' || j), '') FROM generate_series(1, 500) AS j) AS body
FROM generate_series(1, 200) AS i;
SET gputext.cpu_threads = 2;
CREATE TABLE in_memory AS SELECT * FROM near_duplicates('SELECT id, body FROM docs ORDER BY id');
SET gputext.host_memory_limit = '1MB';
CREATE TABLE in_file AS SELECT * FROM near_duplicates('SELECT id, body FROM docs ORDER BY id');
SELECT count(*) AS pairs FROM in_memory;
SELECT count(*) AS differences FROM (TABLE in_memory EXCEPT TABLE in_file UNION ALL (TABLE in_file EXCEPT TABLE in_memory)) AS d;
CREATE TABLE exactly AS SELECT * FROM near_duplicates('SELECT id, body FROM docs ORDER BY id', mode => 'exact');
SELECT count(*) AS differences FROM (TABLE in_memory EXCEPT TABLE exactly UNION ALL (TABLE exactly EXCEPT TABLE in_memory)) AS d;
-- The file counts against temp_file_limit.
SET temp_file_limit = '2MB';
\set VERBOSITY sqlstate
SELECT count(*) FROM near_duplicates('SELECT id, body FROM docs ORDER BY id');
\set VERBOSITY default
SET temp_file_limit = '100MB';
SELECT count(*) FROM near_duplicates('SELECT id, body FROM docs ORDER BY id');
RESET temp_file_limit;
SELECT count(*) AS files_left FROM pg_ls_tmpdir()
WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';

-- A superuser's maximum bounds the threads; the rows are the same.
SET gputext.max_cpu_threads = 1;
SET gputext.cpu_threads = 1024;
SELECT count(*) FROM near_duplicates('SELECT id, body FROM docs ORDER BY id');
RESET gputext.max_cpu_threads;
SELECT count(*) FROM near_duplicates('SELECT id, body FROM docs ORDER BY id');
SET gputext.cpu_threads = 2;

-- A function may bring its own.
CREATE FUNCTION count_pairs() RETURNS bigint LANGUAGE sql SET gputext.cpu_threads = 1
AS $$ SELECT count(*) FROM near_duplicates('SELECT id, body FROM docs') $$;
SELECT count_pairs();
SHOW gputext.cpu_threads;

DROP TABLE docs, in_memory, in_file, exactly;
DROP FUNCTION count_pairs;
