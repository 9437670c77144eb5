-- Rows are read in parallel workers: the answer, and the error, does not depend on how many there are
SET gputext.device = 'cpu';
SET gputext.cpu_threads = 2;
SET client_min_messages = warning;
SET default_text_search_config = 'pg_catalog.english';
CREATE SCHEMA reading;
SET search_path = reading, public;

-- Tests call with none, one and eight workers: how many rows there are, and how many different answers.
CREATE FUNCTION read(call text, OUT total bigint, OUT answers bigint) LANGUAGE plpgsql AS
$$ DECLARE workers text; digest text; digests text[];
   BEGIN
       FOREACH workers IN ARRAY ARRAY['0', '1', '8'] LOOP
           PERFORM set_config('gputext.read_workers', workers, false);
           EXECUTE 'SELECT count(*), md5(string_agg(t::text, chr(10))) FROM ' || call || ' AS t' INTO total, digest;
           digests := digests || digest;
       END LOOP;
       SELECT count(DISTINCT d) INTO answers FROM unnest(digests) AS d;
   END $$;
-- The same for its error, with what is said about where it is.
CREATE FUNCTION fail(call text) RETURNS SETOF text LANGUAGE plpgsql AS
$$ DECLARE workers text; said text; place text; errors text[];
   BEGIN
       FOREACH workers IN ARRAY ARRAY['0', '8'] LOOP
           PERFORM set_config('gputext.read_workers', workers, false);
           BEGIN
               EXECUTE 'SELECT count(*) FROM ' || call INTO said;
               said := said || ' rows';
           EXCEPTION WHEN OTHERS THEN
               GET STACKED DIAGNOSTICS place = PG_EXCEPTION_CONTEXT;
               -- Releases of PostgreSQL quote a setting's name, or do not.
               said := SQLSTATE || ' ' || replace(SQLERRM, '"temp_file_limit"', 'temp_file_limit') || ' (' || split_part(place, chr(10), 1) || ')';
           END;
           errors := errors || said;
       END LOOP;
       RETURN QUERY SELECT DISTINCT f FROM unnest(errors) AS f;
   END $$;

-- Vectors of all kinds of storage in one column, in another order than their ids
CREATE UNLOGGED TABLE places (id bigint, place real[]);
CREATE FUNCTION place(i bigint) RETURNS real[] LANGUAGE sql AS
$$ SELECT array_fill(i % 13, ARRAY[590])::real[] || ARRAY[i, i % 7, i % 11, i % 17, i % 19, i % 23, 1, 2, 3, 4]::real[] $$;
CREATE FUNCTION rough_place(i bigint) RETURNS real[] LANGUAGE sql AS
$$ SELECT array_agg((i * 31 + j * j * 1009 + i * j * 17) % 10007)::real[] FROM generate_series(1, 600) AS j $$;
INSERT INTO places SELECT i * 7919 % 12007, place(i) FROM generate_series(1::bigint, 12000, 2) AS i;
INSERT INTO places SELECT i * 7919 % 12007, rough_place(i) FROM generate_series(2::bigint, 400, 2) AS i;
ALTER TABLE places ALTER place SET STORAGE EXTERNAL;
INSERT INTO places SELECT i * 7919 % 12007, place(i) FROM generate_series(402::bigint, 8000, 2) AS i;
ALTER TABLE places ALTER place SET STORAGE PLAIN;
INSERT INTO places SELECT i * 7919 % 12007, place(i) FROM generate_series(8002::bigint, 12000, 2) AS i;
INSERT INTO places VALUES (20000, NULL), (-1, NULL);
SELECT count(*), count(pg_column_compression(place)) >= 6000 AS compressed,
       count(*) FILTER (WHERE pg_column_size(place) < 2000) AS small FROM places;

