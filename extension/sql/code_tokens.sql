-- Tokens and lines of source code, normalised

CREATE FUNCTION @extschema@.code_tokens(source text) RETURNS text[]
    AS 'MODULE_PATHNAME', 'gputext_code_tokens' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.code_tokens(text) IS 'tokens of source code in C, C++, Java or C#, literals reduced to their kinds and names to roles and types';

CREATE FUNCTION @extschema@.code_lines(source text) RETURNS text[]
    AS 'MODULE_PATHNAME', 'gputext_code_lines' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.code_lines(text) IS 'lines of source code as their code_tokens, with blanks between them; empty lines left out';
