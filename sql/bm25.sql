-- gpu_knn and gpu_knn_within by BM25, tfidf's BM25 weights, and inner products of weights of terms

SET default_text_search_config = 'pg_catalog.english';
CREATE TABLE articles (id bigint PRIMARY KEY, lang text, body text);
INSERT INTO articles VALUES
    (1, 'en', 'How to boil an egg: boil the water, add the egg, wait seven minutes.'),
    (2, 'en', 'Poaching eggs without vinegar. The water must not boil.'),
    (3, 'en', 'Changing a tyre: jack, wheel nuts, spare wheel.'),
    (4, 'en', 'The wheels of a train have no tyres of rubber.'),
    (5, 'en', ''),
    (6, 'en', NULL);
CREATE TABLE questions (id bigint PRIMARY KEY, body text);
INSERT INTO questions VALUES (1, 'How long does it take to boil eggs, and how much water?'), (2, 'Which nuts fit my wheel?'), (3, 'zebra'), (4, 'the');

SELECT query_id, item_id, rank, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', 3, metric => 'bm25');
SELECT query_id, item_id, rank, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', k => 2, exclude_key => false, metric => 'bm25', k1 => 2, b => 0);
-- At least so high a score
SELECT query_id, item_id, rank, round(distance::numeric, 6) AS distance
FROM gpu_knn_within('SELECT id, body FROM questions', 'SELECT id, body FROM articles', radius => -0.8, metric => 'bm25');
SELECT id, term, round(weight::numeric, 6) AS weight FROM tfidf('SELECT id, body FROM articles WHERE id < 3', bm25 => true);

-- Against BM25 in SQL, as Lucene has it. Statistics are of the items alone, and a query's weights are its counts.

CREATE FUNCTION counts_of(body text, config regconfig) RETURNS TABLE (term text, count bigint)
LANGUAGE sql STABLE AS 'SELECT lexeme, cardinality(positions) FROM unnest(to_tsvector(config, body))';
CREATE FUNCTION plain_weights(items text, config regconfig, k1 double precision, b double precision, fewest integer DEFAULT 1)
RETURNS TABLE (id bigint, term text, weight double precision) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format($q$
        WITH items AS MATERIALIZED (SELECT * FROM (%s) AS i (id, body) WHERE body IS NOT NULL),
        counts AS MATERIALIZED (SELECT i.id, c.term, c.count FROM items AS i, counts_of(i.body, $1) AS c),
        lengths AS (SELECT i.id, coalesce(sum(c.count), 0)::double precision AS length FROM items AS i LEFT JOIN counts AS c USING (id) GROUP BY i.id),
        statistics AS (SELECT count(*)::double precision AS n, avg(length) AS average FROM lengths),
        factors AS (SELECT c.term, ln(1 + (min(n) - count(*) + 0.5) / (count(*) + 0.5)) AS idf FROM counts AS c, statistics GROUP BY c.term HAVING count(*) >= $4)
        SELECT c.id, c.term, idf * (c.count / (c.count + $2 * (1 - $3 + $3 * length / average)))
        FROM counts AS c JOIN lengths USING (id) JOIN factors USING (term), statistics$q$, items)
    USING config, k1, b, fewest;
END
$$;
CREATE FUNCTION plain_scores(queries text, items text, config regconfig, k1 double precision, b double precision, fewest integer DEFAULT 1)
RETURNS TABLE (query_id bigint, item_id bigint, score double precision) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format($q$
        SELECT q.id, w.id, sum(c.count * w.weight)
        FROM (%s) AS q (id, body), counts_of(q.body, $1) AS c JOIN plain_weights(%L, $1, $2, $3, $4) AS w USING (term)
        GROUP BY q.id, w.id$q$, queries, items)
    USING config, k1, b, fewest;
