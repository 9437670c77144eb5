-- The index access method gputext: what an index is created with, and that searches through it give what a sequential
-- scan gives
SET gputext.device = 'cpu';

-- 3000 documents of about 50 to 600 characters, each near three others, some of them equal
CREATE TABLE docs (id integer PRIMARY KEY, owner text, body text);
INSERT INTO docs
SELECT i, CASE i % 10 WHEN 0 THEN 'regress_gputext_reader' ELSE 'others' END,
       (SELECT string_agg(md5((i / 4 * 100 + word)::text) || CASE WHEN word * 7 % 9 = i % 4 * 2 THEN ' é' ELSE ' ' END, '' ORDER BY word)
        FROM generate_series(1, 2 + i / 4 % 16) AS word)
FROM generate_series(1, 3000) AS i;
INSERT INTO docs VALUES (3001, 'others', ''), (3002, 'others', ''), (3003, 'others', NULL), (3004, 'others', NULL), (3005, 'others', 'x');
ANALYZE docs;

-- Runs a query through indexes of gputext, and without: with how many of their conditions, how many rows, whether the same.
CREATE FUNCTION compare(query text) RETURNS TABLE (conditions integer, rows integer, same boolean) LANGUAGE plpgsql AS $$
DECLARE
    line text;
    gathered text := format('SELECT coalesce(array_agg(answer::text ORDER BY answer::text COLLATE "C"), ''{}'') FROM (%s) AS answer', query);
    by_index text[];
    by_sequence text[];
BEGIN
    SET LOCAL plan_cache_mode = force_custom_plan;
    SET LOCAL enable_seqscan = off;
    conditions := 0;
    FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
        conditions := conditions + regexp_count(line, CASE WHEN line LIKE '%Index Cond%' THEN '@~|~=' ELSE '$.' END);
    END LOOP;
    EXECUTE gathered INTO by_index;
    SET LOCAL enable_seqscan = on;
    SET LOCAL enable_indexscan = off;
    SET LOCAL enable_bitmapscan = off;
    EXECUTE gathered INTO by_sequence;
    SET LOCAL enable_indexscan = on;
    SET LOCAL enable_bitmapscan = on;
    rows := cardinality(by_index);
    same := by_index = by_sequence;
    RETURN NEXT;
END
$$;

-- ---- What it is created on, and with ----

CREATE INDEX docs_body ON docs USING gputext (body);
CREATE DOMAIN document AS text CHECK (value <> 'no document');
CREATE TABLE columns (id integer, v varchar(2000), fixed char(40), domain document, bytes bytea, name name, number integer, body text);
INSERT INTO columns SELECT id, body, left(body, 40), body, body::bytea, left(body, 60), id, body FROM docs WHERE id % 8 < 4 AND body IS NOT NULL;
ANALYZE columns;
CREATE INDEX columns_v ON columns USING gputext (v);
CREATE INDEX columns_domain ON columns USING gputext (domain);
CREATE INDEX columns_bytes ON columns USING gputext (bytes);
CREATE INDEX ON columns USING gputext (fixed);
CREATE INDEX ON columns USING gputext (fixed text_near_duplicate_ops);
CREATE INDEX ON columns USING gputext (name);
CREATE INDEX ON columns USING gputext (number);
CREATE INDEX ON columns USING gputext (bytes text_near_duplicate_ops);
CREATE INDEX columns_fixed ON columns USING gputext ((fixed::text));
CREATE INDEX columns_expression ON columns USING gputext (upper(body));
CREATE INDEX columns_partial ON columns USING gputext (body) WHERE id < 400;
SELECT * FROM compare('SELECT id FROM columns WHERE is_near_duplicate(v, (SELECT body FROM docs WHERE id = 10), 0.1)');
SELECT * FROM compare('SELECT id FROM columns WHERE domain ~= (SELECT body FROM docs WHERE id = 10)');
SELECT * FROM compare('SELECT id FROM columns WHERE is_near_duplicate(bytes, (SELECT body::bytea FROM docs WHERE id = 10), 0.1)');
SELECT * FROM compare('SELECT id FROM columns WHERE bytes ~= (SELECT body::bytea FROM docs WHERE id = 10)');
SELECT * FROM compare('SELECT id FROM columns WHERE is_near_duplicate(fixed::text, (SELECT left(body, 39) FROM docs WHERE id = 10), 0.1)');
SELECT * FROM compare('SELECT id FROM columns WHERE is_near_duplicate(fixed, (SELECT left(body, 39) FROM docs WHERE id = 10), 0.1)');
SELECT * FROM compare('SELECT id FROM columns WHERE upper(body) ~= (SELECT upper(body) FROM docs WHERE id = 10)');
SELECT * FROM compare('SELECT id FROM columns WHERE body ~= (SELECT body FROM docs WHERE id = 10)');
SELECT * FROM compare('SELECT id FROM columns WHERE body ~= (SELECT body FROM docs WHERE id = 10) AND id < 400');
SELECT * FROM compare('SELECT id FROM columns WHERE name ~= (SELECT left(body, 60) FROM docs WHERE id = 10)');

