-- dbscan and semantic_duplicate_groups

-- scikit-learn: DBSCAN(eps=3, min_samples=2).fit([[1, 2], [2, 2], [2, 3], [8, 7], [8, 8], [25, 80]]).labels_ is 0, 0, 0, 1, 1, -1.
SELECT * FROM dbscan('VALUES (1::bigint, ''{1,2}''::integer[]), (2, ''{2,2}''), (3, ''{2,3}''), (4, ''{8,7}''), (5, ''{8,8}''), (6, ''{25,80}'')', 3, 2);
-- Every argument by name, ids of another type; b is near both clusters, and in that whose first core point comes first.
SELECT * FROM dbscan(items => 'VALUES (''b'', ''{0}''::integer[]), (''r1'', ''{1}''), (''r2'', ''{2}''), (''r3'', ''{2}''), (''l1'', ''{-1}''), (''l2'', ''{-2}''), (''l3'', ''{-2}'')',
                     id_type => NULL::text, epsilon => 1, min_points => 4, metric => 'manhattan');
SELECT * FROM dbscan('SELECT * FROM (VALUES (''b'', ''{0}''::integer[]), (''r1'', ''{1}''), (''r2'', ''{2}''), (''r3'', ''{2}''), (''l1'', ''{-1}''), (''l2'', ''{-2}''), (''l3'', ''{-2}'')) AS v ORDER BY 2',
                     NULL::text, 1, 4);
SELECT * FROM semantic_duplicate_groups('VALUES (1::bigint, ''{1,0}''::real[]), (2, ''{0,1}''), (3, ''{2,0.1}''), (4, ''{1,0.1}''), (5, ''{-1,0}'')', 0.002);
SELECT * FROM semantic_duplicate_groups(items => 'SELECT * FROM (VALUES (''a'', ''{1}''::integer[]), (''b'', ''{5}''), (''c'', ''{2}''), (''d'', ''{6}''), (''e'', ''{9}'')) AS v ORDER BY 1 DESC',
                                        id_type => NULL::text, threshold => 1, metric => 'euclidean');

-- Against the definitions in SQL: places on a grid, where many pairs are exactly epsilon apart, with copies and lumps

CREATE TABLE places AS
SELECT i::bigint AS id, ARRAY[i * i % 37, i * 7 % 31, i % 3]::integer[] AS place FROM generate_series(1, 150) AS i;
INSERT INTO places SELECT 150 + i, ARRAY[20 + i % 4, 15 + i % 3, 1] FROM generate_series(1, 30) AS i;
INSERT INTO places SELECT 180 + i, ARRAY[2, 3, 1] FROM generate_series(1, 6) AS i;
INSERT INTO places VALUES (187, '{900,1,1}');
CREATE TABLE distances AS
SELECT a.id, b.id AS other, sqrt(sum((x - y) * (x - y))::double precision) AS euclidean, sum(abs(x - y))::double precision AS manhattan
FROM places a, places b, unnest(a.place, b.place) AS pairs(x, y) GROUP BY a.id, b.id;
CREATE FUNCTION plain_dbscan(epsilon double precision, min_points integer, metric text)
RETURNS TABLE (id bigint, cluster bigint, is_core boolean) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE near AS MATERIALIZED (
        SELECT id, other FROM distances WHERE CASE metric WHEN 'euclidean' THEN euclidean ELSE manhattan END <= epsilon
    ), core AS MATERIALIZED (
        SELECT id FROM near GROUP BY id HAVING count(*) >= min_points
    ), reached (id, root) AS (
        SELECT id, id FROM core
        UNION
        SELECT near.other, reached.root FROM reached JOIN near ON near.id = reached.id JOIN core ON core.id = near.other WHERE reached.root < near.other
    ), roots AS (
        SELECT id, min(root) AS root FROM reached GROUP BY id
    ), numbered AS MATERIALIZED (
        SELECT id, dense_rank() OVER (ORDER BY root) - 1 AS cluster FROM roots
    )
    SELECT p.id, coalesce(own.cluster, (SELECT min(n.cluster) FROM near JOIN numbered AS n ON n.id = near.other WHERE near.id = p.id)), own.id IS NOT NULL
    FROM places AS p LEFT JOIN numbered AS own ON own.id = p.id
$$;
SELECT epsilon, min_points, metric, count(*) AS rows,
       count(*) FILTER (WHERE (d.cluster, d.is_core) IS DISTINCT FROM (p.cluster, p.is_core)) AS wrong,
       count(DISTINCT d.cluster) AS clusters, count(*) FILTER (WHERE d.is_core) AS core,
       count(*) FILTER (WHERE d.cluster IS NOT NULL AND NOT d.is_core) AS border, count(*) FILTER (WHERE d.cluster IS NULL) AS noise
FROM (VALUES (0), (1), (sqrt(2)), (3), (5), (8)) AS e(epsilon), (VALUES (1), (2), (3), (5), (9), (1000)) AS m(min_points), (VALUES ('euclidean'), ('manhattan')) AS k(metric),
     LATERAL plain_dbscan(epsilon, min_points, metric) AS p JOIN LATERAL
     dbscan('SELECT id, place FROM places ORDER BY id', epsilon, min_points, metric) AS d USING (id)
