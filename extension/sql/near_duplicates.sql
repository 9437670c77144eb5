-- Near-duplicate documents
--
-- Each function comes twice: with ids of type bigint, and with ids of the type of id_type, which
-- follows the inner query. PostgreSQL tells the type of a result column from the arguments as they
-- are written, and would not find it behind arguments that are left out. gputext_id_type_support
-- raises an error that says so when the planner meets a call with id_type elsewhere.

CREATE FUNCTION gputext_id_type_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_id_type_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_id_type_support(internal) IS 'planner support: checks the place of the argument id_type';

CREATE FUNCTION near_duplicates(
    docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'ctph',
    max_length integer DEFAULT 100
) RETURNS TABLE (id1 bigint, id2 bigint, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION near_duplicates(text, double precision, text, integer) IS
    'pairs of documents of an inner query with an edit rate of at most the threshold';

CREATE FUNCTION near_duplicates(
    docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'ctph',
    max_length integer DEFAULT 100
) RETURNS TABLE (id1 anyelement, id2 anyelement, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION near_duplicates(text, anyelement, double precision, text, integer) IS
    'pairs of documents of an inner query with an edit rate of at most the threshold, ids of the type of id_type';

CREATE FUNCTION near_duplicate_groups(
    docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'ctph',
    max_length integer DEFAULT 100
) RETURNS TABLE (id bigint, group_id bigint, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_groups' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION near_duplicate_groups(text, double precision, text, integer) IS
    'the group of each document of an inner query, near-duplicates being in one group';

CREATE FUNCTION near_duplicate_groups(
    docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'ctph',
    max_length integer DEFAULT 100
) RETURNS TABLE (id anyelement, group_id anyelement, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_groups_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION near_duplicate_groups(text, anyelement, double precision, text, integer) IS
    'the group of each document of an inner query, near-duplicates being in one group, ids of the type of id_type';
