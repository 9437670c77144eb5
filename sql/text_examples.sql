-- The examples of docs/tour.md and docs/text-knn.md

SET default_text_search_config = 'pg_catalog.english';
CREATE TABLE articles (id bigint PRIMARY KEY, lang text, body text);
INSERT INTO articles VALUES
    (1, 'en', 'How to boil an egg: boil the water, add the egg, wait seven minutes.'),
    (2, 'en', 'Poaching eggs without vinegar. The water must not boil.'),
    (3, 'en', 'Changing a tyre: jack, wheel nuts, spare wheel.'),
    (4, 'en', 'The wheels of a train have no tyres of rubber.'),
    (5, 'de', 'Ein Ei kochen: das Wasser kochen, die Eier hineinlegen.'),
    (6, 'de', 'Reifen wechseln: Wagenheber, Radmuttern, Ersatzrad.');
CREATE TABLE questions (id bigint PRIMARY KEY, lang text, body text);
INSERT INTO questions VALUES
    (1, 'en', 'How long does it take to boil eggs?'),
    (2, 'en', 'Which nuts fit my wheel?'),
    (3, 'de', 'Wie lange kocht ein Ei?');

SELECT q.body AS question, n.rank, a.body AS article, round(n.distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, body FROM questions WHERE lang = ''en''',
             'SELECT id, body FROM articles WHERE lang = ''en''', k => 2) AS n
JOIN questions AS q ON q.id = n.query_id
JOIN articles AS a ON a.id = n.item_id
ORDER BY q.id, n.rank;

SELECT query_id, item_id, round(distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, body FROM questions WHERE lang = ''de''',
             'SELECT id, body FROM articles WHERE lang = ''de''', k => 1, config => 'german');

SELECT id, term, round(weight::numeric, 4) AS weight
FROM tfidf('SELECT id, body FROM articles WHERE lang = ''en'' ORDER BY id')
WHERE id <= 2;

ALTER TABLE articles
    ADD COLUMN terms tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED;
SELECT query_id, item_id, round(distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, body FROM questions WHERE lang = ''en''',
             'SELECT id, terms FROM articles WHERE lang = ''en''', k => 1, config => 'english');

SELECT query_id, item_id, round(distance::numeric, 4) AS distance
FROM gpu_knn_within('SELECT id, body FROM articles WHERE lang = ''en''',
                    'SELECT id, body FROM articles WHERE lang = ''en''', radius => 0.9, exclude_self => true)
WHERE query_id < item_id;

SELECT id, string_agg(term, ', ' ORDER BY weight DESC, term) AS keywords
FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY weight DESC, term) AS place
      FROM tfidf('SELECT id, body FROM articles WHERE lang = ''en''')) AS weights
WHERE place <= 2
GROUP BY id ORDER BY id;

CREATE TABLE baskets (id bigint PRIMARY KEY, products integer[], amounts real[]);
INSERT INTO baskets VALUES (1, '{17,4,99}', '{2,1,1}'), (2, '{4,17}', '{1,3}'), (3, '{99,5}', '{1,6}'), (4, '{8}', '{1}');
SELECT query_id, item_id, round(distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, products, amounts FROM baskets',
             'SELECT id, products, amounts FROM baskets', k => 1, exclude_self => true);

DROP TABLE articles, questions, baskets;
