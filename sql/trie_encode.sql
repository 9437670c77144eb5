-- trie_encode and trie_encode_documents

CREATE TABLE articles (id bigint PRIMARY KEY, lang text, body text);
INSERT INTO articles VALUES
    (1, 'en', 'How to boil an egg: boil the water, add the egg.'),
    (2, 'en', 'Poaching eggs. The water must not boil, or the eggs break.'),
    (3, 'pt', 'ferver a água e juntar os ovos'),
    (4, 'en', ''),
    (5, 'en', NULL),
    (6, 'en', '?!');
CREATE TABLE dictionary AS
SELECT trie_agg(word) AS words FROM (VALUES ('egg'), ('eggs'), ('water'), ('boil'), ('água'), ('the'), ('')) AS v(word);

-- Words in the order of the inner query, with NULL for those that the dictionary does not have
SELECT e.* FROM dictionary, trie_encode(words, $$VALUES (7::bigint, 'water'), (3, 'egg'), (3, ''), (9, 'eg'), (1, 'egg')$$) AS e;
SELECT e.* FROM dictionary, trie_encode(words, $$VALUES ('a', 'boil'), ('b', 'tyre')$$, NULL::text) AS e;
SELECT e.* FROM dictionary, trie_encode(words, $$VALUES ('2026-11-21'::date, 'boil'::varchar)$$, id_type => NULL::date) AS e;
SELECT e.* FROM dictionary, trie_encode(words, 'SELECT id, lang FROM articles WHERE false') AS e;
SELECT e.* FROM dictionary, trie_encode(words, $$VALUES (1::bigint, NULL), (2, 'egg'), (3, NULL)$$) AS e;
-- Against trie_lookup
CREATE TABLE many AS SELECT i::bigint AS id, md5((i % 7000)::text) AS word FROM generate_series(1, 20000) AS i;
CREATE TABLE hashes AS SELECT trie_agg(word) AS words FROM many WHERE id % 3 = 0;
SELECT count(*) AS rows, count(e.code) AS known, bool_and(e.code IS NOT DISTINCT FROM trie_lookup(words, word)) AS equal
FROM hashes, trie_encode(words, 'TABLE many') AS e JOIN many USING (id);
-- A dictionary decodes what it has encoded.
SELECT count(*) AS different FROM hashes, trie_encode(words, 'TABLE many') AS e JOIN many USING (id)
WHERE trie_decode(words, e.code) <> word;

-- Documents, by the server's parser
SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM articles WHERE id <> 5 ORDER BY id') AS e;
SELECT e.*, ARRAY(SELECT trie_decode(words, code) FROM unnest(codes) AS code) AS read
FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM articles ORDER BY id', config => 'english') AS e;
SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT lang, body FROM articles WHERE id = 3', NULL::text, 'portuguese') AS e;
SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM articles WHERE id = 2', id_type => NULL::bigint) AS e;
SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM articles WHERE false') AS e;
-- A text above the sizes that the parser is given at once, and more words than a tsvector has positions
SELECT cardinality(codes) AS words, array_position(codes, NULL) AS first_unknown,
       (SELECT count(DISTINCT code) FROM unnest(codes) AS code) AS different
FROM dictionary, trie_encode_documents(words, $$SELECT 1::bigint, repeat('boil the water, add the egg ', 100000)$$) AS e;
-- Against the positions of to_tsvector
CREATE TABLE expected AS
SELECT id, array_agg(trie_lookup(words, lexeme) ORDER BY position) AS codes
FROM dictionary, articles, unnest(to_tsvector('simple', body)), unnest(positions) AS position GROUP BY id;
SELECT id, e.codes = x.codes AS equal
FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM articles WHERE body ~ ''[a-z]''') AS e JOIN expected x USING (id) ORDER BY id;

-- Few words are looked up on the CPU, and few are made a dictionary there, whatever devices there are.
SELECT cpu_jobs FROM gputext_stat \gset before_
SELECT count(*) FROM dictionary, trie_encode(words, $$VALUES (1::bigint, 'egg')$$);
SELECT trie_summary(trie_agg(w)) FROM (VALUES ('egg'), ('boil')) AS v(w);
SELECT cpu_jobs - :before_cpu_jobs >= 2 AS on_cpu FROM gputext_stat;
-- Rows may lie in a file.
SET gputext.host_memory_limit = '1MB';
SELECT count(*) AS rows, count(e.code) AS known FROM hashes, trie_encode(words, 'SELECT a.* FROM many a, generate_series(1, 5)') AS e;
RESET gputext.host_memory_limit;

-- Errors

SELECT * FROM trie_encode(NULL, 'TABLE many');
SELECT e.* FROM dictionary, trie_encode(words, NULL) AS e;
SELECT e.* FROM dictionary, trie_encode(words, 'TABLE nothing') AS e;
SELECT e.* FROM dictionary, trie_encode(words, 'TABLE articles') AS e;
SELECT e.* FROM dictionary, trie_encode(words, 'SELECT id, id FROM articles') AS e;
SELECT e.* FROM dictionary, trie_encode(words, 'SELECT id, body::char(9) FROM articles') AS e;
SELECT e.* FROM dictionary, trie_encode(words, 'SELECT lang, body FROM articles') AS e;
SELECT e.* FROM dictionary, trie_encode(words, 'SELECT NULL::bigint, body FROM articles') AS e;
SELECT e.* FROM dictionary, trie_encode(words, 'DELETE FROM articles') AS e;
SELECT * FROM trie_encode_documents(NULL, 'TABLE many');
SELECT e.* FROM dictionary, trie_encode_documents(words, NULL) AS e;
SELECT e.* FROM dictionary, trie_encode_documents(words, 'TABLE articles') AS e;
SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT lang, body FROM articles') AS e;
SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM articles', config => NULL) AS e;
SELECT e.* FROM dictionary, trie_encode_documents(words, 'SELECT id, body FROM articles', config => 4::regconfig) AS e;

DROP TABLE articles, dictionary, many, hashes, expected;
