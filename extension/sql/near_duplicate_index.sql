-- Near-duplicates of a document: a condition, and the index and the exclusion constraint for it

CREATE FUNCTION gputext_near_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_near_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_near_support(internal) IS 'planner support: selectivity, and the condition that an index answers';

CREATE FUNCTION gputext_near_selectivity(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_near_selectivity' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_near_selectivity(internal, oid, internal, integer) IS 'restriction selectivity of the operators ~= and @~';

CREATE FUNCTION gputext_near_selectivity(internal, oid, internal, smallint, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_near_selectivity' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gputext_near_selectivity(internal, oid, internal, smallint, internal) IS 'join selectivity of the operators ~= and @~';

CREATE FUNCTION is_near_duplicate(a text, b text, threshold double precision) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_is_near_duplicate_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
    SUPPORT gputext_near_support;
COMMENT ON FUNCTION is_near_duplicate(text, text, double precision) IS 'whether the edit rate of two documents is at most the threshold';

CREATE FUNCTION is_near_duplicate(a bytea, b bytea, threshold double precision) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_is_near_duplicate_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
    SUPPORT gputext_near_support;
COMMENT ON FUNCTION is_near_duplicate(bytea, bytea, double precision) IS 'whether the edit rate of two documents is at most the threshold';

-- At the threshold of a setting

CREATE FUNCTION is_near_duplicate(a text, b text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_text' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION is_near_duplicate(text, text) IS 'implementation of ~= operator';

CREATE FUNCTION is_near_duplicate(a bytea, b bytea) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_bytea' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION is_near_duplicate(bytea, bytea) IS 'implementation of ~= operator';

CREATE OPERATOR ~= (
    FUNCTION = is_near_duplicate, LEFTARG = text, RIGHTARG = text, COMMUTATOR = ~=,
    RESTRICT = gputext_near_selectivity, JOIN = gputext_near_selectivity
);
COMMENT ON OPERATOR ~= (text, text) IS 'near-duplicates at gputext.near_duplicate_threshold';

CREATE OPERATOR ~= (
    FUNCTION = is_near_duplicate, LEFTARG = bytea, RIGHTARG = bytea, COMMUTATOR = ~=,
    RESTRICT = gputext_near_selectivity, JOIN = gputext_near_selectivity
);
COMMENT ON OPERATOR ~= (bytea, bytea) IS 'near-duplicates at gputext.near_duplicate_threshold';

-- A document with its threshold: the planner makes one of is_near_duplicate() for an index

CREATE TYPE near_duplicate_query;

CREATE FUNCTION near_duplicate_query_in(cstring) RETURNS near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION near_duplicate_query_in(cstring) IS 'I/O';

CREATE FUNCTION near_duplicate_query_out(near_duplicate_query) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION near_duplicate_query_out(near_duplicate_query) IS 'I/O';

CREATE TYPE near_duplicate_query (
    INPUT = near_duplicate_query_in,
    OUTPUT = near_duplicate_query_out,
    ALIGNMENT = double,
    STORAGE = extended
);
COMMENT ON TYPE near_duplicate_query IS 'a document and the edit rate up to which others are its near-duplicates';

CREATE FUNCTION near_duplicate_query(document text, threshold double precision) RETURNS near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION near_duplicate_query(text, double precision) IS 'a document and a threshold for the operator @~';

CREATE FUNCTION near_duplicate_query(document bytea, threshold double precision) RETURNS near_duplicate_query
    AS 'MODULE_PATHNAME', 'gputext_near_duplicate_query_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION near_duplicate_query(bytea, double precision) IS 'a document and a threshold for the operator @~';

CREATE FUNCTION is_near_duplicate(document text, query near_duplicate_query) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_query_of_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION is_near_duplicate(text, near_duplicate_query) IS 'implementation of @~ operator';

CREATE FUNCTION is_near_duplicate(document bytea, query near_duplicate_query) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_near_query_of_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION is_near_duplicate(bytea, near_duplicate_query) IS 'implementation of @~ operator';

CREATE OPERATOR @~ (
    FUNCTION = is_near_duplicate, LEFTARG = text, RIGHTARG = near_duplicate_query,
    RESTRICT = gputext_near_selectivity, JOIN = gputext_near_selectivity
);
COMMENT ON OPERATOR @~ (text, near_duplicate_query) IS 'near-duplicates of a document at its threshold';

CREATE OPERATOR @~ (
    FUNCTION = is_near_duplicate, LEFTARG = bytea, RIGHTARG = near_duplicate_query,
    RESTRICT = gputext_near_selectivity, JOIN = gputext_near_selectivity
);
COMMENT ON OPERATOR @~ (bytea, near_duplicate_query) IS 'near-duplicates of a document at its threshold';

-- The index

CREATE FUNCTION gputext_index_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME', 'gputext_index_handler' LANGUAGE C;
COMMENT ON FUNCTION gputext_index_handler(internal) IS 'handler of the index access method gputext';

CREATE ACCESS METHOD gputext TYPE INDEX HANDLER gputext_index_handler;
COMMENT ON ACCESS METHOD gputext IS 'near-duplicate documents: sketches that exclude most rows';

CREATE OPERATOR CLASS text_near_duplicate_ops DEFAULT FOR TYPE text USING gputext AS
    OPERATOR 1 ~= (text, text),
    OPERATOR 2 @~ (text, near_duplicate_query);
COMMENT ON OPERATOR CLASS text_near_duplicate_ops USING gputext IS 'near-duplicate texts, compared by characters';
COMMENT ON OPERATOR FAMILY text_near_duplicate_ops USING gputext IS 'near-duplicate texts, compared by characters';

CREATE OPERATOR CLASS bytea_near_duplicate_ops DEFAULT FOR TYPE bytea USING gputext AS
    OPERATOR 1 ~= (bytea, bytea),
    OPERATOR 2 @~ (bytea, near_duplicate_query);
COMMENT ON OPERATOR CLASS bytea_near_duplicate_ops USING gputext IS 'near-duplicate binary strings, compared by bytes';
COMMENT ON OPERATOR FAMILY bytea_near_duplicate_ops USING gputext IS 'near-duplicate binary strings, compared by bytes';

CREATE FUNCTION gputext_index_check(index regclass, heapallindexed boolean DEFAULT false) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_index_check' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION gputext_index_check(regclass, boolean) IS 'raises an error if an index of the access method gputext is damaged, else the number of its sketches';
