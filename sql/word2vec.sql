-- word2vec

-- Sentences of four classes of words, and words that all of them share
CREATE TABLE classes (class text, words text[]);
INSERT INTO classes VALUES
    ('animal', '{cat,dog,horse,cow,bird,mouse,sheep,goat}'),
    ('food', '{bread,cheese,apple,rice,soup,fish,cake,corn}'),
    ('city', '{paris,london,rome,berlin,madrid,vienna,oslo,lisbon}'),
    ('colour', '{red,green,blue,white,black,yellow,brown,grey}');
CREATE TABLE patterns (number int, words text[]);
INSERT INTO patterns VALUES
    (0, '{the,animal,eats,the,food,slowly}'), (1, '{a,colour,animal,sleeps,near,the,animal}'),
    (2, '{we,travel,from,city,to,city,by,train}'), (3, '{she,cooks,food,and,food,for,dinner}'),
    (4, '{they,paint,the,door,colour,or,colour}'), (5, '{the,museum,of,city,is,open}'),
    (6, '{the,animal,runs,and,the,animal,jumps}'), (7, '{he,buys,fresh,food,at,the,market,of,city}');
CREATE FUNCTION pick(seed text, words text[]) RETURNS text IMMUTABLE LANGUAGE sql AS
    $$SELECT words[1 + ('x' || left(md5(seed), 7))::bit(28)::int % cardinality(words)]$$;
CREATE TABLE sentences AS
SELECT i AS id, array_agg(coalesce(pick(i || '-' || place, c.words), p.word) ORDER BY place) AS words
FROM generate_series(1, 3000) AS i
JOIN LATERAL (SELECT u.* FROM patterns, unnest(words) WITH ORDINALITY AS u (word, place) WHERE number = ('x' || left(md5(i::text), 7))::bit(28)::int % 8) AS p ON true
LEFT JOIN classes AS c ON c.class = p.word GROUP BY i ORDER BY i;

-- Both models put words of one class next to one another.
SET gputext.device = cpu;
CREATE FUNCTION nearest_of_class(model text) RETURNS TABLE (words bigint, near bigint) LANGUAGE sql AS $$
    WITH truth AS (SELECT class, unnest(words) AS word FROM classes)
    SELECT count(*), count(*) FILTER (WHERE a.class = b.class)
    FROM gpu_knn('SELECT word, vector FROM ' || model || ' WHERE word IN (SELECT unnest(words) FROM classes)',
                 'SELECT word, vector FROM ' || model, NULL::text, 3, exclude_self => true) AS n
    JOIN truth AS a ON a.word = n.query_id LEFT JOIN truth AS b ON b.word = n.item_id
$$;
CREATE TABLE skipgram AS SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 16, sample => 0, epochs => 10);
CREATE TABLE cbow AS SELECT * FROM word2vec('SELECT words FROM sentences', 'cbow', 16, sample => 0, epochs => 10);
SELECT * FROM nearest_of_class('skipgram');
SELECT * FROM nearest_of_class('cbow');
-- Every word that occurs so often, the most frequent first, and the number of times
SELECT count(*) AS words, count(*) FILTER (WHERE s.count = m.count) AS same, min(cardinality(vector)), max(cardinality(output_vector))
FROM skipgram AS m FULL JOIN (SELECT word, count(*) FROM sentences, unnest(words) AS word GROUP BY word) AS s USING (word);
SELECT ARRAY(SELECT word FROM word2vec('SELECT words FROM sentences', dimensions => 1, epochs => 1))
     = ARRAY(SELECT word FROM sentences, unnest(words) AS word GROUP BY word ORDER BY count(*) DESC, word COLLATE "C") AS in_order;
SELECT count(*) AS words, min(count) FROM word2vec('SELECT words FROM sentences', dimensions => 1, epochs => 1, min_count => 300);

