\set ECHO none
-- The release of the variable `release`, and its update: the SQL of the release works with this library, and the update leads to what an
-- installation gives, with the same answers. Prints one row of it all, and before it what is not so. The files of the release are in the
-- folder of that name, which also has those of the release that is being developed: its update changes nothing.
SELECT current_database() AS database \gset
CREATE DATABASE regress_gputext_upgrade ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_gputext_upgrade
-- Deprecated functions and an update that finds nothing to do give notices.
SET client_min_messages = warning;
\ir catalogue.sql

-- An installation
CREATE EXTENSION gputext;
CREATE TABLE installed AS SELECT * FROM catalogue();
SELECT extversion AS version FROM pg_extension WHERE extname = 'gputext' \gset
DROP EXTENSION gputext;

-- The release: every function of it answers, and every type and operator class is in use.
\set objects :directory '/tests/upgrade/' :release '/objects.sql'
\set calls :directory '/tests/upgrade/' :release '/calls.sql'
CREATE EXTENSION gputext VERSION :'release';
\i :objects
\i :calls
\ir answers.sql
CREATE TABLE before AS SELECT * FROM answers();
-- The library gives the complete text form, for the SQL of every release.
SELECT count(*) = 4 AS complete_texts FROM shown WHERE shown LIKE 'trie:1:%' \gset

\pset format unaligned
\pset tuples_only on
SELECT 'not called: ' || function FROM uncalled;
ALTER EXTENSION gputext UPDATE;
SELECT 'installed: ' || d FROM (TABLE installed EXCEPT SELECT * FROM catalogue()) AS d UNION ALL
SELECT 'updated: ' || d FROM (SELECT * FROM catalogue() EXCEPT TABLE installed) AS d;
CREATE TABLE after AS SELECT * FROM answers();
SELECT 'answer before and after: ', before, after FROM before FULL JOIN after USING (name) WHERE before IS DISTINCT FROM after;
SELECT 'no answer: ', before FROM before WHERE rows IS NULL OR rows = 0;

-- Indexes and constraints that were built before hold for new values.
INSERT INTO documents (id, body) VALUES (1000, 'a text') ON CONFLICT (id) DO NOTHING;
\pset tuples_only off
SELECT extversion = :'version' AS updated, :'complete_texts' AS complete_texts,
       error_of('INSERT INTO signatures SELECT signature, id FROM documents WHERE id = 7') AS unique,
       error_of($$INSERT INTO documents (id, body) VALUES (1001, 'forbidden')$$) AS check,
       (SELECT count(*) > 1000 FROM installed) AS catalogue, (SELECT count(*) = (SELECT count(*) FROM calls) FROM before) AS all_called,
       (SELECT count(*) FROM documents d WHERE EXISTS (SELECT FROM signatures s WHERE s.signature = ctph_signature(d.body) AND s.id = d.id)) AS found,
       (SELECT signature = ctph_signature('a text') FROM documents WHERE id = 1000) AS generated
FROM pg_extension WHERE extname = 'gputext';
\pset format aligned
\c :database
DROP DATABASE regress_gputext_upgrade;
\set ECHO all
