-- Scans of an index by themselves (extension/index/scan.cpp)
SET client_min_messages = warning;
SET gputext.device = 'cpu';
-- Of the module of the tests (tests/module/), which servers of scripts/cluster have; expected/near_duplicate_scan_1.out is for others.
DO $$ BEGIN
    CREATE FUNCTION rows_after_cancel(index regclass, document text) RETURNS integer LANGUAGE c STRICT
    AS '$libdir/gputext', 'gputext_rows_after_cancel';
EXCEPTION WHEN undefined_function THEN NULL;
END $$;
SELECT to_regproc('rows_after_cancel') IS NULL AS left_out \gset
\if :left_out
\quit
\endif

-- One document on each page, at least, and many others of its length
CREATE TABLE docs AS
SELECT i AS id, CASE WHEN i % 10 = 0 THEN repeat(md5('the same'), 2) ELSE md5(i::text) || md5((7 * i)::text) END AS body FROM generate_series(0, 1999) AS i;
CREATE INDEX docs_body ON docs USING gputext (body);
SELECT pg_relation_size('docs_body') / current_setting('block_size')::integer > 20 AS many_pages;
SET enable_seqscan = off;
SELECT count(*) FROM docs WHERE body ~= (SELECT body FROM docs WHERE id = 0);

-- A scan looks for a request to cancel before each page, not only where it has found a row.
SELECT rows_after_cancel('docs_body', body) FROM docs WHERE id = 0;
DROP TABLE docs;
