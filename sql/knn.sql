-- gpu_knn and gpu_knn_within

-- Points of a grid, so that every distance is computed exactly, in SQL too
CREATE TABLE points (id bigint PRIMARY KEY, kind text, place integer[]);
INSERT INTO points
SELECT x * 10 + y, CASE WHEN x < 3 THEN 'west' ELSE 'east' END, ARRAY[x, y]
FROM generate_series(0, 5) AS x, generate_series(0, 5) AS y;

SELECT * FROM gpu_knn('SELECT id, place FROM points WHERE id IN (0, 23) ORDER BY id',
                      'SELECT id, place FROM points ORDER BY id', 4, 'euclidean');
SELECT * FROM gpu_knn_within('SELECT id, place FROM points WHERE id IN (0, 23) ORDER BY id',
                             'SELECT id, place FROM points ORDER BY id', 1, 'euclidean');
-- Every argument by name
SELECT * FROM gpu_knn(queries => 'SELECT id, place FROM points WHERE id = 0',
                      items => 'SELECT id, place FROM points ORDER BY id', k => 2,
                      metric => 'manhattan', exclude_self => true);
SELECT * FROM gpu_knn_within(queries => 'SELECT id, place FROM points WHERE id = 0',
                             items => 'SELECT id, place FROM points ORDER BY id', radius => 1,
                             metric => 'manhattan', exclude_self => true);
-- The default metric is cosine.
SELECT item_id, distance < 1e-9 AS same_direction
FROM gpu_knn('SELECT 1::bigint, ''{2,2}''::integer[]', 'SELECT id, place FROM points WHERE id IN (11, 12, 55, 50)', 3);
-- Equal distances are in the items' input order.
SELECT item_id FROM gpu_knn('SELECT 0::bigint, ''{2,2}''::real[]', 'SELECT id, place FROM points ORDER BY id', 5, 'euclidean');
SELECT item_id FROM gpu_knn('SELECT 0::bigint, ''{2,2}''::real[]', 'SELECT id, place FROM points ORDER BY id DESC', 5, 'euclidean');

-- Against a plain search in SQL: every metric, all types of both sides, k up to all items and beyond

CREATE FUNCTION plain_distance(a integer[], b integer[], metric text) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE metric
           WHEN 'euclidean' THEN sqrt(sum((x - y) * (x - y))::double precision)
           WHEN 'manhattan' THEN sum(abs(x - y))::double precision
           WHEN 'inner_product' THEN 0 - sum(x * y)::double precision
           WHEN 'cosine' THEN CASE WHEN sum(x * x) > 0 AND sum(y * y) > 0
               THEN 1 - sum(x * y) / sqrt(sum(x * x)::double precision * sum(y * y)) END
           END
    FROM unnest(a, b) AS pairs(x, y)
$$;
-- Many equal rows and distances, and rows of zeros
CREATE TABLE numbers AS
SELECT i::bigint AS id, (ARRAY['{3,4,0,0}', '{0,0,0,0}', '{4,0,3,0}', '{0,12,5,0}', '{2,2,2,2}', '{8,0,0,6}',
                               '{-3,4,0,0}', '{1,1,1,1}', '{0,0,0,7}']::text[])[1 + i * i % 9]::integer[] AS vector
FROM generate_series(1, 60) AS i;
INSERT INTO numbers SELECT 60 + i, ARRAY[i * 7 % 11, i * 5 % 13, -i % 5, i % 3] FROM generate_series(1, 60) AS i;

