-- A role that may create objects gains no rights by them: whatever it makes in the extension's schema, in public and in pg_temp, is not run
-- by the scripts or by a superuser who calls the extension's functions, and becomes no part of it.
\getenv directory PG_ABS_SRCDIR
\setenv directory :directory
\set twins :directory '/tests/rights/twins.sql'
\set calls :directory '/tests/rights/calls.sql'
\set script `cat "$directory"/extension/sql/*.sql "$directory"/extension/releases/changes.sql`
SELECT current_database() AS database, extversion AS version FROM pg_extension WHERE extname = 'gputext' \gset
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gputext_maker;
CREATE ROLE regress_gputext_maker;
CREATE DATABASE regress_gputext_rights;
GRANT CREATE ON DATABASE regress_gputext_rights TO regress_gputext_maker;
\c regress_gputext_rights
SET search_path = pg_catalog, pg_temp;
GRANT CREATE ON SCHEMA public TO regress_gputext_maker;
\set ECHO none
\i :twins
\set ECHO all
SELECT count(*) > 1000 AS many, count(DISTINCT name) > 50 AS of_many_functions FROM checks.function_twins;
SELECT count(*) > 1000 AS many, count(DISTINCT name) > 15 AS of_many_operators FROM checks.operator_twins;

-- The update of an installation in a schema of that role. Where the last release's script is missing (sql/upgrade.sql), there is none.
SELECT coalesce(max(version) FILTER (WHERE version = '0.1.0'), :'version') AS last
FROM pg_available_extension_versions WHERE name = 'gputext' \gset
SET ROLE regress_gputext_maker;
CREATE SCHEMA target;
CREATE EXTENSION gputext SCHEMA target VERSION :'last';
CALL checks.plant('target');
CALL checks.plant('public');
\c :database
CREATE DATABASE regress_gputext_rights_2 TEMPLATE regress_gputext_rights;
\c regress_gputext_rights
SET search_path = pg_catalog, pg_temp;
SET client_min_messages = warning;
SET ROLE regress_gputext_maker;
CALL checks.plant('pg_temp');
SET search_path = target, public, pg_catalog;
ALTER EXTENSION gputext UPDATE;
SET search_path = pg_catalog, pg_temp;
SELECT * FROM checks.captured('regress_gputext_maker');

-- An installation by that role, and calls by a superuser in its session
\c regress_gputext_rights_2
SET search_path = pg_catalog, pg_temp;
SET client_min_messages = warning;
DROP EXTENSION gputext;
GRANT CREATE ON DATABASE regress_gputext_rights_2 TO regress_gputext_maker;
SET ROLE regress_gputext_maker;
CALL checks.plant('pg_temp');
SET search_path = target, public, pg_catalog;
-- Twins are run where names have no schema.
SELECT '{1}'::integer[] < '{2}'::integer[], format('%I', 'a'::name), (SELECT true FROM pg_extension LIMIT 1), 'a'::text;
CREATE EXTENSION gputext SCHEMA target;
SET search_path = pg_catalog, pg_temp;
SELECT * FROM checks.captured('regress_gputext_maker');
RESET ROLE;
\set ECHO none
\i :calls
\set ECHO all
SET search_path = target, public, pg_catalog;
CALL checks.call_all();
SET search_path = pg_catalog, pg_temp;
SELECT count(*) > 100 AS many FROM checks.calls;
-- And with twins of the extension's own functions and operators
CALL checks.choose_own();
SELECT count(*) > 100 AS many FROM checks.function_twins;
DROP SCHEMA public CASCADE;
CREATE SCHEMA public AUTHORIZATION regress_gputext_maker;
GRANT ALL ON SCHEMA target TO regress_gputext_maker;
SET ROLE regress_gputext_maker;
CALL checks.plant('public');
RESET ROLE;
SET search_path = public, target, pg_catalog;
SELECT edit_distance('a'::text, 'b'::text);
CALL checks.call_all();
SET search_path = pg_catalog, pg_temp;
-- Arguments cannot be made up for all functions.
SELECT DISTINCT function::text, state FROM checks.failed WHERE function::text !~ '^target\.gputext_' OR function IS NULL ORDER BY function::text;

-- No function lends its owner's rights, or is run before the conditions of policies.
SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_depend AS d ON (classid, objid, deptype) = ('pg_proc'::regclass, p.oid, 'e')
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gputext') AND (prosecdef OR proleakproof);

-- The extension stays in the schema that its SQL names.
ALTER EXTENSION gputext SET SCHEMA public;
\c :database
DROP DATABASE regress_gputext_rights;
DROP DATABASE regress_gputext_rights_2;
DROP ROLE regress_gputext_maker;
