-- trie_agg in parallel workers

CREATE FUNCTION @extschema@.trie_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_agg_combine(internal, internal) IS 'combine function of trie_agg';

CREATE FUNCTION @extschema@.trie_agg_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_agg_serialize(internal) IS 'serialization function of trie_agg';

CREATE FUNCTION @extschema@.trie_agg_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_agg_deserialize(bytea, internal) IS 'deserialization function of trie_agg';

CREATE OR REPLACE AGGREGATE @extschema@.trie_agg(word text) (
    SFUNC = @extschema@.trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = @extschema@.trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.trie_agg_combine,
    SERIALFUNC = @extschema@.trie_agg_serialize,
    DESERIALFUNC = @extschema@.trie_agg_deserialize,
    PARALLEL = SAFE
);

CREATE OR REPLACE AGGREGATE @extschema@.trie_agg(word text, structure text) (
    SFUNC = @extschema@.trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = @extschema@.trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.trie_agg_combine,
    SERIALFUNC = @extschema@.trie_agg_serialize,
    DESERIALFUNC = @extschema@.trie_agg_deserialize,
    PARALLEL = SAFE
);
