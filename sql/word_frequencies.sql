-- word_frequencies, and word_similarity_from_counts with words
\set SHOW_CONTEXT never

SELECT * FROM word_frequencies($$VALUES ('the cat and the dog'), ('The bird'), (NULL), ('')$$);
SELECT * FROM word_frequencies($$VALUES ('the cat and the dogs'), ('The dog')$$, config => 'english');
SELECT * FROM word_frequencies($$VALUES (1, ARRAY['b', 'a', NULL, 'b'])$$);
SELECT * FROM word_frequencies('SELECT NULL::text WHERE false');

-- Texts on four servers against one: random ones, words of Zipf's kind, many of them rare on each server.
CREATE TABLE texts AS
SELECT t AS id, t % 4 AS shard, (SELECT string_agg('w' || floor(exp(6 * ('x' || left(md5(t || '-' || i), 8))::bit(32)::bigint / 4294967296.0))::text, ' ' ORDER BY i)
                 FROM generate_series(1, 30) AS i) AS body
FROM generate_series(1, 300) AS t;
CREATE TABLE frequencies AS
SELECT word, sum(count) AS count FROM generate_series(0, 3) AS shard, LATERAL word_frequencies('SELECT body FROM texts WHERE shard = ' || shard) GROUP BY word;
SELECT count(*) AS words, count(*) FILTER (WHERE o.count IS DISTINCT FROM f.count) AS differing
FROM frequencies AS f FULL JOIN word_frequencies('SELECT body FROM texts') AS o USING (word);

-- The thesaurus of the sum is that of all texts on one server: words, their order, neighbors and similarities to the last bit.
CREATE FUNCTION compared(options text, of_counts text, of_similarity text, of_words text) RETURNS TABLE (words bigint, differing bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TEMP TABLE summed AS SELECT word, position, neighbor, sum(count) AS count
        FROM generate_series(0, 3) AS shard, LATERAL word_cooccurrences(''SELECT body FROM texts WHERE shard = '' || shard, vocabulary => 2147483647, min_count => 1%s%s)
        GROUP BY word, position, neighbor', options, of_counts);
    RETURN QUERY EXECUTE format('SELECT count(*), count(*) FILTER (WHERE o IS DISTINCT FROM s)
        FROM (SELECT row_number() OVER () AS n, * FROM word_similarity(''SELECT body FROM texts'', 10%s%s%s%s) AS w) AS o
        FULL JOIN (SELECT row_number() OVER () AS n, * FROM word_similarity_from_counts(''TABLE summed'', ''TABLE frequencies'', 10%s%s%s) AS w) AS s USING (n)',
        options, of_counts, of_similarity, of_words, options, of_similarity, of_words);
    DROP TABLE summed;
END $$;
SELECT o.*, c.* FROM (VALUES
    ('', '', '', ''),
    ('', '', '', ', min_count => 1'),
    ('', '', '', ', min_count => 12'),
    ('', '', '', ', vocabulary => 50'),
    ('', '', '', ', vocabulary => 7, min_count => 2'),
    ('', '', '', ', min_count => 1000'),
    (', preset => ''thesis''', '', '', ''),
    (', preset => ''thesis''', '', ', features => 20', ', min_count => 8'),
    (', weight => ''ppmi'', discount => 0.5', ', window_size => 2, positions => true', '', ''),
    ('', ', window_size => 10', ', measure => ''jaccard''', ''),
    (', weight => ''count'', discount => 0', ', window_size => 1', ', measure => ''lin''', ', vocabulary => 90')) AS o(options, of_counts, of_similarity, of_words),
    LATERAL compared(options, of_counts, of_similarity, of_words) AS c;
-- Counts that are not summed before are added up.
CREATE TABLE counts AS
SELECT c.* FROM generate_series(0, 3) AS shard, LATERAL word_cooccurrences('SELECT body FROM texts WHERE shard = ' || shard, min_count => 1) AS c;
SELECT count(*) AS words, count(*) FILTER (WHERE o IS DISTINCT FROM s) AS differing
FROM word_similarity('SELECT body FROM texts') AS o FULL JOIN word_similarity_from_counts('TABLE counts', 'TABLE frequencies') AS s USING (word);
-- A word that is in no count has no neighbors.
SELECT * FROM word_similarity_from_counts($$VALUES ('a', 0, 'b', 7), ('b', 0, 'a', 7)$$, $$VALUES ('c', 9), ('a', 7)$$);

-- What it refuses
SELECT * FROM word_frequencies(NULL);
SELECT * FROM word_frequencies('SELECT 1');
SELECT * FROM word_similarity_from_counts('TABLE counts', NULL::text);
SELECT * FROM word_similarity_from_counts('TABLE counts', 'SELECT 1');
SELECT * FROM word_similarity_from_counts('TABLE counts', 'SELECT 1, 2');
SELECT * FROM word_similarity_from_counts('TABLE counts', $$VALUES ('a', 'b')$$);
SELECT * FROM word_similarity_from_counts('TABLE counts', $$VALUES ('a', 1), (NULL, 1)$$);
SELECT * FROM word_similarity_from_counts('TABLE counts', $$VALUES ('a', 1), ('b', NULL)$$);
SELECT * FROM word_similarity_from_counts('TABLE counts', $$VALUES ('a', -1)$$);
SELECT * FROM word_similarity_from_counts('TABLE counts', $$VALUES ('a', 1), ('a', 1)$$);
SELECT * FROM word_similarity_from_counts('TABLE counts', 'TABLE frequencies', min_count => 0);
SELECT * FROM word_similarity_from_counts('TABLE counts', 'TABLE frequencies', vocabulary => 0);

DROP TABLE texts, frequencies, counts;
DROP FUNCTION compared(text, text, text, text);
