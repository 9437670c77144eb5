-- local_outlier_factor

-- scikit-learn's own example: its negative_outlier_factor_ is -0.9821, -1.0370, -73.3697, -0.9821.
SELECT id, round(lof::numeric, 8) AS lof
FROM local_outlier_factor('VALUES (1::bigint, ''{-1.1}''::double precision[]), (2, ''{0.2}''), (3, ''{101.1}''), (4, ''{0.3}'')', 2);
-- By hand: on a line at 0, 1, 3, 7 with k = 1, the nearest are 1, 0, 1, 3 at distances 1, 1, 2, 4.
-- Densities are 1, 1, 1/2, 1/4, and so factors 1, 1, 2, 2.
SELECT * FROM local_outlier_factor('VALUES (1::bigint, ''{0}''::integer[]), (2, ''{1}''), (3, ''{3}''), (4, ''{7}'')', 1, ties => 'breunig');
-- Every argument by name, ids of another type
SELECT id, round(lof::numeric, 6) AS lof
FROM local_outlier_factor(items => 'VALUES (''a'', ''{0}''::integer[]), (''b'', ''{1}''), (''c'', ''{3}''), (''d'', ''{7}'')',
                          id_type => NULL::text, k => 1, metric => 'manhattan', ties => 'sklearn');

-- Against its definition in SQL, with ties and copies

CREATE TABLE places AS
SELECT i::bigint AS id, ARRAY[i * i % 7, i * 3 % 11, i % 5]::integer[] AS place FROM generate_series(1, 60) AS i;
INSERT INTO places SELECT 60 + i, ARRAY[2, 3, 1] FROM generate_series(1, 4) AS i;
INSERT INTO places VALUES (65, '{40,50,60}'), (66, '{12,0,0}');
CREATE TABLE distances AS
SELECT a.id, b.id AS other, s.euclidean, s.manhattan,
       row_number() OVER (PARTITION BY a.id ORDER BY s.euclidean, b.id) AS euclidean_rank,
       row_number() OVER (PARTITION BY a.id ORDER BY s.manhattan, b.id) AS manhattan_rank
FROM places a JOIN places b ON a.id <> b.id,
     LATERAL (SELECT sqrt(sum((x - y) * (x - y))::double precision) AS euclidean, sum(abs(x - y))::double precision AS manhattan
              FROM unnest(a.place, b.place) AS pairs(x, y)) AS s;
CREATE FUNCTION plain_factors(k integer, metric text, ties text) RETURNS TABLE (id bigint, lof double precision) LANGUAGE sql STABLE AS $$
    WITH all_distances AS (
        SELECT id, other, CASE metric WHEN 'euclidean' THEN euclidean ELSE manhattan END AS distance,
               CASE metric WHEN 'euclidean' THEN euclidean_rank ELSE manhattan_rank END AS rank FROM distances
    ), k_distances AS (
        SELECT id, max(distance) AS k_distance FROM all_distances WHERE rank <= k GROUP BY id
    ), near AS (
        SELECT a.id, a.other, greatest(a.distance, o.k_distance) AS reach
        FROM all_distances a JOIN k_distances d ON d.id = a.id JOIN k_distances o ON o.id = a.other
        WHERE CASE ties WHEN 'sklearn' THEN a.rank <= k ELSE a.distance <= d.k_distance END
    ), densities AS (
        SELECT id, CASE WHEN ties = 'sklearn' THEN 1 / (avg(reach) + 1e-10)
                        WHEN avg(reach) = 0 THEN 'Infinity' ELSE 1 / avg(reach) END AS density
        FROM near GROUP BY id
    )
    SELECT n.id, CASE WHEN d.density = 'Infinity' THEN 1 ELSE avg(o.density) / d.density END
    FROM near n JOIN densities d ON d.id = n.id JOIN densities o ON o.id = n.other GROUP BY n.id, d.density