CREATE INDEX ON docs USING gputext (body, owner);
CREATE UNIQUE INDEX ON docs USING gputext (body);
CREATE INDEX ON docs USING gputext (body) INCLUDE (id);
\set VERBOSITY sqlstate
CREATE INDEX ON docs USING gputext (body DESC);
CREATE INDEX ON docs USING gputext (body NULLS FIRST);
\set VERBOSITY default
CREATE INDEX ON docs USING gputext (body) WITH (bins = 24);
CREATE INDEX ON docs USING gputext (body) WITH (bins = 100);
CREATE INDEX ON docs USING gputext (body) WITH (bins = 4104);
CREATE INDEX ON docs USING gputext (body) WITH (bins = many);
CREATE INDEX ON docs USING gputext (body) WITH (fillfactor = 90);
CLUSTER docs USING docs_body;
DROP TABLE columns;
DROP DOMAIN document;

-- The least and the largest sketches. A changed option takes effect with REINDEX.
DROP INDEX docs_body;
CREATE INDEX docs_few_bins ON docs USING gputext (body) WITH (bins = 32);
SELECT * FROM compare('SELECT id FROM docs WHERE is_near_duplicate(body, (SELECT body FROM docs WHERE id = 61), 0.2)');
ALTER INDEX docs_few_bins SET (bins = 1024);
ALTER INDEX docs_few_bins SET (bins = 65);
ALTER INDEX docs_few_bins SET (fillfactor = 70);
\d docs_few_bins
SELECT pg_relation_size('docs_few_bins') < 1000000 AS small;
SELECT * FROM compare('SELECT id FROM docs WHERE is_near_duplicate(body, (SELECT body FROM docs WHERE id = 61), 0.2)');
REINDEX INDEX docs_few_bins;
SELECT pg_relation_size('docs_few_bins') > 900000 AS large;
SELECT * FROM compare('SELECT id FROM docs WHERE is_near_duplicate(body, (SELECT body FROM docs WHERE id = 61), 0.2)');
DROP INDEX docs_few_bins;
CREATE INDEX CONCURRENTLY docs_body ON docs USING gputext (body);
REINDEX INDEX CONCURRENTLY docs_body;
SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 'docs_body'::regclass;

-- ---- Searches ----

SELECT threshold, compared.* FROM unnest('{0, 0.01, 0.05, 0.2, 0.49}'::double precision[]) AS threshold,
    compare(format('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(d.body, q.body, %s) WHERE q.id IN (5, 8, 61, 999, 3001, 3003, 3005)',
                   threshold)) AS compared;
