-- Word embeddings

CREATE FUNCTION @extschema@.word2vec(
    docs text,
    model text DEFAULT 'skipgram',
    dimensions integer DEFAULT 100,
    window_size integer DEFAULT 5,
    negative integer DEFAULT 5,
    sampling text DEFAULT 'unigram',
    min_count integer DEFAULT 5,
    sample double precision DEFAULT 1e-4,
    epochs integer DEFAULT 5,
    learning_rate double precision DEFAULT NULL,
    seed bigint DEFAULT 1,
    config regconfig DEFAULT 'pg_catalog.simple',
    initial text DEFAULT NULL,
    farthest integer DEFAULT 5,
    farthest_from_epoch integer DEFAULT NULL,
    replicas integer DEFAULT 1,
    batch integer DEFAULT NULL
) RETURNS TABLE (word text, count bigint, vector real[], output_vector real[])
    AS 'MODULE_PATHNAME', 'gputext_word2vec' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word2vec(text, text, integer, integer, integer, text, integer, double precision, integer, double precision, bigint, regconfig, text, integer, integer, integer, integer) IS
    'word embeddings (word2vec) trained on the texts of an inner query';
