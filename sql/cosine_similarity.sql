-- cosine_similarity and cosine_similarities

-- Of two vectors: 1 for one direction, 0 for a right angle, -1 for opposite ones
SELECT cosine_similarity(ARRAY[3, 4], ARRAY[6, 8]) AS same, cosine_similarity(ARRAY[1, 0], ARRAY[0, 2]) AS right_angle,
       cosine_similarity(ARRAY[1, 2, 2], ARRAY[-2, -4, -4]) AS opposite, cosine_similarity(ARRAY[3, 4], ARRAY[4, 3]) AS between;
-- Every type of array, and literals
SELECT cosine_similarity('{3,4}'::real[], '{4,3}'::real[]) AS real, cosine_similarity('{3,4}'::double precision[], '{4,3}') AS double,
       cosine_similarity('{3,4}'::integer[], '{4,3}') AS integer, cosine_similarity(ARRAY[1.5, 2], ARRAY[2, 1.5]) AS numeric,
       cosine_similarity('{3,4}'::real[], '{4,3}'::double precision[]) AS mixed, cosine_similarity('{3,4}'::real[], ARRAY[4, 3]) AS with_integers,
       cosine_similarity(ARRAY[2.0, 1.5], '{3,4}'::real[]) AS with_numerics;
-- A vector of zeros has none; a null argument has none.
SELECT cosine_similarity('{0,0}'::real[], '{1,2}') AS zero, cosine_similarity('{1,2}'::real[], '{0,-0}') AS other_zero,
       cosine_similarity(NULL::real[], '{1,2}') AS no_vector;
-- Neither large nor small numbers overflow.
SELECT cosine_similarity('{3e300,4e300}'::double precision[], '{3e-310,4e-310}') AS double, cosine_similarity('{3e38,0}'::real[], '{1e-45,0}') AS real;
-- Never beyond 1, and 1 of a vector and itself
SELECT count(*), bool_and(cosine_similarity(v, v) = 1) AS same
FROM (SELECT array_agg((i * j * 2654435761 % 1000003 / 7.0)::double precision) AS v
      FROM generate_series(1, 200) AS i, generate_series(1, 30) AS j GROUP BY i) AS vectors;
-- Differences that single precision would not show
SELECT cosine_similarity('{16777217,0}'::integer[], '{16777216,1}') < 1 AS below;

-- In a generated column, an index and a check
CREATE TABLE pairs (a real[], b real[], similarity double precision GENERATED ALWAYS AS (cosine_similarity(a, b)) STORED, CHECK (cosine_similarity(a, b) > -0.5));
CREATE INDEX ON pairs (cosine_similarity(b, a));
INSERT INTO pairs VALUES ('{1,2}', '{2,1}'), ('{0,0}', '{1,1}');
SELECT * FROM pairs ORDER BY similarity;
INSERT INTO pairs VALUES ('{1,2}', '{-1,-2}');
DROP TABLE pairs;

-- What it refuses
SELECT cosine_similarity('{1,2}'::real[], '{1,2,3}');
SELECT cosine_similarity('{}'::real[], '{1}');
SELECT cosine_similarity('{1,NULL}'::real[], '{1,2}');
SELECT cosine_similarity('{{1,2}}'::real[], '{1,2}');
SELECT cosine_similarity('{1,2}'::real[], '{1,NaN}');
SELECT cosine_similarity('{1,Infinity}'::double precision[], '{1,2}');
\set VERBOSITY terse
SELECT cosine_similarity('{1,2}', '{1,2}');
SELECT cosine_similarity('{1,2}'::text[], '{1,2}');
\set VERBOSITY default

-- Of one vector and all items: a row for every item, in their order

