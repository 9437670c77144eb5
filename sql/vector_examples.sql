-- The examples of docs/tour.md, docs/knn.md, docs/cosine-similarity.md and docs/outlier-factor.md

CREATE TABLE articles (id bigint PRIMARY KEY, title text, lang text, embedding real[]);
INSERT INTO articles VALUES
    (1, 'Boiling an egg', 'en', '{0.9,0.1,0.0}'),
    (2, 'Poaching an egg', 'en', '{0.8,0.2,0.1}'),
    (3, 'Changing a tyre', 'en', '{0.1,0.9,0.2}'),
    (4, 'Reifen wechseln', 'de', '{0.1,0.8,0.3}'),
    (5, 'Ein Ei kochen', 'de', '{0.9,0.2,0.0}');
CREATE TABLE questions (id bigint PRIMARY KEY, body text, embedding real[]);
INSERT INTO questions VALUES
    (1, 'How long does an egg take?', '{0.9,0.1,0.1}'),
    (2, 'My car has a flat', '{0.0,0.9,0.3}');

SELECT q.body, n.rank, a.title, round(n.distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, embedding FROM questions',
             'SELECT id, embedding FROM articles', k => 2) AS n
JOIN questions AS q ON q.id = n.query_id
JOIN articles AS a ON a.id = n.item_id
ORDER BY q.id, n.rank;

SELECT query_id, item_id, round(distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, embedding FROM questions',
             'SELECT id, embedding FROM articles WHERE lang = ''de''', k => 1);

SELECT query_id, item_id, rank, round(distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, embedding FROM articles',
             'SELECT id, embedding FROM articles', k => 1, metric => 'euclidean', exclude_self => true);

SELECT query_id, item_id, round(distance::numeric, 4) AS distance
FROM gpu_knn_within('SELECT id, embedding FROM articles',
                    'SELECT id, embedding FROM articles', radius => 0.02, exclude_self => true)
WHERE query_id < item_id;

SELECT query_id, item_id
FROM gpu_knn('SELECT body, embedding FROM questions',
             'SELECT title, embedding FROM articles', id_type => NULL::text, k => 1);

SELECT query_id, item_id, rank, lang
FROM (SELECT DISTINCT lang FROM articles) AS langs,
     LATERAL gpu_knn('SELECT id, embedding FROM questions',
                     format('SELECT id, embedding FROM articles WHERE lang = %L', lang), k => 1) AS n
ORDER BY query_id, lang;

SELECT cosine_similarity(ARRAY[3, 4], ARRAY[4, 3]), cosine_similarity('{0,0}'::real[], '{1,2}') AS of_zero;

SELECT a.title, round(s.similarity::numeric, 4) AS similarity
FROM cosine_similarities('{0.9,0.1,0.1}', 'SELECT id, embedding FROM articles') AS s
JOIN articles AS a USING (id)
ORDER BY s.similarity DESC LIMIT 2;

CREATE TABLE readings (id bigint PRIMARY KEY, temperature real, pressure real);
INSERT INTO readings VALUES
    (1, 20.1, 1.01), (2, 20.3, 1.02), (3, 19.9, 1.00), (4, 20.0, 1.03), (5, 20.2, 0.99),
    (6, 35.0, 1.01), (7, 34.8, 1.02), (8, 35.3, 1.00), (9, 34.9, 0.98), (10, 27.0, 1.50);

SELECT r.*, round(f.lof::numeric, 2) AS lof
FROM local_outlier_factor('SELECT id, ARRAY[temperature, pressure] FROM readings', k => 3) AS f
JOIN readings AS r USING (id)
ORDER BY f.lof DESC LIMIT 3;

SELECT id, round(lof::numeric, 2) AS lof
FROM local_outlier_factor('SELECT id, ARRAY[temperature / stddev_pop(temperature) OVER (),
                                            pressure / stddev_pop(pressure) OVER ()]
                           FROM readings ORDER BY id', k => 3)
WHERE lof > 1.5;

DROP TABLE articles, questions, readings;
