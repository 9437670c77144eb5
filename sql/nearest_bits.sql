-- gpu_knn and gpu_knn_within on bit strings: hamming and jaccard

CREATE TABLE photos (id integer PRIMARY KEY, hash bit(16), album text);
INSERT INTO photos VALUES
    (1, B'1111000011110000', 'sea'), (2, B'1111000011110001', 'sea'), (3, B'0000111100001111', 'sea'), (4, B'1111000011110000', 'hills'),
    (5, B'0000000000000000', 'hills'), (6, NULL, 'sea'), (7, B'1111111111111111', NULL), (8, B'0000000000000000', 'sea');

-- Ties in the order of the items; rows without ones, which jaccard has nothing in common with, not even with each other
SELECT query_id, item_id, rank, distance
FROM gpu_knn('SELECT id, hash FROM photos', 'SELECT id, hash FROM photos', k => 3, metric => 'hamming') ORDER BY query_id, rank;
SELECT query_id, item_id, rank, distance
FROM gpu_knn('SELECT id, hash FROM photos', 'SELECT id, hash FROM photos', k => 3, metric => 'jaccard') ORDER BY query_id, rank;

-- All within a distance; keys; not itself
SELECT * FROM gpu_knn_within('SELECT id, hash FROM photos', 'SELECT id, hash FROM photos', radius => 1, metric => 'hamming', exclude_self => true)
ORDER BY query_id, rank;
SELECT * FROM gpu_knn_within('SELECT id, hash FROM photos WHERE id < 3', 'SELECT id, hash FROM photos', radius => 0.5, metric => 'jaccard') ORDER BY query_id, rank;
SELECT * FROM gpu_knn('SELECT id, hash, album FROM photos', 'SELECT id, hash, album FROM photos', k => 2, metric => 'hamming') ORDER BY query_id, rank;
SELECT * FROM gpu_knn('SELECT id, hash, album FROM photos', 'SELECT id, hash, album FROM photos', k => 1, exclude_key => true, metric => 'jaccard')
ORDER BY query_id, rank;
SELECT * FROM gpu_knn('SELECT id, hash, album, id FROM photos', 'SELECT id, hash, album, id FROM photos', k => 1, exclude_key => true, metric => 'hamming',
                      exclude_self => true) ORDER BY query_id, rank;

-- Ids of other types, bit varying, hashes in a bigint
SELECT * FROM gpu_knn('SELECT ''x'', B''101''', 'SELECT ''i'' || id, substring(hash FOR 3)::bit varying FROM photos', id_type => NULL::text, k => 2, metric => 'hamming');
SELECT * FROM gpu_knn('SELECT 1, 255::bigint::bit(64)', 'SELECT i, (-i)::bigint::bit(64) FROM generate_series(1, 3) AS i', k => 3, metric => 'hamming') ORDER BY rank;