CREATE TABLE items (id bigint, key text, vector real[]);
INSERT INTO items VALUES (1, 'a', '{3,4}'), (2, 'b', '{0,0}'), (3, 'c', '{-4,3}'), (4, 'd', NULL), (5, 'e', '{8,6}');
SELECT * FROM cosine_similarities('{3,4}', 'SELECT id, vector FROM items ORDER BY id');
SELECT * FROM cosine_similarities(query => ARRAY[3, 4], items => 'SELECT id, vector::double precision[] FROM items WHERE id <> 4 ORDER BY id DESC');
SELECT * FROM cosine_similarities('{3,4}'::real[], 'SELECT key, vector FROM items WHERE id <> 4', id_type => NULL::text) ORDER BY similarity DESC NULLS LAST LIMIT 2;
SELECT * FROM cosine_similarities('{0,0}', 'SELECT id, vector FROM items WHERE id < 4');
SELECT * FROM cosine_similarities('{3,4}', 'SELECT id, vector FROM items WHERE false');
SELECT count(*) FROM cosine_similarities('{3,4,5}', 'SELECT id, vector FROM items WHERE false');
-- The same bits as of two vectors
CREATE TABLE many AS
SELECT i::bigint AS id, array_agg(sin(i * j)::real ORDER BY j) AS vector FROM generate_series(1, 300) AS i, generate_series(1, 50) AS j GROUP BY i;
SELECT count(*) AS rows, count(*) FILTER (WHERE s.similarity IS DISTINCT FROM cosine_similarity(q.vector, m.vector)) AS differing
FROM (SELECT * FROM many WHERE id % 100 = 7) AS q, LATERAL cosine_similarities(q.vector, 'SELECT id, vector FROM many') AS s
JOIN many AS m ON m.id = s.id;
-- The distance of gpu_knn is 1 less that.
SELECT count(*) AS rows, count(*) FILTER (WHERE n.distance IS DISTINCT FROM 1 - s.similarity) AS differing
FROM gpu_knn('SELECT id, vector FROM many WHERE id = 7', 'SELECT id, vector FROM many', 300) AS n
JOIN cosine_similarities((SELECT vector FROM many WHERE id = 7), 'SELECT id, vector FROM many') AS s ON s.id = n.item_id;

-- Ids of any type come back as they were, also beside rows with nulls
CREATE FUNCTION rows_of_ids(type text, id text, OUT rows bigint, OUT wrong bigint, OUT similarities bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT count(*), count(*) FILTER (WHERE t.id::text IS DISTINCT FROM s.id::text), count(s.similarity)
        FROM (SELECT i, (%s)::%s AS id FROM generate_series(1, 900) AS i) AS t
        JOIN (SELECT row_number() OVER () AS i, * FROM cosine_similarities(ARRAY[1, 2]::real[], %L, NULL::%s)) AS s USING (i)',
        id, type, format('SELECT (%s)::%s, ARRAY[i %% 3, 0]::real[] FROM generate_series(1, 900) AS i ORDER BY i', id, type), type)
    INTO rows, wrong, similarities;
END $$;
SELECT type, id, r.* FROM (VALUES ('boolean', 'i % 2 = 0'), ('"char"', 'chr(i % 90 + 33)'), ('smallint', 'i'), ('integer', '-i'),
    ('bigint', 'i * 10000000000'), ('real', 'i / 7.0'), ('name', 'md5(i::text)'), ('uuid', 'md5(i::text)'), ('point', 'point(i, -i)'),
    ('timetz', 'timetz ''00:00+02'' + i * interval ''1 second'''), ('macaddr', '''08:00:2b:01:02:03'''), ('interval', 'i * interval ''1 day'''),
    ('numeric', '(i::numeric / 7) ^ 9'), ('inet', '''10.0.0.0''::inet + i'), ('text', 'repeat(i::text, i % 80)'), ('text', 'repeat(''x'', i * 7)'),
    ('bytea', 'decode(repeat(''ab'', i % 300), ''hex'')'), ('varbit', 'repeat(''10'', i)'), ('integer[]', 'ARRAY[i, -i]'),
    ('jsonb', 'jsonb_build_object(''i'', i)'), ('int4range', 'int4range(i, 2 * i)'), ('int2vector', 'i || '' 7'''), ('tsquery', '''w'' || i')) AS t(type, id), rows_of_ids(type, id) AS r;

-- What it refuses
SELECT * FROM cosine_similarities(NULL, 'SELECT id, vector FROM items');
SELECT * FROM cosine_similarities('{1,2}', NULL);
SELECT * FROM cosine_similarities('{1,NaN}', 'SELECT id, vector FROM items');
SELECT * FROM cosine_similarities('{1,NULL}', 'SELECT id, vector FROM items');
SELECT * FROM cosine_similarities('{}', 'SELECT id, vector FROM items');
SELECT * FROM cosine_similarities('{1,2,3}', 'SELECT id, vector FROM items WHERE id > 2 AND id <> 4');
SELECT * FROM cosine_similarities('{1,2}', 'SELECT id, CASE WHEN id = 3 THEN ''{1,Infinity}'' ELSE vector END FROM items WHERE id <> 4');
SELECT * FROM cosine_similarities('{1,2}', 'SELECT key, vector FROM items');
SELECT * FROM cosine_similarities('{1,2}', 'SELECT id, key FROM items');

DROP FUNCTION rows_of_ids;
DROP TABLE items, many;
