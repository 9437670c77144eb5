\echo Use "ALTER EXTENSION gputext UPDATE TO '0.2.0'" to load this file. \quit

-- A session from before an upgrade keeps the library that it has loaded, and so does a server whose
-- shared_preload_libraries names gputext. An older library lacks functions that are created below.

LOAD 'MODULE_PATHNAME';

CREATE FUNCTION gputext_refuse_loaded_version() RETURNS void LANGUAGE sql AS $function$
    DO $block$
    BEGIN
        RAISE EXCEPTION 'gputext cannot be updated to version 0.2.0 while an older library of gputext is loaded'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = format('The library is of version %s.', coalesce(current_setting('gputext.version', true), '0.1.0')),
                  HINT = 'Connect anew. If shared_preload_libraries names gputext, restart the server.';
    END
    $block$
$function$;
SELECT gputext_refuse_loaded_version()
WHERE string_to_array(coalesce(current_setting('gputext.version', true), '0.1.0'), '.')::integer[]
    < string_to_array('0.2.0', '.')::integer[];
DROP FUNCTION gputext_refuse_loaded_version();

-- The text form of dictionaries does not depend on a setting any more.
ALTER FUNCTION trie_out(trie) IMMUTABLE;

CREATE FUNCTION trie_summary(dictionary trie) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_trie_summary' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_summary(trie) IS 'a line about a dictionary: its structure, words and bytes';