-- Texts, too: short, inline, compressed, compressed in another way, out of line, compressed out of line
CREATE UNLOGGED TABLE texts (id bigint, body text);
CREATE FUNCTION words(i bigint, count bigint) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg('w' || (i * 31 + j * j * 17 + i * j) % 1009, ' ') FROM generate_series(1, count) AS j $$;
INSERT INTO texts SELECT i * 101 % 1801, words(i, 10) FROM generate_series(1::bigint, 300) AS i;
INSERT INTO texts SELECT i * 101 % 1801, words(i, 300) FROM generate_series(301::bigint, 600) AS i;
INSERT INTO texts SELECT i * 101 % 1801, repeat(words(i, 50) || ' ', 40) FROM generate_series(601::bigint, 900) AS i;
DO $$ BEGIN ALTER TABLE texts ALTER body SET COMPRESSION lz4; EXCEPTION WHEN OTHERS THEN NULL; END $$;
INSERT INTO texts SELECT i * 101 % 1801, repeat(words(i, 50) || ' ', 40) FROM generate_series(901::bigint, 1200) AS i;
INSERT INTO texts SELECT i * 101 % 1801, repeat(words(i, 600) || ' ', 4) FROM generate_series(1201::bigint, 1500) AS i;
ALTER TABLE texts ALTER body SET STORAGE EXTERNAL;
INSERT INTO texts SELECT i * 101 % 1801, words(i, 1500) FROM generate_series(1501::bigint, 1800) AS i;
INSERT INTO texts VALUES (20000, NULL), (-1, NULL), (20001, '');
SELECT count(*), count(pg_column_compression(body)) AS compressed,
       count(*) FILTER (WHERE pg_column_size(body) < 128) AS short, sum(length(body)) FROM texts;
CREATE UNLOGGED TABLE documents AS
SELECT id, body, convert_to(body, 'UTF8') AS bytes, to_tsvector('english', body) AS terms, string_to_array(body, ' ') AS words,
       CASE WHEN id % 3 <> 0 THEN ctph_signature(body) END AS signature
FROM texts;
CREATE UNLOGGED TABLE weights AS
SELECT i * 7919 % 30011 AS id, ARRAY(SELECT (i + j * j) % 5003 FROM generate_series(1, 40) AS j)::integer[] AS terms,
       ARRAY(SELECT (i * j % 17)::real FROM generate_series(1, 40) AS j) AS weights
FROM generate_series(1, 30000) AS i;

-- Every function that reads so
CREATE TABLE calls (number integer GENERATED ALWAYS AS IDENTITY, call text);
INSERT INTO calls (call) VALUES
    ('gpu_knn(''SELECT id, place FROM places WHERE id BETWEEN 100 AND 104'', ''TABLE places'', k => 30)'),
    ('gpu_knn(''SELECT id, place FROM places WHERE id < 20'', ''TABLE places'', k => 9, metric => ''euclidean'', exclude_self => true)'),
    ('gpu_knn(''SELECT id, place::double precision[] FROM places WHERE id < 10'', ''SELECT id, place::double precision[] FROM places'', k => 9)'),
    ('gpu_knn(''SELECT id, place::integer[] FROM places WHERE id < 10'', ''SELECT id, place::integer[] FROM places'', k => 9)'),
    ('gpu_knn_within(''SELECT id, place FROM places WHERE id < 10'', ''TABLE places'', 900)'),
    ('gpu_knn(''SELECT id, body FROM texts WHERE id < 100'', ''TABLE texts'', k => 7)'),
    ('gpu_knn(''SELECT id, terms FROM documents WHERE id < 100'', ''SELECT id, terms FROM documents'', k => 7)'),
    ('gpu_knn(''SELECT * FROM weights WHERE id < 100'', ''TABLE weights'', k => 7)'),
    ('gpu_knn_within(''SELECT * FROM weights WHERE id < 100'', ''TABLE weights'', 0.5)'),
    ('cosine_similarities(array_fill(0.5, ARRAY[600]), ''TABLE places'')'),
    ('local_outlier_factor(''SELECT id, place FROM places WHERE id % 6 = 0'', 5)'),
    ('k_means(''SELECT id, place FROM places'', 5, iterations => 3)'),
    ('near_duplicates(''SELECT id, bytes FROM documents'', mode => ''ctph'')'),
    ('near_duplicates(''SELECT id, body, signature FROM documents'')'),
    ('near_duplicate_groups(''TABLE texts'')'),
    ('near_duplicate_groups(''SELECT id, bytes, signature FROM documents'')'),
    ('tfidf(''SELECT id, body FROM texts WHERE id % 4 = 0'')'),
    ('tfidf(''SELECT id, terms FROM documents WHERE id % 2 = 0'')'),
    ('word_similarity(''SELECT id, body FROM texts WHERE id % 4 = 0'')'),
    ('word_similarity(''SELECT words FROM documents WHERE id % 3 = 0 ORDER BY id'')'),
    ('word_similarity_pairs(''SELECT id, body FROM texts WHERE id % 4 = 0'', top_k => 3)'),
    ('word_cooccurrences(''SELECT id, body FROM texts WHERE id % 4 = 0'', window_size => 1)'),
    ('word2vec(''SELECT id, body FROM texts WHERE id % 8 = 0'', dimensions => 8, epochs => 1)'),
    ('word2vec(''SELECT id, words FROM documents WHERE id % 8 = 0'', dimensions => 8, epochs => 1)');
