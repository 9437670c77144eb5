-- A call of every function of the extension in schema `target`, as catalogue and arguments' names and types say, and the places where
-- its types, operators, views and the index are used.

CREATE TABLE checks.documents (id bigint, body text);
INSERT INTO checks.documents VALUES (1, 'the first of the texts that are here'), (2, 'the first of the texts that are there'), (3, 'another one'),
    (4, repeat('to be or not to be ', 9));
CREATE TABLE checks.records AS SELECT id, body AS a, body AS b, body AS c, body AS d FROM checks.documents;
CREATE TABLE checks.vectors (id bigint, place real[]);
INSERT INTO checks.vectors VALUES (1, '{1,0}'), (2, '{1,1}'), (3, '{0,1}'), (4, '{2,3}');
CREATE TABLE checks.model (word text, count bigint, vector real[], output_vector real[]);
INSERT INTO checks.model VALUES ('first', 2, '{1,0}', '{1,1}'), ('texts', 1, '{0,1}', '{1,2}');
CREATE INDEX documents_index ON checks.documents USING gputext (body target.text_near_duplicate_ops);

-- The value of an argument: of the function's argument of this name, of any of the name, or of any of the type
CREATE TABLE checks.arguments (function text, argument text, type regtype, value text);
INSERT INTO checks.arguments (function, argument, value) VALUES
    (NULL, 'docs', 'SELECT id, body FROM checks.documents'), (NULL, 'new_docs', 'SELECT id, body FROM checks.documents'),
    (NULL, 'old_docs', 'SELECT id, body FROM checks.documents'), (NULL, 'items', 'SELECT id, place FROM checks.vectors'),
    (NULL, 'queries', 'SELECT id, place FROM checks.vectors'), (NULL, 'inner_query', 'SELECT id, body FROM checks.documents'),
    (NULL, 'model', 'SELECT * FROM checks.model'), (NULL, 'models', 'SELECT 1, * FROM checks.model'),
    (NULL, 'sequences', 'SELECT id, ''{first,texts}''::pg_catalog.text[] FROM checks.vectors'),
    (NULL, 'partial_answers', 'SELECT id, id, 1, 0::pg_catalog.float8 FROM checks.vectors'),
    (NULL, 'cooccurrences', 'SELECT * FROM target.word_cooccurrences(''SELECT body FROM checks.documents'', min_count => 1)'),
    (NULL, 'frequencies', 'SELECT * FROM target.tfidf_frequencies(''SELECT id, body FROM checks.documents'', config => ''pg_catalog.simple'')'),
    ('groups_of', 'pairs', 'SELECT id, 1::pg_catalog.int8 FROM checks.vectors'),
    ('word_movers_distance', 'pairs', 'SELECT id, ''{first}''::pg_catalog.text[], ''{texts}''::pg_catalog.text[] FROM checks.vectors'),
    ('trie_encode', 'words', 'SELECT id, body FROM checks.documents'),
    ('word_similarity_from_counts', 'words', 'SELECT * FROM target.word_frequencies(''SELECT body FROM checks.documents'')'),
    ('tfidf', 'items', 'SELECT id, body FROM checks.documents'), ('tfidf_from_frequencies', 'items', 'SELECT id, body FROM checks.documents'),
    ('tfidf_frequencies', 'items', 'SELECT id, body FROM checks.documents'), ('trie_decode', 'code', '0'),
    ('tfidf', 'bm25', 'true'), ('tfidf_from_frequencies', 'bm25', 'true'), (NULL, 'k1', '1.2'),
    ('ssdeep_compare', NULL, '3:abc:abc'), ('trie', 'image', (SELECT target.trie_agg(word) FROM unnest('{a,the,text}'::text[]) AS word)::bytea::text),
    (NULL, 'sets', 'SELECT id, body FROM checks.documents'), (NULL, 'new_sets', 'SELECT id, body FROM checks.documents'),
    (NULL, 'old_sets', 'SELECT id, body FROM checks.documents'), (NULL, 'records', 'SELECT * FROM checks.records'), (NULL, 'records1', 'SELECT * FROM checks.records'), (NULL, 'records2', 'SELECT * FROM checks.records'),
    (NULL, 'comparisons', '{"a: osa <= 3","b: osa <= 3","c: osa <= 3","d: osa <= 3"}'),
    ('linked_records', 'model', 'SELECT * FROM target.linkage_model(''SELECT * FROM checks.records'', ''{"a: osa <= 3","b: osa <= 3","c: osa <= 3"}'')'),
    ('linked_records_between', 'model', 'SELECT * FROM target.linkage_model(''SELECT * FROM checks.records'', ''{"a: osa <= 3","b: osa <= 3","c: osa <= 3"}'')'),
    ('near_duplicates_distributed', 'docs', 'checks.documents'), ('near_duplicates_distributed', 'body', 'body');
