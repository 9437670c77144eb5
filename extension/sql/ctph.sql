-- Type ctph: context-triggered piecewise hashes of documents

CREATE TYPE ctph;

CREATE FUNCTION ctph_in(cstring) RETURNS ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_in(cstring) IS 'I/O';

CREATE FUNCTION ctph_out(ctph) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_ctph_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_out(ctph) IS 'I/O';

CREATE FUNCTION ctph_recv(internal) RETURNS ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_recv(internal) IS 'I/O';

CREATE FUNCTION ctph_send(ctph) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_ctph_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_send(ctph) IS 'I/O';

CREATE TYPE ctph (
    INPUT = ctph_in,
    OUTPUT = ctph_out,
    RECEIVE = ctph_recv,
    SEND = ctph_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = extended
);
COMMENT ON TYPE ctph IS 'context-triggered piecewise hash of a document: block size:letters:letters at twice the block size';

CREATE FUNCTION ctph_signature(document text, max_length integer DEFAULT 100) RETURNS ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_signature' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_signature(text, integer) IS 'signature of a document''s bytes, at most max_length letters at its block size';

CREATE FUNCTION ctph_signature(document bytea, max_length integer DEFAULT 100) RETURNS ctph
    AS 'MODULE_PATHNAME', 'gputext_ctph_signature' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_signature(bytea, integer) IS 'signature of a document''s bytes, at most max_length letters at its block size';

CREATE FUNCTION ctph_eq(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_eq(ctph, ctph) IS 'implementation of = operator';

CREATE FUNCTION ctph_ne(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_ne(ctph, ctph) IS 'implementation of <> operator';

CREATE FUNCTION ctph_lt(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_lt(ctph, ctph) IS 'implementation of < operator';

CREATE FUNCTION ctph_le(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_le(ctph, ctph) IS 'implementation of <= operator';

CREATE FUNCTION ctph_gt(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_gt(ctph, ctph) IS 'implementation of > operator';

CREATE FUNCTION ctph_ge(ctph, ctph) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gputext_ctph_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_ge(ctph, ctph) IS 'implementation of >= operator';

CREATE FUNCTION ctph_cmp(ctph, ctph) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_ctph_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_cmp(ctph, ctph) IS 'less-equal-greater';

CREATE FUNCTION ctph_hash(ctph) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_ctph_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_hash(ctph) IS 'hash';

CREATE FUNCTION ctph_hash_extended(ctph, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_ctph_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ctph_hash_extended(ctph, bigint) IS 'hash';

CREATE OPERATOR = (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel,
    HASHES, MERGES
);
COMMENT ON OPERATOR = (ctph, ctph) IS 'equal';

CREATE OPERATOR <> (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_ne,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
COMMENT ON OPERATOR <> (ctph, ctph) IS 'not equal';

CREATE OPERATOR < (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_lt,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
COMMENT ON OPERATOR < (ctph, ctph) IS 'less than: by block size, then by letters';

CREATE OPERATOR <= (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_le,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
COMMENT ON OPERATOR <= (ctph, ctph) IS 'less than or equal: by block size, then by letters';

CREATE OPERATOR > (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_gt,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
COMMENT ON OPERATOR > (ctph, ctph) IS 'greater than: by block size, then by letters';

CREATE OPERATOR >= (
    LEFTARG = ctph, RIGHTARG = ctph, FUNCTION = ctph_ge,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel
);
COMMENT ON OPERATOR >= (ctph, ctph) IS 'greater than or equal: by block size, then by letters';

CREATE OPERATOR CLASS ctph_ops DEFAULT FOR TYPE ctph USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 ctph_cmp(ctph, ctph);
COMMENT ON OPERATOR CLASS ctph_ops USING btree IS 'signatures by block size, then by letters';
COMMENT ON OPERATOR FAMILY ctph_ops USING btree IS 'signatures by block size, then by letters';

CREATE OPERATOR CLASS ctph_hash_ops DEFAULT FOR TYPE ctph USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 ctph_hash(ctph),
    FUNCTION 2 ctph_hash_extended(ctph, bigint);
COMMENT ON OPERATOR CLASS ctph_hash_ops USING hash IS 'equality of signatures';
COMMENT ON OPERATOR FAMILY ctph_hash_ops USING hash IS 'equality of signatures';