-- The column as the second argument
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(q.body, d.body, 0.03) WHERE q.id < 40');
SELECT * FROM compare('SELECT id FROM docs WHERE (SELECT body FROM docs WHERE id = 61) ~= body');
SELECT * FROM compare('SELECT id FROM docs WHERE body @~ near_duplicate_query((SELECT body FROM docs WHERE id = 61), 0.02)');
-- Several conditions
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= (SELECT body FROM docs WHERE id = 61) AND is_near_duplicate(body, (SELECT body FROM docs WHERE id = 62), 0.01)');
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= (SELECT body FROM docs WHERE id = 61) AND body ~= (SELECT body FROM docs WHERE id = 125)');
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= (SELECT body FROM docs WHERE id = 61) OR is_near_duplicate((SELECT body FROM docs WHERE id = 126), body, 0.01)');
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= (SELECT body FROM docs WHERE id = 61) AND id > 61');
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= ANY (ARRAY(SELECT body FROM docs WHERE id IN (7, 61, 777)))');
SELECT * FROM compare('SELECT count(*) FROM docs WHERE NOT body ~= (SELECT body FROM docs WHERE id = 61)');
-- What a column of the same row has is no document to search by.
SELECT * FROM compare('SELECT count(*) FROM docs WHERE is_near_duplicate(body, owner, 0.4)');
-- NULL as document and as threshold; rows without a document are not near to anything.
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= (SELECT body FROM docs WHERE id = 3003)');
SELECT * FROM compare('SELECT id FROM docs WHERE is_near_duplicate(body, ''x'', (SELECT NULL::double precision))');
-- Errors are those of the condition.
SET enable_seqscan = off;
SELECT id FROM docs WHERE is_near_duplicate(body, 'x', (SELECT 0.5));
SELECT id FROM docs WHERE body @~ near_duplicate_query('\x00'::bytea, 0.1);
SELECT id FROM docs WHERE body @~ (SELECT near_duplicate_query('\x00'::bytea, 0.1));
RESET enable_seqscan;
-- Joins, subqueries, LATERAL, EXISTS
SELECT * FROM compare('SELECT a.id, b.id FROM docs a JOIN docs b ON a.body ~= b.body AND a.id < b.id WHERE a.id % 50 = 1');
SELECT * FROM compare('SELECT a.id, b.id FROM docs a LEFT JOIN docs b ON is_near_duplicate(b.body, a.body, 0.05) AND a.id <> b.id WHERE a.id > 2995');
SELECT * FROM compare('SELECT id FROM docs a WHERE a.id < 50 AND NOT EXISTS (SELECT FROM docs b WHERE b.body ~= a.body AND b.id < a.id)');
SELECT * FROM compare('SELECT a.id, near.id FROM docs a, LATERAL (SELECT id FROM docs b WHERE is_near_duplicate(b.body, a.body, a.id / 1000.0) ORDER BY id LIMIT 2) AS near WHERE a.id < 50');
-- A cursor that goes back
BEGIN;
SET LOCAL enable_seqscan = off;
DECLARE near SCROLL CURSOR FOR SELECT id FROM docs WHERE is_near_duplicate(body, '', 0) OR is_near_duplicate(body, 'x', 0);
FETCH 2 FROM near;
FETCH BACKWARD 1 FROM near;
FETCH 5 FROM near;
COMMIT;

-- ---- Plans ----

SET enable_bitmapscan = off;
PREPARE near(text, double precision) AS SELECT id FROM docs WHERE is_near_duplicate(body, $1, $2) ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS off) EXECUTE near('', 0.1);
EXECUTE near('', 0.1);
EXECUTE near('X', 0);
EXECUTE near('x', 0);
EXECUTE near(NULL, 0.1);
EXECUTE near('x', NULL);
EXECUTE near('x', 0.5);
DEALLOCATE near;
PREPARE near(text) AS SELECT count(*) FROM docs WHERE body ~= $1;
EXPLAIN (COSTS off) EXECUTE near('');
SELECT body AS document FROM docs WHERE id = 25 \gset
EXECUTE near(:'document');
-- A plan that is kept follows the setting.
SET gputext.near_duplicate_threshold = 0;
EXECUTE near(:'document');
RESET gputext.near_duplicate_threshold;
DEALLOCATE near;
RESET plan_cache_mode;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE is_near_duplicate('a document', body, 0.1);
EXPLAIN (COSTS off) SELECT a.id, b.id FROM docs a JOIN docs b ON is_near_duplicate(a.body, b.body, 0.1);
-- All rows of a few are read sooner.
CREATE TABLE few AS SELECT id, body FROM docs LIMIT 8;
CREATE INDEX ON few USING gputext (body);
ANALYZE few;
EXPLAIN (COSTS off) SELECT id FROM few WHERE is_near_duplicate('a document', body, 0.1);
DROP TABLE few;
RESET enable_bitmapscan;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE body ~= 'a document' OR is_near_duplicate(body, 'another', 0.1);

-- ---- Changes ----