CREATE FUNCTION gputext_resident(
    OUT relation regclass, OUT rows bigint, OUT bytes bigint, OUT device_bytes bigint,
    OUT hits bigint, OUT misses bigint, OUT last_used timestamp with time zone
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_resident' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gputext_resident() IS 'rows of the view gputext_resident';

CREATE VIEW gputext_resident AS SELECT * FROM gputext_resident();
COMMENT ON VIEW gputext_resident IS
    'relations of this database of which gputextd keeps values, so that statements need not read them again; those that the user may read';
GRANT SELECT ON gputext_resident TO PUBLIC;

CREATE FUNCTION gputext_forget(relation regclass) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_forget' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION gputext_forget(regclass) IS
    'makes gputextd forget what it keeps of a relation and its partitions; returns how many values it kept';

CREATE FUNCTION gputext_forget() RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_forget_all' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION gputext_forget() IS
    'makes gputextd forget what it keeps of this database; returns how many values it kept';

CREATE FUNCTION near_duplicates_between(
    new_docs text,
    old_docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION near_duplicates_between(text, text, double precision, text, integer, gputext_type_name) IS
    'pairs of a document of the first inner query and one of the second with an edit rate of at most the threshold';

CREATE FUNCTION near_duplicates_between(
    new_docs text,
    old_docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100
) RETURNS TABLE (id1 anyelement, id2 anyelement, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION near_duplicates_between(text, text, anyelement, double precision, text, integer) IS
    'pairs of a document of the first inner query and one of the second with an edit rate of at most the threshold, ids of the type of id_type';
-- Groups of ids that pairs connect

CREATE FUNCTION groups_of(
    pairs text,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, group_id bigint, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_groups_of' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION groups_of(text, gputext_type_name) IS
    'the group of each id in the pairs of an inner query: connected components';

CREATE FUNCTION groups_of(
    pairs text,
    id_type anyelement
) RETURNS TABLE (id anyelement, group_id anyelement, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_groups_of_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION groups_of(text, anyelement) IS
    'the group of each id in the pairs of an inner query: connected components, ids of the type of id_type';

-- Near-duplicates of a document: a condition, and the index and the exclusion constraint for it

CREATE FUNCTION gputext_near_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_near_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_near_support(internal) IS 'planner support: selectivity, and the condition that an index answers';

CREATE FUNCTION gputext_near_selectivity(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_near_selectivity' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_near_selectivity(internal, oid, internal, integer) IS 'restriction selectivity of the operators ~= and @~';

CREATE FUNCTION gputext_near_selectivity(internal, oid, internal, smallint, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_near_selectivity' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_near_selectivity(internal, oid, internal, smallint, internal) IS 'join selectivity of the operators ~= and @~';

CREATE FUNCTION is_near_duplicate(a text, b text, threshold double precision) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_is_near_duplicate_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
    SUPPORT gputext_near_support;
COMMENT ON FUNCTION is_near_duplicate(text, text, double precision) IS 'whether the edit rate of two documents is at most the threshold';

CREATE FUNCTION is_near_duplicate(a bytea, b bytea, threshold double precision) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_is_near_duplicate_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
    SUPPORT gputext_near_support;
COMMENT ON FUNCTION is_near_duplicate(bytea, bytea, double precision) IS 'whether the edit rate of two documents is at most the threshold';

-- At the threshold of a setting

CREATE FUNCTION is_near_duplicate(a text, b text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_text' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION is_near_duplicate(text, text) IS 'implementation of ~= operator';

CREATE FUNCTION is_near_duplicate(a bytea, b bytea) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_bytea' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION is_near_duplicate(bytea, bytea) IS 'implementation of ~= operator';

CREATE OPERATOR ~= (
    FUNCTION = is_near_duplicate, LEFTARG = text, RIGHTARG = text, COMMUTATOR = ~=,
    RESTRICT = gputext_near_selectivity, JOIN = gputext_near_selectivity
);
COMMENT ON OPERATOR ~= (text, text) IS 'near-duplicates at gputext.near_duplicate_threshold';

CREATE OPERATOR ~= (
    FUNCTION = is_near_duplicate, LEFTARG = bytea, RIGHTARG = bytea, COMMUTATOR = ~=,
    RESTRICT = gputext_near_selectivity, JOIN = gputext_near_selectivity
);
COMMENT ON OPERATOR ~= (bytea, bytea) IS 'near-duplicates at gputext.near_duplicate_threshold';

-- A document with its threshold: the planner makes one of is_near_duplicate() for an index

CREATE TYPE near_duplicate_query;

CREATE FUNCTION near_duplicate_query_in(cstring) RETURNS near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION near_duplicate_query_in(cstring) IS 'I/O';

CREATE FUNCTION near_duplicate_query_out(near_duplicate_query) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION near_duplicate_query_out(near_duplicate_query) IS 'I/O';

CREATE TYPE near_duplicate_query (
    INPUT = near_duplicate_query_in,
    OUTPUT = near_duplicate_query_out,
    ALIGNMENT = double,
    STORAGE = extended
);
COMMENT ON TYPE near_duplicate_query IS 'a document and the edit rate up to which others are its near-duplicates';

CREATE FUNCTION near_duplicate_query(document text, threshold double precision) RETURNS near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION near_duplicate_query(text, double precision) IS 'a document and a threshold for the operator @~';

CREATE FUNCTION near_duplicate_query(document bytea, threshold double precision) RETURNS near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION near_duplicate_query(bytea, double precision) IS 'a document and a threshold for the operator @~';

CREATE FUNCTION is_near_duplicate(document text, query near_duplicate_query) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_query_of_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION is_near_duplicate(text, near_duplicate_query) IS 'implementation of @~ operator';

CREATE FUNCTION is_near_duplicate(document bytea, query near_duplicate_query) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_query_of_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION is_near_duplicate(bytea, near_duplicate_query) IS 'implementation of @~ operator';

CREATE OPERATOR @~ (
    FUNCTION = is_near_duplicate, LEFTARG = text, RIGHTARG = near_duplicate_query,
    RESTRICT = gputext_near_selectivity, JOIN = gputext_near_selectivity
);
COMMENT ON OPERATOR @~ (text, near_duplicate_query) IS 'near-duplicates of a document at its threshold';

CREATE OPERATOR @~ (
    FUNCTION = is_near_duplicate, LEFTARG = bytea, RIGHTARG = near_duplicate_query,
    RESTRICT = gputext_near_selectivity, JOIN = gputext_near_selectivity
);
COMMENT ON OPERATOR @~ (bytea, near_duplicate_query) IS 'near-duplicates of a document at its threshold';

-- The index

CREATE FUNCTION gputext_index_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME', 'gputext_index_handler' LANGUAGE C;
COMMENT ON FUNCTION gputext_index_handler(internal) IS 'handler of the index access method gputext';

CREATE ACCESS METHOD gputext TYPE INDEX HANDLER gputext_index_handler;
COMMENT ON ACCESS METHOD gputext IS 'near-duplicate documents: sketches that exclude most rows';

CREATE OPERATOR CLASS text_near_duplicate_ops DEFAULT FOR TYPE text USING gputext AS
    OPERATOR 1 ~= (text, text),
    OPERATOR 2 @~ (text, near_duplicate_query);
COMMENT ON OPERATOR CLASS text_near_duplicate_ops USING gputext IS 'near-duplicate texts, compared by characters';
COMMENT ON OPERATOR FAMILY text_near_duplicate_ops USING gputext IS 'near-duplicate texts, compared by characters';

CREATE OPERATOR CLASS bytea_near_duplicate_ops DEFAULT FOR TYPE bytea USING gputext AS
    OPERATOR 1 ~= (bytea, bytea),
    OPERATOR 2 @~ (bytea, near_duplicate_query);
COMMENT ON OPERATOR CLASS bytea_near_duplicate_ops USING gputext IS 'near-duplicate binary strings, compared by bytes';
COMMENT ON OPERATOR FAMILY bytea_near_duplicate_ops USING gputext IS 'near-duplicate binary strings, compared by bytes';

CREATE FUNCTION gputext_index_check(index regclass, heapallindexed boolean DEFAULT false) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_index_check' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION gputext_index_check(regclass, boolean) IS 'raises an error if an index of the access method gputext is damaged, else the number of its sketches';

-- Distances of two vectors, and operators for them. They have the names that pgvector gives the same distances of its types; on arrays
-- pgvector has none. Each gives the bits of gpu_knn's distance.

CREATE FUNCTION euclidean_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_euclidean_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION euclidean_distance(real[], real[]) IS
    'euclidean distance';
CREATE OPERATOR <-> (FUNCTION = euclidean_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = <->);
COMMENT ON OPERATOR <-> (real[], real[]) IS
    'euclidean distance';

CREATE FUNCTION cosine_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION cosine_distance(real[], real[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';
CREATE OPERATOR <=> (FUNCTION = cosine_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = <=>);
COMMENT ON OPERATOR <=> (real[], real[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';

CREATE FUNCTION negative_inner_product(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION negative_inner_product(real[], real[]) IS
    'negative inner product';
CREATE OPERATOR <#> (FUNCTION = negative_inner_product, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = <#>);
COMMENT ON OPERATOR <#> (real[], real[]) IS
    'negative inner product';

CREATE FUNCTION manhattan_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_manhattan_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION manhattan_distance(real[], real[]) IS
    'manhattan distance';
CREATE OPERATOR <+> (FUNCTION = manhattan_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = <+>);
COMMENT ON OPERATOR <+> (real[], real[]) IS
    'manhattan distance';

CREATE FUNCTION euclidean_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_euclidean_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION euclidean_distance(double precision[], double precision[]) IS
    'euclidean distance';
CREATE OPERATOR <-> (FUNCTION = euclidean_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = <->);
COMMENT ON OPERATOR <-> (double precision[], double precision[]) IS
    'euclidean distance';

CREATE FUNCTION cosine_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION cosine_distance(double precision[], double precision[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';
CREATE OPERATOR <=> (FUNCTION = cosine_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = <=>);
COMMENT ON OPERATOR <=> (double precision[], double precision[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';

CREATE FUNCTION negative_inner_product(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION negative_inner_product(double precision[], double precision[]) IS
    'negative inner product';
CREATE OPERATOR <#> (FUNCTION = negative_inner_product, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = <#>);
COMMENT ON OPERATOR <#> (double precision[], double precision[]) IS
    'negative inner product';

CREATE FUNCTION manhattan_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_manhattan_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION manhattan_distance(double precision[], double precision[]) IS
    'manhattan distance';
CREATE OPERATOR <+> (FUNCTION = manhattan_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = <+>);
COMMENT ON OPERATOR <+> (double precision[], double precision[]) IS
    'manhattan distance';

-- The recall of an index that finds the nearest rows approximately

CREATE FUNCTION knn_recall(index regclass, queries text, k integer, id_type gputext_type_name DEFAULT NULL)
    RETURNS TABLE (query_id bigint, recall double precision, found integer, expected integer, returned integer,
                   kth_distance double precision, farthest_distance double precision, milliseconds double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_recall' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000;
COMMENT ON FUNCTION knn_recall(regclass, text, integer, gputext_type_name) IS
    'how many of the exact k nearest rows of each query an index returns, at the settings of the session';

CREATE FUNCTION knn_recall(index regclass, queries text, id_type anyelement, k integer)
    RETURNS TABLE (query_id anyelement, recall double precision, found integer, expected integer, returned integer,
                   kth_distance double precision, farthest_distance double precision, milliseconds double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_recall_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION knn_recall(regclass, text, anyelement, integer) IS
    'how many of the exact k nearest rows of each query an index returns, at the settings of the session, ids of the type of id_type';

-- Searches of nearest neighbours with a key that excludes

CREATE FUNCTION gpu_knn(
    queries text,
    items text,
    k integer,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION gpu_knn(text, text, integer, boolean, text, boolean, regconfig, integer, text, gputext_type_name) IS
    'the k nearest items of every query, exactly, that differ in a key, both given by inner queries';

CREATE FUNCTION gpu_knn(
    queries text,
    items text,
    id_type anyelement,
    k integer,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION gpu_knn(text, text, anyelement, integer, boolean, text, boolean, regconfig, integer, text) IS
    'the k nearest items of every query, exactly, that differ in a key, both given by inner queries, ids of the type of id_type';

CREATE FUNCTION gpu_knn_within(
    queries text,
    items text,
    radius double precision,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION gpu_knn_within(text, text, double precision, boolean, text, boolean, regconfig, integer, text, gputext_type_name) IS
    'all items within a distance of every query that differ in a key, nearest first, both given by inner queries';

CREATE FUNCTION gpu_knn_within(
    queries text,
    items text,
    id_type anyelement,
    radius double precision,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION gpu_knn_within(text, text, anyelement, double precision, boolean, text, boolean, regconfig, integer, text) IS
    'all items within a distance of every query that differ in a key, nearest first, both given by inner queries, ids of the type of id_type';

-- The answers of several searches for nearest neighbours, merged

CREATE FUNCTION knn_merge(
    partial_answers text,
    k integer,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_merge' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION knn_merge(text, integer, gputext_type_name) IS
    'the k nearest items of every query from the answers of searches in parts of the items, given by an inner query';

CREATE FUNCTION knn_merge(
    partial_answers text,
    id_type anyelement,
    k integer
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_merge_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION knn_merge(text, anyelement, integer) IS
    'the k nearest items of every query from the answers of searches in parts of the items, given by an inner query, ids of the type of id_type';

-- Over several servers: each one's frequencies, and weights by the sum of all

CREATE FUNCTION tfidf_frequencies(
    items text,
    config regconfig DEFAULT get_current_ts_config(),
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (term text, documents bigint, first_id bigint)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION tfidf_frequencies(text, regconfig, gputext_type_name) IS
    'how many texts of an inner query have each term, and in a row without a term how many texts there are';

CREATE FUNCTION tfidf_frequencies(
    items text,
    id_type anyelement,
    config regconfig DEFAULT get_current_ts_config()
) RETURNS TABLE (term text, documents bigint, first_id anyelement)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_frequencies_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION tfidf_frequencies(text, anyelement, regconfig) IS
    'how many texts of an inner query have each term, and in a row without a term how many texts there are, ids of the type of id_type';

CREATE FUNCTION tfidf_from(
    items text,
    frequencies text,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_from' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION tfidf_from(text, text, regconfig, integer, gputext_type_name) IS
    'tfidf by the document frequencies that an inner query gives, such as the sum of those of several servers';

CREATE FUNCTION tfidf_from(
    items text,
    frequencies text,
    id_type anyelement,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_from_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION tfidf_from(text, text, anyelement, regconfig, integer) IS
    'tfidf by the document frequencies that an inner query gives, such as the sum of those of several servers, ids of the type of id_type';

-- Over several servers: the counts of each one's words, and a thesaurus of the words that are
-- frequent enough in all texts

CREATE FUNCTION word_frequencies(
    docs text,
    config regconfig DEFAULT 'pg_catalog.simple'
) RETURNS TABLE (word text, count bigint)
    AS 'MODULE_PATHNAME', 'gputext_word_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION word_frequencies(text, regconfig) IS
    'how often each word occurs in the texts of an inner query';

CREATE FUNCTION word_similarity_from(
    cooccurrences text,
    words text,
    top_k integer DEFAULT 20,
    vocabulary integer DEFAULT 100000,
    min_count integer DEFAULT 5,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    discount double precision DEFAULT NULL,
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbours text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_from_words' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION word_similarity_from(text, text, integer, integer, integer, integer, text, text, double precision, text) IS
    'word_similarity from counts of word_cooccurrences, and the vocabulary from counts of word_frequencies, that inner queries give';

CREATE FUNCTION word2vec_average(
    models text,
    initial text DEFAULT NULL,
    weights text DEFAULT 'equal'
) RETURNS TABLE (word text, count bigint, vector real[], output_vector real[])
    AS 'MODULE_PATHNAME', 'gputext_word2vec_average' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION word2vec_average(text, text, text) IS
    'one model of the rows of several models of word2vec, which an inner query gives: the mean of each word''s vectors';