END
$$;
CREATE TABLE stories AS
SELECT i::bigint AS id, i % 7 AS author, (SELECT string_agg('w' || floor(exp((i * 7919 + j * 104729 + i * j) % 997 / 997.0 * ln(400)))::text, ' ')
                         FROM generate_series(1, 5 + i * 31 % 60) AS j) AS body
FROM generate_series(1, 300) AS i;
CREATE VIEW asked AS SELECT id, concat('w2 w2 w0 unknown ', left(body, 40)) AS body FROM stories WHERE id % 9 = 0;
-- Weights are rounded to single precision, as Lucene and bm25s do: 2^-24 of them.
SELECT k1, b, fewest, count(*) AS terms, bool_and(abs(p.weight - t.weight) <= 6e-8 * t.weight) AS equal
FROM (VALUES (1.2, 0.75, 1), (0, 0.75, 3), (2, 0, 1), (1.5, 1, 40)) AS v (k1, b, fewest),
     LATERAL plain_weights('SELECT id, body FROM stories', 'simple', k1, b, fewest) AS p
     FULL JOIN LATERAL tfidf('SELECT id, body FROM stories', bm25 => true, config => 'simple', min_document_frequency => fewest, k1 => v.k1, b => v.b) AS t USING (id, term)
GROUP BY k1, b, fewest ORDER BY k1;
SELECT k1, b, fewest, count(*) AS pairs, count(f.distance) AS found, bool_and(abs(p.score + f.distance) <= 1e-7 * p.score) AS equal
FROM (VALUES (1.2, 0.75, 1), (0, 0.75, 3), (2, 0, 1), (1.5, 1, 40)) AS v (k1, b, fewest),
     LATERAL plain_scores('TABLE asked', 'SELECT id, body FROM stories', 'simple', k1, b, fewest) AS p
     FULL JOIN LATERAL gpu_knn('TABLE asked', 'SELECT id, body FROM stories', 1000, false, metric => 'bm25', config => 'simple', min_document_frequency => fewest, k1 => v.k1, b => v.b) AS f
     USING (query_id, item_id)
GROUP BY k1, b, fewest ORDER BY k1;
-- The k best are the first of all, and those within a distance, too. Ranks follow distances, then ids.
CREATE TABLE everything AS SELECT * FROM gpu_knn('TABLE asked', 'SELECT id, body FROM stories', 1000, metric => 'bm25', config => 'simple');
SELECT count(*) FILTER (WHERE rank <> place) AS wrong FROM (SELECT *, row_number() OVER (PARTITION BY query_id ORDER BY distance, item_id) AS place FROM everything) AS e;
SELECT count(*) AS rows, count(e.rank) AS common
FROM gpu_knn('TABLE asked', 'SELECT id, body FROM stories', 7, metric => 'bm25', config => 'simple') AS n LEFT JOIN everything AS e USING (query_id, item_id, rank, distance);
SELECT (SELECT count(*) FROM everything WHERE distance <= -3) AS wanted, count(*) AS rows, count(e.rank) AS common
FROM gpu_knn_within('TABLE asked', 'SELECT id, body FROM stories', -3, metric => 'bm25', config => 'simple') AS n LEFT JOIN everything AS e USING (query_id, item_id, rank, distance);
-- The sums are of the weights that tfidf gives.
SELECT count(*) AS pairs, bool_and(abs(e.distance + s.score) <= 1e-14 * s.score) AS equal
FROM everything AS e FULL JOIN (
    SELECT q.id AS query_id, t.id AS item_id, sum(c.count * t.weight) AS score
    FROM asked AS q, counts_of(q.body, 'simple') AS c JOIN tfidf('SELECT id, body FROM stories', true, 'simple') AS t USING (term) GROUP BY q.id, t.id) AS s USING (query_id, item_id);
