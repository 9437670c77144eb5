-- Calls of every function that 0.2.0 adds

\ir ../0.1.0/calls.sql

INSERT INTO calls VALUES
('near_duplicates_between', $$SELECT * FROM near_duplicates_between('SELECT id, body FROM documents WHERE id < 50', 'SELECT id, body FROM documents')$$),
('near_duplicates_between with ids of another type', $$SELECT * FROM near_duplicates_between('SELECT id::text, body FROM documents WHERE id < 50',
    'SELECT id::text, body FROM documents', NULL::text, 0.2, 'exact')$$),
('is_near_duplicate', $$SELECT a.id, b.id, is_near_duplicate(a.body, b.body, 0.2), is_near_duplicate(a.body, b.body), a.body ~= b.body,
    is_near_duplicate(a.body::bytea, b.body::bytea, 0.2), is_near_duplicate(a.body::bytea, b.body::bytea), a.body::bytea ~= b.body::bytea
    FROM documents a, documents b WHERE a.id < 20 AND b.id < 20$$),
('near_duplicate_query', $$SELECT id, body @~ condition, body @~ near_duplicate_query(body, 0.1), body::bytea @~ bytes_condition,
    is_near_duplicate(body, condition), is_near_duplicate(body::bytea, bytes_condition), condition::text FROM documents, conditions$$),
