-- The examples of docs/tour.md and docs/word2vec.md
CREATE TABLE roles (role text, of_men text, of_women text, does text[]);
INSERT INTO roles VALUES
    ('ruler', 'king', 'queen', '{rules the land,wears a crown,sits on the throne}'),
    ('grown', 'man', 'woman', '{works all day,drives a car,reads the newspaper}'),
    ('child', 'boy', 'girl', '{goes to school,plays with a ball,climbs a tree}'),
    ('stage', 'actor', 'actress', '{plays in the theatre,learns a role,bows to the audience}');
CREATE TABLE articles AS
SELECT i AS id, CASE WHEN i % 2 = 0 THEN format('He, the %s, %s with his friends', of_men, does[1 + i % 3])
                                    ELSE format('She, the %s, %s with her friends', of_women, does[1 + i % 3]) END AS body
FROM generate_series(1, 6000) AS i JOIN LATERAL (SELECT * FROM roles ORDER BY md5(i || role) LIMIT 1) AS r ON true
ORDER BY i;

CREATE TABLE model AS
SELECT * FROM word2vec('SELECT id, body FROM articles', dimensions => 20, epochs => 20, sample => 0);
SELECT word, count, cardinality(vector) AS dimensions FROM model LIMIT 3;

SELECT query_id AS word, item_id AS most_similar
FROM gpu_knn('SELECT word, vector FROM model WHERE word IN (''king'', ''woman'', ''boy'', ''actress'')',
             'SELECT word, vector FROM model', NULL::text, 1, exclude_self => true)
ORDER BY word;

CREATE TABLE units AS
SELECT word, (SELECT array_agg(x / |/ square ORDER BY i)::real[] FROM unnest(vector) WITH ORDINALITY AS u (x, i)) AS vector
FROM model, LATERAL (SELECT sum(x::float8 * x) AS square FROM unnest(vector) AS x) AS s;
CREATE TABLE questions (a text, b text, c text);
INSERT INTO questions VALUES ('man', 'king', 'woman'), ('queen', 'king', 'girl'), ('boy', 'girl', 'actor');

CREATE TABLE asked AS
SELECT q.*, format('%s is to %s as %s is to', a, b, c) AS question,
       (SELECT array_agg(vb - va + vc ORDER BY i)::real[]
        FROM unnest(ua.vector, ub.vector, uc.vector) WITH ORDINALITY AS u (va, vb, vc, i)) AS vector
FROM questions AS q JOIN units AS ua ON ua.word = a JOIN units AS ub ON ub.word = b JOIN units AS uc ON uc.word = c;

SELECT DISTINCT ON (question) question, item_id AS answer
FROM gpu_knn('SELECT question, vector FROM asked', 'TABLE units', NULL::text, 4)
JOIN asked ON question = query_id AND item_id NOT IN (a, b, c)
ORDER BY question, rank;

CREATE VIEW model_lines AS
SELECT 0 AS place, count(*) || ' ' || max(cardinality(vector)) AS line FROM model
UNION ALL
SELECT row_number() OVER (ORDER BY count DESC, word COLLATE "C"), word || ' ' || array_to_string(vector, ' ') FROM model;
COPY (SELECT line FROM model_lines ORDER BY place LIMIT 1) TO STDOUT;
-- All of it, read back
SELECT count(*) AS words, bool_and((string_to_array(line, ' '))[2:]::real[] = vector) AS same
FROM model_lines JOIN model ON word = split_part(line, ' ', 1) WHERE place > 0;

CREATE TABLE new_articles AS
SELECT i AS id, format('The %s %s', CASE WHEN i % 2 = 0 THEN 'emperor' ELSE 'empress' END, does[1 + i % 3]) AS body
FROM generate_series(1, 500) AS i, roles WHERE role = 'ruler';

CREATE TABLE new_model AS
SELECT * FROM word2vec('SELECT body FROM new_articles', dimensions => 20, epochs => 20, sample => 0,
                       initial => 'TABLE model');

SELECT count(*) AS words, sum(count) AS tokens, count(*) FILTER (WHERE word IN ('emperor', 'empress')) AS new FROM new_model;
SELECT string_agg(item_id, ', ' ORDER BY item_id) AS most_similar
FROM gpu_knn('SELECT word, vector FROM new_model WHERE word = ''emperor''',
             'SELECT word, vector FROM new_model', NULL::text, 3, exclude_self => true);

DROP VIEW model_lines;
DROP TABLE roles, articles, model, units, questions, asked, new_articles, new_model;
