-- word_movers_distance

-- On a line, so that distances are seen at once.
CREATE TABLE places (word text PRIMARY KEY, vector real[]);
INSERT INTO places VALUES ('one', '{1,0}'), ('two', '{2,0}'), ('five', '{5,0}'), ('nine', '{9,0}'), ('up', '{5,3}');
SELECT *
FROM word_movers_distance('TABLE places', $$
    VALUES (1::bigint, '{one}'::text[], '{five}'::text[]),
           (2, '{one,two}', '{five,nine}'),
           (3, '{one,two,two}', '{two,one,two}'),
           (4, '{one,one,two,two}', '{two,one}'),
           (5, '{one,five}', '{one,nine}'),
           (6, '{one,one,five}', '{nine,up}'),
           (7, '{nine}', '{up}')$$);
-- Every argument by name, ids of another type
SELECT *
FROM word_movers_distance(model => 'TABLE places', pairs => $$VALUES ('a', '{one}'::text[], '{two,nine}'::text[])$$,
                          id_type => NULL::text, method => 'relaxed');
SELECT * FROM word_movers_distance('TABLE places', $$VALUES (1.5, '{one}'::text[], '{two,nine}'::text[])$$, NULL::numeric);
-- The bound is never above the distance, and sees from both sides.
SELECT e.id, e.distance, r.distance AS bound
FROM word_movers_distance('TABLE places', $$VALUES (1::bigint, '{one,nine}'::text[], '{two,five}'::text[]), (2, '{two,five}', '{one,nine}'), (3, '{one,two}', '{five,nine}')$$) AS e
JOIN word_movers_distance('TABLE places', $$VALUES (1::bigint, '{one,nine}'::text[], '{two,five}'::text[]), (2, '{two,five}', '{one,nine}'), (3, '{one,two}', '{five,nine}')$$, 'relaxed') AS r USING (id)
ORDER BY id;
-- Tokens that the model does not have, and nulls, are left out; nothing left, no distance.
SELECT *
FROM word_movers_distance('TABLE places', $$
    VALUES (1::bigint, '{one,ONE,NULL}'::text[], '{five,six}'::text[]),
           (2, '{}', '{one}'),
           (3, '{six}', '{one}'),
           (4, '{NULL}', '{}'),
           (5, NULL, '{one}'),
           (6, '{one}', NULL),
           (7, '{one}', '{one}')$$);
-- An array of several dimensions is its elements; varchar will do, and domains over them.
CREATE DOMAIN tokens AS text[];
SELECT * FROM word_movers_distance('TABLE places', $$VALUES (1::bigint, '{{one,two},{five,nine}}'::varchar[], '{one}'::tokens)$$);
-- In the order of the pairs; rows with the same id are several rows.
SELECT id, distance FROM word_movers_distance('TABLE places', $$SELECT i % 3, '{one}'::text[], ARRAY[CASE WHEN i % 2 = 0 THEN 'two' ELSE 'nine' END] FROM generate_series(1, 5) AS i$$, NULL::integer);
SELECT * FROM word_movers_distance('TABLE places', 'SELECT 1::bigint, ''{one}''::text[], ''{one}''::text[] WHERE false');
SELECT * FROM word_movers_distance('SELECT * FROM places WHERE false', 'SELECT 1::bigint, ''{one}''::text[], ''{one}''::text[]');

-- The model's columns: by their names, wherever they stand, or just the two
SELECT * FROM word_movers_distance('SELECT 7 AS count, vector, ''x'' AS note, word FROM places', $$VALUES (1::bigint, '{one}'::text[], '{five}'::text[])$$);
SELECT * FROM word_movers_distance('SELECT word AS w, vector AS v FROM places', $$VALUES (1::bigint, '{one}'::text[], '{five}'::text[])$$);
SELECT * FROM word_movers_distance('SELECT word, vector::double precision[] FROM places', $$VALUES (1::bigint, '{one}'::text[], '{five}'::text[])$$);
SELECT * FROM word_movers_distance('SELECT word, vector::integer[] FROM places', $$VALUES (1::bigint, '{one}'::text[], '{five}'::text[])$$);

-- Against its definition, by an assignment of equal masses: all permutations
CREATE TABLE model AS
SELECT 'w' || i AS word, ARRAY(SELECT (hashint8extended(i, j) % 1000)::real / 1000 FROM generate_series(1, 40) AS j) AS vector FROM generate_series(1, 60) AS i;
CREATE TABLE pairs AS
SELECT p AS id, ARRAY(SELECT 'w' || 1 + (p * 7 + i * 11) % 60 FROM generate_series(1, 5) AS i) AS a, ARRAY(SELECT 'w' || 1 + (p * 13 + i * 7) % 60 FROM generate_series(1, 5) AS i) AS b
FROM generate_series(1::bigint, 40) AS p;
WITH RECURSIVE permutations(places) AS (
    SELECT ARRAY[i] FROM generate_series(1, 5) AS i
    UNION ALL
    SELECT places || i FROM permutations, generate_series(1, 5) AS i WHERE i <> ALL (places) AND cardinality(places) < 5
), costs AS (
    SELECT p.id, i, j, (SELECT sqrt(sum((x - y)::double precision * (x - y))) FROM unnest(m.vector, n.vector) AS e(x, y)) AS cost
    FROM pairs p, generate_series(1, 5) AS i, generate_series(1, 5) AS j, model m, model n WHERE m.word = p.a[i] AND n.word = p.b[j]
), sums AS (
    SELECT c.id, places, sum(c.cost) / 5 AS mean
    FROM permutations, costs c WHERE cardinality(places) = 5 AND c.j = places[c.i] GROUP BY c.id, places
)
SELECT count(*), count(*) FILTER (WHERE abs(d.distance - s.least) > 1e-6 * s.least) AS wrong, count(*) FILTER (WHERE d.distance = 0) AS zero
FROM word_movers_distance('TABLE model', 'TABLE pairs') AS d JOIN (SELECT id, min(mean) AS least FROM sums GROUP BY id) AS s USING (id);
-- From the other side the same bits; the bound below
SELECT count(*), count(*) FILTER (WHERE a.distance <> b.distance) AS differing, count(*) FILTER (WHERE r.distance > a.distance) AS above, count(*) FILTER (WHERE r.distance < a.distance) AS below
FROM word_movers_distance('TABLE model', 'TABLE pairs') AS a
JOIN word_movers_distance('TABLE model', 'SELECT id, b, a FROM pairs') AS b USING (id)
JOIN word_movers_distance('TABLE model', 'TABLE pairs', 'relaxed') AS r USING (id);
-- Longer texts
SELECT count(*), count(*) FILTER (WHERE e.distance >= r.distance) AS bounded, bool_and(e.distance > 0) AS all_apart
FROM word_movers_distance('SELECT ''v'' || i AS word, ARRAY[i * i % 101, i % 17, i * 7 % 29]::real[] AS vector FROM generate_series(1, 500) AS i',
                          'SELECT p, ARRAY(SELECT ''v'' || 1 + (i * p) % 500 FROM generate_series(1, 200) AS i), ARRAY(SELECT ''v'' || 1 + (i * i + p) % 500 FROM generate_series(1, 150) AS i) FROM generate_series(1::bigint, 5) AS p') AS e