CREATE FUNCTION differing_rows(metric text, k integer, type1 text, type2 text, self boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    differing bigint;
BEGIN
    WITH expected AS (
        SELECT q.id AS query_id, i.id AS item_id, d.distance,
               row_number() OVER (PARTITION BY q.id ORDER BY d.distance, i.id)::integer AS rank
        FROM (SELECT * FROM numbers WHERE id % 3 = 0) q JOIN numbers i ON NOT (self AND q.id = i.id),
             LATERAL plain_distance(q.vector, i.vector, metric) AS d(distance)
        WHERE d.distance IS NOT NULL
    ), found AS (
        SELECT * FROM gpu_knn(format('SELECT id, vector::%s FROM numbers WHERE id %% 3 = 0', type1),
                              format('SELECT id, vector::%s FROM numbers ORDER BY id', type2), k, metric, self)
    )
    SELECT count(*) INTO differing
    FROM (SELECT * FROM expected WHERE rank <= k) e FULL JOIN found f USING (query_id, item_id, rank)
    WHERE e.distance IS DISTINCT FROM f.distance;
    RETURN differing;
END $$;
SELECT metric, k, type1, type2, self, differing_rows(metric, k, type1, type2, self) AS differing
FROM (VALUES ('euclidean'), ('manhattan'), ('inner_product')) AS m(metric),
     (VALUES (1, 'real[]', 'real[]', false), (7, 'double precision[]', 'real[]', true),
             (50, 'integer[]', 'double precision[]', false), (119, 'real[]', 'integer[]', true),
             (120, 'integer[]', 'integer[]', false), (1000, 'real[]', 'real[]', false),
             (2147483647, 'double precision[]', 'double precision[]', true)) AS c(k, type1, type2, self)
ORDER BY metric, k;
-- Cosine: rows of zeros are nobody's neighbors and have none. Its last bit may be another one in SQL.
SELECT count(*) AS rows, count(DISTINCT query_id) AS queries, count(DISTINCT item_id) AS items,
       count(*) FILTER (WHERE abs(distance - plain_distance(q.vector, i.vector, 'cosine')) > 1e-15) AS wrong,
       bool_and(distance >= 0 AND distance <= 2) AS in_range
FROM gpu_knn('SELECT id, vector FROM numbers', 'SELECT id, vector FROM numbers', 120) n
JOIN numbers q ON q.id = n.query_id JOIN numbers i ON i.id = n.item_id;
SELECT count(*) AS zero_rows, 120 - count(*) AS others FROM numbers WHERE vector = '{0,0,0,0}';
-- A row's distance to itself is 0, whatever its length.
SELECT count(*) AS rows, bool_and(distance = 0) AS all_zero
FROM gpu_knn_within('SELECT id, vector::real[] FROM numbers', 'SELECT id, vector::real[] FROM numbers', 10) n
WHERE query_id = item_id;
-- gpu_knn_within gives those of gpu_knn that are near enough.
SELECT metric, radius,
       (SELECT count(*) FROM gpu_knn('TABLE numbers', 'TABLE numbers', 1000, metric) WHERE distance <= radius) AS expected,
       (SELECT count(*) FROM gpu_knn('TABLE numbers', 'TABLE numbers', 1000, metric) k
        JOIN gpu_knn_within('TABLE numbers', 'TABLE numbers', radius, metric) w USING (query_id, item_id, rank, distance)) AS common,
       (SELECT count(*) FROM gpu_knn_within('TABLE numbers', 'TABLE numbers', radius, metric)) AS found
FROM (VALUES ('euclidean', 0), ('euclidean', 3.5), ('manhattan', 4), ('inner_product', -60.5), ('cosine', 0), ('cosine', 0.04),
             ('euclidean', -1), ('manhattan', 'Infinity'::double precision)) AS v(metric, radius);

-- No rows, one row, one dimension, fewer items than k
SELECT * FROM gpu_knn('SELECT id, place FROM points WHERE false', 'SELECT id, place FROM points', 3);
SELECT * FROM gpu_knn('SELECT id, place FROM points', 'SELECT id, place FROM points WHERE false', 3);
SELECT * FROM gpu_knn_within('SELECT id, place FROM points WHERE false', 'SELECT id, place FROM points', 3);
SELECT * FROM gpu_knn('SELECT id, place FROM points WHERE id = 0', 'SELECT id, place FROM points WHERE id = 0', 3, 'euclidean');
SELECT * FROM gpu_knn('SELECT id, place FROM points WHERE id = 0', 'SELECT id, place FROM points WHERE id = 0', 3, 'euclidean', true);
SELECT * FROM gpu_knn('SELECT 1::bigint, ''{4}''::real[]', 'SELECT i::bigint, ARRAY[i]::real[] FROM generate_series(1, 9) AS i', 4, 'euclidean');

-- Vectors that are null are left out, on either side.
SELECT * FROM gpu_knn('SELECT 1::bigint, NULL::real[]', 'SELECT id, nullif(place, ''{0,0}'') FROM points', 1);
SELECT item_id FROM gpu_knn('SELECT 1::bigint, ''{0,0}''::real[]',
                            'SELECT id, CASE WHEN id > 2 THEN place END FROM points ORDER BY id', 2, 'euclidean');

-- A row is not its own neighbor when ids are equal, whatever the distance; an equal row is.
INSERT INTO points VALUES (100, 'west', '{0,0}');
SELECT query_id, item_id, distance
FROM gpu_knn('SELECT id, place FROM points WHERE place = ''{0,0}'' ORDER BY id', 'SELECT id, place FROM points ORDER BY id', 1, 'euclidean', true);
-- An id that occurs twice keeps all its rows from each other.
SELECT * FROM gpu_knn('SELECT 1::bigint, ''{1}''::real[]',
                      $$VALUES (1::bigint, '{1}'::real[]), (1, '{2}'), (2, '{3}'), (2, '{4}')$$, 3, 'euclidean', true);

-- Ids of other types: id_type behind the inner queries

CREATE TYPE pair AS (number bigint, text text);
CREATE TABLE typed AS
SELECT 'p' || id AS text, id::integer AS integer, md5(id::text)::uuid AS uuid, (id / 10.0)::numeric AS numeric,
       ARRAY[id, 1] AS list, ROW(id, 'x')::pair AS pair, date '2026-01-01' + id::integer AS date, place FROM points WHERE id < 12;
SELECT * FROM gpu_knn('SELECT text, place FROM typed', 'SELECT text, place FROM typed', NULL::text, 2, 'euclidean', true) WHERE query_id = 'p1';
SELECT * FROM gpu_knn('SELECT "integer", place FROM typed', 'SELECT "integer", place FROM typed', id_type => NULL::integer, k => 1) WHERE query_id < 3;
SELECT query_id FROM gpu_knn('SELECT uuid, place FROM typed', 'SELECT uuid, place FROM typed', NULL::uuid, 1, 'euclidean', true) LIMIT 1;
SELECT * FROM gpu_knn_within('SELECT date, place FROM typed', 'SELECT date, place FROM typed', NULL::date, 1, 'euclidean', true) LIMIT 3;
SELECT count(*) FROM gpu_knn('SELECT list, place FROM typed', 'SELECT list, place FROM typed', NULL::bigint[], 99, 'euclidean', true);
SELECT count(*) FROM gpu_knn('SELECT pair, place FROM typed', 'SELECT pair, place FROM typed', NULL::pair, 99, 'euclidean', true);
SELECT count(*) FROM gpu_knn('SELECT ROW(integer, text), place FROM typed', 'SELECT ROW(integer, text), place FROM typed', NULL::record, 99, 'euclidean', true);
SELECT count(*) FROM typed;
-- Equal is what = says: 1.0 and 1.00.
SELECT * FROM gpu_knn('SELECT 1.0, ''{1}''::real[]', 'SELECT 1.00, ''{1}''::real[] UNION ALL SELECT 1.5, ''{2}''', NULL::numeric, 2, 'euclidean', true);
CREATE COLLATION regress_any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN any_case AS text COLLATE regress_any_case;
SELECT count(*) FROM gpu_knn($$SELECT 'A'::any_case, '{1}'::real[]$$, $$SELECT 'a'::any_case, '{1}'::real[]$$, NULL::any_case, 2, 'euclidean', true);
-- A type without equality will do for all but exclude_self.
SELECT * FROM gpu_knn('SELECT ''[1]''::json, ''{1}''::real[]', 'SELECT ''[2]''::json, ''{1}''::real[]', NULL::json, 2);

-- Conditions in either inner query, joins of the answer, views, functions

SELECT q.kind, i.kind AS of_item, min(n.distance), count(*)
FROM gpu_knn('SELECT id, place FROM points WHERE kind = ''west''',
             'SELECT id, place FROM points WHERE kind = ''east'' AND id % 2 = 0', 3, 'manhattan') n
JOIN points q ON q.id = n.query_id JOIN points i ON i.id = n.item_id
GROUP BY q.kind, i.kind;
CREATE VIEW nearest_in_the_east AS
SELECT p.id, n.item_id FROM points p JOIN gpu_knn('SELECT id, place FROM points WHERE kind = ''west'' ORDER BY id',
    'SELECT id, place FROM points WHERE kind = ''east'' ORDER BY id', 1, 'euclidean') n ON n.query_id = p.id;
SELECT * FROM nearest_in_the_east WHERE id < 3 ORDER BY id;
-- A call a row
SELECT kind, n.item_id, n.distance
FROM (SELECT DISTINCT kind FROM points) kinds,
     LATERAL gpu_knn('SELECT 1::bigint, ''{2,2}''::real[]',
                     format('SELECT id, place FROM points WHERE kind = %L ORDER BY id', kind), 2, 'euclidean') n
ORDER BY kind, rank;
-- An answer as queries
SELECT * FROM gpu_knn($$SELECT item_id, place FROM points p JOIN gpu_knn('SELECT 1::bigint, ''{5,5}''::real[]',
                                    'SELECT id, place FROM points ORDER BY id', 1, 'euclidean') n ON p.id = n.item_id$$,
                      'SELECT id, place FROM points ORDER BY id', 2, 'euclidean', true);
SELECT attname, format_type(atttypid, atttypmod) AS type
FROM pg_attribute WHERE attrelid = 'nearest_in_the_east'::regclass AND attnum > 0 ORDER BY attnum;
PREPARE nearest(integer, text) AS
SELECT item_id FROM gpu_knn('SELECT 1::bigint, ''{2,2}''::real[]', 'SELECT id, place FROM points ORDER BY id', $1, $2);
EXECUTE nearest(2, 'manhattan');
EXECUTE nearest(1, 'euclidean');

-- Domains over arrays, bounds other than 1, vectors stored elsewhere
CREATE DOMAIN embedding AS real[] CHECK (cardinality(value) = 2);
SELECT item_id FROM gpu_knn('SELECT 1::bigint, ''[5:6]={2,2}''::real[]', 'SELECT id, place::embedding FROM points ORDER BY id', 1, 'euclidean');
CREATE TABLE long_vectors AS
SELECT i::bigint AS id, array_agg((i * j * 2654435761 % 1000)::real ORDER BY j) AS vector
FROM generate_series(1, 20) AS i, generate_series(1, 3000) AS j GROUP BY i;
SELECT count(*) AS queries, bool_and(n.item_id = n.query_id AND distance = 0) AS found_themselves
FROM gpu_knn('TABLE long_vectors', 'TABLE long_vectors', 1, 'euclidean') n;

-- Whatever the number of threads and the memory, the answer is the same.
SET gputext.device = cpu;
SET gputext.cpu_threads = 1;
CREATE TABLE one_thread AS
SELECT * FROM gpu_knn('TABLE numbers', 'TABLE numbers', 40) WITH ORDINALITY;
SET gputext.cpu_threads = 5;
SET gputext.host_memory_limit = '1MB';
CREATE TABLE five_threads AS
SELECT * FROM gpu_knn('TABLE numbers', 'TABLE numbers', 40) WITH ORDINALITY;
SELECT count(*) AS rows, bool_and(a = b) AS equal FROM one_thread a FULL JOIN five_threads b USING (ordinality);
-- 4 MB of vectors, in a temporary file
SELECT count(*) AS queries, bool_and(item_id = query_id AND distance = 0) AS found_themselves
FROM gpu_knn('SELECT id, vector FROM long_vectors',
             'SELECT n * 100 + id, vector FROM long_vectors, generate_series(0, 16) AS n', 1, 'manhattan');
RESET gputext.host_memory_limit;
RESET gputext.cpu_threads;
RESET gputext.device;

-- Both inner queries are one text: it runs once, unless it may give other rows the second time.
CREATE TABLE ids_of_points AS SELECT id FROM points;
CREATE FUNCTION points_of(said text) RETURNS TABLE (id bigint, place integer[]) STABLE LANGUAGE plpgsql AS
$$ BEGIN RAISE NOTICE '%', said; RETURN QUERY SELECT points.id, points.place FROM points WHERE points.id % 17 = 0; END $$;
CREATE FUNCTION volatile_points_of(said text) RETURNS TABLE (id bigint, place integer[]) VOLATILE LANGUAGE sql AS
$$ SELECT * FROM points_of(said) $$;
SELECT count(*) FROM gpu_knn('SELECT * FROM points_of(''runs once'')', 'SELECT * FROM points_of(''runs once'')', 2);
SELECT count(*) FROM gpu_knn('SELECT * FROM points_of(''runs twice'') ', 'SELECT * FROM points_of(''runs twice'')', 2);
SELECT count(*) FROM gpu_knn('SELECT * FROM volatile_points_of(''runs twice'')', 'SELECT * FROM volatile_points_of(''runs twice'')', 2);
SELECT count(*) FROM gpu_knn('SELECT p.* FROM points_of(''runs twice'') AS p, ids_of_points AS t TABLESAMPLE BERNOULLI (100) WHERE t.id = p.id',
                             'SELECT p.* FROM points_of(''runs twice'') AS p, ids_of_points AS t TABLESAMPLE BERNOULLI (100) WHERE t.id = p.id', 2);
CREATE AGGREGATE last_place(integer[]) (SFUNC = array_larger, STYPE = integer[]);
SELECT count(*) FROM gpu_knn('SELECT id, last_place(place) FROM points_of(''runs twice'') GROUP BY id', 'SELECT id, last_place(place) FROM points_of(''runs twice'') GROUP BY id', 2);
SELECT count(*) FROM gpu_knn('SELECT id, max(place) FROM points_of(''runs once'') GROUP BY id', 'SELECT id, max(place) FROM points_of(''runs once'') GROUP BY id', 2);
DROP AGGREGATE last_place(integer[]);
SELECT count(*) FROM gpu_knn('SELECT id, place, 1 FROM points_of(''runs twice, with keys'')', 'SELECT id, place, 1 FROM points_of(''runs twice, with keys'')', 2);
SELECT * FROM gpu_knn('SELECT 1, NULL::real[]', 'SELECT 1, NULL::real[]', 1);
-- The answer is that of two runs: of vectors, bit strings, texts, weights, names, ids of other types and equal ids.
CREATE TABLE one_text (kind text, call text);
INSERT INTO one_text VALUES
    ('vectors', $$gpu_knn('SELECT id, place FROM points', 'SELECT id, place FROM points%s', 4, 'euclidean')$$),
    ('vectors, exclude_self', $$gpu_knn('SELECT id, place FROM points', 'SELECT id, place FROM points%s', 4, 'cosine', exclude_self => true)$$),
    ('within', $$gpu_knn_within('SELECT id, place FROM points', 'SELECT id, place FROM points%s', 1, 'euclidean', exclude_self => true)$$),
    ('equal ids', $$gpu_knn('SELECT id / 7, place FROM points ORDER BY id', 'SELECT id / 7, place FROM points ORDER BY id%s', 4, 'euclidean', exclude_self => true)$$),
    ('ids of texts', $$gpu_knn('SELECT kind, place FROM points', 'SELECT kind, place FROM points%s', NULL::text, k => 4, metric => 'euclidean', exclude_self => true)$$),
    ('bit strings', $$gpu_knn('SELECT id, id::bit(12) FROM points', 'SELECT id, id::bit(12) FROM points%s', 4, 'hamming', exclude_self => true)$$),
    ('names', $$gpu_knn('SELECT id, kind || id FROM points', 'SELECT id, kind || id FROM points%s', 4, 'levenshtein', exclude_self => true)$$),
    ('texts', $$gpu_knn('SELECT id, kind || '' '' || id / 7 || '' '' || id %% 7 FROM points', 'SELECT id, kind || '' '' || id / 7 || '' '' || id %% 7 FROM points%s', 4, config => 'simple')$$),
    ('bm25', $$gpu_knn('SELECT id, kind || '' '' || id / 7 || '' '' || id %% 7 FROM points', 'SELECT id, kind || '' '' || id / 7 || '' '' || id %% 7 FROM points%s', 4, 'bm25', config => 'simple', exclude_self => true)$$),
    ('weights', $$gpu_knn('SELECT id, ARRAY[id %% 7, 7 + id %% 4]::integer[], ARRAY[1.5, 2]::real[] FROM points', 'SELECT id, ARRAY[id %% 7, 7 + id %% 4]::integer[], ARRAY[1.5, 2]::real[] FROM points%s', 4)$$);
CREATE FUNCTION rows_of(call text, addition text) RETURNS SETOF text LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY EXECUTE format('SELECT r::text FROM ' || call || ' AS r', addition); END $$;
CREATE FUNCTION differences(call text) RETURNS bigint LANGUAGE sql AS
$$ SELECT count(*) FROM (SELECT row_number() OVER (), * FROM rows_of(call, '')) AS once (number, r)
       FULL JOIN (SELECT row_number() OVER (), * FROM rows_of(call, ' ')) AS twice (number, r) USING (number) WHERE once.r IS DISTINCT FROM twice.r $$;
SELECT kind, (SELECT count(*) FROM rows_of(call, '')) AS rows, differences(call) FROM one_text;

-- The planner has some idea of the number of rows.
SELECT proname, prorows FROM pg_proc WHERE proname LIKE 'gpu_knn%' ORDER BY oid;

DROP VIEW nearest_in_the_east;
DROP TABLE points, ids_of_points, one_text, numbers, typed, long_vectors, one_thread, five_threads;
DROP FUNCTION plain_distance, differing_rows, points_of, volatile_points_of, rows_of, differences;
DROP TYPE pair;
DROP DOMAIN embedding, any_case;
DROP COLLATION regress_any_case;
