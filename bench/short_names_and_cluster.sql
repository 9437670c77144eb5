-- Short names and one cluster of documents from SQL, on the CPU, on a GPU and where auto puts them:
-- psql -X -d DATABASE -f bench/short_names_and_cluster.sql, on a server whose host has a GPU and 16 cores. Makes unlogged tables there.
\set ON_ERROR_STOP 0
\pset pager off
CREATE EXTENSION IF NOT EXISTS gputext;
SELECT name, status FROM gputext_devices();
-- names of 24 characters with typos
CREATE UNLOGGED TABLE IF NOT EXISTS names AS
SELECT i::bigint AS id, left(md5(i::text) || md5((-i)::text), 24) AS name FROM generate_series(1, 1000000) i;
CREATE UNLOGGED TABLE IF NOT EXISTS dirty AS
SELECT id, overlay(name placing chr(97 + (id % 26)::int) from 1 + (id % 23)::int for 1) AS name FROM names WHERE id <= 100000;
ANALYZE names; ANALYZE dirty;
\timing on
SET gputext.cpu_threads = 16;
SET client_min_messages = debug1;
SET gputext.device = auto;
SELECT 'auto 1000 x 1M 0.1', count(*) FROM near_duplicates_between('SELECT * FROM dirty WHERE id <= 1000', 'TABLE names', threshold => 0.1);
SET gputext.device = cpu;
SELECT 'cpu 1000 x 1M 0.1', count(*) FROM near_duplicates_between('SELECT * FROM dirty WHERE id <= 1000', 'TABLE names', threshold => 0.1);
SET gputext.device = gpu;
SELECT 'gpu 1000 x 1M 0.1', count(*) FROM near_duplicates_between('SELECT * FROM dirty WHERE id <= 1000', 'TABLE names', threshold => 0.1);
SET gputext.device = auto;
SELECT 'auto 10000 x 100000 0.1', count(*) FROM near_duplicates_between('SELECT * FROM dirty WHERE id <= 10000', 'SELECT * FROM names WHERE id <= 100000', threshold => 0.1);
SET gputext.device = cpu;
SELECT 'cpu 10000 x 100000 0.1', count(*) FROM near_duplicates_between('SELECT * FROM dirty WHERE id <= 10000', 'SELECT * FROM names WHERE id <= 100000', threshold => 0.1);
SET gputext.device = auto;
SELECT 'auto 100000 x 100000 0.1', count(*) FROM near_duplicates_between('TABLE dirty', 'SELECT * FROM names WHERE id <= 100000', threshold => 0.1);
SET gputext.device = cpu;
SELECT 'cpu 100000 x 100000 0.1', count(*) FROM near_duplicates_between('TABLE dirty', 'SELECT * FROM names WHERE id <= 100000', threshold => 0.1);
-- one cluster
CREATE UNLOGGED TABLE giant AS SELECT i AS id, overlay(repeat('one cluster of documents which differ a little ', 20) placing md5(i::text) from 1 + (i * 7) % 800) AS body FROM generate_series(1, 100000) i;
ANALYZE giant;
SET gputext.device = cpu;
SELECT 'cpu giant 6000', count(*), max(group_size), md5(string_agg(g::text, ',')) FROM near_duplicate_groups('SELECT id, body FROM giant WHERE id <= 6000') g;
SET gputext.device = gpu;
SELECT 'gpu giant 6000', count(*), max(group_size), md5(string_agg(g::text, ',')) FROM near_duplicate_groups('SELECT id, body FROM giant WHERE id <= 6000') g;
SET gputext.device = auto;
SELECT 'auto giant 100000', count(*), max(group_size) FROM near_duplicate_groups('SELECT id, body FROM giant') g;
-- long documents
CREATE UNLOGGED TABLE b2 AS SELECT 1 AS id, rpad('',6600000,'0123456789abcdef') AS body UNION ALL SELECT 2, rpad('',6600000,'ghijklmnopqrstuv');
SET gputext.device = cpu;
SELECT 'cpu 6.6 MB', count(*) FROM near_duplicates('SELECT id, body FROM b2');
SET gputext.device = gpu;
SELECT 'gpu 6.6 MB', count(*) FROM near_duplicates('SELECT id, body FROM b2');
