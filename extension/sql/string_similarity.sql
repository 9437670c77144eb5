-- Similarities and distances of short strings

CREATE FUNCTION @extschema@.jaro_similarity(a text, b text) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_jaro_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.jaro_similarity(text, text) IS 'Jaro similarity in characters, from 0 to 1';

CREATE FUNCTION @extschema@.jaro_winkler_similarity(a text, b text) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_jaro_winkler_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.jaro_winkler_similarity(text, text) IS 'Jaro-Winkler similarity in characters, from 0 to 1';

CREATE FUNCTION @extschema@.osa_distance(a text, b text) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_osa_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.osa_distance(text, text) IS
    'insertions, deletions, substitutions and exchanges of adjacent characters, no character edited twice';

CREATE FUNCTION @extschema@.damerau_levenshtein(a text, b text) RETURNS integer
    AS 'MODULE_PATHNAME', 'gputext_damerau_levenshtein' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.damerau_levenshtein(text, text) IS
    'insertions, deletions, substitutions and exchanges of adjacent characters';
