-- gpu_knn and gpu_knn_within on texts, tsvector, and weights of terms

-- What of non-ASCII is a letter, and which is its lower case, depends on the database's locale. The
-- texts here have such letters in lower case only, and spaces between words, and so mean the same in
-- all of them.
SET default_text_search_config = 'pg_catalog.english';

CREATE TABLE articles (id bigint PRIMARY KEY, lang text, body text);
INSERT INTO articles VALUES
    (1, 'en', 'How to boil an egg: boil the water, add the egg, wait seven minutes.'),
    (2, 'en', 'Poaching eggs without vinegar. The water must not boil.'),
    (3, 'en', 'Changing a tyre on the road: jack, wheel nuts, spare wheel.'),
    (4, 'en', 'The wheels of a train have no tyres of rubber.'),
    (5, 'de', 'ein ei kochen: wasser kochen, das ei hineinlegen, sieben minuten warten'),
    (6, 'de', 'einen reifen wechseln: der wagenheber, die radmuttern, das ersatzrad'),
    (7, 'pt', 'como cozer um ovo: ferver a água e juntar os ovos durante sete minutos'),
    (8, 'pt', 'trocar um pneu furado: o macaco, as porcas e a roda'),
    (9, 'ja', '卵 を 茹でる には 水 を 沸かし 卵 を 入れて 七 分 待つ'),
    (10, 'ja', '道路 で タイヤ を 交換 する ジャッキ と 車輪');
CREATE TABLE questions (id bigint PRIMARY KEY, lang text, body text);
INSERT INTO questions VALUES
    (1, 'en', 'how long does it take to boil eggs?'),
    (2, 'en', 'which wheel nuts fit my tyres'),
    (3, 'de', 'wie lange kochen eier und wasser'),
    (4, 'pt', 'quantos minutos para cozer ovos'),
    (5, 'ja', '卵 は 何 分 茹でる か');

SELECT query_id, item_id, rank, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT id, body FROM questions WHERE lang = ''en'' ORDER BY id',
             'SELECT id, body FROM articles WHERE lang = ''en'' ORDER BY id', 3);
SELECT query_id, item_id, rank, round(distance::numeric, 6) AS distance
FROM gpu_knn_within('SELECT id, body FROM questions WHERE lang = ''en'' ORDER BY id',
                    'SELECT id, body FROM articles WHERE lang = ''en'' ORDER BY id', 0.75);
-- Every argument by name
SELECT query_id, item_id, rank, round(distance::numeric, 6) AS distance
FROM gpu_knn(queries => 'SELECT id, body FROM questions ORDER BY id', items => 'SELECT id, body FROM articles ORDER BY id',
             k => 2, metric => 'cosine', exclude_self => false, config => 'simple', min_document_frequency => 1);
-- Languages with a stemmer, and one without
SELECT query_id, item_id, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT id, body FROM questions WHERE lang = ''de''', 'SELECT id, body FROM articles WHERE lang = ''de''', 2, config => 'german');
SELECT query_id, item_id, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT id, body FROM questions WHERE lang = ''pt''', 'SELECT id, body FROM articles WHERE lang = ''pt''', 2, config => 'portuguese');
SELECT query_id, item_id, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT id, body FROM questions WHERE lang = ''ja''', 'SELECT id, body FROM articles WHERE lang = ''ja''', 2, config => 'simple');

-- Against tf-idf and the cosine in SQL. Counts are those of to_tsvector; its lexemes are its terms.

