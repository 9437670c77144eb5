-- Calls on many servers, as far as one server shows them: tables and partitions that lie here. tests/live/distributed_test.cpp has others.
SET client_min_messages = warning;
CREATE TABLE items (id integer, embedding real[], lang text, words integer[], weights real[], body text) PARTITION BY LIST (lang);
CREATE TABLE items_en PARTITION OF items FOR VALUES IN ('en');
CREATE TABLE items_de PARTITION OF items FOR VALUES IN ('de', 'fr') PARTITION BY RANGE (id);
CREATE TABLE items_de_1 PARTITION OF items_de FOR VALUES FROM (1) TO (10);
CREATE TABLE items_de_2 PARTITION OF items_de FOR VALUES FROM (10) TO (20);
INSERT INTO items VALUES
    (1, '{1,0}', 'en', '{1,2}', '{1,2}', 'the first of the texts that are here'),
    (2, '{1,1}', 'en', '{2,3}', '{1,1}', 'the first of the texts that are there'),
    (3, '{0,1}', 'de', '{1,3}', '{2,1}', 'ein ganz anderer Text'),
    (11, '{1,0}', 'fr', '{1}', '{1}', 'encore un texte'),
    (12, NULL, 'de', NULL, NULL, NULL);

SELECT partition::regclass, server, relation FROM gputext_partitions('items') ORDER BY relation;
-- A column that was dropped is not asked for, where a condition may be about any column.
ALTER TABLE items ADD COLUMN dropped integer;
ALTER TABLE items DROP COLUMN dropped;
SELECT gputext_partition_query('items', 'items_en'::regclass, 'items_en', '{id}', 'id > 1') ~ 'dropped' AS asks_for_it;
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0.5]::real[]', 'items', 'id', 'embedding', 3, metric => 'euclidean');
SELECT * FROM gpu_knn_distributed('SELECT id, embedding FROM items', 'items', 'id', 'embedding', 1, exclude_self => true, condition => 'lang <> ''fr''');
SELECT * FROM gpu_knn_distributed('SELECT id, embedding, lang FROM items', 'items', 'id', 'embedding', 1, exclude_key => 'lang', metric => 'manhattan');
SELECT * FROM gpu_knn_distributed('SELECT id, words, weights FROM items WHERE id = 1', 'items', 'id', 'words', 2, weights => 'weights', metric => 'cosine');
SELECT query_id, item_id, rank FROM gpu_knn_distributed('SELECT lang, body FROM items WHERE id = 1', 'items', 'lang', 'body', NULL::text, 2, config => 'simple');
SELECT * FROM gpu_knn_distributed('SELECT id, body FROM items', 'items', 'id', 'body', 1, metric => 'edit_rate', exclude_self => true);
SELECT * FROM gpu_knn_within_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 0);
SELECT * FROM near_duplicates_distributed('items', 'id', 'body', threshold => 0.1);
SELECT * FROM near_duplicates_distributed('items', id => 'body', body => 'body', id_type => NULL::text, threshold => 0.1, condition => 'body IS NOT NULL');
SELECT * FROM groups_of('SELECT * FROM near_duplicates_distributed(''items'', ''id'', ''body'', threshold => 0.1)');

