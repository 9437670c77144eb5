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