CREATE FUNCTION counts_of(body text, config regconfig) RETURNS TABLE (term text, count bigint)
LANGUAGE sql STABLE AS 'SELECT lexeme, cardinality(positions) FROM unnest(to_tsvector(config, body))';
CREATE FUNCTION plain_neighbors(config regconfig, min_df bigint)
RETURNS TABLE (query_id bigint, item_id bigint, distance double precision)
LANGUAGE sql STABLE AS $$
    WITH item_counts AS (SELECT id, term, count FROM articles, counts_of(body, config)),
    factors AS (
        SELECT term, ln((SELECT count(*) FROM articles)::double precision / count(*)) AS factor
        FROM item_counts GROUP BY term HAVING count(*) >= min_df AND count(*) < (SELECT count(*) FROM articles)
    ),
    items AS (SELECT id, term, count * factor AS weight FROM item_counts JOIN factors USING (term)),
    queries AS (SELECT id, term, count * factor AS weight FROM questions, counts_of(body, config) JOIN factors USING (term)),
    item_norms AS (SELECT id, sqrt(sum(weight * weight)) AS norm FROM items GROUP BY id),
    query_norms AS (SELECT id, sqrt(sum(weight * weight)) AS norm FROM queries GROUP BY id)
    SELECT q.id, i.id, 1 - sum(q.weight * i.weight) / (min(qn.norm) * min(n.norm))
    FROM queries q JOIN items i USING (term) JOIN query_norms qn ON qn.id = q.id JOIN item_norms n ON n.id = i.id
    GROUP BY q.id, i.id
$$;
SELECT config, min_df, k, (SELECT sum(least(k, n)) FROM (SELECT count(*) AS n FROM plain_neighbors(config, min_df) GROUP BY query_id) AS p) AS expected,
       count(*) AS found, count(*) FILTER (WHERE abs(f.distance - p.distance) < 1e-14) AS equal
FROM (VALUES ('english'::regconfig, 1, 3), ('english', 2, 10), ('simple', 1, 10), ('simple', 2, 1), ('german', 1, 10),
             ('portuguese', 1, 10)) AS v(config, min_df, k),
     LATERAL gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', k, 'cosine', false, config, min_df) f
     LEFT JOIN LATERAL plain_neighbors(config, min_df) p USING (query_id, item_id)
GROUP BY config, min_df, k ORDER BY config::text, min_df, k;
-- On a larger table, with words of very different frequencies
CREATE TABLE stories AS
SELECT i::bigint AS id, (SELECT string_agg('w' || floor(exp((i * 7919 + j * 104729 + i * j) % 997 / 997.0 * ln(400)))::text, ' ')
                         FROM generate_series(1, 5 + i * 31 % 60) AS j) AS body
FROM generate_series(1, 300) AS i;
WITH counts AS MATERIALIZED (SELECT id, term, count FROM stories, counts_of(body, 'simple')),
weights AS MATERIALIZED (
    SELECT id, term, count * ln(300.0::double precision / count(*) OVER (PARTITION BY term)) AS weight FROM counts
),
norms AS (SELECT id, sqrt(sum(weight * weight)) AS norm FROM weights GROUP BY id),
pairs AS (
    SELECT a.id AS query_id, b.id AS item_id, 1 - sum(a.weight * b.weight) / (min(na.norm) * min(nb.norm)) AS distance
    FROM weights a JOIN weights b USING (term) JOIN norms na ON na.id = a.id JOIN norms nb ON nb.id = b.id GROUP BY a.id, b.id
)
SELECT count(*) AS pairs, count(f.distance) AS found, max(abs(p.distance - f.distance)) < 1e-14 AS equal
FROM pairs p FULL JOIN gpu_knn('TABLE stories', 'TABLE stories', 1000, config => 'simple') f USING (query_id, item_id);
-- gpu_knn_within gives those of gpu_knn that are near enough; the nearest of a text is itself.
SELECT (SELECT count(*) FROM gpu_knn('TABLE stories', 'TABLE stories', 1000, config => 'simple') WHERE distance <= 0.7) AS expected,
       (SELECT count(*) FROM gpu_knn('TABLE stories', 'TABLE stories', 1000, config => 'simple') k
        JOIN gpu_knn_within('TABLE stories', 'TABLE stories', 0.7, config => 'simple') w USING (query_id, item_id, rank, distance)) AS common,
       (SELECT count(*) FROM gpu_knn_within('TABLE stories', 'TABLE stories', 0.7, config => 'simple')) AS found;
SELECT count(*), bool_and(item_id = query_id AND distance < 1e-15) AS themselves
FROM gpu_knn('TABLE stories', 'TABLE stories', 1, config => 'simple');