JOIN word_movers_distance('SELECT ''v'' || i AS word, ARRAY[i * i % 101, i % 17, i * 7 % 29]::real[] AS vector FROM generate_series(1, 500) AS i',
                          'SELECT p, ARRAY(SELECT ''v'' || 1 + (i * p) % 500 FROM generate_series(1, 200) AS i), ARRAY(SELECT ''v'' || 1 + (i * i + p) % 500 FROM generate_series(1, 150) AS i) FROM generate_series(1::bigint, 5) AS p', 'relaxed') AS r USING (id);

-- Errors: arguments
SELECT * FROM word_movers_distance(NULL, 'TABLE pairs');
SELECT * FROM word_movers_distance('TABLE places', NULL);
SELECT * FROM word_movers_distance('TABLE places', 'TABLE pairs', NULL::text);
SELECT * FROM word_movers_distance('TABLE places', 'TABLE pairs', 'approximate');
-- Errors: the model
SELECT * FROM word_movers_distance('SELECT word FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT word, vector AS v FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT 1, 2, 3', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT 1 AS word, vector FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT word, vector::text FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT word, vector::numeric[] FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT nullif(word, ''two'') AS word, vector FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT word, nullif(vector, ''{2,0}'') AS vector FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT * FROM places UNION ALL SELECT ''two'', ''{3,4}''', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT * FROM places UNION ALL SELECT ''ten'', ''{3,4,5}''', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT * FROM places UNION ALL SELECT ''ten'', ''{3,NaN}''', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT * FROM places UNION ALL SELECT ''ten'', ''{Infinity,3}''', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT * FROM places UNION ALL SELECT ''ten'', ''{3,NULL}''', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT * FROM places UNION ALL SELECT ''ten'', ''{{3,4}}''', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT word, ''{}''::real[] AS vector FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT word, ARRAY[1e300] ::double precision[] AS vector FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT word, ARRAY[1e20] ::real[] AS vector FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('SELECT word, ARRAY[1e-20] ::real[] AS vector FROM places', 'TABLE pairs');
SELECT * FROM word_movers_distance('INSERT INTO places VALUES (''ten'', ''{1,1}'') RETURNING *', 'TABLE pairs');
SELECT * FROM word_movers_distance('TABLE nowhere', 'TABLE pairs');
-- Errors: the pairs
SELECT * FROM word_movers_distance('TABLE places', 'SELECT id, a FROM pairs');
SELECT * FROM word_movers_distance('TABLE places', 'SELECT id, a, ''one two'' FROM pairs');
SELECT * FROM word_movers_distance('TABLE places', 'SELECT id, ''{1}''::integer[], b FROM pairs');
SELECT * FROM word_movers_distance('TABLE places', 'SELECT id::text, a, b FROM pairs');
SELECT * FROM word_movers_distance('TABLE places', 'SELECT nullif(id, 3), a, b FROM pairs');
SELECT * FROM word_movers_distance('TABLE places', 'SELECT 17::bigint, array_fill(''one''::text, ARRAY[65536]), ''{two}''::text[]');
SELECT * FROM word_movers_distance('TABLE places', 'SELECT 17::bigint, array_fill(''one''::text, ARRAY[65535]), ''{two}''::text[]');
-- Errors: memory
SET gputext.host_memory_limit = '1MB';
SELECT * FROM word_movers_distance('SELECT i::text AS word, ARRAY[i]::real[] AS vector FROM generate_series(1, 2000) AS i',
                                   'SELECT 1::bigint, array_agg(i::text) FILTER (WHERE i <= 1000), array_agg(i::text) FILTER (WHERE i > 1000) FROM generate_series(1, 2000) AS i');
SELECT * FROM word_movers_distance('SELECT i::text AS word, ARRAY[i]::real[] AS vector FROM generate_series(1, 2000) AS i',
                                   'SELECT 1::bigint, array_agg(i::text) FILTER (WHERE i <= 1000), array_agg(i::text) FILTER (WHERE i > 1000) FROM generate_series(1, 2000) AS i', 'relaxed');
RESET gputext.host_memory_limit;

DROP TABLE places, model, pairs;
DROP DOMAIN tokens;
