-- jaro_similarity, jaro_winkler_similarity, osa_distance, damerau_levenshtein

SELECT a, b, jaro_similarity(a, b), jaro_winkler_similarity(a, b), osa_distance(a, b), damerau_levenshtein(a, b)
FROM (VALUES ('MARTHA', 'MARHTA'), ('DIXON', 'DICKSONX'), ('DwAyNE', 'DuANE'), ('ca', 'abc'), ('a cat', 'an act'), ('', ''), ('', 'abc'), ('abc', ''),
             ('a', 'a'), ('ab', 'ba'), ('abcd', 'dcba'), ('Müller', 'Mueller'), ('日本語', '日語本'), ('Иванов', 'Ивнаов')) AS pairs (a, b);

-- Known values, of rapidfuzz 3.14: beyond 64 characters, too
SELECT jaro_similarity(repeat('abcdefghij', 10), repeat('abdcefghij', 10)) AS jaro,
       jaro_winkler_similarity(repeat('abcdefghij', 10), repeat('abdcefghij', 10)) AS jaro_winkler,
       osa_distance(repeat('abcdefghij', 10), repeat('abdcefghij', 10)) AS osa,
       damerau_levenshtein(repeat('abcdefghij', 10), repeat('abdcefghij', 10)) AS damerau_levenshtein,
       edit_distance(repeat('abcdefghij', 10), repeat('abdcefghij', 10)) AS levenshtein;

-- The same either way, but for the order in which Jaro matches: equal numbers of edits
SELECT count(*) AS pairs, count(*) FILTER (WHERE osa_distance(a, b) <> osa_distance(b, a)) AS osa,
       count(*) FILTER (WHERE damerau_levenshtein(a, b) <> damerau_levenshtein(b, a)) AS damerau_levenshtein,
       count(*) FILTER (WHERE NOT damerau_levenshtein(a, b) <= osa_distance(a, b)) AS more_than_osa,
       count(*) FILTER (WHERE NOT osa_distance(a, b) <= edit_distance(a, b)) AS more_than_levenshtein,
       count(*) FILTER (WHERE jaro_similarity(a, a) <> 1 OR jaro_winkler_similarity(b, b) <> 1) AS not_one,
       count(*) FILTER (WHERE jaro_winkler_similarity(a, b) < jaro_similarity(a, b)) AS less_than_jaro
FROM (SELECT translate(substr(md5(i::text), 1, 3 + i % 9), '0123456789abcdef', 'abcabcabcabcabca') AS a,
             translate(substr(md5((i + 1)::text), 1, 3 + i % 7), '0123456789abcdef', 'abcabcabcabcabca') AS b
      FROM generate_series(1, 2000) AS i) AS pairs;

-- Other types of strings are texts
SELECT jaro_similarity('Anna'::varchar, 'Anne'::char(8)), damerau_levenshtein('ab'::name::text, 'ba');

-- Nulls
SELECT jaro_similarity(NULL, 'a'), jaro_winkler_similarity('a', NULL), osa_distance(NULL, NULL), damerau_levenshtein('a', NULL);

-- A cancel
SET statement_timeout = 200;
SELECT damerau_levenshtein(repeat('ab', 1000000), repeat('ba', 1000000));
SELECT osa_distance(repeat('ab', 1000000), repeat('cd', 1000000));
RESET statement_timeout;
