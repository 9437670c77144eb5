-- knn_recall on pgvector's indexes; expected/knn_recall_pgvector_1.out is for servers without pgvector.
SELECT count(*) = 0 AS without_pgvector FROM pg_available_extensions WHERE name = 'vector' \gset
\if :without_pgvector
\quit
\endif
SET client_min_messages = warning;
CREATE EXTENSION vector;
RESET client_min_messages;

SELECT setseed(0.25);
CREATE TABLE items AS
SELECT i AS id, i % 10 AS kind, array_agg((random() + i % 7)::real ORDER BY j) AS plain FROM generate_series(1, 2000) AS i, generate_series(1, 8) AS j GROUP BY i;
INSERT INTO items VALUES (3000, 0, '{0,0,0,0,0,0,0,0}'), (3001, 1, NULL);
ALTER TABLE items ADD embedding vector(8);
UPDATE items SET embedding = plain::vector;
CREATE TABLE queries AS
SELECT i AS id, array_agg((random() + i % 7)::real ORDER BY j) AS plain FROM generate_series(1, 30) AS i, generate_series(1, 8) AS j GROUP BY i;
ANALYZE items;

-- The same by hand: rows of the index that are at most as far as the k-th of all rows, by the operators of arrays
CREATE FUNCTION by_hand(operator text, k integer, condition text DEFAULT 'true')
RETURNS TABLE (query_id bigint, found bigint, expected bigint, returned bigint, kth_distance double precision, farthest_distance double precision) LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT q.id::bigint, (SELECT count(*) FROM unnest(a.distances) AS d WHERE d <= e.kth), e.size, a.size, e.kth, a.farthest
        FROM queries AS q,
             LATERAL (SELECT count(d) AS size, max(d) AS kth FROM (SELECT i.plain %1$s q.plain AS d FROM items AS i
                      WHERE i.plain IS NOT NULL AND i.plain %1$s q.plain <> ''NaN'' AND %3$s ORDER BY d LIMIT %2$s) AS n) AS e,
             LATERAL (SELECT count(*) AS size, array_agg(n.plain %1$s q.plain) AS distances, max(n.plain %1$s q.plain) AS farthest
                      FROM (SELECT i.plain FROM items AS i WHERE %3$s ORDER BY i.embedding %1$s q.plain::vector LIMIT %2$s) AS n) AS a', operator, k, condition);
END $$;
CREATE FUNCTION compare(index regclass, operator text, k integer, condition text DEFAULT 'true', OUT queries bigint, OUT differing bigint, OUT recall_is_share boolean, OUT all_found boolean) LANGUAGE sql AS $$
    SELECT count(*), count(*) FILTER (WHERE (r.found, r.expected, r.returned, r.kth_distance, r.farthest_distance)
                                            IS DISTINCT FROM (h.found, h.expected, h.returned, h.kth_distance, h.farthest_distance)),
           bool_and(r.recall = r.found::double precision / r.expected AND r.milliseconds >= 0), bool_and(r.found = r.expected)
    FROM knn_recall(index, 'SELECT id, plain FROM queries', k) AS r FULL JOIN by_hand(operator, k, condition) AS h USING (query_id)
$$;

-- HNSW by each metric
CREATE INDEX items_index ON items USING hnsw (embedding vector_l2_ops) WITH (m = 4, ef_construction = 10);
SET hnsw.ef_search = 10;
SELECT queries, differing, recall_is_share FROM compare('items_index', '<->', 10);
-- A search that looks at few rows misses some, and one that looks at as few as this returns fewer than k.
SELECT avg(recall) < 1 AS misses, bool_or(returned < expected) AS returns_less FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 40);
-- The plan that finds the nearest rows without the index stays out of it
SET gputext.plan_nearest = force;
SELECT avg(recall) < 1 AS misses, bool_or(returned < expected) AS returns_less FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 40);
RESET gputext.plan_nearest;
SET hnsw.ef_search = 1000;
SELECT queries, differing, recall_is_share FROM compare('items_index', '<->', 10);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING hnsw (embedding vector_cosine_ops);
SET hnsw.ef_search = 20;
SELECT queries, differing, recall_is_share FROM compare('items_index', '<=>', 15);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING hnsw (embedding vector_ip_ops);
SELECT queries, differing, recall_is_share FROM compare('items_index', '<#>', 15);
DROP INDEX items_index;

-- IVFFlat: at all lists the answer is exact.
CREATE INDEX items_index ON items USING ivfflat (embedding vector_l2_ops) WITH (lists = 20);
SET ivfflat.probes = 1;
SELECT queries, differing, recall_is_share FROM compare('items_index', '<->', 10);
SET ivfflat.probes = 20;
SELECT * FROM compare('items_index', '<->', 10);
-- Beside a second index of the column, each is judged by itself, and settings are as before.
CREATE INDEX other_index ON items USING ivfflat (embedding vector_l2_ops) WITH (lists = 2);
SET ivfflat.probes = 2;
SELECT avg(recall) = 1 AS exact FROM knn_recall('other_index', 'SELECT id, plain FROM queries', 10);
SELECT avg(recall) < 1 AS misses FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 1000);
SHOW enable_seqscan;
DROP INDEX items_index, other_index;

-- A partial index, one of an expression, and more neighbors than rows
CREATE INDEX items_index ON items USING ivfflat (embedding vector_l2_ops) WITH (lists = 5) WHERE kind = 3;
SET ivfflat.probes = 5;
SELECT * FROM compare('items_index', '<->', 10, 'kind = 3');
SELECT avg(recall) AS recall, min(expected) AS expected, max(returned) AS returned FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 100000);
DROP INDEX items_index;
CREATE INDEX items_index ON items USING ivfflat ((plain::vector(8)) vector_cosine_ops) WITH (lists = 5);
SELECT avg(recall) AS recall, min(expected) AS expected FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 10);

