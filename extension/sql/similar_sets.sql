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