-- A tsvector is as good as its text, to the last bit.
SELECT count(*) AS rows, count(e.rank) AS common
FROM gpu_knn('SELECT id, to_tsvector(''simple'', body) FROM asked', 'SELECT id, to_tsvector(''simple'', body) FROM stories', 1000, metric => 'bm25') AS n
FULL JOIN everything AS e USING (query_id, item_id, rank, distance);

-- What distinguishes it from tf-idf and cosine: a query that has each word twice has twice the scores, and the length of an item
-- counts by its own formula only.
SELECT metric, count(*) AS rows, bool_and(abs(t.distance - o.distance) < 1e-14) AS same, bool_and(abs(t.distance - 2 * o.distance) < 1e-14) AS doubled
FROM (VALUES ('cosine'), ('bm25')) AS v (metric),
     LATERAL gpu_knn('TABLE asked', 'SELECT id, body FROM stories', 9, metric => metric, config => 'simple') AS o
     JOIN LATERAL gpu_knn('SELECT id, concat(body, '' '', body) FROM asked', 'SELECT id, body FROM stories', 9, metric => metric, config => 'simple') AS t USING (query_id, item_id)
GROUP BY metric ORDER BY metric;
-- Neither other queries nor their terms change anything; another item does.
SELECT count(*) AS rows, count(e.rank) AS common
FROM gpu_knn('SELECT id, body FROM asked WHERE id < 100', 'SELECT id, body FROM stories', 1000, metric => 'bm25', config => 'simple') AS n LEFT JOIN everything AS e USING (query_id, item_id, rank, distance);
SELECT count(*) AS rows, count(e.rank) AS common
FROM gpu_knn('TABLE asked', 'SELECT id, body FROM stories UNION ALL SELECT 301, ''of others''', 1000, metric => 'bm25', config => 'simple') AS n LEFT JOIN everything AS e USING (query_id, item_id, distance);
-- Keys leave out pairs, and change no score.
CREATE VIEW keyed AS SELECT a.id, a.body, s.author FROM asked AS a JOIN stories AS s USING (id);
SELECT count(*) AS rows, count(e.rank) AS common, (SELECT count(*) FROM everything AS e JOIN keyed AS q ON q.id = query_id JOIN stories AS s ON s.id = item_id WHERE s.author = q.author) AS wanted
FROM gpu_knn('TABLE keyed', 'SELECT id, body, author FROM stories', 1000, metric => 'bm25', config => 'simple') AS n LEFT JOIN everything AS e USING (query_id, item_id, distance);
SELECT count(*) AS rows, count(e.rank) AS common, (SELECT count(*) FROM everything AS e JOIN keyed AS q ON q.id = query_id JOIN stories AS s ON s.id = item_id WHERE s.author <> q.author) AS wanted
FROM gpu_knn('TABLE keyed', 'SELECT id, body, author FROM stories', 1000, true, metric => 'bm25', config => 'simple') AS n LEFT JOIN everything AS e USING (query_id, item_id, distance);
SELECT count(*) AS rows, count(e.rank) AS common, (SELECT count(*) FROM everything WHERE query_id <> item_id) AS wanted
FROM gpu_knn('TABLE asked', 'SELECT id, body FROM stories', 1000, metric => 'bm25', config => 'simple', exclude_self => true) AS n LEFT JOIN everything AS e USING (query_id, item_id, distance);
-- Ids of another type; few queries, which are searched another way; no items
SELECT * FROM gpu_knn($$VALUES ('a', 'egg')$$, $$VALUES ('x', 'egg egg'), ('y', 'tyre'), ('z', 'an egg a day')$$, NULL::text, 2, metric => 'bm25');
SELECT count(*) AS rows, count(e.rank) AS common
FROM gpu_knn('SELECT id, body FROM asked WHERE id = 9', 'SELECT id, body FROM stories', 1000, metric => 'bm25', config => 'simple') AS n LEFT JOIN everything AS e USING (query_id, item_id, rank, distance);
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions LIMIT 0', 2, metric => 'bm25');
SELECT * FROM gpu_knn('TABLE questions', $$VALUES (1, ''), (2, 'the')$$, 2, metric => 'bm25');