SELECT number, (read(call)).* FROM calls ORDER BY number;

-- Other sources of the same rows: partitions, views, functions, joins, parallel plans, domains
CREATE TABLE parts (LIKE places) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (3000);
CREATE TABLE parts_2 (place real[], id bigint);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (3000) TO (6000);
CREATE TABLE parts_3 PARTITION OF parts DEFAULT;
INSERT INTO parts TABLE places;
CREATE DOMAIN filled AS real[] CHECK (array_length(VALUE, 1) > 1);
CREATE VIEW seen AS SELECT p.id, p.place::filled AS place FROM places AS p JOIN parts USING (id);
CREATE FUNCTION given() RETURNS SETOF places LANGUAGE sql STABLE PARALLEL SAFE AS 'TABLE places';
CREATE FUNCTION found() RETURNS SETOF places LANGUAGE plpgsql AS 'BEGIN RETURN QUERY TABLE parts; END';
CREATE TABLE sources (source text);
INSERT INTO sources VALUES
    ('TABLE places'), ('TABLE parts'), ('TABLE seen'), ('SELECT * FROM given()'), ('SELECT * FROM found()'),
    ('WITH w AS MATERIALIZED (TABLE places) TABLE w'), ('SELECT * FROM places ORDER BY id'),
    ('SELECT * FROM places WHERE id < 5000 UNION ALL SELECT * FROM parts WHERE id >= 5000'),
    ((SELECT 'VALUES ' || string_agg(format('(%s, %L::real[])', id, place), ',') FROM places WHERE id < 20) ||
     ' UNION ALL SELECT * FROM places WHERE id >= 20');
CREATE FUNCTION similar(source text) RETURNS TABLE (total bigint, digest text) LANGUAGE sql AS
$$ SELECT count(*), md5(string_agg(t::text, chr(10))) FROM cosine_similarities(array_fill(0.5, ARRAY[600]), source) AS t $$;
SET gputext.read_workers = 0;
SELECT count(*), count(DISTINCT digest) AS answers, min(total), max(total) FROM sources, similar(source);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gputext.read_workers = 4;
SELECT count(*), count(DISTINCT digest) AS answers, min(total), max(total) FROM sources, similar(source);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- Ties go to the row that comes first: by id, or as the query has it.
CREATE TABLE same (id integer, key text, xid xid, place real[], body text);
INSERT INTO same SELECT i * 7 % 11, chr(96 + i * 7 % 11), (i * 7 % 11)::text::xid, '{1,1}',
    CASE WHEN i * 7 % 11 = 5 THEN 'other words' ELSE 'to be or not to be that is the question' END FROM generate_series(1, 10) AS i;
SELECT array_agg(item_id) FROM gpu_knn('SELECT 0, ''{1,2}''::real[]', 'SELECT id, place FROM same', 4);
SELECT array_agg(item_id) FROM gpu_knn('SELECT 0, ''{1,2}''::real[]', 'SELECT id, place FROM same ORDER BY id DESC', 4);
-- Ids below 0, and of a range of more and of less than 32 bits
SELECT far, array_agg(item_id ORDER BY rank) FROM (VALUES (1), (-1), (100000000), (1000000000), (1000000000000000000)) AS f(far),
    gpu_knn('SELECT 0, ''{1,2}''::real[]', format('SELECT (id - 5) * %s::bigint, place FROM same', far), 10) GROUP BY far ORDER BY far;
SELECT array_agg(item_id) FROM gpu_knn('SELECT 0, ''{1,2}''::real[]',
    'SELECT id, place FROM (VALUES (9223372036854775807), (0), (-9223372036854775808), (1), (-1)) AS v(id), (SELECT place FROM same LIMIT 1) AS p', 5);
