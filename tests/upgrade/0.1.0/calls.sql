-- Calls of every function of 0.1.0, on the tables of objects.sql, and an answer of each. Inner queries whose ids are not in
-- the order of their rows are sorted: 0.1.0 takes their rows as they come, and later versions in the order of the ids.

CREATE TABLE calls (name text PRIMARY KEY, query text);
INSERT INTO calls VALUES
('input and output of ctph', $$SELECT signature, signature::text::ctph = signature AS same FROM documents$$),
('binary form of ctph', $$SELECT ctph_send(signature) FROM documents$$),
('comparisons of ctph', $$SELECT a.id, b.id, a.signature < b.signature, a.signature <= b.signature, a.signature = b.signature,
    a.signature <> b.signature, a.signature >= b.signature, a.signature > b.signature,
    ctph_lt(a.signature, b.signature), ctph_le(a.signature, b.signature), ctph_eq(a.signature, b.signature),
    ctph_ne(a.signature, b.signature), ctph_ge(a.signature, b.signature), ctph_gt(a.signature, b.signature),
    ctph_cmp(a.signature, b.signature), edit_rate(a.signature, b.signature)
    FROM documents a, documents b WHERE a.id < 20 AND b.id < 20$$),
('hashes of ctph', $$SELECT ctph_hash(signature), ctph_hash_extended(signature, 1) FROM documents$$),
('ctph_signature', $$SELECT ctph_signature(body), ctph_signature(convert_to(body, 'UTF8')) FROM documents$$),
('generated columns of documents', $$SELECT id, signature, hash, tokens FROM documents$$),
('order of signatures', $$SELECT signature, row_number() OVER (ORDER BY signature, id) FROM documents$$),
('btree index', $$SELECT d.id, s.id FROM documents d JOIN signatures s ON s.signature = d.signature$$),
('hash index', $$SELECT id FROM signatures WHERE signature = (SELECT signature FROM documents WHERE id = 44)$$),
('groups of signatures', $$SELECT signature, count(*) FROM documents GROUP BY signature$$),
('partitions', $$SELECT tableoid::regclass, signature, id FROM parts$$),
('arrays of ctph', $$SELECT others, first FROM signatures$$),
('edit_distance', $$SELECT edit_distance(a.body, b.body), edit_distance(a.body, b.body, 90), edit_distance(a.body::bytea, b.body::bytea),
    edit_distance(a.body::bytea, b.body::bytea, 90), edit_rate(a.body, b.body), edit_rate(a.body::bytea, b.body::bytea)
    FROM documents a, documents b WHERE a.id < 6 AND b.id < 20$$),
('ssdeep', $$SELECT ssdeep_hash(a.body), ssdeep_hash(a.body::bytea), ssdeep_compare(a.hash, b.hash)
    FROM documents a, documents b WHERE a.id < 20 AND b.id < 20$$),
('near_duplicates', $$SELECT * FROM near_duplicates('SELECT id, body FROM documents')$$),
('near_duplicates by signatures', $$SELECT * FROM near_duplicates('SELECT id, body, signature FROM documents', 0.2, 'ctph')$$),
('near_duplicates with ids of another type', $$SELECT * FROM near_duplicates('SELECT id::text, body FROM documents ORDER BY id', NULL::text, mode => 'exact')$$),
('near_duplicate_groups', $$SELECT * FROM near_duplicate_groups('SELECT id, body FROM documents', threshold => 0.1)$$),
('near_duplicate_groups with ids of another type', $$SELECT * FROM near_duplicate_groups('SELECT id::numeric, body FROM documents', id_type => NULL::numeric)$$),
('views of near-duplicates', $$SELECT n::text FROM near n UNION ALL SELECT n::text FROM near_of_another_type n UNION ALL SELECT g::text FROM groups g$$),
('gpu_knn', $$SELECT * FROM gpu_knn('TABLE vectors', 'TABLE vectors', k => 3, metric => 'cosine', exclude_self => true)$$),
('gpu_knn with ids of another type', $$SELECT * FROM gpu_knn('SELECT id::text, place FROM vectors ORDER BY id', 'SELECT id::text, place FROM vectors ORDER BY id', NULL::text, k => 2)$$),
('gpu_knn on texts', $$SELECT * FROM gpu_knn('SELECT id, body FROM sentences', 'SELECT id, body FROM sentences', k => 3, config => 'english')$$),
('gpu_knn_within', $$SELECT * FROM gpu_knn_within('TABLE vectors', 'TABLE vectors', 3)$$),
('gpu_knn_within with ids of another type', $$SELECT * FROM gpu_knn_within('SELECT id::text, place FROM vectors ORDER BY id', 'SELECT id::text, place FROM vectors ORDER BY id', NULL::text, 3)$$),
('tfidf', $$SELECT * FROM tfidf('SELECT id, body FROM sentences', config => 'simple')$$),
('tfidf with ids of another type', $$SELECT * FROM tfidf('SELECT id::text, body FROM sentences', NULL::text, config => 'simple')$$),
('cosine_similarity', $$SELECT cosine_similarity('{1,2}'::real[], '{3,4}'::real[]), cosine_similarity('{1,2}'::integer[], '{3,4}'::integer[]),
    cosine_similarity('{1,2}'::numeric[], '{3,4}'::numeric[]), cosine_similarity('{1,2}'::float8[], '{3,4}'::float8[])$$),
