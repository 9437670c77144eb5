-- groups_of
\set SHOW_CONTEXT never

-- The smallest id names a group. A pair of an id with itself makes it known.
SELECT * FROM groups_of('VALUES (3, 2), (1, 2), (9, 8), (5, 5), (2, 3)');
-- Further columns are not looked at.
SELECT * FROM groups_of('VALUES (1, 2, 0.5), (2, 3, NULL)');
-- With an ORDER BY the id that occurs first names a group, of a pair the one in the first column.
SELECT * FROM groups_of('SELECT a, b FROM (VALUES (1, 9, 3), (4, 7, 2), (2, 3, 1)) AS p(n, a, b) ORDER BY n');
SELECT * FROM groups_of('SELECT a, b FROM (VALUES (1, 9, 3), (4, 7, 2), (2, 3, 1)) AS p(n, a, b) ORDER BY n DESC');
-- One that is in a subquery does not count.
SELECT * FROM groups_of('SELECT * FROM (VALUES (9, 3), (7, 2) ORDER BY 1 DESC) AS p');
-- Pairs with a null are left out.
SELECT * FROM groups_of('VALUES (1, 2), (3, NULL), (NULL, 4), (NULL, NULL)');
SELECT * FROM groups_of('VALUES (NULL::bigint, 1)');
SELECT * FROM groups_of('SELECT 1, 2 WHERE false');
-- All that a bigint can be
SELECT * FROM groups_of('VALUES (9223372036854775807, -9223372036854775808), (0, 1), (-1, 0)');
SELECT * FROM groups_of('VALUES (9223372036854775807, 9223372036854775806), (9223372036854775805, 9223372036854775806)');

-- Ids of other types
CREATE DOMAIN number AS integer;
SELECT * FROM groups_of('VALUES (1::smallint, 2), (3::smallint, 70000)');
SELECT * FROM groups_of('VALUES (4294967295::oid, 1::number)');
SELECT pg_typeof(id), * FROM groups_of('VALUES (-2, 7), (7, 2147483647)', NULL::integer);
SELECT pg_typeof(id), * FROM groups_of('VALUES (-2::smallint, 7::smallint)', NULL::smallint);
SELECT pg_typeof(id), * FROM groups_of('VALUES (4294967295::oid, 7::oid)', NULL::oid);
SELECT pg_typeof(id), * FROM groups_of('VALUES (''b''::text, ''a''::text), (''a'', ''''), (repeat(''x'', 5), ''y'')', NULL::text);
SELECT * FROM groups_of(pairs => 'VALUES (''b''::text, ''a''::text), (''a'', ''c'') ORDER BY 1 DESC', id_type => NULL::text);
SELECT * FROM groups_of('SELECT md5(i::text)::uuid, md5((i % 2)::text)::uuid FROM generate_series(0, 5) AS i', NULL::uuid);
CREATE TYPE place AS (shelf integer, title text);
SELECT * FROM groups_of('VALUES (ROW(1, ''a'')::place, ROW(1, ''b'')::place), (ROW(1, ''b'')::place, ROW(0, '''')::place)', NULL::place);
SELECT * FROM groups_of('VALUES (ARRAY[1, 2], ARRAY[1]), (ARRAY[1, 2], ARRAY[0])', NULL::integer[]);
SELECT * FROM groups_of('VALUES (1::money, 2::money)', NULL::money);
-- Equal ids are one id, however they are written: the one that comes first is shown.
SELECT * FROM groups_of('VALUES (1.0, 2), (3, 1.00), (-0.0, 2.000) ORDER BY 1 DESC', NULL::numeric);
SELECT * FROM groups_of('VALUES (0::float8, 1::float8), (''-0'', 2)', NULL::float8);
SELECT * FROM groups_of('VALUES (''Ab''::char(5), ''x''::char(5)), (''Ab  '', ''y'')', NULL::char(5));

-- Against a recursive query
CREATE FUNCTION plain_groups(pairs text) RETURNS TABLE (id bigint, group_id bigint, group_size bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'WITH RECURSIVE ends AS (
        SELECT a, b FROM (' || pairs || ') AS p(a, b) UNION SELECT b, a FROM (' || pairs || ') AS p(a, b)
    ), reached AS (
        SELECT a, b FROM ends UNION SELECT r.a, e.b FROM reached r JOIN ends e ON e.a = r.b
    )
    SELECT a, least(a, min(b)), count(DISTINCT b) FROM (TABLE reached UNION SELECT a, a FROM ends) AS all_reached GROUP BY a';
