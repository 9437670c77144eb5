-- Where statements compute, and what can be seen of it

-- On a device where there is one. Where there is none, this file compares the CPU with itself.
SELECT CASE WHEN bool_or(device IS NOT NULL) THEN 'gpu' ELSE 'cpu' END AS here FROM gputext_devices() \gset

CREATE TABLE docs AS
SELECT row_number() OVER (ORDER BY version, base) AS id,
       (SELECT string_agg(CASE WHEN (word + base) % 20 < version % 6 THEN 'é' || version % 6
                               ELSE substr(md5(base || '/' || word), 1, 1 + (word * base) % 9) END,
                          ' ' ORDER BY word)
        FROM generate_series(1, 20 + 2 * base) AS word) AS body
FROM generate_series(1, 30) AS base, generate_series(0, 6) AS version;
ALTER TABLE docs ADD signature ctph GENERATED ALWAYS AS (ctph_signature(body, 12)) STORED;
-- 3 MB, for a file
CREATE TABLE long_docs AS SELECT id, repeat(body, 60) AS body FROM docs;

CREATE TABLE vectors AS
SELECT i::bigint AS id, ARRAY[i * i % 31 - 7, i * 7 % 23, i % 5, i * 11 % 17]::real[] AS vector FROM generate_series(1, 300) AS i;
INSERT INTO vectors VALUES (301, '{0,0,0,0}');
-- 240 kB, of which 20 copies are a file
CREATE TABLE long_vectors AS
SELECT i::bigint AS id, array_agg((i * j * 2654435761 % 1009)::real ORDER BY j) AS vector
FROM generate_series(1, 30) AS i, generate_series(1, 2000) AS j GROUP BY i;

