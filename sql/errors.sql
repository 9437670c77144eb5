-- What near_duplicates refuses, and how it says so
\set SHOW_CONTEXT always

CREATE TABLE docs (id bigint, body text, key text);
INSERT INTO docs VALUES (1, 'some document', 'a'), (2, 'some document', 'b');

-- Arguments

SELECT * FROM near_duplicates('TABLE nothing', threshold => -0.01);
SELECT * FROM near_duplicates('TABLE nothing', threshold => 0.5);
SELECT * FROM near_duplicates('TABLE nothing', 1e308);
SELECT * FROM near_duplicates('TABLE nothing', threshold => 'NaN');
SELECT * FROM near_duplicates('TABLE nothing', threshold => '-Infinity');
SELECT * FROM near_duplicate_groups('TABLE nothing', 5);
SELECT * FROM near_duplicates('TABLE nothing', mode => 'fuzzy');
SELECT * FROM near_duplicates('TABLE nothing', mode => 'CTPH');
SELECT * FROM near_duplicate_groups('TABLE nothing', mode => '');
SELECT * FROM near_duplicates('TABLE nothing', max_length => 0);
SELECT * FROM near_duplicates('TABLE nothing', max_length => 1025);
SELECT * FROM near_duplicates('TABLE nothing', mode => 'exact', max_length => -1);
SELECT * FROM near_duplicates(NULL);
SELECT * FROM near_duplicates('TABLE nothing', threshold => NULL);
SELECT * FROM near_duplicates('TABLE nothing', mode => NULL);
SELECT * FROM near_duplicates('TABLE nothing', max_length => NULL);
SELECT * FROM near_duplicate_groups(NULL, id_type => NULL::text);

-- Columns

SELECT * FROM near_duplicates('SELECT id FROM docs');
SELECT * FROM near_duplicates('SELECT FROM docs');
SELECT * FROM near_duplicates('SELECT id, body, ctph_signature(body), key FROM docs');
SELECT * FROM near_duplicates('SELECT id, id FROM docs');
SELECT * FROM near_duplicates('SELECT id, body::char(5) FROM docs');
SELECT * FROM near_duplicates('SELECT id, to_json(body) FROM docs');
SELECT * FROM near_duplicates('SELECT id, body, key FROM docs');
SELECT * FROM near_duplicates('SELECT id, body, ssdeep_hash(body) FROM docs');
SELECT * FROM near_duplicate_groups('SELECT body, id FROM docs');
-- They are checked before any row is read.
SELECT * FROM near_duplicates('SELECT id, id / 0 FROM docs');

-- Ids

SELECT * FROM near_duplicates('SELECT id::float8, body FROM docs');
SELECT * FROM near_duplicates('SELECT key, body FROM docs');
SELECT * FROM near_duplicates('SELECT id, body FROM docs', id_type => NULL::text);
SELECT * FROM near_duplicate_groups('SELECT ARRAY[id], body FROM docs');
SELECT * FROM near_duplicates('SELECT nullif(id, 2), body FROM docs ORDER BY id');
-- The row is counted with those whose document is null.
SELECT * FROM near_duplicates('SELECT nullif(id, 2), nullif(body, body) FROM docs ORDER BY id');

