\echo Use "ALTER EXTENSION gputext UPDATE" to load this file. \quit

-- A script runs as a superuser, in a schema that another role may own. A bare name leads to PostgreSQL's own objects alone, and what is
-- ours is written with @extschema@.

SET LOCAL search_path = pg_catalog, pg_temp;

-- A session from before an upgrade keeps the library that it has loaded, and so does a server whose
-- shared_preload_libraries names gputext. An older library lacks functions that are created below.

LOAD 'MODULE_PATHNAME';

DO $$
DECLARE
    loaded pg_catalog.text := coalesce(pg_catalog.current_setting('gputext.version', true), '0.1.0');
BEGIN
    IF pg_catalog.string_to_array(loaded, '.')::pg_catalog.int4[]
        OPERATOR(pg_catalog.<) pg_catalog.string_to_array('0.2.0', '.')::pg_catalog.int4[] THEN
        RAISE EXCEPTION 'gputext 0.2.0 needs a newer library than the one that is loaded'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = pg_catalog.format('The library is of version %s.', loaded),
                  HINT = 'Connect anew. If shared_preload_libraries names gputext, restart the server.';
    END IF;
END
$$;

-- What has changed, since the last release, of what that had

-- The text form of dictionaries does not depend on a setting any more.
ALTER FUNCTION @extschema@.trie_out(@extschema@.trie) IMMUTABLE;

-- Names of results that have changed. CREATE OR REPLACE cannot change them, and views may depend on the functions: they find a result
-- by its number.
UPDATE pg_catalog.pg_proc
SET proargnames = pg_catalog.array_replace(pg_catalog.array_replace(pg_catalog.array_replace(
    proargnames, 'neighbours', 'neighbors'), 'neighbour', 'neighbor'), 'operator', 'function_name')
WHERE oid OPERATOR(pg_catalog.=) ANY (ARRAY[
    '@extschema@.word_similarity(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text)'::pg_catalog.regprocedure,
    '@extschema@.word_similarity_pairs(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text)'::pg_catalog.regprocedure,
    '@extschema@.word_cooccurrences(text, integer, integer, integer, text, boolean, double precision, regconfig, text)'::pg_catalog.regprocedure,
    '@extschema@.gputext_activity()'::pg_catalog.regprocedure]::pg_catalog.oid[]);
ALTER VIEW @extschema@.gputext_activity RENAME COLUMN operator TO function_name;
CREATE OR REPLACE VIEW @extschema@.gputext_activity AS SELECT * FROM @extschema@.gputext_activity();

COMMENT ON FUNCTION @extschema@.word_similarity_from(text, integer, integer, text, text, double precision, text) IS
    'deprecated, by another name: word_similarity_from_counts, whose column is neighbors';
COMMENT ON FUNCTION @extschema@.word_similarity_pairs(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text) IS
    'word_similarity with a row for every word and neighbor';
COMMENT ON FUNCTION @extschema@.local_outlier_factor(text, integer, text, text, @extschema@.gputext_type_name) IS
    'local outlier factor (LOF) of each item of an inner query: mean density at its k nearest neighbors over its own';
COMMENT ON FUNCTION @extschema@.local_outlier_factor(text, anyelement, integer, text, text) IS
    'local outlier factor (LOF) of each item of an inner query: mean density at its k nearest neighbors over its own, ids of the type of id_type';

-- Similarities and distances of short strings

CREATE FUNCTION @extschema@.jaro_similarity(a text, b text) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_jaro_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.jaro_similarity(text, text) IS 'Jaro similarity in characters, from 0 to 1';

CREATE FUNCTION @extschema@.jaro_winkler_similarity(a text, b text) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_jaro_winkler_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.jaro_winkler_similarity(text, text) IS 'Jaro-Winkler similarity in characters, from 0 to 1';

CREATE FUNCTION @extschema@.osa_distance(a text, b text) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_osa_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.osa_distance(text, text) IS
    'insertions, deletions, substitutions and exchanges of adjacent characters, no character edited twice';

CREATE FUNCTION @extschema@.damerau_levenshtein(a text, b text) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_damerau_levenshtein' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.damerau_levenshtein(text, text) IS
    'insertions, deletions, substitutions and exchanges of adjacent characters';

-- Near-duplicates between two sets of documents

