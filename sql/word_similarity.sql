-- word_similarity, word_similarity_pairs, word_cooccurrences, word_similarity_from_counts

-- The example of the 2015 thesis: "a" is left out and keeps its place.
CREATE TABLE example AS SELECT 1 AS id, ARRAY['I', 'have', NULL, 'black', 'cat'] AS words;
SELECT word, position, neighbor, count
FROM word_cooccurrences('TABLE example', min_count => 1, preset => 'thesis') ORDER BY word COLLATE "C", position;
-- The same by the server's parser and a configuration with stop words, in a window of 2
SELECT word, position, neighbor, count
FROM word_cooccurrences($$SELECT 'The red cat is black. Black cats ran.'$$, window_size => 2, min_count => 1, config => 'english', preset => 'thesis')
ORDER BY word COLLATE "C", position, neighbor COLLATE "C";
-- All places together: a pair counts in both words' rows, a word beside itself twice in its own.
SELECT word, position, neighbor, count
FROM word_cooccurrences($$VALUES (ARRAY['a', 'b', 'a', 'a'])$$, window_size => 2, min_count => 1, positions => false, weight => 'count', discount => 0)
ORDER BY word, neighbor;
-- Windows end with a text.
SELECT count(*) FROM word_cooccurrences($$VALUES (ARRAY['a', 'b']), (ARRAY['c', 'd'])$$, min_count => 1);

-- A few texts
CREATE TABLE texts (id bigint PRIMARY KEY, body text);
INSERT INTO texts VALUES
    (1, 'the cat drinks milk'), (2, 'the dog drinks water'), (3, 'a cat chases a mouse'),
    (4, 'a dog chases a ball'), (5, 'the cat sleeps'), (6, 'the dog sleeps'), (7, NULL), (8, '');
SELECT * FROM word_similarity('SELECT id, body FROM texts', 2, min_count => 2, preset => 'thesis', discount => 0.95);
SELECT word, neighbor, rank, round(similarity::numeric, 4) AS similarity
FROM word_similarity_pairs('SELECT body FROM texts', 2, min_count => 2, preset => 'thesis', discount => 0.95, measure => 'jaccard') ORDER BY word, rank;
SELECT * FROM word_similarity('SELECT body FROM texts WHERE false');
SELECT * FROM word_similarity('SELECT body FROM texts', min_count => 1000);
SELECT count(*) AS words, min(cardinality(neighbors)) AS fewest
FROM word_similarity('SELECT body FROM texts WHERE id < 7', vocabulary => 3, min_count => 1);
-- Texts given as their words; a text search configuration is of no use to them.
SELECT count(*) AS rows, count(*) FILTER (WHERE a = b) AS equal
FROM word_similarity('SELECT body FROM texts WHERE id < 7', min_count => 1) AS a
FULL JOIN word_similarity('SELECT string_to_array(body, '' '') FROM texts WHERE id < 7', min_count => 1) AS b USING (word);
SELECT word, neighbors FROM word_similarity($$VALUES ('猫 が 水 を 飲む'), ('犬 が 水 を 飲む')$$, 1, min_count => 1, preset => 'thesis') ORDER BY word COLLATE "C";

-- A larger corpus, whose formulas are computed in SQL besides
CREATE TABLE corpus AS
SELECT t AS id, (SELECT string_agg('w' || floor(exp(6 * ('x' || left(md5(t || '-' || i), 8))::bit(32)::bigint / 4294967296.0))::text, ' ' ORDER BY i)
                 FROM generate_series(1, 40) AS i) AS body
FROM generate_series(1, 500) AS t;
CREATE TABLE counts AS SELECT * FROM word_cooccurrences('SELECT body FROM corpus', min_count => 3, preset => 'thesis');
SELECT count(*) AS rows, sum(count) AS pairs, count(DISTINCT word) AS words, min(position), max(position) FROM counts;
-- Equation 3.7
SELECT max(abs(weight - greatest(0, exact))) < 0.0003 AS weights_are_right, count(*) FILTER (WHERE weight > 0) > 1000 AS many
FROM (SELECT weight, ln(count::float8 * sum(count) OVER (PARTITION BY position)
                        / (sum(count) OVER (PARTITION BY word, position) * sum(count) OVER (PARTITION BY position, neighbor))) AS exact
      FROM counts) AS c;