-- id_type is to stand right after the inner query. PostgreSQL 15 takes the types of the result's
-- columns from the argument that stands there, whatever its name; so elsewhere it is refused when
-- the statement is planned, unless both types are the same.
SELECT * FROM near_duplicates('SELECT key, body FROM docs', threshold => 0.1, id_type => NULL::text);
SELECT * FROM near_duplicates(id_type => NULL::int, docs => 'SELECT id::int, body FROM docs');
SELECT id1 FROM near_duplicates(id_type => NULL::int, docs => 'SELECT id::int, body FROM docs') ORDER BY id1;
CREATE VIEW misplaced AS
SELECT * FROM near_duplicates('SELECT md5(key)::uuid, body FROM docs', mode => 'exact', id_type => NULL::uuid);
SELECT * FROM misplaced;
DROP VIEW misplaced;
SELECT count(*) FROM near_duplicates('SELECT key, body FROM docs', threshold => 0.1, id_type => NULL::text);
SELECT * FROM near_duplicates(id_type => NULL::text, docs => 'SELECT key, body FROM docs');
EXPLAIN (COSTS OFF) SELECT * FROM near_duplicate_groups(threshold => 0.1, docs => 'SELECT key, body FROM docs', id_type => NULL::uuid);
PREPARE misplaced AS SELECT * FROM docs, LATERAL near_duplicate_groups('SELECT key, body FROM docs', threshold => $1, id_type => NULL::text);
EXECUTE misplaced(0.1);
DEALLOCATE misplaced;
SELECT * FROM tfidf('SELECT key, body FROM docs', config => 'english', id_type => NULL::text);
SELECT * FROM cosine_similarities('{1,2}', id_type => NULL::text, items => 'SELECT key, ARRAY[1] FROM docs');
SELECT * FROM cosine_similarities('{1,2}', id_type => NULL::uuid, items => 'SELECT key, ARRAY[1] FROM docs');
SELECT * FROM (SELECT trie_agg(key) FROM docs) AS t(words), trie_encode_documents(words, 'SELECT key, body FROM docs', config => 'english', id_type => NULL::text);
-- A list of arguments in the right order may have any names, and none.
SELECT * FROM near_duplicates(docs => 'SELECT key, body FROM docs', id_type => NULL::text, mode => 'exact', threshold => 0.1);
SELECT * FROM near_duplicates('SELECT key, body FROM docs', ''::text, 0.1);
-- A number or null of a number's type without its name is the threshold.
SELECT * FROM near_duplicates('SELECT id::int, body FROM docs', NULL::int);
-- A null without a type means bigint, and the name of a type is refused.
SELECT * FROM near_duplicates('SELECT key, body FROM docs', id_type => NULL);
SELECT * FROM near_duplicates('SELECT id, body FROM docs', id_type => NULL);
SELECT * FROM near_duplicates('SELECT key, body FROM docs', id_type => 'text');
SELECT * FROM near_duplicates(id_type => 'uuid', docs => 'SELECT key, body FROM docs');
SELECT * FROM near_duplicate_groups('SELECT key, body FROM docs', threshold => 0.1, id_type => 'text');
SELECT * FROM gpu_knn('SELECT 1, ARRAY[1]', 'SELECT 1, ARRAY[1]', k => 1, id_type => 'int4');
SELECT * FROM gpu_knn_within('SELECT 1, ARRAY[1]', 'SELECT 1, ARRAY[1]', id_type => 'int4', radius => 1);
SELECT * FROM tfidf('SELECT key, body FROM docs', id_type => 'text');
SELECT * FROM cosine_similarities('{1,2}', 'SELECT key, ARRAY[1, 2] FROM docs', 'text');
SELECT * FROM local_outlier_factor('SELECT key, ARRAY[1, 2] FROM docs', id_type => 'text', k => 1);
SELECT * FROM trie_encode((SELECT trie_agg(key) FROM docs), 'SELECT key, body FROM docs', 'text');
SELECT * FROM trie_encode_documents((SELECT trie_agg(key) FROM docs), 'SELECT key, body FROM docs', id_type => 'text');
SELECT * FROM word_movers_distance('SELECT ''a'', ARRAY[1]', 'SELECT key, ARRAY[''a''], ARRAY[''a''] FROM docs', id_type => 'text');
SELECT * FROM sequence_probability('SELECT ''a'', ARRAY[1], ARRAY[1]', 'SELECT key, ARRAY[''a''] FROM docs', 'text');

-- Statements that are none, several or wrong

SELECT * FROM near_duplicates('');
SELECT * FROM near_duplicates(' ; -- nothing');
SELECT * FROM near_duplicates('SELECT id, body FROM docs; SELECT id, body FROM docs');
SELECT * FROM near_duplicates('SELECT id, body FROM docs; DROP TABLE docs');
SELECT * FROM near_duplicates('SELECT id body docs');
SELECT * FROM near_duplicates('SELEKT id, body FROM docs');
SELECT * FROM near_duplicates('SELECT id, body FROM missing');
SELECT * FROM near_duplicates('SELECT id, missing FROM docs');
SELECT * FROM near_duplicates('SELECT id, body FROM docs WHERE id = $1');
SELECT * FROM near_duplicates('docs');
-- Errors of the query itself
SELECT * FROM near_duplicates('SELECT id / (id - 2), body FROM docs ORDER BY id');

