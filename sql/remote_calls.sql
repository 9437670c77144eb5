-- Calls on other servers, where the other server is this one: what they give, refuse and leave. tests/live/distributed_test.cpp has servers that fail,
-- and those that stand still.
SET client_min_messages = warning;
CREATE SCHEMA remote_calls;
SET search_path = remote_calls, public;
DO $$
DECLARE
    server text;
BEGIN
    CREATE EXTENSION postgres_fdw;
    FOREACH server IN ARRAY '{regress_gputext_here,regress_gputext_again}'::text[] LOOP
        EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)', server,
                       split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database());
        EXECUTE format('CREATE USER MAPPING FOR CURRENT_USER SERVER %I OPTIONS (user %L)', server, current_user);
    END LOOP;
    CREATE FOREIGN TABLE look (oid oid) SERVER regress_gputext_here OPTIONS (schema_name 'pg_catalog', table_name 'pg_am');
    PERFORM count(*) FROM look;
    DROP FOREIGN TABLE look;
    PERFORM set_config('test.connects', 'true', false);
EXCEPTION WHEN OTHERS THEN
    PERFORM set_config('test.connects', 'false', false);
END $$;
-- Not run without postgres_fdw, and where the server does not let itself in.
SELECT current_setting('test.connects')::boolean AS connects \gset
\if :connects
\else
    DROP SCHEMA remote_calls;
    \quit
\endif
\set VERBOSITY terse

-- Rows of both servers; nulls are none of the empty texts. A call ends with its transaction.
BEGIN;
SELECT gputext_connect('test', '{regress_gputext_here,regress_gputext_again}') AS call \gset
SELECT gputext_send(:call, ARRAY[$$VALUES (1, NULL::text), (2, ''), (NULL, 'a')$$, 'SELECT 3, current_database()::text WHERE 1 = 0']);
SELECT server, id, body, body IS NULL AS is_null FROM gputext_answers(:call) AS a (server integer, id integer, body text) ORDER BY server, id;
-- The same connections have another statement.
SELECT gputext_send(:call, '{SELECT 4,SELECT 5}');
SELECT * FROM gputext_answers(:call) AS a (server integer, id integer) ORDER BY server;
SELECT gputext_send(:call, '{SELECT 4}');
ROLLBACK;
SELECT * FROM gputext_answers(:call) AS a (server integer, id integer);

-- Answers of other columns than those that are wanted
CREATE FUNCTION answers(statement text, columns text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    call integer := gputext_connect('test', '{regress_gputext_here}');
BEGIN
    PERFORM gputext_send(call, ARRAY[statement]);
    RETURN QUERY EXECUTE format('SELECT a::text FROM gputext_answers(%s) AS a (%s)', call, columns);
    PERFORM gputext_disconnect(call);
END $$;
SELECT answers('SELECT 1, 2', 'server integer, id integer, other integer');
SELECT answers('SELECT 1, 2, 3', 'server integer, id integer, other integer');
SELECT answers('SELECT 1', 'server integer, id integer, other integer');
SELECT answers('SELECT 1', 'server bigint, id integer');
SELECT answers('SELECT ''a''', 'server integer, id integer');
SELECT answers('SELECT 1 / 0', 'server integer, id integer');
SELECT answers('SELECT 1; SELECT 2', 'server integer, id integer');

-- A call ends with the subtransaction that it was begun in, if that is undone.
BEGIN;
SAVEPOINT kept;
SELECT gputext_connect('test', '{regress_gputext_here}') AS kept \gset
RELEASE kept;
SAVEPOINT undone;
SELECT gputext_connect('test', '{regress_gputext_here}') AS undone \gset
ROLLBACK TO undone;
SELECT gputext_send(:kept, '{SELECT 6}');
SELECT * FROM gputext_answers(:kept) AS a (server integer, id integer);
SELECT gputext_send(:undone, '{SELECT 6}');
ROLLBACK;

-- A server that answers is not given up before connect_timeout.
ALTER SERVER regress_gputext_again OPTIONS (ADD connect_timeout '600');
SELECT count(gputext_connect('test', '{regress_gputext_again}'));
-- What fails leaves no descriptors behind, of which a session has a third of max_files_per_process for connections.
CREATE SERVER regress_gputext_nowhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '/nowhere');
CREATE USER MAPPING FOR CURRENT_USER SERVER regress_gputext_nowhere;
DO $$
DECLARE
    detail text;
    refused bigint := 0;
BEGIN
    FOR i IN 1..2000 LOOP
        BEGIN
            PERFORM gputext_connect('test', '{regress_gputext_nowhere}');
        EXCEPTION WHEN sqlclient_unable_to_establish_sqlconnection THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
            refused := refused + (detail ~ 'too many open files')::integer;
        END;
    END LOOP;
    RAISE WARNING '% refused', refused;
END $$;

-- Calls of others are none of a user's, nor are their servers.
CREATE ROLE regress_gputext_other;
GRANT USAGE ON SCHEMA remote_calls TO regress_gputext_other;
BEGIN;
SELECT gputext_connect('test', '{regress_gputext_here}') AS call \gset
SET ROLE regress_gputext_other;
SELECT gputext_send(:call, '{SELECT 6}');
ROLLBACK;
SET ROLE regress_gputext_other;
SELECT gputext_connect('test', '{regress_gputext_here}');
RESET ROLE;
CREATE USER MAPPING FOR regress_gputext_other SERVER regress_gputext_here OPTIONS (user :'USER', password 'secret');
SET ROLE regress_gputext_other;
SELECT gputext_connect('test', '{regress_gputext_here}');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER regress_gputext_here TO regress_gputext_other;
-- The server does not ask for the password, so that it would let him in as anybody.
SET ROLE regress_gputext_other;
SELECT gputext_connect('test', '{regress_gputext_here}');
RESET ROLE;
ALTER USER MAPPING FOR regress_gputext_other SERVER regress_gputext_here OPTIONS (DROP password);
SET ROLE regress_gputext_other;
SELECT gputext_connect('test', '{regress_gputext_here}');
RESET ROLE;

-- Items at equal distances come in the order of their ids, wherever they lie.
CREATE TABLE there (id bigint, embedding real[], body text);
INSERT INTO there SELECT i, '{1,0}', 'a text of some words, of which there are ' || i FROM generate_series(1, 3) AS i;
CREATE TABLE items (id bigint, embedding real[], body text) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE items_there PARTITION OF items FOR VALUES FROM (1) TO (4) SERVER regress_gputext_here OPTIONS (table_name 'there');
CREATE TABLE items_here PARTITION OF items FOR VALUES FROM (4) TO (9);
INSERT INTO items_here SELECT i, '{1,0}', 'a text of some words, of which there are ' || i FROM generate_series(4, 6) AS i;
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 4, metric => 'euclidean');
SELECT id1, id2 FROM near_duplicates_distributed('items', 'id', 'body', threshold => 0.1) ORDER BY id1, id2;
-- Policies of the table would not be those of the other server.
GRANT SELECT ON items TO regress_gputext_other;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
SET ROLE regress_gputext_other;
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 4);
SELECT * FROM near_duplicates_distributed('items', 'id', 'body');
RESET ROLE;

DROP EXTENSION postgres_fdw CASCADE;
DROP SCHEMA remote_calls CASCADE;
DROP ROLE regress_gputext_other;
