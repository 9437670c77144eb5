-- The last release, updated: its SQL works with this library, and the update leads to what an installation gives.
-- make install does not install its script; servers of scripts/cluster have it.
SELECT count(*) = 0 AS missing FROM pg_available_extension_versions WHERE name = 'gputext' AND version = '0.1.0' \gset
\if :missing
\quit
\endif
\getenv directory PG_ABS_SRCDIR
\set catalogue :directory '/tests/upgrade/catalogue.sql'
\set objects :directory '/tests/upgrade/objects.sql'
\set answers :directory '/tests/upgrade/answers.sql'
SELECT current_database() AS database \gset
CREATE DATABASE regress_gputext_upgrade ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_gputext_upgrade

-- An installation
\set ECHO none
\i :catalogue
\set ECHO all
CREATE EXTENSION gputext;
CREATE TABLE installed AS SELECT * FROM catalogue();
SELECT extversion AS version FROM pg_extension WHERE extname = 'gputext' \gset
DROP EXTENSION gputext;

-- The last release: every function of it answers, and every type and operator class is in use.
CREATE EXTENSION gputext VERSION '0.1.0';
SELECT extversion FROM pg_extension WHERE extname = 'gputext';
\set ECHO none
\i :objects
\i :answers
\set ECHO all
SELECT * FROM uncalled;
CREATE TABLE before AS SELECT * FROM answers();
SELECT count(*) = (SELECT count(*) FROM calls) AS all_called, count(*) FILTER (WHERE rows > 0) = count(*) AS all_answered FROM before;
SELECT * FROM before WHERE rows IS NULL OR rows = 0;
-- The new library gives the complete text form, for the SQL of 0.1.0, too.
SELECT count(*) AS complete FROM shown WHERE shown LIKE 'trie:1:%';
SELECT count(*) > 0 AS differs FROM (TABLE installed EXCEPT SELECT * FROM catalogue()) AS d;

ALTER EXTENSION gputext UPDATE;
SELECT extversion = :'version' AS updated FROM pg_extension WHERE extname = 'gputext';
SELECT 'installed' AS where, d.* FROM (TABLE installed EXCEPT SELECT * FROM catalogue()) AS d UNION ALL
SELECT 'updated', d.* FROM (SELECT * FROM catalogue() EXCEPT TABLE installed) AS d ORDER BY object, property, "where";
CREATE TABLE after AS SELECT * FROM answers();
SELECT * FROM before FULL JOIN after USING (name) WHERE before IS DISTINCT FROM after;
SELECT name, trie_summary(words) FROM dictionaries ORDER BY name;

-- Indexes and constraints that were built before hold for new values.
SELECT (SELECT count(*) FROM documents d JOIN signatures s USING (signature)) AS joined, count(*) AS found
FROM documents d WHERE EXISTS (SELECT FROM signatures s WHERE s.signature = ctph_signature(d.body) AND s.id = d.id);
\set VERBOSITY sqlstate
INSERT INTO signatures SELECT signature, id FROM documents WHERE id = 7;
INSERT INTO documents (id, body) VALUES (1000, 'a text'), (1001, 'forbidden');
\set VERBOSITY default
INSERT INTO documents (id, body) VALUES (1000, 'a text') ON CONFLICT (id) DO UPDATE SET body = 'another text' RETURNING signature;

\c :database
DROP DATABASE regress_gputext_upgrade;