SELECT max(abs(c.weight - greatest(0, ln(greatest(d.count - 0.95, 0.01) / d.count * exp(d.exact))))) < 0.0003 AS discounted
FROM word_cooccurrences('SELECT body FROM corpus', min_count => 3, preset => 'thesis', discount => 0.95) AS c
JOIN (SELECT word, position, neighbor, count, ln(count::float8 * sum(count) OVER (PARTITION BY position)
                        / (sum(count) OVER (PARTITION BY word, position) * sum(count) OVER (PARTITION BY position, neighbor))) AS exact
      FROM counts) AS d USING (word, position, neighbor);
SELECT max(abs(c.weight - greatest(0, d.exact))) < 0.0003 AS ppmi
FROM word_cooccurrences('SELECT body FROM corpus', min_count => 3, preset => 'thesis', weight => 'ppmi') AS c
JOIN (SELECT word, position, neighbor, ln(count::float8 * sum(count) OVER ()
                        / (sum(count) OVER (PARTITION BY word) * sum(count) OVER (PARTITION BY position, neighbor))) AS exact
      FROM counts) AS d USING (word, position, neighbor);
-- Equation 3.8, and the other measures
CREATE TABLE features AS SELECT word, position, neighbor, weight::float8 FROM counts WHERE weight > 0;
CREATE TABLE exact AS
SELECT a.word, b.word AS neighbor, sum(a.weight + b.weight) / (ta.lin + tb.lin) AS lin,
       sum(a.weight * b.weight) / sqrt(ta.square * tb.square) AS cosine, count(*)::float8 / (ta.n + tb.n - count(*)) AS jaccard
FROM features AS a JOIN features AS b USING (position, neighbor)
JOIN (SELECT word, sum(weight) AS lin, sum(weight ^ 2) AS square, count(*) AS n FROM features GROUP BY word) AS ta ON ta.word = a.word
JOIN (SELECT word, sum(weight) AS lin, sum(weight ^ 2) AS square, count(*) AS n FROM features GROUP BY word) AS tb ON tb.word = b.word
WHERE a.word <> b.word GROUP BY a.word, b.word, ta.lin, tb.lin, ta.square, tb.square, ta.n, tb.n;
SELECT count(*) = (SELECT count(*) FROM exact) AS all_of_them,
       max(abs(p.similarity - e.lin)) < 0.000001 AS lin
FROM word_similarity_pairs('SELECT body FROM corpus', 1000, min_count => 3, preset => 'thesis') AS p JOIN exact AS e USING (word, neighbor);
SELECT max(abs(p.similarity - e.cosine)) < 0.000001 AS cosine, count(*) = (SELECT count(*) FROM exact) AS all_of_them
FROM word_similarity_pairs('SELECT body FROM corpus', 1000, min_count => 3, preset => 'thesis', measure => 'cosine') AS p JOIN exact AS e USING (word, neighbor);
SELECT max(abs(p.similarity - e.jaccard)) < 0.000001 AS jaccard, count(*) = (SELECT count(*) FROM exact) AS all_of_them
FROM word_similarity_pairs('SELECT body FROM corpus', 1000, min_count => 3, preset => 'thesis', measure => 'jaccard') AS p JOIN exact AS e USING (word, neighbor);
-- Ranks are in the order of similarities, best first.
SELECT count(*) FILTER (WHERE similarity > before) AS out_of_order
FROM (SELECT similarity, lag(similarity) OVER (PARTITION BY word ORDER BY rank) AS before
      FROM word_similarity_pairs('SELECT body FROM corpus', 30)) AS p;
-- The arrays are the pairs.
SELECT count(*) AS different
FROM word_similarity('SELECT body FROM corpus', 30) AS a
FULL JOIN (SELECT word, array_agg(neighbor ORDER BY rank) AS neighbors, array_agg(similarity ORDER BY rank) AS similarities
           FROM word_similarity_pairs('SELECT body FROM corpus', 30) GROUP BY word) AS p USING (word)
WHERE (a.neighbors, a.similarities) IS DISTINCT FROM (p.neighbors, p.similarities);
-- Neither threads nor memory change an answer.
CREATE TABLE answers AS SELECT * FROM word_similarity('SELECT body FROM corpus', 30);
SET gputext.cpu_threads = 1;
SELECT count(*) AS words, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM answers AS a FULL JOIN word_similarity('SELECT body FROM corpus', 30) AS b USING (word);
RESET gputext.cpu_threads;
SET gputext.host_memory_limit = '1MB';
SELECT count(*) AS words, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM answers AS a FULL JOIN word_similarity('SELECT body FROM corpus', 30) AS b USING (word);
RESET gputext.host_memory_limit;

