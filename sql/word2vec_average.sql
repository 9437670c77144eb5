-- word2vec_average
\set SHOW_CONTEXT never

CREATE TABLE models (model integer, word text, count bigint, vector real[], output_vector real[]);
INSERT INTO models VALUES
    (1, 'a', 10, '{1,2}', '{0,8}'), (1, 'b', 4, '{3,4}', '{1,1}'),
    (2, 'a', 30, '{5,-2}', '{4,0}'), (2, 'c', 30, '{7,7}', '{2,2}');
-- Of each word the mean of the models that have it, and the sum of the counts
SELECT * FROM word2vec_average('SELECT word, count, vector, output_vector FROM models');
SELECT * FROM word2vec_average('TABLE models', weights => 'count');
SELECT * FROM word2vec_average('SELECT * FROM models WHERE model = 1');
SELECT * FROM word2vec_average('SELECT * FROM models WHERE false');
-- Models that were trained from one model have its counts in theirs.
SELECT * FROM word2vec_average('TABLE models', initial => $$SELECT 'a'::text AS word, 10 AS count, '{9,9}'::real[] AS vector$$);
SELECT * FROM word2vec_average('TABLE models', initial => $$SELECT 'a'::text AS word, 10 AS count, '{9,9}'::real[] AS vector$$, weights => 'count');
-- Words that no model has met have their plain mean.
SELECT * FROM word2vec_average($$SELECT word, 0 AS count, vector, output_vector FROM models$$, weights => 'count') WHERE word = 'a';

-- Models of two halves of texts, trained from one model, against a plain mean; the order of the rows does not matter.
CREATE TABLE texts AS
SELECT i AS id, i % 3 AS shard, (SELECT string_agg('w' || floor(exp(4 * ('x' || left(md5(i || '-' || j), 8))::bit(32)::bigint / 4294967296.0))::text, ' ' ORDER BY j)
                      FROM generate_series(1, 20) AS j) AS body
FROM generate_series(1, 600) AS i;
CREATE TABLE start AS SELECT * FROM word2vec('SELECT id, body FROM texts WHERE id <= 60', dimensions => 8, epochs => 1, min_count => 1);
CREATE TABLE trained AS
SELECT shard, m.* FROM generate_series(0, 2) AS shard,
    LATERAL word2vec('SELECT id, body FROM texts WHERE shard = ' || shard, dimensions => 8, epochs => 2, min_count => 1, initial => 'TABLE start') AS m;
CREATE TABLE average AS SELECT * FROM word2vec_average('TABLE trained', initial => 'TABLE start');
SELECT count(*) AS words, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS differing
FROM average AS a FULL JOIN word2vec_average('SELECT * FROM trained ORDER BY md5(shard || word)', initial => 'TABLE start') AS b USING (word);
SELECT count(*) AS numbers, max(abs(a.vector[i] - m.vector)) < 1e-6 AS vectors, max(abs(a.output_vector[i] - m.output_vector)) < 1e-6 AS output_vectors
FROM average AS a JOIN (SELECT word, i, avg(vector[i]) AS vector, avg(output_vector[i]) AS output_vector
    FROM trained, generate_series(1, 8) AS i GROUP BY word, i) AS m USING (word);
SELECT count(*) AS words, count(*) FILTER (WHERE a.count IS DISTINCT FROM w.count + coalesce(s.count, 0)) AS differing
FROM average AS a FULL JOIN word_frequencies('SELECT body FROM texts') AS w USING (word) LEFT JOIN start AS s USING (word);
SELECT array_agg(word) = array_agg(word ORDER BY count DESC, word COLLATE "C") AS most_frequent_first FROM average;
-- Training goes on from the average.
SELECT count(*) > 0 AS trained FROM word2vec('SELECT id, body FROM texts', dimensions => 8, epochs => 1, initial => 'TABLE average');

-- What it refuses
SELECT * FROM word2vec_average(NULL);
SELECT * FROM word2vec_average('TABLE models', weights => NULL);
SELECT * FROM word2vec_average('TABLE models', weights => 'words');
SELECT * FROM word2vec_average('SELECT word, vector FROM models');
SELECT * FROM word2vec_average($$SELECT 'a', 1, '{1,2}'::real[], NULL::real[]$$);
SELECT * FROM word2vec_average($$VALUES ('a', NULL::integer, '{1,2}'::real[], '{1,2}'::real[])$$);
SELECT * FROM word2vec_average($$VALUES ('a', 1, '{1,2}'::real[], '{1,2}'::real[]), ('b', 1, '{1}', '{1}')$$);
SELECT * FROM word2vec_average($$VALUES ('a', 1, '{1,NaN}'::real[], '{1,2}'::real[])$$);
SELECT * FROM word2vec_average($$VALUES ('a', -1, '{1,2}'::real[], '{1,2}'::real[])$$);
SELECT * FROM word2vec_average('TABLE models', initial => 'TABLE start');
SELECT * FROM word2vec_average('TABLE models', initial => 'TABLE models');

DROP TABLE models, texts, start, trained, average;
