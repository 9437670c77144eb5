-- near_duplicates and near_duplicate_groups

-- A few documents, of which 1 and 2 differ by two letters, and 3 and 5 are equal
CREATE TABLE docs (id bigint PRIMARY KEY, body text, day date);
INSERT INTO docs VALUES
    (1, repeat('It was a bright cold day in April. ', 3), '2026-01-01'),
    (2, repeat('It was a bright cold day in April. ', 2) || 'It was a bright old day in April! ', '2026-01-02'),
    (3, 'The clocks were striking thirteen.', '2026-01-03'),
    (4, NULL, '2026-01-04'),
    (5, 'The clocks were striking thirteen.', '2026-01-05');

SELECT id1, id2, round(edit_rate::numeric, 4) AS edit_rate
FROM near_duplicates('SELECT id, body FROM docs ORDER BY id');
SELECT edit_rate = edit_rate(a.body, b.body) AS same_rate
FROM near_duplicates('SELECT id, body FROM docs WHERE body IS NOT NULL') n
JOIN docs a ON a.id = n.id1 JOIN docs b ON b.id = n.id2;
SELECT * FROM near_duplicate_groups('SELECT id, body FROM docs WHERE id <> 4 ORDER BY id');

-- Every argument by name, and by its place
SELECT id1, id2 FROM near_duplicates(
    docs => 'SELECT id, body FROM docs WHERE body > '''' ORDER BY id',
    threshold => 0.001, mode => 'exact', max_length => 50);
SELECT id1, id2 FROM near_duplicates('SELECT id, body FROM docs WHERE id < 4 ORDER BY id', 0.1, 'ctph', 64);
SELECT id1, id2 FROM near_duplicates('SELECT id, body FROM docs WHERE id < 4 ORDER BY id', NULL::bigint, 0.1, 'exact', 64);

-- The order is that of the input: id1 stands before id2 there, and pairs are sorted by both.
SELECT id1, id2 FROM near_duplicates('SELECT id, body FROM docs WHERE id <> 4 ORDER BY id DESC');
SELECT * FROM near_duplicate_groups('SELECT id, body FROM docs WHERE id <> 4 ORDER BY id DESC');
SELECT id1, id2
FROM near_duplicates('SELECT v.* FROM (VALUES (7::bigint, ''c''), (3, ''a''), (9, ''c''), (1, ''a''), (5, ''c'')) AS v');

-- No rows, one row, only null rows, empty documents
SELECT * FROM near_duplicates('SELECT id, body FROM docs WHERE false');
SELECT * FROM near_duplicate_groups('SELECT id, body FROM docs WHERE false');
SELECT * FROM near_duplicates('SELECT id, body FROM docs WHERE id = 1');
SELECT * FROM near_duplicate_groups('SELECT id, body FROM docs WHERE id = 1');
SELECT * FROM near_duplicates('SELECT id, NULL::text FROM docs');
SELECT * FROM near_duplicate_groups('SELECT id, NULL FROM docs WHERE id = 4');
SELECT * FROM near_duplicates('SELECT id, '''' FROM docs WHERE id < 4', mode => 'exact');
SELECT id1, id2 FROM near_duplicates('SELECT id, left(body, 0) FROM docs WHERE id < 4 ORDER BY id');

-- A rate is at most the threshold: one edit in 10 + 10 letters is a rate of 0.05. A threshold of 0
-- finds equal documents.
CREATE TABLE edges (id bigint, body text);
INSERT INTO edges VALUES (1, 'abcdefghij'), (2, 'abcdefghiX'), (3, 'abcdefghij');
SELECT id1, id2, edit_rate FROM near_duplicates('TABLE edges', 0.049999999999999, 'exact');
SELECT id1, id2, edit_rate FROM near_duplicates('TABLE edges', 0.05, 'exact');
SELECT * FROM near_duplicates('TABLE edges', 0);
SELECT * FROM near_duplicates('TABLE edges', 0, 'exact');
SELECT * FROM near_duplicate_groups('TABLE edges', 0);
SELECT id1, id2 FROM near_duplicates('TABLE edges', 1e-300);
SELECT count(*) FROM near_duplicates('TABLE edges', 0.4999999, 'exact');

