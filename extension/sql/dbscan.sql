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
