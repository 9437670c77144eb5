-- Near-duplicates of a document: a condition, and the index and the exclusion constraint for it

CREATE FUNCTION @extschema@.gputext_near_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_near_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_near_support(internal) IS 'planner support: selectivity, and the condition that an index answers';

CREATE FUNCTION @extschema@.gputext_near_selectivity(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_near_selectivity' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_near_selectivity(internal, oid, internal, integer) IS 'restriction selectivity of the operators ~= and @~';

CREATE FUNCTION @extschema@.gputext_near_selectivity(internal, oid, internal, smallint, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_near_selectivity' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.gputext_near_selectivity(internal, oid, internal, smallint, internal) IS 'join selectivity of the operators ~= and @~';

CREATE FUNCTION @extschema@.is_near_duplicate(a text, b text, threshold double precision) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_is_near_duplicate_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
    SUPPORT @extschema@.gputext_near_support;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(text, text, double precision) IS 'whether the edit rate of two documents is at most the threshold';

CREATE FUNCTION @extschema@.is_near_duplicate(a bytea, b bytea, threshold double precision) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_is_near_duplicate_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
    SUPPORT @extschema@.gputext_near_support;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(bytea, bytea, double precision) IS 'whether the edit rate of two documents is at most the threshold';

-- At the threshold of a setting

CREATE FUNCTION @extschema@.is_near_duplicate(a text, b text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_text' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(text, text) IS 'implementation of ~= operator';

CREATE FUNCTION @extschema@.is_near_duplicate(a bytea, b bytea) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_bytea' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(bytea, bytea) IS 'implementation of ~= operator';

CREATE OPERATOR @extschema@.~= (
    FUNCTION = @extschema@.is_near_duplicate, LEFTARG = text, RIGHTARG = text, COMMUTATOR = OPERATOR(@extschema@.~=),
    RESTRICT = @extschema@.gputext_near_selectivity, JOIN = @extschema@.gputext_near_selectivity
);
COMMENT ON OPERATOR @extschema@.~= (text, text) IS 'near-duplicates at gputext.near_duplicate_threshold, in an exclusion constraint at the threshold of its index';

CREATE OPERATOR @extschema@.~= (
    FUNCTION = @extschema@.is_near_duplicate, LEFTARG = bytea, RIGHTARG = bytea, COMMUTATOR = OPERATOR(@extschema@.~=),
    RESTRICT = @extschema@.gputext_near_selectivity, JOIN = @extschema@.gputext_near_selectivity
);
COMMENT ON OPERATOR @extschema@.~= (bytea, bytea) IS 'near-duplicates at gputext.near_duplicate_threshold, in an exclusion constraint at the threshold of its index';

-- A document with its threshold: the planner makes one of is_near_duplicate() for an index

CREATE TYPE @extschema@.near_duplicate_query;

CREATE FUNCTION @extschema@.near_duplicate_query_in(cstring) RETURNS @extschema@.near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.near_duplicate_query_in(cstring) IS 'I/O';

CREATE FUNCTION @extschema@.near_duplicate_query_out(@extschema@.near_duplicate_query) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.near_duplicate_query_out(@extschema@.near_duplicate_query) IS 'I/O';

CREATE TYPE @extschema@.near_duplicate_query (
    INPUT = @extschema@.near_duplicate_query_in,
    OUTPUT = @extschema@.near_duplicate_query_out,
    ALIGNMENT = double,
    STORAGE = extended
);
COMMENT ON TYPE @extschema@.near_duplicate_query IS 'a document and the edit rate up to which others are its near-duplicates';

CREATE FUNCTION @extschema@.near_duplicate_query(document text, threshold double precision) RETURNS @extschema@.near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.near_duplicate_query(text, double precision) IS 'a document and a threshold for the operator @~';

CREATE FUNCTION @extschema@.near_duplicate_query(document bytea, threshold double precision) RETURNS @extschema@.near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.near_duplicate_query(bytea, double precision) IS 'a document and a threshold for the operator @~';

CREATE FUNCTION @extschema@.is_near_duplicate(document text, query @extschema@.near_duplicate_query) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_query_of_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(text, @extschema@.near_duplicate_query) IS 'implementation of @~ operator';

CREATE FUNCTION @extschema@.is_near_duplicate(document bytea, query @extschema@.near_duplicate_query) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_query_of_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION @extschema@.is_near_duplicate(bytea, @extschema@.near_duplicate_query) IS 'implementation of @~ operator';

CREATE OPERATOR @extschema@.@~ (
    FUNCTION = @extschema@.is_near_duplicate, LEFTARG = text, RIGHTARG = @extschema@.near_duplicate_query,
    RESTRICT = @extschema@.gputext_near_selectivity, JOIN = @extschema@.gputext_near_selectivity
);
COMMENT ON OPERATOR @extschema@.@~ (text, @extschema@.near_duplicate_query) IS 'near-duplicates of a document at its threshold';

CREATE OPERATOR @extschema@.@~ (
    FUNCTION = @extschema@.is_near_duplicate, LEFTARG = bytea, RIGHTARG = @extschema@.near_duplicate_query,
    RESTRICT = @extschema@.gputext_near_selectivity, JOIN = @extschema@.gputext_near_selectivity
);
COMMENT ON OPERATOR @extschema@.@~ (bytea, @extschema@.near_duplicate_query) IS 'near-duplicates of a document at its threshold';

-- The index

CREATE FUNCTION @extschema@.gputext_index_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME', 'gputext_index_handler' LANGUAGE C;
COMMENT ON FUNCTION @extschema@.gputext_index_handler(internal) IS 'handler of the index access method gputext';

CREATE ACCESS METHOD gputext TYPE INDEX HANDLER @extschema@.gputext_index_handler;
COMMENT ON ACCESS METHOD gputext IS 'near-duplicate documents: sketches that exclude most rows';

CREATE OPERATOR CLASS @extschema@.text_near_duplicate_ops DEFAULT FOR TYPE text USING gputext AS
    OPERATOR 1 @extschema@.~= (text, text),
    OPERATOR 2 @extschema@.@~ (text, @extschema@.near_duplicate_query);
COMMENT ON OPERATOR CLASS @extschema@.text_near_duplicate_ops USING gputext IS 'near-duplicate texts, compared by characters';
COMMENT ON OPERATOR FAMILY @extschema@.text_near_duplicate_ops USING gputext IS 'near-duplicate texts, compared by characters';

CREATE OPERATOR CLASS @extschema@.bytea_near_duplicate_ops DEFAULT FOR TYPE bytea USING gputext AS
    OPERATOR 1 @extschema@.~= (bytea, bytea),
    OPERATOR 2 @extschema@.@~ (bytea, @extschema@.near_duplicate_query);
COMMENT ON OPERATOR CLASS @extschema@.bytea_near_duplicate_ops USING gputext IS 'near-duplicate binary strings, compared by bytes';
COMMENT ON OPERATOR FAMILY @extschema@.bytea_near_duplicate_ops USING gputext IS 'near-duplicate binary strings, compared by bytes';

CREATE FUNCTION @extschema@.gputext_index_check(index regclass, heapallindexed boolean DEFAULT false) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_index_check' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.gputext_index_check(regclass, boolean) IS 'raises an error if an index of the access method gputext is damaged, else the number of its sketches';
