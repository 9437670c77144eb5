-- Type ctph: context-triggered piecewise hashes of documents

CREATE TYPE @extschema@.ctph;

CREATE FUNCTION @extschema@.ctph_in(cstring) RETURNS @extschema@.ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_in(cstring) IS 'I/O';

CREATE FUNCTION @extschema@.ctph_out(@extschema@.ctph) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_ctph_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_out(@extschema@.ctph) IS 'I/O';

CREATE FUNCTION @extschema@.ctph_recv(internal) RETURNS @extschema@.ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_recv(internal) IS 'I/O';

CREATE FUNCTION @extschema@.ctph_send(@extschema@.ctph) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_ctph_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_send(@extschema@.ctph) IS 'I/O';

CREATE TYPE @extschema@.ctph (
    INPUT = @extschema@.ctph_in,
    OUTPUT = @extschema@.ctph_out,
    RECEIVE = @extschema@.ctph_recv,
    SEND = @extschema@.ctph_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = extended
);
COMMENT ON TYPE @extschema@.ctph IS 'context-triggered piecewise hash of a document: block size:letters:letters at twice the block size';

CREATE FUNCTION @extschema@.ctph_signature(document text, max_length integer DEFAULT 100) RETURNS @extschema@.ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_signature' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_signature(text, integer) IS 'signature of a document''s bytes, at most max_length letters at its block size';

CREATE FUNCTION @extschema@.ctph_signature(document bytea, max_length integer DEFAULT 100) RETURNS @extschema@.ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_signature' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_signature(bytea, integer) IS 'signature of a document''s bytes, at most max_length letters at its block size';