-- The same bits everywhere: on one thread and on three, of texts and of their words
CREATE FUNCTION bits_of(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE bits text;
BEGIN
    EXECUTE 'SELECT left(md5(string_agg(m::text, E''\n'')), 12) FROM ' || call || ' AS m' INTO bits;
    RETURN bits;
END $$;
CREATE TABLE calls (number int, call text);
INSERT INTO calls VALUES
    (1, $$word2vec('SELECT words FROM sentences', dimensions => 16, learning_rate => 0.05, batch => 64)$$),
    (2, $$word2vec('SELECT words FROM sentences', 'cbow', 33, 8, 2, sample => 0.01, learning_rate => 0.05, batch => 500)$$),
    (3, $$word2vec('SELECT words FROM sentences', dimensions => 16, sampling => 'farthest', farthest => 3, learning_rate => 0.05, batch => 64)$$),
    (4, $$word2vec('SELECT words FROM sentences', dimensions => 16, learning_rate => 0.05, batch => 64, replicas => 3)$$),
    (5, $$word2vec('SELECT words FROM sentences', dimensions => 16, learning_rate => 0.05, batch => 64, seed => -5)$$),
    (6, $$word2vec('SELECT words FROM sentences WHERE id % 2 = 1', dimensions => 16, learning_rate => 0.05, batch => 64, initial => 'TABLE skipgram')$$);
CREATE TABLE answers AS SELECT number, bits_of(call) AS bits FROM calls;
TABLE answers;
SET gputext.cpu_threads = 1;
SELECT number, bits_of(call) = bits AS one_thread FROM calls JOIN answers USING (number) ORDER BY number;
SET gputext.cpu_threads = 3;
SELECT number, bits_of(call) = bits AS three_threads FROM calls JOIN answers USING (number) ORDER BY number;
RESET gputext.cpu_threads;
SELECT DISTINCT bits_of(replace(call, 'SELECT words', 'SELECT ' || columns)) = bits AS texts
FROM calls JOIN answers USING (number),
     (VALUES ('id, words'), ('array_to_string(words, '''' '''')'), ('id, array_to_string(words, '''' '''')::varchar')) AS c (columns)
WHERE number = 1;
-- From temporary files
SET gputext.host_memory_limit = '1MB';
SELECT bits_of($$word2vec('SELECT words FROM sentences, generate_series(1, 11)', dimensions => 4, epochs => 1, replicas => 8)$$) AS bits \gset little_
RESET gputext.host_memory_limit;
SELECT bits_of($$word2vec('SELECT words FROM sentences, generate_series(1, 11)', dimensions => 4, epochs => 1, replicas => 8)$$) = :'little_bits' AS same;

-- What changes an answer, and what does not
SELECT what, count(DISTINCT bits_of('word2vec(''SELECT words FROM sentences'', dimensions => 8, epochs => 2, ' || how || ')')) AS answers
FROM (VALUES ('seed', 'seed => 1'), ('seed', 'seed => 2'), ('seed', 'seed => -9223372036854775808'), ('seed', 'seed => 9223372036854775807'),
             ('window', 'window_size => 1'), ('window', 'window_size => 100'), ('negative', 'negative => 1'), ('negative', 'negative => 64'),
             ('sample', 'sample => 0'), ('sample', 'sample => 0.001'), ('sample', 'sample => 1'),
             ('rate', 'learning_rate => 0.05'), ('rate', 'learning_rate => NULL'), ('rate', 'learning_rate => 1'),
             ('rate of cbow', 'model => ''cbow'''), ('rate of cbow', 'model => ''cbow'', learning_rate => 0.075'),
             ('batch', 'batch => 7'), ('batch', 'batch => 1000000'), ('batch', 'batch => NULL'), ('replicas', 'replicas => 2'), ('replicas', 'replicas => 64'),
             ('farthest, of unigram', 'farthest => 3'), ('farthest, of unigram', 'farthest_from_epoch => 2'),
             ('config, of arrays', 'config => ''english'''), ('config, of arrays', 'config => ''simple''')) AS h (what, how)
GROUP BY what ORDER BY what;
-- Words that are left out keep no place, and nulls neither.
SELECT count(DISTINCT bits_of('word2vec(''SELECT ' || words || ' FROM sentences'', dimensions => 8, epochs => 2)')) AS answers
FROM (VALUES ('words'), ('words[:2] || (''''rare'''' || id) || words[3:]'), ('words[:2] || ARRAY[NULL::text, NULL] || words[3:]')) AS w (words);
-- Replicas learn the same.
CREATE TABLE replicas AS SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 16, sample => 0, epochs => 10, replicas => 4);
SELECT * FROM nearest_of_class('replicas');

