-- Word Mover's Distance

CREATE FUNCTION @extschema@.word_movers_distance(
    model text,
    pairs text,
    method text DEFAULT 'exact',
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_word_movers_distance' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word_movers_distance(text, text, text, @extschema@.gputext_type_name) IS
    'Word Mover''s Distance of each pair of texts of an inner query, by the vectors of a model';

CREATE FUNCTION @extschema@.word_movers_distance(
    model text,
    pairs text,
    id_type anyelement,
    method text DEFAULT 'exact'
) RETURNS TABLE (id anyelement, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_word_movers_distance_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.word_movers_distance(text, text, anyelement, text) IS
    'Word Mover''s Distance of each pair of texts of an inner query, by the vectors of a model, ids of the type of id_type';
