-- The second part of make demo, after demo.sql. ECHO shows each statement before its result.
\set ON_ERROR_STOP on
\set QUIET on
\pset pager off
\pset linestyle unicode
\pset border 2
\pset footer off

\echo
\echo 'Each file as a vector: how often it uses each letter.'
\echo
\set ECHO queries
CREATE TABLE letters AS
SELECT id, name,
       ARRAY(SELECT (length(lower_body) - length(replace(lower_body, chr(96 + i), '')))::real / length(lower_body)
             FROM generate_series(1, 26) AS i) AS frequencies
FROM (SELECT id, name, lower(body) AS lower_body FROM documents WHERE body <> '') AS d;

\set ECHO none
\echo
\echo 'The nearest neighbors of every file by its letters; here are those of the first three files:'
\echo
\timing on
\set ECHO queries
CREATE TABLE neighbors AS
SELECT * FROM gpu_knn('SELECT id, frequencies FROM letters ORDER BY id',
                      'SELECT id, frequencies FROM letters ORDER BY id', k => 3, exclude_self => true);

\set ECHO none
\timing off
\echo
\set ECHO queries
SELECT q.name AS document, n.rank, i.name AS neighbor, round(n.distance::numeric, 4) AS distance
FROM neighbors n
JOIN letters q ON q.id = n.query_id
JOIN letters i ON i.id = n.item_id
WHERE q.id IN (SELECT id FROM letters ORDER BY id LIMIT 3)
ORDER BY q.id, n.rank;

\set ECHO none
\echo
\echo 'The nearest neighbors of the same three files by their words (tf-idf); copies are left out:'
\echo
\timing on
\set ECHO queries
CREATE TABLE alike AS
SELECT * FROM gpu_knn('SELECT id, body FROM documents ORDER BY id LIMIT 3',
                      'SELECT id, body FROM documents WHERE id IN (SELECT group_id FROM groups) ORDER BY id',
                      k => 3, exclude_self => true, config => 'english');

\set ECHO none
\timing off
\echo
\set ECHO queries
SELECT q.name AS document, n.rank, i.name AS neighbor, round(n.distance::numeric, 4) AS distance
FROM alike n
JOIN documents q ON q.id = n.query_id
JOIN documents i ON i.id = n.item_id
ORDER BY q.id, n.rank;

\set ECHO none
\echo
\echo 'The keywords of the three files, by tf-idf:'
\echo
\set ECHO queries
SELECT name AS document, string_agg(term, ', ' ORDER BY place) AS words
FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY weight DESC, term) AS place
      FROM tfidf('SELECT id, body FROM documents WHERE id IN (SELECT group_id FROM groups)',
                 config => 'english', min_document_frequency => 3)
      WHERE id IN (SELECT query_id FROM alike)) AS weights
JOIN documents USING (id)
WHERE place <= 5
GROUP BY id, name ORDER BY id;

\set ECHO none
\echo
\echo 'Outliers: the five files with the most unusual letters; of copies, one is looked at:'
\echo
\set ECHO queries
SELECT l.name AS document, round(f.lof::numeric, 2) AS outlier_factor
FROM local_outlier_factor('SELECT id, frequencies FROM letters
                           WHERE id IN (SELECT group_id FROM groups) ORDER BY id', k => 20) AS f
JOIN letters l USING (id)
ORDER BY f.lof DESC, id
LIMIT 5;

\set ECHO none
\echo
\echo 'All words of the files as a dictionary, and the words that begin with licen:'
\echo
\set ECHO queries
CREATE TABLE dictionary AS
SELECT trie_agg(term) AS words FROM tfidf('SELECT id, body FROM documents', config => 'simple');
SELECT s.words, round(s.bits_per_word::numeric, 1) AS bits_per_word, trie_lookup(d.words, 'licence') AS licence
FROM dictionary d, trie_stats(d.words) AS s;
SELECT p.* FROM dictionary, trie_prefix(words, 'licen', max => 5) AS p;

\set ECHO none
\echo
\echo 'A thesaurus of these files: words that are used alike. Of copies, one is looked at:'
\echo
\timing on
\set ECHO queries
CREATE TABLE thesaurus AS
SELECT * FROM word_similarity('SELECT body FROM documents WHERE id IN (SELECT group_id FROM groups)', 5);

\set ECHO none
\timing off
\echo
\set ECHO queries
SELECT word, array_to_string(neighbors, ', ') AS neighbors
FROM thesaurus
WHERE word IN ('int', 'may', 'modify', 'program', 'warranty');

\set ECHO none
\echo
\echo 'Word embeddings (word2vec), trained on these files, and the most similar words by them:'
\echo
\timing on
\set ECHO queries
CREATE TABLE model AS
SELECT * FROM word2vec('SELECT body FROM documents WHERE id IN (SELECT group_id FROM groups) ORDER BY id',
                       dimensions => 50);

\set ECHO none
\timing off
\echo
\set ECHO queries
SELECT query_id AS word, string_agg(item_id, ', ' ORDER BY rank) AS neighbors
FROM gpu_knn('SELECT word, vector FROM model WHERE word IN (''int'', ''may'', ''modify'', ''program'', ''warranty'')',
             'SELECT word, vector FROM model', NULL::text, k => 5, exclude_self => true)
GROUP BY query_id ORDER BY query_id;

\set ECHO none
\echo
\echo 'Where these statements were computed:'
\echo
\set ECHO queries
SELECT gpu_jobs, cpu_jobs, rows, cpu_fallbacks, fallback_reasons FROM gputext_stat;
