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