-- Ids of other types: every call as the page has it, with the type's value in its place and by name
CREATE TABLE typed AS SELECT id::text AS t, id::text::varchar AS v, id::text::name AS n, md5(id::text)::uuid AS u, id::numeric / 2 AS h, id::smallint AS s, embedding, body FROM items;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_distributed('SELECT t, embedding FROM typed', 'typed', 't', 'embedding', NULL::text, 1) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_distributed('SELECT v, embedding FROM typed', 'typed', 'v', 'embedding', NULL::varchar, 1) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_distributed('SELECT n, embedding FROM typed', 'typed', 'n', 'embedding', NULL::name, 1) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_distributed('SELECT u, embedding FROM typed', 'typed', 'u', 'embedding', NULL::uuid, k => 1) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_distributed('SELECT h, embedding FROM typed', 'typed', 'h', 'embedding', id_type => NULL::numeric, k => 1) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_distributed('SELECT s, embedding FROM typed', 'typed', 's', 'embedding', NULL::smallint, 1) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_distributed('SELECT s, embedding FROM typed', 'typed', 's', 'embedding', 1, id_type => NULL) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_within_distributed('SELECT t, embedding FROM typed', 'typed', 't', 'embedding', NULL::text, 0) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_within_distributed('SELECT v, embedding FROM typed', 'typed', 'v', 'embedding', NULL::varchar, 0) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_within_distributed('SELECT n, embedding FROM typed', 'typed', 'n', 'embedding', NULL::name, 0) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_within_distributed('SELECT u, embedding FROM typed', 'typed', 'u', 'embedding', NULL::uuid, radius => 0) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_within_distributed('SELECT h, embedding FROM typed', 'typed', 'h', 'embedding', id_type => NULL::numeric, radius => 0) AS i;
SELECT i.*, pg_typeof(query_id) FROM gpu_knn_within_distributed('SELECT s, embedding FROM typed', 'typed', 's', 'embedding', 0) AS i;
SELECT id1, id2, pg_typeof(id1) FROM near_duplicates_distributed('typed', 't', 'body', NULL::text, threshold => 0.1);
SELECT id1, id2, pg_typeof(id1) FROM near_duplicates_distributed('typed', 'v', 'body', NULL::varchar, threshold => 0.1);
SELECT id1, id2, pg_typeof(id1) FROM near_duplicates_distributed('typed', 'n', 'body', NULL::name, threshold => 0.1);
SELECT id1, id2, pg_typeof(id1) FROM near_duplicates_distributed('typed', 'u', 'body', NULL::uuid, threshold => 0.1);
SELECT id1, id2, pg_typeof(id1) FROM near_duplicates_distributed('typed', 'h', 'body', id_type => NULL::numeric, threshold => 0.1);
SELECT id1, id2, pg_typeof(id1) FROM near_duplicates_distributed('typed', 's', 'body', NULL::smallint, NULL, 0.1);
SELECT id1, id2, pg_typeof(id1) FROM near_duplicates_distributed('typed', 's', 'body', NULL, NULL, 0.1);
SELECT id1, id2, pg_typeof(id1) FROM near_duplicates_distributed('typed', 's', 'body', threshold => 0.1);
SELECT count(*) FROM near_duplicates_distributed('typed', 't', 'body', NULL::text);
SELECT count(*) FROM near_duplicates_distributed('typed', 'v', 'body', NULL::varchar);
SELECT count(*) FROM near_duplicates_distributed('typed', 'n', 'body', NULL::name);
SELECT count(*) FROM near_duplicates_distributed('typed', 'u', 'body', NULL::uuid);
DROP TABLE typed;

