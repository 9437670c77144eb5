-- The examples of docs/tour.md and docs/word-similarity.md
CREATE TABLE stories (id bigint PRIMARY KEY, body text);
INSERT INTO stories VALUES
    (1, 'The cat drinks milk. The dog drinks water.'),
    (2, 'The cat eats fish. The dog eats meat.'),
    (3, 'A cat sleeps all day. A dog sleeps all night.'),
    (4, 'The child drinks water and eats fish.'),
    (5, 'The child drinks milk and eats meat.');

SELECT word, neighbors, similarities
FROM word_similarity('SELECT id, body FROM stories', 2, min_count => 2, preset => 'thesis')
WHERE word IN ('cat', 'drinks', 'milk');

SELECT position, neighbor, count, weight
FROM word_cooccurrences('SELECT id, body FROM stories', min_count => 2, preset => 'thesis')
WHERE word = 'drinks' ORDER BY weight DESC, neighbor LIMIT 3;

CREATE TABLE counts AS
SELECT word, position, neighbor, count
FROM word_cooccurrences('SELECT body FROM stories WHERE id <= 3', min_count => 1, preset => 'thesis');

INSERT INTO counts
SELECT word, position, neighbor, count
FROM word_cooccurrences('SELECT body FROM stories WHERE id > 3', min_count => 1, preset => 'thesis');

SELECT neighbors FROM word_similarity_from_counts('TABLE counts', 3, preset => 'thesis') WHERE word = 'milk';

DROP TABLE stories, counts;