-- Of a document, and of another column, in one row
UPDATE docs SET body = 'a document of its own, ' || id WHERE id BETWEEN 100 AND 110;
UPDATE docs SET owner = 'nobody' WHERE id BETWEEN 105 AND 115;
SELECT * FROM compare('SELECT id FROM docs WHERE is_near_duplicate(body, ''a document of its own, 100'', 0.1)');
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.body ~= q.body WHERE q.id BETWEEN 90 AND 120');
-- A transaction that fails
BEGIN;
INSERT INTO docs SELECT 10000 + id, owner, body FROM docs WHERE id = 61;
SELECT count(*) FROM docs WHERE body ~= (SELECT body FROM docs WHERE id = 61);
ROLLBACK;
SELECT count(*) FROM docs WHERE body ~= (SELECT body FROM docs WHERE id = 61);
-- VACUUM, and rows in the room that it gave back
DELETE FROM docs WHERE id % 3 = 0 OR id BETWEEN 500 AND 900;
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.body ~= q.body WHERE q.id % 40 = 1');
VACUUM docs;
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.body ~= q.body WHERE q.id % 40 = 1');
SELECT pg_relation_size('docs_body') AS size \gset
INSERT INTO docs SELECT id + 20000, owner, body FROM docs WHERE id % 6 = 1;
SELECT pg_relation_size('docs_body') = :size AS no_larger;
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.body ~= q.body WHERE q.id % 40 = 1');
VACUUM FULL docs;
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.body ~= q.body WHERE q.id % 40 = 1');
REINDEX TABLE docs;
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.body ~= q.body WHERE q.id % 40 = 1');
TRUNCATE docs;
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= ''a document''');
INSERT INTO docs VALUES (1, 'others', 'a document'), (2, 'others', 'a documemt');
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= ''a document''');
ALTER TABLE docs ALTER COLUMN body TYPE bytea USING body::bytea;
\d docs
ALTER TABLE docs ALTER COLUMN body TYPE varchar(100) USING convert_from(body, 'UTF8');
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= ''a document''');
DROP TABLE docs;

-- ---- Documents of all kinds ----

-- Long ones, compressed in the row, compressed out of line, and stored as they are
CREATE TABLE docs (id integer, body text, stored text);
ALTER TABLE docs ALTER COLUMN stored SET STORAGE external;
INSERT INTO docs
SELECT i, string_agg(body, ''), string_agg(body, '')
FROM generate_series(1, 40) AS i, generate_series(1, 3200) AS part,
     LATERAL (SELECT CASE WHEN i % 2 = 0 THEN repeat(md5((i / 4)::text), 1) ELSE md5(i / 4 || '/' || part) END ||
                     CASE WHEN part % 100 < i % 4 THEN ' changed ' ELSE '' END) AS text (body)
GROUP BY i;
INSERT INTO docs VALUES (41, '', ''), (42, 'short', 'short');
CREATE INDEX docs_body ON docs USING gputext (body);
CREATE INDEX docs_stored ON docs USING gputext (stored) WITH (bins = 1024);
ANALYZE docs;
SELECT min(length(body)) > 100000 AS long, min(pg_column_size(body)) < 8000 AS compressed, min(pg_column_size(stored)) > 100000 AS plain
FROM docs WHERE id <= 40;
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(d.body, q.body, 0.01)');
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.stored ~= q.stored WHERE q.id < 10');
DROP TABLE docs;

-- Of several kinds, of which the index learns a model each, beside documents of kinds that came later
CREATE TABLE docs (id integer, body text);
CREATE FUNCTION document(i integer) RETURNS text IMMUTABLE LANGUAGE sql AS $$
SELECT left(CASE i / 4 % 3 WHEN 0 THEN digits WHEN 1 THEN translate(digits, '0123456789abcdef', ' etaoinsrhldcumf')
            ELSE translate(digits, '0123456789abcdef', '<>/="ABCDEFGHI()') END, 60 + i / 4 % 40) || i % 4
FROM (SELECT md5((i / 4)::text) || md5((i / 4 + 1)::text) || md5((i / 4 + 2)::text)) AS hashes (digits)
$$;
-- The number of models, in the meta page
CREATE FUNCTION models(index regclass) RETURNS integer LANGUAGE sql AS $$
SELECT get_byte(pg_read_binary_file(pg_relation_filepath(index), 8186, 1), 0)
$$;
CREATE INDEX docs_body ON docs USING gputext (body);
CHECKPOINT;
SELECT models('docs_body'), gputext_index_check('docs_body', true);
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= document(40)');
INSERT INTO docs SELECT i, document(i) FROM generate_series(1, 50) AS i;
REINDEX TABLE docs;
CHECKPOINT;
SELECT models('docs_body'), gputext_index_check('docs_body', true);
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= document(40)');
INSERT INTO docs SELECT i, document(i) FROM generate_series(51, 61000) AS i;
SELECT gputext_index_check('docs_body', true);
ANALYZE docs;
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(d.body, q.body, 0.05) WHERE q.id % 6000 < 4');
REINDEX TABLE docs;
CHECKPOINT;
SELECT models('docs_body') > 1 AS several_models, gputext_index_check('docs_body', true);
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(d.body, q.body, 0.05) WHERE q.id % 6000 < 4');
INSERT INTO docs SELECT i, document(i * 7) FROM generate_series(100000, 103000) AS i;
INSERT INTO docs SELECT 200000 + i, repeat('ΑΒΓ' || i % 10, i % 50) FROM generate_series(1, 1000) AS i;
SELECT gputext_index_check('docs_body', true);
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(d.body, q.body, 0.05) WHERE q.id % 6000 < 4');
DELETE FROM docs WHERE id % 3 = 1 OR id BETWEEN 10000 AND 40000;
VACUUM docs;
SELECT gputext_index_check('docs_body', true) = count(*) AS sound FROM docs;
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(d.body, q.body, 0.05) WHERE q.id % 3000 < 4');
SELECT * FROM compare('SELECT d.id FROM docs q JOIN docs d ON is_near_duplicate(d.body, q.body, 0.2) WHERE q.id = 200033');
DROP TABLE docs;
DROP FUNCTION document;
DROP FUNCTION models;

-- Other letters, and collations: documents are compared by their characters, whatever the collation.
CREATE TABLE docs (id integer, body text, c text COLLATE "C");
INSERT INTO docs VALUES (1, 'Ζεῦ πάτερ, ἀλλὰ σὺ ῥῦσαι ὑπ᾿ ἠέρος υἷας Ἀχαιῶν'), (2, 'Ζεῦ πάτερ, ἀλλὰ σὺ ῥῦσαι ὑπ᾿ ἠέρος υἷας Αχαιων'),
    (3, '日本国民は、正当に選挙された国会における代表者を通じて行動し'), (4, '日本国民は、正当に選挙された国会における代表者を通じて活動し'),
    (5, 'It was a bright cold day in April'), (6, 'IT WAS A BRIGHT COLD DAY IN APRIL'), (7, 'It was a bright cold day in april');
SET client_min_messages = warning;
DO $$ BEGIN
    CREATE COLLATION regress_gputext_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
    CREATE COLLATION regress_gputext_case FROM "C";
END $$;
RESET client_min_messages;
ALTER TABLE docs ADD no_case text COLLATE regress_gputext_case;
UPDATE docs SET c = body, no_case = body;
CREATE INDEX ON docs USING gputext (body);
CREATE INDEX ON docs USING gputext (c);
CREATE INDEX ON docs USING gputext (no_case);
CREATE INDEX ON docs USING gputext (no_case COLLATE "C");
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.body ~= q.body');
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(d.c, q.c, 0.05)');
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON is_near_duplicate(d.no_case, q.no_case, 0.05)');
SELECT * FROM compare('SELECT d.id, q.id FROM docs q JOIN docs d ON d.no_case ~= q.no_case');
SELECT * FROM compare('SELECT id FROM docs WHERE no_case COLLATE "C" ~= ''It was a bright cold day in APRIL''');
SELECT id FROM docs WHERE no_case ~= 'It was a bright cold day in April' ORDER BY id;
DROP TABLE docs;
DROP COLLATION regress_gputext_case;