-- Both modes against their definitions: 280 documents, 7 versions each of 40, some of them equal.
-- Mode exact gives every pair within the threshold, mode ctph those of them whose signatures' edit
-- rate is within three times the threshold, and below 1, the rate where nothing can be compared.
CREATE TABLE versions AS
SELECT row_number() OVER (ORDER BY version, base) AS id, base, version,
       (SELECT string_agg(CASE WHEN (word + base) % 20 < version % 6 THEN 'é' || version % 6
                               ELSE substr(md5(base || '/' || word), 1, 1 + (word * base) % 9) END,
                          ' ' ORDER BY word)
        FROM generate_series(1, 20 + 2 * base) AS word) AS body
FROM generate_series(1, 40) AS base, generate_series(0, 6) AS version;
ALTER TABLE versions ADD signature ctph GENERATED ALWAYS AS (ctph_signature(body)) STORED;
ALTER TABLE versions ADD short_signature ctph GENERATED ALWAYS AS (ctph_signature(body, 12)) STORED;

CREATE TABLE truth AS
SELECT a.id AS id1, b.id AS id2, edit_rate(a.body, b.body) AS edit_rate,
       edit_rate(a.signature, b.signature) AS signature_rate,
       edit_rate(a.short_signature, b.short_signature) AS short_signature_rate
FROM versions a JOIN versions b ON a.id < b.id;

