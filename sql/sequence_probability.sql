-- sequence_probability

-- One dimension: after a come a, b and c with the weights exp(1), exp(2) and exp(0); b's vector is zero, so all are alike.
CREATE TABLE next_words (word text PRIMARY KEY, count bigint, vector real[], output_vector real[]);
INSERT INTO next_words VALUES ('a', 3, '{1}', '{1}'), ('b', 2, '{0}', '{2}'), ('c', 1, '{-1}', '{0}');
SELECT id, round(probability::numeric, 6) AS probability, ARRAY(SELECT round(p::numeric, 6) FROM unnest(token_probabilities) WITH ORDINALITY AS t(p, i) ORDER BY i) AS token_probabilities
FROM sequence_probability('TABLE next_words', $$
    VALUES (1::bigint, '{a,b}'::text[]), (2, '{b,c}'), (3, '{a,b,b,c,a}'), (4, '{c,c,c}')$$);
-- By the formula
SELECT round((exp(2.0) / (exp(1.0) + exp(2.0) + 1) / 2)::numeric, 6) AS first, round((1 / 3.0 / 2)::numeric, 6) AS second;
-- Every argument by name, ids of another type
SELECT id, round(probability::numeric, 6) AS probability FROM sequence_probability(model => 'TABLE next_words', sequences => $$VALUES ('x', '{a,b}'::text[])$$, id_type => NULL::text);
-- Tokens that the model does not have, and nulls, are skipped: what follows them follows what was before. One token: 0. None: no probability.
SELECT s.id, round(probability::numeric, 6) AS probability, cardinality(token_probabilities) AS tokens,
       ARRAY(SELECT p IS NOT NULL FROM unnest(token_probabilities) WITH ORDINALITY AS t(p, i) ORDER BY i) AS known, token_probabilities
FROM sequence_probability('TABLE next_words', $$
    VALUES (1::bigint, '{x,a,y,NULL,b,z}'::text[]), (2, '{a}'), (3, '{x,a}'), (4, '{x}'), (5, '{}'), (6, NULL), (7, '{NULL}'), (8, '{b,b}')$$) AS s;
-- The same tokens with others between them
SELECT a.probability = b.probability AS same
FROM sequence_probability('TABLE next_words', $$VALUES (1::bigint, '{a,b,c,a}'::text[])$$) AS a
JOIN sequence_probability('TABLE next_words', $$VALUES (1::bigint, '{q,a,q,b,q,q,c,a,q}'::text[])$$) AS b USING (id);
SELECT id FROM sequence_probability('TABLE next_words', $$SELECT i % 3, '{a,b}'::text[] FROM generate_series(1, 5) AS i$$, NULL::integer);
SELECT * FROM sequence_probability('TABLE next_words', 'SELECT 1::bigint, ''{a}''::text[] WHERE false');
SELECT * FROM sequence_probability('SELECT * FROM next_words WHERE false', 'SELECT 1::bigint, ''{a}''::text[]');
-- The columns: by their names, wherever they stand, or just the three
SELECT count(*) FROM sequence_probability('SELECT output_vector, 1 AS note, vector, word FROM next_words', $$VALUES (1::bigint, '{a,b}'::text[])$$);
SELECT round(probability::numeric, 6) AS probability FROM sequence_probability('SELECT word AS w, vector AS v, output_vector::double precision[] AS o FROM next_words', $$VALUES (1::bigint, '{a,b}'::varchar[])$$);

-- Against its definition
CREATE TABLE model AS
SELECT 'w' || i AS word, ARRAY(SELECT (hashint8extended(i, j) % 1000)::real / 1000 FROM generate_series(1, 40) AS j) AS vector,
       ARRAY(SELECT (hashint8extended(i, 100 + j) % 1000)::real / 1000 FROM generate_series(1, 40) AS j) AS output_vector
FROM generate_series(1, 60) AS i;
CREATE TABLE sequences AS
SELECT s AS id, ARRAY(SELECT 'w' || 1 + (s * 7 + i * i) % 60 FROM generate_series(1, s % 12) AS i) AS tokens FROM generate_series(1::bigint, 50) AS s;
WITH powers AS (
    SELECT a.word, b.word AS next, (SELECT exp(sum(x::double precision * y)) FROM unnest(a.vector, b.output_vector) AS e(x, y)) AS power FROM model a, model b
), probabilities AS (
    SELECT word, next, power / sum(power) OVER (PARTITION BY word) AS p FROM powers
), expected AS (
    SELECT s.id, coalesce(sum(p.p), 0) / nullif(cardinality(s.tokens), 0) AS probability
    FROM sequences s LEFT JOIN generate_series(2, 12) AS i ON i <= cardinality(s.tokens) LEFT JOIN probabilities p ON p.word = s.tokens[i - 1] AND p.next = s.tokens[i]
    GROUP BY s.id, s.tokens
)
SELECT count(*), count(*) FILTER (WHERE abs(f.probability - e.probability) > 1e-5 * e.probability) AS wrong,
       count(*) FILTER (WHERE f.probability IS NULL) AS without, count(*) FILTER (WHERE (f.probability IS NULL) <> (e.probability IS NULL)) AS wrongly
FROM sequence_probability('TABLE model', 'TABLE sequences') AS f JOIN expected AS e USING (id);
-- All that may follow a word adds up to one.
SELECT round(sum(token_probabilities[2])::numeric, 5) AS sum FROM sequence_probability('TABLE model', 'SELECT row_number() OVER (), ARRAY[''w1'', word] FROM model');

-- Errors
SELECT * FROM sequence_probability(NULL, 'TABLE sequences');
SELECT * FROM sequence_probability('TABLE model', NULL);
SELECT * FROM sequence_probability('SELECT word, vector FROM model', 'TABLE sequences');
SELECT * FROM sequence_probability('SELECT word, vector, output_vector AS o FROM model', 'TABLE sequences');
SELECT * FROM sequence_probability('SELECT word, vector, ''x'' AS output_vector FROM model', 'TABLE sequences');
SELECT * FROM sequence_probability('SELECT word, vector, CASE word WHEN ''w2'' THEN NULL ELSE output_vector END AS output_vector FROM model', 'TABLE sequences');
SELECT * FROM sequence_probability('SELECT word, vector, output_vector[2:] AS output_vector FROM model', 'TABLE sequences');
SELECT * FROM sequence_probability('SELECT * FROM next_words UNION ALL SELECT ''d'', 1, ''{1}'', ''{NaN}''', 'TABLE sequences');
SELECT * FROM sequence_probability('SELECT * FROM next_words UNION ALL SELECT ''d'', 1, ''{1}'', ''{1e30}''', 'TABLE sequences');
SELECT * FROM sequence_probability('SELECT * FROM next_words UNION ALL SELECT ''a'', 1, ''{1}'', ''{1}''', 'TABLE sequences');
SELECT * FROM sequence_probability('TABLE model', 'SELECT id FROM sequences');
SELECT * FROM sequence_probability('TABLE model', 'SELECT id, ''w1'' FROM sequences');
SELECT * FROM sequence_probability('TABLE model', 'SELECT id::text, tokens FROM sequences');
SELECT * FROM sequence_probability('TABLE model', 'SELECT nullif(id, 3), tokens FROM sequences');

DROP TABLE next_words, model, sequences;
