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
