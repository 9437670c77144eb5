-- Edit distances and rates

CREATE FUNCTION @extschema@.edit_distance(a text, b text) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_edit_distance_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.edit_distance(text, text) IS 'Levenshtein distance in characters';

CREATE FUNCTION @extschema@.edit_distance(a text, b text, max integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_edit_distance_text_max' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.edit_distance(text, text, integer) IS 'Levenshtein distance in characters, or max + 1 if it is above max';

CREATE FUNCTION @extschema@.edit_distance(a bytea, b bytea) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_edit_distance_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.edit_distance(bytea, bytea) IS 'Levenshtein distance in bytes';

CREATE FUNCTION @extschema@.edit_distance(a bytea, b bytea, max integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_edit_distance_bytea_max' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.edit_distance(bytea, bytea, integer) IS 'Levenshtein distance in bytes, or max + 1 if it is above max';

CREATE FUNCTION @extschema@.edit_rate(a text, b text) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_edit_rate_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.edit_rate(text, text) IS 'edit distance divided by the sum of both lengths, in characters';

CREATE FUNCTION @extschema@.edit_rate(a bytea, b bytea) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_edit_rate_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.edit_rate(bytea, bytea) IS 'edit distance divided by the sum of both lengths, in bytes';

CREATE FUNCTION @extschema@.edit_rate(a @extschema@.ctph, b @extschema@.ctph) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_edit_rate_ctph' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION @extschema@.edit_rate(@extschema@.ctph, @extschema@.ctph) IS 'smallest edit rate of parts with the same block size, 1 if there are none';
