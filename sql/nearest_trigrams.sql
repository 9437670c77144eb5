-- gpu_knn on texts by metric trigram: the distances of pg_trgm's operator <->

-- Without pg_trgm
SELECT * FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, ''b''', k => 1, metric => 'trigram');
-- Somebody else's function of that name, in C, is none of pg_trgm.
CREATE FUNCTION show_trgm(text) RETURNS text[] LANGUAGE c STRICT AS '$libdir/pg_trgm';
SELECT * FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, ''b''', k => 1, metric => 'trigram');
DROP FUNCTION show_trgm(text);

SET client_min_messages = warning;
CREATE EXTENSION pg_trgm;
RESET client_min_messages;

CREATE TABLE names AS
SELECT i AS id, CASE WHEN i % 40 = 0 THEN '' WHEN i % 41 = 0 THEN repeat(md5(i::text) || ' ', 20)
                     ELSE (ARRAY['Anna', 'Maria', 'Peter', 'José', 'Иван', 'Zoë', '山田', 'O''Neil', 'ANNA'])[1 + i % 9] || (ARRAY[' ', '-', '  ', ', '])[1 + i % 4]
                          || (ARRAY['Smith', 'Müller', 'García', 'Иванов', '太郎'])[1 + i % 5] || substr(md5((i / 3)::text), 1, i % 5) END AS name
FROM generate_series(1, 300) AS i;

SELECT count(*) AS rows, count(*) FILTER (WHERE found.distance <> (q.name <-> i.name)) AS other_distances,
       count(*) FILTER (WHERE found.distance::real <> (q.name <-> i.name)) AS other_reals
FROM gpu_knn('SELECT id, name FROM names WHERE id % 7 = 1', 'SELECT id, name FROM names', k => 300, metric => 'trigram') AS found
     JOIN names AS q ON q.id = found.query_id JOIN names AS i ON i.id = found.item_id;

-- The same order, with ties by the items' order
WITH wanted AS (SELECT q.id AS query_id, i.id AS item_id, row_number() OVER (PARTITION BY q.id ORDER BY q.name <-> i.name, i.id) AS rank
                FROM names AS q, names AS i WHERE q.id % 7 = 1)
SELECT count(*) AS differing
FROM gpu_knn('SELECT id, name FROM names WHERE id % 7 = 1', 'SELECT id, name FROM names', k => 5, metric => 'trigram') AS found
     FULL JOIN (SELECT * FROM wanted WHERE rank <= 5) AS wanted USING (query_id, rank) WHERE found.item_id IS DISTINCT FROM wanted.item_id;

-- As a % b, whose threshold is 0.3
WITH found AS (SELECT query_id, item_id
               FROM gpu_knn_within('SELECT id, name FROM names', 'SELECT id, name FROM names', radius => 1 - 0.3::real, metric => 'trigram')),
     wanted AS (SELECT q.id AS query_id, i.id AS item_id FROM names AS q, names AS i WHERE q.name % i.name)
SELECT (SELECT count(*) FROM wanted) AS pairs, count(*) AS differing
FROM found FULL JOIN wanted USING (query_id, item_id) WHERE found.query_id IS NULL OR wanted.query_id IS NULL;

-- Trigrams take memory of the limit: four bytes each.
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM gpu_knn('SELECT 1, ''a''', 'SELECT i, md5(i::text) FROM generate_series(1, 9000) AS i', k => 1, metric => 'trigram');
RESET gputext.host_memory_limit;

-- Who may not call show_trgm
CREATE ROLE gputext_trigrams_user;
REVOKE EXECUTE ON FUNCTION show_trgm(text) FROM public;
SET ROLE gputext_trigrams_user;
SELECT * FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, ''b''', k => 1, metric => 'trigram');
RESET ROLE;
DROP ROLE gputext_trigrams_user;

-- Many rows are read by threads, but for those that pg_trgm is asked for.
CREATE TABLE many AS
SELECT i AS id, CASE WHEN i % 7 = 0 THEN 'Zoë ' || md5(i::text) WHEN i % 11 = 0 THEN '' ELSE md5(i::text) || ' ' || left(md5((3 * i)::text), i % 9) || '-X' END AS name
FROM generate_series(1, 66000) AS i;
WITH wanted AS (SELECT q.id AS query_id, nearest.id AS item_id, nearest.rank
                FROM (SELECT * FROM many WHERE id IN (7, 11, 12, 13)) AS q,
                     LATERAL (SELECT i.id, row_number() OVER (ORDER BY q.name <-> i.name, i.id) AS rank FROM many AS i ORDER BY rank LIMIT 5) AS nearest)
SELECT count(*) AS rows, count(*) FILTER (WHERE found.item_id IS DISTINCT FROM wanted.item_id) AS differing
FROM gpu_knn('SELECT id, name FROM many WHERE id IN (7, 11, 12, 13)', 'SELECT id, name FROM many', k => 5, metric => 'trigram') AS found
     FULL JOIN wanted USING (query_id, rank);
DROP TABLE many;
DROP TABLE names;
DROP EXTENSION pg_trgm;