SELECT array_agg(item_id) FROM gpu_knn('SELECT 0, ''the question''', 'SELECT id, body FROM same', 4);
SELECT array_agg(item_id) FROM gpu_knn('SELECT ''a'', ''the question''', 'SELECT key, body FROM same', id_type => NULL::text, k => 4);
SELECT array_agg(item_id) FROM gpu_knn('SELECT ''a'', ''the question''', 'SELECT key COLLATE "C", body FROM same', id_type => NULL::text, k => 4);
SELECT array_agg(item_id) FROM gpu_knn('SELECT ''a'', ''the question''', 'SELECT key, body FROM same ORDER BY key COLLATE "C" DESC', id_type => NULL::text, k => 4);
SELECT DISTINCT group_id FROM near_duplicate_groups('SELECT id, body FROM same') ORDER BY 1;
SELECT DISTINCT group_id FROM near_duplicate_groups('SELECT id, body FROM same ORDER BY id DESC') ORDER BY 1;
SELECT DISTINCT group_id FROM near_duplicate_groups('SELECT key, body FROM same', id_type => NULL::text) ORDER BY 1;
CREATE FUNCTION ids(query text, id_type anyelement) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(id::text, ' ') FROM cosine_similarities('{1,2}', query, id_type) $$;
SELECT ids('SELECT id, place FROM same', NULL::bigint);
SELECT ids('SELECT -id, place FROM same', NULL::bigint);
SELECT ids('SELECT id::oid, place FROM same', NULL::bigint);
SELECT ids('SELECT id + 0.5, place FROM same', NULL::numeric);
SELECT ids('SELECT ARRAY[id % 2, id], place FROM same', NULL::integer[]);
SELECT ids('SELECT (lpad(id::text, 32, ''0''))::uuid, place FROM same WHERE id < 4', NULL::uuid);
-- Types without an order, and equal ids: as the rows come
SELECT ids('SELECT xid, place FROM same', NULL::xid);
SELECT ids('SELECT point(id, id), place FROM same', NULL::point);
SELECT string_agg(round(similarity::numeric, 3)::text, ' ') FROM cosine_similarities('{1,0}', 'SELECT x % 2, ARRAY[x, 1]::real[] FROM unnest(ARRAY[5, 2, 7, 4, 1]) AS x');

-- The first row that is wrong, by its id, is named by all.
CREATE UNLOGGED TABLE wrong AS TABLE places;
INSERT INTO wrong VALUES (11500, '{1,2}'), (7400, '{3}'), (9900, '{4,5,6}');
SELECT fail('cosine_similarities(array_fill(0.5, ARRAY[600]), ''TABLE wrong'')');
SELECT fail('gpu_knn(''SELECT * FROM wrong WHERE id < 10'', ''TABLE wrong'', 1)');
SELECT fail('gpu_knn(''TABLE wrong'', ''SELECT * FROM wrong WHERE id < 10'', 1)');
INSERT INTO wrong VALUES (6500, array_fill('NaN'::real, ARRAY[600])), (6600, array_fill('Infinity'::real, ARRAY[600]));
SELECT fail('k_means(''TABLE wrong'', 3)');
INSERT INTO wrong VALUES (5600, array_fill(NULL::real, ARRAY[600])), (5700, array_fill(1::real, ARRAY[600]) || NULL::real);
SELECT fail('local_outlier_factor(''TABLE wrong'', 3)');
INSERT INTO wrong VALUES (4600, array_fill(1::real, ARRAY[300, 2])), (4700, '{}');
SELECT fail('cosine_similarities(array_fill(0.5, ARRAY[600]), ''TABLE wrong'')');
SELECT fail('cosine_similarities(array_fill(0.5, ARRAY[600]), ''SELECT * FROM wrong ORDER BY id DESC'')');
INSERT INTO weights VALUES (29000, '{1,2}', '{3}');
SELECT fail('gpu_knn(''TABLE weights'', ''TABLE weights'', 1)');
INSERT INTO weights VALUES (24000, '{1,2,1}', '{3,4,5}');
SELECT fail('gpu_knn(''TABLE weights'', ''TABLE weights'', 1)');
INSERT INTO weights VALUES (20000, '{1,2}', '{3,NaN}'), (21000, '{1,NULL}', '{3,4}');
SELECT fail('gpu_knn(''TABLE weights'', ''TABLE weights'', 1)');
-- What the executor finds wrong comes first.
SELECT fail('near_duplicates(''SELECT id + 0 / (id - 1000), body FROM texts'')');
SELECT fail('tfidf(''SELECT NULLIF(id, 1000), body FROM texts ORDER BY id'')');

-- Beyond the limit of memory rows are in temporary files, which have a limit of their own.
SET gputext.host_memory_limit = '1MB';
SELECT number, (read(call)).* FROM calls WHERE number IN (1, 7, 10, 16, 17) ORDER BY number;
SET temp_file_limit = '2MB';
SELECT fail('cosine_similarities(array_fill(0.5, ARRAY[600]), ''TABLE places'')');
SELECT fail('near_duplicates(''TABLE texts'')');
SELECT fail('tfidf(''TABLE texts'')');
SELECT fail('word_similarity(''TABLE texts'')');
RESET temp_file_limit;
RESET gputext.host_memory_limit;
SELECT number, (read(call)).* FROM calls WHERE number = 1;
DROP SCHEMA reading CASCADE;