-- Names that would be something else in a template, a literal or a name without quotes
CREATE SCHEMA "s%I .'\";
SET search_path = "s%I .'\", public;
CREATE TYPE "e%s'n\um" AS ENUM ('a%L', 'b''\', 'c');
CREATE DOMAIN "d%1$s" AS bigint;
CREATE TABLE "t%L'\" ("i%s" "d%1$s", "e%'\" "e%s'n\um", "v%%""" real[], "w%L" integer[], "x%I" real[], "b %s'" text, "s%s" ctph) PARTITION BY LIST ("e%'\");
CREATE TABLE "t%1$s" PARTITION OF "t%L'\" FOR VALUES IN ('a%L');
CREATE TABLE "t%2$I'" PARTITION OF "t%L'\" FOR VALUES IN ('b''\', 'c');
INSERT INTO "t%L'\" VALUES (1, 'a%L', '{1,0}', '{1}', '{1}', 'a text of some %s words, and of more', NULL), (2, 'b''\', '{1,1}', '{1,2}', '{1,1}', 'a text of some %L words, and of more', NULL),
                           (3, 'c', '{0,1}', '{2}', '{1}', 'none', NULL);
UPDATE "t%L'\" SET "s%s" = ctph_signature("b %s'");
SELECT * FROM gpu_knn_distributed($q$SELECT "i%s", "v%%""", "e%'\" FROM "t%L'\"$q$, $$"t%L'\"$$, 'i%s', 'v%%"', 1, key => $$e%'\$$);
SELECT * FROM gpu_knn_distributed($q$SELECT "e%'\", "v%%""" FROM "t%L'\"$q$, $$"t%L'\"$$, $$e%'\$$, 'v%%"', NULL::"e%s'n\um", 1, exclude_self => true,
                                  condition => $$"t%L'\"."i%s" % 5 > 0 AND "b %s'" LIKE '%' -- %s$$);
SELECT * FROM gpu_knn_distributed($q$SELECT "i%s", "w%L", "x%I", "e%'\" FROM "t%L'\"$q$, $$"t%L'\"$$, 'i%s', 'w%L', 1, weights => 'x%I', exclude_key => $$e%'\$$);
SELECT query_id, item_id, rank FROM gpu_knn_distributed($q$SELECT "e%'\", "b %s'" FROM "t%L'\"$q$, $$"t%L'\"$$, $$e%'\$$, $$b %s'$$, NULL::"e%s'n\um", 1, config => 'simple');
SELECT * FROM gpu_knn_within_distributed($q$SELECT "e%'\", "v%%""" FROM "t%L'\"$q$, $$"t%L'\"$$, $$e%'\$$, 'v%%"', NULL::"e%s'n\um", 0);
SELECT id1, id2 FROM near_duplicates_distributed($$"t%L'\"$$, $$e%'\$$, $$b %s'$$, NULL::"e%s'n\um", 's%s', 0.1, condition => $$"i%s" % 5 > 0 AND "b %s'" LIKE '%' -- %s$$);
SELECT id1, id2 FROM near_duplicates_distributed($$"t%L'\"$$, 'i%s', $$b %s'$$, threshold => 0.1);
SET search_path = public;
SET client_min_messages = error;
DROP SCHEMA "s%I .'\" CASCADE;
SET client_min_messages = warning;

-- A function with the rights of its owner: nothing of the caller's runs by it, whatever names it has.
CREATE ROLE regress_gputext_visitor;
CREATE SCHEMA regress_app;
GRANT USAGE ON SCHEMA regress_app TO regress_gputext_visitor;
CREATE FUNCTION regress_app.nearest() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS
    $$ SELECT count(*) FROM public.gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'public.items', 'id', 'embedding', 3) $$;
CREATE FUNCTION regress_app.nearest_texts() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    RETURN (SELECT count(*) FROM public.gpu_knn_distributed('SELECT ''7''::pg_catalog.text, ''text''::pg_catalog.text', 'public.items'::pg_catalog.regclass,
                'body'::pg_catalog.name, 'body'::pg_catalog.name, NULL::pg_catalog.text, 3, exclude_self => true, condition => 'body IS NOT NULL'));
END $$;
CREATE FUNCTION regress_app.pairs() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS
    $$ SELECT count(*) FROM public.near_duplicates_distributed('public.items', 'id', 'body') $$;
-- In a session that has compiled no function yet
\c -
SET client_min_messages = warning;
SET SESSION AUTHORIZATION regress_gputext_visitor;
-- Relations and types are looked for among temporary ones first.
CREATE FUNCTION pg_temp.told(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING '% is run by %', $1, current_user; RETURN true; END $$;
DO $$
DECLARE
    catalogue name;
BEGIN
    FOR catalogue IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
                     AND relname IN ('pg_extension', 'pg_namespace', 'pg_class', 'pg_attribute', 'pg_type', 'pg_foreign_table', 'pg_foreign_server',
                                     'pg_foreign_data_wrapper', 'pg_proc', 'pg_ts_config') LOOP
        EXECUTE format('CREATE TEMP VIEW %I AS SELECT %s FROM pg_catalog.%I WHERE pg_temp.told(%L)', catalogue,
            (SELECT string_agg(attname, ', ') FROM pg_catalog.pg_attribute WHERE attrelid = format('pg_catalog.%I', catalogue)::regclass AND attnum > 0 AND attname <> 'attmissingval'),
            catalogue, catalogue);
    END LOOP;
END
$$;
GRANT SELECT ON ALL TABLES IN SCHEMA pg_temp TO public;
DO $$
DECLARE
    type name;
BEGIN
    FOREACH type IN ARRAY '{oid,regclass,regtype,regconfig,json,int8,int4,float8,bool,name,text}'::pg_catalog.name[] LOOP
        EXECUTE pg_catalog.format('CREATE DOMAIN pg_temp.%1$I AS pg_catalog.%1$I CHECK (pg_temp.told(%1$L::pg_catalog.text))', type);
    END LOOP;
END
$$;
SELECT regress_app.nearest(), regress_app.nearest_texts(), regress_app.pairs();
RESET SESSION AUTHORIZATION;
DISCARD TEMP;
-- A superuser with a schema of somebody else's in his search_path, before PostgreSQL's
CREATE FUNCTION regress_app.told(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING '% is run', $1; RETURN true; END $$;
CREATE FUNCTION regress_app.format(text, text) RETURNS text LANGUAGE sql AS $$ SELECT pg_catalog.format($1, $2) WHERE regress_app.told('format') $$;
CREATE FUNCTION regress_app.format(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT pg_catalog.format($1, $2, $3) WHERE regress_app.told('format') $$;
CREATE FUNCTION regress_app.cardinality(name[]) RETURNS integer LANGUAGE sql AS $$ SELECT pg_catalog.cardinality($1) WHERE regress_app.told('cardinality') $$;
CREATE FUNCTION regress_app.lesser(integer, integer) RETURNS boolean LANGUAGE sql AS $$ SELECT pg_catalog.int4lt($1, $2) AND regress_app.told('<') $$;
CREATE OPERATOR regress_app.< (LEFTARG = integer, RIGHTARG = integer, FUNCTION = regress_app.lesser);
CREATE OPERATOR regress_app.> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = regress_app.lesser);
CREATE OPERATOR regress_app.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = regress_app.lesser);
SET search_path = regress_app, pg_catalog, public;
SELECT count(*) FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 3);
SELECT count(*) FROM near_duplicates_distributed('items', 'id', 'body');
-- What the caller writes means what his search_path says.
SELECT count(*) FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 3, condition => 'id < 2');
SET search_path = public;
SET client_min_messages = error;
DROP SCHEMA regress_app CASCADE;
SET client_min_messages = warning;
DROP ROLE regress_gputext_visitor;

