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