('cosine_similarities', $$SELECT * FROM cosine_similarities('{1,2,3}', 'TABLE vectors')$$),
('cosine_similarities with ids of another type', $$SELECT * FROM cosine_similarities('{1,2,3}', 'SELECT id::text, place FROM vectors', NULL::text)$$),
('local_outlier_factor', $$SELECT * FROM local_outlier_factor('TABLE vectors', 5)$$),
('local_outlier_factor with ids of another type', $$SELECT * FROM local_outlier_factor('SELECT id::text, place FROM vectors ORDER BY id', NULL::text, 5)$$),
('k_means', $$SELECT * FROM k_means('SELECT * FROM vectors ORDER BY id', 4)$$),
('k_means with ids of another type', $$SELECT * FROM k_means('SELECT id::text, place FROM vectors ORDER BY id', NULL::text, 4)$$),
('k_means_centroids', $$SELECT * FROM k_means_centroids('SELECT * FROM vectors ORDER BY id', 4)$$),
('k_means_centroids with ids of another type', $$SELECT * FROM k_means_centroids('SELECT id::text, place FROM vectors ORDER BY id', NULL::text, 4)$$),
('trie_agg', $$SELECT trie_agg(word)::bytea, trie_agg(word, 'xbw')::bytea FROM documents, string_to_table(body, ' ') AS word$$),
('trie_stats', $$SELECT name, s.* FROM dictionaries, trie_stats(words) AS s$$),
('casts of tries', $$SELECT name, bytea(words), trie(image)::bytea = image, words::bytea::trie::bytea = image, trie_send(words) FROM dictionaries$$),
('generated columns of dictionaries', $$SELECT name, word_count, image FROM dictionaries$$),
('arrays, rows and domains of tries', $$SELECT (SELECT array_agg(d::bytea) FROM unnest(dictionaries) AS d), (pair).signature, (pair).words::bytea, words::bytea
    FROM several_dictionaries, pairs$$),