-- The farthest words as negatives: from the second half of the epochs on, or from some epoch on
CREATE TABLE farthest AS
SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 16, sampling => 'farthest', sample => 0, epochs => 10);
SELECT * FROM nearest_of_class('farthest');
SELECT bits_of($$word2vec('SELECT words FROM sentences', dimensions => 8, sampling => 'farthest', epochs => 4, farthest_from_epoch => 3)$$)
     = bits_of($$word2vec('SELECT words FROM sentences', dimensions => 8, sampling => 'farthest', epochs => 4)$$) AS second_half;
SELECT count(DISTINCT bits_of('word2vec(''SELECT words FROM sentences'', dimensions => 8, sampling => ''farthest'', epochs => 4, farthest_from_epoch => ' || n || ')')) AS answers
FROM generate_series(1, 4) AS n;
-- More than there are words are all the others.
SELECT bits_of($$word2vec('VALUES (''a b a c b a'')', dimensions => 2, min_count => 1, sampling => 'farthest', farthest => 100)$$)
     = bits_of($$word2vec('VALUES (''a b a c b a'')', dimensions => 2, min_count => 1, sampling => 'farthest', farthest => 2)$$) AS all_others;

-- Training that goes on: words stay, new ones join, counts add up.
CREATE TABLE first_half AS SELECT * FROM word2vec('SELECT words FROM sentences WHERE id % 2 = 0', dimensions => 16, sample => 0);
CREATE TABLE second_half AS
SELECT * FROM word2vec('SELECT words || ARRAY[''tiger''] FROM sentences WHERE id % 2 = 1 AND NOT words && ARRAY[''cat'', ''museum'']',
                       dimensions => 16, sample => 0, initial => 'TABLE first_half');
SELECT count(a.word) AS before, count(b.word) AS after, count(*) FILTER (WHERE a.vector = b.vector) AS vectors_kept,
       count(*) FILTER (WHERE a.output_vector = b.output_vector) AS output_vectors_kept, count(*) FILTER (WHERE b.count > a.count) AS more
