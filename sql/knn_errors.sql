-- What functions of vectors refuse, and how they say so

CREATE TABLE vectors (id bigint, key text, vector real[]);
INSERT INTO vectors VALUES (1, 'a', '{1,2}'), (2, 'b', '{3,4}');

-- Arguments

SELECT * FROM gpu_knn('TABLE nothing', 'TABLE nothing', 0);
SELECT * FROM gpu_knn('TABLE nothing', 'TABLE nothing', -1);
SELECT * FROM gpu_knn('TABLE nothing', 'TABLE nothing', 3, 'chebyshev');
SELECT * FROM gpu_knn('TABLE nothing', 'TABLE nothing', 3, 'Cosine');
SELECT * FROM gpu_knn('TABLE nothing', 'TABLE nothing', 3, NULL);
SELECT * FROM gpu_knn('TABLE nothing', 'TABLE nothing', 3, exclude_self => NULL);
SELECT * FROM gpu_knn('TABLE nothing', 'TABLE nothing', NULL::integer);
SELECT * FROM gpu_knn(NULL, 'TABLE nothing', 3);
SELECT * FROM gpu_knn('TABLE nothing', NULL, 3);
\set VERBOSITY terse
SELECT * FROM gpu_knn('TABLE nothing', 'TABLE nothing');
\set VERBOSITY default
SELECT * FROM gpu_knn_within('TABLE nothing', 'TABLE nothing', 'NaN');
SELECT * FROM gpu_knn_within('TABLE nothing', 'TABLE nothing', '-Infinity');
SELECT * FROM gpu_knn_within('TABLE nothing', 'TABLE nothing', NULL);
SELECT * FROM gpu_knn_within('TABLE nothing', 'TABLE nothing', 1, 'x');

-- Columns

