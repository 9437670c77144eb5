-- Local outlier factors

CREATE FUNCTION @extschema@.local_outlier_factor(
    items text,
    k integer,
    metric text DEFAULT 'euclidean',
    ties text DEFAULT 'sklearn',
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, lof double precision)
    AS 'MODULE_PATHNAME', 'gputext_local_outlier_factor' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.local_outlier_factor(text, integer, text, text, @extschema@.gputext_type_name) IS
    'local outlier factor (LOF) of each item of an inner query: mean density at its k nearest neighbors over its own';

CREATE FUNCTION @extschema@.local_outlier_factor(
    items text,
    id_type anyelement,
    k integer,
    metric text DEFAULT 'euclidean',
    ties text DEFAULT 'sklearn'
) RETURNS TABLE (id anyelement, lof double precision)
    AS 'MODULE_PATHNAME', 'gputext_local_outlier_factor_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.local_outlier_factor(text, anyelement, integer, text, text) IS
    'local outlier factor (LOF) of each item of an inner query: mean density at its k nearest neighbors over its own, ids of the type of id_type';
