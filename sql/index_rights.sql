-- Expressions and conditions of an index run as the owner of the table, whoever makes the index, or has it verified

CREATE ROLE regress_gputext_owner;
CREATE ROLE regress_gputext_other;
GRANT CREATE ON SCHEMA public TO regress_gputext_owner;
SET ROLE regress_gputext_owner;
CREATE TABLE docs (id integer, body text);
INSERT INTO docs SELECT i, md5(i::text) || md5((i + 1)::text) FROM generate_series(1, 400) AS i;
-- What they may not do as anybody else, nor with the rights that a command leaves to them
CREATE FUNCTION documented(body text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF current_user <> 'regress_gputext_owner' THEN
        RAISE 'runs as %', current_user;
    END IF;
    PERFORM set_config('work_mem', '64kB', false) WHERE current_setting('regress.sets', true) = 'on';
    PERFORM set_config('role', 'none', false) WHERE current_setting('regress.becomes', true) = 'on';
    RETURN body;
END
$$;
CREATE FUNCTION is_documented(body text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN public.documented(body) IS NOT NULL;
END
$$;
RESET ROLE;
CREATE INDEX docs_expression ON docs USING gputext (documented(body));
CREATE INDEX CONCURRENTLY docs_partial ON docs USING gputext (body) WHERE is_documented(body);
REINDEX TABLE docs;
REINDEX TABLE CONCURRENTLY docs;
-- In workers
SET min_parallel_table_scan_size = 0;
SET max_parallel_maintenance_workers = 2;
REINDEX TABLE docs;
RESET min_parallel_table_scan_size;
RESET max_parallel_maintenance_workers;
SELECT gputext_index_check('docs_expression', true), gputext_index_check('docs_partial', true);
SELECT gputext_index_check('docs_expression'), gputext_index_check('docs_partial', false);
SELECT current_user <> 'regress_gputext_owner' AS as_before;
-- What they set is set back, and nobody else can be become.
SELECT current_setting('work_mem') AS work_mem \gset
SET regress.sets = on;
SELECT gputext_index_check('docs_expression', true);
SELECT current_setting('work_mem') = :'work_mem' AS as_before;
RESET regress.sets;
SET regress.becomes = on;
\set VERBOSITY terse
SELECT gputext_index_check('docs_expression', true);
\set VERBOSITY default
SELECT current_user <> 'regress_gputext_owner' AS as_before;
RESET regress.becomes;
-- A constraint compares the rows that are there as the owner, and new ones as whoever writes them, as PostgreSQL does of any index.
DROP INDEX docs_expression, docs_partial;
ALTER TABLE docs ADD CONSTRAINT none_near EXCLUDE USING gputext (documented(body) WITH ~=) WHERE (is_documented(body));
REINDEX INDEX none_near;
SELECT gputext_index_check('none_near', true);

-- Only the owner may have an index verified, and others wait for no lock that they ask for in vain.
CREATE INDEX docs_id ON docs (id);
SET ROLE regress_gputext_other;
SELECT gputext_index_check('none_near');
SELECT gputext_index_check('docs_id');
SELECT gputext_index_check('docs');
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('docs'::regclass, 'none_near'::regclass);
RESET ROLE;
SELECT gputext_index_check('docs_id');
SELECT gputext_index_check('docs');
SELECT gputext_index_check(3);
DROP TABLE docs;
DROP FUNCTION documented, is_documented;
REVOKE CREATE ON SCHEMA public FROM regress_gputext_owner;
DROP ROLE regress_gputext_owner, regress_gputext_other;
