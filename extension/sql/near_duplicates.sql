-- Near-duplicate documents
--
-- Each function comes twice: with ids of type bigint, and with ids of the type of id_type, which
-- follows the inner query. PostgreSQL tells the type of a result column from the arguments as they
-- are written, and would not find it behind arguments that are left out. gputext_id_type_support
-- raises an error that says so when the planner meets a call with id_type elsewhere.

CREATE FUNCTION @extschema@.gputext_id_type_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_id_type_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_id_type_support(internal) IS 'planner support: checks the place of the argument id_type';

-- The functions for ids of type bigint have a parameter id_type, too, for a literal that is written
-- there: PostgreSQL prefers a type of the string category for it, and finds none for the other
-- function. They refuse all but NULL. No other type converts to this one, so that values of any
-- type find the other function.

CREATE TYPE @extschema@.gputext_type_name;

CREATE FUNCTION @extschema@.gputext_type_name_in(cstring) RETURNS @extschema@.gputext_type_name
    AS 'textin' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_type_name_in(cstring) IS 'I/O';

CREATE FUNCTION @extschema@.gputext_type_name_out(@extschema@.gputext_type_name) RETURNS cstring
    AS 'textout' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_type_name_out(@extschema@.gputext_type_name) IS 'I/O';

CREATE TYPE @extschema@.gputext_type_name (
    INPUT = @extschema@.gputext_type_name_in,
    OUTPUT = @extschema@.gputext_type_name_out,
    LIKE = pg_catalog.text,
    CATEGORY = 'S'
);
COMMENT ON TYPE @extschema@.gputext_type_name IS 'the name of a type in place of a value of it, which the argument id_type refuses';

CREATE FUNCTION @extschema@.near_duplicates(
    docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.near_duplicates(text, double precision, text, integer, @extschema@.gputext_type_name) IS
    'pairs of documents of an inner query with an edit rate of at most the threshold';

CREATE FUNCTION @extschema@.near_duplicates(
    docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100
) RETURNS TABLE (id1 anyelement, id2 anyelement, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.near_duplicates(text, anyelement, double precision, text, integer) IS
    'pairs of documents of an inner query with an edit rate of at most the threshold, ids of the type of id_type';

CREATE FUNCTION @extschema@.near_duplicate_groups(
    docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, group_id bigint, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_groups' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.near_duplicate_groups(text, double precision, text, integer, @extschema@.gputext_type_name) IS
    'the group of each document of an inner query, near-duplicates being in one group';

CREATE FUNCTION @extschema@.near_duplicate_groups(
    docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100
) RETURNS TABLE (id anyelement, group_id anyelement, group_size bigint)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_groups_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.near_duplicate_groups(text, anyelement, double precision, text, integer) IS
    'the group of each document of an inner query, near-duplicates being in one group, ids of the type of id_type';
