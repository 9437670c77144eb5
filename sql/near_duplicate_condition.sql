-- is_near_duplicate(), the operators ~= and @~, and the setting of the first

-- The rate is at most the threshold: the edit distance over the sum of the lengths, in characters or in bytes.
SELECT is_near_duplicate('abcdefghij', 'abcdefghiX', 0.05) AS at_the_threshold,
       is_near_duplicate('abcdefghij', 'abcdefghiX', 0.0499) AS below_it,
       is_near_duplicate('äbcdefghij', 'abcdefghij', 0.05) AS characters,
       is_near_duplicate(convert_to('äbcdefghij', 'UTF8'), 'abcdefghij', 0.05) AS bytes,
       is_near_duplicate('A text', 'a text', 0.05) AS letter_case;
SELECT is_near_duplicate('', '', 0) AS empty, is_near_duplicate('', 'a', 0.49) AS one_empty,
       is_near_duplicate(''::bytea, '', 0) AS empty_bytes, is_near_duplicate(''::bytea, 'a', 0.49) AS one_empty_bytes;
SELECT is_near_duplicate(NULL, 'a', 0.1) IS NULL AND is_near_duplicate('a', NULL, 0.1) IS NULL AND
       is_near_duplicate('a'::text, 'a', NULL) IS NULL AND 'a'::text ~= NULL IS NULL AND
       near_duplicate_query('a'::text, NULL) IS NULL AND 'a'::text @~ NULL::near_duplicate_query IS NULL AS null_for_nulls;

-- Against edit_rate(), on 3600 pairs at five thresholds, either way round
CREATE TABLE pairs AS
WITH words AS (
    SELECT i, j, word, substr(md5(i % 60 || '/' || word), 1, 1 + (word * i) % 8) ||
                       CASE WHEN (word * 7 + j) % 40 < j % 8 THEN 'é' || j % 3 ELSE '' END AS a
    FROM generate_series(1, 60) AS i, generate_series(0, 59) AS j, generate_series(1, 12) AS word
)
SELECT i, j, string_agg(a, ' ' ORDER BY word) AS a,
       string_agg(CASE WHEN (word * 5 + i) % 30 < j % 9 * 3 THEN 'ü' ELSE a END, ' ' ORDER BY word) AS b
FROM words GROUP BY i, j;
SELECT threshold, count(*) FILTER (WHERE edit_rate(a, b) <= threshold) AS near,
       count(*) FILTER (WHERE is_near_duplicate(a, b, threshold) <> (edit_rate(a, b) <= threshold)) AS wrong,
       count(*) FILTER (WHERE is_near_duplicate(b, a, threshold) <> (edit_rate(a, b) <= threshold)) AS wrong_swapped,
       count(*) FILTER (WHERE a @~ near_duplicate_query(b, threshold) <> (edit_rate(a, b) <= threshold)) AS wrong_query,
       count(*) FILTER (WHERE is_near_duplicate(a::bytea, b::bytea, threshold) <>
                              (edit_distance(a::bytea, b::bytea) <= threshold * (octet_length(a) + octet_length(b)))) AS wrong_bytes
FROM pairs, unnest('{0, 0.02, 0.1, 0.25, 0.49}'::double precision[]) AS threshold GROUP BY threshold ORDER BY threshold;
-- One document with many, and many with one: the function keeps what it knows of it.
SELECT count(*) FILTER (WHERE is_near_duplicate(p.a, q.a, 0.3)) = count(*) FILTER (WHERE edit_rate(p.a, q.a) <= 0.3) AS one_second,
       count(*) FILTER (WHERE is_near_duplicate(q.a, p.a, 0.3)) = count(*) FILTER (WHERE edit_rate(p.a, q.a) <= 0.3) AS one_first
FROM pairs p, (SELECT a FROM pairs WHERE i = 9 AND j = 9) AS q;
DROP TABLE pairs;
-- Two documents at several thresholds
SELECT t, is_near_duplicate('abcdefghij', 'abcdefghiX', t) FROM (VALUES (0.01::float8), (0.2), (0.01)) AS v (t);

-- Thresholds are edit rates below 0.5, from which on documents are not told apart.
SELECT is_near_duplicate('a', 'b', 0.5);
SELECT is_near_duplicate('a', 'b', -0.1);
SELECT is_near_duplicate('a'::bytea, 'b', 'NaN');
SELECT near_duplicate_query('a', 'Infinity');

