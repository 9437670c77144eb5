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

-- One call on many servers
--
-- The functions whose names end in _distributed take a partitioned table whose partitions may be foreign tables of
-- postgres_fdw, and run a statement on each server by the contrib module dblink, on all of them at once. They run with the
-- rights of the caller, whose user mappings dblink uses; it may lie in any schema. Those whose names begin with
-- gputext_ are their parts.

CREATE FUNCTION gputext_rows_as_text(inner_query text, id_type anyelement, columns integer)
    RETURNS TABLE (place bigint, ordered boolean, id anyelement, texts text[], types text[])
    AS 'MODULE_PATHNAME', 'gputext_rows_as_text' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION gputext_rows_as_text(text, anyelement, integer) IS
    'the rows of an inner query as text that other servers read alike, in its order, and whether it has an ORDER BY';

CREATE FUNCTION gputext_reals(value text) RETURNS real[]
    AS 'MODULE_PATHNAME', 'gputext_reals' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_reals(text) IS 'an array of real from the text that gputext_rows_as_text makes of it';

CREATE FUNCTION gputext_portable_text(value anyelement) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET extra_float_digits = 3 SET datestyle = 'ISO' SET intervalstyle = 'postgres'
    AS 'SELECT format(''%s'', value)';
COMMENT ON FUNCTION gputext_portable_text(anyelement) IS 'a value as text that other servers read alike';

CREATE FUNCTION gputext_type_text(type oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS 'SELECT format_type(type, NULL)';
COMMENT ON FUNCTION gputext_type_text(oid) IS 'the name of a type, with its schema where it is none of PostgreSQL''s own';

-- ---- The parts of a table ----

CREATE FUNCTION gputext_partitions(items regclass) RETURNS TABLE (partition oid, server name, relation text)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT c.oid, s.srvname,
           CASE WHEN s.oid IS NULL THEN format('%I.%I', n.nspname, c.relname)
                ELSE format('%I.%I', coalesce((SELECT option_value FROM pg_options_to_table(f.ftoptions) WHERE option_name = 'schema_name'), n.nspname),
                            coalesce((SELECT option_value FROM pg_options_to_table(f.ftoptions) WHERE option_name = 'table_name'), c.relname))
           END
    FROM (SELECT relid FROM pg_partition_tree(items) WHERE isleaf
          UNION ALL SELECT items WHERE NOT EXISTS (SELECT FROM pg_partition_tree(items))) AS t
    JOIN pg_class AS c ON c.oid = t.relid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_foreign_table AS f ON f.ftrelid = c.oid
    LEFT JOIN (pg_foreign_server AS s JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw
               JOIN pg_proc AS h ON h.oid = w.fdwhandler AND h.proname = 'postgres_fdw_handler') ON s.oid = f.ftserver
    ORDER BY s.srvname, c.oid;
END;
COMMENT ON FUNCTION gputext_partitions(regclass) IS
    'the partitions of a table, or the table itself: the server of postgres_fdw that has it, if one does, and its name there';

CREATE FUNCTION gputext_partition_query(items regclass, partition oid, relation text, columns name[], condition text, there boolean DEFAULT true)
    RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    listed text;
    missing name;
BEGIN
    SELECT c INTO missing FROM unnest(columns) AS c
    WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = items AND attname = c AND attnum > 0 AND NOT attisdropped);
    IF FOUND THEN
        RAISE EXCEPTION 'column "%" of relation "%" does not exist', missing, items USING ERRCODE = 'undefined_column';
    END IF;
    -- The names that the columns have where the partition lies; a condition may be about any of them.
    SELECT string_agg(format('r.%I AS %I', coalesce(
               (SELECT option_value FROM pg_options_to_table(a.attfdwoptions) WHERE option_name = 'column_name' AND there), a.attname), a.attname),
               ', ' ORDER BY w.place, a.attnum)
    INTO listed
    FROM pg_attribute AS a LEFT JOIN unnest(columns) WITH ORDINALITY AS w (name, place) ON w.name = a.attname AND condition IS NULL
    WHERE a.attrelid = partition AND a.attnum > 0 AND NOT a.attisdropped AND (condition IS NOT NULL OR w.name IS NOT NULL);
    IF condition IS NULL THEN
        RETURN format('SELECT %s FROM %s AS r', listed, relation);
    END IF;
    RETURN format(E'SELECT %s FROM (SELECT %s FROM %s AS r) AS %I WHERE (%s\n)',
                  (SELECT string_agg(quote_ident(name), ', ' ORDER BY place) FROM unnest(columns) WITH ORDINALITY AS w (name, place)),
                  listed, relation, (SELECT relname FROM pg_class WHERE oid = items), condition);
END
$$;
COMMENT ON FUNCTION gputext_partition_query(regclass, oid, text, name[], text, boolean) IS
    'a query for columns of a partition, to run where it lies or here, and with a condition by the names that columns have here';

CREATE FUNCTION gputext_check_table(items regclass) RETURNS void LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class WHERE oid = items AND relkind IN ('r', 'p', 'f')) THEN
        RAISE EXCEPTION '"%" is not a table', items USING ERRCODE = 'wrong_object_type';
    END IF;
    -- Statements go to the servers past the table's own checks.
    IF NOT has_table_privilege(items, 'SELECT') THEN
        RAISE EXCEPTION 'permission denied for table %', items USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF row_security_active(items) THEN
        RAISE EXCEPTION 'policies for row-level security of table % are not applied on other servers', items
            USING ERRCODE = 'feature_not_supported', HINT = 'Create the policies on the servers that have the partitions.';
    END IF;
