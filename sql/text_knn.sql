-- gpu_knn and gpu_knn_within on texts, tsvector, and weights of terms

-- The parser knows letters beyond ASCII in every locale; words are in lower case and separated by
-- spaces so that the tests mean the same in all of them.
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
CREATE FUNCTION plain_neighbours(config regconfig, min_df bigint)
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
SELECT config, min_df, k,
       (SELECT count(*) FROM (SELECT query_id, row_number() OVER (PARTITION BY query_id) AS n FROM plain_neighbours(config, min_df)) AS p WHERE n <= k) AS expected,
       count(*) AS found, count(*) FILTER (WHERE abs(f.distance - p.distance) < 1e-14) AS equal
FROM (VALUES ('english'::regconfig, 1, 3), ('english', 2, 10), ('simple', 1, 10), ('simple', 2, 1), ('german', 1, 10),
             ('portuguese', 3, 10)) AS v(config, min_df, k),
     LATERAL gpu_knn('TABLE plain_questions', 'TABLE plain_articles', k, 'cosine', false, config, min_df) f
     LEFT JOIN LATERAL plain_neighbours(config, min_df) p USING (query_id, item_id)
GROUP BY config, min_df, k;
