-- knn_recall on indexes of halfvec and sparsevec, which pgvector has since 0.7;
-- expected/knn_recall_halfvec_1.out is for servers without it.
SELECT count(*) = 0 AS without_halfvec FROM pg_available_extension_versions
WHERE name = 'vector' AND string_to_array(version, '.')::integer[] >= '{0,7}' \gset
\if :without_halfvec
\quit
\endif
SET client_min_messages = warning;
CREATE EXTENSION vector;
RESET client_min_messages;

SELECT setseed(0.75);
CREATE TABLE items AS
SELECT i AS id, array_agg((random() - 0.5)::real ORDER BY j)::vector(16) AS embedding FROM generate_series(1, 1000) AS i, generate_series(1, 16) AS j GROUP BY i;
CREATE TABLE queries AS SELECT id, embedding FROM items WHERE id % 50 = 0;
ALTER TABLE items ADD half halfvec(16), ADD sparse sparsevec(16);
UPDATE items SET half = embedding, sparse = embedding;
ANALYZE items;
CREATE FUNCTION compare(index regclass, vector text, operator text, OUT queries bigint, OUT differing bigint) LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    -- By the rows that gpu_knn gives, none of which are at the same distance
    EXECUTE format('WITH nearest AS MATERIALIZED
            (SELECT * FROM gpu_knn(''SELECT i.id, %2$s FROM items AS i WHERE i.id %% 50 = 0'', ''SELECT i.id, %2$s FROM items AS i'', 10, %4$L))
        SELECT count(*), count(*) FILTER (WHERE r.found IS DISTINCT FROM h.found OR r.returned <> 10 OR r.expected <> 10)
        FROM knn_recall(%1$L, ''SELECT id, embedding FROM queries'', 10) AS r,
             LATERAL (SELECT count(*) AS found FROM
                          (SELECT i.id FROM items AS i ORDER BY %2$s %3$s (SELECT (%2$s) FROM items AS i WHERE i.id = r.query_id) LIMIT 10) AS a
                      WHERE a.id IN (SELECT n.item_id FROM nearest AS n WHERE n.query_id = r.query_id)) AS h',
        index, vector, operator, CASE operator WHEN '<->' THEN 'euclidean' WHEN '<=>' THEN 'cosine' WHEN '<#>' THEN 'inner_product' ELSE 'manhattan' END)
    INTO queries, differing;
END $$;
SET hnsw.ef_search = 12;
CREATE INDEX items_index ON items USING hnsw (half halfvec_l2_ops) WITH (m = 4, ef_construction = 10);
SELECT * FROM compare('items_index', 'i.half', '<->');
DROP INDEX items_index;
CREATE INDEX items_index ON items USING hnsw ((embedding::halfvec(16)) halfvec_cosine_ops) WITH (m = 4, ef_construction = 10);
SELECT * FROM compare('items_index', 'i.embedding::halfvec(16)', '<=>');
DROP INDEX items_index;
CREATE INDEX items_index ON items USING hnsw (embedding vector_l1_ops) WITH (m = 4, ef_construction = 10);
SELECT * FROM compare('items_index', 'i.embedding', '<+>');
DROP INDEX items_index;
CREATE INDEX items_index ON items USING hnsw (sparse sparsevec_l2_ops) WITH (m = 4, ef_construction = 10);
SELECT * FROM compare('items_index', 'i.sparse', '<->');
SELECT avg(recall) < 1 AS misses FROM knn_recall('items_index', 'SELECT id, sparse FROM items WHERE id % 10 = 3', 12);
-- Arrays are cast to sparsevec.
SELECT query_id, expected FROM knn_recall('items_index', 'SELECT 5, ''{1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2}''::real[]', 3);
DROP INDEX items_index;
-- A distance of bits is none that is known.
CREATE INDEX items_index ON items USING hnsw ((binary_quantize(embedding)::bit(16)) bit_hamming_ops);
\set VERBOSITY terse
SELECT * FROM knn_recall('items_index', 'SELECT id, embedding FROM queries', 3);
\set VERBOSITY default
DROP TABLE items, queries;
DROP FUNCTION compare;
DROP EXTENSION vector;