-- Counts that were kept: the same answer, whatever their order
SELECT count(*) AS words, count(*) FILTER (WHERE a.similarities IS DISTINCT FROM b.similarities) AS different
FROM answers AS a FULL JOIN word_similarity_from_counts(
    'SELECT * FROM word_cooccurrences(''SELECT body FROM corpus'') ORDER BY weight, count', 30) AS b USING (word);
-- Of two halves of the texts together
SELECT count(*) AS words, count(*) FILTER (WHERE a.similarities IS DISTINCT FROM b.similarities) AS different
FROM word_similarity('SELECT body FROM corpus', 30, min_count => 1, measure => 'cosine', positions => false) AS a
FULL JOIN word_similarity_from_counts(
    'SELECT * FROM word_cooccurrences(''SELECT body FROM corpus WHERE id % 2 = 0'', min_count => 1, positions => false) UNION ALL
     SELECT * FROM word_cooccurrences(''SELECT body FROM corpus WHERE id % 2 = 1'', min_count => 1, positions => false)',
    30, measure => 'cosine') AS b USING (word);
SELECT * FROM word_similarity_from_counts($$VALUES ('cat'::text, 1, 'milk'::text, 3), ('milk', -1, 'cat', 3), ('dog', 1, 'milk', 0)$$, discount => 0);
-- A preset stands for values of its own, and an argument that is given counts before it.
SELECT count(*) > 100 AS many, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM word_similarity('SELECT body FROM corpus', 9, min_count => 3, preset => 'default') AS a
FULL JOIN word_similarity('SELECT body FROM corpus', 9, min_count => 3, window_size => 5, measure => 'cosine', positions => false, weight => 'lin', discount => 0.85, preset => 'thesis') AS b USING (word);
SELECT count(*) > 100 AS many, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM word_similarity_pairs('SELECT body FROM corpus', 9, min_count => 3, preset => 'default') AS a
FULL JOIN word_similarity_pairs('SELECT body FROM corpus', 9, min_count => 3, window_size => 5, measure => 'cosine', positions => false, weight => 'lin', discount => 0.85, preset => 'thesis') AS b USING (word, rank);
SELECT count(*) > 100 AS many, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM word_cooccurrences('SELECT body FROM corpus', min_count => 3, preset => 'default') AS a
FULL JOIN word_cooccurrences('SELECT body FROM corpus', min_count => 3, window_size => 5, positions => false, weight => 'lin', discount => 0.85, preset => 'thesis') AS b USING (word, "position", neighbor);
CREATE TABLE default_counts AS SELECT * FROM word_cooccurrences('SELECT body FROM corpus', min_count => 3, preset => 'default');
SELECT count(*) > 100 AS many, count(*) FILTER (WHERE a IS DISTINCT FROM b OR a.similarities IS DISTINCT FROM c.similarities) AS different
FROM word_similarity_from_counts('TABLE default_counts', 9, preset => 'default') AS a
FULL JOIN word_similarity_from_counts('TABLE default_counts', 9, measure => 'cosine', weight => 'lin', discount => 0.85, preset => 'thesis') AS b USING (word)
FULL JOIN word_similarity('SELECT body FROM corpus', 9, min_count => 3, preset => 'default') AS c USING (word);
SELECT count(*) > 100 AS many, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM word_similarity('SELECT body FROM corpus', 9, min_count => 3, preset => 'thesis') AS a
FULL JOIN word_similarity('SELECT body FROM corpus', 9, min_count => 3, window_size => 3, measure => 'lin', positions => true, weight => 'lin', discount => 0, preset => 'default') AS b USING (word);
SELECT count(*) > 100 AS many, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM word_similarity_pairs('SELECT body FROM corpus', 9, min_count => 3, preset => 'thesis') AS a
FULL JOIN word_similarity_pairs('SELECT body FROM corpus', 9, min_count => 3, window_size => 3, measure => 'lin', positions => true, weight => 'lin', discount => 0, preset => 'default') AS b USING (word, rank);
SELECT count(*) > 100 AS many, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM word_cooccurrences('SELECT body FROM corpus', min_count => 3, preset => 'thesis') AS a
FULL JOIN word_cooccurrences('SELECT body FROM corpus', min_count => 3, window_size => 3, positions => true, weight => 'lin', discount => 0, preset => 'default') AS b USING (word, "position", neighbor);
CREATE TABLE thesis_counts AS SELECT * FROM word_cooccurrences('SELECT body FROM corpus', min_count => 3, preset => 'thesis');
SELECT count(*) > 100 AS many, count(*) FILTER (WHERE a IS DISTINCT FROM b OR a.similarities IS DISTINCT FROM c.similarities) AS different
FROM word_similarity_from_counts('TABLE thesis_counts', 9, preset => 'thesis') AS a
FULL JOIN word_similarity_from_counts('TABLE thesis_counts', 9, measure => 'lin', weight => 'lin', discount => 0, preset => 'default') AS b USING (word)
FULL JOIN word_similarity('SELECT body FROM corpus', 9, min_count => 3, preset => 'thesis') AS c USING (word);
-- The default is the preset default, and nulls are as arguments that were left out.
SELECT count(*) AS words, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different
FROM answers AS a FULL JOIN word_similarity('SELECT body FROM corpus', 30, NULL, measure => NULL, weight => NULL, positions => NULL, discount => NULL,
                                            preset => 'default') AS b USING (word);
