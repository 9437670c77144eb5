-- Probabilities of sequences of tokens

CREATE FUNCTION @extschema@.sequence_probability(model text, sequences text, id_type @extschema@.gputext_type_name DEFAULT NULL)
    RETURNS TABLE (id bigint, probability double precision, token_probabilities real[])
    AS 'MODULE_PATHNAME', 'gputext_sequence_probability' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.sequence_probability(text, text, @extschema@.gputext_type_name) IS
    'probability of each token of a sequence after the one before, by the vectors of a model, and their mean';

CREATE FUNCTION @extschema@.sequence_probability(model text, sequences text, id_type anyelement)
    RETURNS TABLE (id anyelement, probability double precision, token_probabilities real[])
    AS 'MODULE_PATHNAME', 'gputext_sequence_probability_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.sequence_probability(text, text, anyelement) IS
    'probability of each token of a sequence after the one before, by the vectors of a model, and their mean, ids of the type of id_type';