-- Values in the form that other servers read, whatever the session's settings are
SET extra_float_digits = -14;
SET DateStyle = 'German';
SELECT place, ordered, texts, types FROM gputext_rows_as_text('SELECT 1, 0.1::double precision / 3, date ''2000-02-01'', NULL::text ORDER BY 1', NULL::bigint, 4);
SELECT gputext_portable_text(0.1::double precision / 3), gputext_portable_text(date '2000-02-01');
SET IntervalStyle = 'sql_standard';
SELECT texts FROM gputext_rows_as_text('SELECT 1, interval ''1 month -2 days 3:04'', interval ''-1 second''', NULL::bigint, 3);
RESET extra_float_digits;
RESET DateStyle;
RESET IntervalStyle;
SELECT gputext_reals('x3f800000c0000000'), gputext_reals('{1,-2}');
SELECT gputext_reals('x3f80000g');
SELECT gputext_reals('x3f8');

-- Errors
\set VERBOSITY terse
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'vector', 3);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', NULL);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 3, statement_bytes => 0);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[], 8', 'items', 'id', 'embedding', 3);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', NULL::integer[], 3);
SELECT * FROM gpu_knn_distributed(queries => 'SELECT 7, ARRAY[1, 0]::real[]', items => 'items', id => 'id', value => 'embedding', k => 3, id_type => NULL::text);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 3, id_type => 'text');
SELECT * FROM near_duplicates_distributed('items', 'id', 'body', 'text');
SELECT * FROM near_duplicates_distributed('items', 'id', 'body', threshold => 0.5);
SELECT * FROM near_duplicates_distributed('items', 'id', NULL);
CREATE VIEW item_view AS SELECT 1 AS id;
SELECT * FROM near_duplicates_distributed('item_view', 'id', 'id');
DROP VIEW item_view;
DROP TABLE items;