-- ---- Tables of all kinds ----

CREATE TABLE docs (id integer, day date, body text) PARTITION BY RANGE (day);
CREATE TABLE docs_2025 PARTITION OF docs FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE docs_2026 PARTITION OF docs FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE INDEX docs_body ON docs USING gputext (body);
INSERT INTO docs SELECT i, date '2025-07-01' + i % 365, (SELECT string_agg(md5((i / 6 * 10 + j)::text), ' ') FROM generate_series(1, 6) AS j) || i % 6
FROM generate_series(1, 2000) AS i;
CREATE TABLE docs_2027 PARTITION OF docs FOR VALUES FROM ('2027-01-01') TO ('2028-01-01');
INSERT INTO docs SELECT id, '2027-02-02', body FROM docs WHERE id = 7;
ANALYZE docs;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE is_near_duplicate(body, 'a document', 0.1) AND day < '2027-01-01';
RESET enable_bitmapscan;
SELECT * FROM compare('SELECT d.id, d.day, q.id FROM docs q JOIN docs d ON d.body ~= q.body WHERE q.id < 20');
DROP TABLE docs;

CREATE TEMP TABLE docs AS SELECT i AS id, md5((i / 3)::text) AS body FROM generate_series(1, 300) AS i;
CREATE INDEX ON docs USING gputext (body);
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= md5(''7'')');
DROP TABLE docs;
CREATE UNLOGGED TABLE docs AS SELECT i AS id, md5((i / 3)::text) AS body FROM generate_series(1, 300) AS i;
CREATE INDEX ON docs USING gputext (body);
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= md5(''7'')');
ALTER TABLE docs SET LOGGED;
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= md5(''7'')');
DROP TABLE docs;
CREATE MATERIALIZED VIEW docs AS SELECT i AS id, md5((i / 3)::text) AS body FROM generate_series(1, 300) AS i;
CREATE INDEX ON docs USING gputext (body);
REFRESH MATERIALIZED VIEW docs;
SELECT * FROM compare('SELECT id FROM docs WHERE body ~= md5(''7'')');
DROP MATERIALIZED VIEW docs;

