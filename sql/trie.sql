-- The type trie, trie_agg and what one word or prefix is asked for

CREATE TABLE words (word text);
INSERT INTO words VALUES ('cb'), ('ba'), (NULL), ('cc'), ('aba'), ('ba'), ('bb'), ('');
CREATE TABLE dictionaries (name text PRIMARY KEY, dictionary trie);
INSERT INTO dictionaries SELECT 'small', trie_agg(word) FROM words;

SELECT name, trie_summary(dictionary) FROM dictionaries;
SELECT s.structure, s.words, s.bytes, s.alphabet, s.longest_word FROM dictionaries, trie_stats(dictionary) AS s;
-- Codes in the order of the bytes; duplicates collapse, and the empty word is a word.
SELECT w.* FROM dictionaries, trie_words(dictionary) AS w;
SELECT word, trie_lookup(dictionary, word) AS code FROM dictionaries, words ORDER BY word COLLATE "C";
SELECT trie_lookup(dictionary, 'b') AS b, trie_lookup(dictionary, 'bab') AS bab, trie_lookup(dictionary, 'd') AS d,
       trie_lookup(dictionary, NULL) AS no_word, trie_lookup(NULL, 'ba') AS no_dictionary FROM dictionaries;
SELECT code, trie_decode(dictionary, code) AS word FROM dictionaries, generate_series(0, 5) AS code;
SELECT trie_decode(dictionary, NULL) IS NULL AS no_code FROM dictionaries;

-- The other structure is the same dictionary; nodes have the numbers of the paper's figure 1.
CREATE TABLE tries AS SELECT trie_agg(word, 'xbw') AS dictionary FROM words WHERE word > '';
SELECT trie_summary(dictionary), s.structure, s.words, s.alphabet, s.longest_word FROM tries, trie_stats(dictionary) AS s;
SELECT w.*, trie_node(dictionary, word) AS node, trie_lookup(dictionary, word) AS lookup, trie_decode(dictionary, code) AS decode
FROM tries, trie_words(dictionary) AS w;
SELECT word, trie_node(dictionary, word) IS NULL AS absent, trie_lookup(dictionary, word) IS NULL AS no_code
FROM tries, unnest('{"",a,ab,b,c,bab,d}'::text[]) AS word;
SELECT trie_node(dictionary, NULL) IS NULL AS no_word, trie_node(NULL, 'ba') IS NULL AS no_dictionary FROM tries;
SELECT p.* FROM tries, trie_prefix(dictionary, 'b') AS p;
SELECT r.* FROM tries, trie_prefix_range(dictionary, 'c') AS r;
SELECT p.* FROM tries, trie_prefixes_of(dictionary, 'abab') AS p;
SELECT dictionary::bytea::trie::bytea = dictionary::bytea AS same FROM tries;

-- Prefixes
SELECT p.* FROM dictionaries, trie_prefix(dictionary, 'b') AS p;
SELECT p.* FROM dictionaries, trie_prefix(dictionary, '') AS p;
SELECT p.* FROM dictionaries, trie_prefix(dictionary, 'c', 1) AS p;
SELECT p.* FROM dictionaries, trie_prefix(dictionary, 'c', max => 0) AS p;
SELECT p.* FROM dictionaries, trie_prefix(dictionary, 'x') AS p;
SELECT p.* FROM dictionaries, trie_prefix(dictionary, NULL) AS p;
SELECT p.* FROM trie_prefix(NULL, 'a') AS p;
SELECT prefix, r.* FROM dictionaries, (VALUES ('b'), (''), ('bb'), ('abaa')) AS v(prefix), trie_prefix_range(dictionary, prefix) AS r;
SELECT p.* FROM dictionaries, trie_prefixes_of(dictionary, 'bbc') AS p;
SELECT p.* FROM dictionaries, trie_prefixes_of(dictionary, 'abab') AS p;
SELECT p.* FROM dictionaries, trie_prefixes_of(dictionary, '') AS p;
SELECT p.* FROM trie_prefixes_of(NULL, 'a') AS p;

