-- In one database with pg_trgm, fuzzystrmatch, citext, cube and intarray, from PostgreSQL's contrib
CREATE EXTENSION pg_trgm;
CREATE EXTENSION fuzzystrmatch;
CREATE EXTENSION citext;

SELECT levenshtein('kitten', 'sitting'), edit_distance('kitten', 'sitting'),
       similarity('kitten', 'sitting'), edit_rate('kitten', 'sitting') = 3 / 13.0 AS edit_rate;

-- Equal distances on 4000 pairs of short strings, with and without a limit
CREATE TABLE pairs AS
SELECT i AS id, translate(left(md5('a' || i), i % 30), '0123456789abcdef', 'abcabcabcabcéü日本') AS a,
       translate(left(md5('b' || i), i * 7 % 30), '0123456789abcdef', 'abcabcabcabcéü日本') AS b
FROM generate_series(1, 4000) AS i;
SELECT count(*) AS pairs, max(edit_distance(a, b)) AS largest,
       count(*) FILTER (WHERE edit_distance(a, b) <> levenshtein(a, b)) AS wrong,
       count(*) FILTER (WHERE edit_distance(a, b, id % 9) <>
                              least(levenshtein_less_equal(a, b, id % 9), id % 9 + 1)) AS wrong_with_a_limit
FROM pairs;
-- levenshtein ends at 255 characters.
SELECT levenshtein(repeat('a', 256), 'a');
SELECT edit_distance(repeat('a', 256), 'a');

-- A join by pg_trgm's index for candidates, by gputext for the verdict
CREATE INDEX ON pairs USING gin (a gin_trgm_ops);
SELECT count(*) FROM pairs p JOIN pairs q ON p.a % q.a AND p.id < q.id
WHERE length(p.a) > 25 AND edit_rate(p.a, q.a) < 0.25;

-- Both kinds of indexes on one column, each for its own condition
CREATE INDEX ON pairs USING gputext (a);
SET enable_seqscan = off;
SELECT count(*) FROM pairs p JOIN pairs q ON is_near_duplicate(p.a || 'x', q.a, 0.05) AND p.a % q.a WHERE p.id BETWEEN 15 AND 100;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM pairs p JOIN pairs q ON is_near_duplicate(p.a || 'x', q.a, 0.05) AND p.a % q.a WHERE p.id BETWEEN 15 AND 100;
RESET enable_seqscan;
RESET enable_indexscan;
RESET enable_bitmapscan;

-- Two functions of one name: pg_trgm's is of two texts.
SELECT word_similarity('word', 'two words'), (SELECT count(*) FROM word_similarity('SELECT a FROM pairs')) AS words;
SELECT count(*) FROM word_similarity('SELECT a FROM pairs', 3);

-- Elements of sets are equal as citext says.
SELECT * FROM similar_sets($$VALUES (1, ARRAY['Ann', 'Bob']::citext[]), (2, ARRAY['ann', 'bob', 'BOB']::citext[])$$, threshold => 0.5);
SELECT * FROM similar_sets_between($$SELECT 1, ARRAY['Ann']::citext[]$$, $$SELECT 2, ARRAY['ann']$$, threshold => 0.5);

DROP TABLE pairs;
DROP EXTENSION pg_trgm;
DROP EXTENSION fuzzystrmatch;
DROP EXTENSION citext;

-- Operators of the same names: those of cube, pg_trgm and the server's own are found as before.
CREATE EXTENSION cube;
CREATE EXTENSION intarray;
CREATE EXTENSION pg_trgm;
SELECT '(0,0)'::cube <-> '(3,4)' AS cube, '(0,0)' <#> '(3,4)'::cube AS taxicab, '(0,0)'::cube <=> '(3,4)' AS chebyshev,
       'word' <-> 'word'::text AS text, point '(0,0)' <-> '(3,4)' AS point, '1 & 2'::tsquery <-> '3' AS tsquery;
SELECT '{0,0}'::real[] <-> '{3,4}' AS euclidean, '{0,0}' <+> '{3,4}'::float8[] AS manhattan, '{3,4}'::real[] <=> ARRAY[4, 3] AS cosine,
       '{1,2}'::integer[] # 2 AS intarray, '{1,2}'::integer[] <#> '{3,4}'::real[] AS inner_product;
DROP EXTENSION cube;
DROP EXTENSION intarray;
DROP EXTENSION pg_trgm;
