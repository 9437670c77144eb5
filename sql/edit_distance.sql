-- edit_distance and edit_rate

SELECT edit_distance('kitten', 'sitting');
SELECT a, b, edit_distance(a, b), edit_distance(b, a) AS backwards
FROM (VALUES ('', ''), ('', 'abc'), ('abc', 'abc'), ('abc', 'axc'), ('abc', 'ac'), ('abc', 'abcd'),
             ('abc', 'xyz'), ('ab', 'ba'), ('saturday', 'sunday'), ('intention', 'execution'),
             ('abcdefgh', 'bcdefgha')) AS v(a, b);

-- The unit is a character of a text, and a byte of a bytea.
SELECT a, b, edit_distance(a, b) AS characters,
       edit_distance(convert_to(a, 'UTF8'), convert_to(b, 'UTF8')) AS bytes
FROM (VALUES ('é', 'e'), ('日本語', '日本'), ('日本語', '中国語'), ('straße', 'strasse'),
             ('🙂', '🙃'), ('🙂', ''), ('naïve café', 'naive cafe'),
             (U&'e\0301', 'é')) AS v(a, b);
SELECT edit_distance('\x00ff00'::bytea, '\x0000'::bytea) AS bytes;

-- With a limit: the distance, or limit + 1 for whatever is above it
SELECT max, edit_distance('kitten', 'sitting', max)
FROM (VALUES (0), (1), (2), (3), (4), (100), (2147483647)) AS v(max);
SELECT edit_distance('abc', 'abc', 0) AS equal, edit_distance('', '', 0) AS empty,
       edit_distance('', 'abc', 1) AS length, edit_distance('日本語', '日本', 0) AS characters,
       edit_distance('\x00'::bytea, '\x0102'::bytea, 1) AS bytes;
SELECT edit_distance('abc', 'abc', -1);
SELECT edit_distance('\x00'::bytea, '\x00'::bytea, -2147483648);

-- Against the recurrence, on every pair of 40 words of three letters and up to 9 characters
CREATE FUNCTION plain_distance(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    above int[] := ARRAY(SELECT generate_series(0, length(b)));
    current int[];
BEGIN
    FOR i IN 1 .. length(a) LOOP
        current := ARRAY[i];
        FOR j IN 1 .. length(b) LOOP
            current[j + 1] := least(above[j + 1] + 1, current[j] + 1,
                                    above[j] + (substr(a, i, 1) <> substr(b, j, 1))::int);
        END LOOP;
        above := current;
    END LOOP;
    RETURN above[length(b) + 1];
END $$;
CREATE TABLE words AS
SELECT i AS id, translate(left(md5(i::text), i % 10), '0123456789abcdef', 'aéßaéßaéßaéßaéßa') AS word
FROM generate_series(1, 40) AS i;
SELECT count(*) AS pairs,
       count(*) FILTER (WHERE edit_distance(a.word, b.word) <> plain_distance(a.word, b.word))
         AS wrong,
       count(*) FILTER (WHERE edit_distance(a.word, b.word, 3) <>
                              least(plain_distance(a.word, b.word), 4)) AS wrong_with_a_limit,
       max(plain_distance(a.word, b.word)) AS largest
FROM words a, words b;

-- Long values: no limit on their length but PostgreSQL's own
SELECT edit_distance(repeat('a', 10000000), repeat('a', 10000000)) AS identical,
       edit_distance(repeat('a', 10000000), repeat('a', 9999999) || 'b') AS one_edit,
       edit_distance('b' || repeat('a', 9999999), repeat('a', 9999999)) AS one_more,
       edit_distance(repeat('é', 5000000), repeat('é', 5000000) || 'x') AS characters;
SELECT edit_distance(repeat('ab', 2000), repeat('ba', 2000)) AS shifted,
       edit_distance(repeat('a', 3000), repeat('b', 4000)) AS nothing_in_common,
       edit_distance(repeat('日本', 1000), repeat('本日', 1000)) AS wide;

-- The rate: the distance over the sum of both lengths, 0 to 1
SELECT edit_rate('kitten', 'sitting') = 3 / 13.0 AS three_of_thirteen, edit_rate('', '') AS empty,
       edit_rate('', 'abc') AS nothing_in_common, edit_rate('abc', 'abc') AS equal,
       edit_rate('abc', 'xyz') AS half, edit_rate('日本語', '日本') AS characters,
       edit_rate('\x00'::bytea, '\x01'::bytea) AS bytes, edit_rate(''::bytea, ''::bytea) AS no_bytes;

-- NULL gives NULL.
SELECT edit_distance(NULL, 'a') IS NULL AS a, edit_distance('a', NULL) IS NULL AS b,
       edit_distance('a', 'b', NULL) IS NULL AS max, edit_distance(NULL::bytea, '') IS NULL AS bytea,
       edit_rate(NULL, 'a') IS NULL AS rate, edit_rate('', NULL::bytea) IS NULL AS bytea_rate;

-- Literals without a type are texts, other types of strings too; numbers are not.
SELECT edit_distance('a'::varchar, 'b'::char(3)), edit_distance('a'::name, 'b'), edit_rate('a', 'b');
\set VERBOSITY terse
SELECT edit_distance(1, 2);
SELECT edit_distance('a'::text, 'a'::bytea);
\set VERBOSITY default

DROP TABLE words;
DROP FUNCTION plain_distance;
