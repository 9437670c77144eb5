-- k_means and k_means_centroids

CREATE TABLE points AS
SELECT i::bigint AS id, ARRAY[(i % 3) * 10 + (i * 7 % 5) * 0.25, (i % 3) * -4 + (i * 11 % 7) * 0.125]::real[] AS point
FROM generate_series(1, 60) AS i;
SELECT cluster, count(*), array_agg(DISTINCT id % 3) AS kind
FROM k_means('SELECT id, point FROM points ORDER BY id', 3) GROUP BY cluster ORDER BY cluster;
SELECT * FROM k_means_centroids('SELECT id, point FROM points ORDER BY id', 3);

-- Against its definition in SQL: each item belongs to the nearest centroid, of equally near ones to the first, and each
-- centroid is the mean of its items once nothing changes any more.
CREATE TABLE places AS
SELECT i::bigint AS id, ARRAY[i * i % 17, i * 3 % 23, i % 5, i * 7 % 4]::integer[] AS place FROM generate_series(1, 400) AS i;
CREATE FUNCTION check_k_means(n integer, seed bigint)
    RETURNS TABLE (items bigint, clusters bigint, wrong_distances bigint, wrong_clusters bigint, wrong_sizes bigint, wrong_means bigint)
    LANGUAGE sql AS $$
    WITH items AS MATERIALIZED (SELECT * FROM k_means('SELECT id, place FROM places ORDER BY id', n, seed => seed, iterations => 1000)),
    centroids AS MATERIALIZED (SELECT * FROM k_means_centroids('SELECT id, place FROM places ORDER BY id', n, seed => seed, iterations => 1000)),
    distances AS (
        SELECT p.id, c.cluster,
               (SELECT sqrt(sum((x - y::double precision) ^ 2)) FROM unnest(p.place, c.centroid) AS pairs(x, y)) AS distance
        FROM places AS p, centroids AS c
    ), nearest AS (SELECT id, min(distance) AS distance FROM distances GROUP BY id),
    means AS (
        SELECT i.cluster, e.place, avg(e.x) AS mean FROM items AS i JOIN places AS p USING (id), unnest(p.place) WITH ORDINALITY AS e(x, place)
        GROUP BY i.cluster, e.place
    )
    SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM centroids),
           (SELECT count(*) FROM items AS i JOIN distances AS d USING (id, cluster) WHERE abs(i.distance - d.distance) > 1e-9),
           (SELECT count(*) FROM items AS i JOIN nearest AS d USING (id) WHERE i.distance > d.distance + 1e-9),
           (SELECT count(*) FROM centroids AS c WHERE size <> (SELECT count(*) FROM items AS i WHERE i.cluster = c.cluster)),
           (SELECT count(*) FROM means AS m JOIN centroids AS c USING (cluster) WHERE abs(m.mean - c.centroid[m.place]) > 1e-5)
$$;
SELECT n, seed, c.* FROM (VALUES (1), (2), (7), (40)) AS n(n), generate_series(1::bigint, 3) AS seed, check_k_means(n, seed) AS c;
-- As many clusters as items
SELECT count(DISTINCT cluster), max(distance) FROM k_means('SELECT id, place FROM places WHERE id <= 50', 50);
-- The same seed gives the same answer, on vectors of any type; another seed may give another one.
SELECT count(*) FILTER (WHERE a.cluster <> b.cluster OR a.distance <> b.distance OR a.cluster <> c.cluster OR a.distance <> c.distance) AS differing
FROM k_means('SELECT id, place FROM places ORDER BY id', 9, seed => -5) AS a
JOIN k_means('SELECT id, place::real[] FROM places ORDER BY id', 9, seed => -5) AS b USING (id)
JOIN k_means('SELECT id, place::double precision[] FROM places ORDER BY id', 9, seed => -5) AS c USING (id);
SELECT count(DISTINCT total) > 1 AS different
FROM generate_series(1::bigint, 5) AS s(seed), LATERAL (SELECT sum(distance) AS total FROM k_means('SELECT id, place FROM places ORDER BY id', 9, seed => s.seed, iterations => 1)) AS t;
-- By direction: the length of a vector does not matter.
SELECT cluster, array_agg(id ORDER BY id) AS ids
FROM k_means('VALUES (1::bigint, ''{1,0}''::real[]), (2, ''{0,2}''), (3, ''{30,1}''), (4, ''{1,50}'')', 2, 'cosine') GROUP BY cluster ORDER BY min(id);
-- Ids of other types; vectors that are null are left out; rows with the same id are several rows.
SELECT id, cluster FROM k_means('VALUES (''a'', ''{1}''::real[]), (''b'', NULL), (''c'', ''{9}''), (''a'', ''{1}'')', NULL::text, 2) ORDER BY id;
SELECT size, centroid FROM k_means_centroids('VALUES (''a'', ''{1}''::real[]), (''c'', ''{9}''), (''a'', ''{2}'')', NULL::text, 2) ORDER BY size;
SELECT pg_typeof(id), pg_typeof(cluster), pg_typeof(distance) FROM k_means('SELECT id::integer, place FROM places', NULL::integer, 2) LIMIT 1;
-- No rows have no clusters.
SELECT * FROM k_means('SELECT id, place FROM places WHERE false', 3);
SELECT * FROM k_means_centroids('SELECT id, place FROM places WHERE false', 3);
-- Joined with the table
SELECT p.id, c.cluster = first_value(c.cluster) OVER (ORDER BY p.id) AS like_the_first
FROM points AS p JOIN k_means('TABLE points', 3) AS c USING (id) ORDER BY p.id LIMIT 4;

-- What they refuse
SELECT * FROM k_means('TABLE places', 0);
SELECT * FROM k_means('TABLE places', NULL::integer);
SELECT * FROM k_means(NULL, 3);
SELECT * FROM k_means('TABLE places', 401);
SELECT * FROM k_means('SELECT id, ARRAY[(id % 4)::integer] FROM places', 5);
SELECT * FROM k_means('TABLE places', 3, 'manhattan');
SELECT * FROM k_means('TABLE places', 3, 'inner_product');
SELECT * FROM k_means('TABLE places', 3, 'hamming');
SELECT * FROM k_means('TABLE places', 3, NULL);
SELECT * FROM k_means('TABLE places', 3, seed => NULL);
SELECT * FROM k_means('TABLE places', 3, iterations => 0);
SELECT * FROM k_means('VALUES (5::bigint, ''{1,0}''::real[]), (7, ''{0,0}'')', 1, 'cosine');
SELECT * FROM k_means('VALUES (1::bigint, ''{1,NaN}''::real[])', 1);
SELECT * FROM k_means('VALUES (1::bigint, ''{1,2}''::real[]), (2, ''{1}'')', 1);
SELECT * FROM k_means('VALUES (9::bigint, ''{1e300}''::double precision[])', 1);
SELECT * FROM k_means('SELECT 1::bigint', 1);
SELECT * FROM k_means_centroids('TABLE places', -1);

DROP FUNCTION check_k_means;
DROP TABLE points, places;
