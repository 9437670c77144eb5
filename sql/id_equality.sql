-- What is equal among ids and keys: what the = of their columns says
SET client_min_messages = warning;
SET gputext.device = cpu;
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION any_accent (provider = icu, locale = 'und-u-ks-level1', deterministic = false);

-- Of a table whose columns id and key are of a type: whether keys, ids that exclude, groups and merged answers are those of plain SQL;
-- how many pairs of equal keys there are, and of different ids; and how many ids differ.
CREATE TABLE rows (number int, e real[], id text, key text);
INSERT INTO rows SELECT i, ARRAY[i, 1]::real[], (ARRAY['A', 'a', 'b', 'B', 'é', 'e', 'x '])[i], (ARRAY['zip', 'Zip', 'zìp', 'q', NULL, 'Q', 'q '])[i] FROM generate_series(1, 7) i;
CREATE FUNCTION compare(id text, key text, type text, OUT keys boolean, OUT excludes boolean, OUT groups boolean, OUT merges boolean, OUT pairs bigint, OUT others bigint, OUT different bigint)
LANGUAGE plpgsql AS $$
DECLARE
    of text := format('(SELECT number, e, %s AS id, %s AS key FROM rows) r', id, key);
    other text := format('(SELECT number, e, %s AS id, %s AS key FROM rows) s', id, key);
BEGIN
    EXECUTE format('SELECT count(*), coalesce(sum(r.number * s.number), 0) = (SELECT coalesce(sum(query_id * item_id), 0) FROM gpu_knn(%L, %1$L, NULL::int, 100))
        FROM %s JOIN %s ON r.key = s.key', 'SELECT number, e, key FROM ' || of, of, other) INTO pairs, keys;
    EXECUTE format('SELECT count(*), count(*) = (SELECT count(*) FROM gpu_knn(%L, %1$L, NULL::%s, 100, exclude_self => true))
        FROM %s JOIN %s ON r.id <> s.id', 'SELECT id, e FROM ' || of, type, of, other) INTO others, excludes;
    EXECUTE format('SELECT count(DISTINCT id), count(DISTINCT id) = (SELECT count(*) FROM groups_of(%L, NULL::%s)) FROM %s', 'SELECT id, id FROM ' || of, type, of) INTO different, groups;
    EXECUTE format('SELECT $1 = (SELECT count(*) FROM knn_merge(%L, NULL::%s, 1))', 'SELECT id, id, 0.5::float8 FROM ' || of, type) INTO merges USING different;
END
$$;
SELECT * FROM compare('id', 'key', 'text');
SELECT * FROM compare('id COLLATE "C"', 'key COLLATE "C"', 'text');
SELECT * FROM compare('id COLLATE any_case', 'key COLLATE any_case', 'text');
SELECT * FROM compare('id COLLATE any_accent', 'key COLLATE any_accent', 'text');
SELECT * FROM compare('(id::varchar(9)) COLLATE any_case', '(key::varchar(9)) COLLATE any_case', 'varchar');
SELECT * FROM compare('(id::char(4)) COLLATE any_case', '(key::char(4)) COLLATE any_case', 'bpchar');
SELECT * FROM compare('id::char(4)', 'key::char(4)', 'bpchar');
SELECT * FROM compare('(ARRAY[id]) COLLATE any_case', '(ARRAY[key]) COLLATE any_case', 'text[]');
SELECT * FROM compare('id', 'ROW(key COLLATE any_case, 1)', 'text');
-- Types whose equality is not that of bytes
SELECT * FROM compare('(ARRAY[1, 1.0, 1.00, 2, 2.5, 2.50, ''NaN''])[number]::numeric', '(ARRAY[1, 1.0, 1.00, 2, 2.5, 2.50, ''NaN''])[number]::numeric', 'numeric');
SELECT * FROM compare('(ARRAY[0, ''-0'', 1, ''NaN'', ''-NaN'', ''NaN'', ''inf'']::float8[])[number]', '(ARRAY[0, ''-0'', 1, ''NaN'', ''-NaN'', ''NaN'', ''inf'']::float8[])[number]', 'float8');
SELECT * FROM compare('(ARRAY[0, ''-0'', 1, ''NaN'', ''-NaN'', ''NaN'', ''inf'']::float4[])[number]', '(ARRAY[0, ''-0'', 1, ''NaN'', ''-NaN'', ''NaN'', ''inf'']::float4[])[number]', 'float4');
SELECT * FROM compare('(ARRAY[''1 day'', ''24 hours'', ''1 mon'', ''30 days'', ''720 hours'', ''1 year'', ''360 days''])[number]::interval', '(ARRAY[''1 day'', ''24 hours'', ''1 mon'', ''30 days'', ''720 hours'', ''1 year'', ''360 days''])[number]::interval', 'interval');
SELECT * FROM compare('ARRAY[number % 3, 1.0]::numeric[]', 'ARRAY[ARRAY[(number % 3) * 1.0]]::numeric[]', 'numeric[]');
SELECT * FROM compare('format(''{"a": %s, "b": 1.%s}'', number % 2, repeat(''0'', number))::jsonb', 'format(''{"a": %s}'', number % 2)::jsonb', 'jsonb');
SELECT * FROM compare('(''12:00+0'' || number % 2)::timetz', '(''2026-01-01 12:00+0'' || number % 2)::timestamptz', 'timetz');
CREATE TYPE pair AS (word text COLLATE any_case, n numeric);
CREATE DOMAIN word AS text COLLATE any_case;
SELECT * FROM compare('ROW(id, 1.0)::pair', 'ROW(key, number % 2)::pair', 'pair');
SELECT * FROM compare('id::word', 'key::word', 'word');
SELECT * FROM compare('numrange(number % 2, number % 2 * 1.0, ''[]'')', 'numrange(1.0, number)', 'numrange');

-- Keys that exclude
SELECT count(*) = (SELECT count(*) FROM rows r, rows s WHERE coalesce(r.key COLLATE any_case <> s.key COLLATE any_case, true)) AS same
FROM gpu_knn('SELECT number, e, key COLLATE any_case FROM rows', 'SELECT number, e, key COLLATE any_case FROM rows', NULL::int, 100, exclude_key => true);
-- Two collations that do not say the same
SELECT count(*) FROM gpu_knn('SELECT number, e, key COLLATE any_case FROM rows', 'SELECT number, e, key FROM rows', NULL::int, 100);
SELECT count(*) FROM gpu_knn('SELECT id, e FROM rows', 'SELECT id COLLATE any_case, e FROM rows', NULL::text, 100, exclude_self => true);
SELECT count(*) FROM groups_of('SELECT id COLLATE any_case, id COLLATE any_accent FROM rows', NULL::text);
SELECT count(*) FROM groups_of('SELECT id COLLATE "C", id FROM rows', NULL::text);
SELECT count(*) FROM gpu_knn('SELECT number, e, key COLLATE "C" FROM rows', 'SELECT number, e, key COLLATE "C" FROM rows', NULL::int, 100);
SELECT count(*) FROM gpu_knn('SELECT id, e FROM rows', 'SELECT id COLLATE any_case, e FROM rows', NULL::text, 100);
-- The id that came first names the group
SELECT id, group_id, group_size FROM groups_of('SELECT a COLLATE any_case, b COLLATE any_case FROM (VALUES (''b'', ''A''), (''a'', ''c''), (''x'', ''x''), (''X'', ''y'')) v (a, b)', NULL::text);

DROP FUNCTION compare;
DROP TABLE rows;
DROP DOMAIN word;
DROP TYPE pair;
DROP COLLATION any_case;
DROP COLLATION any_accent;