-- A document with its threshold
SELECT near_duplicate_query('one, two', 0.25), near_duplicate_query('\x00ff'::bytea, 0), near_duplicate_query('', 0.1);
SELECT query, query::text::near_duplicate_query::text = query::text AS same
FROM unnest(ARRAY['text,0.05,one, two', 'text,.1,', 'bytea,1e-3,\x00ff', 'bytea,0,a\\b\000']::near_duplicate_query[]) AS query;
SELECT 'one, two' @~ 'text,0.05,one, two' AS equal, '\x00ff'::bytea @~ 'bytea,0,\x00ff' AS equal_bytes,
       '\x00ff'::bytea @~ 'bytea,0.2,\x00fe' AS other_bytes;
SELECT ''::near_duplicate_query;
SELECT 'text,0.05'::near_duplicate_query;
SELECT 'varchar,0.05,a document'::near_duplicate_query;
SELECT 'text,small,a document'::near_duplicate_query;
SELECT 'text,0.5,a document'::near_duplicate_query;
SELECT 'bytea,0.1,\xg'::near_duplicate_query;
-- Stored documents of one size, whose queries are made one after another, out of line and compressed
CREATE TABLE stored (id integer, body text);
ALTER TABLE stored ALTER body SET STORAGE EXTERNAL;
INSERT INTO stored SELECT i, repeat(md5(i % 3 || ''), 100) FROM generate_series(1, 6) AS i;
ALTER TABLE stored ALTER body SET STORAGE EXTENDED;
INSERT INTO stored SELECT 6 + i, repeat(chr(64 + i % 3), 4000) FROM generate_series(1, 6) AS i;
SELECT count(*), count(DISTINCT pg_column_size(body)) AS stored_sizes,
       count(*) FILTER (WHERE near_duplicate_query(body, 0.1)::text <> 'text,0.1,' || body) AS wrong FROM stored;
DROP TABLE stored;
-- Documents of one type
SELECT 'a'::bytea @~ near_duplicate_query('a'::text, 0.1);
SELECT 'a'::text @~ near_duplicate_query('a'::bytea, 0.1);

-- ~= takes its threshold from a setting, which any user may change: nothing that is stored rests on it.
SHOW gputext.near_duplicate_threshold;
SELECT 'abcdefghij' ~= 'abcdefghiX'::text AS near, 'abcdefghij' ~= 'abcdefghXX'::text AS not_near,
       'abcdefghij'::bytea ~= 'abcdefghiX' AS near_bytes;
SET gputext.near_duplicate_threshold = 0.1;
SELECT 'abcdefghij' ~= 'abcdefghXX'::text AS near_now, 'abcdefghij' @~ near_duplicate_query('abcdefghXX', 0.05) AS has_its_own;
SET gputext.near_duplicate_threshold = 0.5;
SET gputext.near_duplicate_threshold = -0.1;
SET gputext.near_duplicate_threshold = 'NaN';
SET gputext.near_duplicate_threshold = 'small';
SHOW gputext.near_duplicate_threshold;
RESET gputext.near_duplicate_threshold;
CREATE ROLE regress_gputext_user;
SET ROLE regress_gputext_user;
SET gputext.near_duplicate_threshold = 0.2;
SHOW gputext.near_duplicate_threshold;
RESET gputext.near_duplicate_threshold;
RESET ROLE;
-- Also before the session has loaded the library, when it does not know the setting yet
\c -
SET ROLE regress_gputext_user;
SET gputext.near_duplicate_threshold = 0.2;
SELECT 'abcdefghij' ~= 'abcdefghXX'::text AS near;
SHOW gputext.near_duplicate_threshold;
RESET ROLE;
-- Of a database, and of a role in it
SELECT current_database() AS database \gset
ALTER DATABASE :"database" SET gputext.near_duplicate_threshold = 0.11;
\c -
SELECT 'abcdefghij' ~= 'abcdefghXX'::text AS near, current_setting('gputext.near_duplicate_threshold');
ALTER ROLE CURRENT_USER IN DATABASE :"database" SET gputext.near_duplicate_threshold = 0.02;
ALTER ROLE CURRENT_USER IN DATABASE :"database" SET gputext.near_duplicate_threshold = 0.7;
\c -
SELECT 'abcdefghij' ~= 'abcdefghiX'::text AS near, current_setting('gputext.near_duplicate_threshold');
ALTER ROLE CURRENT_USER IN DATABASE :"database" RESET gputext.near_duplicate_threshold;
ALTER DATABASE :"database" RESET gputext.near_duplicate_threshold;
\c -
DROP ROLE regress_gputext_user;