-- Queries of each type that becomes a vector, ids of any type; a query of zeros has no neighbors by cosine.
SELECT query_id, recall, found, expected, kth_distance IS NULL AS no_distance FROM knn_recall('items_index', 'SELECT 1, ''{0,0,0,0,0,0,0,0}''::integer[] UNION ALL
    SELECT 2, ''{1,2,3,4,5,6,7,8}''', 5);
SELECT query_id, recall FROM knn_recall('items_index', 'SELECT ''a'', ''{1,2,3,4,5,6,7,8}''::double precision[]', NULL::text, 5);
SELECT query_id, recall FROM knn_recall('items_index', 'SELECT 1, ''[1,2,3,4,5,6,7,8]''::vector', 5);
SELECT count(*) FROM knn_recall('items_index', 'SELECT id, plain FROM items WHERE kind = 1', 5);
SELECT * FROM knn_recall('items_index', 'SELECT id, plain FROM queries WHERE false', 5);
-- What it refuses
-- Where the row lies differs from release to release.
DO $$
BEGIN
    PERFORM * FROM knn_recall('items_index', 'SELECT id, plain[:3] FROM queries', 5);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE '%', regexp_replace(SQLERRM, 'row \(.*?\)', 'row (...)');
END $$;
SELECT * FROM knn_recall('items_index', 'SELECT id, id FROM queries', 5);
SELECT * FROM knn_recall('items_index', 'SELECT 1, ''{1,NaN,3,4,5,6,7,8}''::real[]', 5);
SELECT * FROM knn_recall('items_index', 'SELECT ''a'', plain FROM queries', 5);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'items_index'::regclass;
SELECT * FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 5);
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'items_index'::regclass;

-- With the rights of the caller: the table's, and its policies
CREATE ROLE regress_recall;
GRANT SELECT ON queries TO regress_recall;
SET ROLE regress_recall;
\set SHOW_CONTEXT never
SELECT * FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 5);
\set SHOW_CONTEXT errors
RESET ROLE;
GRANT SELECT ON items TO regress_recall;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
SET ROLE regress_recall;
SELECT count(*), max(expected) AS expected, avg(recall) AS recall FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 5);
RESET ROLE;
CREATE POLICY few ON items USING (id <= 3);
SET ROLE regress_recall;
SELECT count(*), max(expected) AS expected, avg(recall) AS recall FROM knn_recall('items_index', 'SELECT id, plain FROM queries', 5);
RESET ROLE;
DROP TABLE items, queries;
DROP ROLE regress_recall;

-- An empty table, and one whose name needs quotes, with a child whose rows are not the index's
CREATE TABLE "The ""Items""" (id integer, "a vector" vector(2));
CREATE INDEX "Their index" ON "The ""Items""" USING hnsw ("a vector" vector_l2_ops);
CREATE TABLE child () INHERITS ("The ""Items""");
INSERT INTO child VALUES (1, '[1,1]');
SELECT query_id, recall, found, expected, returned FROM knn_recall('"Their index"', 'SELECT 7, ''[1,2]''::vector', 3);
INSERT INTO "The ""Items""" VALUES (1, '[3,3]'), (2, '[4,4]'), (3, NULL);
SELECT query_id, recall, found, expected, returned, farthest_distance FROM knn_recall('"Their index"', 'SELECT 7, ''[1,2]''::vector', 3);
-- Of rows at the same distance any may be returned.
INSERT INTO "The ""Items""" SELECT i, '[1,2]' FROM generate_series(1, 20) AS i;
SELECT query_id, recall, found, expected, kth_distance FROM knn_recall('"Their index"', 'SELECT 7, ''[1,2]''::vector', 3);
DROP TABLE "The ""Items""" CASCADE;
-- What an index's expression and condition call runs as the owner of the table, and is called for who may read it whole.
CREATE ROLE regress_recall;
CREATE ROLE regress_gputext_owner;
CREATE TABLE items (id integer, v vector(3));
INSERT INTO items SELECT i, ARRAY[i, i % 7, i % 5]::real[]::vector FROM generate_series(1, 200) AS i;
CREATE FUNCTION by_owner(v vector) RETURNS vector LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_user <> 'regress_gputext_owner' THEN
        RAISE 'runs as %', current_user;
    END IF;
    RETURN v;
END
$$;
CREATE FUNCTION is_by_owner(v vector) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN public.by_owner(v) IS NOT NULL; END $$;
ALTER TABLE items OWNER TO regress_gputext_owner;
CREATE INDEX items_expression ON items USING hnsw ((by_owner(v)::vector(3)) vector_l2_ops);
CREATE INDEX items_partial ON items USING hnsw (v vector_l2_ops) WHERE is_by_owner(v);
SELECT recall FROM knn_recall('items_expression', 'SELECT 1, ARRAY[1,2,3]::real[]', 5);
SELECT recall FROM knn_recall('items_partial', 'SELECT 1, ARRAY[1,2,3]::real[]', 5);
SELECT current_user <> 'regress_gputext_owner' AS as_before;
GRANT SELECT ON items TO regress_recall;
SET ROLE regress_recall;
SELECT recall FROM knn_recall('items_partial', 'SELECT 1, ARRAY[1,2,3]::real[]', 5);
RESET ROLE;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
SET ROLE regress_recall;
SELECT recall FROM knn_recall('items_partial', 'SELECT 1, ARRAY[1,2,3]::real[]', 5);
RESET ROLE;
DROP TABLE items;
DROP FUNCTION by_owner, is_by_owner;
DROP ROLE regress_recall, regress_gputext_owner;
DROP FUNCTION compare, by_hand;
DROP EXTENSION vector;