END $$;
CREATE TABLE pairs AS
SELECT n, abs(hashint8(n * 2)) % nodes AS a, abs(hashint8(n * 2 + 1)) % nodes AS b, nodes
FROM (VALUES (30), (100), (400)) AS sizes(nodes), generate_series(1, 150::bigint) AS n;
INSERT INTO pairs SELECT 1000 + i, i, i + 1, 1 FROM generate_series(1, 60) AS i;
SELECT nodes, spread, count(*) AS ids, count(DISTINCT g.group_id) AS groups,
       count(*) FILTER (WHERE (g.id, g.group_id, g.group_size) IS DISTINCT FROM (p.id, p.group_id, p.group_size)) AS wrong
FROM (VALUES (30), (100), (400), (1)) AS kinds(nodes), (VALUES (1), (1000000007)) AS spreads(spread),
     LATERAL (SELECT format('SELECT a * %s::bigint, b * %s::bigint FROM pairs WHERE nodes = %s', spread, spread, nodes)) AS q(query),
     LATERAL (SELECT p.* FROM plain_groups(query) AS p) AS p FULL JOIN LATERAL groups_of(query) AS g USING (id)
GROUP BY nodes, spread ORDER BY nodes, spread;
-- The type of the ids does not matter.
SELECT count(*), count(*) FILTER (WHERE (b.group_id, b.group_size) IS DISTINCT FROM (t.group_id::bigint, t.group_size)) AS differing
FROM groups_of('SELECT a, b FROM pairs WHERE nodes = 400 ORDER BY n') AS b
FULL JOIN groups_of('SELECT a::text, b::text FROM pairs WHERE nodes = 400 ORDER BY n', NULL::text) AS t ON t.id = b.id::text;
-- Rows come by id, or as they occur.
SELECT bool_and(id > before) AS ascending FROM (SELECT id, lag(id) OVER () AS before FROM groups_of('SELECT a, b FROM pairs')) AS g;
SELECT array_agg(id) = (SELECT array_agg(id::bigint ORDER BY first) FROM (
    SELECT id, min(first) AS first FROM pairs, LATERAL (VALUES (a, 2 * n), (b, 2 * n + 1)) AS e(id, first) WHERE nodes = 100 GROUP BY id) AS o) AS as_they_occur
FROM groups_of('SELECT a, b FROM pairs WHERE nodes = 100 ORDER BY n');
-- Near-duplicates have the same groups, but for those that are alone.
CREATE TABLE docs AS SELECT i::bigint AS id, repeat(md5((i % 40)::text), 3) || CASE WHEN i % 3 = 0 THEN 'x' ELSE '' END AS body FROM generate_series(1, 100) AS i;
SELECT count(*), count(*) FILTER (WHERE d.group_id IS DISTINCT FROM g.group_id OR d.group_size IS DISTINCT FROM g.group_size) AS differing
FROM near_duplicate_groups('TABLE docs') AS d
FULL JOIN groups_of('SELECT * FROM near_duplicates(''TABLE docs'')') AS g USING (id) WHERE d.group_size <> 1;

-- What it refuses
SELECT * FROM groups_of(NULL);
SELECT * FROM groups_of('SELECT 1');
SELECT * FROM groups_of('VALUES (1, ''a'')');
SELECT * FROM groups_of('VALUES (''a''::text, 1)');
SELECT * FROM groups_of('VALUES (1, 2)', NULL::text);
SELECT * FROM groups_of('VALUES (1::bigint, 2)', NULL::integer);
SELECT * FROM groups_of('VALUES (1, 2)', 'integer');
SELECT * FROM groups_of('SELECT ''{}''::json, ''{}''::json', NULL::json);
SELECT * FROM groups_of('SELECT ''(1,2)''::point, ''(1,2)''::point', NULL::point);
SELECT * FROM groups_of('SELECT ARRAY[''(1,2)''::point], NULL', NULL::point[]);
SELECT * FROM groups_of('INSERT INTO pairs VALUES (1, 2, 3, 4) RETURNING a, b');
SET gputext.host_memory_limit = '1MB';
SELECT * FROM groups_of('SELECT i * 1000000007, i FROM generate_series(1, 100000::bigint) AS i');
SELECT count(*) FROM groups_of('SELECT i, i / 2 FROM generate_series(1, 100000::bigint) AS i');
RESET gputext.host_memory_limit;

DROP TABLE pairs, docs;
DROP FUNCTION plain_groups(text);
DROP TYPE place;
DROP DOMAIN number;
