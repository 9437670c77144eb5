-- What all functions with an inner query have in common: how many columns it has, and integer ids
\set SHOW_CONTEXT never
SET gputext.device = 'cpu';
CREATE TABLE texts (id bigint PRIMARY KEY, body text, words text[], place real[]);
INSERT INTO texts VALUES
    (1, 'to be or not to be', '{to,be,or,not,to,be}', '{0,1}'), (2, 'to be or not to be', '{to,be,or,not,to,be}', '{1,1}'),
    (3, 'that is the question', '{that,is,the,question}', '{5,3}'), (4, 'is that the question', '{is,that,the,question}', '{5,4}');
CREATE TABLE model (word text, count bigint, vector real[], output_vector real[]);
INSERT INTO model VALUES ('be', 2, '{1,0}', '{0,1}'), ('is', 1, '{0,1}', '{1,0}'), ('question', 1, '{1,1}', '{1,1}');
CREATE TABLE dictionary AS SELECT trie_agg(word) AS words FROM texts, unnest(texts.words) AS word;

-- Each function with the query in place of %L. Errors are told by their SQLSTATE and message.
CREATE TABLE calls (function text, call text);
INSERT INTO calls VALUES
    ('near_duplicates', 'near_duplicates(%L)'),
    ('near_duplicate_groups', 'near_duplicate_groups(%L)'),
    ('gpu_knn queries', 'gpu_knn(%L, ''SELECT id, place FROM texts'', 1)'),
    ('gpu_knn items', 'gpu_knn(''SELECT id, place FROM texts'', %L, 1)'),
    ('gpu_knn_within queries', 'gpu_knn_within(%L, ''SELECT id, place FROM texts'', 0.5)'),
    ('gpu_knn_within items', 'gpu_knn_within(''SELECT id, place FROM texts'', %L, 0.5)'),
    ('tfidf', 'tfidf(%L)'),
    ('cosine_similarities', 'cosine_similarities(''{1,2}'', %L)'),
    ('local_outlier_factor', 'local_outlier_factor(%L, 1)'),
    ('trie_encode', 'dictionary, trie_encode(dictionary.words, %L)'),
    ('trie_encode_documents', 'dictionary, trie_encode_documents(dictionary.words, %L)'),
    ('word_similarity', 'word_similarity(%L)'),
    ('word_similarity_pairs', 'word_similarity_pairs(%L)'),
    ('word_cooccurrences', 'word_cooccurrences(%L)'),
    ('word_similarity_from_counts', 'word_similarity_from_counts(%L)'),
    ('word2vec', 'word2vec(%L)'),
    ('word2vec initial', 'word2vec(''SELECT body FROM texts'', initial => %L)'),
    ('word_movers_distance model', 'word_movers_distance(%L, ''SELECT id, words, words FROM texts'')'),
    ('word_movers_distance pairs', 'word_movers_distance(''TABLE model'', %L)'),
    ('sequence_probability model', 'sequence_probability(%L, ''SELECT id, words FROM texts'')'),
    ('sequence_probability sequences', 'sequence_probability(''TABLE model'', %L)');
CREATE FUNCTION outcome(call text, query text) RETURNS text LANGUAGE plpgsql AS
$$ DECLARE found bigint;
   BEGIN
       EXECUTE format('SELECT count(*) FROM ' || call, query) INTO found;
       RETURN found || ' rows';
   EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
   END $$;

-- Rows without columns are refused by all of them, whether there are any or none.
SELECT function, outcome(call, 'SELECT') FROM calls ORDER BY function;
SELECT count(*) AS calls, count(*) FILTER (WHERE outcome(call, query) LIKE '42804 the inner query has 0 columns, not %') AS refused
FROM calls, (VALUES ('SELECT FROM texts'), ('SELECT FROM texts WHERE false'), ('SELECT FROM (VALUES (''a'')) AS v(x)'), ('SELECT UNION ALL SELECT')) AS queries(query),
     generate_series(1, 5);
SELECT * FROM word_cooccurrences('SELECT');
SELECT * FROM word_similarity_from_counts('SELECT');
SELECT * FROM word2vec('SELECT body FROM texts', initial => 'SELECT');
-- As many columns as a query may have are no harm either.
SELECT string_agg('1', ', ') AS ones FROM generate_series(1, 1600) \gset
SELECT DISTINCT substr(outcome(call, 'SELECT ' || :'ones'), 1, 5) AS sqlstate FROM calls ORDER BY sqlstate;
-- Columns that were dropped are none.
CREATE TABLE dropped (a integer, b text, c integer);
INSERT INTO dropped VALUES (1, 'to be', 3);
ALTER TABLE dropped DROP a, DROP c;
SELECT * FROM word_cooccurrences('TABLE dropped', min_count => 1, preset => 'thesis') ORDER BY word, position;
ALTER TABLE dropped DROP b;
SELECT * FROM word_cooccurrences('TABLE dropped', min_count => 1);
CREATE TABLE dropped_id (a integer, id bigint, b text, body text);
INSERT INTO dropped_id SELECT 0, id, 'x', body FROM texts;
ALTER TABLE dropped_id DROP a, DROP b;
SELECT id1, id2 FROM near_duplicates('TABLE dropped_id') ORDER BY id1, id2;