INSERT INTO checks.arguments (function, argument, value)
SELECT f, 'docs', 'SELECT body FROM checks.documents'
FROM unnest('{word_similarity,word_similarity_pairs,word_cooccurrences,word_frequencies,word2vec}'::text[]) AS f;
INSERT INTO checks.arguments (function, argument, value)
SELECT f, 'items', 'checks.vectors' FROM unnest('{gpu_knn_distributed,gpu_knn_within_distributed,gputext_knn_distributed,gputext_partitions,gputext_partition_query,gputext_check_table,gputext_is_citus_table,gputext_citus_answers}'::text[]) AS f
UNION ALL SELECT f, 'value', 'place' FROM unnest('{gpu_knn_distributed,gpu_knn_within_distributed,gputext_knn_distributed}'::text[]) AS f
UNION ALL SELECT f, 'b', '0.75' FROM unnest('{gpu_knn,gpu_knn_within,gpu_knn_distributed,gpu_knn_within_distributed,gputext_knn_distributed}'::text[]) AS f;
INSERT INTO checks.arguments (type, value) VALUES
    ('text', 'a text'), ('bytea', 'a text'), ('float8', '0.1'), ('float4[]', '{1,2}'), ('float8[]', '{1,2}'), ('int4[]', '{1,2}'),
    ('numeric[]', '{1,2}'), ('int4', '2'), ('int8', '1'), ('bool', 'false'), ('name', 'id'), ('oid', '25'), ('text[]', '{id}'), ('name[]', '{id}'),
    ('regconfig', 'pg_catalog.simple'), ('regclass', 'checks.documents_index'), ('target.ctph', target.ctph_signature('a text')::text),
    ('target.trie', (SELECT target.trie_agg(word, 'xbw') FROM unnest('{a,the,text}'::text[]) AS word)::text);

CREATE TABLE checks.calls AS
SELECT p.oid::regprocedure AS function, format('SELECT * FROM %I.%I(%s) AS r', nspname, proname,
    (SELECT string_agg(CASE WHEN proargnames[n] <> '' THEN format('%I => ', proargnames[n]) ELSE '' END ||
                       CASE WHEN t = 'anyelement'::regtype THEN 'NULL::pg_catalog.int8'
                            WHEN t = 'target.near_duplicate_query'::regtype
                            THEN format('target.near_duplicate_query(''a text''::pg_catalog.%s, 0.1::pg_catalog.float8)', CASE WHEN proargtypes[0] = 'bytea'::regtype THEN 'bytea' ELSE 'text' END)
                            ELSE format('%L::%I.%I', (SELECT value FROM checks.arguments AS a
                                                      WHERE (a.function IS NULL OR a.function = proname) AND (a.argument IS NULL OR a.argument = proargnames[n])
                                                        AND (a.type IS NULL OR a.type = t)
                                                      ORDER BY a.function IS NULL, a.argument IS NULL LIMIT 1),
                                        typnamespace::regnamespace, typname) END, ', ' ORDER BY n)
     FROM unnest(proargtypes) WITH ORDINALITY AS u (t, n) JOIN pg_type AS y ON y.oid = t WHERE n <= pronargs - pronargdefaults)) AS statement
FROM pg_proc AS p JOIN pg_namespace AS s ON s.oid = pronamespace JOIN pg_depend AS d ON (classid, objid, deptype) = ('pg_proc'::regclass, p.oid, 'e')
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gputext') AND prokind = 'f'
  AND NOT proargtypes::oid[] && ARRAY['internal'::regtype, 'cstring'::regtype]::oid[];
INSERT INTO checks.calls (statement) VALUES
    ('SELECT a.body OPERATOR(target.~=) b.body FROM checks.documents AS a, checks.documents AS b'),
    ('SELECT id FROM checks.documents WHERE target.is_near_duplicate(body, ''another one'', 0.1)'),
    ('SELECT v.id, w.id FROM checks.vectors AS v, LATERAL (SELECT id FROM checks.vectors AS w ORDER BY w.place OPERATOR(target.<->) v.place LIMIT 1) AS w'),
    ('SELECT DISTINCT target.ctph_signature(body) FROM checks.documents ORDER BY 1'),
    ('SELECT target.trie_agg(body)::pg_catalog.text FROM checks.documents'),
    ('SELECT * FROM target.gputext_activity'), ('SELECT * FROM target.gputext_stat'), ('SELECT * FROM target.gputext_resident');

-- By the search_path of its caller
CREATE TABLE checks.failed (function regprocedure, state text, message text);
CREATE PROCEDURE checks.call_all() LANGUAGE plpgsql AS $$
DECLARE
    one checks.calls;
BEGIN
    FOR one IN TABLE checks.calls LOOP
        BEGIN
            EXECUTE one.statement;
        EXCEPTION WHEN OTHERS THEN
            INSERT INTO checks.failed VALUES (one.function, SQLSTATE, SQLERRM);
        END;
    END LOOP;
END $$;

-- From now on, plant() makes twins of the extension's own functions and operators.
CREATE PROCEDURE checks.choose_own() LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    TRUNCATE checks.function_twins, checks.operator_twins, checks.type_twins, checks.relation_twins;
    INSERT INTO checks.function_twins
    SELECT DISTINCT ON (proname, types) proname, types, prorettype, proretset
    FROM pg_proc AS p JOIN pg_depend AS d ON (classid, objid, deptype) = ('pg_proc'::regclass, p.oid, 'e'), checks.preferred(ARRAY(SELECT unnest(proargtypes))) AS types
    WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gputext') AND checks.can_be_written(types);
    INSERT INTO checks.operator_twins
    SELECT oprname, ARRAY[oprleft, oprright], oprresult
    FROM pg_operator AS o JOIN pg_depend AS d ON (classid, objid, deptype) = ('pg_operator'::regclass, o.oid, 'e')
    WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gputext');
$$;