GROUP BY epsilon, min_points, metric ORDER BY epsilon, min_points, metric;
-- Groups are those of the pairs that gpu_knn_within finds.
SELECT threshold, metric, count(*) AS rows, count(*) FILTER (WHERE s IS DISTINCT FROM g) AS wrong, count(DISTINCT s.group_id) AS groups, max(s.group_size) AS largest
FROM (VALUES (0, 'euclidean'), (1.5, 'euclidean'), (4, 'manhattan'), (0.0005, 'cosine')) AS t(threshold, metric),
     LATERAL semantic_duplicate_groups('SELECT id, place FROM places', threshold, metric) AS s JOIN LATERAL
     groups_of(format('SELECT query_id, item_id FROM gpu_knn_within(''SELECT id, place FROM places'', ''SELECT id, place FROM places'', %s, %L)', threshold, metric)) AS g USING (id)
GROUP BY threshold, metric ORDER BY metric, threshold;
-- Little memory makes no other answer: the neighbors of some rows at a time fit.
CREATE TABLE lumps AS SELECT i::bigint AS id, ARRAY[i % 3000 * 0.001 + CASE WHEN i > 3000 THEN 10 ELSE 0 END, sin(i)]::real[] AS place FROM generate_series(1, 6000) AS i;
CREATE TABLE of_lumps AS SELECT * FROM dbscan('TABLE lumps', 0.15, 20);
SET gputext.host_memory_limit = '1MB';
SELECT count(*) AS rows, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS differing, count(DISTINCT a.cluster) AS clusters
FROM of_lumps AS a JOIN dbscan('TABLE lumps', 0.15, 20) AS b USING (id);
SELECT count(*) AS rows, count(DISTINCT group_id) AS groups FROM semantic_duplicate_groups('TABLE lumps', 0.15, 'euclidean');
RESET gputext.host_memory_limit;
-- The types of the vectors do not matter.
SELECT count(*), count(*) FILTER (WHERE a <> b OR a <> c) AS differing
FROM dbscan('SELECT id, place FROM places', 3, 4) a
JOIN dbscan('SELECT id, place::real[] FROM places', 3, 4) b USING (id)
JOIN dbscan('SELECT id, place::double precision[] FROM places', 3, 4) c USING (id);

-- In the order of the items; vectors that are null are left out. Rows with the same id are several rows.
SELECT id FROM dbscan('SELECT id, nullif(place, ''{2,3,1}'') FROM places WHERE id > 178 ORDER BY id DESC', 2, 1);
SELECT * FROM dbscan('VALUES (1::bigint, ''{1}''::real[]), (1, ''{1}''), (1, ''{5}'')', 1, 2);
SELECT * FROM semantic_duplicate_groups('VALUES (1::bigint, ''{1}''::real[]), (1, ''{1}''), (2, NULL), (3, ''{5}'')', 1, 'euclidean');
-- No rows; rows of zeros are near none under cosine.
SELECT * FROM dbscan('SELECT id, place FROM places WHERE false', 3, 1);
SELECT * FROM semantic_duplicate_groups('SELECT id, place FROM places WHERE false', 3);
SELECT * FROM dbscan('VALUES (1::bigint, ''{0,0}''::real[]), (2, ''{1,0}''), (3, ''{0,1}''), (4, ''{0,0}''), (5, ''{2,0}'')', 0.1, 1, 'cosine');
SELECT * FROM semantic_duplicate_groups('VALUES (1::bigint, ''{0,0}''::real[]), (2, ''{1,0}''), (3, ''{0,1}''), (4, ''{0,0}''), (5, ''{2,0}'')', 2);
SELECT pg_typeof(id), pg_typeof(cluster), pg_typeof(is_core) FROM dbscan('SELECT id::integer, place FROM places', NULL::integer, 1, 1) LIMIT 1;
SELECT pg_typeof(id), pg_typeof(group_id), pg_typeof(group_size) FROM semantic_duplicate_groups('SELECT id::numeric, place FROM places', NULL::numeric, 1) LIMIT 1;

-- What they refuse
SELECT * FROM dbscan('TABLE places', -1, 2);
SELECT * FROM dbscan('TABLE places', 'NaN', 2);
SELECT * FROM dbscan('TABLE places', 'Infinity', 2);
SELECT * FROM dbscan('TABLE places', NULL, 2);
SELECT * FROM dbscan('TABLE places', 1, 0);
SELECT * FROM dbscan('TABLE places', 1, NULL);
SELECT * FROM dbscan(NULL, 1, 2);
SELECT * FROM dbscan('TABLE places', 1, 2, 'inner_product');
SELECT * FROM dbscan('TABLE places', 1, 2, 'hamming');
SELECT * FROM dbscan('TABLE places', 1, 2, NULL);
SELECT * FROM dbscan('SELECT id::text, place FROM places', 1, 2);
SELECT * FROM dbscan('SELECT id, place, 1 FROM places', 1, 2);
SELECT * FROM dbscan('SELECT id, place[:id] FROM places WHERE id < 3 ORDER BY id', 1, 2);
SELECT * FROM dbscan('SELECT id, ''{NaN}''::real[] FROM places WHERE id = 9', 1, 2);
SELECT * FROM semantic_duplicate_groups('TABLE places', -0.1);
SELECT * FROM semantic_duplicate_groups('TABLE places', NULL);
SELECT * FROM semantic_duplicate_groups('TABLE places', 1, 'inner_product');
SELECT * FROM semantic_duplicate_groups('TABLE places', 0.1, id_type => 'text');
-- The neighbors of one row are more than the limit.
SET gputext.host_memory_limit = '1MB';
\set VERBOSITY sqlstate
SELECT count(*) FROM dbscan('SELECT i, ARRAY[i]::real[] FROM generate_series(1::bigint, 50000) AS i', 1e6, 3);
\set VERBOSITY default
RESET gputext.host_memory_limit;

DROP FUNCTION plain_dbscan;
DROP TABLE places, distances, lumps, of_lumps;
