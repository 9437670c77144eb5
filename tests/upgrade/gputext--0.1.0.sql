\echo Use "CREATE EXTENSION gputext" to load this file. \quit

-- Type ctph: context-triggered piecewise hashes of documents

CREATE TYPE ctph;

CREATE FUNCTION ctph_in(cstring) RETURNS ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_in(cstring) IS 'I/O';

CREATE FUNCTION ctph_out(ctph) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_ctph_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_out(ctph) IS 'I/O';

CREATE FUNCTION ctph_recv(internal) RETURNS ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_recv(internal) IS 'I/O';

CREATE FUNCTION ctph_send(ctph) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_ctph_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_send(ctph) IS 'I/O';

CREATE TYPE ctph (
    INPUT = ctph_in,
    OUTPUT = ctph_out,
    RECEIVE = ctph_recv,
    SEND = ctph_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = extended
);
COMMENT ON TYPE ctph IS 'context-triggered piecewise hash of a document: block size:letters:letters at twice the block size';

CREATE FUNCTION ctph_signature(document text, max_length integer DEFAULT 100) RETURNS ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_signature' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_signature(text, integer) IS 'signature of a document''s bytes, at most max_length letters at its block size';

CREATE FUNCTION ctph_signature(document bytea, max_length integer DEFAULT 100) RETURNS ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_signature' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_signature(bytea, integer) IS 'signature of a document''s bytes, at most max_length letters at its block size';

