-- Operators for the distances of two arrays

SELECT '{0,0}'::real[] <-> '{3,4}' AS euclidean, '{3,4}'::real[] <=> '{4,3}' AS cosine,
       '{1,2}'::real[] <#> '{3,4}' AS inner_product, '{1,2}'::real[] <+> '{3,-4}' AS manhattan;
SELECT euclidean_distance('{0,0}'::float8[], '{3,4}') AS euclidean, cosine_distance('{3,4}'::float8[], '{4,3}') AS cosine,
       negative_inner_product('{1,2}'::float8[], '{3,4}') AS inner_product, manhattan_distance('{1,2}'::float8[], '{3,-4}') AS manhattan;
-- Which operator is meant
CREATE DOMAIN embedding AS real[];
SELECT '{0.1}'::real[] <-> '{0.3}' AS real, '{0.1}' <-> '{0.3}'::double precision[] AS double,
       '{0.1}'::real[] <-> '{0.3}'::double precision[] AS mixed, '{0.1}'::real[] <-> ARRAY[0.3] AS with_numerics,
       ARRAY[1] <-> '{0.3}'::real[] AS with_integers, '{0.1}'::embedding <-> '{0.3}' AS domain, NULL <=> '{1,2}'::real[] AS nothing;
PREPARE nearest AS SELECT '{1,2}'::real[] <+> $1;
EXECUTE nearest('{2,4}');
DEALLOCATE nearest;
-- A vector of zeros has no cosine distance, and comes last.
SELECT vector, vector <=> '{1,1}' AS distance FROM (VALUES ('{0,0}'::real[]), ('{-1,-1}'), ('{1,0}')) AS v(vector) ORDER BY distance;
SELECT '{0,0}'::float8[] <=> '{0,0}' AS cosine, '{0,0}'::float8[] <-> '{0,0}' AS euclidean, '{0,0}'::float8[] <#> '{0,0}' AS inner_product;
-- Neither large nor small numbers overflow, unless the distance itself does.
SELECT '{3e300,4e300}'::float8[] <-> '{0,0}' AS large, '{3e-310,4e-310}'::float8[] <-> '{0,0}' AS small,
       '{1e308,1e308}'::float8[] <-> '{-1e308,-1e308}' AS beyond, '{1e200}'::float8[] <#> '{1e200}' AS product;

-- The bits of gpu_knn, for every metric and both types, among them vectors of zeros and of extreme numbers
CREATE FUNCTION differing(type text, metric text, operator text, queries text, items text, OUT rows bigint, OUT differing bigint, OUT swapped bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT count(*), count(*) FILTER (WHERE float8send(n.distance) <> float8send(q.vector::%1$s %2$s i.vector::%1$s)),
                           count(*) FILTER (WHERE float8send(n.distance) <> float8send(i.vector::%1$s %2$s q.vector::%1$s))
        FROM gpu_knn(%3$L, %4$L, 1000, %5$L) AS n JOIN vectors AS q ON q.id = n.query_id JOIN vectors AS i ON i.id = n.item_id',
        type, operator, format(queries, type), format(items, type), metric) INTO rows, differing, swapped;
END $$;
CREATE FUNCTION compare(queries text, items text) RETURNS TABLE (type text, operator text, rows bigint, differing bigint, swapped bigint) LANGUAGE sql AS $$
    SELECT type, operator, d.* FROM (VALUES ('real[]'), ('double precision[]')) AS t(type),
        (VALUES ('euclidean', '<->'), ('cosine', '<=>'), ('inner_product', '<#>'), ('manhattan', '<+>')) AS o(metric, operator),
        differing(type, metric, operator, queries, items) AS d ORDER BY type, operator
$$;
SELECT setseed(0.5);
CREATE TABLE vectors AS
SELECT i AS id, length, array_agg((CASE WHEN i % 20 = 0 THEN 0 ELSE random() - 0.5 END)::double precision ORDER BY j) AS vector
FROM (VALUES (1), (7), (16), (33), (100)) AS l(length), generate_series(1, 60) AS n, LATERAL (SELECT length * 1000 + n) AS r(i), generate_series(1, length) AS j
GROUP BY i, length;
SELECT length, type, operator, rows, differing, swapped
FROM (VALUES (1), (7), (16), (33), (100)) AS l(length),
     compare(format('SELECT id, vector::%%s FROM vectors WHERE length = %s AND mod(id, 3) = 0', length),
             format('SELECT id, vector::%%s FROM vectors WHERE length = %s', length)) ORDER BY length, type, operator;
TRUNCATE vectors;
INSERT INTO vectors
SELECT i, 5, array_agg((random() - 0.5) * 10::double precision ^ (i * 7 % 600 - 300) ORDER BY j)
FROM generate_series(1, 200) AS i, generate_series(1, 5) AS j GROUP BY i;
SELECT operator, d.* FROM (VALUES ('euclidean', '<->'), ('cosine', '<=>'), ('inner_product', '<#>'), ('manhattan', '<+>')) AS o(metric, operator),
    differing('double precision[]', metric, operator, 'SELECT id, vector FROM vectors', 'SELECT id, vector FROM vectors') AS d ORDER BY operator;
-- The nearest rows by ORDER BY are gpu_knn's.
SELECT count(*) FROM
((SELECT id, vector <-> (SELECT vector FROM vectors WHERE id = 42) AS distance FROM vectors ORDER BY distance, id LIMIT 10)
 EXCEPT SELECT item_id, distance FROM gpu_knn('SELECT id, vector FROM vectors WHERE id = 42', 'SELECT id, vector FROM vectors', 10, 'euclidean')) AS differing;
DROP FUNCTION compare, differing;
DROP TABLE vectors;

-- In an index, a generated column, a constraint and parallel workers
CREATE TABLE pairs (a real[], b real[], distance double precision GENERATED ALWAYS AS (a <-> b) STORED, CHECK (a <=> b < 1));
CREATE INDEX ON pairs ((b <+> a));
INSERT INTO pairs VALUES ('{1,2}', '{2,1}');
SELECT * FROM pairs;
INSERT INTO pairs VALUES ('{1,2}', '{-1,-2}');
DROP TABLE pairs;
DROP DOMAIN embedding;

-- What they refuse, as gpu_knn does
SELECT '{1,2}'::real[] <-> '{1,2,3}';
SELECT '{}'::real[] <=> '{1}';
SELECT '{1,NULL}'::real[] <#> '{1,2}';
SELECT '{{1,2}}'::float8[] <+> '{1,2}';
SELECT '{1,2}'::real[] <-> '{1,NaN}';
SELECT '{1,-Infinity}'::float8[] <=> '{1,2}';
-- Literals alone, and arrays of other numbers on both sides, need a cast.
\set VERBOSITY terse
SELECT '{1,2}' <=> '{1,2}';
SELECT ARRAY[1, 2] <-> ARRAY[3, 4];
\set VERBOSITY default
SELECT ARRAY[1, 2]::real[] <-> ARRAY[3, 4] AS distance;
\set VERBOSITY terse
SELECT '{a}'::text[] <-> '{b}';
\set VERBOSITY default