-- Row-level security: a policy's condition is evaluated first, as conditions on documents are not leakproof.
CREATE ROLE regress_gputext_reader;
CREATE TABLE docs (id integer, owner name, body text);
INSERT INTO docs SELECT i, CASE i % 10 WHEN 0 THEN 'regress_gputext_reader' ELSE 'others' END, md5((i / 20)::text) || ' secret ' || i
FROM generate_series(1, 3000) AS i;
CREATE INDEX docs_body ON docs USING gputext (body);
ANALYZE docs;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON docs USING (owner = current_user);
GRANT SELECT ON docs TO regress_gputext_reader;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE body ~= 'a document';
SET ROLE regress_gputext_reader;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE body ~= 'a document';
SET enable_seqscan = off;
SELECT count(*), count(*) FILTER (WHERE id % 10 = 0) AS own FROM docs WHERE is_near_duplicate(body, md5('7') || ' secret 140', 0.05);
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET ROLE;
DROP TABLE docs;
DROP ROLE regress_gputext_reader;

-- ---- The access method ----

SELECT name, pg_indexam_has_property(oid, name) AS has FROM pg_am, unnest('{can_order, can_unique, can_multi_col, can_exclude, can_include}'::text[]) AS name
WHERE amname = 'gputext';
CREATE OPERATOR CLASS regress_gputext_ops FOR TYPE integer USING gputext AS OPERATOR 1 = (integer, integer);
SELECT amvalidate(oid) AS valid FROM pg_opclass WHERE opcname = 'regress_gputext_ops';
DROP OPERATOR FAMILY regress_gputext_ops USING gputext;
CREATE OPERATOR CLASS regress_gputext_ops FOR TYPE text USING gputext AS OPERATOR 3 = (text, text);

-- With the extension goes the index, not the table.
CREATE SCHEMA elsewhere;
DROP EXTENSION gputext;
CREATE EXTENSION gputext SCHEMA elsewhere;
CREATE TABLE docs AS SELECT i AS id, md5((i / 3)::text) AS body FROM generate_series(1, 3000) AS i;
CREATE INDEX docs_body ON docs USING gputext (body);
ANALYZE docs;
-- The condition for the index is found where the function is, whatever the search_path.
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE elsewhere.is_near_duplicate(body, 'a document', 0.1);
SELECT id FROM docs WHERE elsewhere.is_near_duplicate(body, md5('7'), 0.1) ORDER BY id;
RESET enable_bitmapscan;
DROP EXTENSION gputext;
SET client_min_messages = warning;
DROP EXTENSION gputext CASCADE;
RESET client_min_messages;
\d docs
DROP TABLE docs;
DROP SCHEMA elsewhere;
DROP FUNCTION compare;
-- Other tests need it.
CREATE EXTENSION gputext;