-- tsvector, stored or generated; one of each; text of any type

CREATE TABLE documents AS SELECT id, body, body::varchar(200) AS short, body::char(100) AS padded FROM articles;
ALTER TABLE documents ADD COLUMN terms tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED;
CREATE DOMAIN title AS varchar;
CREATE DOMAIN terms AS tsvector;
CREATE TABLE by_text AS
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM documents', 3);
SELECT queries, items, count(*) AS rows, bool_and(b.query_id IS NOT NULL AND n.query_id IS NOT NULL) AS equal
FROM (VALUES ('body', 'terms'), ('to_tsvector(body)', 'body'), ('to_tsvector(body)', 'terms'), ('body::varchar', 'short'),
             ('body::title', 'padded'), ('to_tsvector(body)::terms', 'body::title'), ('body', 'array_to_tsvector(ARRAY[]::text[])')) AS v(queries, items),
     LATERAL gpu_knn(format('SELECT id, %s FROM questions', queries), format('SELECT id, %s FROM documents', items), 3) n
     FULL JOIN by_text b USING (query_id, item_id, rank, distance)
GROUP BY queries, items ORDER BY queries, items;
-- To the last bit
SELECT count(*) AS rows, bool_and(t.distance = v.distance) AS equal
FROM gpu_knn('TABLE stories', 'TABLE stories', 1000, config => 'simple') t
FULL JOIN gpu_knn('TABLE stories', 'SELECT id, to_tsvector(''simple'', body) FROM stories', 1000, config => 'simple') v USING (query_id, item_id);
-- A lexeme without positions counts once, and weights are labels that count for nothing.
SELECT query_id, item_id, round(distance::numeric, 6) AS distance
FROM gpu_knn($$SELECT 1::bigint, 'egg:1A,2B boil:3'::tsvector UNION ALL SELECT 2, 'egg boil'$$,
             $$VALUES (1::bigint, 'egg:7C,9 boil:2'::tsvector), (2, 'boil egg:1'), (3, 'tyre')$$, 2);
