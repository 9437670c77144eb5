-- Over several servers: the counts of each one's words, and a thesaurus of the words that are
-- frequent enough in all texts

CREATE FUNCTION @extschema@.word_frequencies(
    docs text,
    config regconfig DEFAULT 'pg_catalog.simple'
) RETURNS TABLE (word text, count bigint)
    AS 'MODULE_PATHNAME', 'gputext_word_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.word_frequencies(text, regconfig) IS
    'how often each word occurs in the texts of an inner query';

CREATE FUNCTION @extschema@.word_similarity_from_counts(
    cooccurrences text,
    words text,
    top_k integer DEFAULT 20,
    vocabulary integer DEFAULT 100000,
    min_count integer DEFAULT 5,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    discount double precision DEFAULT NULL,
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbors text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_from_words' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word_similarity_from_counts(text, text, integer, integer, integer, integer, text, text, double precision, text) IS
    'word_similarity from counts of word_cooccurrences, and the vocabulary from counts of word_frequencies, that inner queries give';

CREATE FUNCTION @extschema@.word_similarity_from_counts(
    cooccurrences text,
    top_k integer DEFAULT 20,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    discount double precision DEFAULT NULL,
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbors text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_from_counts' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word_similarity_from_counts(text, integer, integer, text, text, double precision, text) IS
    'word_similarity from counts of word_cooccurrences that an inner query gives';