-- Statements that do more than read

SELECT * FROM near_duplicates('INSERT INTO docs VALUES (3) RETURNING id, body');
SELECT * FROM near_duplicates('UPDATE docs SET id = 4 RETURNING id, body');
SELECT * FROM near_duplicates('DELETE FROM docs');
SELECT * FROM near_duplicates('WITH gone AS (DELETE FROM docs RETURNING id, body) SELECT * FROM gone');
SELECT * FROM near_duplicates('SELECT id, body FROM docs FOR UPDATE');
SELECT * FROM near_duplicates('SELECT id, body FROM (SELECT * FROM docs FOR SHARE) AS d');
SELECT * FROM near_duplicates('SELECT id, body INTO copies FROM docs');
SELECT * FROM near_duplicates('CREATE TABLE copies AS SELECT id, body FROM docs');
SELECT * FROM near_duplicates('TRUNCATE docs');
SELECT * FROM near_duplicates('DROP TABLE docs');
SELECT * FROM near_duplicates('SET work_mem = 1000');
SELECT * FROM near_duplicates('SHOW work_mem');
SELECT * FROM near_duplicates('EXPLAIN SELECT id, body FROM docs');
SELECT * FROM near_duplicates('EXPLAIN ANALYZE DELETE FROM docs');
SELECT * FROM near_duplicates('DO $$ BEGIN DELETE FROM docs; END $$');
SELECT * FROM near_duplicates('BEGIN');
SELECT * FROM near_duplicates('COMMIT');
SELECT * FROM near_duplicates('COPY docs TO STDOUT');
SELECT * FROM near_duplicates('VACUUM docs');
SELECT * FROM near_duplicates('LISTEN docs');
SELECT count(*) AS all_still_there FROM docs;

-- The SQLSTATE of each kind

CREATE TABLE kinds (id int, kind text, call text);
INSERT INTO kinds VALUES
    (1, 'threshold', $$near_duplicates('TABLE docs', 0.5)$$),
    (2, 'mode', $$near_duplicates('TABLE docs', mode => 'x')$$),
    (3, 'max_length', $$near_duplicates('TABLE docs', max_length => 0)$$),
    (4, 'null argument', $$near_duplicates(NULL)$$),
    (5, 'null threshold', $$near_duplicates('TABLE docs', threshold => NULL)$$),
    (6, 'number of columns', $$near_duplicates('SELECT id FROM docs')$$),
    (7, 'type of documents', $$near_duplicates('SELECT id, id FROM docs')$$),
    (8, 'type of signatures', $$near_duplicates('SELECT id, body, id FROM docs')$$),
    (9, 'type of ids', $$near_duplicates('SELECT key, body FROM docs')$$),
    (10, 'null id', $$near_duplicates('SELECT NULL::bigint, body FROM docs')$$),
    (11, 'empty', $$near_duplicates('')$$),
    (12, 'several', $$near_duplicates('SELECT 1; SELECT 2')$$),
    (13, 'syntax', $$near_duplicates('SELEKT')$$),
    (14, 'missing table', $$near_duplicates('TABLE missing')$$),
    (15, 'writes', $$near_duplicates('DELETE FROM docs')$$),
    (16, 'utility', $$near_duplicates('SHOW work_mem')$$),
    (17, 'max', $$edit_distance('a', 'b', -1)$$),
    (18, 'signature length', $$ctph_signature('a', 0)$$),
    (19, 'ctph', $$text('3::'::ctph)$$),
    (20, 'ssdeep', $$ssdeep_compare('', '')$$);
CREATE FUNCTION sqlstate_of(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT * FROM ' || call;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT kind, sqlstate_of(call) AS sqlstate FROM kinds ORDER BY id;

-- After an error everything goes on as before, in the same transaction too.
BEGIN;
SAVEPOINT before;
SELECT * FROM near_duplicates('SELECT id / (id - 2), body FROM docs ORDER BY id');
ROLLBACK TO before;
SELECT id1, id2 FROM near_duplicates('SELECT id, body FROM docs');
COMMIT;

DROP TABLE docs, kinds;
DROP FUNCTION sqlstate_of;
