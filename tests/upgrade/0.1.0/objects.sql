-- Tables, indexes, generated columns, constraints, views and functions with every type and operator class. The inner
-- queries of stored queries name schemas, as they run with an empty search_path when they are restored.

CREATE TABLE documents (
    id bigint PRIMARY KEY,
    body text NOT NULL CHECK (edit_distance(body, 'forbidden') > 0),
    signature ctph GENERATED ALWAYS AS (ctph_signature(body)) STORED,
    hash text GENERATED ALWAYS AS (ssdeep_hash(body)) STORED,
    tokens integer GENERATED ALWAYS AS (cardinality(code_tokens(body))) STORED
);
INSERT INTO documents (id, body)
SELECT i, string_agg(md5((j * CASE WHEN i % 4 = 0 THEN i ELSE i - i % 4 END)::text) ||
                     CASE WHEN j = i % 29 THEN ' changed ' ELSE ' ' END, '' ORDER BY j)
FROM generate_series(1, 400) AS i, generate_series(1, 30) AS j GROUP BY i;

CREATE TABLE signatures (
    signature ctph NOT NULL,
    id bigint REFERENCES documents,
    others ctph[],
    first ctph DEFAULT ctph_signature('a text'),
    PRIMARY KEY (signature, id)
);
INSERT INTO signatures SELECT signature, id, ARRAY[signature, NULL] FROM documents;
CREATE INDEX signatures_hash ON signatures USING hash (signature);
CREATE INDEX documents_signature ON documents (signature);
CREATE INDEX documents_signature_descending ON documents (signature DESC NULLS LAST, id) WHERE id % 2 = 0;
CREATE INDEX documents_expression ON documents (ctph_signature(body));
CREATE INDEX documents_expression_hash ON documents USING hash (ctph_signature(body));

CREATE TABLE parts (signature ctph, id bigint) PARTITION BY HASH (signature);
CREATE TABLE part_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT signature, id FROM documents;

CREATE TABLE dictionaries (
    name text PRIMARY KEY,
    words trie,
    word_count bigint GENERATED ALWAYS AS ((trie_stats(words)).words) STORED,
    image bytea GENERATED ALWAYS AS (words::bytea) STORED
);
INSERT INTO dictionaries
SELECT 'front', trie_agg(word) FROM documents, string_to_table(body, ' ') AS word UNION ALL
SELECT 'xbw', trie_agg(word, 'xbw') FROM documents, string_to_table(body, ' ') AS word UNION ALL
SELECT 'letters', trie_agg(chr(i)) FROM generate_series(32, 1000) AS i UNION ALL
SELECT 'empty word', trie_agg('') UNION ALL
SELECT 'none', NULL;
CREATE TABLE several_dictionaries AS SELECT array_agg(words ORDER BY name) AS dictionaries FROM dictionaries;

CREATE TYPE pair AS (signature ctph, words trie);
CREATE DOMAIN some_dictionary AS trie CHECK ((trie_stats(value)).words > 0);
CREATE TABLE pairs AS SELECT row(signature, words)::pair AS pair, words::some_dictionary AS words
FROM documents, dictionaries WHERE id = 1 AND name = 'letters';

CREATE TABLE vectors AS SELECT i::bigint AS id, ARRAY[i * i % 17, i * 3 % 23, i % 5]::real[] AS place FROM generate_series(1, 100) AS i;
CREATE TABLE model AS
SELECT word, n AS count, ARRAY[n, 1, -n]::real[] AS vector, ARRAY[1, n, 0]::real[] AS output_vector
FROM unnest('{to,be,or,not,that,is,the,question}'::text[]) WITH ORDINALITY AS v(word, n);
CREATE TABLE sentences AS
SELECT i::bigint AS id, 'the ' || (ARRAY['red', 'black', 'blue'])[i % 3 + 1] || ' cat ' || (ARRAY['sees', 'eats'])[i % 2 + 1] ||
       ' the ' || (ARRAY['mouse', 'bird', 'fish', 'dog'])[i % 4 + 1] AS body
FROM generate_series(1, 120) AS i;

CREATE VIEW near AS SELECT * FROM near_duplicates('SELECT id, body FROM public.documents');
CREATE VIEW near_of_another_type AS
SELECT n.id1 || 'x' AS one, n.id2, n.edit_rate FROM near_duplicates('SELECT id::text, body FROM public.documents ORDER BY id', NULL::text) AS n;
CREATE VIEW running AS SELECT pid, phase FROM gputext_activity;
CREATE VIEW words_of_documents AS SELECT w.code, w.word FROM dictionaries, trie_words(words) AS w WHERE name = 'front';
CREATE VIEW shown AS SELECT name, trie_out(words)::text AS shown FROM dictionaries;
CREATE MATERIALIZED VIEW groups AS SELECT * FROM near_duplicate_groups('SELECT id, body FROM public.documents');
CREATE MATERIALIZED VIEW made AS SELECT trie_agg(word) AS words FROM documents, string_to_table(body, ' ') AS word;
CREATE FUNCTION code_of(word text) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT trie_lookup(words, word) FROM dictionaries WHERE name = ''front''';
CREATE FUNCTION nearest(id_wanted bigint) RETURNS bigint LANGUAGE sql
BEGIN ATOMIC
    SELECT item_id FROM gpu_knn('TABLE public.vectors', 'TABLE public.vectors', k => 1, exclude_self => true) WHERE query_id = id_wanted;
END;
CREATE OPERATOR CLASS signature_by_another_name FOR TYPE ctph USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 ctph_cmp(ctph, ctph);