-- Several servers: the statistics of all, to the last bit
CREATE TABLE frequencies AS
SELECT term, sum(documents) AS documents, min(first_id) AS first_id, sum(occurrences) AS occurrences
FROM generate_series(0, 2) AS shard, LATERAL tfidf_frequencies('SELECT id, body FROM stories WHERE id % 3 = ' || shard, config => 'simple') GROUP BY term;
SELECT term, documents, occurrences FROM frequencies WHERE term IS NULL OR term = 'w2' ORDER BY term;
SELECT count(*) AS rows, count(e.rank) AS of_one, count(n.rank) AS of_three
FROM (SELECT n.* FROM generate_series(0, 2) AS shard, LATERAL gpu_knn('TABLE asked', 'SELECT id, body FROM stories WHERE id % 3 = ' || shard, 1000, false, metric => 'bm25', config => 'simple', frequencies => 'TABLE frequencies') AS n) AS n
FULL JOIN everything AS e USING (query_id, item_id, distance);
SELECT count(*) AS terms, count(*) FILTER (WHERE o.weight IS DISTINCT FROM s.weight) AS differing
FROM tfidf('SELECT id, body FROM stories', true, 'simple', k1 => 1.6) AS o FULL JOIN (
    SELECT s.* FROM generate_series(0, 2) AS shard, LATERAL tfidf_from_frequencies('SELECT id, body FROM stories WHERE id % 3 = ' || shard, 'TABLE frequencies', config => 'simple', bm25 => true, k1 => 1.6) AS s) AS s USING (id, term);
-- Without BM25 the functions are those that there were.
SELECT count(*) AS terms, count(*) FILTER (WHERE o.weight IS DISTINCT FROM s.weight) AS differing
FROM tfidf('SELECT id, body FROM stories', config => 'simple') AS o FULL JOIN tfidf('SELECT id, body FROM stories', false, 'simple') AS s USING (id, term);

-- Inner products of weights that were computed elsewhere: those of tfidf give BM25's answers.
CREATE TABLE numbers AS SELECT term, row_number() OVER (ORDER BY min(id), term COLLATE "C")::integer AS number FROM tfidf('SELECT id, body FROM stories', true, 'simple') GROUP BY term;
CREATE TABLE weighed AS SELECT id, array_agg(number) AS terms, array_agg(weight::real) AS weights FROM tfidf('SELECT id, body FROM stories', true, 'simple') JOIN numbers USING (term) GROUP BY id;
CREATE TABLE counted AS SELECT q.id, array_agg(number) AS terms, array_agg(count::real) AS weights FROM asked AS q, counts_of(q.body, 'simple') JOIN numbers USING (term) GROUP BY q.id;
SELECT count(*) AS rows, bool_and(abs(n.distance - e.distance) <= -1e-14 * e.distance) AS equal
FROM gpu_knn('TABLE counted', 'TABLE weighed', 1000, metric => 'inner_product') AS n FULL JOIN everything AS e USING (query_id, item_id);
SELECT * FROM gpu_knn($$VALUES (1, '{1,2}'::integer[], '{1,-2}'::real[])$$, $$VALUES (1, '{1}'::integer[], '{3}'::real[]), (2, '{2}', '{3}'), (3, '{7}', '{3}'), (4, '{2,1}', '{2,4}')$$, 5, metric => 'inner_product');