('trie_lookup', $$SELECT name, trie_lookup(words, word) FROM dictionaries, documents, string_to_table(body, ' ') AS word WHERE id < 9$$),
('trie_decode', $$SELECT name, trie_decode(words, word_count - 1) FROM dictionaries$$),
('trie_node', $$SELECT trie_node(words, word) FROM dictionaries, documents, string_to_table(body, ' ') AS word WHERE id < 9 AND name = 'xbw'$$),
('trie_prefix', $$SELECT name, p.*, r.* FROM dictionaries, trie_prefix(words, 'a', 5) AS p, trie_prefix_range(words, 'b') AS r$$),
('trie_prefixes_of', $$SELECT name, p.* FROM dictionaries, trie_prefixes_of(words, 'a text') AS p$$),
('trie_words', $$SELECT name, w.* FROM dictionaries, trie_words(words) AS w$$),
('trie_encode', $$SELECT e.* FROM dictionaries, trie_encode(words, 'SELECT id, word FROM documents, string_to_table(body, '' '') AS word') AS e WHERE name = 'front'$$),
('trie_encode with ids of another type', $$SELECT e.* FROM dictionaries, trie_encode(words, 'SELECT id::text, left(body, 32) FROM documents', NULL::text) AS e WHERE name = 'xbw'$$),
('trie_encode_documents', $$SELECT e.* FROM dictionaries, trie_encode_documents(words, 'SELECT id, body FROM documents') AS e WHERE name = 'front'$$),
('trie_encode_documents with ids of another type', $$SELECT e.* FROM dictionaries, trie_encode_documents(words, 'SELECT id::text, body FROM documents', NULL::text) AS e WHERE name = 'xbw'$$),
('views of tries', $$SELECT w.* FROM words_of_documents AS w UNION ALL SELECT w.* FROM made, trie_words(words) AS w$$),
('functions', $$SELECT code_of(word), nearest(id) FROM documents, string_to_table(body, ' ') AS word WHERE id < 9$$),
('word_similarity', $$SELECT * FROM word_similarity('SELECT body FROM sentences', min_count => 1)$$),
('word_similarity_pairs', $$SELECT * FROM word_similarity_pairs('SELECT body FROM sentences', min_count => 1, preset => 'thesis')$$),
('word_cooccurrences', $$SELECT * FROM word_cooccurrences('SELECT body FROM sentences', min_count => 1)$$),
('word_similarity_from', $$SELECT * FROM word_similarity_from('SELECT * FROM word_cooccurrences(''SELECT body FROM sentences'', min_count => 1)')$$),
('word2vec', $$SELECT * FROM word2vec('SELECT body FROM sentences ORDER BY id', dimensions => 8, min_count => 1, epochs => 2)$$),
('word_movers_distance', $$SELECT * FROM word_movers_distance('TABLE model', $i$VALUES (1::bigint, '{to,be}'::text[], '{the,question}'::text[])$i$)$$),
('word_movers_distance with ids of another type', $$SELECT * FROM word_movers_distance('TABLE model', $i$VALUES ('x', '{to,be}'::text[], '{that,is}'::text[])$i$, id_type => NULL::text)$$),
('sequence_probability', $$SELECT * FROM sequence_probability('TABLE model', $i$VALUES (1::bigint, '{to,be,or,not,to,be}'::text[])$i$)$$),
('sequence_probability with ids of another type', $$SELECT * FROM sequence_probability('TABLE model', $i$VALUES ('x', '{to,be}'::text[])$i$, NULL::text)$$),
('code_tokens', $$SELECT code_tokens('int f(int x) { return x + 1; } // one'), code_lines('int f(int x) { return x + 1; } // one')$$),
('gputext_devices', $$SELECT count(*) > 0 FROM gputext_devices()$$),
('gputext_activity', $$SELECT count(*) >= 0 FROM gputext_activity() UNION ALL SELECT count(*) >= 0 FROM gputext_activity UNION ALL SELECT count(*) >= 0 FROM running$$),
('gputext_stat', $$SELECT cpu_jobs + gpu_jobs > 0 FROM gputext_stat() UNION ALL SELECT cpu_jobs + gpu_jobs > 0 FROM gputext_stat$$);

-- The rows of each answer, and a digest of them in the order of their texts; for an error its SQLSTATE and message.
CREATE FUNCTION answers() RETURNS TABLE (name text, rows bigint, digest text) LANGUAGE plpgsql AS $function$
DECLARE
    call record;
BEGIN
    FOR call IN SELECT * FROM calls ORDER BY calls.name LOOP
        name := call.name;
        BEGIN
            EXECUTE format($$SELECT count(*), md5(string_agg(r::text, E'\n' ORDER BY r::text COLLATE "C")) FROM (%s) AS r$$, call.query)
            INTO rows, digest;
        EXCEPTION WHEN OTHERS THEN
            rows := NULL;
            digest := SQLSTATE || ': ' || SQLERRM;
        END;
        RETURN NEXT;
    END LOOP;
END $function$;

-- Functions of the extension that none of the calls names, but for those that SQL cannot call
CREATE VIEW uncalled AS
SELECT p.oid::regprocedure AS function
FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'gputext'
WHERE NOT proargtypes::oid[] && ARRAY['internal'::regtype, 'cstring'::regtype]::oid[] AND prorettype <> 'cstring'::regtype
  AND NOT EXISTS (SELECT FROM calls WHERE query ~ ('\m' || proname || '\M'));