CREATE FUNCTION compare_with_truth(threshold double precision)
RETURNS TABLE (true_pairs bigint, exact_wrong bigint, expected_by_ctph bigint, ctph_wrong bigint,
               column_wrong bigint, expected_by_short bigint, short_wrong bigint,
               short_column_wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    WITH expected AS MATERIALIZED (
        SELECT * FROM truth t WHERE t.edit_rate <= compare_with_truth.threshold
    ), by_ctph AS MATERIALIZED (
        SELECT * FROM expected WHERE signature_rate <= 3 * compare_with_truth.threshold AND signature_rate < 1
    ), by_short AS MATERIALIZED (
        SELECT * FROM expected WHERE short_signature_rate <= 3 * compare_with_truth.threshold AND short_signature_rate < 1
    ), exact AS MATERIALIZED (
        SELECT * FROM near_duplicates('SELECT id, body FROM versions ORDER BY id',
                                      compare_with_truth.threshold, 'exact')
    ), ctph AS MATERIALIZED (
        SELECT * FROM near_duplicates('SELECT id, body FROM versions ORDER BY id',
                                      compare_with_truth.threshold, 'ctph')
    ), given AS MATERIALIZED (
        SELECT * FROM near_duplicates('SELECT id, body, signature FROM versions ORDER BY id',
                                      compare_with_truth.threshold, 'ctph', 12)
    ), short AS MATERIALIZED (
        SELECT * FROM near_duplicates('SELECT id, body FROM versions ORDER BY id',
                                      compare_with_truth.threshold, 'ctph', 12)
    ), given_short AS MATERIALIZED (
        -- A document whose signature is null gets one by the call's max_length.
        SELECT * FROM near_duplicates('SELECT id, body, CASE WHEN id % 2 = 0 THEN short_signature END
                                       FROM versions ORDER BY id',
                                      compare_with_truth.threshold, 'ctph', 12)
    )
    SELECT (SELECT count(*) FROM expected),
           (SELECT count(*) FROM exact e FULL JOIN expected t USING (id1, id2, edit_rate)
            WHERE e.id1 IS NULL OR t.id1 IS NULL),
           (SELECT count(*) FROM by_ctph),
           (SELECT count(*) FROM ctph e FULL JOIN by_ctph t USING (id1, id2, edit_rate)
            WHERE e.id1 IS NULL OR t.id1 IS NULL),
           (SELECT count(*) FROM given e FULL JOIN by_ctph t USING (id1, id2, edit_rate)
            WHERE e.id1 IS NULL OR t.id1 IS NULL),
           (SELECT count(*) FROM by_short),
           (SELECT count(*) FROM short e FULL JOIN by_short t USING (id1, id2, edit_rate)
            WHERE e.id1 IS NULL OR t.id1 IS NULL),
           (SELECT count(*) FROM given_short e FULL JOIN by_short t USING (id1, id2, edit_rate)
            WHERE e.id1 IS NULL OR t.id1 IS NULL);
END $$;
SELECT t AS threshold, c.* FROM (VALUES (0), (0.001), (0.01), (0.05), (0.1), (0.2), (0.35)) AS v(t),
     compare_with_truth(t) c
ORDER BY t;

-- By default the mode is chosen: exact for so few documents, and ctph where signatures are given
SELECT t AS threshold,
       (SELECT array_agg((id1, id2, edit_rate)) FROM near_duplicates('SELECT id, body FROM versions', t)) IS NOT DISTINCT FROM
       (SELECT array_agg((id1, id2, edit_rate)) FROM near_duplicates('SELECT id, body FROM versions', t, 'exact')) AS as_exact,
       (SELECT array_agg((id1, id2, edit_rate)) FROM near_duplicates('SELECT id, body, signature FROM versions', t, 'auto')) IS NOT DISTINCT FROM
       (SELECT array_agg((id1, id2, edit_rate)) FROM near_duplicates('SELECT id, body, signature FROM versions', t, 'ctph')) AS as_ctph,
       (SELECT array_agg(g) FROM near_duplicate_groups('SELECT id, body FROM versions', t) g) IS NOT DISTINCT FROM
       (SELECT array_agg(g) FROM near_duplicate_groups('SELECT id, body FROM versions', t, 'exact') g) AS groups_as_exact
FROM (VALUES (0.05), (0.1), (0.2)) AS v(t);

-- Whatever the number of threads, the rows and their order are the same.
SET gputext.cpu_threads = 1;
CREATE TABLE one_thread AS
SELECT * FROM near_duplicates('SELECT id, body FROM versions ORDER BY id', 0.1) WITH ORDINALITY;
SET gputext.cpu_threads = 5;
CREATE TABLE five_threads AS
SELECT * FROM near_duplicates('SELECT id, body FROM versions ORDER BY id', 0.1) WITH ORDINALITY;
RESET gputext.cpu_threads;
SELECT count(*) AS rows, bool_and(a = b) AS equal, bool_and(a.id1 < a.id2) AS input_order,
       bool_and((a.id1, a.id2) > (p.id1, p.id2)) AS sorted
FROM one_thread a FULL JOIN five_threads b USING (ordinality)
LEFT JOIN one_thread p ON p.ordinality = a.ordinality - 1;

-- Groups are the connected components of the pairs: each named by its first document.
WITH RECURSIVE edges AS (
    SELECT id1 AS a, id2 AS b FROM truth WHERE edit_rate <= 0.03
    UNION ALL SELECT id2, id1 FROM truth WHERE edit_rate <= 0.03
), reached(id, other) AS (
    SELECT id, id FROM versions
    UNION SELECT r.id, e.b FROM reached r JOIN edges e ON e.a = r.other
), expected AS (
    SELECT id, min(other) AS group_id, count(*) AS group_size FROM reached GROUP BY id
)
SELECT count(*) AS documents, count(DISTINCT e.group_id) AS groups, max(e.group_size) AS largest,
       count(*) FILTER (WHERE (e.group_id, e.group_size) IS DISTINCT FROM (g.group_id, g.group_size)) AS wrong
FROM expected e
FULL JOIN near_duplicate_groups('SELECT id, body FROM versions ORDER BY id', 0.03, 'exact') g USING (id);

-- A chain: neighbors are near, ends are not, all are one group.
CREATE TABLE chain AS
SELECT i::bigint AS id, repeat('x', i) || repeat('abcdefgh', 5) || repeat('y', 10 - i) AS body
FROM generate_series(0, 10) AS i;
SELECT count(*) AS pairs FROM near_duplicates('SELECT id, body FROM chain', 0.021, 'exact');
SELECT id, group_id, group_size FROM near_duplicate_groups('SELECT id, body FROM chain ORDER BY id', 0.021, 'exact')
WHERE id IN (0, 5, 10);
-- Without its middle it falls into two.
SELECT DISTINCT group_id, group_size
FROM near_duplicate_groups('SELECT id, body FROM chain WHERE id <> 5 ORDER BY id', 0.021, 'exact')
ORDER BY group_id;

-- A large cluster takes the memory of its documents, and not that of its pairs.
CREATE TABLE cluster AS
SELECT i AS id, overlay(repeat('a cluster of documents that differ a little; ', 4) placing md5(i::text)::varchar(8) from 1 + i * 7 % 160) AS body
FROM generate_series(1, 1200) AS i;
SET gputext.host_memory_limit = '8MB';
SELECT count(*), min(group_id), max(group_id), max(group_size)
FROM near_duplicate_groups('SELECT id, body FROM cluster ORDER BY id', 0.1, 'exact');
SELECT count(*), min(group_id), max(group_id), max(group_size)
FROM near_duplicate_groups('SELECT id, body FROM cluster ORDER BY id', 0.2, 'ctph');
RESET gputext.host_memory_limit;

-- Ids of other types: id_type right after the inner query. Only its type matters.

CREATE TYPE place AS (book int, chapter text);
CREATE DOMAIN ident AS int CHECK (value > 0);
CREATE TABLE ids AS
SELECT i::int AS int4, i::smallint AS int2, ('a' || i)::text AS text, ('a' || i)::varchar(9) AS varchar,
       repeat('long ', 1000) || i AS long, ('a' || i)::name AS name,
       md5(i::text)::uuid AS uuid, (i, 'c' || i)::place AS place, ARRAY[i, i + 1]::int[] AS ints,
       i / 8.0 AS numeric, date '2026-01-01' + i::int AS date, i::ident AS ident, i::float8 AS float8,
       int4range(i::int, i::int + 2) AS range, (i % 2 = 0) AS bool, ctph_signature(i::text) AS ctph,
       'same document' AS body
FROM generate_series(1, 2) AS i;

SELECT * FROM near_duplicates('SELECT int4, body FROM ids', id_type => NULL::int);
SELECT * FROM near_duplicates('SELECT int4, body FROM ids', id_type => 0);
SELECT * FROM near_duplicates('SELECT int2, body FROM ids', id_type => NULL::smallint);
SELECT * FROM near_duplicates('SELECT text, body FROM ids', NULL::text);
SELECT * FROM near_duplicates('SELECT text, body FROM ids', ''::text, 0.1);
SELECT * FROM near_duplicates('SELECT varchar, body FROM ids', NULL::varchar);
SELECT length(id1), right(id1, 1), right(id2, 1)
FROM near_duplicates('SELECT long, body FROM ids', NULL::text);
SELECT * FROM near_duplicates('SELECT name, body FROM ids', NULL::name);
SELECT * FROM near_duplicates('SELECT uuid, body FROM ids', NULL::uuid);
SELECT id1, (id1).chapter, (id2).book FROM near_duplicates('SELECT place, body FROM ids', NULL::place);
SELECT * FROM near_duplicates('SELECT ROW(int4, text), body FROM ids', NULL::record);
SELECT * FROM near_duplicates('SELECT ints, body FROM ids', NULL::int[]);
SELECT id1[2], id2 FROM near_duplicates('SELECT array_append(ints, 9), body FROM ids', NULL::int[]);
SELECT * FROM near_duplicates('SELECT numeric, body FROM ids', id_type => NULL::numeric);
SELECT * FROM near_duplicates('SELECT date, body FROM ids', NULL::date);
SELECT * FROM near_duplicates('SELECT ident, body FROM ids', id_type => NULL::ident);
SELECT * FROM near_duplicates('SELECT float8, body FROM ids', id_type => NULL::float8);
SELECT * FROM near_duplicates('SELECT range, body FROM ids', NULL::int4range);
SELECT * FROM near_duplicates('SELECT bool, body FROM ids', NULL::bool);
SELECT * FROM near_duplicates('SELECT ctph, body FROM ids', NULL::ctph);
SELECT pg_typeof(id1) AS id1, pg_typeof(id2) AS id2, pg_typeof(edit_rate) AS edit_rate
FROM near_duplicates('SELECT date, body FROM ids', NULL::date);
SELECT * FROM near_duplicate_groups('SELECT uuid, body FROM ids', NULL::uuid);
SELECT (group_id).*, group_size FROM near_duplicate_groups('SELECT place, body FROM ids', NULL::place);
SELECT * FROM near_duplicate_groups('SELECT text, body FROM ids', id_type => NULL::text, mode => 'exact');

-- An id that occurs twice names two documents.
SELECT id1, id2 FROM near_duplicates('SELECT 1::bigint, body FROM ids');
SELECT * FROM near_duplicate_groups('SELECT 1::bigint, body FROM ids');

-- Documents of other types: characters of texts, bytes of bytea

CREATE DOMAIN body AS text CHECK (value <> '');
CREATE DOMAIN short_body AS varchar(100);
SELECT id1, id2 FROM near_duplicates('SELECT id, body::body FROM edges', 0.06, 'exact');
SELECT id1, id2 FROM near_duplicates('SELECT id, body::short_body FROM edges', 0.06, 'exact');
SELECT id1, id2 FROM near_duplicates('SELECT id, body::varchar(20) FROM edges', 0.06, 'exact');
SELECT id1, id2 FROM near_duplicates('SELECT id, convert_to(body, ''UTF8'') FROM edges', 0.06, 'exact');
SELECT id, edit_rate AS characters,
       (SELECT edit_rate FROM near_duplicates(
            'SELECT i::bigint, convert_to(repeat(''é'', 20) || repeat(''日'', i), ''UTF8'') FROM generate_series(1, 2) AS i',
            mode => m)) AS bytes
FROM (VALUES (1, 'ctph'), (2, 'exact')) AS v(id, m),
     near_duplicates('SELECT i::bigint, repeat(''é'', 20) || repeat(''日'', i) FROM generate_series(1, 2) AS i', mode => m);
-- Bytes that are no text
SELECT id1, id2, edit_rate FROM near_duplicates(
    $$VALUES (1::bigint, '\x00ff00ff00ff00ff00ff00'::bytea), (2, '\x00ff00ff00ff00ff00fe00')$$, mode => 'exact');

-- What an inner query may be: joins, WITH, views, functions, a semicolon at its end

SELECT id1, id2 FROM near_duplicates($$
    WITH recent AS (SELECT * FROM docs WHERE day > '2026-01-02')
    SELECT r.id, r.body FROM recent r JOIN docs d USING (id) WHERE r.body IS NOT NULL;
$$);
CREATE VIEW recent AS SELECT id, body FROM docs WHERE day > '2026-01-02' AND body > '';
SELECT id1, id2 FROM near_duplicates('TABLE recent');
SELECT id1, id2 FROM near_duplicates('VALUES (1::bigint, ''a''), (2, ''b''), (3, ''a'')');
CREATE FUNCTION recent_documents() RETURNS TABLE (id bigint, body text) LANGUAGE sql STABLE
AS $$ SELECT id, body FROM recent $$;
SELECT id1, id2 FROM near_duplicates('SELECT * FROM recent_documents()');
-- One call within another
SELECT id1, id2 FROM near_duplicates($$
    SELECT id, 'group of ' || group_size FROM near_duplicate_groups('TABLE edges', 0.01)
$$);

-- What may be done with the result

-- A call a row
SELECT k, id1, id2
FROM (VALUES (1), (2), (3)) AS keys(k),
     LATERAL near_duplicates(format('SELECT id, body FROM edges WHERE id <> %s ORDER BY id', k), 0.01)
ORDER BY k;
CREATE TABLE pairs AS SELECT * FROM near_duplicates('TABLE edges', 0.1, 'exact');
SELECT attname, format_type(atttypid, atttypmod) AS type
FROM pg_attribute WHERE attrelid = 'pairs'::regclass AND attnum > 0 ORDER BY attnum;
CREATE VIEW current_pairs AS SELECT * FROM near_duplicates('TABLE edges', 0.1, 'exact');
CREATE VIEW text_pairs AS SELECT * FROM near_duplicates('SELECT text, body FROM ids', NULL::text);
SELECT count(*) FROM current_pairs;
INSERT INTO edges VALUES (4, 'abcdefghij');
SELECT count(*) FROM current_pairs;
SELECT * FROM text_pairs;
SELECT (near_duplicates('TABLE edges', 0.01)).id2 AS in_the_select_list;
SELECT id1 FROM near_duplicates('TABLE edges', 0.1) LIMIT 1;

CREATE FUNCTION count_pairs(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    pair record;
    found bigint := 0;
BEGIN
    FOR pair IN SELECT * FROM near_duplicates(query, threshold => 0.01) LOOP
        found := found + 1;
    END LOOP;
    RETURN found;
END $$;
SELECT count_pairs('TABLE edges'), count_pairs('TABLE edges');
PREPARE pairs_below(double precision) AS SELECT count(*) FROM near_duplicates('TABLE edges', $1, 'exact');
EXECUTE pairs_below(0.01);
EXECUTE pairs_below(0.1);
-- A cursor that is not read to its end
BEGIN;
DECLARE first_pairs CURSOR FOR SELECT id1, id2 FROM near_duplicates('TABLE edges', 0.1, 'exact');
FETCH 2 FROM first_pairs;
COMMIT;

-- Rows that this transaction has written are seen, by the statement that follows.
BEGIN;
INSERT INTO edges VALUES (5, 'abcdefghij');
SELECT count(*) FROM near_duplicates('TABLE edges', 0.01);
ROLLBACK;
SELECT count(*) FROM near_duplicates('TABLE edges', 0.01);

-- Keep the first document of each group.
BEGIN;
DELETE FROM edges
USING near_duplicate_groups('SELECT id, body FROM edges ORDER BY id', 0.1, 'exact') AS g
WHERE edges.id = g.id AND g.id <> g.group_id;
TABLE edges;
ROLLBACK;
-- Keep the newest one.
BEGIN;
DELETE FROM docs
USING near_duplicate_groups('SELECT id, body FROM docs WHERE body > '''' ORDER BY day DESC') AS g
WHERE docs.id = g.id AND g.id <> g.group_id;
SELECT id FROM docs ORDER BY id;
ROLLBACK;

-- The caller's search_path and rights are those of the inner query.
CREATE SCHEMA elsewhere;
CREATE TABLE elsewhere.docs AS SELECT 10::bigint + i AS id, 'same' AS body FROM generate_series(1, 2) AS i;
SET search_path = elsewhere, public;
SELECT id1, id2 FROM near_duplicates('SELECT id, body FROM docs');
RESET search_path;
CREATE ROLE regress_gputext_reader;
GRANT SELECT ON edges TO regress_gputext_reader;
SET ROLE regress_gputext_reader;
SELECT count(*) FROM near_duplicates('TABLE edges', 0.01);
SELECT count(*) FROM near_duplicates('SELECT id, body FROM docs');
RESET ROLE;
ALTER TABLE edges ENABLE ROW LEVEL SECURITY;
CREATE POLICY some_rows ON edges FOR SELECT TO regress_gputext_reader USING (id <> 1);
SET ROLE regress_gputext_reader;
SELECT id1, id2 FROM near_duplicates('TABLE edges', 0.01);
RESET ROLE;

DROP FUNCTION compare_with_truth, recent_documents, count_pairs;
DROP VIEW recent, current_pairs, text_pairs;
DROP TABLE docs, edges, versions, truth, one_thread, five_threads, chain, ids, pairs;
DROP TYPE place;
DROP DOMAIN ident, body, short_body;
DROP TABLE elsewhere.docs;
DROP SCHEMA elsewhere;
DROP ROLE regress_gputext_reader;