-- Fewer columns
SELECT count(*) AS words, count(*) FILTER (WHERE a IS DISTINCT FROM b) > 0 AS different
FROM answers AS a FULL JOIN word_similarity('SELECT body FROM corpus', 30, features => 60) AS b USING (word);

-- Errors

SELECT * FROM word_similarity(NULL);
SELECT * FROM word_similarity('TABLE texts', 0);
SELECT * FROM word_similarity('TABLE texts', NULL);
SELECT * FROM word_similarity('TABLE texts', window_size => 0);
SELECT * FROM word_similarity('TABLE texts', window_size => 101);
SELECT * FROM word_similarity('TABLE texts', vocabulary => -1);
SELECT * FROM word_similarity('TABLE texts', min_count => 0);
SELECT * FROM word_similarity('TABLE texts', features => 0);
SELECT * FROM word_similarity('TABLE texts', measure => 'Lin');
SELECT * FROM word_similarity('TABLE texts', weight => 'tfidf');
SELECT * FROM word_similarity('TABLE texts', preset => 'lin');
SELECT * FROM word_similarity('TABLE texts', preset => NULL);
SELECT * FROM word_similarity('TABLE texts', discount => -1);
SELECT * FROM word_similarity('TABLE texts', discount => 'NaN');
SELECT * FROM word_similarity('TABLE texts', config => 'nonsense');
SELECT * FROM word_similarity('SELECT id, body, 1 FROM texts');
SELECT * FROM word_similarity('SELECT id FROM texts');
SELECT * FROM word_similarity('SELECT body::bytea FROM texts');
SELECT * FROM word_similarity_from_counts('SELECT word, position, neighbor FROM counts');
SELECT * FROM word_similarity_from_counts('SELECT word, position, neighbor, weight FROM counts');
SELECT * FROM word_similarity_from_counts('SELECT word, position::text, neighbor, count FROM counts');
SELECT * FROM word_similarity_from_counts($$VALUES ('a'::text, 1, 'b'::text, -3)$$);
SELECT * FROM word_similarity_from_counts($$VALUES ('a'::text, 1, 'b'::text, 3), ('a', 0, 'b', 3)$$);
SELECT * FROM word_similarity_from_counts($$VALUES ('a'::text, 101, 'b'::text, 3)$$);
SELECT * FROM word_similarity_from_counts($$VALUES ('a'::text, 1, 'b'::text, 3000000000), ('a', 1, 'b', 3000000000)$$);
SELECT * FROM word_similarity_from_counts($$VALUES (NULL, 1, 'b'::text, 3), ('a', NULL, 'b', 3)$$);
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM word_similarity($$SELECT string_agg('w' || i, ' ') FROM generate_series(1, 5000) AS i$$, 100000, min_count => 1);
RESET gputext.host_memory_limit;

DROP TABLE example, texts, corpus, counts, features, exact, answers, default_counts, thesis_counts;