-- What plain SQL gives, to the bit: of many lengths, some of them equal
CREATE FUNCTION random_bits(seed integer, bits integer) RETURNS bit varying LANGUAGE sql IMMUTABLE AS $$
SELECT substring(string_agg(('x' || md5(seed || ' ' || i))::bit varying(128)::text, '')::bit varying FOR bits) FROM generate_series(0, bits / 128) AS i
$$;
CREATE FUNCTION plain_distance(metric text, a bit varying, b bit varying) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
SELECT CASE WHEN metric = 'hamming' THEN bit_count(a # b)
            WHEN bit_count(a & b) = 0 THEN 1
            ELSE 1 - bit_count(a & b)::double precision / bit_count(a | b) END
$$;
CREATE FUNCTION differing(metric text, bits integer, k integer, OUT rows bigint, OUT differing bigint) LANGUAGE plpgsql AS $$
BEGIN
    CREATE TEMPORARY TABLE rows_of_bits AS
    SELECT i AS id, CASE i % 3 WHEN 0 THEN random_bits(i / 7, bits) WHEN 1 THEN random_bits(i, bits) & random_bits(-i, bits) ELSE random_bits(i, bits) END AS b
    FROM generate_series(1, 300) AS i;
    WITH found AS (SELECT * FROM gpu_knn('SELECT id, b FROM rows_of_bits WHERE id % 9 = 1', 'SELECT id, b FROM rows_of_bits', k => k, metric => metric)),
         wanted AS (SELECT q.id AS query_id, i.id AS item_id, row_number() OVER (PARTITION BY q.id ORDER BY d, i.id) AS rank, d AS distance
                    FROM rows_of_bits AS q, rows_of_bits AS i, LATERAL (SELECT plain_distance(differing.metric, q.b, i.b) AS d) AS plain WHERE q.id % 9 = 1)
    SELECT count(*), count(*) FILTER (WHERE (found.item_id, found.distance) IS DISTINCT FROM (wanted.item_id, wanted.distance))
    FROM found FULL JOIN (SELECT * FROM wanted WHERE rank <= differing.k) AS wanted USING (query_id, rank) INTO rows, differing;
    DROP TABLE rows_of_bits;
END$$;
SELECT metric, bits, d.* FROM unnest('{hamming,jaccard}'::text[]) AS metric, unnest('{1,7,64,65,256,300,1000,4096}'::integer[]) AS bits,
                              LATERAL differing(metric, bits, 5) AS d ORDER BY metric, bits;

-- No rows
SELECT * FROM gpu_knn('SELECT 1, B''1'' WHERE false', 'SELECT id, hash FROM photos', k => 1, metric => 'hamming');
SELECT * FROM gpu_knn('SELECT 1, B''1''', 'SELECT 1, B''1'' WHERE false', k => 1, metric => 'hamming');
SELECT * FROM gpu_knn_within('SELECT 1, B''1''', 'SELECT 1, B''1''', radius => -1, metric => 'hamming');

-- Errors
SELECT * FROM gpu_knn('SELECT 1, B''1''', 'SELECT 1, B''1''', k => 1);
SELECT * FROM gpu_knn('SELECT 1, B''1''', 'SELECT 1, B''1''', k => 1, metric => 'hemming');
SELECT * FROM gpu_knn('SELECT 1, B''1''', 'SELECT 1, B''1''', k => 1, metric => 'levenshtein');
SELECT * FROM gpu_knn('SELECT 1, B''1''', 'SELECT 1, ''1''', k => 1, metric => 'hamming');
SELECT * FROM gpu_knn('SELECT 1, ARRAY[1, 2]', 'SELECT 1, B''1''', k => 1, metric => 'jaccard');
SELECT * FROM gpu_knn('SELECT 1, B''1''', 'SELECT i, CASE i WHEN 3 THEN B''10'' ELSE B''1'' END FROM generate_series(1, 4) AS i', k => 1, metric => 'hamming');
SELECT * FROM gpu_knn('SELECT 1, B''101''', 'SELECT id, hash FROM photos WHERE id > 2', k => 1, metric => 'jaccard');
SELECT * FROM gpu_knn('SELECT 1, ''''::bit varying', 'SELECT 2, B''1''', k => 1, metric => 'hamming');
SELECT * FROM gpu_knn('SELECT 1, B''1''', 'SELECT 1, B''1''', k => 1, metric => 'hamming', min_document_frequency => 2);
SELECT * FROM gpu_knn('SELECT 1, B''1'', 1', 'SELECT 1, B''1''', k => 1, metric => 'hamming');
SELECT * FROM gpu_knn('SELECT 1, B''1'', 1, 2', 'SELECT 1, B''1'', 1, 2', k => 1, metric => 'hamming');

-- Many rows are read by parallel workers.
CREATE TABLE many AS SELECT i AS id, (i::bigint * 2654435761)::bit(40) AS b FROM generate_series(1, 50000) AS i;
SELECT count(*), count(*) FILTER (WHERE found.distance <> bit_count(q.b # i.b)), sum(found.distance)
FROM gpu_knn('SELECT id, b FROM many WHERE id % 10 = 0', 'SELECT id, b FROM many', k => 3, metric => 'hamming') AS found
     JOIN many AS q ON q.id = found.query_id JOIN many AS i ON i.id = found.item_id;

-- A cancel, wherever it finds the statement
\set SHOW_CONTEXT never
SET statement_timeout = 300;
SELECT count(*) FROM gpu_knn('SELECT i, (i::bit(32) || (-i)::bit(32))::bit(4096) FROM generate_series(1, 200000) AS i',
                             'SELECT i, (i::bit(32) || (-i)::bit(32))::bit(4096) FROM generate_series(1, 200000) AS i', k => 1, metric => 'hamming');
RESET statement_timeout;
\set SHOW_CONTEXT errors

DROP TABLE photos, many;
DROP FUNCTION differing, plain_distance, random_bits;
