-- near_duplicates_between

CREATE TABLE old_docs (id bigint PRIMARY KEY, body text);
INSERT INTO old_docs VALUES
    (1, repeat('It was a bright cold day in April. ', 3)),
    (2, 'The clocks were striking thirteen.'),
    (3, NULL),
    (4, repeat('It was a bright cold day in April. ', 3)),
    (5, '');
CREATE TABLE new_docs (id bigint PRIMARY KEY, body text);
INSERT INTO new_docs VALUES
    (11, repeat('It was a bright cold day in April. ', 2) || 'It was a bright old day in April! '),
    (12, 'The clocks were striking thirteen.'),
    (13, NULL),
    (14, 'The clocks were striking thirteen.'),
    (15, 'Something else, which nobody has written before.');

-- 12 and 14 are equal, and so are 1 and 4, which is not asked.
SELECT id1, id2, round(edit_rate::numeric, 4) AS edit_rate
FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM old_docs');
SELECT bool_and(b.edit_rate = edit_rate(n.body, o.body)) AS same_rate
FROM near_duplicates_between('SELECT id, body FROM new_docs WHERE body > ''''', 'SELECT id, body FROM old_docs WHERE body > ''''') AS b
JOIN new_docs n ON n.id = b.id1 JOIN old_docs o ON o.id = b.id2;

-- Every argument by name, and by its place
SELECT id1, id2 FROM near_duplicates_between(
    new_docs => 'SELECT id, body FROM new_docs WHERE body > ''''',
    old_docs => 'SELECT id, body FROM old_docs WHERE body > ''''',
    threshold => 0, mode => 'exact', max_length => 50);
SELECT id1, id2 FROM near_duplicates_between('SELECT id, body FROM new_docs WHERE id < 13', 'SELECT id, body FROM old_docs WHERE id < 3', 0.1, 'ctph', 64);
SELECT id1, id2 FROM near_duplicates_between('SELECT id, body FROM new_docs WHERE id < 13', 'SELECT id, body FROM old_docs WHERE id < 3', NULL::bigint, 0.1, 'exact', 64);

-- The order is that of the first query, then that of the second: by their ORDER BY, or by ids.
SELECT id1, id2 FROM near_duplicates_between('SELECT id, body FROM new_docs WHERE id <> 13 ORDER BY id DESC', 'SELECT id, body FROM old_docs WHERE id <> 3');
SELECT id1, id2 FROM near_duplicates_between('VALUES (7::bigint, ''a''), (2, ''a'')', 'VALUES (3::bigint, ''a''), (9, ''a''), (1, ''a'')');
SELECT id1, id2 FROM near_duplicates_between('VALUES (2::bigint, ''a''), (7, ''a'')', 'VALUES (3::bigint, ''a''), (9, ''a''), (1, ''b''), (0, ''a'')');
SELECT id1, id2 FROM near_duplicates_between('VALUES (7::bigint, ''a''), (2, ''a'')', 'SELECT * FROM (VALUES (3::bigint, ''a''), (9, ''a''), (1, ''a'')) AS v(id, body) ORDER BY -id');

-- The same ids, and the same documents, on both sides
SELECT id1, id2 FROM near_duplicates_between('SELECT id, body FROM old_docs WHERE id <> 3', 'SELECT id, body FROM old_docs WHERE id <> 3');

