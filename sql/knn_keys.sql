-- Neighbors within equal keys, and never of an equal key
SET gputext.device = cpu;
CREATE TABLE places (id bigint, embedding real[], zip integer, author text);
INSERT INTO places SELECT i, ARRAY[(i * 37 % 101)::real, (i * 53 % 97)::real, (i * 11 % 89)::real], i % 7, 'author ' || i % 5
FROM generate_series(1, 200) AS i;

SELECT query_id, item_id, rank, round(distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, embedding, zip FROM places WHERE id <= 4', 'SELECT id, embedding, zip FROM places', 3, 'euclidean', true)
ORDER BY 1, 3;

-- The oracle: cosine distances of all pairs are those of a search without keys, from which pairs are left out.
CREATE FUNCTION wanted(condition text, wanted_k integer, metric text DEFAULT 'euclidean')
RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT * FROM (SELECT n.query_id, n.item_id, (row_number() OVER (PARTITION BY n.query_id ORDER BY n.rank))::integer AS rank, n.distance
         FROM gpu_knn(''SELECT id, embedding FROM places'', ''SELECT id, embedding FROM places'', 1000, %L) n
         JOIN places q ON q.id = n.query_id JOIN places i ON i.id = n.item_id WHERE %s) AS r WHERE r.rank <= %s', metric, condition, wanted_k);
END $$;
CREATE FUNCTION differing(columns text, condition text, metric text, exclude_key boolean, exclude_self boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE result bigint; rows text := 'SELECT ' || columns || ' FROM places';
BEGIN
    CREATE TEMPORARY TABLE found AS SELECT * FROM gpu_knn(rows, rows, k => 4, metric => metric, exclude_self => exclude_self, exclude_key => exclude_key);
    SELECT count(*) INTO result FROM (TABLE found EXCEPT SELECT * FROM wanted(condition, 4, metric)) AS d;
    SELECT result + count(*) INTO result FROM (SELECT * FROM wanted(condition, 4, metric) EXCEPT TABLE found) AS d;
    SELECT result + CASE WHEN count(*) = 0 THEN 1000000 ELSE 0 END INTO result FROM found;
    DROP TABLE found;
    RETURN result;
END $$;
SELECT metric,
    differing('id, embedding, zip', 'q.zip = i.zip', metric, false, false) AS within,
    differing('id, embedding, zip', 'q.zip = i.zip AND q.id <> i.id', metric, false, true) AS within_not_self,
    differing('id, embedding, author', 'q.author <> i.author', metric, true, false) AS others,
    differing('id, embedding, zip, author', 'q.zip = i.zip AND q.author <> i.author', metric, true, false) AS within_others,
    differing('id, embedding, zip, author', 'q.zip = i.zip AND q.author <> i.author AND q.id <> i.id', metric, true, true) AS all_three
FROM unnest(ARRAY['euclidean', 'cosine', 'inner_product', 'manhattan']) AS metric ORDER BY 1;

-- Keys of any type that can be hashed, several columns as a row, domains
CREATE DOMAIN zip_code AS integer;
SELECT key, differing('id, embedding, ' || key, 'q.zip = i.zip', 'euclidean', false, false) AS differing
FROM unnest(ARRAY['zip::bigint', 'zip::smallint', 'zip::text', 'zip::numeric', 'zip::double precision', 'zip::zip_code', '''x'' || zip', 'ROW(zip, zip::text)', 'ARRAY[zip]', 'int4range(zip, 9)', 'zip::text::name', 'date ''2026-01-01'' + zip']) AS key;
SELECT key, differing('id, embedding, ' || key, 'true', 'euclidean', false, false) AS differing
FROM unnest(ARRAY['CASE WHEN id % 2 = 0 THEN 1.0 ELSE 1.00 END', 'CASE WHEN id % 2 = 0 THEN 0 ELSE -0.0::float8 END', 'repeat(''long'', 1000)', 'true']) AS key;

-- A null equals none; as a key that excludes it excludes nothing.
SELECT differing('id, embedding, nullif(zip, 3)', 'q.zip = i.zip AND q.zip <> 3', 'euclidean', false, false) AS match,
    differing('id, embedding, nullif(author, ''author 2'')', '(q.author <> i.author OR q.author = ''author 2'')', 'euclidean', true, false) AS exclude,
    differing('id, embedding, nullif(author, ''author 2'')', '(q.author <> i.author OR q.author = ''author 2'') AND q.id <> i.id', 'euclidean', true, true) AS exclude_both;

-- Several items of one id, of other authors than the query
CREATE TABLE twins AS SELECT id, embedding, zip, author FROM places UNION ALL SELECT id, embedding, zip, 'another' FROM places;
SELECT count(*) AS rows, count(*) FILTER (WHERE query_id = item_id) AS of_one_id, max(rank) AS rank
FROM gpu_knn('SELECT id, embedding, zip, author FROM places', 'SELECT id, embedding, zip, author FROM twins', 3, metric => 'euclidean', exclude_self => true, exclude_key => true);

-- Within a distance, and ids of other types
SELECT count(*), count(DISTINCT query_id) FROM gpu_knn_within('SELECT id, embedding, zip FROM places', 'SELECT id, embedding, zip FROM places', 20, 'euclidean');
SELECT count(*) FROM gpu_knn('SELECT id, embedding FROM places', 'SELECT id, embedding FROM places', 1000, 'euclidean') n
JOIN places q ON q.id = n.query_id JOIN places i ON i.id = n.item_id WHERE q.zip = i.zip AND distance <= 20;
SELECT count(*) FROM gpu_knn_within('SELECT id, embedding, author FROM places', 'SELECT id, embedding, author FROM places', 20, metric => 'euclidean', exclude_key => true);
SELECT count(*) FROM gpu_knn('SELECT id, embedding FROM places', 'SELECT id, embedding FROM places', 1000, 'euclidean') n
JOIN places q ON q.id = n.query_id JOIN places i ON i.id = n.item_id WHERE q.author <> i.author AND distance <= 20;
SELECT * FROM gpu_knn('SELECT id::text, embedding, zip, author FROM places WHERE id <= 2', 'SELECT id::text, embedding, zip, author FROM places', NULL::text, k => 1, metric => 'euclidean', exclude_key => true) ORDER BY 1;
SELECT count(*) FROM gpu_knn_within('SELECT id::text, embedding, author FROM places', 'SELECT id::text, embedding, author FROM places', NULL::text, 20, metric => 'euclidean', exclude_key => true);

-- Neighbors beyond the limit of memory: in blocks of queries
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM gpu_knn('SELECT i, ARRAY[i % 100, i % 7]::real[], i % 3, i % 5 FROM generate_series(1, 2000) i', 'SELECT i, ARRAY[i % 100, i % 7]::real[], i % 3, i % 5 FROM generate_series(1, 2000) i', 100, metric => 'euclidean', exclude_key => true);
SELECT count(*) FROM gpu_knn('SELECT i, ARRAY[1]::real[], i::text FROM generate_series(1, 20000) i', 'SELECT i, ARRAY[1]::real[], i::text FROM generate_series(1, 20000) i', 1);
RESET gputext.host_memory_limit;

-- Texts and weights: a term weighs by how many items have it, whatever their keys.
CREATE TABLE notes (id bigint, body text, language text);
INSERT INTO notes VALUES (1, 'red apple tree', 'en'), (2, 'red apple pie', 'en'), (3, 'red apple tree', 'de'), (4, 'green tree', 'en'), (5, 'apple tree house', NULL);
SELECT query_id, item_id, rank, round(distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, body, language FROM notes', 'SELECT id, body, language FROM notes', 3, config => 'simple') ORDER BY 1, 3;
SELECT query_id, item_id, rank, round(distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, to_tsvector(''simple'', body), language FROM notes', 'SELECT id, to_tsvector(''simple'', body), language FROM notes', 3, exclude_key => true) ORDER BY 1, 3;
SELECT query_id, item_id, rank, round(distance::numeric, 4) AS distance
FROM gpu_knn($$VALUES (1, ARRAY[1, 2], ARRAY[1, 1]::real[], 'a')$$, $$VALUES (10, ARRAY[1, 2], ARRAY[1, 2]::real[], 'a'), (11, ARRAY[1, 2], ARRAY[1, 1]::real[], 'b'), (12, ARRAY[2], ARRAY[1]::real[], 'a')$$, 5) ORDER BY 3;

-- No rows
SELECT count(*) FROM gpu_knn('SELECT id, embedding, zip FROM places WHERE false', 'SELECT id, embedding, zip FROM places', 3);
SELECT count(*) FROM gpu_knn('SELECT id, embedding, zip FROM places', 'SELECT id, embedding, zip FROM places WHERE false', 3);

-- Errors
SELECT gpu_knn('SELECT id, embedding, zip FROM places', 'SELECT id, embedding FROM places', 1);
SELECT gpu_knn('SELECT id, embedding FROM places', 'SELECT id, embedding, zip FROM places', 1);
SELECT gpu_knn('SELECT id, embedding, zip FROM places', 'SELECT id, embedding, zip::bigint FROM places', 1);
SELECT gpu_knn('SELECT id, embedding, zip, author FROM places', 'SELECT id, embedding, author, zip FROM places', k => 1, exclude_key => true);
SELECT gpu_knn('SELECT id, embedding, point(1, 2) FROM places', 'SELECT id, embedding, point(1, 2) FROM places', 1);
SELECT gpu_knn('SELECT id, embedding, ROW(point(1, 2)) FROM places', 'SELECT id, embedding, ROW(point(1, 2)) FROM places', 1);
SELECT gpu_knn('SELECT id, embedding FROM places', 'SELECT id, embedding FROM places', k => 1, exclude_key => true);
SELECT gpu_knn('SELECT id, embedding, zip, author FROM places', 'SELECT id, embedding, zip, author FROM places', 1);
SELECT gpu_knn('SELECT id, embedding, zip, author, 1 FROM places', 'SELECT id, embedding, zip, author, 1 FROM places', k => 1, exclude_key => true);
SELECT gpu_knn('SELECT id, embedding, zip, author, 1, 2 FROM places', 'SELECT id, embedding, zip, author, 1, 2 FROM places', k => 1, exclude_key => true);
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM gpu_knn('SELECT 1, ARRAY[1]::real[], ''x''', 'SELECT i, ARRAY[1]::real[], repeat(i::text, 100) FROM generate_series(1, 20000) i', 1);
RESET gputext.host_memory_limit;

DROP FUNCTION differing, wanted;
DROP TABLE places, twins, notes;
DROP DOMAIN zip_code;
RESET gputext.device;
