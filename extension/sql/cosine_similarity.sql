-- Cosine similarity

CREATE FUNCTION @extschema@.cosine_similarity(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.cosine_similarity(real[], real[]) IS
    'cosine of the angle between two vectors, NULL when either is all zeros';

CREATE FUNCTION @extschema@.cosine_similarity(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.cosine_similarity(double precision[], double precision[]) IS
    'cosine of the angle between two vectors, NULL when either is all zeros';

CREATE FUNCTION @extschema@.cosine_similarity(a integer[], b integer[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.cosine_similarity(integer[], integer[]) IS
    'cosine of the angle between two vectors, NULL when either is all zeros';

-- For literals: ARRAY[0.5, 1] is of type numeric[].
CREATE FUNCTION @extschema@.cosine_similarity(a numeric[], b numeric[]) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1000
    RETURN @extschema@.cosine_similarity(a::double precision[], b::double precision[]);
COMMENT ON FUNCTION @extschema@.cosine_similarity(numeric[], numeric[]) IS
    'cosine of the angle between two vectors as double precision[], NULL when either is all zeros';

CREATE FUNCTION @extschema@.cosine_similarities(query double precision[], items text, id_type @extschema@.gputext_type_name DEFAULT NULL)
    RETURNS TABLE (id bigint, similarity double precision)
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarities' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.cosine_similarities(double precision[], text, @extschema@.gputext_type_name) IS
    'cosine similarity of a vector and each item of an inner query, NULL when either is all zeros';

CREATE FUNCTION @extschema@.cosine_similarities(query double precision[], items text, id_type anyelement)
    RETURNS TABLE (id anyelement, similarity double precision)
    AS 'MODULE_PATHNAME', 'gputext_cosine_similarities_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.cosine_similarities(double precision[], text, anyelement) IS
    'cosine similarity of a vector and each item of an inner query, NULL when either is all zeros, ids of the type of id_type';
