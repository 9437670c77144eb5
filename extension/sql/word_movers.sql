-- Word Mover's Distance

CREATE FUNCTION word_movers_distance(
    model text,
    pairs text,
    method text DEFAULT 'exact',
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_word_movers_distance' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION word_movers_distance(text, text, text, gputext_type_name) IS
    'Word Mover''s Distance of each pair of texts of an inner query, by the vectors of a model';

CREATE FUNCTION word_movers_distance(
    model text,
    pairs text,
    id_type anyelement,
    method text DEFAULT 'exact'
) RETURNS TABLE (id anyelement, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_word_movers_distance_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION word_movers_distance(text, text, anyelement, text) IS
    'Word Mover''s Distance of each pair of texts of an inner query, by the vectors of a model, ids of the type of id_type';
