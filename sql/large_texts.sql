-- Terms of large texts, which are read in pieces. scripts/check-server leaves this test out under valgrind,
-- where its first statement takes more than 20 minutes.

SET default_text_search_config = 'pg_catalog.english';

-- 8 MB, more than to_tsvector takes
SELECT id, term, round(weight / ln(2)) AS count
FROM tfidf($$SELECT 1::bigint, string_agg('word' || i % 5 || ' boiling eggs ' || CASE WHEN i % 40 = 0 THEN E'\n' ELSE '' END, '')
             FROM generate_series(1, 400000) AS i UNION ALL SELECT 2, ''$$) ORDER BY term;
-- Without a line's end, and without a space either
SELECT term, round(weight / ln(2)) AS count FROM tfidf($$SELECT 1::bigint, repeat('boiling eggs ', 200000) UNION ALL SELECT 2, ''$$) ORDER BY term;
SELECT term, round(weight / ln(2)) AS count FROM tfidf($$SELECT 1::bigint, repeat('boiling,eggs;', 200000) UNION ALL SELECT 2, ''$$) ORDER BY term;

-- Texts without a blank that are longer than what is parsed at once: no word is cut in two. Words of
-- more than 2047 bytes are ignored, as by to_tsvector, however long they are and wherever they begin.
SET client_min_messages = warning;
CREATE TABLE huge (id bigint, body text);
INSERT INTO huge VALUES (1, repeat('alpha,beta;gamma"', 300000)), (2, repeat('äöüß、日本。', 300000)),
  (3, repeat('x', 5000000)), (4, repeat('delta,', 349520) || repeat('x', 3000) || ',omega'),
  (5, repeat('theta,', 349520) || repeat('x', 3000000) || ',last'), (6, repeat('x', 2097152 + 100) || '(rest)'),
  (7, repeat('ä', 1048575) || 'x,end');
SELECT id, term, round(weight / ln(7)) AS count FROM tfidf('SELECT id, body FROM huge ORDER BY id', config => 'simple')
ORDER BY id, term;
DROP TABLE huge;
RESET client_min_messages;

-- Documents beyond the limit of memory go to a temporary file, those within it do not.
CREATE FUNCTION temporary_bytes() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT pg_stat_get_db_temp_bytes(oid) FROM pg_database WHERE datname = current_database() $$;
SET gputext.host_memory_limit = '4MB';
SELECT pg_stat_force_next_flush();
SELECT temporary_bytes() AS before \gset
SELECT count(*) FROM near_duplicates('SELECT i, repeat(md5(i::text), 200) FROM generate_series(1, 500) AS i');
SELECT pg_stat_force_next_flush();
SELECT temporary_bytes() - :before AS of_3_mb;
SELECT count(*) FROM near_duplicates('SELECT i, repeat(md5(i::text), 200) FROM generate_series(1, 1000) AS i');
SELECT pg_stat_force_next_flush();
SELECT temporary_bytes() - :before > 6000000 AS of_6_mb;
RESET gputext.host_memory_limit;
DROP FUNCTION temporary_bytes;