CREATE FUNCTION ctph_eq(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_eq(ctph, ctph) IS 'implementation of = operator';

CREATE FUNCTION ctph_ne(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_ne(ctph, ctph) IS 'implementation of <> operator';

CREATE FUNCTION ctph_lt(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_lt(ctph, ctph) IS 'implementation of < operator';

CREATE FUNCTION ctph_le(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_le(ctph, ctph) IS 'implementation of <= operator';

CREATE FUNCTION ctph_gt(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_gt(ctph, ctph) IS 'implementation of > operator';

CREATE FUNCTION ctph_ge(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_ge(ctph, ctph) IS 'implementation of >= operator';

CREATE FUNCTION ctph_cmp(ctph, ctph) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_ctph_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_cmp(ctph, ctph) IS 'less-equal-greater';

CREATE FUNCTION ctph_hash(ctph) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_ctph_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_hash(ctph) IS 'hash';

CREATE FUNCTION ctph_hash_extended(ctph, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_ctph_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_hash_extended(ctph, bigint) IS 'hash';

CREATE OPERATOR = (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel,
    HASHES, MERGES
);
COMMENT ON OPERATOR = (ctph, ctph) IS 'equal';

CREATE OPERATOR <> (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_ne,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
COMMENT ON OPERATOR <> (ctph, ctph) IS 'not equal';

CREATE OPERATOR < (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_lt,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
COMMENT ON OPERATOR < (ctph, ctph) IS 'less than: by block size, then by letters';

CREATE OPERATOR <= (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_le,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
COMMENT ON OPERATOR <= (ctph, ctph) IS 'less than or equal: by block size, then by letters';

CREATE OPERATOR > (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_gt,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
COMMENT ON OPERATOR > (ctph, ctph) IS 'greater than: by block size, then by letters';

CREATE OPERATOR >= (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_ge,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel
);
COMMENT ON OPERATOR >= (ctph, ctph) IS 'greater than or equal: by block size, then by letters';

CREATE OPERATOR CLASS ctph_ops DEFAULT FOR TYPE ctph USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 ctph_cmp(ctph, ctph);
COMMENT ON OPERATOR CLASS ctph_ops USING btree IS 'signatures by block size, then by letters';
COMMENT ON OPERATOR FAMILY ctph_ops USING btree IS 'signatures by block size, then by letters';

CREATE OPERATOR CLASS ctph_hash_ops DEFAULT FOR TYPE ctph USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 ctph_hash(ctph),
    FUNCTION 2 ctph_hash_extended(ctph, bigint);
COMMENT ON OPERATOR CLASS ctph_hash_ops USING hash IS 'equality of signatures';
COMMENT ON OPERATOR FAMILY ctph_hash_ops USING hash IS 'equality of signatures';

-- Edit distances and rates

CREATE FUNCTION edit_distance(a text, b text) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_edit_distance_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION edit_distance(text, text) IS 'Levenshtein distance in characters';

CREATE FUNCTION edit_distance(a text, b text, max integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_edit_distance_text_max' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION edit_distance(text, text, integer) IS 'Levenshtein distance in characters, or max + 1 if it is above max';

CREATE FUNCTION edit_distance(a bytea, b bytea) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_edit_distance_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION edit_distance(bytea, bytea) IS 'Levenshtein distance in bytes';

CREATE FUNCTION edit_distance(a bytea, b bytea, max integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_edit_distance_bytea_max' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION edit_distance(bytea, bytea, integer) IS 'Levenshtein distance in bytes, or max + 1 if it is above max';

CREATE FUNCTION edit_rate(a text, b text) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_edit_rate_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION edit_rate(text, text) IS 'edit distance divided by the sum of both lengths, in characters';

CREATE FUNCTION edit_rate(a bytea, b bytea) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_edit_rate_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION edit_rate(bytea, bytea) IS 'edit distance divided by the sum of both lengths, in bytes';

CREATE FUNCTION edit_rate(a ctph, b ctph) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_edit_rate_ctph' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION edit_rate(ctph, ctph) IS 'smallest edit rate of parts with the same block size, 1 if there are none';

-- Fuzzy hashes as the program ssdeep computes them

CREATE FUNCTION ssdeep_hash(document text) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_ssdeep_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION ssdeep_hash(text) IS 'fuzzy hash of a document''s bytes, as ssdeep 2.14 computes it';

CREATE FUNCTION ssdeep_hash(document bytea) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_ssdeep_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION ssdeep_hash(bytea) IS 'fuzzy hash of a document''s bytes, as ssdeep 2.14 computes it';

CREATE FUNCTION ssdeep_compare(a text, b text) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_ssdeep_compare' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ssdeep_compare(text, text) IS 'similarity of two fuzzy hashes, 0 to 100, as ssdeep 2.14 scores it';

-- Near-duplicate documents
--
-- Each function comes twice: with ids of type bigint, and with ids of the type of id_type, which
-- follows the inner query. PostgreSQL tells the type of a result column from the arguments as they
-- are written, and would not find it behind arguments that are left out. gputext_id_type_support
-- raises an error that says so when the planner meets a call with id_type elsewhere.

CREATE FUNCTION gputext_id_type_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_id_type_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_id_type_support(internal) IS 'planner support: checks the place of the argument id_type';

-- The functions for ids of type bigint have a parameter id_type, too, for a literal that is written
-- there: PostgreSQL prefers a type of the string category for it, and finds none for the other
-- function. They refuse all but NULL. No other type converts to this one, so that values of any
-- type find the other function.

CREATE TYPE gputext_type_name;

CREATE FUNCTION gputext_type_name_in(cstring) RETURNS gputext_type_name
    AS 'textin' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_type_name_in(cstring) IS 'I/O';

CREATE FUNCTION gputext_type_name_out(gputext_type_name) RETURNS cstring
    AS 'textout' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_type_name_out(gputext_type_name) IS 'I/O';

CREATE TYPE gputext_type_name (
    INPUT = gputext_type_name_in,
    OUTPUT = gputext_type_name_out,
    LIKE = text,
    CATEGORY = 'S'
);
COMMENT ON TYPE gputext_type_name IS 'the name of a type in place of a value of it, which the argument id_type refuses';

CREATE FUNCTION near_duplicates(
    docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION near_duplicates(text, double precision, text, integer, gputext_type_name) IS
    'pairs of documents of an inner query with an edit rate of at most the threshold';

CREATE FUNCTION near_duplicates(
    docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100
) RETURNS TABLE (id1 anyelement, id2 anyelement, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION near_duplicates(text, anyelement, double precision, text, integer) IS
    'pairs of documents of an inner query with an edit rate of at most the threshold, ids of the type of id_type';

CREATE FUNCTION near_duplicate_groups(
    docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, group_id bigint, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_groups' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION near_duplicate_groups(text, double precision, text, integer, gputext_type_name) IS
    'the group of each document of an inner query, near-duplicates being in one group';

CREATE FUNCTION near_duplicate_groups(
    docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100
) RETURNS TABLE (id anyelement, group_id anyelement, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_groups_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION near_duplicate_groups(text, anyelement, double precision, text, integer) IS
    'the group of each document of an inner query, near-duplicates being in one group, ids of the type of id_type';

-- Nearest neighbours
--
-- As for near-duplicates, each function comes with ids of type bigint, and with ids of the type of
-- id_type, which follows the inner queries. What the inner queries give decides what is compared:
-- vectors, texts or weights of terms. config is for texts, min_document_frequency for texts and
-- weights.

CREATE FUNCTION gpu_knn(
    queries text,
    items text,
    k integer,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION gpu_knn(text, text, integer, text, boolean, regconfig, integer, gputext_type_name) IS
    'the k nearest items of every query, exactly, both given by inner queries';

CREATE FUNCTION gpu_knn(
    queries text,
    items text,
    id_type anyelement,
    k integer,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION gpu_knn(text, text, anyelement, integer, text, boolean, regconfig, integer) IS
    'the k nearest items of every query, exactly, both given by inner queries, ids of the type of id_type';

CREATE FUNCTION gpu_knn_within(
    queries text,
    items text,
    radius double precision,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION gpu_knn_within(text, text, double precision, text, boolean, regconfig, integer, gputext_type_name) IS
    'all items within a distance of every query, nearest first, both given by inner queries';

CREATE FUNCTION gpu_knn_within(
    queries text,
    items text,
    id_type anyelement,
    radius double precision,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION gpu_knn_within(text, text, anyelement, double precision, text, boolean, regconfig, integer) IS
    'all items within a distance of every query, nearest first, both given by inner queries, ids of the type of id_type';

-- Weights of the terms of texts (tf-idf)

CREATE FUNCTION tfidf(
    items text,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION tfidf(text, regconfig, integer, gputext_type_name) IS
    'terms of every text of an inner query and their tf-idf weights';

CREATE FUNCTION tfidf(
    items text,
    id_type anyelement,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION tfidf(text, anyelement, regconfig, integer) IS
    'terms of every text of an inner query and their tf-idf weights, ids of the type of id_type';

-- Cosine similarity

CREATE FUNCTION cosine_similarity(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION cosine_similarity(real[], real[]) IS
    'cosine of the angle between two vectors, NULL when either is all zeros';

CREATE FUNCTION cosine_similarity(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION cosine_similarity(double precision[], double precision[]) IS
    'cosine of the angle between two vectors, NULL when either is all zeros';

CREATE FUNCTION cosine_similarity(a integer[], b integer[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION cosine_similarity(integer[], integer[]) IS
    'cosine of the angle between two vectors, NULL when either is all zeros';

-- For literals: ARRAY[0.5, 1] is of type numeric[].
CREATE FUNCTION cosine_similarity(a numeric[], b numeric[]) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1000
    RETURN cosine_similarity(a::double precision[], b::double precision[]);
COMMENT ON FUNCTION cosine_similarity(numeric[], numeric[]) IS
    'cosine of the angle between two vectors as double precision[], NULL when either is all zeros';

CREATE FUNCTION cosine_similarities(query double precision[], items text, id_type gputext_type_name DEFAULT NULL)
    RETURNS TABLE (id bigint, similarity double precision)
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarities' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION cosine_similarities(double precision[], text, gputext_type_name) IS
    'cosine similarity of a vector and each item of an inner query, NULL when either is all zeros';

CREATE FUNCTION cosine_similarities(query double precision[], items text, id_type anyelement)
    RETURNS TABLE (id anyelement, similarity double precision)
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarities_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION cosine_similarities(double precision[], text, anyelement) IS
    'cosine similarity of a vector and each item of an inner query, NULL when either is all zeros, ids of the type of id_type';

-- Local outlier factors

CREATE FUNCTION local_outlier_factor(
    items text,
    k integer,
    metric text DEFAULT 'euclidean',
    ties text DEFAULT 'sklearn',
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, lof double precision)
    AS 'MODULE_PATHNAME', 'gputext_local_outlier_factor' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION local_outlier_factor(text, integer, text, text, gputext_type_name) IS
    'local outlier factor (LOF) of each item of an inner query: mean density at its k nearest neighbours over its own';

CREATE FUNCTION local_outlier_factor(
    items text,
    id_type anyelement,
    k integer,
    metric text DEFAULT 'euclidean',
    ties text DEFAULT 'sklearn'
) RETURNS TABLE (id anyelement, lof double precision)
    AS 'MODULE_PATHNAME', 'gputext_local_outlier_factor_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION local_outlier_factor(text, anyelement, integer, text, text) IS
    'local outlier factor (LOF) of each item of an inner query: mean density at its k nearest neighbours over its own, ids of the type of id_type';

-- k-means

CREATE FUNCTION k_means(
    items text,
    k integer,
    metric text DEFAULT 'euclidean',
    seed bigint DEFAULT 1,
    iterations integer DEFAULT 20,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, cluster integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_k_means' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION k_means(text, integer, text, bigint, integer, gputext_type_name) IS
    'cluster of each item of an inner query, 1 to k, by k-means, and its distance from the centroid';

CREATE FUNCTION k_means(
    items text,
    id_type anyelement,
    k integer,
    metric text DEFAULT 'euclidean',
    seed bigint DEFAULT 1,
    iterations integer DEFAULT 20
) RETURNS TABLE (id anyelement, cluster integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_k_means_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION k_means(text, anyelement, integer, text, bigint, integer) IS
    'cluster of each item of an inner query, 1 to k, by k-means, and its distance from the centroid, ids of the type of id_type';

CREATE FUNCTION k_means_centroids(
    items text,
    k integer,
    metric text DEFAULT 'euclidean',
    seed bigint DEFAULT 1,
    iterations integer DEFAULT 20,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (cluster integer, size bigint, centroid real[])
    AS 'MODULE_PATHNAME', 'gputext_k_means_centroids' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100;
COMMENT ON FUNCTION k_means_centroids(text, integer, text, bigint, integer, gputext_type_name) IS
    'size and centroid of each cluster of the items of an inner query, by k-means';

CREATE FUNCTION k_means_centroids(
    items text,
    id_type anyelement,
    k integer,
    metric text DEFAULT 'euclidean',
    seed bigint DEFAULT 1,
    iterations integer DEFAULT 20
) RETURNS TABLE (cluster integer, size bigint, centroid real[])
    AS 'MODULE_PATHNAME', 'gputext_k_means_centroids_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION k_means_centroids(text, anyelement, integer, text, bigint, integer) IS
    'size and centroid of each cluster of the items of an inner query, by k-means, ids of the type of id_type';

-- Type trie: dictionaries of words

CREATE TYPE trie;

CREATE FUNCTION trie_in(cstring) RETURNS trie
    AS 'MODULE_PATHNAME', 'gputext_trie_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_in(cstring) IS 'I/O';

CREATE FUNCTION trie_out(trie) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_trie_out' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_out(trie) IS 'I/O';

CREATE FUNCTION trie_recv(internal) RETURNS trie
    AS 'MODULE_PATHNAME', 'gputext_trie_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_recv(internal) IS 'I/O';

CREATE FUNCTION trie_send(trie) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_trie_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_send(trie) IS 'I/O';

-- Stored as it is: it is packed already, and unpacked its summary can be read from its first bytes.
CREATE TYPE trie (
    INPUT = trie_in,
    OUTPUT = trie_out,
    RECEIVE = trie_recv,
    SEND = trie_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = external
);
COMMENT ON TYPE trie IS 'immutable dictionary: words and their codes, which are 0, 1, ... in the byte order of the words';

CREATE FUNCTION bytea(dictionary trie) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_trie_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bytea(trie) IS 'the bytes of a dictionary';

CREATE FUNCTION trie(image bytea) RETURNS trie
    AS 'MODULE_PATHNAME', 'gputext_trie_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000;
COMMENT ON FUNCTION trie(bytea) IS 'dictionary from its bytes, all of which are checked';

CREATE CAST (trie AS bytea) WITH FUNCTION bytea(trie);
COMMENT ON CAST (trie AS bytea) IS 'the bytes of a dictionary';

CREATE CAST (bytea AS trie) WITH FUNCTION trie(bytea);
COMMENT ON CAST (bytea AS trie) IS 'dictionary from its bytes, all of which are checked';

CREATE FUNCTION trie_agg_transition(internal, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION trie_agg_transition(internal, text) IS 'transition function of trie_agg';

CREATE FUNCTION trie_agg_final(internal) RETURNS trie
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000000;
COMMENT ON FUNCTION trie_agg_final(internal) IS 'final function of trie_agg';

CREATE AGGREGATE trie_agg(word text) (
    SFUNC = trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE trie_agg(text) IS 'dictionary of all different words that are not null, NULL when there are none';

CREATE FUNCTION trie_agg_transition(internal, text, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION trie_agg_transition(internal, text, text) IS 'transition function of trie_agg with a structure';

CREATE AGGREGATE trie_agg(word text, structure text) (
    SFUNC = trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE trie_agg(text, text) IS
    'dictionary of all different words that are not null, NULL when there are none, of the structure front or xbw';

CREATE FUNCTION trie_stats(
    dictionary trie,
    OUT structure text,
    OUT words bigint,
    OUT bytes bigint,
    OUT bits_per_word double precision,
    OUT alphabet integer,
    OUT longest_word bigint
) RETURNS record
    AS 'MODULE_PATHNAME', 'gputext_trie_stats' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_stats(trie) IS
    'statistics of a dictionary: structure, words, bytes, bits per word, different byte values in words, bytes of the longest word';

CREATE FUNCTION trie_lookup(dictionary trie, word text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_trie_lookup' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION trie_lookup(trie, text) IS 'code of a word, NULL when the dictionary does not have it';

CREATE FUNCTION trie_decode(dictionary trie, code bigint) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_trie_decode' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION trie_decode(trie, bigint) IS 'word of a code';

CREATE FUNCTION trie_node(dictionary trie, word text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_trie_node' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION trie_node(trie, text) IS
    'number of the node in which a word ends, in the order of all prefixes of words read backwards, NULL when the dictionary does not have it; for the structure xbw';

CREATE FUNCTION trie_prefix_range(dictionary trie, prefix text, OUT first bigint, OUT last bigint) RETURNS record
    AS 'MODULE_PATHNAME', 'gputext_trie_prefix_range' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION trie_prefix_range(trie, text) IS
    'first and last code of the words with a prefix, both NULL when there are none';

CREATE FUNCTION trie_prefix(dictionary trie, prefix text, max integer DEFAULT NULL)
    RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_prefix' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 ROWS 100;
COMMENT ON FUNCTION trie_prefix(trie, text, integer) IS
    'words with a prefix in the order of their codes, at most max of them';

CREATE FUNCTION trie_prefixes_of(dictionary trie, document text) RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_prefixes_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 ROWS 5;
COMMENT ON FUNCTION trie_prefixes_of(trie, text) IS 'words of a dictionary that a text begins with, the shortest first';

CREATE FUNCTION trie_words(dictionary trie) RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_words' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000 ROWS 100000;
COMMENT ON FUNCTION trie_words(trie) IS 'all words of a dictionary in the order of their codes';

-- As for near-duplicates, each function comes with ids of type bigint, and with ids of the type of
-- id_type, which follows the inner query.

CREATE FUNCTION trie_encode(dictionary trie, words text, id_type gputext_type_name DEFAULT NULL) RETURNS TABLE (id bigint, code bigint)
    AS 'MODULE_PATHNAME', 'gputext_trie_encode' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION trie_encode(trie, text, gputext_type_name) IS
    'code of every word of an inner query, NULL when the dictionary does not have it';

CREATE FUNCTION trie_encode(dictionary trie, words text, id_type anyelement)
    RETURNS TABLE (id anyelement, code bigint)
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION trie_encode(trie, text, anyelement) IS
    'code of every word of an inner query, NULL when the dictionary does not have it, ids of the type of id_type';

CREATE FUNCTION trie_encode_documents(dictionary trie, docs text, config regconfig DEFAULT 'pg_catalog.simple', id_type gputext_type_name DEFAULT NULL)
    RETURNS TABLE (id bigint, codes bigint[])
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_documents' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION trie_encode_documents(trie, text, regconfig, gputext_type_name) IS
    'codes of the words of every text of an inner query, in their order, NULL for those that the dictionary does not have';

CREATE FUNCTION trie_encode_documents(dictionary trie, docs text, id_type anyelement, config regconfig DEFAULT 'pg_catalog.simple')
    RETURNS TABLE (id anyelement, codes bigint[])
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_documents_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION trie_encode_documents(trie, text, anyelement, regconfig) IS
    'codes of the words of every text of an inner query, in their order, NULL for those that the dictionary does not have, ids of the type of id_type';

-- A thesaurus from texts
--
-- A preset names values for window_size, measure, weight, positions and discount where they are null.

CREATE FUNCTION word_similarity(
    docs text,
    top_k integer DEFAULT 20,
    window_size integer DEFAULT NULL,
    vocabulary integer DEFAULT 100000,
    min_count integer DEFAULT 5,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    positions boolean DEFAULT NULL,
    discount double precision DEFAULT NULL,
    config regconfig DEFAULT 'pg_catalog.simple',
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbours text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION word_similarity(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text) IS
    'thesaurus: for every word of the texts of an inner query the most similar words, judged by the words beside them';

CREATE FUNCTION word_similarity_pairs(
    docs text,
    top_k integer DEFAULT 20,
    window_size integer DEFAULT NULL,
    vocabulary integer DEFAULT 100000,
    min_count integer DEFAULT 5,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    positions boolean DEFAULT NULL,
    discount double precision DEFAULT NULL,
    config regconfig DEFAULT 'pg_catalog.simple',
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbour text, rank integer, similarity real)
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_pairs' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 200000;
COMMENT ON FUNCTION word_similarity_pairs(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text) IS
    'word_similarity with a row for every word and neighbour';

CREATE FUNCTION word_cooccurrences(
    docs text,
    window_size integer DEFAULT NULL,
    vocabulary integer DEFAULT 100000,
    min_count integer DEFAULT 5,
    weight text DEFAULT NULL,
    positions boolean DEFAULT NULL,
    discount double precision DEFAULT NULL,
    config regconfig DEFAULT 'pg_catalog.simple',
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, "position" integer, neighbour text, count bigint, weight real)
    AS 'MODULE_PATHNAME', 'gputext_word_cooccurrences' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000000;
COMMENT ON FUNCTION word_cooccurrences(text, integer, integer, integer, text, boolean, double precision, regconfig, text) IS
    'co-occurrences of the words of the texts of an inner query: counts and weights by relative position';

CREATE FUNCTION word_similarity_from(
    cooccurrences text,
    top_k integer DEFAULT 20,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    discount double precision DEFAULT NULL,
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbours text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_from' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION word_similarity_from(text, integer, integer, text, text, double precision, text) IS
    'word_similarity from counts of word_cooccurrences that an inner query gives';

-- Word embeddings

CREATE FUNCTION word2vec(
    docs text,
    model text DEFAULT 'skipgram',
    dimensions integer DEFAULT 100,
    window_size integer DEFAULT 5,
    negative integer DEFAULT 5,
    sampling text DEFAULT 'unigram',
    min_count integer DEFAULT 5,
    sample double precision DEFAULT 1e-4,
    epochs integer DEFAULT 5,
    learning_rate double precision DEFAULT NULL,
    seed bigint DEFAULT 1,
    config regconfig DEFAULT 'pg_catalog.simple',
    initial text DEFAULT NULL,
    farthest integer DEFAULT 5,
    farthest_from_epoch integer DEFAULT NULL,
    replicas integer DEFAULT 1,
    batch integer DEFAULT NULL
) RETURNS TABLE (word text, count bigint, vector real[], output_vector real[])
    AS 'MODULE_PATHNAME', 'gputext_word2vec' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION word2vec(text, text, integer, integer, integer, text, integer, double precision, integer, double precision, bigint, regconfig, text, integer, integer, integer, integer) IS
    'word embeddings (word2vec) trained on the texts of an inner query';

-- Word Mover's Distance

CREATE FUNCTION word_movers_distance(
    model text,
    pairs text,
    method text DEFAULT 'exact',
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_word_movers_distance' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION word_movers_distance(text, text, text, gputext_type_name) IS
    'Word Mover''s Distance of each pair of texts of an inner query, by the vectors of a model';

CREATE FUNCTION word_movers_distance(
    model text,
    pairs text,
    id_type anyelement,
    method text DEFAULT 'exact'
) RETURNS TABLE (id anyelement, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_word_movers_distance_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION word_movers_distance(text, text, anyelement, text) IS
    'Word Mover''s Distance of each pair of texts of an inner query, by the vectors of a model, ids of the type of id_type';

-- Probabilities of sequences of tokens

CREATE FUNCTION sequence_probability(model text, sequences text, id_type gputext_type_name DEFAULT NULL)
    RETURNS TABLE (id bigint, probability double precision, token_probabilities real[])
    AS 'MODULE_PATHNAME', 'gputext_sequence_probability' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION sequence_probability(text, text, gputext_type_name) IS
    'probability of each token of a sequence after the one before, by the vectors of a model, and their mean';

CREATE FUNCTION sequence_probability(model text, sequences text, id_type anyelement)
    RETURNS TABLE (id anyelement, probability double precision, token_probabilities real[])
    AS 'MODULE_PATHNAME', 'gputext_sequence_probability_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION sequence_probability(text, text, anyelement) IS
    'probability of each token of a sequence after the one before, by the vectors of a model, and their mean, ids of the type of id_type';

-- Tokens and lines of source code, normalised

CREATE FUNCTION code_tokens(source text) RETURNS text[]
    AS 'MODULE_PATHNAME', 'gputext_code_tokens' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION code_tokens(text) IS 'tokens of source code in C, C++, Java or C#, literals reduced to their kinds and names to roles and types';

CREATE FUNCTION code_lines(source text) RETURNS text[]
    AS 'MODULE_PATHNAME', 'gputext_code_lines' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION code_lines(text) IS 'lines of source code as their code_tokens, with blanks between them; empty lines left out';

-- Devices, activity and statistics

CREATE FUNCTION gputext_devices(
    OUT device integer, OUT name text, OUT memory bigint, OUT driver text, OUT status text
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_devices' LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 4;
COMMENT ON FUNCTION gputext_devices() IS
    'the GPUs that gputext can use, or one row that says why there are none; memory in bytes';

CREATE FUNCTION gputext_activity(
    OUT pid integer, OUT operator text, OUT device text, OUT device_name text, OUT phase text,
    OUT done bigint, OUT total bigint, OUT rate double precision, OUT epoch integer,
    OUT loss double precision, OUT rows bigint, OUT bytes bigint,
    OUT seconds double precision, OUT started timestamp with time zone
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_activity' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gputext_activity() IS 'rows of the view gputext_activity';

CREATE VIEW gputext_activity AS SELECT * FROM gputext_activity();
COMMENT ON VIEW gputext_activity IS
    'running statements of gputext: where each computes and how far it is';
GRANT SELECT ON gputext_activity TO PUBLIC;

CREATE FUNCTION gputext_stat(
    OUT gpu_jobs bigint, OUT cpu_jobs bigint, OUT failures bigint, OUT cancelled bigint,
    OUT rows bigint, OUT bytes bigint, OUT gpu_milliseconds bigint, OUT cpu_milliseconds bigint,
    OUT retries bigint, OUT restarts bigint, OUT cpu_fallbacks bigint, OUT fallback_reasons jsonb,
    OUT since timestamp with time zone
) RETURNS record
    AS 'MODULE_PATHNAME', 'gputext_stat' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION gputext_stat() IS 'row of the view gputext_stat';

CREATE VIEW gputext_stat AS SELECT * FROM gputext_stat();
COMMENT ON VIEW gputext_stat IS
    'totals of what gputext has computed in all sessions since the server started';
GRANT SELECT ON gputext_stat TO PUBLIC;
