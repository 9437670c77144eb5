-- VACUUM of an index of gputext: what it counts, and what it reads

CREATE TABLE docs (id integer, body text) WITH (autovacuum_enabled = off);
INSERT INTO docs SELECT i, md5(i::text) || md5((i + 1)::text) FROM generate_series(1, 3000) AS i;
CREATE INDEX docs_body ON docs USING gputext (body) WITH (bins = 1024);
CREATE FUNCTION blocks_fetched() RETURNS bigint LANGUAGE sql AS $$
SELECT pg_stat_clear_snapshot();
SELECT idx_blks_read + idx_blks_hit FROM pg_statio_user_indexes WHERE indexrelname = 'docs_body'
$$;
SELECT pg_relation_size('docs_body') / current_setting('block_size')::integer AS pages \gset
SELECT :pages > 50 AS many_pages;

-- Without dead rows it reads the directory, and pages that are not full.
SELECT pg_stat_force_next_flush();
SELECT blocks_fetched() AS before \gset
VACUUM docs;
SELECT pg_stat_force_next_flush();
SELECT blocks_fetched() - :before < :pages / 4 AS few_pages_read;
SELECT reltuples FROM pg_class WHERE relname = 'docs_body';
INSERT INTO docs SELECT i, md5(i::text) || md5((i + 1)::text) FROM generate_series(3001, 3100) AS i;
INSERT INTO docs VALUES (4000, NULL);
VACUUM docs;
SELECT reltuples FROM pg_class WHERE relname = 'docs_body';

-- Dead rows
DELETE FROM docs WHERE id % 5 = 0;
VACUUM (INDEX_CLEANUP on) docs;
SELECT reltuples, gputext_index_check('docs_body', true) FROM pg_class WHERE relname = 'docs_body';
VACUUM docs;
SELECT reltuples FROM pg_class WHERE relname = 'docs_body';
INSERT INTO docs SELECT i, md5(i::text) || md5((i + 1)::text) FROM generate_series(5001, 5200) AS i;
SELECT gputext_index_check('docs_body', true);
DELETE FROM docs;
VACUUM (INDEX_CLEANUP on, TRUNCATE off) docs;
SELECT reltuples, gputext_index_check('docs_body', true) FROM pg_class WHERE relname = 'docs_body';
VACUUM docs;
SELECT reltuples FROM pg_class WHERE relname = 'docs_body';
DROP TABLE docs;
DROP FUNCTION blocks_fetched;