-- No rows, only null rows, empty documents
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs WHERE false', 'SELECT id, body FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM old_docs WHERE false');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs WHERE false', 'SELECT id, body FROM old_docs WHERE false');
SELECT * FROM near_duplicates_between('SELECT id, NULL::text FROM new_docs', 'SELECT id, body FROM old_docs WHERE id > 3', mode => 'ctph');
SELECT * FROM near_duplicates_between('VALUES (9::bigint, '''')', 'SELECT id, body FROM old_docs WHERE id > 3');

-- Both modes against near_duplicates over both tables: 280 documents, 7 versions each of 40, some
-- of them equal. A document is new or old by chance, with few new ones, or few old ones.
CREATE TABLE versions AS
SELECT row_number() OVER (ORDER BY version, base) AS id, base, version,
       (SELECT string_agg(CASE WHEN (word + base) % 20 < version % 6 THEN 'é' || version % 6
                               ELSE substr(md5(base || '/' || word), 1, 1 + (word * base) % 9) END,
                          ' ' ORDER BY word)
        FROM generate_series(1, 20 + 2 * base) AS word) AS body
FROM generate_series(1, 40) AS base, generate_series(0, 6) AS version;
ALTER TABLE versions ADD signature ctph GENERATED ALWAYS AS (ctph_signature(body)) STORED;

CREATE FUNCTION wrong_pairs(new_columns text, old_columns text, is_new text, threshold double precision, mode text,
                            OUT pairs bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        WITH sides AS (SELECT id, %1$s AS is_new FROM versions),
        expected AS (
            SELECT least(n.id1, n.id2) AS a, greatest(n.id1, n.id2) AS b, edit_rate
            FROM near_duplicates('SELECT id, body FROM versions', threshold => %2$L, mode => %3$L) n
            JOIN sides x ON x.id = n.id1 JOIN sides y ON y.id = n.id2 WHERE x.is_new <> y.is_new
        ), found AS (
            SELECT least(id1, id2) AS a, greatest(id1, id2) AS b, edit_rate, id1
            FROM near_duplicates_between(%4$L, %5$L, threshold => %2$L, mode => %3$L)
        )
        SELECT (SELECT count(*) FROM found),
               (SELECT count(*) FROM found f FULL JOIN expected e USING (a, b, edit_rate)
                LEFT JOIN sides s ON s.id = f.id1
                WHERE f.a IS NULL OR e.a IS NULL OR NOT s.is_new)
    $query$, is_new, threshold, mode,
             format('SELECT id, body%s FROM versions WHERE %s', new_columns, is_new),
             format('SELECT id, body%s FROM versions WHERE NOT (%s)', old_columns, is_new)) INTO pairs, wrong;
END $$;
SELECT is_new, threshold, mode, f.*
FROM (VALUES ('version % 2 = 0'), ('id * 7 % 31 < 2'), ('(version * 7 + base) % 10 > 0'), ('version < 2')) AS n(is_new),
     (VALUES (0), (0.01), (0.05), (0.2)) AS t(threshold), (VALUES ('exact'), ('ctph')) AS m(mode),
     wrong_pairs('', '', is_new, threshold, mode) AS f
ORDER BY is_new, threshold, mode;
-- Signatures in the third column on either side, or on both
SELECT new_columns, old_columns, f.*
FROM (VALUES ('', ', signature'), (', signature', ''), (', signature', ', signature'),
             (', CASE WHEN id % 3 > 0 THEN signature END', ', NULL::ctph')) AS c(new_columns, old_columns),
     wrong_pairs(new_columns, old_columns, 'id % 3 = 0', 0.05, 'ctph') AS f;

-- By default the mode is exact, and ctph where one of the queries gives signatures.
SELECT columns <> '' AS signatures,
       f.auto = f.exact AS as_exact, f.auto = f.ctph AS as_ctph
FROM (VALUES (''), (', signature')) AS c(columns),
     LATERAL (SELECT (SELECT count(*) FROM near_duplicates_between('SELECT id, body FROM versions WHERE version < 2', 'SELECT id, body' || columns || ' FROM versions WHERE version > 1', threshold => 0.04, mode => 'auto')) AS auto,
                     (SELECT count(*) FROM near_duplicates_between('SELECT id, body FROM versions WHERE version < 2', 'SELECT id, body FROM versions WHERE version > 1', threshold => 0.04, mode => 'exact')) AS exact,
                     (SELECT count(*) FROM near_duplicates_between('SELECT id, body FROM versions WHERE version < 2', 'SELECT id, body FROM versions WHERE version > 1', threshold => 0.04, mode => 'ctph')) AS ctph) AS f
ORDER BY columns;

-- Whatever the number of threads, the rows and their order are the same.
SET gputext.cpu_threads = 1;
CREATE TABLE one_thread AS
SELECT * FROM near_duplicates_between('SELECT id, body FROM versions WHERE version < 2', 'SELECT id, body FROM versions WHERE version > 1', 0.1) WITH ORDINALITY;
SET gputext.cpu_threads = 5;
CREATE TABLE five_threads AS
SELECT * FROM near_duplicates_between('SELECT id, body FROM versions WHERE version < 2', 'SELECT id, body FROM versions WHERE version > 1', 0.1) WITH ORDINALITY;
RESET gputext.cpu_threads;
SELECT count(*) AS rows, bool_and(a = b) AS equal, bool_and((a.id1, a.id2) > (p.id1, p.id2)) AS sorted
FROM one_thread a FULL JOIN five_threads b USING (ordinality)
LEFT JOIN one_thread p ON p.ordinality = a.ordinality - 1;

-- Ids of other types: id_type right after the inner queries
SELECT * FROM near_duplicates_between('SELECT id::int, body FROM new_docs WHERE id = 12', 'SELECT id::int, body FROM old_docs WHERE id = 2', id_type => NULL::int);
SELECT * FROM near_duplicates_between('SELECT id::smallint, body FROM new_docs WHERE id = 12', 'SELECT id::oid, body FROM old_docs WHERE id = 2');
SELECT * FROM near_duplicates_between('SELECT ''n'' || id, body FROM new_docs WHERE body > ''''', 'SELECT ''o'' || id, body FROM old_docs WHERE body > ''''', NULL::text, 0.2);
SELECT * FROM near_duplicates_between('SELECT md5(id::text)::uuid, body FROM new_docs WHERE id = 12', 'SELECT md5(id::text)::uuid, body FROM old_docs WHERE id = 2', id_type => NULL::uuid, mode => 'ctph');

-- Documents of other types: texts on both sides, or bytea
CREATE DOMAIN short_body AS varchar(100);
SELECT id1, id2 FROM near_duplicates_between('SELECT id, body::varchar(50) FROM new_docs WHERE id = 12', 'SELECT id, body::short_body FROM old_docs WHERE id = 2');
SELECT id1, id2, edit_rate FROM near_duplicates_between(
    $$VALUES (1::bigint, '\x00ff00ff00ff00ff00ff00'::bytea)$$, $$VALUES (2::bigint, '\x00ff00ff00ff00ff00fe00'::bytea)$$);

-- What a function that is not safe in parallel workers does while the second query runs does not
-- change what the first one has given: values out of line, and values in rows.
CREATE TABLE gone (id bigint, body text);
ALTER TABLE gone ALTER body SET STORAGE EXTERNAL;
INSERT INTO gone SELECT i, (SELECT string_agg(md5((i * 1000 + j)::text), '') FROM generate_series(1, i % 2 * 400 + 20) AS j)
FROM generate_series(1, 8) AS i;
CREATE TABLE kept AS TABLE gone;
CREATE FUNCTION kept_body(id bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    TRUNCATE gone;
    RETURN (SELECT body FROM kept WHERE kept.id = kept_body.id);
END $$;
BEGIN;
SELECT id1, id2, edit_rate FROM near_duplicates_between('TABLE gone', 'SELECT i, kept_body(i) FROM generate_series(3::bigint, 8) AS i');
SELECT count(*) FROM gone;
ROLLBACK;
SELECT id1, id2, edit_rate FROM near_duplicates_between('SELECT i, kept_body(i) FROM generate_series(3::bigint, 8) AS i', 'TABLE kept');

-- Errors
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, convert_to(body, ''UTF8'') FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, convert_to(body, ''UTF8'') FROM new_docs', 'SELECT id, body FROM old_docs');
SELECT * FROM near_duplicates_between(NULL, 'SELECT id, body FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', NULL);
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM old_docs', 0.5);
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM old_docs', threshold => NULL);
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM old_docs', mode => 'fast');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM old_docs', max_length => 0);
SELECT * FROM near_duplicates_between('SELECT body FROM new_docs', 'SELECT id, body FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, id FROM new_docs', 'SELECT id, body FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body, 1 FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT body, body FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT NULL::bigint, body FROM old_docs');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM nowhere');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'DELETE FROM old_docs RETURNING id, body');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', '');
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM old_docs', threshold => 0.1, id_type => NULL::uuid);
SELECT * FROM near_duplicates_between('SELECT id, body FROM new_docs', 'SELECT id, body FROM old_docs', id_type => 'text');

DROP FUNCTION wrong_pairs, kept_body;
DROP TABLE old_docs, new_docs, versions, one_thread, five_threads, gone, kept;
DROP DOMAIN short_body;