SELECT * FROM gpu_knn('SELECT id FROM vectors', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT id, vector, key FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, key FROM vectors', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector::numeric[] FROM vectors', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector::bigint[] FROM vectors', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, ''{1,2}'' FROM vectors', 'SELECT id, vector FROM vectors', 1);
-- They are checked before any row is read.
SELECT * FROM gpu_knn('SELECT id / 0, key FROM vectors', 'SELECT id, vector FROM vectors', 1);
-- A type by the name of one of pgvector's that does not belong to it
CREATE DOMAIN vector AS text;
CREATE TYPE halfvec AS (x real);
SELECT * FROM gpu_knn('SELECT id, key::vector FROM vectors', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, ROW(1)::halfvec FROM vectors', 'SELECT id, vector FROM vectors', 1);
DROP DOMAIN vector;
DROP TYPE halfvec;

-- Ids

SELECT * FROM gpu_knn('SELECT key, vector FROM vectors', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT key, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT key, vector FROM vectors', NULL::text, 1);
SELECT * FROM gpu_knn('SELECT nullif(id, 2), vector FROM vectors ORDER BY id', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT nullif(id, 2), nullif(vector, vector) FROM vectors ORDER BY id', 1);
SELECT * FROM gpu_knn('SELECT to_json(id), vector FROM vectors', 'SELECT to_json(id), vector FROM vectors', NULL::json, 1, exclude_self => true);
-- id_type is to stand right after the inner queries, as PostgreSQL 15 takes the type of the result
-- from the argument that stands there.
SELECT query_id FROM gpu_knn('SELECT key, vector FROM vectors', 'SELECT key, vector FROM vectors', k => 1, id_type => NULL::text);

-- Vectors: the message names the row.

SELECT * FROM gpu_knn('SELECT id, CASE id WHEN 2 THEN ''{1,NaN}'' ELSE vector END FROM vectors ORDER BY id', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT key, CASE id WHEN 2 THEN ''{-Infinity,1}'' ELSE vector END FROM vectors ORDER BY id', 1);
SELECT * FROM gpu_knn('SELECT key, vector FROM vectors', 'SELECT key, CASE id WHEN 2 THEN ''{-Infinity,1}''::double precision[] END FROM vectors ORDER BY id', NULL::text, 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT id, ARRAY[id, NULL]::integer[] FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT id, ARRAY[vector, vector] FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT id, ''{}''::real[] FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector[:id] FROM vectors ORDER BY id', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors ORDER BY id', 'SELECT 7 + id, vector || 1::real FROM vectors ORDER BY id', 1);
-- A long id is cut.
SELECT * FROM gpu_knn('SELECT repeat(key || ''é'', 200), ''{NaN}''::real[] FROM vectors WHERE id = 1', 'SELECT key, vector FROM vectors', NULL::text, 1);
-- The first id is known when it has gone to a temporary file
SET gputext.host_memory_limit = '1MB';
SELECT * FROM gpu_knn('SELECT i::bigint, CASE WHEN i < 200000 THEN ''{1,2}'' ELSE ''{1}'' END::real[] FROM generate_series(1, 200000) i', 'SELECT id, vector FROM vectors', 1);
SELECT query_id, rank FROM gpu_knn('SELECT i::bigint, ''{1,2}''::real[] FROM generate_series(1, 200000) i', 'SELECT i, ''{1,2}''::real[] FROM generate_series(199999::bigint, 400000) i', 1, exclude_self => true) WHERE query_id > 199998;
RESET gputext.host_memory_limit;
-- Nothing is wrong with the length of no vectors.
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors ORDER BY id', 'SELECT id, vector || 1::real FROM vectors WHERE false', 1);

-- Statements that are none, several, wrong, or do more than read

SELECT * FROM gpu_knn('', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT 1; SELECT 2', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'SELECT id, vector FROM missing', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors', 'DELETE FROM vectors RETURNING id, vector', 1);
SELECT * FROM gpu_knn('SELECT id, vector FROM vectors FOR UPDATE', 'SELECT id, vector FROM vectors', 1);
SELECT * FROM gpu_knn('SELECT id / (id - 2), vector FROM vectors ORDER BY id', 'SELECT id, vector FROM vectors', 1);
SELECT count(*) AS all_still_there FROM vectors;

-- The SQLSTATE of each kind

CREATE TABLE kinds (id int, kind text, call text);
INSERT INTO kinds VALUES
    (1, 'k', $$gpu_knn('TABLE vectors', 'TABLE vectors', 0)$$),
    (2, 'radius', $$gpu_knn_within('TABLE vectors', 'TABLE vectors', 'NaN')$$),
    (3, 'metric', $$gpu_knn('TABLE vectors', 'TABLE vectors', 1, 'x')$$),
    (4, 'null argument', $$gpu_knn('TABLE vectors', 'TABLE vectors', 1, NULL)$$),
    (5, 'number of columns', $$gpu_knn('SELECT id FROM vectors', 'SELECT id FROM vectors', 1)$$),
    (6, 'type of vectors', $$gpu_knn('SELECT id, key FROM vectors', 'TABLE vectors', 1)$$),
    (7, 'type of ids', $$gpu_knn('SELECT key, vector FROM vectors', 'TABLE vectors', 1)$$),
    (8, 'null id', $$gpu_knn('SELECT NULL::bigint, vector FROM vectors', 'SELECT id, vector FROM vectors', 1)$$),
    (9, 'ids without equality', $$gpu_knn('SELECT to_json(id), vector FROM vectors', 'SELECT to_json(id), vector FROM vectors', NULL::json, 1, 'cosine', true)$$),
    (10, 'not finite', $$gpu_knn('SELECT id, ''{NaN}''::real[] FROM vectors', 'SELECT id, vector FROM vectors', 1)$$),
    (11, 'null element', $$gpu_knn('SELECT id, ''{NULL}''::real[] FROM vectors', 'SELECT id, vector FROM vectors', 1)$$),
    (12, 'several dimensions', $$gpu_knn('SELECT id, ARRAY[vector] FROM vectors', 'SELECT id, vector FROM vectors', 1)$$),
    (13, 'no elements', $$gpu_knn('SELECT id, ''{}''::real[] FROM vectors', 'SELECT id, vector FROM vectors', 1)$$),
    (14, 'different lengths', $$gpu_knn('SELECT id, vector[:id] FROM vectors', 'SELECT id, vector FROM vectors', 1)$$);
CREATE FUNCTION sqlstate_of(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT * FROM ' || call;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT kind, sqlstate_of(call) AS sqlstate FROM kinds ORDER BY id;

DROP TABLE vectors, kinds;
DROP FUNCTION sqlstate_of;