CREATE FUNCTION @extschema@.ctph_eq(@extschema@.ctph, @extschema@.ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_eq(@extschema@.ctph, @extschema@.ctph) IS 'implementation of = operator';

CREATE FUNCTION @extschema@.ctph_ne(@extschema@.ctph, @extschema@.ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_ne(@extschema@.ctph, @extschema@.ctph) IS 'implementation of <> operator';

CREATE FUNCTION @extschema@.ctph_lt(@extschema@.ctph, @extschema@.ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_lt(@extschema@.ctph, @extschema@.ctph) IS 'implementation of < operator';

CREATE FUNCTION @extschema@.ctph_le(@extschema@.ctph, @extschema@.ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_le(@extschema@.ctph, @extschema@.ctph) IS 'implementation of <= operator';

CREATE FUNCTION @extschema@.ctph_gt(@extschema@.ctph, @extschema@.ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_gt(@extschema@.ctph, @extschema@.ctph) IS 'implementation of > operator';

CREATE FUNCTION @extschema@.ctph_ge(@extschema@.ctph, @extschema@.ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_ge(@extschema@.ctph, @extschema@.ctph) IS 'implementation of >= operator';

CREATE FUNCTION @extschema@.ctph_cmp(@extschema@.ctph, @extschema@.ctph) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_ctph_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_cmp(@extschema@.ctph, @extschema@.ctph) IS 'less-equal-greater';

CREATE FUNCTION @extschema@.ctph_hash(@extschema@.ctph) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_ctph_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_hash(@extschema@.ctph) IS 'hash';

CREATE FUNCTION @extschema@.ctph_hash_extended(@extschema@.ctph, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_ctph_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ctph_hash_extended(@extschema@.ctph, bigint) IS 'hash';

CREATE OPERATOR @extschema@.= (
    LEFTARG = @extschema@.ctph, RIGHTARG = @extschema@.ctph, FUNCTION = @extschema@.ctph_eq,
    COMMUTATOR = OPERATOR(@extschema@.=), NEGATOR = OPERATOR(@extschema@.<>), RESTRICT = pg_catalog.eqsel, JOIN = pg_catalog.eqjoinsel,
    HASHES, MERGES
);
COMMENT ON OPERATOR @extschema@.= (@extschema@.ctph, @extschema@.ctph) IS 'equal';

CREATE OPERATOR @extschema@.<> (
    LEFTARG = @extschema@.ctph, RIGHTARG = @extschema@.ctph, FUNCTION = @extschema@.ctph_ne,
    COMMUTATOR = OPERATOR(@extschema@.<>), NEGATOR = OPERATOR(@extschema@.=), RESTRICT = pg_catalog.neqsel, JOIN = pg_catalog.neqjoinsel
);
COMMENT ON OPERATOR @extschema@.<> (@extschema@.ctph, @extschema@.ctph) IS 'not equal';

CREATE OPERATOR @extschema@.< (
    LEFTARG = @extschema@.ctph, RIGHTARG = @extschema@.ctph, FUNCTION = @extschema@.ctph_lt,
    COMMUTATOR = OPERATOR(@extschema@.>), NEGATOR = OPERATOR(@extschema@.>=), RESTRICT = pg_catalog.scalarltsel, JOIN = pg_catalog.scalarltjoinsel
);
COMMENT ON OPERATOR @extschema@.< (@extschema@.ctph, @extschema@.ctph) IS 'less than: by block size, then by letters';

CREATE OPERATOR @extschema@.<= (
    LEFTARG = @extschema@.ctph, RIGHTARG = @extschema@.ctph, FUNCTION = @extschema@.ctph_le,
    COMMUTATOR = OPERATOR(@extschema@.>=), NEGATOR = OPERATOR(@extschema@.>), RESTRICT = pg_catalog.scalarlesel, JOIN = pg_catalog.scalarlejoinsel
);
COMMENT ON OPERATOR @extschema@.<= (@extschema@.ctph, @extschema@.ctph) IS 'less than or equal: by block size, then by letters';

CREATE OPERATOR @extschema@.> (
    LEFTARG = @extschema@.ctph, RIGHTARG = @extschema@.ctph, FUNCTION = @extschema@.ctph_gt,
    COMMUTATOR = OPERATOR(@extschema@.<), NEGATOR = OPERATOR(@extschema@.<=), RESTRICT = pg_catalog.scalargtsel, JOIN = pg_catalog.scalargtjoinsel
);
COMMENT ON OPERATOR @extschema@.> (@extschema@.ctph, @extschema@.ctph) IS 'greater than: by block size, then by letters';

CREATE OPERATOR @extschema@.>= (
    LEFTARG = @extschema@.ctph, RIGHTARG = @extschema@.ctph, FUNCTION = @extschema@.ctph_ge,
    COMMUTATOR = OPERATOR(@extschema@.<=), NEGATOR = OPERATOR(@extschema@.<), RESTRICT = pg_catalog.scalargesel, JOIN = pg_catalog.scalargejoinsel
);
COMMENT ON OPERATOR @extschema@.>= (@extschema@.ctph, @extschema@.ctph) IS 'greater than or equal: by block size, then by letters';

CREATE OPERATOR CLASS @extschema@.ctph_ops DEFAULT FOR TYPE @extschema@.ctph USING btree AS
    OPERATOR 1 @extschema@.<, OPERATOR 2 @extschema@.<=, OPERATOR 3 @extschema@.=, OPERATOR 4 @extschema@.>=, OPERATOR 5 @extschema@.>,
    FUNCTION 1 @extschema@.ctph_cmp(@extschema@.ctph, @extschema@.ctph);
COMMENT ON OPERATOR CLASS @extschema@.ctph_ops USING btree IS 'signatures by block size, then by letters';
COMMENT ON OPERATOR FAMILY @extschema@.ctph_ops USING btree IS 'signatures by block size, then by letters';

CREATE OPERATOR CLASS @extschema@.ctph_hash_ops DEFAULT FOR TYPE @extschema@.ctph USING hash AS
    OPERATOR 1 @extschema@.=,
    FUNCTION 1 @extschema@.ctph_hash(@extschema@.ctph),
    FUNCTION 2 @extschema@.ctph_hash_extended(@extschema@.ctph, bigint);
COMMENT ON OPERATOR CLASS @extschema@.ctph_hash_ops USING hash IS 'equality of signatures';
COMMENT ON OPERATOR FAMILY @extschema@.ctph_hash_ops USING hash IS 'equality of signatures';