-- Another configuration, with words of its own
CREATE TEXT SEARCH DICTIONARY plain_words (TEMPLATE = simple, STOPWORDS = english);
CREATE TEXT SEARCH CONFIGURATION plain_words (COPY = english);
ALTER TEXT SEARCH CONFIGURATION plain_words ALTER MAPPING FOR asciiword WITH plain_words;
SELECT item_id, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT 1::bigint, ''the eggs''', 'SELECT id, body FROM articles ORDER BY id', 3, config => 'plain_words');
SET default_text_search_config = 'plain_words';
SELECT item_id, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT 1::bigint, ''the eggs''', 'SELECT id, body FROM articles ORDER BY id', 3);
SET default_text_search_config = 'pg_catalog.english';
-- A dictionary that gives several lexemes for one word
CREATE TEXT SEARCH DICTIONARY compounds (TEMPLATE = ispell, DictFile = ispell_sample, AffFile = ispell_sample);
CREATE TEXT SEARCH CONFIGURATION compounds (COPY = english);
ALTER TEXT SEARCH CONFIGURATION compounds ALTER MAPPING FOR asciiword WITH compounds, simple;
SELECT ts_lexize('compounds', 'footballklubber') AS variants, to_tsvector('compounds', 'footballklubber booking klubber');
SELECT term, round(weight / ln(2)) AS count
FROM tfidf('SELECT 1::bigint, ''footballklubber booking klubber'' UNION ALL SELECT 2, ''''', config => 'compounds');

-- More occurrences than a tsvector holds positions: a text has them all.
CREATE TABLE long_texts AS
SELECT 1::bigint AS id, repeat('egg ', 1000) || repeat('water ', 100) AS body UNION ALL
SELECT 2, 'egg' UNION ALL SELECT 3, 'water' UNION ALL SELECT 4, 'tyre';
SELECT term, round(weight / ln(2)) AS count, (SELECT cardinality(positions) FROM unnest(to_tsvector(body)) WHERE lexeme = term) AS of_tsvector
FROM tfidf('SELECT id, body FROM long_texts') JOIN long_texts USING (id) WHERE id = 1 ORDER BY term;
SELECT 'text' AS type, item_id, round(distance::numeric, 6) AS distance FROM gpu_knn('SELECT id, body FROM long_texts WHERE id = 1', 'SELECT id, body FROM long_texts WHERE id > 1', 3)
UNION ALL
SELECT 'tsvector', item_id, round(distance::numeric, 6) FROM gpu_knn('SELECT id, to_tsvector(body) FROM long_texts WHERE id = 1',
                                                  'SELECT id, to_tsvector(body) FROM long_texts WHERE id > 1', 3);
-- Behind 16383 positions, too, and a compound word there still counts once.
SELECT term, round(weight / ln(2)) AS count
FROM tfidf($$SELECT 1::bigint, repeat('nothing else here ', 10000) || repeat('footballklubber ', 50) UNION ALL SELECT 2, ''$$, config => 'compounds')
ORDER BY term;
-- A word that is too long is left out, as to_tsvector does, and says so.
SELECT term, weight FROM tfidf($$SELECT 1::bigint, repeat('x', 3000) || ' egg' UNION ALL SELECT 2, ''$$);

-- Texts without terms: empty, of stop words, of words that every item has; none is a neighbor.
SELECT query_id, item_id, rank, round(distance::numeric, 6) AS distance
FROM gpu_knn($$VALUES (1::bigint, ''), (2, 'the of and'), (3, 'egg'), (4, ' ! '), (5, 'unheard'), (6, 'boiling')$$,
             $$VALUES (1::bigint, 'boil the egg'), (2, ''), (3, 'boil'), (4, 'the'), (5, 'water')$$, 5);
SELECT * FROM gpu_knn($$VALUES (1::bigint, 'egg water')$$, $$VALUES (1::bigint, 'egg'), (2, 'egg'), (3, 'egg egg')$$, 5);
SELECT * FROM gpu_knn_within('SELECT id, body FROM articles WHERE false', 'SELECT id, body FROM articles', 1);
SELECT * FROM gpu_knn('SELECT id, body FROM articles', 'SELECT id, body FROM articles WHERE false', 1);
SELECT * FROM gpu_knn('SELECT id, body FROM articles', 'SELECT id, '''' FROM articles', 1);
-- Texts that are null are left out.
SELECT item_id FROM gpu_knn('SELECT 1::bigint, ''eggs'' UNION ALL SELECT 2, NULL',
                            'SELECT id, CASE WHEN id > 1 THEN body END FROM articles ORDER BY id', 3);
SELECT item_id FROM gpu_knn('SELECT 1::bigint, ''egg''::tsvector', 'SELECT id, CASE WHEN id < 3 THEN terms END FROM documents ORDER BY id', 3);
-- A query's words that no item has change nothing, not even its length.
SELECT count(DISTINCT distance) AS distances
FROM gpu_knn($$VALUES (1::bigint, 'boil eggs'), (2, 'boil eggs in Nowhereland, unheard of')$$, 'SELECT id, body FROM articles WHERE id = 1 OR id = 3', 1);
-- Nor do words that few items have, where they are not to count.
SELECT min_df, query_id, item_id, round(distance::numeric, 6) AS distance
FROM generate_series(1, 3) AS min_df,
     LATERAL gpu_knn($$VALUES (1::bigint, 'boil vinegar'), (2, 'vinegar')$$, 'SELECT id, body FROM articles WHERE lang = ''en''', 2,
                     min_document_frequency => min_df)
ORDER BY min_df, query_id, rank;

