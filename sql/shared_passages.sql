-- Passages that stand in several documents, compared with plain SQL
\set SHOW_CONTEXT never
CREATE SCHEMA shared_passages;
SET search_path = shared_passages, public;
SET gputext.device = cpu;

CREATE TABLE mails (id integer, body text);
INSERT INTO mails VALUES
    (1, 'Dear all, the meeting is on Tuesday at nine in room four. Grüße aus Köln, Ada'),
    (2, E'I agree.\n> the meeting is on Tuesday at nine in room four.\nGrüße aus Köln, Ada'),
    (3, 'The Meeting is on   tuesday at nine, in room four.'),
    (4, 'Nothing of that.'),
    (5, ''),
    (6, NULL);

-- ---- Pairs of places ----

SELECT * FROM shared_passages('SELECT id, body FROM mails', min_length => 16);
SELECT substr(a.body, start1, length1) = substr(b.body, start2, length2) AS equal, substr(a.body, start1, length1) AS passage
FROM shared_passages('SELECT id, body FROM mails', id_type => NULL::integer, min_length => 16)
    JOIN mails AS a ON a.id = id1 JOIN mails AS b ON b.id = id2;
SELECT * FROM shared_passages('SELECT id, body FROM mails WHERE body IS NOT NULL', min_length => 16, fold_case => true, fold_blanks => true);
SELECT * FROM shared_passages('SELECT id, body FROM mails WHERE body IS NOT NULL', min_length => 10, fold_blanks => true) WHERE id2 = 3;
SELECT * FROM shared_passages('SELECT id, body FROM mails WHERE body IS NOT NULL', min_length => 6, unit => 'words', fold_case => true);
SELECT * FROM shared_passages_between('SELECT id, body FROM mails WHERE id = 3', 'SELECT id, body FROM mails WHERE id < 3', min_length => 16);
-- Bytes of bytea
SELECT * FROM shared_passages('SELECT id, convert_to(body, ''UTF8'') FROM mails WHERE id < 3', min_length => 20);
-- Ids of other types, and in the order of the query
SELECT * FROM shared_passages('SELECT ''mail '' || id, body FROM mails WHERE id < 4 ORDER BY id DESC', id_type => NULL::text, min_length => 20);

-- Against all pairs of places, by their definition
CREATE TABLE plain (id bigint, body text);
INSERT INTO plain
SELECT i, string_agg(chr(97 + (hashint4(i * 1000 + j)::bigint & 1)::integer), '' ORDER BY j)
FROM generate_series(1, 12) AS i, generate_series(1, 20 + i) AS j GROUP BY i;
INSERT INTO plain SELECT 13, substr(a.body, 3, 15) || 'Ä' || substr(b.body, 5, 12) FROM plain AS a, plain AS b WHERE a.id = 3 AND b.id = 9;
INSERT INTO plain SELECT 14, repeat('a', 30);
INSERT INTO plain SELECT 15, repeat('a', 20);

CREATE VIEW places AS
SELECT id, at, substr(body, at::integer) AS rest, substr(body, at::integer - 1, 1) AS before
FROM plain, generate_series(1, length(body)) AS at;
CREATE VIEW maximal AS
SELECT a.id AS id1, a.at AS start1, b.id AS id2, b.at AS start2,
    (SELECT max(n) FROM generate_series(0, least(length(a.rest), length(b.rest))) AS n WHERE left(a.rest, n) = left(b.rest, n)) AS length
FROM places AS a JOIN places AS b ON a.id <> b.id AND (a.before <> b.before OR a.at = 1 OR b.at = 1) AND left(a.rest, 6) = left(b.rest, 6)
WHERE length(a.rest) >= 6 AND length(b.rest) >= 6;