FROM first_half AS a FULL JOIN second_half AS b USING (word);
SELECT word, a.count AS before, b.count AS after, a.vector = b.vector AS kept
FROM second_half AS b LEFT JOIN first_half AS a USING (word) WHERE word IN ('cat', 'dog', 'museum', 'tiger') ORDER BY word;
SELECT ARRAY(SELECT word FROM second_half) = ARRAY(SELECT word FROM second_half ORDER BY count DESC, word COLLATE "C") AS in_order;
-- The order of its rows and columns changes nothing.
SELECT count(DISTINCT bits_of('word2vec(''SELECT words FROM sentences'', dimensions => 16, initial => ''' || initial || ''')')) AS answers
FROM (VALUES ('TABLE first_half'), ('SELECT output_vector, count, vector, word, 5 AS other FROM first_half ORDER BY word DESC'),
             ('SELECT word, count::int, vector::float8[], output_vector::float8[] FROM first_half ORDER BY count')) AS i (initial);
SELECT bits_of($$word2vec('SELECT words FROM sentences', dimensions => 16, initial => 'SELECT * FROM first_half WHERE false')$$)
     = bits_of($$word2vec('SELECT words FROM sentences', dimensions => 16)$$) AS as_without;
-- Words of it stay, however rare; so do counts that nothing can be added to.
SELECT word, count FROM word2vec('VALUES (''a a a b b c'')', dimensions => 1, min_count => 2, initial =>
    $$VALUES ('c'::text, 0, '{1}'::real[], '{0}'::real[]), ('z', 9223372036854775807, '{1}', '{0}'), ('a', 9223372036854775806, '{1}', '{0}')$$);

-- Few words
SELECT word, count, cardinality(vector) FROM word2vec('VALUES (''one'')', min_count => 1);
SELECT word, count FROM word2vec($$VALUES (''), (NULL), ('x y'), ('x')$$, min_count => 1, dimensions => 1, replicas => 64);
SELECT word, count FROM word2vec($$VALUES ('The cats run. A cat runs.')$$, min_count => 1, dimensions => 1, config => 'english');

-- Errors

SELECT * FROM word2vec(NULL);
SELECT * FROM word2vec('TABLE sentences', NULL);
SELECT * FROM word2vec('TABLE sentences', 'glove');
SELECT * FROM word2vec('TABLE sentences', dimensions => 0);
SELECT * FROM word2vec('TABLE sentences', dimensions => 1025);
SELECT * FROM word2vec('TABLE sentences', dimensions => NULL);
SELECT * FROM word2vec('TABLE sentences', window_size => 0);
SELECT * FROM word2vec('TABLE sentences', window_size => 101);
SELECT * FROM word2vec('TABLE sentences', negative => 0);
SELECT * FROM word2vec('TABLE sentences', negative => 65);
SELECT * FROM word2vec('TABLE sentences', sampling => 'nearest');
SELECT * FROM word2vec('TABLE sentences', sampling => NULL);
SELECT * FROM word2vec('TABLE sentences', min_count => 0);
SELECT * FROM word2vec('TABLE sentences', sample => -0.1);
SELECT * FROM word2vec('TABLE sentences', sample => 1.5);
SELECT * FROM word2vec('TABLE sentences', sample => 'NaN');
SELECT * FROM word2vec('TABLE sentences', sample => NULL);
SELECT * FROM word2vec('TABLE sentences', epochs => 0);
SELECT * FROM word2vec('TABLE sentences', epochs => 100001);
SELECT * FROM word2vec('TABLE sentences', learning_rate => 0);
SELECT * FROM word2vec('TABLE sentences', learning_rate => 1.5);
SELECT * FROM word2vec('TABLE sentences', learning_rate => 'NaN');
SELECT * FROM word2vec('TABLE sentences', learning_rate => 1e-60);
SELECT * FROM word2vec('TABLE sentences', seed => NULL);
SELECT * FROM word2vec('TABLE sentences', config => NULL);
SELECT * FROM word2vec('TABLE sentences', config => 'nonsense');
SELECT * FROM word2vec('TABLE sentences', farthest => 0);
SELECT * FROM word2vec('TABLE sentences', farthest => NULL);
SELECT * FROM word2vec('TABLE sentences', farthest_from_epoch => 0);
SELECT * FROM word2vec('TABLE sentences', farthest_from_epoch => 6);
SELECT * FROM word2vec('TABLE sentences', replicas => 0);
SELECT * FROM word2vec('TABLE sentences', replicas => 65);
SELECT * FROM word2vec('TABLE sentences', batch => 0);
SELECT * FROM word2vec('TABLE sentences', batch => 2000000);
SELECT * FROM word2vec('SELECT id, words, 1 FROM sentences');
SELECT * FROM word2vec('SELECT id FROM sentences');
SELECT * FROM word2vec('SELECT words FROM sentences WHERE false');
SELECT * FROM word2vec('SELECT words FROM sentences', min_count => 5000);
SELECT * FROM word2vec('SELECT words FROM sentences WHERE false', dimensions => 16, initial => 'TABLE skipgram');
SELECT * FROM word2vec('VALUES (''x y'')', dimensions => 16, initial => 'TABLE skipgram');
SELECT * FROM word2vec('SELECT words FROM sentences', initial => 'TABLE skipgram');
SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 16, initial => 'SELECT word, vector FROM skipgram');
SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 16, initial => 'SELECT word, count, vector FROM skipgram');
SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 16, initial => 'TABLE skipgram UNION ALL (SELECT * FROM skipgram ORDER BY word LIMIT 1)');
SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 1, initial => $$VALUES ('c'::text, -1, '{1}'::real[], '{0}'::real[])$$);
SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 1, initial => $$VALUES ('c'::text, 1, '{NaN}'::real[], '{0}'::real[])$$);
SELECT * FROM word2vec('SELECT words FROM sentences', initial => 'CREATE TABLE t ()');
SET gputext.host_memory_limit = '1MB';
SELECT * FROM word2vec('SELECT words FROM sentences', dimensions => 1024, replicas => 8);
RESET gputext.host_memory_limit;
RESET gputext.device;

DROP TABLE classes, patterns, sentences, skipgram, cbow, calls, answers, replicas, farthest, first_half, second_half;
DROP FUNCTION pick, nearest_of_class, bits_of;