-- Ties by id, or in the order of an ORDER BY; fewer items than k, copies
SELECT item_id, rank FROM gpu_knn('SELECT 1::bigint, ''egg''', $$SELECT i, CASE WHEN i % 3 = 0 THEN 'tyre' ELSE 'egg' END FROM generate_series(1::bigint, 7) i$$, 3);
SELECT item_id, rank FROM gpu_knn('SELECT 1::bigint, ''egg''', $$SELECT i, CASE WHEN i % 3 = 0 THEN 'tyre' ELSE 'egg' END FROM generate_series(7::bigint, 1, -1) i$$, 9);
SELECT item_id, rank FROM gpu_knn('SELECT 1::bigint, ''egg''', $$SELECT i, CASE WHEN i % 3 = 0 THEN 'tyre' ELSE 'egg' END FROM generate_series(1::bigint, 7) i ORDER BY i DESC$$, 9);
-- Not its own neighbor; ids of any type; an id that occurs twice
SELECT query_id, item_id, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT id, body FROM articles WHERE lang = ''en'' ORDER BY id', 'SELECT id, body FROM articles WHERE lang = ''en'' ORDER BY id', 1, exclude_self => true);
SELECT * FROM gpu_knn($$SELECT 'first', 'egg'$$, $$VALUES ('first', 'egg'), ('second', 'egg'), ('first', 'egg'), ('third', 'tyre')$$, NULL::text, 5, exclude_self => true);
SELECT query_id, item_id FROM gpu_knn('SELECT md5(id::text)::uuid, body FROM questions WHERE id = 1', 'SELECT md5(id::text)::uuid, body FROM articles',
                                      id_type => NULL::uuid, k => 1, config => 'english', min_document_frequency => 1);
SELECT * FROM gpu_knn_within($$SELECT 1.0, 'egg'$$, $$VALUES (1.00, 'egg'), (1.5, 'egg'), (2, 'tyre')$$, NULL::numeric, 1, exclude_self => true);

-- Conditions in either inner query, joins of the answer and in an inner query
SELECT q.body AS question, i.body AS article, round(n.distance::numeric, 6) AS distance
FROM gpu_knn('SELECT id, body FROM questions WHERE lang IN (''en'', ''de'')',
             'SELECT a.id, a.body FROM articles a JOIN documents d USING (id) WHERE d.terms @@ to_tsquery(''simple'', ''!tyre'')', 1, config => 'simple') n
JOIN questions q ON q.id = n.query_id JOIN articles i ON i.id = n.item_id ORDER BY q.id;
SELECT lang, q.id, n.item_id FROM questions q, LATERAL gpu_knn(format('SELECT id, body FROM questions WHERE id = %s', q.id),
     format('SELECT id, body FROM articles WHERE lang = %L ORDER BY id', q.lang), 1, config => 'simple') n ORDER BY q.id;

-- Weights of terms that the user brings

CREATE TABLE bags (id bigint, terms integer[], weights real[]);
INSERT INTO bags VALUES (1, '{7,3,-2000000000}', '{1,2,0.5}'), (2, '{3,7}', '{2,1}'), (3, '{2147483647,7}', '{1,-1}'),
    (4, '{}', '{}'), (5, '{9}', '{1}'), (6, '{3,7,9}', '{0,1,0}');
SELECT query_id, item_id, rank, round(distance::numeric, 6) AS distance
FROM gpu_knn('TABLE bags', 'TABLE bags', 10, exclude_self => true);
-- They are compared as the vectors that they are.
CREATE VIEW dense_bags AS
SELECT id, ARRAY(SELECT coalesce(sum(weight), 0) FROM unnest('{-2000000000,3,7,9,2147483647}'::integer[]) AS term
                 LEFT JOIN unnest(terms, weights) AS given(term, weight) USING (term) GROUP BY term ORDER BY term) AS dense
FROM bags;
SELECT count(*) AS rows, bool_and(abs(n.distance - d.distance) < 1e-15) AS equal
FROM gpu_knn('TABLE bags', 'TABLE bags', 10) n
JOIN gpu_knn('SELECT id, dense FROM dense_bags', 'SELECT id, dense FROM dense_bags', 10) d USING (query_id, item_id);
SELECT item_id FROM gpu_knn('SELECT 1::bigint, ''{7,8}''::integer[], ''{1,1}''::real[]', 'TABLE bags', 10, min_document_frequency => 5);
SELECT item_id, distance FROM gpu_knn_within('SELECT ''a'', ''{9}''::integer[], ''{4}''::real[]', 'SELECT id::text, terms, weights FROM bags', NULL::text, 0);
-- A term whose weight is 0 is none of the item: of the first one only an item has it.
SELECT query_id, item_id, round(distance::numeric, 6) AS distance
FROM gpu_knn('SELECT 1, ''{1,2}''::integer[], ''{1,2}''::real[]',
             'SELECT * FROM (VALUES (1, ''{1,2}''::integer[], ''{1,2}''::real[]), (2, ''{1,2}'', ''{0,2}''), (3, ''{1,3}'', ''{0,1}''), (4, ''{2,3}'', ''{5,1}'')) AS v',
             4, min_document_frequency => 2);