-- A dictionary of some thousand words, in every order and any number of groups, against SQL
CREATE TABLE many AS
SELECT i, CASE WHEN i % 3 = 0 THEN 'a long prefix that many words share ' ELSE '' END || md5((i % 20000)::text) || repeat('é', i % 4) AS word
FROM generate_series(1, 30000) AS i;
INSERT INTO dictionaries SELECT 'many', trie_agg(word) FROM many;
SELECT encode(sha256(bytea(d.dictionary)), 'hex') = encode(sha256(bytea(o.dictionary)), 'hex') AS same_in_any_order
FROM dictionaries d, (SELECT trie_agg(word ORDER BY word DESC) AS dictionary FROM (TABLE many UNION ALL TABLE many) AS twice) AS o
WHERE d.name = 'many';
CREATE TABLE codes AS
SELECT word, row_number() OVER (ORDER BY word COLLATE "C") - 1 AS code FROM (SELECT DISTINCT word FROM many) AS d;
SELECT count(*) AS words, bool_and(trie_lookup(dictionary, word) = code) AS lookup, bool_and(trie_decode(dictionary, code) = word) AS decode,
       count(trie_lookup(dictionary, word || 'x')) AS absent
FROM dictionaries, codes WHERE name = 'many';
SELECT count(*) AS words, bool_and(c.word = w.word) AS equal
FROM dictionaries, trie_words(dictionary) AS w LEFT JOIN codes c USING (code) WHERE name = 'many';
INSERT INTO dictionaries SELECT 'many nodes', trie_agg(word, 'xbw') FROM many;
SELECT count(*) AS words, bool_and(trie_lookup(dictionary, word) = code) AS lookup, bool_and(trie_decode(dictionary, code) = word) AS decode,
       count(trie_lookup(dictionary, word || 'x')) AS absent, count(DISTINCT trie_node(dictionary, word)) AS nodes
FROM dictionaries, codes WHERE name = 'many nodes';
SELECT count(*) AS words, bool_and(c.word = w.word) AS equal
FROM dictionaries, trie_words(dictionary) AS w LEFT JOIN codes c USING (code) WHERE name = 'many nodes';
DELETE FROM dictionaries WHERE name = 'many nodes';
-- A prefix is a range of codes, which an index on codes serves.
CREATE INDEX ON codes (code);
ANALYZE codes;
SET enable_seqscan = off;
EXPLAIN (COSTS off)
SELECT c.word FROM dictionaries d CROSS JOIN trie_prefix_range(d.dictionary, 'ab') AS r
JOIN codes c ON c.code BETWEEN r.first AND r.last WHERE d.name = 'many';
RESET enable_seqscan;
SELECT prefix, count(c.word) AS words, count(*) FILTER (WHERE starts_with(c.word, prefix)) AS that_begin_so,
       (SELECT count(*) FROM codes WHERE starts_with(word, prefix)) AS all_of_them
FROM dictionaries, (VALUES ('ab'), ('a long'), ('a long prefix that many words share f'), ('zz')) AS v(prefix),
     trie_prefix_range(dictionary, prefix) AS r LEFT JOIN codes c ON c.code BETWEEN r.first AND r.last
WHERE name = 'many' GROUP BY prefix ORDER BY prefix COLLATE "C";

