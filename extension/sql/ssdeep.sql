-- Fuzzy hashes as the program ssdeep computes them

CREATE FUNCTION @extschema@.ssdeep_hash(document text) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_ssdeep_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.ssdeep_hash(text) IS 'fuzzy hash of a document''s bytes, as ssdeep 2.14 computes it';

CREATE FUNCTION @extschema@.ssdeep_hash(document bytea) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_ssdeep_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.ssdeep_hash(bytea) IS 'fuzzy hash of a document''s bytes, as ssdeep 2.14 computes it';

CREATE FUNCTION @extschema@.ssdeep_compare(a text, b text) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_ssdeep_compare' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.ssdeep_compare(text, text) IS 'similarity of two fuzzy hashes, 0 to 100, as ssdeep 2.14 scores it';