-- The order within an array does not matter, to the last bit.
SELECT count(DISTINCT distance) AS distances
FROM gpu_knn($$VALUES (1::bigint, '{1,2,3,4}'::integer[], '{0.1,0.2,0.3,0.4}'::real[]), (2, '{4,2,1,3}', '{0.4,0.2,0.1,0.3}')$$,
             $$SELECT 1::bigint, '{3,1,2}'::integer[], '{0.7,0.6,0.5}'::real[]$$, 1);
INSERT INTO bags VALUES (7, NULL, '{1}'), (8, '{1}', NULL);
SELECT count(*) FROM gpu_knn('TABLE bags', 'TABLE bags', 10);

-- Whatever the number of threads and the memory, and from a temporary file: the same answer
SET gputext.device = cpu;
SET gputext.cpu_threads = 1;
CREATE TABLE one_thread AS SELECT * FROM gpu_knn('TABLE stories', 'TABLE stories', 10, config => 'simple') WITH ORDINALITY;
SET gputext.cpu_threads = 3;
SET gputext.host_memory_limit = '1MB';
CREATE TABLE three_threads AS SELECT * FROM gpu_knn('TABLE stories', 'TABLE stories', 10, config => 'simple') WITH ORDINALITY;
SELECT count(*) AS rows, bool_and(a = b) AS equal FROM one_thread a FULL JOIN three_threads b USING (ordinality);
SELECT count(*) AS queries, bool_and(distance < 1e-15) AS found_themselves
FROM gpu_knn('TABLE stories', 'SELECT id + n * 1000, body FROM stories, generate_series(0, 49) AS n', 1, config => 'simple');
RESET gputext.host_memory_limit;
RESET gputext.cpu_threads;
RESET gputext.device;

-- What is refused, and how it is said