-- Parallel workers gather words of their own.
ALTER TABLE many SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS off) SELECT trie_agg(word), trie_agg(word, 'xbw') FROM many;
CREATE TABLE gathered AS SELECT trie_agg(word) AS front, trie_agg(word, 'xbw') AS nodes FROM many;
SELECT d.dictionary::bytea = front::bytea AS same, (trie_stats(nodes)).structure, (SELECT count(*) FROM trie_words(nodes)) AS words
FROM dictionaries AS d, gathered WHERE name = 'many';
CREATE TABLE gathered_groups AS
SELECT i % 7 = 3 AS g, trie_agg(word) FILTER (WHERE i % 7 <> 3) AS dictionary FROM many GROUP BY 1;
-- What is larger than the limit goes to the leader as a dictionary: what one of two workers gathers.
SET parallel_leader_participation = off;
SET gputext.host_memory_limit = '1MB';
CREATE TABLE gathered_at_once AS SELECT trie_agg(word || ' and once more ' || word, 'xbw') AS dictionary FROM many;
RESET gputext.host_memory_limit;
RESET parallel_leader_participation;
SET max_parallel_workers_per_gather = 0;
SELECT sum(length(word || ' and once more ' || word)) > 2 * 1048576 AS large_by_each_of_two, count(*) AS words FROM (SELECT DISTINCT word FROM many) AS d;
SELECT trie_agg(word || ' and once more ' || word, 'xbw')::bytea = (SELECT dictionary::bytea FROM gathered_at_once) AS same FROM many;
SELECT count(*) AS groups, count(p.dictionary) AS dictionaries, bool_and(p.dictionary::bytea IS NOT DISTINCT FROM s.dictionary::bytea) AS same
FROM gathered_groups AS p
JOIN (SELECT i % 7 = 3 AS g, trie_agg(word) FILTER (WHERE i % 7 <> 3) AS dictionary FROM many GROUP BY 1) AS s USING (g);
DROP TABLE gathered, gathered_groups, gathered_at_once;
-- Without a worker, too, words may be gathered in parts: of each partition.
CREATE TABLE parts (structure text, word text) PARTITION BY LIST (structure);
CREATE TABLE parts_front PARTITION OF parts FOR VALUES IN ('front');
CREATE TABLE parts_xbw PARTITION OF parts FOR VALUES IN ('xbw');
INSERT INTO parts SELECT CASE WHEN i % 2 = 0 THEN 'front' ELSE 'xbw' END, word FROM many;
ANALYZE parts;
SET enable_partitionwise_aggregate = on;
EXPLAIN (COSTS off) SELECT trie_agg(word) FROM parts;
SELECT trie_agg(word)::bytea = (SELECT dictionary::bytea FROM dictionaries WHERE name = 'many') AS same FROM parts;
SELECT trie_agg(word, structure) FROM parts;
RESET enable_partitionwise_aggregate;
DROP TABLE parts;
ALTER TABLE many RESET (parallel_workers);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

-- None or few words
SELECT trie_agg(word) IS NULL AS none FROM words WHERE false;
SELECT trie_agg(word) IS NULL AS only_null FROM words WHERE word IS NULL;
SELECT trie_summary(trie_agg('')) AS empty_word;
SELECT left(word, 1) AS letter, trie_summary(trie_agg(word)) FROM words WHERE word > '' GROUP BY 1 ORDER BY 1;
SELECT word, trie_lookup(trie_agg(word) OVER (ORDER BY word), 'bb') AS growing FROM words WHERE word LIKE 'b%';
-- A word of a megabyte
SELECT trie_lookup(d, repeat('long', 262144)) AS code, length(trie_decode(d, 1)) AS length, trie_summary(d)
FROM (SELECT trie_agg(word) AS d FROM (VALUES (repeat('long', 262144)), ('l')) AS v(word)) AS one;

-- Stored apart, and not compressed: only the summary's bytes are fetched for it.
SELECT typstorage, typalign FROM pg_type WHERE typname = 'trie';
SELECT pg_column_size(dictionary) = length(bytea(dictionary)) AS not_compressed FROM dictionaries WHERE name = 'many';

-- Several dictionaries at once, and more than stay open
SELECT count(*) AS found FROM dictionaries d, dictionaries e, many
WHERE trie_lookup(d.dictionary, word) IS NOT NULL AND trie_lookup(e.dictionary, word) = trie_lookup(d.dictionary, word);
CREATE TABLE letters AS
SELECT left(word, 1) AS letter, trie_agg(word) AS dictionary FROM codes WHERE word ~ '^[0-9]' GROUP BY 1;
SELECT count(*) AS pairs, count(trie_lookup(dictionary, word)) AS found
FROM (SELECT * FROM codes WHERE word ~ '^[0-9]' ORDER BY md5(word) LIMIT 300) AS c, letters;