-- Hybrid search: reciprocal rank fusion of words and vectors
CREATE TABLE notes (id bigint PRIMARY KEY, body text, embedding real[]);
INSERT INTO notes SELECT id, body, ARRAY[sin(id), cos(id), sin(id * 0.37)]::real[] FROM stories;
CREATE TABLE searches AS SELECT id, body, ARRAY[sin(id), cos(id), sin(id * 0.37) + 0.1]::real[] AS embedding FROM asked WHERE id <= 27;
CREATE TABLE fused AS
SELECT query_id, item_id, row_number() OVER (PARTITION BY query_id ORDER BY sum(1.0 / (60 + rank)) DESC, item_id) AS rank, sum(1.0 / (60 + rank)) AS score
FROM (SELECT query_id, item_id, rank FROM gpu_knn('SELECT id, body FROM searches', 'SELECT id, body FROM notes', k => 50, metric => 'bm25', config => 'simple')
      UNION ALL
      SELECT query_id, item_id, rank FROM gpu_knn('SELECT id, embedding FROM searches', 'SELECT id, embedding FROM notes', k => 50)) AS found
GROUP BY query_id, item_id;
SELECT f.query_id, f.item_id, f.rank, round(f.score, 6) AS score FROM fused AS f WHERE rank <= 3 ORDER BY query_id, rank;
-- In both lists: the ranks that a sort of all scores and distances gives
WITH words AS (SELECT query_id, item_id, row_number() OVER (PARTITION BY query_id ORDER BY distance, item_id) AS rank
               FROM gpu_knn_within('SELECT id, body FROM searches', 'SELECT id, body FROM notes', 0, metric => 'bm25', config => 'simple')),
vectors AS (SELECT s.id AS query_id, n.id AS item_id, row_number() OVER (PARTITION BY s.id ORDER BY s.embedding <=> n.embedding, n.id) AS rank FROM searches AS s, notes AS n)
SELECT count(*) AS rows, bool_and(abs(f.score - coalesce(1.0 / (60 + w.rank), 0) - coalesce(1.0 / (60 + v.rank), 0)) < 1e-12) AS equal
FROM fused AS f LEFT JOIN (SELECT * FROM words WHERE rank <= 50) AS w USING (query_id, item_id) LEFT JOIN (SELECT * FROM vectors WHERE rank <= 50) AS v USING (query_id, item_id);

-- Errors

\set SHOW_CONTEXT never
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', k1 => -1);
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', k1 => 'NaN');
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', k1 => 1e300);
SELECT query_id, item_id FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', 1, false, metric => 'bm25', k1 => 1000000);
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', k1 => 'infinity');
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', b => 1.1);
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', b => NULL);
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, k1 => 2);
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'levenshtein', b => 0.5);
SELECT * FROM gpu_knn('SELECT 1, ''{1}''::real[]', 'SELECT 1, ''{1}''::real[]', 1, metric => 'bm25');
SELECT * FROM gpu_knn('TABLE counted', 'TABLE weighed', 1, metric => 'bm25');
SELECT * FROM gpu_knn('TABLE counted', 'TABLE weighed', 1, metric => 'euclidean');
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, metric => 'inner_product');
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, metric => 'BM25');
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', frequencies => 'SELECT term, documents, first_id FROM frequencies');
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', frequencies => 'SELECT term, documents, first_id, term FROM frequencies');
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', frequencies => 'SELECT term, documents, first_id, NULL::bigint FROM frequencies');
SELECT * FROM gpu_knn('TABLE questions', 'TABLE questions', 1, false, metric => 'bm25', frequencies => 'SELECT term, documents, first_id, -occurrences FROM frequencies');
SELECT * FROM tfidf('TABLE questions', bm25 => NULL);
SELECT * FROM tfidf('TABLE questions', bm25 => true, b => -0.5);
SELECT * FROM tfidf('TABLE questions', bm25 => false, k1 => 2);
SELECT * FROM tfidf_from_frequencies('TABLE questions', $$VALUES (NULL, 10), ('egg', 5)$$, bm25 => true);

DROP TABLE articles, questions, everything, frequencies, numbers, weighed, counted, notes, searches, fused;
DROP VIEW keyed, asked;
DROP TABLE stories;
DROP FUNCTION plain_scores, plain_weights, counts_of;
