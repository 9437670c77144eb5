-- What make demo runs on its database. ECHO shows each statement before its result.
\set ON_ERROR_STOP on
\set QUIET on
\pset pager off
\pset linestyle unicode
\pset border 2
\pset footer off

\echo
\echo 'How many documents, and how large?'
\echo
\set ECHO queries
SELECT count(*) AS documents,
       round(sum(octet_length(body)) / 1e6, 1) AS megabytes
FROM documents;

\set ECHO none
\echo
\echo 'Is there a GPU to compare them on? Else it is done on the processors, with the same answers.'
\echo
\set ECHO queries
SELECT device, name, status FROM gputext_devices();

\set ECHO none
\echo
\echo 'Every pair of documents at most 5 % of their characters apart, kept in a table:'
\echo
\timing on
\set ECHO queries
CREATE TABLE pairs AS
SELECT * FROM near_duplicates('SELECT id, body FROM documents ORDER BY id');

\set ECHO none
\timing off
\echo
\echo 'And for every document the group that it belongs to:'
\echo
\timing on
\set ECHO queries
CREATE TABLE groups AS
SELECT * FROM near_duplicate_groups('SELECT id, body FROM documents ORDER BY id');

\set ECHO none
\timing off
\echo
\echo 'What did they find?'
\echo
\set ECHO queries
SELECT (SELECT count(*) FROM pairs) AS pairs,
       count(DISTINCT group_id) AS groups,
       count(*) AS documents_in_groups
FROM groups
WHERE group_size > 1;

\set ECHO none
\echo
\echo 'The ten largest groups:'
\echo
\set ECHO queries
SELECT g.group_size AS documents,
       d.name || (SELECT string_agg(E'\n  ' || name, '' ORDER BY id)
                  FROM (SELECT m.id, o.name
                        FROM groups m JOIN documents o USING (id)
                        WHERE m.group_id = g.group_id AND m.id <> m.group_id
                        ORDER BY m.id
                        LIMIT 3) AS others) AS the_first_and_some_others
FROM groups g JOIN documents d USING (id)
WHERE g.id = g.group_id AND g.group_size > 1
ORDER BY g.group_size DESC, g.id
LIMIT 10;

\set ECHO none
\echo
\echo 'Five pairs that are close but not the same:'
\echo
\set ECHO queries
SELECT round(p.edit_rate::numeric, 4) AS edit_rate,
       a.name || E'\n' || b.name AS pair
FROM pairs p
JOIN documents a ON a.id = p.id1
JOIN documents b ON b.id = p.id2
WHERE p.edit_rate > 0
ORDER BY p.edit_rate DESC, p.id1, p.id2
LIMIT 5;

\set ECHO none
\echo
\echo 'Each document as a vector: how often it uses each letter.'
\echo
\set ECHO queries
CREATE TABLE letters AS
SELECT id, name,
       ARRAY(SELECT (length(lower_body) - length(replace(lower_body, chr(96 + i), '')))::real / length(lower_body)
             FROM generate_series(1, 26) AS i) AS frequencies
FROM (SELECT id, name, lower(body) AS lower_body FROM documents WHERE body <> '') AS d;

\set ECHO none
\echo
\echo 'The nearest neighbours of every document by its letters, and those of the first three:'
\echo
\timing on
\set ECHO queries
CREATE TABLE neighbours AS
SELECT * FROM gpu_knn('SELECT id, frequencies FROM letters ORDER BY id',
                      'SELECT id, frequencies FROM letters ORDER BY id', k => 3, exclude_self => true);

\set ECHO none
\timing off
\echo
\set ECHO queries
SELECT q.name AS document, n.rank, i.name AS neighbour, round(n.distance::numeric, 4) AS distance
FROM neighbours n
JOIN letters q ON q.id = n.query_id
JOIN letters i ON i.id = n.item_id
WHERE q.id IN (SELECT id FROM letters ORDER BY id LIMIT 3)
ORDER BY q.id, n.rank;

\set ECHO none
\echo
\echo 'The nearest by their words, rare ones counting more; copies are left out. The same three:'
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
SELECT q.name AS document, n.rank, i.name AS neighbour, round(n.distance::numeric, 4) AS distance
FROM alike n
JOIN documents q ON q.id = n.query_id
JOIN documents i ON i.id = n.item_id
ORDER BY q.id, n.rank;

\set ECHO none
\echo
\echo 'And the words that tell those three from all others:'
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
\echo 'The five documents whose letters are least like those of any others, copies counting once:'
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
\echo 'The words of the documents as a dictionary, and some that begin alike:'
\echo
\set ECHO queries
CREATE TABLE dictionary AS
SELECT trie_agg(term) AS words FROM tfidf('SELECT id, body FROM documents', config => 'simple');
SELECT s.words, round(s.bits_per_word::numeric, 1) AS bits_per_word, trie_lookup(d.words, 'licence') AS licence
FROM dictionary d, trie_stats(d.words) AS s;
SELECT p.* FROM dictionary, trie_prefix(words, 'licen', max => 5) AS p;

\set ECHO none
\echo
\echo 'Which words mean something similar? Those that stand beside the same words, copies counting once:'
\echo
\timing on
\set ECHO queries
CREATE TABLE thesaurus AS
SELECT * FROM word_similarity('SELECT body FROM documents WHERE id IN (SELECT group_id FROM groups)',
                              5, measure => 'cosine');

\set ECHO none
\timing off
\echo
\set ECHO queries
SELECT word, array_to_string(neighbours, ', ') AS neighbours
FROM thesaurus
WHERE word IN ('int', 'may', 'modify', 'program', 'warranty');

\set ECHO none
\echo
\echo 'The same question to vectors of words, which are trained on the words around them:'
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
SELECT query_id AS word, string_agg(item_id, ', ' ORDER BY rank) AS neighbours
FROM gpu_knn('SELECT word, vector FROM model WHERE word IN (''int'', ''may'', ''modify'', ''program'', ''warranty'')',
             'SELECT word, vector FROM model', NULL::text, k => 5, exclude_self => true)
GROUP BY query_id ORDER BY query_id;

\set ECHO none
\echo
\echo 'Where all that was computed:'
\echo
\set ECHO queries
SELECT gpu_jobs, cpu_jobs, rows, cpu_fallbacks, fallback_reasons FROM gputext_stat;
