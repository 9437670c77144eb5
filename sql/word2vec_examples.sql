-- The examples of README and docs/word2vec.md
CREATE TABLE roles (role text, of_men text, of_women text, does text[]);
INSERT INTO roles VALUES
    ('ruler', 'king', 'queen', '{rules the land,wears a crown,sits on the throne}'),
    ('grown', 'man', 'woman', '{works all day,drives a car,reads the newspaper}'),
    ('child', 'boy', 'girl', '{goes to school,plays with a ball,climbs a tree}'),
    ('stage', 'actor', 'actress', '{plays in the theatre,learns a role,bows to the audience}');
CREATE TABLE articles AS
SELECT i AS id, CASE WHEN i % 2 = 0 THEN format('The %s %s because he likes his life', of_men, does[1 + i % 3])
                                    ELSE format('The %s %s because she likes her life', of_women, does[1 + i % 3]) END AS body
FROM generate_series(1, 6000) AS i JOIN LATERAL (SELECT * FROM roles ORDER BY md5(i || role) LIMIT 1) AS r ON true;

CREATE TABLE model AS
SELECT * FROM word2vec('SELECT id, body FROM articles', dimensions => 20, epochs => 20, sample => 0);
SELECT word, count, vector[1:2] AS vector FROM model LIMIT 3;

SELECT i.word, round((1 - n.distance)::numeric, 2) AS similarity FROM gpu_knn('SELECT word, vector FROM model WHERE word = ''king''', 'SELECT word, vector FROM model', NULL::text, 5, exclude_self => true) n JOIN model i ON i.word = n.item_id ORDER BY rank;