CREATE FUNCTION compare(given text, expected text) RETURNS TABLE (missing bigint, extra bigint, same bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('WITH f AS (%s), e AS (%s) SELECT (SELECT count(*) FROM (TABLE e EXCEPT ALL TABLE f) AS x), '
        '(SELECT count(*) FROM (TABLE f EXCEPT ALL TABLE e) AS x), (SELECT count(*) FROM (TABLE e INTERSECT ALL TABLE f) AS x)', given, expected);
END $$;

SELECT * FROM compare(
    $$ SELECT id1, start1, length1, id2, start2, length2 FROM shared_passages('SELECT id, body FROM plain', min_length => 6) $$,
    $$ SELECT id1, start1, length, id2, start2, length FROM maximal WHERE id1 < id2 $$);
SELECT * FROM compare(
    $$ SELECT id1, start1, id2, start2, length2
       FROM shared_passages_between('SELECT id, body FROM plain WHERE id % 3 = 0', 'SELECT id, body FROM plain WHERE id % 3 <> 0', min_length => 6) $$,
    $$ SELECT id1, start1, id2, start2, length FROM maximal WHERE id1 % 3 = 0 AND id2 % 3 <> 0 $$);
-- The characters of windows that stand in two other documents
SELECT * FROM compare(
    $$ SELECT id, sum(l)::integer FROM passage_coverage('SELECT id, body FROM plain', min_length => 9, min_documents => 3), unnest(lengths) AS l GROUP BY id $$,
    $$ SELECT a.id, count(DISTINCT a.at + offs)::integer
       FROM places AS a, generate_series(0, 8) AS offs
       WHERE length(a.rest) >= 9 AND (SELECT count(*) FROM plain AS b WHERE b.id <> a.id AND strpos(b.body, left(a.rest, 9)) > 0) >= 2
       GROUP BY a.id $$);

-- ---- What stands elsewhere ----

SELECT * FROM passage_coverage('SELECT id, body FROM mails WHERE body IS NOT NULL', min_length => 16);
SELECT * FROM passage_coverage_between('SELECT id, body FROM mails WHERE id = 2', 'SELECT id, body FROM mails WHERE id = 1', min_length => 16);
SELECT m.id, cut_passages(body, starts, lengths) FROM mails AS m
    JOIN passage_coverage_between('SELECT id, body FROM mails WHERE id = 2', 'SELECT id, body FROM mails WHERE id = 1', min_length => 16) AS c ON m.id = c.id;
-- As many characters are cut as are covered
CREATE TABLE left_over AS
SELECT p.id, cut_passages(body, starts, lengths) AS body
FROM plain AS p JOIN passage_coverage('SELECT id, body FROM plain', min_length => 9) AS c ON p.id = c.id;
SELECT bool_and(c.covered = length(p.body) - length(l.body)) AS cut, count(*) FILTER (WHERE covered > 0) AS covered
FROM plain AS p JOIN left_over AS l ON p.id = l.id
    JOIN passage_coverage('SELECT id, body FROM plain', min_length => 9) AS c ON p.id = c.id;
-- What is between two words is covered if a passage has both.
SELECT * FROM passage_coverage($$VALUES (1, 'one --------- two'), (2, 'one'), (3, 'two')$$, min_length => 1, unit => 'words');
SELECT * FROM passage_coverage($$VALUES (1, 'one - two, three; four'), (2, 'One. two one'), (3, 'two three')$$, min_length => 1, unit => 'words');
SELECT * FROM passage_coverage($$VALUES (1, 'p q r s t, u v w x y'), (2, 'p q r s t'), (3, 'u v w x y')$$, min_length => 5, unit => 'words');

SELECT * FROM common_passages('SELECT id, body FROM mails WHERE body IS NOT NULL', min_length => 16);
SELECT * FROM common_passages('SELECT id, body FROM mails WHERE body IS NOT NULL', min_length => 3, min_documents => 3, unit => 'words', fold_case => true);
SELECT bool_and(documents = (SELECT count(*) FROM plain WHERE strpos(body, passage) > 0)) AS at_least,
    bool_and(passage = (SELECT substr(body, start, length) FROM plain WHERE id = c.id)) AS place, count(*) > 5 AS some
FROM common_passages('SELECT id, body FROM plain WHERE id < 13', min_length => 9) AS c;
-- The first place, also within a longer passage, and in the order of these
SELECT * FROM common_passages($$VALUES (1, 'headeralpha'), (2, 'headeralpha'), (3, 'header')$$, min_length => 4);
SELECT * FROM common_passages($$VALUES (1, 'HEADERalpha'), (2, 'HEADERalpha'), (3, 'a header')$$, min_length => 4, fold_case => true);
SELECT bool_and((id, start) = (SELECT p.id, strpos(p.body, passage) FROM plain AS p WHERE strpos(p.body, passage) > 0 ORDER BY p.id LIMIT 1)) AS first,
    bool_and(place > before) AS in_order
FROM (SELECT *, ROW (id, start, length) AS place, lag(ROW (id, start, length)) OVER () AS before
      FROM common_passages('SELECT id, body FROM plain', min_length => 9)) AS c;

SELECT cut_passages('abcdef', '{2,5}', '{2,9}'), cut_passages('abcdef', '{1,2}', '{3,1}'), cut_passages('abcdef', '{}', '{}'),
    cut_passages('', '{1}', '{1}'), cut_passages('Grüße', '{3}', '{2}'), cut_passages('abc', '{9}', '{3}'),
    cut_passages('abc', '{2}', '{2147483647}'), cut_passages('hello', '{6}', '{1}'), cut_passages('hello', '{2}', '{0}');

-- ---- Errors ----

SELECT * FROM shared_passages('SELECT id, body FROM mails', min_length => 0);
SELECT * FROM shared_passages('SELECT id, body FROM mails', NULL::integer);
SELECT * FROM shared_passages('SELECT id, body FROM mails', id_type => NULL::integer, min_length => NULL);
SELECT * FROM shared_passages('SELECT id, body FROM mails', unit => 'lines');
SELECT * FROM shared_passages('SELECT id, body FROM mails', max_pairs => 0);
SELECT * FROM shared_passages('SELECT id, body FROM mails WHERE id < 3', min_length => 3, max_pairs => 1);
SELECT * FROM shared_passages('SELECT body, id FROM mails');
SELECT * FROM shared_passages_between('SELECT id, body FROM mails', 'SELECT id, body::bytea FROM mails WHERE id = 4');
SELECT * FROM passage_coverage('SELECT id, body FROM mails', min_documents => 1);
SELECT * FROM passage_coverage_between('SELECT id, body FROM mails', 'SELECT id, body FROM mails', min_documents => 0);
SELECT * FROM common_passages('SELECT id, body::bytea FROM mails WHERE id = 4');
SELECT cut_passages('abc', '{2}', '{1,2}');
SELECT cut_passages('abc', '{2,1}', '{1,2}');
SELECT cut_passages('abc', '{0,1}', '{1,2}');
SELECT cut_passages('abc', '{1,2}', '{1,-1}');
SELECT cut_passages('abc', '{{1},{2}}', '{1,2}');
SELECT cut_passages('abc', '{1,NULL}', '{1,2}');
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM shared_passages('SELECT i, repeat(''abc'', 100) FROM generate_series(1, 200) AS i');
SELECT count(*) FROM common_passages('SELECT i, repeat(''abc'', 50000 + i) FROM generate_series(1, 2) AS i');
RESET gputext.host_memory_limit;
-- Repetitions take no longer than other texts.
SELECT left(passage, 6) AS begins, documents, occurrences, id, start, length
FROM common_passages('SELECT 1, repeat(''a'', 300000) UNION ALL SELECT 2, ''b'' || repeat(''a'', 200000) UNION ALL SELECT 3, repeat(''ab'', 100000)');
-- Nothing to compare
SELECT * FROM shared_passages('SELECT id, body FROM mails WHERE id < 2');
SELECT * FROM common_passages('SELECT id, body FROM mails WHERE false');
SELECT * FROM passage_coverage_between('SELECT id, body FROM mails WHERE id = 4', 'SELECT id, body FROM mails WHERE false');

SET client_min_messages = warning;
DROP SCHEMA shared_passages CASCADE;
