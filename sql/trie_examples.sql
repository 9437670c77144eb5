-- The examples of docs/tour.md and docs/trie.md

CREATE TABLE vocabulary (word text);
INSERT INTO vocabulary VALUES ('egg'), ('eggs'), ('water'), ('boil'), ('boiled'), ('boiling'), ('the');
CREATE MATERIALIZED VIEW dictionary AS SELECT trie_agg(word) AS words FROM vocabulary;
SELECT trie_lookup(words, 'boiled') AS code, trie_decode(words, 3) AS word FROM dictionary;
SELECT p.* FROM dictionary, trie_prefix(words, 'boil') AS p;
CREATE TABLE articles (id bigint PRIMARY KEY, body text);
INSERT INTO articles VALUES (1, 'Boil the water, add the egg.'), (2, 'Boiled eggs');
CREATE TABLE encoded AS
SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM articles') AS e;
SELECT * FROM encoded ORDER BY id;
SELECT e.id, count(*) AS words
FROM dictionary, trie_prefix_range(words, 'boil') AS r, encoded AS e, unnest(e.codes) AS code
WHERE code BETWEEN r.first AND r.last
GROUP BY e.id ORDER BY e.id;
SELECT p.* FROM dictionary, trie_prefixes_of(words, 'eggshell') AS p;
SELECT e.* FROM dictionary, trie_encode(words, $$VALUES ('a', 'water'), ('b', 'fire')$$, NULL::text) AS e;
SELECT word, trie_lookup(d, word) AS code, trie_node(d, word) AS node
FROM (SELECT trie_agg(word, 'xbw') AS d FROM unnest('{aba,ba,bb,cb,cc}'::text[]) AS word) AS one,
     unnest('{aba,ba,bb,cb,cc}'::text[]) AS word;
DROP TABLE articles, encoded;
DROP MATERIALIZED VIEW dictionary;
DROP TABLE vocabulary;