END
$$;
COMMENT ON FUNCTION gputext_check_table(regclass) IS 'raises an error for a table that the caller may not read, or not whole';

-- ---- Connections ----

CREATE FUNCTION gputext_dblink_schema() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    schema text := (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'dblink');
BEGIN
    IF schema IS NULL THEN
        RAISE EXCEPTION 'a call on other servers needs the extension dblink'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run CREATE EXTENSION dblink in this database. It is a contrib module of PostgreSQL.';
    END IF;
    RETURN schema;
END
$$;
COMMENT ON FUNCTION gputext_dblink_schema() IS 'the schema of the extension dblink, as an identifier';

-- The session there gets the settings by which both sides write and read values alike, and begins a transaction that only
-- reads. It ends a statement of a session that is gone.
CREATE FUNCTION gputext_connect(link text, server name, connection text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    release text := (SELECT extversion FROM pg_extension WHERE extname = 'gputext');
    found record;
    state text;
    message text;
    details text;
    advice text;
BEGIN
    EXECUTE format('SELECT %s.dblink_connect(%L, %L)', link, connection, server);
    EXECUTE format('SELECT %s.dblink_exec(%L, %L)', link, connection, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    EXECUTE format('SELECT * FROM %s.dblink(%L, %L) AS t (release text, schema text, database text, settings text)', link, connection, format($q$
        SELECT extversion, quote_ident(nspname), current_database(), concat(
            set_config('search_path', %L, false), set_config('datestyle', %L, false),
            set_config('intervalstyle', 'postgres', false), set_config('extra_float_digits', '3', false),
            set_config('timezone', %L, false),
            CASE WHEN version() LIKE '%%linux%%' THEN set_config('client_connection_check_interval', '1s', false) END)
        FROM (SELECT) AS one LEFT JOIN pg_extension ON extname = 'gputext' LEFT JOIN pg_namespace n ON n.oid = extnamespace$q$,
        current_setting('search_path'), 'ISO, ' || split_part(current_setting('DateStyle'), ', ', 2), current_setting('TimeZone'))) INTO found;
    IF found.release IS NULL THEN
        RAISE EXCEPTION 'the database "%" has no extension gputext', found.database
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Run CREATE EXTENSION gputext there.';
    ELSIF found.release <> release THEN
        RAISE EXCEPTION 'the extension gputext is of version %, and here of %', found.release, release
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Run ALTER EXTENSION gputext UPDATE where it is older.';
    END IF;
    RETURN found.schema;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, details = PG_EXCEPTION_DETAIL, advice = PG_EXCEPTION_HINT;
    EXECUTE format('SELECT %s.gputext_raise($1, $2, $3, $4)',
        (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'gputext'))
    USING state, format('server "%s": %s', server, message), details, advice;
END
$$;
COMMENT ON FUNCTION gputext_connect(text, name, text) IS
    'connects to a server by dblink and the caller''s user mapping; returns the schema that gputext has there';

-- The answer is computed when the cursor's first row is looked for, in a statement whose end can be waited for without
-- blocking; then its rows are fetched.
CREATE FUNCTION gputext_send(link text, server name, connection text, statement text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    sent integer;
BEGIN
    EXECUTE format('SELECT %s.dblink_send_query(%L, $1)', link, connection) INTO sent
    USING format('CLOSE ALL; DECLARE answers SCROLL CURSOR FOR %s; MOVE 1 IN answers; MOVE BACKWARD ALL IN answers', statement);
    IF sent <> 1 THEN
        EXECUTE format('SELECT %s.dblink_error_message(%L)', link, connection) INTO statement;
        RAISE EXCEPTION 'server "%": %', server, statement USING ERRCODE = 'connection_failure';
    END IF;
END
$$;
COMMENT ON FUNCTION gputext_send(text, name, text, text) IS 'has a server begin to compute a statement''s rows, for a cursor named answers';

CREATE FUNCTION gputext_wait(link text, servers name[], connections text[], operation text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    waiting integer[] := ARRAY(SELECT generate_subscripts(connections, 1));
    ended integer[];
    i integer;
    more bigint;
    nap double precision := 0.0005;
    told timestamptz := clock_timestamp();
BEGIN
    WHILE waiting <> '{}' LOOP
        -- A connection that broke stays busy.
        EXECUTE format('SELECT array_agg(i) FROM unnest($1) AS i WHERE %1$s.dblink_is_busy($2[i]) = 0 OR %1$s.dblink_error_message($2[i]) <> %2$L', link, 'OK')
        INTO ended USING waiting, connections;
        FOREACH i IN ARRAY coalesce(ended, '{}') LOOP
            LOOP
                EXECUTE format('SELECT count(*) FROM %s.dblink_get_result(%L) AS t (status text)', link, connections[i]) INTO more;
                EXIT WHEN more = 0;
            END LOOP;
            waiting := array_remove(waiting, i);
            RAISE DEBUG '%: server "%" has an answer', operation, servers[i];
        END LOOP;
        EXIT WHEN waiting = '{}';
        IF clock_timestamp() > told + interval '1 second' THEN
            told := clock_timestamp();
            IF current_setting('gputext.progress', true)::boolean THEN
                RAISE INFO '%: waiting for % of % servers: %', operation, cardinality(waiting), cardinality(servers),
                    (SELECT string_agg(servers[w], ', ' ORDER BY w) FROM unnest(waiting) AS w);
            END IF;
        END IF;
        PERFORM pg_sleep(nap);
        nap := least(nap * 1.5, 0.02);
    END LOOP;
END
$$;
COMMENT ON FUNCTION gputext_wait(text, name[], text[], text) IS 'waits until all servers have an answer; a cancel ends the waiting';

CREATE FUNCTION gputext_disconnect(link text, connections text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    open text[];
    connection text;
BEGIN
    EXECUTE format('SELECT %s.dblink_get_connections()', link) INTO open;
    FOREACH connection IN ARRAY connections LOOP
        CONTINUE WHEN open IS NULL OR connection <> ALL (open);
        -- What a cancelled or failed call has left running there ends.
        EXECUTE format('SELECT CASE WHEN %1$s.dblink_is_busy(%2$L) = 1 THEN %1$s.dblink_cancel_query(%2$L) END', link, connection);
        EXECUTE format('SELECT %s.dblink_disconnect(%L)', link, connection);
    END LOOP;
END
$$;
COMMENT ON FUNCTION gputext_disconnect(text, text[]) IS 'ends connections, and the statements that still run at their other ends';

CREATE FUNCTION gputext_raise(state text, message text, details text, advice text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    -- An option that is empty would be shown.
    IF details <> '' AND advice <> '' THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = details, HINT = advice;
    ELSIF details <> '' THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = details;
    ELSIF advice <> '' THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = advice;
    END IF;
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
END
$$;
COMMENT ON FUNCTION gputext_raise(text, text, text, text) IS 'raises an error with a detail and a hint where they are not empty';

-- The message of an error that a server raised names the server; others stay as they are.
CREATE FUNCTION gputext_named_error(message text, context text, servers name[], connections text[]) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce((SELECT format('server "%s": %s', servers[i], message) FROM generate_subscripts(connections, 1) AS i
                     WHERE position(format('dblink connection named "%s"', connections[i]) IN context) > 0 LIMIT 1), message);
END;
COMMENT ON FUNCTION gputext_named_error(text, text, name[], text[]) IS
    'an error''s message with the name of the server whose connection its context names';

-- ---- Citus ----

CREATE FUNCTION gputext_is_citus_table(items regclass) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    answer boolean := false;
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        EXECUTE 'SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = $1)' INTO answer USING items;
        IF answer AND (SELECT relname ~ '[''\\]' OR nspname ~ '[''\\]' FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = items) THEN
            RAISE EXCEPTION 'the name of Citus table % has a quote or a backslash', items USING ERRCODE = 'feature_not_supported';
        END IF;
    END IF;
    RETURN answer;
END
$$;
COMMENT ON FUNCTION gputext_is_citus_table(regclass) IS 'whether the table is one of Citus, whose shards lie on its workers';

-- Citus runs a statement for each shard, at all workers at once, and gives its answer as one text. In the statement the shard
-- is called gputext_shard.
CREATE FUNCTION gputext_citus_answers(items regclass, statement text, columns integer) RETURNS SETOF json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    listed text;
    named text;
    shard record;
    worker text;
BEGIN
    SELECT string_agg(format('array_agg(c%s::text)::text', i), ', '), string_agg('c' || i, ', ') INTO listed, named FROM generate_series(1, columns) AS i;
    FOR shard IN EXECUTE 'SELECT * FROM pg_catalog.run_command_on_shards($1, $2)'
        USING items, replace(replace(format('SELECT json_build_array(%s)::text FROM (%s) AS a (%s)', listed, statement, named), '%', '%%'), 'gputext_shard', '%s')
    LOOP
        IF NOT shard.success THEN
            EXECUTE 'SELECT concat(nodename, '':'', nodeport) FROM pg_catalog.pg_dist_shard_placement WHERE shardid = $1 LIMIT 1' INTO worker USING shard.shardid;
            RAISE EXCEPTION 'server "%": %', worker, shard.result USING ERRCODE = 'external_routine_exception', DETAIL = format('It was searching shard %s.', shard.shardid);
        END IF;
        RETURN NEXT shard.result::json;
    END LOOP;
END
$$;
COMMENT ON FUNCTION gputext_citus_answers(regclass, text, integer) IS 'the rows that a statement gives on each shard of a Citus table, columns as arrays';

-- ---- Nearest neighbours ----

CREATE FUNCTION gputext_knn_distributed(
    operation text, queries text, items regclass, id_type anyelement, id name, value name, k integer, radius double precision,
    weights name, key name, exclude_key name, metric text, exclude_self boolean, config regconfig, min_document_frequency integer,
    condition text, statement_bytes integer
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    own text := (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'gputext');
    link text;    -- the schema of dblink
    servers name[];
    rows_there text[];   -- of each server, the inner query for its items
    rows_here text;      -- and for the items here, or for each shard of Citus
    is_citus boolean;
    schemas text[];      -- of each server, that of gputext there
    connections text[] := '{}';
    columns name[] := ARRAY[id, value] || array_remove(ARRAY[weights, key, exclude_key], NULL);
    id_name text;
    exact_radius text;
    config_text text;
    options text;
    texts text;    -- an expression for the values of some queries as arrays
    casts text;    -- and one for their columns
    -- Whether queries are told apart by their places, and not by their ids
    by_place boolean := pg_typeof(id_type) = 'bigint'::regtype AND NOT exclude_self;
    batch record;
    here record;
    statement text;
    statement_here text;
    answers text;
    state text;
    message text;
    details text;
    advice text;
    context text;
BEGIN
    IF num_nulls(queries, items, id, value, metric, exclude_self, config, min_document_frequency, statement_bytes) > 0 OR num_nulls(k, radius) <> 1 THEN
        RAISE EXCEPTION 'an argument of % is null', operation USING ERRCODE = 'null_value_not_allowed',
            HINT = 'Only id_type, weights, key, exclude_key and condition may be null.';
    ELSIF statement_bytes < 1 THEN
        RAISE EXCEPTION 'statement_bytes must be at least 1, not %', statement_bytes USING ERRCODE = 'invalid_parameter_value';
    ELSIF (SELECT typcategory FROM pg_type WHERE oid = pg_typeof(id_type)) = 'A' THEN
        RAISE EXCEPTION '% does not take ids of type %', operation, pg_typeof(id_type) USING ERRCODE = 'feature_not_supported';
    END IF;
    EXECUTE format('SELECT %1$s.gputext_check_table($1)', own) USING items;
    EXECUTE format('SELECT %1$s.gputext_type_text($1), %1$s.gputext_portable_text($2)', own) INTO id_name, exact_radius
    USING pg_typeof(id_type)::oid, radius;
    EXECUTE format($q$
        SELECT coalesce(array_agg(server ORDER BY server) FILTER (WHERE server IS NOT NULL), '{}'),
               array_agg(rows ORDER BY server) FILTER (WHERE server IS NOT NULL), min(rows) FILTER (WHERE server IS NULL)
        FROM (SELECT server, string_agg(%1$s.gputext_partition_query($1, partition, relation, $2, $3), ' UNION ALL ' ORDER BY partition) AS rows
              FROM %1$s.gputext_partitions($1) GROUP BY server) AS s$q$, own)
    INTO servers, rows_there, rows_here USING items, columns, condition;
    EXECUTE format('SELECT %s.gputext_is_citus_table($1)', own) INTO is_citus USING items;
    IF is_citus THEN
        EXECUTE format('SELECT %s.gputext_partition_query($1, $1, $2, $3, $4)', own) INTO rows_here USING items, 'gputext_shard', columns, condition;
    END IF;
    options := format('NULL::%s, %s, metric => %L, exclude_self => %L, exclude_key => %L', id_name,
                      CASE WHEN k IS NULL THEN format('radius => %L', exact_radius) ELSE format('k => %L', k) END,
                      metric, exclude_self, exclude_key IS NOT NULL);
    SELECT string_agg(format($q$quote_literal(array_agg(%s ORDER BY n)::text) || '::text[]'$q$,
                             CASE WHEN by_place AND i = 1 THEN 'n::text' ELSE format('texts[%s]', i) END), $q$ || ', ' || $q$ ORDER BY i),
           string_agg(format($q$CASE WHEN %1$s > 1 AND (min(types))[%1$s] = 'real[]' THEN '%%1$s.gputext_reals(c%1$s)' ELSE 'c%1$s::' || (min(types))[%1$s] END$q$, i),
                      $q$ || ', ' || $q$ ORDER BY i)
    INTO texts, casts FROM generate_subscripts(columns, 1) AS i;

    IF servers <> '{}' THEN
        EXECUTE format('SELECT %s.gputext_dblink_schema()', own) INTO link;
        connections := ARRAY(SELECT format('gputext_%s_%s', substr(md5(clock_timestamp()::text || random()), 1, 8), i)
                             FROM generate_subscripts(servers, 1) AS i);
        FOR i IN 1 .. cardinality(servers) LOOP
            EXECUTE format('SELECT %s.gputext_connect($1, $2, $3)', own) INTO statement USING link, servers[i], connections[i];
            schemas[i] := statement;
        END LOOP;
    END IF;

    -- A term weighs by how many texts of all servers have it. The first text that has it decides in which order its weights
    -- are added, and so the last bits of distances.
    IF EXISTS (SELECT FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
               WHERE attrelid = items AND attname = value AND NOT attisdropped AND (typcategory = 'S' OR atttypid = 'tsvector'::regtype)) THEN
        EXECUTE format('SELECT quote_literal(format(%L, nspname, cfgname)) FROM pg_ts_config JOIN pg_namespace AS n ON n.oid = cfgnamespace WHERE pg_ts_config.oid = $1', '%I.%I')
        INTO config_text USING config;
        statement := 'SELECT * FROM %s.tfidf_frequencies(%L, NULL::%s, config => %s)';
        FOR i IN 1 .. cardinality(servers) LOOP
            EXECUTE format('SELECT %s.gputext_send($1, $2, $3, $4)', own)
            USING link, servers[i], connections[i], format(statement, schemas[i], rows_there[i], id_name, config_text);
        END LOOP;
        statement_here := format(statement, own, rows_here, id_name, config_text);
        IF rows_here IS NULL THEN
            statement_here := 'SELECT NULL::text, 0::bigint, $1 WHERE false';
        ELSIF is_citus THEN
            statement_here := format('SELECT t.term, t.documents, t.first_id::%s FROM %s.gputext_citus_answers(%L, %L, 3) AS j, '
                'unnest((j->>0)::text[], (j->>1)::bigint[], (j->>2)::text[]) AS t (term, documents, first_id)', id_name, own, items, statement_here);
        END IF;
        EXECUTE format('SELECT array_agg(term) AS term, array_agg(documents) AS documents, array_agg(%s.gputext_portable_text(first_id)) AS first_id FROM (%s) AS f (term, documents, first_id)',
                       own, statement_here)
        INTO here USING id_type;
        IF servers <> '{}' THEN
            EXECUTE format('SELECT %s.gputext_wait($1, $2, $3, $4)', own) USING link, servers, connections, operation;
        END IF;
        SELECT concat_ws(' UNION ALL ', 'SELECT * FROM unnest($1, $2, $3)', string_agg(
                   format('SELECT * FROM %s.dblink(%L, %L) AS t (term text, documents bigint, first_id text)', link, connection, 'FETCH ALL FROM answers'), ' UNION ALL '))
        INTO statement FROM unnest(connections) AS connection;
        EXECUTE format($q$
            SELECT format('SELECT term, documents, first_id::%1$s FROM unnest(%%L::text[], %%L::bigint[], %%L::text[]) AS t (term, documents, first_id)',
                          array_agg(term)::text, array_agg(documents)::text, array_agg(first_id)::text)
            FROM (SELECT term, sum(documents) AS documents, (array_agg(first_id ORDER BY first_id::%1$s))[1] AS first_id
                  FROM (%2$s) AS f (term, documents, first_id) GROUP BY term) AS summed$q$, id_name, statement)
        INTO statement USING here.term, here.documents, here.first_id;
        options := format('%s, config => %s, min_document_frequency => %s, frequencies => %L', options, config_text, min_document_frequency, statement);
    ELSIF min_document_frequency <> 1 THEN
        options := format('%s, min_document_frequency => %s', options, min_document_frequency);
    END IF;

    -- Queries in the order of their rows, as many at a time as a statement has room for. Those with equal ids are
    -- searched in turns, where ids tell queries apart.
    FOR batch IN EXECUTE format($q$
        WITH shipped AS (
            SELECT *, row_number() OVER (ORDER BY CASE WHEN NOT ordered THEN id END, place) AS n FROM %s.gputext_rows_as_text($1, $2, $3)
        ), parts AS (
            SELECT *, sum(pg_column_size(texts)) OVER (ORDER BY n) / $5 AS part FROM shipped
        ), turns AS (
            SELECT *, CASE WHEN $4 THEN 1 ELSE row_number() OVER (PARTITION BY part, id ORDER BY n) END AS turn FROM parts
        ), calls AS (
            SELECT part, turn, %s AS casts, format('unnest(%%s) AS t (%%s)', %s, %L) AS queries,
                   format('unnest(%%L::bigint[], %%L::text[])', array_agg(n ORDER BY n), array_agg(texts[1] ORDER BY n)) AS places
            FROM turns GROUP BY part, turn
        )
        SELECT array_agg(n ORDER BY n) AS places, array_agg(id ORDER BY n) AS ids,
               (SELECT min(casts) FROM calls AS c WHERE c.part = t.part) AS casts,
               (SELECT array_agg(queries ORDER BY turn) FROM calls AS c WHERE c.part = t.part) AS call_queries,
               (SELECT array_agg(places ORDER BY turn) FROM calls AS c WHERE c.part = t.part) AS call_places
        FROM turns AS t GROUP BY part ORDER BY part$q$,
        own, casts, texts, (SELECT string_agg('c' || i, ', ' ORDER BY i) FROM generate_subscripts(columns, 1) AS i))
        USING queries, id_type, cardinality(columns), by_place, statement_bytes
    LOOP
        FOR i IN 0 .. cardinality(servers) LOOP
            CONTINUE WHEN i = 0 AND rows_here IS NULL;
            SELECT string_agg(
                       format('SELECT %s AS n, a.item_id, a.rank, a.distance FROM %s.%I(%L, %L, %s) AS a',
                              CASE WHEN by_place THEN 'a.query_id' ELSE 'q.n' END, CASE i WHEN 0 THEN own ELSE schemas[i] END,
                              CASE WHEN k IS NULL THEN 'gpu_knn_within' ELSE 'gpu_knn' END, format('SELECT %s FROM %s', format(batch.casts, CASE i WHEN 0 THEN own ELSE schemas[i] END), batch.call_queries[call]),
                              CASE i WHEN 0 THEN rows_here ELSE rows_there[i] END, options)
                       || CASE WHEN by_place THEN '' ELSE
                              format(' JOIN %s AS q (n, id) ON q.id::%s = a.query_id', batch.call_places[call], id_name) END,
                       ' UNION ALL ' ORDER BY call)
            INTO statement FROM generate_subscripts(batch.call_queries, 1) AS call;
            IF i = 0 AND is_citus THEN
                statement_here := format('SELECT t.n, t.item_id::%s, t.rank, t.distance FROM %s.gputext_citus_answers(%L, %L, 4) AS j, '
                    'unnest((j->>0)::bigint[], (j->>1)::text[], (j->>2)::integer[], (j->>3)::double precision[]) AS t (n, item_id, rank, distance)',
                    id_name, own, items, statement);
            ELSIF i = 0 THEN
                statement_here := statement;
            ELSE
                EXECUTE format('SELECT %s.gputext_send($1, $2, $3, $4)', own) USING link, servers[i], connections[i], statement;
            END IF;
        END LOOP;
        -- The items here are searched while the servers search theirs.
        EXECUTE format('SELECT array_agg(n) AS n, array_agg(item_id) AS item_id, array_agg(rank) AS rank, array_agg(distance) AS distance FROM (%s) AS a (n, item_id, rank, distance)',
                       CASE WHEN rows_here IS NULL THEN 'SELECT 0::bigint, $1, 0, 0::double precision WHERE false' ELSE statement_here END)
        INTO here USING id_type;
        IF servers <> '{}' THEN
            EXECUTE format('SELECT %s.gputext_wait($1, $2, $3, $4)', own) USING link, servers, connections, operation;
        END IF;
        SELECT string_agg(format('SELECT * FROM %s.dblink(%L, %L) AS t (n bigint, item_id %s, rank integer, distance double precision)',
                                 link, connection, 'FETCH ALL FROM answers', id_name), ' UNION ALL ')
        INTO answers FROM unnest(connections) AS connection;
        -- The places of queries are of the type of the ids only where that is bigint.
        IF rows_here IS NULL AND servers <> '{}' AND pg_typeof(id_type) = 'bigint'::regtype THEN
            answers := format('%s.knn_merge(%L, $3)', own, answers);
        ELSE
            answers := format('(SELECT a.n, a.item_id, row_number() OVER (PARTITION BY a.n ORDER BY a.distance, a.item_id), a.distance FROM (%s) AS a (n, item_id, rank, distance))',
                              concat_ws(' UNION ALL ', 'SELECT * FROM unnest($4, $5, $6, $7)', answers));
        END IF;
        RETURN QUERY EXECUTE format($q$
            SELECT i.id, m.item_id, m.rank::integer, m.distance
            FROM %s AS m (n, item_id, rank, distance) JOIN unnest($1, $2) AS i (n, id) ON i.n = m.n
            WHERE $3 IS NULL OR m.rank <= $3
            ORDER BY m.n, m.rank$q$, answers)
        USING batch.places, batch.ids, k, here.n, here.item_id, here.rank, here.distance;
    END LOOP;
    IF servers <> '{}' THEN
        EXECUTE format('SELECT %s.gputext_disconnect($1, $2)', own) USING link, connections;
    END IF;
EXCEPTION WHEN OTHERS OR query_canceled THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, details = PG_EXCEPTION_DETAIL,
        advice = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
    IF link IS NULL THEN
        RAISE;
    END IF;
    EXECUTE format('SELECT %1$s.gputext_disconnect($1, $2), %1$s.gputext_raise($3, %1$s.gputext_named_error($4, $5, $6, $2), $7, $8)', own)
    USING link, connections, state, message, context, servers, details, advice;
END
$$;
COMMENT ON FUNCTION gputext_knn_distributed(text, text, regclass, anyelement, name, name, integer, double precision, name, name, name, text, boolean, regconfig, integer, text, integer) IS
    'what gpu_knn_distributed and gpu_knn_within_distributed have in common';

CREATE FUNCTION gpu_knn_distributed(
    queries text,
    items regclass,
    id name,
    value name,
    k integer,
    weights name DEFAULT NULL,
    key name DEFAULT NULL,
    exclude_key name DEFAULT NULL,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    condition text DEFAULT NULL,
    statement_bytes integer DEFAULT 134217728
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
BEGIN ATOMIC
    SELECT * FROM gputext_knn_distributed('gpu_knn_distributed', queries, items, NULL::bigint, id, value, k, NULL, weights, key, exclude_key, metric,
                                          exclude_self, config, min_document_frequency, condition, statement_bytes);
END;
COMMENT ON FUNCTION gpu_knn_distributed(text, regclass, name, name, integer, name, name, name, text, boolean, regconfig, integer, text, integer) IS
    'the k nearest items of every query, exactly, among the items of a table that has partitions on other servers';

CREATE FUNCTION gpu_knn_distributed(
    queries text,
    items regclass,
    id_type anyelement,
    id name,
    value name,
    k integer,
    weights name DEFAULT NULL,
    key name DEFAULT NULL,
    exclude_key name DEFAULT NULL,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    condition text DEFAULT NULL,
    statement_bytes integer DEFAULT 134217728
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000 SUPPORT gputext_id_type_support AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT * FROM %s.gputext_knn_distributed($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)',
        (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'gputext'))
    USING 'gpu_knn_distributed', queries, items, id_type, id, value, k, NULL::double precision, weights, key, exclude_key, metric, exclude_self,
          config, min_document_frequency, condition, statement_bytes;
END
$$;
COMMENT ON FUNCTION gpu_knn_distributed(text, regclass, anyelement, name, name, integer, name, name, name, text, boolean, regconfig, integer, text, integer) IS
    'the k nearest items of every query, exactly, among the items of a table that has partitions on other servers, ids of the type of id_type';

CREATE FUNCTION gpu_knn_within_distributed(
    queries text,
    items regclass,
    id name,
    value name,
    radius double precision,
    weights name DEFAULT NULL,
    key name DEFAULT NULL,
    exclude_key name DEFAULT NULL,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    condition text DEFAULT NULL,
    statement_bytes integer DEFAULT 134217728
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
BEGIN ATOMIC
    SELECT * FROM gputext_knn_distributed('gpu_knn_within_distributed', queries, items, NULL::bigint, id, value, NULL, radius, weights, key, exclude_key,
                                          metric, exclude_self, config, min_document_frequency, condition, statement_bytes);
END;
COMMENT ON FUNCTION gpu_knn_within_distributed(text, regclass, name, name, double precision, name, name, name, text, boolean, regconfig, integer, text, integer) IS
    'all items within a distance of every query, nearest first, among the items of a table that has partitions on other servers';

CREATE FUNCTION gpu_knn_within_distributed(
    queries text,
    items regclass,
    id_type anyelement,
    id name,
    value name,
    radius double precision,
    weights name DEFAULT NULL,
    key name DEFAULT NULL,
    exclude_key name DEFAULT NULL,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    condition text DEFAULT NULL,
    statement_bytes integer DEFAULT 134217728
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000 SUPPORT gputext_id_type_support AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT * FROM %s.gputext_knn_distributed($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)',
        (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'gputext'))
    USING 'gpu_knn_within_distributed', queries, items, id_type, id, value, NULL::integer, radius, weights, key, exclude_key, metric, exclude_self,
          config, min_document_frequency, condition, statement_bytes;
END
$$;
COMMENT ON FUNCTION gpu_knn_within_distributed(text, regclass, anyelement, name, name, double precision, name, name, name, text, boolean, regconfig, integer, text, integer) IS
    'all items within a distance of every query, nearest first, among the items of a table that has partitions on other servers, ids of the type of id_type';

-- ---- Near-duplicates ----

CREATE FUNCTION near_duplicates_distributed(
    docs regclass,
    id_type anyelement,
    id name,
    body name,
    signature name DEFAULT NULL,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    condition text DEFAULT NULL
) RETURNS TABLE (id1 anyelement, id2 anyelement, edit_rate double precision)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 1000000 SUPPORT gputext_id_type_support AS $$
#variable_conflict use_column
DECLARE
    own text := (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'gputext');
    operation text := 'near_duplicates_distributed';
    link text;    -- the schema of dblink
    shards name[];       -- the servers, and null for this one
    shard_rows text[];   -- of each shard, the inner query where it lies
    servers name[];
    server_rows text[];
    rows_here text;
    schemas text[];      -- of each server, that of gputext there
    connections text[] := '{}';
    columns name[] := ARRAY[id, body] || array_remove(ARRAY[signature], NULL);
    id_name text;
    options text;
    size_of text;
    shortest integer[];  -- of each shard, lengths of documents
    longest integer[];
    ratio double precision;
    statements text[] := '{}';
    statement text;
    found record;
    here record;
    state text;
    message text;
    details text;
    advice text;
    context text;
BEGIN
    IF num_nulls(docs, id, body, threshold, mode, max_length) > 0 THEN
        RAISE EXCEPTION 'an argument of % is null', operation USING ERRCODE = 'null_value_not_allowed',
            HINT = 'Only id_type, signature and condition may be null.';
    ELSIF NOT (threshold >= 0 AND threshold < 0.5) THEN
        RAISE EXCEPTION 'threshold must be at least 0 and below 0.5, not %', threshold USING ERRCODE = 'invalid_parameter_value';
    ELSIF (SELECT typcategory FROM pg_type WHERE oid = pg_typeof(id_type)) = 'A' THEN
        RAISE EXCEPTION '% does not take ids of type %', operation, pg_typeof(id_type) USING ERRCODE = 'feature_not_supported';
    END IF;
    size_of := format('length(%I)', body);
    EXECUTE format('SELECT %s.gputext_check_table($1)', own) USING docs;
    EXECUTE format('SELECT %1$s.gputext_type_text($1), format(''NULL::%%s, threshold => %%L, mode => %%L, max_length => %%L'', %1$s.gputext_type_text($1), %1$s.gputext_portable_text($2), $3, $4)', own)
    INTO id_name, options USING pg_typeof(id_type)::oid, threshold, mode, max_length;
    EXECUTE format($q$
        SELECT array_agg(server ORDER BY server), array_agg(rows ORDER BY server)
        FROM (SELECT server, string_agg(%1$s.gputext_partition_query($1, partition, relation, $2, $3), ' UNION ALL ' ORDER BY partition) AS rows
              FROM %1$s.gputext_partitions($1) GROUP BY server) AS s$q$, own)
    INTO shards, shard_rows USING docs, columns, condition;
    servers := array_remove(shards, NULL);
    server_rows := shard_rows[1:cardinality(servers)];
    rows_here := shard_rows[cardinality(servers) + 1];

    IF servers <> '{}' THEN
        EXECUTE format('SELECT %s.gputext_dblink_schema()', own) INTO link;
        connections := ARRAY(SELECT format('gputext_%s_%s', substr(md5(clock_timestamp()::text || random()), 1, 8), i)
                             FROM generate_subscripts(servers, 1) AS i);
        FOR i IN 1 .. cardinality(servers) LOOP
            EXECUTE format('SELECT %s.gputext_connect($1, $2, $3)', own) INTO statement USING link, servers[i], connections[i];
            schemas[i] := statement;
        END LOOP;
    END IF;

    -- How long the documents of each shard are
    IF cardinality(shards) > 1 THEN
        statement := 'SELECT min(length(body)), max(length(body)) FROM (%s) AS r (id, body)';
        FOR i IN 1 .. cardinality(servers) LOOP
            EXECUTE format('SELECT %s.gputext_send($1, $2, $3, $4)', own)
            USING link, servers[i], connections[i], format(statement, server_rows[i]);
        END LOOP;
        IF rows_here IS NOT NULL THEN
            EXECUTE format(statement, rows_here) INTO found;
            shortest[cardinality(shards)] := found.min;
            longest[cardinality(shards)] := found.max;
        END IF;
        EXECUTE format('SELECT %s.gputext_wait($1, $2, $3, $4)', own) USING link, servers, connections, operation;
        FOR i IN 1 .. cardinality(servers) LOOP
            EXECUTE format('SELECT * FROM %s.dblink(%L, %L) AS t (shortest integer, longest integer)', link, connections[i], 'FETCH ALL FROM answers')
            INTO found;
            shortest[i] := found.shortest;
            longest[i] := found.longest;
        END LOOP;
    END IF;

    -- The pairs within each server there, and meanwhile those within the rows here and between shards here
    FOR i IN 1 .. cardinality(servers) LOOP
        EXECUTE format('SELECT %s.gputext_send($1, $2, $3, $4)', own)
        USING link, servers[i], connections[i], format('SELECT * FROM %s.near_duplicates(%L, %s)', schemas[i], server_rows[i], options);
    END LOOP;
    IF rows_here IS NOT NULL THEN
        statements := statements || format('SELECT * FROM %s.near_duplicates(%L, %s)', own, rows_here, options);
    END IF;
    -- A document of length n has near-duplicates only of lengths from n / ratio to n * ratio, as the edit distance is at least
    -- the difference of the lengths. A character more or less allows for rounding.
    ratio := (1 + threshold) / (1 - threshold);
    FOR i IN 1 .. cardinality(shards) - 1 LOOP
        EXECUTE format($q$
            WITH bounds AS (
                SELECT j, greatest($1[j] / $3, $1[$4]) - 1 AS least, least($2[j] * $3, $2[$4]) + 1 AS most,
                       greatest($1[$4] / $3, $1[j]) - 1 AS other_least, least($2[$4] * $3, $2[j]) + 1 AS other_most
                FROM generate_series($4 + 1, cardinality($1)) AS j
            ), met AS (
                SELECT * FROM bounds WHERE least <= most AND other_least <= other_most
            ), parts AS (
                SELECT p.*, format('(%%s) AND %%s BETWEEN %%s AND %%s', coalesce($5, 'true'), $6, floor(least)::bigint, ceil(most)::bigint) AS condition, shard
                FROM %1$s.gputext_partitions($7) AS p, (SELECT min(least) AS least, max(most) AS most, $4 AS shard FROM met
                                                        UNION ALL SELECT other_least, other_most, j FROM met) AS m
                WHERE p.server IS NOT DISTINCT FROM $8[shard] AND least IS NOT NULL
            ), queries AS (
                SELECT shard = $4 AS is_new, string_agg(%1$s.gputext_partition_query($7, partition, format('%%I.%%I', nspname, relname), $9, condition, false),
                                                        ' UNION ALL ' ORDER BY partition) AS rows
                FROM parts JOIN pg_class AS c ON c.oid = partition JOIN pg_namespace AS n ON n.oid = relnamespace GROUP BY is_new
            )
            SELECT array_append($10, format('SELECT * FROM %1$s.near_duplicates_between(%%L, %%L, %%s)', a.rows, b.rows, $11))
            FROM queries AS a, queries AS b WHERE a.is_new AND NOT b.is_new$q$, own)
        INTO found USING shortest, longest, ratio, i, condition, size_of, docs, shards, columns, statements, options;
        statements := coalesce(found.array_append, statements);
    END LOOP;
    EXECUTE format('SELECT array_agg(id1) AS id1, array_agg(id2) AS id2, array_agg(edit_rate) AS edit_rate FROM (SELECT $1, $1, 0::double precision WHERE false%s) AS p (id1, id2, edit_rate)',
                   (SELECT string_agg(' UNION ALL ' || s, '') FROM unnest(statements) AS s))
    INTO here USING id_type;
    IF servers <> '{}' THEN
        EXECUTE format('SELECT %s.gputext_wait($1, $2, $3, $4)', own) USING link, servers, connections, operation;
    END IF;
    SELECT concat('SELECT * FROM unnest($1, $2, $3)', string_agg(
               format(' UNION ALL SELECT * FROM %s.dblink(%L, %L) AS t (id1 %s, id2 %s, edit_rate double precision)',
                      link, connection, 'FETCH ALL FROM answers', id_name, id_name), ''))
    INTO statement FROM unnest(connections) AS connection;
    RETURN QUERY EXECUTE format('SELECT least(id1, id2), greatest(id1, id2), edit_rate FROM (%s) AS p (id1, id2, edit_rate) ORDER BY 1, 2', statement)
    USING here.id1, here.id2, here.edit_rate;
    IF servers <> '{}' THEN
        EXECUTE format('SELECT %s.gputext_disconnect($1, $2)', own) USING link, connections;
    END IF;
EXCEPTION WHEN OTHERS OR query_canceled THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, details = PG_EXCEPTION_DETAIL,
        advice = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
    IF link IS NULL THEN
        RAISE;
    END IF;
    EXECUTE format('SELECT %1$s.gputext_disconnect($1, $2), %1$s.gputext_raise($3, %1$s.gputext_named_error($4, $5, $6, $2), $7, $8)', own)
    USING link, connections, state, message, context, servers, details, advice;
END
$$;
COMMENT ON FUNCTION near_duplicates_distributed(regclass, anyelement, name, name, name, double precision, text, integer, text) IS
    'pairs of near-duplicate documents of a table that has partitions on other servers, ids of the type of id_type';

CREATE FUNCTION near_duplicates_distributed(
    docs regclass,
    id name,
    body name,
    signature name DEFAULT NULL,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    condition text DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, edit_rate double precision)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000000
BEGIN ATOMIC
    SELECT * FROM near_duplicates_distributed(docs, NULL::bigint, id, body, signature, threshold, mode, max_length, condition);
END;
COMMENT ON FUNCTION near_duplicates_distributed(regclass, name, name, name, double precision, text, integer, text) IS
    'pairs of near-duplicate documents of a table that has partitions on other servers';
