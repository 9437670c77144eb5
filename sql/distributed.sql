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
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0.5]::real[]', 'items', 'id', 'embedding', 3, metric => 'euclidean');
SELECT * FROM gpu_knn_distributed('SELECT id, embedding FROM items', 'items', 'id', 'embedding', 1, exclude_self => true, condition => 'lang <> ''fr''');
SELECT * FROM gpu_knn_distributed('SELECT id, embedding, lang FROM items', 'items', 'id', 'embedding', 1, exclude_key => 'lang', metric => 'manhattan');
SELECT * FROM gpu_knn_distributed('SELECT id, words, weights FROM items WHERE id = 1', 'items', 'id', 'words', 2, weights => 'weights', metric => 'cosine');
SELECT query_id, item_id, rank FROM gpu_knn_distributed('SELECT lang, body FROM items WHERE id = 1', 'items', NULL::text, 'lang', 'body', 2, config => 'simple');
SELECT * FROM gpu_knn_within_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 0);
SELECT * FROM near_duplicates_distributed('items', 'id', 'body', threshold => 0.1);
SELECT * FROM near_duplicates_distributed('items', id_type => NULL::text, id => 'body', body => 'body', threshold => 0.1, condition => 'body IS NOT NULL');
SELECT * FROM groups_of('SELECT * FROM near_duplicates_distributed(''items'', ''id'', ''body'', threshold => 0.1)');

-- Values in the form that other servers read, whatever the session's settings are
SET extra_float_digits = -14;
SET DateStyle = 'German';
SELECT place, ordered, texts, types FROM gputext_rows_as_text('SELECT 1, 0.1::double precision / 3, date ''2000-02-01'', NULL::text ORDER BY 1', NULL::bigint, 4);
SELECT gputext_portable_text(0.1::double precision / 3), gputext_portable_text(date '2000-02-01');
RESET extra_float_digits;
RESET DateStyle;

-- Errors
\set VERBOSITY terse
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'vector', 3);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', NULL);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', 'id', 'embedding', 3, statement_bytes => 0);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[], 8', 'items', 'id', 'embedding', 3);
SELECT * FROM gpu_knn_distributed('SELECT 7, ARRAY[1, 0]::real[]', 'items', NULL::integer[], 'id', 'embedding', 3);
SELECT * FROM gpu_knn_distributed(queries => 'SELECT 7, ARRAY[1, 0]::real[]', items => 'items', id => 'id', value => 'embedding', k => 3, id_type => NULL::text);
SELECT * FROM near_duplicates_distributed('items', 'id', 'body', threshold => 0.5);
SELECT * FROM near_duplicates_distributed('items', 'id', NULL);
CREATE VIEW item_view AS SELECT 1 AS id;
SELECT * FROM near_duplicates_distributed('item_view', 'id', 'id');
DROP VIEW item_view;
DROP TABLE items;
