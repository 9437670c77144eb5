-- Models of several servers

CREATE FUNCTION @extschema@.word2vec_average(
    models text,
    initial text DEFAULT NULL,
    weights text DEFAULT 'equal'
) RETURNS TABLE (word text, count bigint, vector real[], output_vector real[])
    AS 'MODULE_PATHNAME', 'gputext_word2vec_average' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word2vec_average(text, text, text) IS
    'one model of the rows of several models of word2vec, which an inner query gives: the mean of each word''s vectors';