-- Ids of the types smallint, integer and oid widen to bigint, and so do those of domains over them.
CREATE DOMAIN small AS smallint;
CREATE DOMAIN big AS bigint CHECK (value > -100);
CREATE TABLE ids AS
SELECT id, body, words, place, (id * 1000)::smallint AS int2, (id * -100000)::integer AS int4, (4294967290 + id)::oid AS oid,
       (-id)::small AS small, id::big AS big FROM texts;
CREATE TABLE id_calls (function text, call text);
INSERT INTO id_calls VALUES
    ('near_duplicates', 'SELECT id1 FROM near_duplicates(''SELECT %I, body FROM ids'') UNION SELECT id2 FROM near_duplicates(''SELECT %1$I, body FROM ids'')'),
    ('near_duplicate_groups', 'SELECT id FROM near_duplicate_groups(''SELECT %I, body FROM ids'')'),
    ('gpu_knn', 'SELECT query_id FROM gpu_knn(''SELECT %I, place FROM ids'', ''SELECT %1$I, place FROM ids'', 1)'),
    ('gpu_knn texts', 'SELECT item_id FROM gpu_knn(''SELECT %I, body FROM ids'', ''SELECT %1$I, body FROM ids'', 4, config => ''simple'')'),
    ('gpu_knn_within', 'SELECT item_id FROM gpu_knn_within(''SELECT %I, place FROM ids'', ''SELECT %1$I, place FROM ids'', 1)'),
    ('tfidf', 'SELECT id FROM tfidf(''SELECT %I, body FROM ids'', config => ''simple'')'),
    ('cosine_similarities', 'SELECT id FROM cosine_similarities(''{1,2}'', ''SELECT %I, place FROM ids'')'),
    ('local_outlier_factor', 'SELECT id FROM local_outlier_factor(''SELECT %I, place FROM ids'', 1)'),
    ('trie_encode', 'SELECT id FROM dictionary, trie_encode(dictionary.words, ''SELECT %I, body FROM ids'')'),
    ('trie_encode_documents', 'SELECT id FROM dictionary, trie_encode_documents(dictionary.words, ''SELECT %I, body FROM ids'')'),
    ('word_movers_distance', 'SELECT id FROM word_movers_distance(''TABLE model'', ''SELECT %I, words, words FROM ids'')'),
    ('sequence_probability', 'SELECT id FROM sequence_probability(''TABLE model'', ''SELECT %I, words FROM ids'')');
CREATE FUNCTION ids_of(call text, type text) RETURNS SETOF bigint LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY EXECUTE format('SELECT DISTINCT * FROM (' || call || ') AS rows(id) ORDER BY id', type); END $$;
SET client_min_messages = warning;  -- of words that the model does not have
SELECT function, type, string_agg(id::text, ' ' ORDER BY id) AS ids
FROM (SELECT function, type, ids_of(call, type) AS id FROM id_calls, unnest(ARRAY['int2', 'int4', 'oid', 'small', 'big']) AS type) AS rows
GROUP BY function, type ORDER BY function, type;
RESET client_min_messages;
-- The ids of both queries are bigint then, and can be told apart by exclude_self.
SELECT * FROM gpu_knn('SELECT id::smallint, place FROM texts', 'SELECT id::integer, place FROM texts', 1, exclude_self => true, metric => 'euclidean') ORDER BY query_id;
-- id_type keeps them as they are, and widens to no other type.
SELECT pg_typeof(id1), * FROM near_duplicates('SELECT int2, body FROM ids', id_type => NULL::smallint);
SELECT pg_typeof(id1), * FROM near_duplicates('SELECT int4, body FROM ids', id_type => NULL::integer);
SELECT pg_typeof(id1), * FROM near_duplicates('SELECT int4, body FROM ids', id_type => NULL::bigint);
SELECT pg_typeof(id1), * FROM near_duplicates('SELECT oid, body FROM ids', id_type => NULL::oid);
SELECT * FROM near_duplicates('SELECT int2, body FROM ids', id_type => NULL::integer);
SELECT * FROM near_duplicates('SELECT id, body FROM ids', id_type => NULL::integer);
SELECT * FROM near_duplicates('SELECT small, body FROM ids', id_type => NULL::smallint);
-- Other types are not taken for integers.
SELECT * FROM near_duplicates('SELECT id::numeric, body FROM ids');
SELECT * FROM near_duplicates('SELECT ''texts''::regclass, body FROM ids');
SELECT * FROM near_duplicates('SELECT id::text::xid, body FROM ids');
SELECT * FROM near_duplicates('SELECT nullif(int4, -100000), body FROM ids ORDER BY id');

RESET gputext.device;
DROP TABLE texts, model, dictionary, calls, id_calls, dropped, dropped_id, ids;
DROP FUNCTION outcome, ids_of;
DROP DOMAIN small, big;