SELECT * FROM gpu_knn('TABLE questions', 'SELECT id, body, lang, lang FROM articles', 1);
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id FROM articles', 1);
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, id FROM articles', 1);
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body, lang FROM articles', 1);
SELECT * FROM gpu_knn('TABLE bags', 'SELECT id, terms, weights::double precision[] FROM bags', 1);
SELECT * FROM gpu_knn('TABLE bags', 'SELECT id, weights, terms FROM bags', 1);
SELECT * FROM gpu_knn('TABLE bags', 'SELECT id, terms, weights, id FROM bags', 1);
-- The two are of one kind.
SELECT * FROM gpu_knn('SELECT id, terms FROM bags', 'SELECT id, body FROM articles', 1);
SELECT * FROM gpu_knn('SELECT id, body FROM articles', 'SELECT id, ''{1,2}''::real[] FROM bags', 1, 'euclidean');
SELECT * FROM gpu_knn('TABLE bags', 'SELECT id, terms FROM documents', 1);
SELECT * FROM gpu_knn_within('SELECT id, body FROM articles', 'TABLE bags', 1);
-- The metric
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', 1, 'euclidean');
SELECT * FROM gpu_knn_within('TABLE bags', 'TABLE bags', 1, 'manhattan');
-- The configuration, and the document frequency
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', 1, config => NULL);
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', 1, config => 'klingon');
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', 1, config => 4::regconfig);
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', 1, min_document_frequency => NULL);
SELECT * FROM gpu_knn('SELECT id, body FROM questions', 'SELECT id, body FROM articles', 1, min_document_frequency => 0);
SELECT * FROM gpu_knn('SELECT id, terms FROM bags', 'SELECT id, terms FROM bags', 1, min_document_frequency => 2);
-- Weights: the message names the row.
SELECT * FROM gpu_knn('TABLE bags', $$SELECT 5::bigint, '{1,2}'::integer[], '{1}'::real[]$$, 1);
SELECT * FROM gpu_knn($$SELECT 5::bigint, '{1,2,1}'::integer[], '{1,1,0}'::real[]$$, 'TABLE bags', 1);
SELECT * FROM gpu_knn('TABLE bags', $$SELECT 5::bigint, '{1,NULL}'::integer[], '{1,1}'::real[]$$, 1);
SELECT * FROM gpu_knn('TABLE bags', $$SELECT 5::bigint, '{1,2}'::integer[], '{1,NULL}'::real[]$$, 1);
SELECT * FROM gpu_knn('TABLE bags', $$SELECT 5::bigint, '{1,2}'::integer[], '{1,NaN}'::real[]$$, 1);
SELECT * FROM gpu_knn('TABLE bags', $$SELECT 'five', '{1,2}'::integer[], '{1,-Infinity}'::real[]$$, 1);
SELECT * FROM gpu_knn($$SELECT 'five', '{1,2}'::integer[], '{1,-Infinity}'::real[]$$, 'SELECT id::text, terms, weights FROM bags', NULL::text, 1);
SELECT * FROM gpu_knn('TABLE bags', $$SELECT 5::bigint, '{{1,2}}'::integer[], '{1,1}'::real[]$$, 1);
SELECT * FROM gpu_knn('TABLE bags', $$SELECT 5::bigint, '{1,2}'::integer[], '{{1,1}}'::real[]$$, 1);
-- The SQLSTATE of each kind
CREATE TABLE kinds (id int, kind text, call text);
INSERT INTO kinds VALUES
    (1, 'columns', $$gpu_knn('TABLE questions', 'TABLE bags', 1)$$),
    (2, 'kinds', $$gpu_knn('SELECT id, terms FROM bags', 'SELECT id, body FROM articles', 1)$$),
    (3, 'metric', $$gpu_knn('TABLE bags', 'TABLE bags', 1, 'manhattan')$$),
    (4, 'null configuration', $$gpu_knn('TABLE bags', 'TABLE bags', 1, config => NULL)$$),
    (5, 'configuration', $$gpu_knn('TABLE bags', 'TABLE bags', 1, config => 4::regconfig)$$),
    (6, 'document frequency', $$gpu_knn('TABLE bags', 'TABLE bags', 1, min_document_frequency => 0)$$),
    (7, 'different lengths', $$gpu_knn('TABLE bags', 'SELECT id, terms, weights || 1::real FROM bags', 1)$$),
    (8, 'a term twice', $$gpu_knn('TABLE bags', 'SELECT id, terms || terms, weights || weights FROM bags', 1)$$),
    (9, 'a null', $$gpu_knn('TABLE bags', 'SELECT id, terms || NULL::integer, weights || 1::real FROM bags', 1)$$),
    (10, 'not finite', $$gpu_knn('TABLE bags', 'SELECT id, terms || 1, weights || ''NaN''::real FROM bags', 1)$$),
    (11, 'several dimensions', $$gpu_knn('TABLE bags', 'SELECT id, ARRAY[terms], weights FROM bags WHERE id = 1', 1)$$);
CREATE FUNCTION sqlstate_of(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT * FROM ' || call;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT kind, sqlstate_of(call) AS sqlstate FROM kinds ORDER BY id;

DROP VIEW dense_bags;
DROP TABLE articles, questions, stories, documents, by_text, long_texts, bags, one_thread, three_threads, kinds;
DROP FUNCTION plain_neighbors, counts_of, sqlstate_of;
DROP DOMAIN title, terms;
DROP TEXT SEARCH CONFIGURATION plain_words;
DROP TEXT SEARCH CONFIGURATION compounds;
DROP TEXT SEARCH DICTIONARY plain_words;
DROP TEXT SEARCH DICTIONARY compounds;