-- Binary form: COPY and a cast move the whole of it.
CREATE FUNCTION check_copy() RETURNS TABLE (same boolean) LANGUAGE plpgsql AS $$
DECLARE
    file text := current_setting('data_directory') || '/trie_regress.copy';
BEGIN
    EXECUTE format('COPY dictionaries TO %L (FORMAT binary)', file);
    CREATE TEMPORARY TABLE restored (LIKE dictionaries);
    EXECUTE format('COPY restored FROM %L (FORMAT binary)', file);
    RETURN QUERY SELECT bytea(d.dictionary) = bytea(r.dictionary) FROM dictionaries d JOIN restored r USING (name);
END $$;
SELECT same FROM check_copy();
SELECT bool_and(trie_lookup(r.dictionary, word) = code) AS same_codes FROM restored r, codes WHERE name = 'many';
SELECT trie_lookup(dictionary::bytea::trie, 'bb') AS code FROM dictionaries WHERE name = 'small';
SELECT trie_send(dictionary) = dictionary::bytea AS same FROM dictionaries;
-- The text form has all of it, too, whatever is set.
CREATE TABLE dumped (name text, dictionary text);
INSERT INTO dumped SELECT name, dictionary::text FROM dictionaries UNION ALL SELECT 'nodes', dictionary::text FROM tries
UNION ALL SELECT 'empty word', trie_agg('')::text UNION ALL SELECT 'empty word, nodes', trie_agg('', 'xbw')::text;
SELECT name, left(dictionary, 28) AS begins, dictionary ~ '^trie:1:[A-Za-z0-9+/]*=*$' AS of_base64 FROM dumped ORDER BY name;
SELECT name, trie_summary(dictionary::trie), dictionary::trie::text = dictionary AS same FROM dumped ORDER BY name;
SELECT count(*) AS words, bool_and(trie_lookup(dictionary::trie, word) = code) AS same_codes
FROM dumped, codes WHERE name = 'many' AND code % 100 = 0;
SELECT name, d.dictionary::bytea = dumped.dictionary::trie::bytea AS same FROM dictionaries AS d JOIN dumped USING (name) ORDER BY name;
SELECT d.dictionary::bytea = dumped.dictionary::trie::bytea AS same FROM tries AS d, dumped WHERE name = 'nodes';
SET gputext.trie_output = summary;
SELECT d.dictionary::text = dumped.dictionary AS same FROM dictionaries AS d JOIN dumped USING (name) ORDER BY name;
RESET gputext.trie_output;
CREATE FUNCTION check_text_copy() RETURNS TABLE (same boolean) LANGUAGE plpgsql AS $$
DECLARE
    file text := current_setting('data_directory') || '/trie_regress.copy';
    format text;
BEGIN
    FOREACH format IN ARRAY ARRAY['text', 'csv'] LOOP
        EXECUTE format('COPY dictionaries TO %L (FORMAT %s)', file, format);
        TRUNCATE restored;
        EXECUTE format('COPY restored FROM %L (FORMAT %s)', file, format);
        RETURN QUERY SELECT bytea(d.dictionary) = bytea(r.dictionary) FROM dictionaries d JOIN restored r USING (name);
    END LOOP;
END $$;
SELECT same FROM check_text_copy();
SELECT trie_summary(NULL) IS NULL AS no_dictionary;
-- gputext.trie_output = 'bytes' of 0.1.0 made hexadecimal digits of it.
SELECT trie_summary(('\x' || encode(dictionary::bytea, 'hex'))::trie) FROM dictionaries WHERE name = 'small';
-- trie_agg gives no dictionary without words. The texts are what such ones have.
SELECT trie_summary(form::trie), form::trie::text = form AS same, trie_lookup(form::trie, '') IS NULL AS no_word,
       (SELECT count(*) FROM trie_words(form::trie)) AS words
