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
('gpu_knn with keys to exclude', $$SELECT * FROM gpu_knn('SELECT id, place, id % 3 FROM vectors', 'SELECT id, place, id % 3 FROM vectors', k => 3, exclude_key => true)$$),
('gpu_knn_within with keys to exclude', $$SELECT * FROM gpu_knn_within('SELECT id::text, place, id % 3 FROM vectors', 'SELECT id::text, place, id % 3 FROM vectors',
    NULL::text, 3, exclude_key => true, metric => 'euclidean')$$),
('knn_merge', $$SELECT * FROM knn_merge('SELECT * FROM gpu_knn(''TABLE vectors'', ''SELECT * FROM vectors WHERE id < 50'', k => 3)
    UNION ALL SELECT * FROM gpu_knn(''TABLE vectors'', ''SELECT * FROM vectors WHERE id >= 50'', k => 3)', 3)$$),
('knn_merge with ids of another type', $$SELECT * FROM knn_merge($i$VALUES ('q', 'a', 1, 0.5::float8), ('q', 'b', 1, 0.25)$i$, NULL::text, 1)$$),
-- It is for indexes of pgvector, which not every server has.
('knn_recall', $$SELECT error_of($i$SELECT * FROM knn_recall('documents_pkey', 'TABLE vectors', 3)$i$),
    error_of($i$SELECT * FROM knn_recall('documents_pkey', 'TABLE vectors', NULL::text, 3)$i$)$$),
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