CREATE FUNCTION @extschema@.near_duplicates_between(
    new_docs text,
    old_docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.near_duplicates_between(text, text, double precision, text, integer, @extschema@.gputext_type_name) IS
    'pairs of a document of the first inner query and one of the second with an edit rate of at most the threshold';

CREATE FUNCTION @extschema@.near_duplicates_between(
    new_docs text,
    old_docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100
) RETURNS TABLE (id1 anyelement, id2 anyelement, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.near_duplicates_between(text, text, anyelement, double precision, text, integer) IS
    'pairs of a document of the first inner query and one of the second with an edit rate of at most the threshold, ids of the type of id_type';

-- Near-duplicates of a document: a condition, and the index and the exclusion constraint for it

CREATE FUNCTION @extschema@.gputext_near_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_near_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_near_support(internal) IS 'planner support: selectivity, and the condition that an index answers';

CREATE FUNCTION @extschema@.gputext_near_selectivity(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_near_selectivity' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_near_selectivity(internal, oid, internal, integer) IS 'restriction selectivity of the operators ~= and @~';

CREATE FUNCTION @extschema@.gputext_near_selectivity(internal, oid, internal, smallint, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_near_selectivity' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_near_selectivity(internal, oid, internal, smallint, internal) IS 'join selectivity of the operators ~= and @~';

CREATE FUNCTION @extschema@.is_near_duplicate(a text, b text, threshold double precision) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_is_near_duplicate_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
    SUPPORT @extschema@.gputext_near_support;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(text, text, double precision) IS 'whether the edit rate of two documents is at most the threshold';

CREATE FUNCTION @extschema@.is_near_duplicate(a bytea, b bytea, threshold double precision) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_is_near_duplicate_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
    SUPPORT @extschema@.gputext_near_support;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(bytea, bytea, double precision) IS 'whether the edit rate of two documents is at most the threshold';

-- At the threshold of a setting

CREATE FUNCTION @extschema@.is_near_duplicate(a text, b text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_text' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(text, text) IS 'implementation of ~= operator';

CREATE FUNCTION @extschema@.is_near_duplicate(a bytea, b bytea) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_bytea' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(bytea, bytea) IS 'implementation of ~= operator';

CREATE OPERATOR @extschema@.~= (
    FUNCTION = @extschema@.is_near_duplicate, LEFTARG = text, RIGHTARG = text, COMMUTATOR = OPERATOR(@extschema@.~=),
    RESTRICT = @extschema@.gputext_near_selectivity, JOIN = @extschema@.gputext_near_selectivity
);
COMMENT ON OPERATOR @extschema@.~= (text, text) IS 'near-duplicates at gputext.near_duplicate_threshold, in an exclusion constraint at the threshold of its index';

CREATE OPERATOR @extschema@.~= (
    FUNCTION = @extschema@.is_near_duplicate, LEFTARG = bytea, RIGHTARG = bytea, COMMUTATOR = OPERATOR(@extschema@.~=),
    RESTRICT = @extschema@.gputext_near_selectivity, JOIN = @extschema@.gputext_near_selectivity
);
COMMENT ON OPERATOR @extschema@.~= (bytea, bytea) IS 'near-duplicates at gputext.near_duplicate_threshold, in an exclusion constraint at the threshold of its index';

-- A document with its threshold: the planner makes one of is_near_duplicate() for an index

CREATE TYPE @extschema@.near_duplicate_query;

CREATE FUNCTION @extschema@.near_duplicate_query_in(cstring) RETURNS @extschema@.near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.near_duplicate_query_in(cstring) IS 'I/O';

CREATE FUNCTION @extschema@.near_duplicate_query_out(@extschema@.near_duplicate_query) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.near_duplicate_query_out(@extschema@.near_duplicate_query) IS 'I/O';

CREATE TYPE @extschema@.near_duplicate_query (
    INPUT = @extschema@.near_duplicate_query_in,
    OUTPUT = @extschema@.near_duplicate_query_out,
    ALIGNMENT = double,
    STORAGE = extended
);
COMMENT ON TYPE @extschema@.near_duplicate_query IS 'a document and the edit rate up to which others are its near-duplicates';

CREATE FUNCTION @extschema@.near_duplicate_query(document text, threshold double precision) RETURNS @extschema@.near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.near_duplicate_query(text, double precision) IS 'a document and a threshold for the operator @~';

CREATE FUNCTION @extschema@.near_duplicate_query(document bytea, threshold double precision) RETURNS @extschema@.near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.near_duplicate_query(bytea, double precision) IS 'a document and a threshold for the operator @~';

CREATE FUNCTION @extschema@.is_near_duplicate(document text, query @extschema@.near_duplicate_query) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_query_of_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(text, @extschema@.near_duplicate_query) IS 'implementation of @~ operator';

CREATE FUNCTION @extschema@.is_near_duplicate(document bytea, query @extschema@.near_duplicate_query) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_query_of_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(bytea, @extschema@.near_duplicate_query) IS 'implementation of @~ operator';

CREATE OPERATOR @extschema@.@~ (
    FUNCTION = @extschema@.is_near_duplicate, LEFTARG = text, RIGHTARG = @extschema@.near_duplicate_query,
    RESTRICT = @extschema@.gputext_near_selectivity, JOIN = @extschema@.gputext_near_selectivity
);
COMMENT ON OPERATOR @extschema@.@~ (text, @extschema@.near_duplicate_query) IS 'near-duplicates of a document at its threshold';

CREATE OPERATOR @extschema@.@~ (
    FUNCTION = @extschema@.is_near_duplicate, LEFTARG = bytea, RIGHTARG = @extschema@.near_duplicate_query,
    RESTRICT = @extschema@.gputext_near_selectivity, JOIN = @extschema@.gputext_near_selectivity
);
COMMENT ON OPERATOR @extschema@.@~ (bytea, @extschema@.near_duplicate_query) IS 'near-duplicates of a document at its threshold';

-- The index

CREATE FUNCTION @extschema@.gputext_index_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME', 'gputext_index_handler' LANGUAGE C;
COMMENT ON FUNCTION @extschema@.gputext_index_handler(internal) IS 'handler of the index access method gputext';

CREATE ACCESS METHOD gputext TYPE INDEX HANDLER @extschema@.gputext_index_handler;
COMMENT ON ACCESS METHOD gputext IS 'near-duplicate documents: sketches that exclude most rows';

CREATE OPERATOR CLASS @extschema@.text_near_duplicate_ops DEFAULT FOR TYPE text USING gputext AS
    OPERATOR 1 @extschema@.~= (text, text),
    OPERATOR 2 @extschema@.@~ (text, @extschema@.near_duplicate_query);
COMMENT ON OPERATOR CLASS @extschema@.text_near_duplicate_ops USING gputext IS 'near-duplicate texts, compared by characters';
COMMENT ON OPERATOR FAMILY @extschema@.text_near_duplicate_ops USING gputext IS 'near-duplicate texts, compared by characters';

CREATE OPERATOR CLASS @extschema@.bytea_near_duplicate_ops DEFAULT FOR TYPE bytea USING gputext AS
    OPERATOR 1 @extschema@.~= (bytea, bytea),
    OPERATOR 2 @extschema@.@~ (bytea, @extschema@.near_duplicate_query);
COMMENT ON OPERATOR CLASS @extschema@.bytea_near_duplicate_ops USING gputext IS 'near-duplicate binary strings, compared by bytes';
COMMENT ON OPERATOR FAMILY @extschema@.bytea_near_duplicate_ops USING gputext IS 'near-duplicate binary strings, compared by bytes';

CREATE FUNCTION @extschema@.gputext_index_check(index regclass, heapallindexed boolean DEFAULT false) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_index_check' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.gputext_index_check(regclass, boolean) IS 'raises an error if an index of the access method gputext is damaged, else the number of its sketches';

-- Passages that stand in several documents

CREATE FUNCTION @extschema@.shared_passages(
    docs text,
    min_length integer DEFAULT 50,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, start1 integer, length1 integer, id2 bigint, start2 integer, length2 integer)
    AS 'MODULE_PATHNAME', 'gputext_shared_passages' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.shared_passages(text, integer, text, boolean, boolean, bigint, @extschema@.gputext_type_name) IS
    'passages that two documents of an inner query share, with their places in both';

CREATE FUNCTION @extschema@.shared_passages(
    docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000
) RETURNS TABLE (id1 anyelement, start1 integer, length1 integer, id2 anyelement, start2 integer, length2 integer)
    AS 'MODULE_PATHNAME', 'gputext_shared_passages_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.shared_passages(text, anyelement, integer, text, boolean, boolean, bigint) IS
    'passages that two documents of an inner query share, with their places in both, ids of the type of id_type';

CREATE FUNCTION @extschema@.shared_passages_between(
    new_docs text,
    old_docs text,
    min_length integer DEFAULT 50,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, start1 integer, length1 integer, id2 bigint, start2 integer, length2 integer)
    AS 'MODULE_PATHNAME', 'gputext_shared_passages_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.shared_passages_between(text, text, integer, text, boolean, boolean, bigint, @extschema@.gputext_type_name) IS
    'passages that a document of the first inner query and one of the second share, with their places in both';

CREATE FUNCTION @extschema@.shared_passages_between(
    new_docs text,
    old_docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000
) RETURNS TABLE (id1 anyelement, start1 integer, length1 integer, id2 anyelement, start2 integer, length2 integer)
    AS 'MODULE_PATHNAME', 'gputext_shared_passages_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.shared_passages_between(text, text, anyelement, integer, text, boolean, boolean, bigint) IS
    'passages that a document of the first inner query and one of the second share, with their places in both, ids of the type of id_type';

CREATE FUNCTION @extschema@.common_passages(
    docs text,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 2,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (passage text, documents integer, occurrences bigint, id bigint, start integer, length integer)
    AS 'MODULE_PATHNAME', 'gputext_common_passages' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.common_passages(text, integer, integer, text, boolean, boolean, @extschema@.gputext_type_name) IS
    'passages that stand in several documents of an inner query, each once, with the number of documents and the first place';

CREATE FUNCTION @extschema@.common_passages(
    docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 2,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false
) RETURNS TABLE (passage text, documents integer, occurrences bigint, id anyelement, start integer, length integer)
    AS 'MODULE_PATHNAME', 'gputext_common_passages_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.common_passages(text, anyelement, integer, integer, text, boolean, boolean) IS
    'passages that stand in several documents of an inner query, each once, with the number of documents and the first place, ids of the type of id_type';

CREATE FUNCTION @extschema@.passage_coverage(
    docs text,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 2,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, characters integer, covered integer, coverage double precision, starts integer[], lengths integer[])
    AS 'MODULE_PATHNAME', 'gputext_passage_coverage' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.passage_coverage(text, integer, integer, text, boolean, boolean, @extschema@.gputext_type_name) IS
    'what of each document of an inner query stands in other documents, too';

CREATE FUNCTION @extschema@.passage_coverage(
    docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 2,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false
) RETURNS TABLE (id anyelement, characters integer, covered integer, coverage double precision, starts integer[], lengths integer[])
    AS 'MODULE_PATHNAME', 'gputext_passage_coverage_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.passage_coverage(text, anyelement, integer, integer, text, boolean, boolean) IS
    'what of each document of an inner query stands in other documents, too, ids of the type of id_type';

CREATE FUNCTION @extschema@.passage_coverage_between(
    new_docs text,
    old_docs text,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 1,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, characters integer, covered integer, coverage double precision, starts integer[], lengths integer[])
    AS 'MODULE_PATHNAME', 'gputext_passage_coverage_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.passage_coverage_between(text, text, integer, integer, text, boolean, boolean, @extschema@.gputext_type_name) IS
    'what of each document of the first inner query stands in documents of the second';

CREATE FUNCTION @extschema@.passage_coverage_between(
    new_docs text,
    old_docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 1,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false
) RETURNS TABLE (id anyelement, characters integer, covered integer, coverage double precision, starts integer[], lengths integer[])
    AS 'MODULE_PATHNAME', 'gputext_passage_coverage_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.passage_coverage_between(text, text, anyelement, integer, integer, text, boolean, boolean) IS
    'what of each document of the first inner query stands in documents of the second, ids of the type of id_type';

CREATE FUNCTION @extschema@.cut_passages(document text, starts integer[], lengths integer[]) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_cut_passages' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.cut_passages(text, integer[], integer[]) IS
    'the document without the characters from each of the starts on, as many as the lengths say';

-- Sets that are similar

CREATE FUNCTION @extschema@.similar_sets(
    sets text,
    threshold double precision DEFAULT 0.7,
    measure text DEFAULT 'jaccard',
    shingle integer DEFAULT 5,
    unit text DEFAULT 'words',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000,
    idf boolean DEFAULT false,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, similarity double precision, common integer, size1 integer, size2 integer)
    AS 'MODULE_PATHNAME', 'gputext_similar_sets' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.similar_sets(text, double precision, text, integer, text, boolean, boolean, bigint, boolean, @extschema@.gputext_type_name) IS
    'pairs of sets of an inner query, of the shingles of a text or the elements of an array, with a similarity of at least the threshold';

CREATE FUNCTION @extschema@.similar_sets(
    sets text,
    id_type anyelement,
    threshold double precision DEFAULT 0.7,
    measure text DEFAULT 'jaccard',
    shingle integer DEFAULT 5,
    unit text DEFAULT 'words',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000,
    idf boolean DEFAULT false
) RETURNS TABLE (id1 anyelement, id2 anyelement, similarity double precision, common integer, size1 integer, size2 integer)
    AS 'MODULE_PATHNAME', 'gputext_similar_sets_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.similar_sets(text, anyelement, double precision, text, integer, text, boolean, boolean, bigint, boolean) IS
    'pairs of sets of an inner query, of the shingles of a text or the elements of an array, with a similarity of at least the threshold, ids of the type of id_type';

CREATE FUNCTION @extschema@.similar_sets_between(
    new_sets text,
    old_sets text,
    threshold double precision DEFAULT 0.7,
    measure text DEFAULT 'jaccard',
    shingle integer DEFAULT 5,
    unit text DEFAULT 'words',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000,
    idf boolean DEFAULT false,
    k integer DEFAULT NULL,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, similarity double precision, common integer, size1 integer, size2 integer)
    AS 'MODULE_PATHNAME', 'gputext_similar_sets_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.similar_sets_between(text, text, double precision, text, integer, text, boolean, boolean, bigint, boolean, integer, @extschema@.gputext_type_name) IS
    'pairs of a set of the first inner query and one of the second with a similarity of at least the threshold, all or the most similar ones of each new set';

CREATE FUNCTION @extschema@.similar_sets_between(
    new_sets text,
    old_sets text,
    id_type anyelement,
    threshold double precision DEFAULT 0.7,
    measure text DEFAULT 'jaccard',
    shingle integer DEFAULT 5,
    unit text DEFAULT 'words',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000,
    idf boolean DEFAULT false,
    k integer DEFAULT NULL
) RETURNS TABLE (id1 anyelement, id2 anyelement, similarity double precision, common integer, size1 integer, size2 integer)
    AS 'MODULE_PATHNAME', 'gputext_similar_sets_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.similar_sets_between(text, text, anyelement, double precision, text, integer, text, boolean, boolean, bigint, boolean, integer) IS
    'pairs of a set of the first inner query and one of the second with a similarity of at least the threshold, all or the most similar ones of each new set, ids of the type of id_type';

-- Groups of ids that pairs connect

CREATE FUNCTION @extschema@.groups_of(
    pairs text,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, group_id bigint, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_groups_of' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.groups_of(text, @extschema@.gputext_type_name) IS
    'the group of each id in the pairs of an inner query: connected components';

CREATE FUNCTION @extschema@.groups_of(
    pairs text,
    id_type anyelement
) RETURNS TABLE (id anyelement, group_id anyelement, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_groups_of_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.groups_of(text, anyelement) IS
    'the group of each id in the pairs of an inner query: connected components, ids of the type of id_type';

-- The same with a key that excludes, the last column of both inner queries: rows of equal keys are no
-- neighbors. Functions of their own, so that an update leaves those above to what depends on them.
-- k1 and b are of metric 'bm25'.

CREATE FUNCTION @extschema@.gpu_knn(
    queries text,
    items text,
    k integer,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.gpu_knn(text, text, integer, boolean, text, boolean, regconfig, integer, text, double precision, double precision, @extschema@.gputext_type_name) IS
    'the k nearest items of every query, exactly; with exclude_key never of an equal key; both given by inner queries';

CREATE FUNCTION @extschema@.gpu_knn(
    queries text,
    items text,
    id_type anyelement,
    k integer,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.gpu_knn(text, text, anyelement, integer, boolean, text, boolean, regconfig, integer, text, double precision, double precision) IS
    'the k nearest items of every query, exactly; with exclude_key never of an equal key; both given by inner queries, ids of the type of id_type';

CREATE FUNCTION @extschema@.gpu_knn_within(
    queries text,
    items text,
    radius double precision,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.gpu_knn_within(text, text, double precision, boolean, text, boolean, regconfig, integer, text, double precision, double precision, @extschema@.gputext_type_name) IS
    'all items within a distance of every query, nearest first; with exclude_key never of an equal key; both given by inner queries';

CREATE FUNCTION @extschema@.gpu_knn_within(
    queries text,
    items text,
    id_type anyelement,
    radius double precision,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.gpu_knn_within(text, text, anyelement, double precision, boolean, text, boolean, regconfig, integer, text, double precision, double precision) IS
    'all items within a distance of every query, nearest first; with exclude_key never of an equal key; both given by inner queries, ids of the type of id_type';

-- The answers of several searches for nearest neighbors, merged

CREATE FUNCTION @extschema@.knn_merge(
    partial_answers text,
    k integer,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_merge' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.knn_merge(text, integer, @extschema@.gputext_type_name) IS
    'the k nearest items of every query from the answers of searches in parts of the items, given by an inner query';

CREATE FUNCTION @extschema@.knn_merge(
    partial_answers text,
    id_type anyelement,
    k integer
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_merge_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.knn_merge(text, anyelement, integer) IS
    'the k nearest items of every query from the answers of searches in parts of the items, given by an inner query, ids of the type of id_type';

-- Weights of the terms of texts by BM25: functions of their own, so that an update leaves those that a release had. With
-- bm25 => false they are these.

CREATE FUNCTION @extschema@.tfidf(
    items text,
    bm25 boolean,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf(text, boolean, regconfig, integer, double precision, double precision, @extschema@.gputext_type_name) IS
    'terms of every text of an inner query and their BM25 weights';

CREATE FUNCTION @extschema@.tfidf(
    items text,
    id_type anyelement,
    bm25 boolean,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf(text, anyelement, boolean, regconfig, integer, double precision, double precision) IS
    'terms of every text of an inner query and their BM25 weights, ids of the type of id_type';

-- Over several servers: each one's frequencies, and weights by the sum of all

CREATE FUNCTION @extschema@.tfidf_frequencies(
    items text,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (term text, documents bigint, first_id bigint, occurrences bigint)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf_frequencies(text, regconfig, @extschema@.gputext_type_name) IS
    'how many texts of an inner query have each term, and how often; in a row without a term how many texts there are, and their length';

CREATE FUNCTION @extschema@.tfidf_frequencies(
    items text,
    id_type anyelement,
    config regconfig DEFAULT pg_catalog.get_current_ts_config()
) RETURNS TABLE (term text, documents bigint, first_id anyelement, occurrences bigint)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_frequencies_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf_frequencies(text, anyelement, regconfig) IS
    'how many texts of an inner query have each term, and how often; in a row without a term how many texts there are, and their length; ids of the type of id_type';

CREATE FUNCTION @extschema@.tfidf_from_frequencies(
    items text,
    frequencies text,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    bm25 boolean DEFAULT false,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_from_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf_from_frequencies(text, text, regconfig, integer, boolean, double precision, double precision, @extschema@.gputext_type_name) IS
    'tfidf by the document frequencies that an inner query gives, such as the sum of those of several servers';

CREATE FUNCTION @extschema@.tfidf_from_frequencies(
    items text,
    frequencies text,
    id_type anyelement,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    bm25 boolean DEFAULT false,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_from_frequencies_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf_from_frequencies(text, text, anyelement, regconfig, integer, boolean, double precision, double precision) IS
    'tfidf by the document frequencies that an inner query gives, such as the sum of those of several servers, ids of the type of id_type';

-- Distances of two vectors, and operators for them. They have the names that pgvector gives the same distances of its types; on arrays
-- pgvector has none. Each gives the bits of gpu_knn's distance.

CREATE FUNCTION @extschema@.euclidean_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_euclidean_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.euclidean_distance(real[], real[]) IS
    'euclidean distance';
CREATE OPERATOR @extschema@.<-> (FUNCTION = @extschema@.euclidean_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = OPERATOR(@extschema@.<->));
COMMENT ON OPERATOR @extschema@.<-> (real[], real[]) IS
    'euclidean distance';

CREATE FUNCTION @extschema@.cosine_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.cosine_distance(real[], real[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';
CREATE OPERATOR @extschema@.<=> (FUNCTION = @extschema@.cosine_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = OPERATOR(@extschema@.<=>));
COMMENT ON OPERATOR @extschema@.<=> (real[], real[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';

CREATE FUNCTION @extschema@.negative_inner_product(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.negative_inner_product(real[], real[]) IS
    'negative inner product';
CREATE OPERATOR @extschema@.<#> (FUNCTION = @extschema@.negative_inner_product, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = OPERATOR(@extschema@.<#>));
COMMENT ON OPERATOR @extschema@.<#> (real[], real[]) IS
    'negative inner product';

CREATE FUNCTION @extschema@.manhattan_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_manhattan_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.manhattan_distance(real[], real[]) IS
    'manhattan distance';
CREATE OPERATOR @extschema@.<+> (FUNCTION = @extschema@.manhattan_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = OPERATOR(@extschema@.<+>));
COMMENT ON OPERATOR @extschema@.<+> (real[], real[]) IS
    'manhattan distance';

CREATE FUNCTION @extschema@.euclidean_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_euclidean_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.euclidean_distance(double precision[], double precision[]) IS
    'euclidean distance';
CREATE OPERATOR @extschema@.<-> (FUNCTION = @extschema@.euclidean_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = OPERATOR(@extschema@.<->));
COMMENT ON OPERATOR @extschema@.<-> (double precision[], double precision[]) IS
    'euclidean distance';

CREATE FUNCTION @extschema@.cosine_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.cosine_distance(double precision[], double precision[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';
CREATE OPERATOR @extschema@.<=> (FUNCTION = @extschema@.cosine_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = OPERATOR(@extschema@.<=>));
COMMENT ON OPERATOR @extschema@.<=> (double precision[], double precision[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';

CREATE FUNCTION @extschema@.negative_inner_product(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.negative_inner_product(double precision[], double precision[]) IS
    'negative inner product';
CREATE OPERATOR @extschema@.<#> (FUNCTION = @extschema@.negative_inner_product, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = OPERATOR(@extschema@.<#>));
COMMENT ON OPERATOR @extschema@.<#> (double precision[], double precision[]) IS
    'negative inner product';

CREATE FUNCTION @extschema@.manhattan_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_manhattan_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.manhattan_distance(double precision[], double precision[]) IS
    'manhattan distance';
CREATE OPERATOR @extschema@.<+> (FUNCTION = @extschema@.manhattan_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = OPERATOR(@extschema@.<+>));
COMMENT ON OPERATOR @extschema@.<+> (double precision[], double precision[]) IS
    'manhattan distance';

-- The recall of an index that finds the nearest rows approximately

CREATE FUNCTION @extschema@.knn_recall(index regclass, queries text, k integer, id_type @extschema@.gputext_type_name DEFAULT NULL)
    RETURNS TABLE (query_id bigint, recall double precision, found integer, expected integer, returned integer,
                   kth_distance double precision, farthest_distance double precision, milliseconds double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_recall' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000;
COMMENT ON FUNCTION @extschema@.knn_recall(regclass, text, integer, @extschema@.gputext_type_name) IS
    'how many of the exact k nearest rows of each query an index returns, at the settings of the session';

CREATE FUNCTION @extschema@.knn_recall(index regclass, queries text, id_type anyelement, k integer)
    RETURNS TABLE (query_id anyelement, recall double precision, found integer, expected integer, returned integer,
                   kth_distance double precision, farthest_distance double precision, milliseconds double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_recall_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.knn_recall(regclass, text, anyelement, integer) IS
    'how many of the exact k nearest rows of each query an index returns, at the settings of the session, ids of the type of id_type';

-- DBSCAN, and groups of embeddings within a distance

CREATE FUNCTION @extschema@.dbscan(
    items text,
    epsilon double precision,
    min_points integer,
    metric text DEFAULT 'euclidean',
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, cluster bigint, is_core boolean)
    AS 'MODULE_PATHNAME', 'gputext_dbscan' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.dbscan(text, double precision, integer, text, @extschema@.gputext_type_name) IS
    'cluster of each item of an inner query by DBSCAN, from 0, null for noise, and whether it is a core point';

CREATE FUNCTION @extschema@.dbscan(
    items text,
    id_type anyelement,
    epsilon double precision,
    min_points integer,
    metric text DEFAULT 'euclidean'
) RETURNS TABLE (id anyelement, cluster bigint, is_core boolean)
    AS 'MODULE_PATHNAME', 'gputext_dbscan_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.dbscan(text, anyelement, double precision, integer, text) IS
    'cluster of each item of an inner query by DBSCAN, from 0, null for noise, and whether it is a core point, ids of the type of id_type';

CREATE FUNCTION @extschema@.semantic_duplicate_groups(
    items text,
    threshold double precision,
    metric text DEFAULT 'cosine',
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, group_id bigint, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_semantic_duplicate_groups' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.semantic_duplicate_groups(text, double precision, text, @extschema@.gputext_type_name) IS
    'the group of each embedding of an inner query, those within a distance of each other being in one group';

CREATE FUNCTION @extschema@.semantic_duplicate_groups(
    items text,
    id_type anyelement,
    threshold double precision,
    metric text DEFAULT 'cosine'
) RETURNS TABLE (id anyelement, group_id anyelement, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_semantic_duplicate_groups_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.semantic_duplicate_groups(text, anyelement, double precision, text) IS
    'the group of each embedding of an inner query, those within a distance of each other being in one group, ids of the type of id_type';

-- trie_agg in parallel workers

CREATE FUNCTION @extschema@.trie_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_agg_combine(internal, internal) IS 'combine function of trie_agg';

CREATE FUNCTION @extschema@.trie_agg_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_agg_serialize(internal) IS 'serialization function of trie_agg';

CREATE FUNCTION @extschema@.trie_agg_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_agg_deserialize(bytea, internal) IS 'deserialization function of trie_agg';

CREATE OR REPLACE AGGREGATE @extschema@.trie_agg(word text) (
    SFUNC = @extschema@.trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = @extschema@.trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.trie_agg_combine,
    SERIALFUNC = @extschema@.trie_agg_serialize,
    DESERIALFUNC = @extschema@.trie_agg_deserialize,
    PARALLEL = SAFE
);

CREATE OR REPLACE AGGREGATE @extschema@.trie_agg(word text, structure text) (
    SFUNC = @extschema@.trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = @extschema@.trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.trie_agg_combine,
    SERIALFUNC = @extschema@.trie_agg_serialize,
    DESERIALFUNC = @extschema@.trie_agg_deserialize,
    PARALLEL = SAFE
);

-- What a dictionary is, in a line

CREATE FUNCTION @extschema@.trie_summary(dictionary @extschema@.trie) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_trie_summary' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_summary(@extschema@.trie) IS 'a line about a dictionary: its structure, words and bytes';

-- Over several servers: the counts of each one's words, and a thesaurus of the words that are
-- frequent enough in all texts

CREATE FUNCTION @extschema@.word_frequencies(
    docs text,
    config regconfig DEFAULT 'pg_catalog.simple'
) RETURNS TABLE (word text, count bigint)
    AS 'MODULE_PATHNAME', 'gputext_word_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.word_frequencies(text, regconfig) IS
    'how often each word occurs in the texts of an inner query';

CREATE FUNCTION @extschema@.word_similarity_from_counts(
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
) RETURNS TABLE (word text, neighbors text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_from_words' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word_similarity_from_counts(text, text, integer, integer, integer, integer, text, text, double precision, text) IS
    'word_similarity from counts of word_cooccurrences, and the vocabulary from counts of word_frequencies, that inner queries give';

CREATE FUNCTION @extschema@.word_similarity_from_counts(
    cooccurrences text,
    top_k integer DEFAULT 20,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    discount double precision DEFAULT NULL,
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbors text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_from_counts' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word_similarity_from_counts(text, integer, integer, text, text, double precision, text) IS
    'word_similarity from counts of word_cooccurrences that an inner query gives';

-- Models of several servers

CREATE FUNCTION @extschema@.word2vec_average(
    models text,
    initial text DEFAULT NULL,
    weights text DEFAULT 'equal'
) RETURNS TABLE (word text, count bigint, vector real[], output_vector real[])
    AS 'MODULE_PATHNAME', 'gputext_word2vec_average' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word2vec_average(text, text, text) IS
    'one model of the rows of several models of word2vec, which an inner query gives: the mean of each word''s vectors';

-- Linkage models: how likely levels of agreement are among pairs of records that match, and among others

CREATE FUNCTION @extschema@.linkage_model(
    records text,
    comparisons text[],
    term_frequencies text[] DEFAULT '{}',
    matches text DEFAULT NULL,
    keys text[] DEFAULT '{}',
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision, match_weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_linkage_model' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 30;
COMMENT ON FUNCTION @extschema@.linkage_model(text, text[], text[], text, text[], @extschema@.gputext_type_name) IS
    'the linkage model of the records of an inner query: m and u probabilities of each level of each field, estimated from the records';

CREATE FUNCTION @extschema@.linkage_model(
    records text,
    comparisons text[],
    id_type anyelement,
    term_frequencies text[] DEFAULT '{}',
    matches text DEFAULT NULL,
    keys text[] DEFAULT '{}'
) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision, match_weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_linkage_model_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 30;
COMMENT ON FUNCTION @extschema@.linkage_model(text, text[], anyelement, text[], text, text[]) IS
    'the linkage model of the records of an inner query: m and u probabilities of each level of each field, estimated from the records, ids of the type of id_type';

CREATE FUNCTION @extschema@.linkage_model_between(
    records1 text,
    records2 text,
    comparisons text[],
    term_frequencies text[] DEFAULT '{}',
    matches text DEFAULT NULL,
    keys text[] DEFAULT '{}',
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision, match_weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_linkage_model_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 30;
COMMENT ON FUNCTION @extschema@.linkage_model_between(text, text, text[], text[], text, text[], @extschema@.gputext_type_name) IS
    'the linkage model of records of two inner queries: m and u probabilities of each level of each field, estimated from the records';

CREATE FUNCTION @extschema@.linkage_model_between(
    records1 text,
    records2 text,
    comparisons text[],
    id_type anyelement,
    term_frequencies text[] DEFAULT '{}',
    matches text DEFAULT NULL,
    keys text[] DEFAULT '{}'
) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision, match_weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_linkage_model_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 30;
COMMENT ON FUNCTION @extschema@.linkage_model_between(text, text, text[], anyelement, text[], text, text[]) IS
    'the linkage model of records of two inner queries: m and u probabilities of each level of each field, estimated from the records, ids of the type of id_type';

-- Records that match by a linkage model

CREATE FUNCTION @extschema@.linked_records(
    records text,
    model text,
    min_weight double precision DEFAULT 0,
    keys text[] DEFAULT '{}',
    max_pairs bigint DEFAULT 10000000,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, match_weight double precision, match_probability double precision, pattern integer[], weights double precision[])
    AS 'MODULE_PATHNAME', 'gputext_linked_records' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.linked_records(text, text, double precision, text[], bigint, @extschema@.gputext_type_name) IS
    'all pairs of records of an inner query whose match weight by a linkage model is at least min_weight';

CREATE FUNCTION @extschema@.linked_records(
    records text,
    model text,
    id_type anyelement,
    min_weight double precision DEFAULT 0,
    keys text[] DEFAULT '{}',
    max_pairs bigint DEFAULT 10000000
) RETURNS TABLE (id1 anyelement, id2 anyelement, match_weight double precision, match_probability double precision, pattern integer[], weights double precision[])
    AS 'MODULE_PATHNAME', 'gputext_linked_records_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.linked_records(text, text, anyelement, double precision, text[], bigint) IS
    'all pairs of records of an inner query whose match weight by a linkage model is at least min_weight, ids of the type of id_type';

CREATE FUNCTION @extschema@.linked_records_between(
    records1 text,
    records2 text,
    model text,
    min_weight double precision DEFAULT 0,
    keys text[] DEFAULT '{}',
    max_pairs bigint DEFAULT 10000000,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, match_weight double precision, match_probability double precision, pattern integer[], weights double precision[])
    AS 'MODULE_PATHNAME', 'gputext_linked_records_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.linked_records_between(text, text, text, double precision, text[], bigint, @extschema@.gputext_type_name) IS
    'all pairs of a record of the first inner query and one of the second whose match weight by a linkage model is at least min_weight';

CREATE FUNCTION @extschema@.linked_records_between(
    records1 text,
    records2 text,
    model text,
    id_type anyelement,
    min_weight double precision DEFAULT 0,
    keys text[] DEFAULT '{}',
    max_pairs bigint DEFAULT 10000000
) RETURNS TABLE (id1 anyelement, id2 anyelement, match_weight double precision, match_probability double precision, pattern integer[], weights double precision[])
    AS 'MODULE_PATHNAME', 'gputext_linked_records_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.linked_records_between(text, text, text, anyelement, double precision, text[], bigint) IS
    'all pairs of a record of the first inner query and one of the second whose match weight by a linkage model is at least min_weight, ids of the type of id_type';

-- What gputextd keeps of tables

CREATE FUNCTION @extschema@.gputext_resident(
    OUT relation regclass, OUT rows bigint, OUT bytes bigint, OUT device_bytes bigint,
    OUT hits bigint, OUT misses bigint, OUT last_used timestamp with time zone
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_resident' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION @extschema@.gputext_resident() IS 'rows of the view gputext_resident';

CREATE VIEW @extschema@.gputext_resident AS SELECT * FROM @extschema@.gputext_resident();
COMMENT ON VIEW @extschema@.gputext_resident IS
    'relations of this database of which gputextd keeps values, so that statements need not read them again; those that the user may read whole';
GRANT SELECT ON @extschema@.gputext_resident TO PUBLIC;

CREATE FUNCTION @extschema@.gputext_evict(relation regclass) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_evict' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION @extschema@.gputext_evict(regclass) IS
    'makes gputextd forget what it keeps of a relation and its partitions; returns how many values it kept';

CREATE FUNCTION @extschema@.gputext_evict() RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_evict_all' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION @extschema@.gputext_evict() IS
    'makes gputextd forget what it keeps of this database; returns how many values it kept';

-- One call on many servers
--
-- The functions whose names end in _distributed take a partitioned table whose partitions may be foreign tables of
-- postgres_fdw, and run a statement on each server, on all of them at once. They run with the rights of the caller, by whose
-- user mappings they connect. Those whose names begin with gputext_ are their parts.
--
-- Inner queries and conditions are the caller's, and mean what his search_path says. So the functions that run them leave it as
-- it is, and name all else with its schema, as the statements do that they send. The parts that only read catalogues and
-- put texts together have a search_path of their own. No template of format() holds anything but what is written here.

CREATE FUNCTION @extschema@.gputext_rows_as_text(inner_query text, id_type anyelement, columns integer)
    RETURNS TABLE (place bigint, ordered boolean, id anyelement, texts text[], types text[])
    AS 'MODULE_PATHNAME', 'gputext_rows_as_text' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.gputext_rows_as_text(text, anyelement, integer) IS
    'the rows of an inner query as text that other servers read alike, in its order, and whether it has an ORDER BY';

CREATE FUNCTION @extschema@.gputext_reals(value text) RETURNS real[]
    AS 'MODULE_PATHNAME', 'gputext_reals' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_reals(text) IS 'an array of real from the text that gputext_rows_as_text makes of it';

CREATE FUNCTION @extschema@.gputext_portable_text(value anyelement) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET extra_float_digits = 3 SET datestyle = 'ISO' SET intervalstyle = 'postgres'
    AS $$ SELECT pg_catalog.format('%s', value) $$;
COMMENT ON FUNCTION @extschema@.gputext_portable_text(anyelement) IS 'a value as text that other servers read alike';

CREATE FUNCTION @extschema@.gputext_type_text(type oid) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_type_text' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_type_text(oid) IS 'the name of a type, which means the same with every search_path';

CREATE FUNCTION @extschema@.gputext_equality(type oid) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_equality' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_equality(oid) IS 'the operator by which values of a type are equal, which means the same with every search_path';

CREATE FUNCTION @extschema@.gputext_bigint_ids(id_type @extschema@.gputext_type_name) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_bigint_ids' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_bigint_ids(@extschema@.gputext_type_name) IS 'a null; raises an error for the name of a type in place of a value of it';

CREATE FUNCTION @extschema@.gputext_check_ids(operation text, type regtype) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT typcategory FROM pg_type WHERE oid = type) = 'A' THEN
        RAISE EXCEPTION '% does not take ids of type %', operation, type USING ERRCODE = 'feature_not_supported';
    END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.gputext_check_ids(text, regtype) IS 'raises an error for ids that servers could not be asked about';

-- ---- The parts of a table ----

CREATE FUNCTION @extschema@.gputext_partitions(items regclass) RETURNS TABLE (partition oid, server name, relation text)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
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
    ORDER BY s.srvname, c.oid
$$;
COMMENT ON FUNCTION @extschema@.gputext_partitions(regclass) IS
    'the partitions of a table, or the table itself: the server of postgres_fdw that has it, if one does, and its name there';

CREATE FUNCTION @extschema@.gputext_partition_query(items regclass, partition oid, relation text, columns name[], condition text, there boolean DEFAULT true)
    RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    table_name name := (SELECT relname FROM pg_class WHERE oid = items);
    listed text;
    missing name;
BEGIN
    SELECT c INTO missing FROM unnest(columns) AS c
    WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = items AND attname = c AND attnum > 0 AND NOT attisdropped);
    IF FOUND THEN
        RAISE EXCEPTION 'column "%" of relation "%" does not exist', missing, table_name USING ERRCODE = 'undefined_column';
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
                  listed, relation, table_name, condition);
END
$$;
COMMENT ON FUNCTION @extschema@.gputext_partition_query(regclass, oid, text, name[], text, boolean) IS
    'a query for columns of a partition, to run where it lies or here, and with a condition by the names that columns have here';

CREATE FUNCTION @extschema@.gputext_shards(items regclass, columns name[], condition text, OUT servers name[], OUT rows_there text[], OUT rows_here text)
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(server ORDER BY server) FILTER (WHERE server IS NOT NULL), '{}'),
           coalesce(array_agg(rows ORDER BY server) FILTER (WHERE server IS NOT NULL), '{}'),
           min(rows) FILTER (WHERE server IS NULL)
    FROM (SELECT server, string_agg(@extschema@.gputext_partition_query(items, partition, relation, columns, condition), ' UNION ALL ' ORDER BY partition) AS rows
          FROM @extschema@.gputext_partitions(items) GROUP BY server) AS s
$$;
COMMENT ON FUNCTION @extschema@.gputext_shards(regclass, name[], text) IS
    'the servers that have partitions of a table, an inner query for the rows of each, and one for those that are here';

CREATE FUNCTION @extschema@.gputext_check_table(items regclass) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    table_name name := (SELECT relname FROM pg_class WHERE oid = items);
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class WHERE oid = items AND relkind IN ('r', 'p', 'f')) THEN
        RAISE EXCEPTION '"%" is not a table', table_name USING ERRCODE = 'wrong_object_type';
    END IF;
    -- Statements go to the servers past the table's own checks.
    IF NOT has_table_privilege(items, 'SELECT') THEN
        RAISE EXCEPTION 'permission denied for table %', table_name USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF row_security_active(items) THEN
        RAISE EXCEPTION 'policies for row-level security of table % are not applied on other servers', table_name
            USING ERRCODE = 'feature_not_supported', HINT = 'Create the policies on the servers that have the partitions.';
    END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.gputext_check_table(regclass) IS 'raises an error for a table that the caller may not read, or not whole';

-- ---- Connections ----

CREATE FUNCTION @extschema@.gputext_connect(operation text, servers name[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_connect' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.gputext_connect(text, name[]) IS
    'connects to servers by the caller''s user mappings; returns the number of the call, which ends with its transaction at the latest';

CREATE FUNCTION @extschema@.gputext_send(call integer, statements text[]) RETURNS void
    AS 'MODULE_PATHNAME', 'gputext_send' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.gputext_send(integer, text[]) IS 'has the servers of a call begin a statement each';

CREATE FUNCTION @extschema@.gputext_answers(call integer) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_answers' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.gputext_answers(integer) IS 'the rows that the servers of a call answer with, after the number of the server';

CREATE FUNCTION @extschema@.gputext_disconnect(call integer) RETURNS void
    AS 'MODULE_PATHNAME', 'gputext_disconnect' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.gputext_disconnect(integer) IS 'ends the connections of a call, and the statements that still run at their other ends';

-- The sessions there get the settings by which both sides write and read values alike, and begin transactions that only
-- read. They end a statement of a session that is gone.
CREATE FUNCTION @extschema@.gputext_begin(call integer, servers name[], path text) RETURNS text[]
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    release text := (SELECT extversion FROM pg_extension WHERE extname = 'gputext');
    schemas text[];
    found record;
BEGIN
    PERFORM @extschema@.gputext_send(call, array_fill('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'::text, ARRAY[cardinality(servers)]));
    PERFORM FROM @extschema@.gputext_answers(call) AS t (server integer);
    PERFORM @extschema@.gputext_send(call, array_fill(format($q$
        SELECT extversion, pg_catalog.quote_ident(nspname), pg_catalog.current_database(), pg_catalog.concat(
            pg_catalog.set_config('search_path', %L, false), pg_catalog.set_config('datestyle', %L, false),
            pg_catalog.set_config('intervalstyle', 'postgres', false), pg_catalog.set_config('extra_float_digits', '3', false),
            pg_catalog.set_config('timezone', %L, false),
            CASE WHEN pg_catalog.strpos(pg_catalog.version(), 'linux') OPERATOR(pg_catalog.>) 0
                 THEN pg_catalog.set_config('client_connection_check_interval', '1s', false) END)
        FROM (SELECT) AS one LEFT JOIN pg_catalog.pg_extension ON extname OPERATOR(pg_catalog.=) 'gputext'
        LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) extnamespace$q$,
        path, 'ISO, ' || split_part(current_setting('DateStyle'), ', ', 2), current_setting('TimeZone')), ARRAY[cardinality(servers)]));
    FOR found IN SELECT * FROM @extschema@.gputext_answers(call) AS t (server integer, release text, schema text, database text, settings text) LOOP
        IF found.release IS NULL THEN
            RAISE EXCEPTION 'server "%": the database "%" has no extension gputext', servers[found.server], found.database
                USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Run CREATE EXTENSION gputext there.';
        ELSIF found.release <> release THEN
            RAISE EXCEPTION 'server "%": the extension gputext is of version %, and here of %', servers[found.server], found.release, release
                USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Run ALTER EXTENSION gputext UPDATE where it is older.';
        END IF;
        schemas[found.server] := found.schema;
    END LOOP;
    RETURN schemas;
END
$$;
COMMENT ON FUNCTION @extschema@.gputext_begin(integer, name[], text) IS
    'begins a transaction at each server of a call, with the caller''s search_path; returns the schemas that gputext has there';

-- ---- Citus ----

CREATE FUNCTION @extschema@.gputext_is_citus_table(items regclass) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer boolean := false;
    table_name name;
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        EXECUTE 'SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = $1)' INTO answer USING items;
        SELECT relname INTO table_name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
        WHERE c.oid = items AND (relname ~ '[''\\]' OR nspname ~ '[''\\]');
        IF answer AND table_name IS NOT NULL THEN
            RAISE EXCEPTION 'the name of Citus table "%" has a quote or a backslash', table_name USING ERRCODE = 'feature_not_supported';
        END IF;
    END IF;
    RETURN answer;
END
$$;
COMMENT ON FUNCTION @extschema@.gputext_is_citus_table(regclass) IS 'whether the table is one of Citus, whose shards lie on its workers';

-- Citus runs a statement for each shard, at all workers at once, and gives its answer as one text. In the statement the shard
-- has the name that is given, which no text of the caller's can have.
CREATE FUNCTION @extschema@.gputext_citus_answers(items regclass, statement text, columns integer, shard_name text) RETURNS SETOF json
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    listed text;
    named text;
    shard record;
    worker text;
BEGIN
    SELECT string_agg(format('pg_catalog.array_agg(c%s::pg_catalog.text)::pg_catalog.text', i), ', '), string_agg('c' || i, ', ')
    INTO listed, named FROM generate_series(1, columns) AS i;
    FOR shard IN EXECUTE 'SELECT * FROM pg_catalog.run_command_on_shards($1, $2)'
        USING items, replace(replace(format('SELECT pg_catalog.json_build_array(%s)::pg_catalog.text FROM (%s) AS a (%s)', listed, statement, named), '%', '%%'), shard_name, '%s')
    LOOP
        IF NOT shard.success THEN
            EXECUTE 'SELECT concat(nodename, '':'', nodeport) FROM pg_catalog.pg_dist_shard_placement WHERE shardid = $1 LIMIT 1' INTO worker USING shard.shardid;
            RAISE EXCEPTION 'server "%": %', worker, shard.result USING ERRCODE = 'external_routine_exception', DETAIL = format('It was searching shard %s.', shard.shardid);
        END IF;
        RETURN NEXT shard.result::json;
    END LOOP;
END
$$;
COMMENT ON FUNCTION @extschema@.gputext_citus_answers(regclass, text, integer, text) IS 'the rows that a statement gives on each shard of a Citus table, columns as arrays';

-- ---- Nearest neighbors ----

CREATE FUNCTION @extschema@.gputext_unnested(strings text[]) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT format('pg_catalog.unnest(%L::pg_catalog.text[])', strings) $$;
COMMENT ON FUNCTION @extschema@.gputext_unnested(text[]) IS 'a call that gives the texts as rows';

CREATE FUNCTION @extschema@.gputext_config_text(config regconfig) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%L::pg_catalog.regconfig', format('%I.%I', nspname, cfgname)) FROM pg_ts_config AS c JOIN pg_namespace AS n ON n.oid = cfgnamespace WHERE c.oid = config
$$;
COMMENT ON FUNCTION @extschema@.gputext_config_text(regconfig) IS 'a text search configuration as a literal, which means the same with every search_path';

CREATE FUNCTION @extschema@.gputext_has_texts(items regclass, value name) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
                   WHERE attrelid = items AND attname = value AND NOT attisdropped AND (typcategory = 'S' OR atttypid = 'tsvector'::regtype))
$$;
COMMENT ON FUNCTION @extschema@.gputext_has_texts(regclass, name) IS 'whether a column''s values are searched as texts';

-- The queries of several calls of gpu_knn as inner queries, whose values are arrays of texts in "queries", and their places
CREATE FUNCTION @extschema@.gputext_knn_statement(
    schema text, queries text[], places text[], types text[], items text, options text, id_name text, equality text, is_within boolean, by_place boolean
) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(
               format('SELECT %s AS n, a.item_id, a.rank, a.distance FROM %s.%I(%L, %L, %s) AS a',
                      CASE WHEN by_place THEN 'a.query_id' ELSE 'q.n' END, schema, CASE WHEN is_within THEN 'gpu_knn_within' ELSE 'gpu_knn' END,
                      format('SELECT %s FROM ROWS FROM (%s) AS t (%s)', casts, queries[call], names), items, options)
               || CASE WHEN by_place THEN '' ELSE
                      format(' JOIN ROWS FROM (%s) AS q (n, id) ON q.id::%s %s a.query_id', places[call], id_name, equality) END,
               ' UNION ALL ' ORDER BY call)
    FROM generate_subscripts(queries, 1) AS call,
         (SELECT string_agg(CASE WHEN i > 1 AND types[i] = 'real[]' THEN format('%s.gputext_reals(c%s)', schema, i) ELSE format('c%s::%s', i, types[i]) END, ', ' ORDER BY i),
                 string_agg('c' || i, ', ' ORDER BY i)
          FROM generate_subscripts(types, 1) AS i) AS listed (casts, names)
$$;
COMMENT ON FUNCTION @extschema@.gputext_knn_statement(text, text[], text[], text[], text, text, text, text, boolean, boolean) IS
    'the statement by which a server searches its items for some queries';

CREATE FUNCTION @extschema@.gputext_knn_distributed(
    operation text, queries text, items regclass, id_type anyelement, id name, value name, k integer, radius double precision,
    weights name, key name, exclude_key name, metric text, exclude_self boolean, config regconfig, min_document_frequency integer,
    k1 double precision, b double precision, condition text, statement_bytes integer
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT pg_catalog.text := '@extschema@';
    path CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    call integer;    -- of other servers; null: there are none
    servers pg_catalog.name[];
    rows_there pg_catalog.text[];   -- of each server, the inner query for its items
    rows_here pg_catalog.text;      -- and for the items here, or for each shard of Citus
    is_citus boolean;
    shard_name CONSTANT pg_catalog.text := pg_catalog.concat('gputext_shard_', pg_catalog.md5(pg_catalog.random()::pg_catalog.text));
    schemas pg_catalog.text[];      -- of each server, that of gputext there
    columns CONSTANT pg_catalog.name[] := ARRAY[id, value] OPERATOR(pg_catalog.||) pg_catalog.array_remove(ARRAY[weights, key, exclude_key], NULL);
    is_bigint CONSTANT boolean := pg_catalog.pg_typeof(id_type)::pg_catalog.oid OPERATOR(pg_catalog.=) 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid;
    -- Whether queries are told apart by their places, and not by their ids
    by_place CONSTANT boolean := is_bigint AND NOT exclude_self;
    id_name pg_catalog.text;
    equality pg_catalog.text;
    config_text pg_catalog.text;
    options pg_catalog.text;
    batch pg_catalog.record;
    here pg_catalog.record;
    statement pg_catalog.text;
    answers pg_catalog.text;
BEGIN
    IF pg_catalog.num_nulls(queries, items, id, value, metric, exclude_self, config, min_document_frequency, k1, b, statement_bytes) OPERATOR(pg_catalog.>) 0
       OR pg_catalog.num_nulls(k, radius) OPERATOR(pg_catalog.<>) 1 THEN
        RAISE EXCEPTION 'an argument of % is null', operation USING ERRCODE = 'null_value_not_allowed',
            HINT = 'Only id_type, weights, key, exclude_key and condition may be null.';
    ELSIF statement_bytes OPERATOR(pg_catalog.<) 1 THEN
        RAISE EXCEPTION 'statement_bytes must be at least 1, not %', statement_bytes USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM @extschema@.gputext_check_ids(operation, pg_catalog.pg_typeof(id_type)), @extschema@.gputext_check_table(items);
    id_name := @extschema@.gputext_type_text(pg_catalog.pg_typeof(id_type));
    equality := @extschema@.gputext_equality(pg_catalog.pg_typeof(id_type));
    SELECT s.servers, s.rows_there, s.rows_here INTO servers, rows_there, rows_here FROM @extschema@.gputext_shards(items, columns, condition) AS s;
    is_citus := @extschema@.gputext_is_citus_table(items);
    IF is_citus THEN
        rows_here := @extschema@.gputext_partition_query(items, items, shard_name, columns, condition);
    END IF;
    options := pg_catalog.format('NULL::%s, %s => %L, metric => %L, exclude_self => %L, exclude_key => %L, k1 => %L, b => %L', id_name,
                                 CASE WHEN k IS NULL THEN 'radius' ELSE 'k' END,
                                 CASE WHEN k IS NULL THEN @extschema@.gputext_portable_text(radius) ELSE k::pg_catalog.text END,
                                 metric, exclude_self, exclude_key IS NOT NULL,
                                 @extschema@.gputext_portable_text(k1), @extschema@.gputext_portable_text(b));

    IF pg_catalog.cardinality(servers) OPERATOR(pg_catalog.>) 0 THEN
        call := @extschema@.gputext_connect(operation, servers);
        schemas := @extschema@.gputext_begin(call, servers, path);
    END IF;

    -- A term weighs by how many texts of all servers have it. The first text that has it decides in which order its weights
    -- are added, and so the last bits of distances. Other metrics of texts compare them as strings.
    IF metric OPERATOR(pg_catalog.=) ANY (ARRAY['cosine', 'bm25']) AND @extschema@.gputext_has_texts(items, value) THEN
        config_text := @extschema@.gputext_config_text(config);
        PERFORM @extschema@.gputext_send(call, ARRAY(
            SELECT pg_catalog.format('SELECT * FROM %s.tfidf_frequencies(%L, NULL::%s, config => %s)', schemas[i], rows_there[i], id_name, config_text)
            FROM pg_catalog.generate_subscripts(servers, 1) AS i ORDER BY i));
        statement := pg_catalog.format('SELECT * FROM %s.tfidf_frequencies(%L, NULL::%s, config => %s)', own, rows_here, id_name, config_text);
        IF rows_here IS NULL THEN
            statement := 'SELECT NULL::pg_catalog.text, 0::bigint, $1, 0::bigint WHERE false';
        ELSIF is_citus THEN
            statement := pg_catalog.format(
                'SELECT t.term, t.documents, t.first_id::%s, t.occurrences FROM %s.gputext_citus_answers(%L, %L, 4, %L) AS j, '
                'ROWS FROM (pg_catalog.unnest((j OPERATOR(pg_catalog.->>) 0)::pg_catalog.text[]), pg_catalog.unnest((j OPERATOR(pg_catalog.->>) 1)::bigint[]), '
                'pg_catalog.unnest((j OPERATOR(pg_catalog.->>) 2)::pg_catalog.text[]), pg_catalog.unnest((j OPERATOR(pg_catalog.->>) 3)::bigint[])) '
                'AS t (term, documents, first_id, occurrences)',
                id_name, own, items::pg_catalog.oid, statement, shard_name);
        END IF;
        EXECUTE pg_catalog.format(
            'SELECT pg_catalog.array_agg(term) AS term, pg_catalog.array_agg(documents) AS documents, '
            'pg_catalog.array_agg(%s.gputext_portable_text(first_id)) AS first_id, pg_catalog.array_agg(occurrences) AS occurrences '
            'FROM (%s) AS f (term, documents, first_id, occurrences)', own, statement)
        INTO here USING id_type;
        statement := pg_catalog.format(
            'SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4)) UNION ALL '
            'SELECT term, documents, first_id, occurrences FROM %s.gputext_answers($5) '
            'AS t (server integer, term pg_catalog.text, documents bigint, first_id pg_catalog.text, occurrences bigint)', own);
        EXECUTE pg_catalog.format($q$
            SELECT pg_catalog.array_agg(term)::pg_catalog.text AS terms, pg_catalog.array_agg(documents)::pg_catalog.text AS documents,
                   pg_catalog.array_agg(first_id)::pg_catalog.text AS first_ids, pg_catalog.array_agg(occurrences)::pg_catalog.text AS occurrences
            FROM (SELECT term, pg_catalog.sum(documents) AS documents, (pg_catalog.array_agg(first_id ORDER BY first_id::%s))[1] AS first_id,
                         pg_catalog.sum(occurrences) AS occurrences
                  FROM (%s) AS f (term, documents, first_id, occurrences) GROUP BY term) AS summed$q$, id_name, statement)
        INTO here USING here.term, here.documents, here.first_id, here.occurrences, call;
        options := pg_catalog.format('%s, config => %s, min_document_frequency => %s, frequencies => %L', options, config_text, min_document_frequency,
            pg_catalog.format('SELECT term, documents, first_id::%s, occurrences FROM ROWS FROM (pg_catalog.unnest(%L::pg_catalog.text[]), pg_catalog.unnest(%L::bigint[]), pg_catalog.unnest(%L::pg_catalog.text[]), pg_catalog.unnest(%L::bigint[])) AS t (term, documents, first_id, occurrences)',
                              id_name, here.terms, here.documents, here.first_ids, here.occurrences));
    ELSIF min_document_frequency OPERATOR(pg_catalog.<>) 1 THEN
        options := pg_catalog.format('%s, min_document_frequency => %s', options, min_document_frequency);
    END IF;

    -- Queries in the order of their rows, as many at a time as a statement has room for. Those with equal ids are
    -- searched in turns, where ids tell queries apart.
    FOR batch IN EXECUTE pg_catalog.format($q$
        WITH shipped AS (
            SELECT *, pg_catalog.row_number() OVER (ORDER BY CASE WHEN NOT ordered THEN id END, place) AS n FROM %1$s.gputext_rows_as_text($1, $2, $3)
        ), parts AS (
            SELECT *, pg_catalog.sum(pg_catalog.pg_column_size(texts)) OVER (ORDER BY n) OPERATOR(pg_catalog./) $5 AS part FROM shipped
        ), turns AS (
            SELECT *, CASE WHEN $4 THEN 1 ELSE pg_catalog.row_number() OVER (PARTITION BY part, id ORDER BY n) END AS turn FROM parts
        ), calls AS (
            SELECT part, turn, pg_catalog.min(types) AS types, pg_catalog.concat_ws(', ', %2$s) AS queries,
                   pg_catalog.format('pg_catalog.unnest(%%L::bigint[]), %%s', pg_catalog.array_agg(n ORDER BY n), %1$s.gputext_unnested(pg_catalog.array_agg(texts[1] ORDER BY n))) AS places
            FROM turns GROUP BY part, turn
        )
        SELECT pg_catalog.array_agg(n ORDER BY n) AS places, pg_catalog.array_agg(id ORDER BY n) AS ids, pg_catalog.min(types) AS types,
               (SELECT pg_catalog.array_agg(queries ORDER BY turn) FROM calls AS c WHERE c.part OPERATOR(pg_catalog.=) t.part) AS call_queries,
               (SELECT pg_catalog.array_agg(places ORDER BY turn) FROM calls AS c WHERE c.part OPERATOR(pg_catalog.=) t.part) AS call_places
        FROM turns AS t GROUP BY part ORDER BY part$q$,
        own, (SELECT pg_catalog.string_agg(pg_catalog.format('%s.gputext_unnested(pg_catalog.array_agg(%s ORDER BY n))', own,
                  CASE WHEN by_place AND i OPERATOR(pg_catalog.=) 1 THEN 'n::pg_catalog.text' ELSE pg_catalog.format('texts[%s]', i) END), ', ' ORDER BY i)
              FROM pg_catalog.generate_subscripts(columns, 1) AS i))
        USING queries, id_type, pg_catalog.cardinality(columns), by_place, statement_bytes
    LOOP
        PERFORM @extschema@.gputext_send(call, ARRAY(
            SELECT @extschema@.gputext_knn_statement(
                schemas[i], batch.call_queries, batch.call_places, batch.types, rows_there[i], options, id_name, equality, k IS NULL, by_place)
            FROM pg_catalog.generate_subscripts(servers, 1) AS i ORDER BY i));
        -- The items here are searched while the servers search theirs.
        IF rows_here IS NULL THEN
            statement := 'SELECT 0::bigint, $1, 0, 0::double precision WHERE false';
        ELSE
            statement := @extschema@.gputext_knn_statement(
                own, batch.call_queries, batch.call_places, batch.types, rows_here, options, id_name, equality, k IS NULL, by_place);
        END IF;
        IF is_citus THEN
            statement := pg_catalog.format(
                'SELECT t.n, t.item_id::%s, t.rank, t.distance FROM %s.gputext_citus_answers(%L, %L, 4, %L) AS j, '
                'ROWS FROM (pg_catalog.unnest((j OPERATOR(pg_catalog.->>) 0)::bigint[]), pg_catalog.unnest((j OPERATOR(pg_catalog.->>) 1)::pg_catalog.text[]), '
                'pg_catalog.unnest((j OPERATOR(pg_catalog.->>) 2)::integer[]), pg_catalog.unnest((j OPERATOR(pg_catalog.->>) 3)::double precision[])) AS t (n, item_id, rank, distance)',
                id_name, own, items::pg_catalog.oid, statement, shard_name);
        END IF;
        EXECUTE pg_catalog.format(
            'SELECT pg_catalog.array_agg(n) AS n, pg_catalog.array_agg(item_id) AS item_id, pg_catalog.array_agg(rank) AS rank, '
            'pg_catalog.array_agg(distance) AS distance FROM (%s) AS a (n, item_id, rank, distance)', statement)
        INTO here USING id_type;
        answers := pg_catalog.format('SELECT n, item_id, rank, distance FROM %s.gputext_answers(%L) AS t (server integer, n bigint, item_id %s, rank integer, distance double precision)',
                                     own, call, id_name);
        -- The places of queries are of the type of the ids only where that is bigint.
        IF rows_here IS NULL AND is_bigint THEN
            answers := pg_catalog.format('%s.knn_merge(%L, $3)', own, answers);
        ELSE
            answers := pg_catalog.format(
                '(SELECT a.n, a.item_id, pg_catalog.row_number() OVER (PARTITION BY a.n ORDER BY a.distance, a.item_id), a.distance FROM (%s) AS a (n, item_id, rank, distance))',
                pg_catalog.concat('SELECT * FROM ROWS FROM (pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6), pg_catalog.unnest($7)) UNION ALL ', answers));
        END IF;
        RETURN QUERY EXECUTE pg_catalog.format($q$
            SELECT i.id, m.item_id, m.rank::integer, m.distance
            FROM %s AS m (n, item_id, rank, distance) JOIN ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS i (n, id) ON i.n OPERATOR(pg_catalog.=) m.n
            WHERE $3 IS NULL OR m.rank OPERATOR(pg_catalog.<=) $3
            ORDER BY m.n, m.rank$q$, answers)
        USING batch.places, batch.ids, k, here.n, here.item_id, here.rank, here.distance;
    END LOOP;
    PERFORM @extschema@.gputext_disconnect(call);
END
$$;
COMMENT ON FUNCTION @extschema@.gputext_knn_distributed(text, text, regclass, anyelement, name, name, integer, double precision, name, name, name, text, boolean, regconfig, integer, double precision, double precision, text, integer) IS
    'what gpu_knn_distributed and gpu_knn_within_distributed have in common';

CREATE FUNCTION @extschema@.gpu_knn_distributed(
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
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    condition text DEFAULT NULL,
    statement_bytes integer DEFAULT 134217728,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
BEGIN ATOMIC
    SELECT * FROM @extschema@.gputext_knn_distributed('gpu_knn_distributed', queries, items, @extschema@.gputext_bigint_ids(id_type), id, value, k, NULL,
        weights, key, exclude_key, metric, exclude_self, config, min_document_frequency, k1, b, condition, statement_bytes);
END;
COMMENT ON FUNCTION @extschema@.gpu_knn_distributed(text, regclass, name, name, integer, name, name, name, text, boolean, regconfig, integer, double precision, double precision, text, integer, @extschema@.gputext_type_name) IS
    'the k nearest items of every query, exactly, among the items of a table that has partitions on other servers';

CREATE FUNCTION @extschema@.gpu_knn_distributed(
    queries text,
    items regclass,
    id name,
    value name,
    id_type anyelement,
    k integer,
    weights name DEFAULT NULL,
    key name DEFAULT NULL,
    exclude_key name DEFAULT NULL,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    condition text DEFAULT NULL,
    statement_bytes integer DEFAULT 134217728
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000 SUPPORT @extschema@.gputext_id_type_support AS $$
    SELECT * FROM @extschema@.gputext_knn_distributed('gpu_knn_distributed', queries, items, id_type, id, value, k, NULL,
        weights, key, exclude_key, metric, exclude_self, config, min_document_frequency, k1, b, condition, statement_bytes)
$$;
COMMENT ON FUNCTION @extschema@.gpu_knn_distributed(text, regclass, name, name, anyelement, integer, name, name, name, text, boolean, regconfig, integer, double precision, double precision, text, integer) IS
    'the k nearest items of every query, exactly, among the items of a table that has partitions on other servers, ids of the type of id_type';

CREATE FUNCTION @extschema@.gpu_knn_within_distributed(
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
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    condition text DEFAULT NULL,
    statement_bytes integer DEFAULT 134217728,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
BEGIN ATOMIC
    SELECT * FROM @extschema@.gputext_knn_distributed('gpu_knn_within_distributed', queries, items, @extschema@.gputext_bigint_ids(id_type), id, value, NULL, radius,
        weights, key, exclude_key, metric, exclude_self, config, min_document_frequency, k1, b, condition, statement_bytes);
END;
COMMENT ON FUNCTION @extschema@.gpu_knn_within_distributed(text, regclass, name, name, double precision, name, name, name, text, boolean, regconfig, integer, double precision, double precision, text, integer, @extschema@.gputext_type_name) IS
    'all items within a distance of every query, nearest first, among the items of a table that has partitions on other servers';

CREATE FUNCTION @extschema@.gpu_knn_within_distributed(
    queries text,
    items regclass,
    id name,
    value name,
    id_type anyelement,
    radius double precision,
    weights name DEFAULT NULL,
    key name DEFAULT NULL,
    exclude_key name DEFAULT NULL,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    condition text DEFAULT NULL,
    statement_bytes integer DEFAULT 134217728
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000 SUPPORT @extschema@.gputext_id_type_support AS $$
    SELECT * FROM @extschema@.gputext_knn_distributed('gpu_knn_within_distributed', queries, items, id_type, id, value, NULL, radius,
        weights, key, exclude_key, metric, exclude_self, config, min_document_frequency, k1, b, condition, statement_bytes)
$$;
COMMENT ON FUNCTION @extschema@.gpu_knn_within_distributed(text, regclass, name, name, anyelement, double precision, name, name, name, text, boolean, regconfig, integer, double precision, double precision, text, integer) IS
    'all items within a distance of every query, nearest first, among the items of a table that has partitions on other servers, ids of the type of id_type';

-- ---- Near-duplicates ----

CREATE FUNCTION @extschema@.gputext_lengths(docs text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('SELECT pg_catalog.min(pg_catalog.length(body)) AS shortest, pg_catalog.max(pg_catalog.length(body)) AS longest FROM (%s) AS r (id, body)', docs)
$$;
COMMENT ON FUNCTION @extschema@.gputext_lengths(text) IS 'a statement for how long the documents of an inner query are';

-- A document of length n has near-duplicates only of lengths from n / ratio to n * ratio, as the edit distance is at least the
-- difference of the lengths. A character more or less allows for rounding.
CREATE FUNCTION @extschema@.gputext_near_duplicates_between(
    docs regclass, columns name[], condition text, shards name[], shortest integer[], longest integer[], threshold double precision, options text
) RETURNS SETOF text LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    WITH pairs AS (
        SELECT i, j, greatest(shortest[j] / ratio, shortest[i]) - 1 AS least, least(longest[j] * ratio, longest[i]) + 1 AS most,
               greatest(shortest[i] / ratio, shortest[j]) - 1 AS other_least, least(longest[i] * ratio, longest[j]) + 1 AS other_most
        FROM generate_subscripts(shards, 1) AS i, generate_subscripts(shards, 1) AS j, (SELECT (1 + threshold) / (1 - threshold)) AS r (ratio)
        WHERE i < j
    ), met AS (
        SELECT * FROM pairs WHERE least <= most AND other_least <= other_most
    ), bounds AS (
        SELECT i, true AS is_new, i AS shard, min(least) AS least, max(most) AS most FROM met GROUP BY i
        UNION ALL SELECT i, false, j, other_least, other_most FROM met
    ), queries AS (
        SELECT i, is_new, string_agg(@extschema@.gputext_partition_query(docs, partition, format('%I.%I', nspname, relname), columns,
                   format(E'(%s\n) AND pg_catalog.length(%I) OPERATOR(pg_catalog.>=) %s AND pg_catalog.length(%I) OPERATOR(pg_catalog.<=) %s',
                          coalesce(condition, 'true'), columns[2], floor(least)::bigint, columns[2], ceil(most)::bigint), false),
                   ' UNION ALL ' ORDER BY partition) AS rows
        FROM bounds JOIN @extschema@.gputext_partitions(docs) AS p ON p.server IS NOT DISTINCT FROM shards[shard]
        JOIN pg_class AS c ON c.oid = partition JOIN pg_namespace AS n ON n.oid = relnamespace
        GROUP BY i, is_new
    )
    SELECT format('SELECT * FROM %s.near_duplicates_between(%L, %L, %s)', '@extschema@', a.rows, b.rows, options)
    FROM queries AS a JOIN queries AS b USING (i) WHERE a.is_new AND NOT b.is_new ORDER BY i
$$;
COMMENT ON FUNCTION @extschema@.gputext_near_duplicates_between(regclass, name[], text, name[], integer[], integer[], double precision, text) IS
    'statements for the near-duplicates between shards of a table, of documents whose lengths allow a pair';

CREATE FUNCTION @extschema@.near_duplicates_distributed(
    docs regclass,
    id name,
    body name,
    id_type anyelement,
    signature name DEFAULT NULL,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    condition text DEFAULT NULL
) RETURNS TABLE (id1 anyelement, id2 anyelement, edit_rate double precision)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 1000000 SUPPORT @extschema@.gputext_id_type_support AS $$
#variable_conflict use_column
DECLARE
    own CONSTANT pg_catalog.text := '@extschema@';
    path CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    operation CONSTANT pg_catalog.text := 'near_duplicates_distributed';
    columns CONSTANT pg_catalog.name[] := ARRAY[id, body] OPERATOR(pg_catalog.||) pg_catalog.array_remove(ARRAY[signature], NULL);
    call integer;    -- of other servers; null: there are none
    servers pg_catalog.name[];
    rows_there pg_catalog.text[];   -- of each server, the inner query for its documents
    rows_here pg_catalog.text;      -- and for those here
    shards pg_catalog.name[];       -- the servers, and null for this one
    schemas pg_catalog.text[];      -- of each server, that of gputext there
    id_name pg_catalog.text;
    options pg_catalog.text;
    shortest integer[];  -- of each shard, lengths of documents
    longest integer[];
    statements pg_catalog.text[] := '{}';
    statement pg_catalog.text;
    found pg_catalog.record;
    here pg_catalog.record;
BEGIN
    IF pg_catalog.num_nulls(docs, id, body, threshold, mode, max_length) OPERATOR(pg_catalog.>) 0 THEN
        RAISE EXCEPTION 'an argument of % is null', operation USING ERRCODE = 'null_value_not_allowed',
            HINT = 'Only id_type, signature and condition may be null.';
    ELSIF NOT (threshold OPERATOR(pg_catalog.>=) 0::double precision AND threshold OPERATOR(pg_catalog.<) 0.5::double precision) THEN
        RAISE EXCEPTION 'threshold must be at least 0 and below 0.5, not %', threshold USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM @extschema@.gputext_check_ids(operation, pg_catalog.pg_typeof(id_type)), @extschema@.gputext_check_table(docs);
    id_name := @extschema@.gputext_type_text(pg_catalog.pg_typeof(id_type));
    options := pg_catalog.format('NULL::%s, threshold => %L, mode => %L, max_length => %L',
                                 id_name, @extschema@.gputext_portable_text(threshold), mode, max_length);
    SELECT s.servers, s.rows_there, s.rows_here INTO servers, rows_there, rows_here FROM @extschema@.gputext_shards(docs, columns, condition) AS s;
    shards := servers;
    IF rows_here IS NOT NULL THEN
        shards := pg_catalog.array_append(servers, NULL);
    END IF;

    IF pg_catalog.cardinality(servers) OPERATOR(pg_catalog.>) 0 THEN
        call := @extschema@.gputext_connect(operation, servers);
        schemas := @extschema@.gputext_begin(call, servers, path);
    END IF;

    -- How long the documents of each shard are
    IF pg_catalog.cardinality(shards) OPERATOR(pg_catalog.>) 1 THEN
        PERFORM @extschema@.gputext_send(call, ARRAY(
            SELECT @extschema@.gputext_lengths(rows_there[i]) FROM pg_catalog.generate_subscripts(servers, 1) AS i ORDER BY i));
        IF rows_here IS NOT NULL THEN
            EXECUTE @extschema@.gputext_lengths(rows_here) INTO found;
            shortest[pg_catalog.cardinality(shards)] := found.shortest;
            longest[pg_catalog.cardinality(shards)] := found.longest;
        END IF;
        FOR found IN SELECT * FROM @extschema@.gputext_answers(call) AS t (server integer, shortest integer, longest integer) LOOP
            shortest[found.server] := found.shortest;
            longest[found.server] := found.longest;
        END LOOP;
    END IF;

    -- The pairs within each server there, and meanwhile those within the rows here and between shards here
    PERFORM @extschema@.gputext_send(call, ARRAY(
        SELECT pg_catalog.format('SELECT * FROM %s.near_duplicates(%L, %s)', schemas[i], rows_there[i], options)
        FROM pg_catalog.generate_subscripts(servers, 1) AS i ORDER BY i));
    IF rows_here IS NOT NULL THEN
        statements := ARRAY[pg_catalog.format('SELECT * FROM %s.near_duplicates(%L, %s)', own, rows_here, options)];
    END IF;
    IF pg_catalog.cardinality(shards) OPERATOR(pg_catalog.>) 1 THEN
        statements := statements OPERATOR(pg_catalog.||)
            ARRAY(SELECT @extschema@.gputext_near_duplicates_between(docs, columns, condition, shards, shortest, longest, threshold, options));
    END IF;
    statement := pg_catalog.array_to_string(pg_catalog.array_prepend('SELECT $1, $1, 0::double precision WHERE false', statements), ' UNION ALL ');
    EXECUTE pg_catalog.format(
        'SELECT pg_catalog.array_agg(id1) AS id1, pg_catalog.array_agg(id2) AS id2, pg_catalog.array_agg(edit_rate) AS edit_rate '
        'FROM (%s) AS p (id1, id2, edit_rate)', statement)
    INTO here USING id_type;
    RETURN QUERY EXECUTE pg_catalog.format(
        'SELECT least(id1, id2), greatest(id1, id2), edit_rate FROM ('
        'SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3)) UNION ALL '
        'SELECT id1, id2, edit_rate FROM %s.gputext_answers($4) AS t (server integer, id1 %s, id2 %s, edit_rate double precision)'
        ') AS p (id1, id2, edit_rate) ORDER BY 1, 2', own, id_name, id_name)
    USING here.id1, here.id2, here.edit_rate, call;
    PERFORM @extschema@.gputext_disconnect(call);
END
$$;
COMMENT ON FUNCTION @extschema@.near_duplicates_distributed(regclass, name, name, anyelement, name, double precision, text, integer, text) IS
    'pairs of near-duplicate documents of a table that has partitions on other servers, ids of the type of id_type';

-- Values of any type in the place of id_type find the function above, as none converts to the type of this one's.
CREATE FUNCTION @extschema@.near_duplicates_distributed(
    docs regclass,
    id name,
    body name,
    id_type @extschema@.gputext_type_name DEFAULT NULL,
    signature name DEFAULT NULL,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    condition text DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, edit_rate double precision)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000000
BEGIN ATOMIC
    SELECT * FROM @extschema@.near_duplicates_distributed(
        docs, id, body, @extschema@.gputext_bigint_ids(id_type), signature, threshold, mode, max_length, condition);
END;
COMMENT ON FUNCTION @extschema@.near_duplicates_distributed(regclass, name, name, @extschema@.gputext_type_name, name, double precision, text, integer, text) IS
    'pairs of near-duplicate documents of a table that has partitions on other servers';
