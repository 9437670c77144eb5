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