FROM (VALUES ('trie:1:Z3B1dHJpZQoBAAAAAQAAAAAAAAAAAAAARAAAAAAAAADPBssloWPE/wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='),
             ('trie:1:Z3B1dHJpZQoBAAAAAgAAAAAAAAAAAAAA4AEAAAAAAACVQs0hR4KqHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD/////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA')) AS v(form);
-- Broken texts
SELECT 'front, 5 words, 200 bytes'::trie;
SELECT 'xbw, 1 words, 200 bytes'::trie;
SELECT 'trie:2:AAAA'::trie;
SELECT 'trie:'::trie;
SELECT 'a word'::trie;
SELECT ''::trie;
SELECT repeat('é', 50)::trie;
SELECT 'trie:1:'::trie;
SELECT 'trie:1:AAAAA'::trie;
SELECT 'trie:1:AAAA AAA'::trie;
SELECT 'trie:1:AAAB'::trie;
SELECT left(dictionary, 107)::trie FROM dumped WHERE name = 'small';
SELECT (dictionary || 'AAAA')::trie FROM dumped WHERE name = 'nodes';
SELECT overlay(dictionary PLACING 'AAAA' FROM 120)::trie FROM dumped WHERE name = 'small';
SELECT left('\x' || encode(dictionary::bytea, 'hex'), 100)::trie FROM dictionaries WHERE name = 'small';
SELECT '\x'::trie;
-- PostgreSQL's own errors by their SQLSTATE: the words are of the release.
\set VERBOSITY sqlstate
SELECT '\x00z'::trie;
SELECT 'front, 5 words'::trie;
SELECT 'a word'::trie;
SELECT 'trie:1:AAAB'::trie;
SELECT 'trie:1:A'::trie;
\set VERBOSITY default
-- Every character of it and every length
CREATE FUNCTION text_refused(form text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM form::trie;
    RETURN false;
EXCEPTION WHEN invalid_text_representation OR invalid_binary_representation OR feature_not_supported THEN
    RETURN true;
END $$;
SELECT name, count(*) = length(dictionary) AS changed,
       bool_and(text_refused(overlay(dictionary PLACING chr(ascii(substr(dictionary, i, 1)) # 1) FROM i))) AS refused,
       bool_and(text_refused(left(dictionary, i - 1))) AS cut_refused
FROM dumped, generate_series(1, length(dictionary)) AS i WHERE name IN ('small', 'nodes') GROUP BY name, dictionary ORDER BY name;
DROP FUNCTION check_text_copy, text_refused;
DROP TABLE dumped;
-- What pg_dump restores a materialized view from is its query.
CREATE MATERIALIZED VIEW vocabulary AS SELECT trie_agg(word) AS dictionary FROM many;
REFRESH MATERIALIZED VIEW vocabulary;
SELECT v.dictionary::bytea = d.dictionary::bytea AS same FROM vocabulary v, dictionaries d WHERE name = 'many';

-- Errors

SELECT trie_decode(dictionary, -1) FROM dictionaries WHERE name = 'small';
SELECT trie_decode(dictionary, 6) FROM dictionaries WHERE name = 'small';
SELECT trie_prefix(dictionary, 'b', -1) FROM dictionaries WHERE name = 'small';
SELECT trie_agg(word, 'hash') FROM words;
SELECT trie_agg(word, NULL) FROM words;
SELECT trie_agg(word, CASE word WHEN 'bb' THEN 'front' ELSE 'xbw' END ORDER BY word) FROM words;
SELECT trie_node(dictionary, 'ba') FROM dictionaries WHERE name = 'small';
\set VERBOSITY sqlstate
SELECT trie_agg(1);
\set VERBOSITY default
-- Minor releases of PostgreSQL refuse a literal of type internal with different errors.
DO $$
DECLARE
    call text;
BEGIN
    FOREACH call IN ARRAY ARRAY['trie_agg_transition(NULL, ''a'')', 'trie_agg_transition(NULL, ''a'', ''xbw'')',
                                'trie_agg_final(NULL)', 'trie_agg_combine(NULL, NULL)'] LOOP
        BEGIN
            EXECUTE 'SELECT ' || call;
            RAISE NOTICE '% was called', call;
        EXCEPTION WHEN undefined_function OR feature_not_supported THEN
            RAISE NOTICE '% is refused', call;
        END;
    END LOOP;
END $$;
SELECT ''::bytea::trie;
SELECT '\x00'::bytea::trie;
SELECT repeat('x', 1000)::bytea::trie;
SELECT set_byte(dictionary::bytea, 8, 9)::trie FROM dictionaries WHERE name = 'small';
SELECT set_byte(dictionary::bytea, 70, 9)::trie FROM dictionaries WHERE name = 'small';
SELECT (dictionary::bytea || '\x00')::trie FROM dictionaries WHERE name = 'small';
SELECT substr(dictionary::bytea, 1, 100)::trie FROM dictionaries WHERE name = 'small';
-- Every byte of it and every length
CREATE FUNCTION refused(image bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM image::trie;
    RETURN false;
EXCEPTION WHEN invalid_binary_representation THEN
    RETURN true;
END $$;
SELECT count(*) = length(image) AS changed, bool_and(refused(set_byte(image, i, get_byte(image, i) # 16))) AS refused,
       bool_and(refused(substr(image, 1, i))) AS cut_refused
FROM (SELECT dictionary::bytea AS image FROM dictionaries WHERE name = 'small') AS d, generate_series(0, length(image) - 1) AS i
GROUP BY image;
SELECT count(*) = length(image) AS changed, bool_and(refused(set_byte(image, i, get_byte(image, i) # 16))) AS refused,
       bool_and(refused(substr(image, 1, i))) AS cut_refused
FROM (SELECT dictionary::bytea AS image FROM tries) AS d, generate_series(0, length(image) - 1) AS i
GROUP BY image;

DROP MATERIALIZED VIEW vocabulary;
DROP FUNCTION check_copy, refused;
DROP TABLE words, tries, dictionaries, many, codes, letters, restored;

-- The words of groups count as the aggregate's memory, which 10 groups that are thought to take 1 MB each exceed.
CREATE TABLE words_of_groups AS SELECT i / 10000 AS g, repeat(md5(i::text), 10) AS word FROM generate_series(0, 99999) AS i;
CREATE FUNCTION has_batches(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, FORMAT json) ' || query INTO plan;
    RETURN plan->0->'Plan'->>'Strategy' = 'Hashed' AND (plan->0->'Plan'->>'HashAgg Batches')::integer > 1;
END $$;
SET work_mem = '16MB';
SET hash_mem_multiplier = 1;
SET enable_sort = off;
SET max_parallel_workers_per_gather = 0;
SELECT has_batches('SELECT g, trie_agg(word) FROM words_of_groups GROUP BY g');
SELECT count(*), sum((trie_stats(dictionary)).words) AS words FROM (SELECT g, trie_agg(word) AS dictionary FROM words_of_groups GROUP BY g) AS s;
RESET work_mem;
RESET hash_mem_multiplier;
RESET enable_sort;
RESET max_parallel_workers_per_gather;
DROP FUNCTION has_batches;
DROP TABLE words_of_groups;

-- Words are bytes: in every encoding in their order, and no dictionary of another one comes in.
SELECT current_database() AS database \gset
SELECT trie_agg(w)::bytea AS utf8 FROM (VALUES ('日本'), ('日本語'), ('é')) AS v(w) \gset
SELECT w.* FROM trie_words(:'utf8'::bytea::trie) AS w;
SELECT p.* FROM trie_prefixes_of(:'utf8'::bytea::trie, '日本語の') AS p;
CREATE DATABASE regress_gputext_trie ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_gputext_trie
CREATE EXTENSION gputext;
SET client_encoding = 'UTF8';
SELECT w.*, octet_length(word) AS bytes FROM (SELECT trie_agg(w) AS d FROM (VALUES ('日本'), ('日本語'), ('a')) AS v(w)) AS o, trie_words(d) AS w;
SELECT :'utf8'::bytea::trie;
\c :database
DROP DATABASE regress_gputext_trie;