CREATE TABLE calls (number int, call text);
INSERT INTO calls VALUES
    (1, $$near_duplicates('SELECT id, body FROM docs ORDER BY id', 0.1)$$),
    (2, $$near_duplicates('SELECT id, body FROM docs ORDER BY id', 0.1, 'exact')$$),
    (3, $$near_duplicates('SELECT id, body FROM docs ORDER BY id', 0.1, 'ctph', 12)$$),
    (4, $$near_duplicates('SELECT id, body, CASE WHEN id % 2 = 0 THEN signature END FROM docs ORDER BY id', 0.1, 'ctph', 12)$$),
    (5, $$near_duplicates('SELECT id, convert_to(body, ''UTF8'') FROM docs ORDER BY id', 0.1, 'exact')$$),
    (6, $$near_duplicates('SELECT ''n'' || id, body FROM docs ORDER BY id', NULL::text, 0.2)$$),
    (7, $$near_duplicates('SELECT id, body FROM long_docs ORDER BY id')$$),
    (8, $$near_duplicates('SELECT id, left(body, 3) FROM docs ORDER BY id', 0.3, 'exact')$$),
    (9, $$near_duplicates('TABLE docs', 0)$$),
    (10, $$near_duplicates('SELECT id, body FROM docs WHERE false')$$),
    (11, $$near_duplicates('SELECT id, '''' FROM docs WHERE id < 4')$$),
    (12, $$near_duplicate_groups('SELECT id, body FROM docs ORDER BY id', 0.1)$$),
    (13, $$near_duplicate_groups('SELECT md5(id::text)::uuid, body FROM docs ORDER BY id', NULL::uuid, 0.05, 'exact')$$),
    (14, $$near_duplicate_groups('SELECT id, body FROM docs WHERE false')$$),
    (15, $$gpu_knn('SELECT id, vector FROM vectors WHERE id % 7 = 0', 'TABLE vectors', 5)$$),
    (16, $$gpu_knn('TABLE vectors', 'SELECT id, vector::double precision[] FROM vectors', 3, 'euclidean', true)$$),
    (17, $$gpu_knn('SELECT ''v'' || id, vector FROM vectors', 'SELECT ''v'' || id, vector::integer[] FROM vectors', NULL::text, 2, 'manhattan', true)$$),
    (18, $$gpu_knn_within('TABLE vectors', 'TABLE vectors', -400, 'inner_product')$$),
    (19, $$gpu_knn_within('TABLE vectors', 'SELECT id, vector FROM vectors WHERE false', 3)$$),
    (20, $$gpu_knn('TABLE long_vectors', 'SELECT n * 100 + id, vector FROM long_vectors, generate_series(0, 19) AS n', 30, 'euclidean')$$),
    (21, $$cosine_similarities((SELECT vector FROM vectors WHERE id = 3), 'TABLE vectors')$$),
    (22, $$cosine_similarities('{1,2,3}', 'SELECT id::text, ''{1,0,0}''::real[] FROM vectors WHERE id < 0', NULL::text)$$),
    (23, $$local_outlier_factor('TABLE vectors', 5)$$),
    (24, $$local_outlier_factor('SELECT md5(id::text)::uuid, vector FROM vectors', NULL::uuid, 7, 'cosine', 'breunig')$$),
    (25, $$local_outlier_factor('SELECT id, vector FROM vectors WHERE id < 2', 5)$$),
    (26, $$(SELECT e.* FROM dictionary, trie_encode(words, 'SELECT id, word FROM docs, string_to_table(body, '' '') AS word') AS e)$$),
    (27, $$(SELECT e.* FROM dictionary, trie_encode(words, 'SELECT ''n'' || id, left(body, 1) FROM docs', NULL::text) AS e)$$),
    (28, $$(SELECT e.* FROM dictionary, trie_encode(words, 'SELECT id, body FROM docs WHERE false') AS e)$$),
    (29, $$(SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM long_docs') AS e)$$),
    (30, $$(SELECT trie_agg(word)::bytea FROM docs, string_to_table(body, ' ') AS word)$$),
    (31, $$word2vec('SELECT id, body FROM docs', dimensions => 20, epochs => 2)$$),
    (32, $$word2vec('SELECT body FROM docs', 'cbow', 40, min_count => 30, sampling => 'farthest', epochs => 2, replicas => 2, initial => 'TABLE model')$$),
    (33, $$dbscan('SELECT ''v'' || id, vector FROM vectors', NULL::text, 4, 5)$$),
    (34, $$dbscan('SELECT id, vector FROM vectors WHERE false', 1, 2)$$),
    (35, $$semantic_duplicate_groups('TABLE vectors', 0.02)$$);
SET gputext.device = cpu;
CREATE TABLE model AS SELECT * FROM word2vec('SELECT body FROM docs WHERE id % 2 = 0', 'cbow', 40, min_count => 15, epochs => 1);
RESET gputext.device;
CREATE TABLE dictionary AS SELECT trie_agg(word) AS words FROM docs, string_to_table(body, ' ') AS word WHERE id % 3 > 0;
CREATE FUNCTION rows_of(call text, device text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('gputext.device', device, true);
    RETURN QUERY EXECUTE 'SELECT r::text FROM ' || call || ' AS r';
END $$;

SET gputext.host_memory_limit = '1MB';
SELECT gpu_jobs, gpu_jobs + cpu_jobs AS jobs, rows, bytes, failures FROM gputext_stat \gset before_
SELECT number, cardinality(a) > 0 AS any_rows, a = b AS same
FROM calls, LATERAL (SELECT ARRAY(SELECT rows_of(call, 'cpu')) AS a, ARRAY(SELECT rows_of(call, :'here')) AS b) AS answers
ORDER BY number;
RESET gputext.host_memory_limit;

-- Items of four times the memory that a device may give; few queries, each of which takes 28 kB of it
CREATE TABLE items AS
SELECT i::bigint AS id, array_agg((sin(i * j) * (i % 50))::real ORDER BY j) AS vector
FROM generate_series(1, 4000) AS i, generate_series(1, 256) AS j GROUP BY i;
SET gputext.device = cpu;
CREATE TABLE expected AS
SELECT * FROM gpu_knn('SELECT id, vector FROM items WHERE id % 200 = 1', 'TABLE items', 20, 'euclidean') WITH ORDINALITY;
SELECT set_config('gputext.device', :'here', false) \gset ignored_
SELECT sum(4 * cardinality(vector)) AS bytes FROM items;
SET gputext.gpu_memory_limit = '1000kB';
SELECT count(*) AS rows, bool_and(e = f) AS same FROM expected e FULL JOIN
    (SELECT * FROM gpu_knn('SELECT id, vector FROM items WHERE id % 200 = 1', 'TABLE items', 20, 'euclidean') WITH ORDINALITY) f USING (ordinality);
RESET gputext.gpu_memory_limit;
RESET gputext.device;

-- They have been counted, beside what other sessions of the server do meanwhile.
\d gputext_stat
SELECT gpu_jobs + cpu_jobs - :before_jobs >= 66 AS jobs, failures >= :before_failures AS failures,
       rows - :before_rows >= 73388 AS rows, bytes > :before_bytes AS bytes, (gpu_jobs > :before_gpu_jobs) = (:'here' = 'gpu') AS here,
       cpu_fallbacks >= 0 AS fallbacks, jsonb_typeof(fallback_reasons) AS reasons, since <= now() AS since
FROM gputext_stat;
SELECT * FROM near_duplicates('SELECT 1 / (id - 2), body FROM docs');

-- Small jobs stay on the CPU, and need no gputextd.
SHOW gputext.device;
SELECT cpu_jobs FROM gputext_stat \gset before_
SELECT count(*) FROM near_duplicates('SELECT id, body FROM docs', 0.001);
SELECT cpu_jobs > :before_cpu_jobs AS on_cpu FROM gputext_stat;

-- An inner query that looks at its own statement
\d gputext_activity
CREATE FUNCTION here() RETURNS text LANGUAGE sql VOLATILE AS
$$ SELECT concat_ws(' ', function_name, phase, coalesce(device, 'nowhere yet'), total, rows, bytes, seconds < 60, started <= clock_timestamp())
   FROM gputext_activity WHERE pid = pg_backend_pid() $$;
SELECT id FROM near_duplicate_groups('SELECT here(), ''x''', NULL::text);
SELECT here();
-- One that calls another one: when that has ended, the outer one is shown again.
SET gputext.device = cpu;
SELECT id FROM near_duplicate_groups(
    'SELECT here(), body FROM docs WHERE id = (SELECT count(*) FROM near_duplicates(''SELECT id, body FROM docs'', 0)) + 1',
    NULL::text);
RESET gputext.device;
SELECT here();
-- Nothing is shown after an error.
DO $$
BEGIN
    PERFORM near_duplicates('SELECT 1::bigint, (1 / 0)::text');
EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'then: %', here();
END $$;

-- Others see that a session computes, and not what.
CREATE ROLE regress_gputext_other;
CREATE FUNCTION seen_by_other() RETURNS text LANGUAGE sql VOLATILE SECURITY DEFINER AS
$$ SELECT count(pid) || ' ' || count(function_name) || ' ' || count(phase) || ' ' || count(rows) || ' ' || count(started)
   FROM gputext_activity WHERE pid = pg_backend_pid() $$;
ALTER FUNCTION seen_by_other() OWNER TO regress_gputext_other;
SELECT id FROM near_duplicate_groups('SELECT seen_by_other(), ''x''', NULL::text);
GRANT pg_read_all_stats TO regress_gputext_other;
SELECT id FROM near_duplicate_groups('SELECT seen_by_other(), ''x''', NULL::text);
-- The counters are everybody's.
SET ROLE regress_gputext_other;
SELECT count(*) FROM gputext_stat;
RESET ROLE;

-- What is to be computed on a device is not computed elsewhere, and what may be is.
CREATE FUNCTION state_of(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT count(*) FROM ' || call;
    RETURN 'computed';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SET gputext.device = gpu;
SELECT state_of('near_duplicates(''SELECT id, body FROM docs'')') = CASE :'here' WHEN 'gpu' THEN 'computed' ELSE '55000' END AS only_on_a_device;
SET gputext.device = auto;
SELECT state_of('near_duplicates(''SELECT id, body FROM docs'')');
RESET gputext.device;

DROP TABLE docs, long_docs, calls, vectors, long_vectors, items, expected, dictionary, model;
DROP FUNCTION rows_of, here, seen_by_other, state_of;
DROP ROLE regress_gputext_other;