$$;
SELECT k, metric, ties, count(*) AS rows,
       count(*) FILTER (WHERE f.lof <> p.lof AND NOT abs(f.lof - p.lof) <= 1e-12 * abs(p.lof)) AS wrong,
       count(*) FILTER (WHERE f.lof = 'Infinity') AS infinite,
       (array_agg(f.id ORDER BY f.lof DESC, f.id))[1] AS farthest_out
FROM (VALUES (1), (3), (10), (65), (1000)) AS k(k), unnest(ARRAY['euclidean', 'manhattan']) AS metric, unnest(ARRAY['sklearn', 'breunig']) AS ties,
     LATERAL plain_factors(k, metric, ties) AS p JOIN LATERAL
     local_outlier_factor('SELECT id, place FROM places ORDER BY id', k, metric, ties) AS f USING (id)
GROUP BY k, metric, ties ORDER BY k, metric, ties;
-- The types of the vectors do not matter.
SELECT count(*), count(*) FILTER (WHERE a.lof <> b.lof OR a.lof <> c.lof) AS differing
FROM local_outlier_factor('SELECT id, place FROM places', 5) a
JOIN local_outlier_factor('SELECT id, place::real[] FROM places', 5) b USING (id)
JOIN local_outlier_factor('SELECT id, place::double precision[] FROM places', 5) c USING (id);

-- In the order of the items; vectors that are null are left out. Rows with the same id are several rows.
SELECT id FROM local_outlier_factor('SELECT id, nullif(place, ''{2,3,1}'') FROM places WHERE id > 58 ORDER BY id DESC', 2);
SELECT id, lof FROM local_outlier_factor('VALUES (1::bigint, ''{1}''::real[]), (1, ''{1}''), (1, ''{1}'')', 2, ties => 'breunig');
-- Without neighbors there is no factor: no rows, one row, rows of zeros under cosine.
SELECT * FROM local_outlier_factor('SELECT id, place FROM places WHERE false', 3);
SELECT * FROM local_outlier_factor('SELECT id, place FROM places WHERE id = 7', 3);
SELECT id, round(lof::numeric, 6) AS lof
FROM local_outlier_factor('VALUES (1::bigint, ''{0,0}''::real[]), (2, ''{1,0}''), (3, ''{0,1}''), (4, ''{0,0}''), (5, ''{1,1}'')', 2, 'cosine');

-- Join the answer with the table, and put conditions in the inner query.
SELECT p.place, f.lof > 2 AS outlier
FROM local_outlier_factor('SELECT id, place FROM places WHERE place[1] <> 12', 10) AS f JOIN places AS p USING (id)
ORDER BY f.lof DESC LIMIT 2;
SELECT pg_typeof(id), pg_typeof(lof) FROM local_outlier_factor('SELECT id::integer, place FROM places', NULL::integer, 2) LIMIT 1;

-- What it refuses
SELECT * FROM local_outlier_factor('TABLE places', 0);
SELECT * FROM local_outlier_factor('TABLE places', NULL::integer);
SELECT * FROM local_outlier_factor(NULL, 3);
SELECT * FROM local_outlier_factor('TABLE places', 3, 'inner_product');
SELECT * FROM local_outlier_factor('TABLE places', 3, 'hamming');
SELECT * FROM local_outlier_factor('TABLE places', 3, NULL);
SELECT * FROM local_outlier_factor('TABLE places', 3, ties => 'all');
SELECT * FROM local_outlier_factor('TABLE places', 3, ties => NULL);
SELECT * FROM local_outlier_factor('SELECT id::text, place FROM places', 3);
SELECT * FROM local_outlier_factor('SELECT id, place, 1 FROM places', 3);
SELECT * FROM local_outlier_factor('SELECT id, place[:id] FROM places WHERE id < 3 ORDER BY id', 3);
SELECT * FROM local_outlier_factor('SELECT id, ''{NaN}''::real[] FROM places WHERE id = 9', 3);

DROP FUNCTION plain_factors;
DROP TABLE places, distances;