('index for near-duplicates', $$SELECT d.id FROM documents d WHERE d.body ~= (SELECT body FROM documents WHERE id = 44)$$),
('exclusion constraints', $$SELECT id, body FROM unlike$$),
('gputext_index_check', $$SELECT gputext_index_check(i.indexrelid::regclass, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'gputext'$$),
('views of near-duplicates by 0.2.0', $$SELECT n::text FROM near_a_condition n UNION ALL SELECT p::text FROM nearest_places p UNION ALL SELECT g::text FROM near_groups g
    UNION ALL SELECT is_near(a.body, b.body)::text FROM documents a, documents b WHERE a.id < 9 AND b.id < 9$$),
('groups_of', $$SELECT * FROM groups_of('SELECT id1, id2 FROM near_duplicates(''SELECT id, body FROM documents'')')$$),
('groups_of with ids of another type', $$SELECT * FROM groups_of($i$VALUES ('a', 'b'), ('b', 'c'), ('d', 'e')$i$, NULL::text)$$),
('linkage_model', $$SELECT * FROM linkage_model('SELECT id, body AS a, body AS b, body AS c FROM documents', '{"a: exact, edit_rate <= 0.2","b: edit_rate <= 0.2","c: edit_rate <= 0.2"}', term_frequencies => '{a}')$$),
('linkage_model_between with ids of another type', $$SELECT * FROM linkage_model_between('SELECT id::text, body AS a, body AS b, body AS c FROM documents WHERE id < 50',
    'SELECT id::text, body AS a, body AS b, body AS c FROM documents', '{"a: exact, edit_rate <= 0.2","b: edit_rate <= 0.2","c: edit_rate <= 0.2"}', NULL::text, keys => '{a}')$$),
('shared_passages', $$SELECT * FROM shared_passages('SELECT id, body FROM documents', 12)$$),
('shared_passages with ids of another type', $$SELECT * FROM shared_passages('SELECT id::text, body FROM documents', NULL::text, 12, max_pairs => 1000000)$$),
('shared_passages_between', $$SELECT * FROM shared_passages_between('SELECT id, body FROM documents WHERE id < 20', 'SELECT id, body FROM documents WHERE id >= 20', 12)$$),
('shared_passages_between with ids of another type', $$SELECT * FROM shared_passages_between('SELECT id::text, body FROM documents WHERE id < 20', 'SELECT id::text, body FROM documents WHERE id >= 20', NULL::text, 6, fold_blanks => true)$$),
('common_passages', $$SELECT * FROM common_passages('SELECT id, body FROM documents', 12)$$),
('common_passages with ids of another type', $$SELECT * FROM common_passages('SELECT id::text, body FROM documents', NULL::text, 12, 3)$$),
('passage_coverage', $$SELECT * FROM passage_coverage('SELECT id, body FROM documents', 12)$$),
('passage_coverage with ids of another type', $$SELECT * FROM passage_coverage('SELECT id::text, body FROM documents', NULL::text, 12, fold_case => true)$$),
('passage_coverage_between', $$SELECT * FROM passage_coverage_between('SELECT id, body FROM documents WHERE id < 20', 'SELECT id, body FROM documents WHERE id >= 20', 12)$$),
('passage_coverage_between with ids of another type', $$SELECT * FROM passage_coverage_between('SELECT id::text, body FROM documents WHERE id < 20', 'SELECT id::text, body FROM documents WHERE id >= 20', NULL::text, 12)$$),
('cut_passages', $$SELECT cut_passages(body, '{2,9}', '{3,4}') FROM documents$$),
('similar_sets', $$SELECT * FROM similar_sets('SELECT id, body FROM documents', 0.3, shingle => 1)$$),
('similar_sets with ids of another type', $$SELECT * FROM similar_sets('SELECT id::text, body FROM documents', NULL::text, 0.3, 'cosine', 4, 'characters')$$),
('similar_sets_between', $$SELECT * FROM similar_sets_between('SELECT id, body FROM documents WHERE id < 20', 'SELECT id, body FROM documents WHERE id >= 20', 0.3, shingle => 1)$$),
('similar_sets_between with ids of another type', $$SELECT * FROM similar_sets_between('SELECT id::text, body FROM documents WHERE id < 20', 'SELECT id::text, body FROM documents WHERE id >= 20', NULL::text, 0.3, 'containment', 1)$$),
('linked_records', $$SELECT * FROM linked_records('SELECT id, body AS a, body AS b, id % 3 AS part FROM documents', $i$SELECT * FROM (VALUES (NULL, NULL, 'prior', NULL, 0.01, 0.99),
    ('a', 1, 'edit_rate <= 0.2', false, 0.9, 0.01), ('a', 0, 'else', false, 0.1, 0.99)) AS m (field, level, condition, term_frequency, m, u)$i$, -30, keys => '{part}')$$),
('linked_records_between with ids of another type', $$SELECT * FROM linked_records_between('SELECT id::text, body AS a FROM documents WHERE id < 50', 'SELECT id::text, body AS a FROM documents',
    $i$SELECT * FROM (VALUES (NULL, NULL, 'prior', NULL, 0.01, 0.99), ('a', 1, 'edit_rate <= 0.2', false, 0.9, 0.01), ('a', 0, 'else', false, 0.1, 0.99))
    AS m (field, level, condition, term_frequency, m, u)$i$, NULL::text, -30, max_pairs => 50000)$$),
('gpu_knn with keys to exclude', $$SELECT * FROM gpu_knn('SELECT id, place, id % 3 FROM vectors', 'SELECT id, place, id % 3 FROM vectors', k => 3, exclude_key => true)$$),
('gpu_knn_within with keys to exclude', $$SELECT * FROM gpu_knn_within('SELECT id::text, place, id % 3 FROM vectors', 'SELECT id::text, place, id % 3 FROM vectors',
    NULL::text, 3, exclude_key => true, metric => 'euclidean')$$),
('knn_merge', $$SELECT * FROM knn_merge('SELECT * FROM gpu_knn(''TABLE vectors'', ''SELECT * FROM vectors WHERE id < 50'', k => 3)
    UNION ALL SELECT * FROM gpu_knn(''TABLE vectors'', ''SELECT * FROM vectors WHERE id >= 50'', k => 3)', 3)$$),
('knn_merge with ids of another type', $$SELECT * FROM knn_merge($i$VALUES ('q', 'a', 1, 0.5::float8), ('q', 'b', 1, 0.25)$i$, NULL::text, 1)$$),
-- It is for indexes of pgvector, which not every server has.
('knn_recall', $$SELECT error_of($i$SELECT * FROM knn_recall('documents_pkey', 'TABLE vectors', 3)$i$),
    error_of($i$SELECT * FROM knn_recall('documents_pkey', 'TABLE vectors', NULL::text, 3)$i$)$$),
('gpu_knn by BM25', $$SELECT * FROM gpu_knn('SELECT id, body FROM sentences WHERE id < 20', 'SELECT id, body FROM sentences', k => 3, exclude_key => false, metric => 'bm25', k1 => 1.5)$$),
('tfidf by BM25', $$SELECT * FROM tfidf('SELECT id, body FROM sentences', bm25 => true, config => 'simple')$$),
('tfidf_frequencies', $$SELECT * FROM tfidf_frequencies('SELECT id, body FROM sentences', config => 'simple')$$),
('tfidf_from_frequencies', $$SELECT * FROM tfidf_from_frequencies('SELECT id, body FROM sentences', 'SELECT * FROM tfidf_frequencies(''SELECT id, body FROM sentences'')')$$),
('operators of distances', $$SELECT a.place <-> b.place, a.place <=> b.place, a.place <#> b.place, a.place <+> b.place,
    a.place::float8[] <-> b.place::float8[], a.place::float8[] <=> b.place::float8[], a.place::float8[] <#> b.place::float8[], a.place::float8[] <+> b.place::float8[],
    euclidean_distance(a.place, b.place), cosine_distance(a.place, b.place), negative_inner_product(a.place, b.place), manhattan_distance(a.place, b.place)
    FROM vectors a, vectors b WHERE a.id < 9 AND b.id BETWEEN 9 AND 30$$),
('similarity of strings', $$SELECT jaro_similarity(a.body, b.body), jaro_winkler_similarity(a.body, b.body), osa_distance(a.body, b.body),
    damerau_levenshtein(a.body, b.body) FROM sentences a, sentences b WHERE a.id < 20 AND b.id < 20$$),
-- The metric trigram needs pg_trgm.
('gpu_knn on strings', $$SELECT metric, n.* FROM unnest('{edit_rate,levenshtein,osa,jaro,jaro_winkler}'::text[]) AS metric,
    gpu_knn('SELECT id, body FROM sentences WHERE id < 20', 'SELECT id, body FROM sentences', k => 3, metric => metric) AS n$$),
('trie_summary', $$SELECT name, trie_summary(words) FROM dictionaries$$),
('word_frequencies', $$SELECT * FROM word_frequencies('SELECT body FROM sentences')$$),
('word_similarity_from_counts', $$SELECT * FROM word_similarity_from_counts('SELECT * FROM word_cooccurrences(''SELECT body FROM sentences'', min_count => 1)')$$),
('word2vec_average', $$SELECT * FROM word2vec_average('SELECT 1, * FROM model UNION ALL SELECT 2, * FROM model')$$),
('gputext_resident', $$SELECT count(*) >= 0, gputext_evict('vectors') >= 0 FROM gputext_resident() UNION ALL SELECT count(*) >= 0, gputext_evict() >= 0 FROM gputext_resident$$),
('gpu_knn_distributed', $$SELECT * FROM gpu_knn_distributed('TABLE vectors', 'vectors', 'id', 'place', 3)$$),
('gpu_knn_within_distributed', $$SELECT * FROM gpu_knn_within_distributed('TABLE vectors', 'vectors', 'id', 'place', 0.1)$$),
('near_duplicates_distributed', $$SELECT * FROM near_duplicates_distributed('documents', 'id', 'body')$$);
