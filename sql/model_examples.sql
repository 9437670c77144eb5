-- The examples of docs/tour.md, docs/word-movers.md and docs/sequence-probability.md

-- A model by hand: things to eat, people and their words lie apart. word2vec() learns such vectors from texts.
CREATE TABLE model (word text PRIMARY KEY, count bigint, vector real[], output_vector real[]);
INSERT INTO model VALUES
    ('president', 5, '{5.0,0.2,1.0}', '{1.0,0.1,0.2}'),
    ('chancellor', 3, '{4.8,0.1,1.3}', '{0.9,0.2,0.1}'),
    ('speaks', 7, '{3.0,0.5,4.0}', '{1.2,0.0,0.8}'),
    ('greets', 4, '{3.2,0.4,3.5}', '{1.1,0.1,0.7}'),
    ('press', 4, '{3.5,0.3,4.4}', '{0.4,0.0,1.0}'),
    ('media', 3, '{3.3,0.2,4.6}', '{0.3,0.1,1.1}'),
    ('band', 2, '{0.4,2.0,4.0}', '{0.1,0.6,0.5}'),
    ('bread', 6, '{0.1,6.0,0.3}', '{0.0,1.3,0.1}'),
    ('eats', 6, '{0.6,5.2,1.5}', '{0.3,1.1,0.2}');

CREATE TABLE sentences (id bigint PRIMARY KEY, body text);
INSERT INTO sentences VALUES
    (1, 'the president greets the press'),
    (2, 'the chancellor speaks to the media'),
    (3, 'the band greets the president'),
    (4, 'the president eats bread');

SELECT id, round(distance::numeric, 4) AS distance
FROM word_movers_distance(
    'SELECT word, vector FROM model',
    $$SELECT b.id, string_to_array(a.body, ' '), string_to_array(b.body, ' ')
      FROM sentences a, sentences b WHERE a.id = 1 ORDER BY b.id$$)
ORDER BY distance;

SELECT id, round(distance::numeric, 4) AS bound
FROM word_movers_distance(
    'SELECT word, vector FROM model',
    $$SELECT b.id, string_to_array(a.body, ' '), string_to_array(b.body, ' ')
      FROM sentences a, sentences b WHERE a.id = 1 ORDER BY b.id$$,
    method => 'relaxed')
ORDER BY bound;

-- The nearest sentence of each one: bounds first, so that few distances have to be exact.
CREATE TABLE comparisons AS
SELECT x.id * 10 + y.id AS id, x.id AS a, y.id AS b,
       string_to_array(x.body, ' ') AS first, string_to_array(y.body, ' ') AS second
FROM sentences x JOIN sentences y ON x.id < y.id;
CREATE TABLE bounds AS
SELECT id, distance AS bound
FROM word_movers_distance('TABLE model', 'SELECT id, first, second FROM comparisons', method => 'relaxed');
SELECT a, b, round(distance::numeric, 4) AS distance
FROM comparisons
JOIN word_movers_distance(
    'TABLE model',
    'SELECT id, first, second FROM comparisons JOIN bounds USING (id) WHERE bound < 2.5') USING (id)
WHERE distance < 2.5
ORDER BY distance;

SELECT id, round(probability::numeric, 4) AS probability, token_probabilities
FROM sequence_probability(
    'SELECT word, vector, output_vector FROM model',
    $$SELECT id, string_to_array(body, ' ') FROM sentences ORDER BY id$$)
ORDER BY probability DESC;

-- Where a sequence is least likely
SELECT s.id, t.place, (string_to_array(body, ' '))[t.place] AS token, round(t.p::numeric, 4) AS probability
FROM sentences AS s
JOIN sequence_probability('TABLE model', $$SELECT id, string_to_array(body, ' ') FROM sentences$$) AS f USING (id),
     LATERAL (SELECT place, p FROM unnest(f.token_probabilities) WITH ORDINALITY AS u(p, place)
              WHERE p IS NOT NULL ORDER BY p, place LIMIT 1) AS t
ORDER BY s.id;

DROP TABLE model, sentences, comparisons, bounds;
