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
