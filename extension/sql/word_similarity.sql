-- A thesaurus from texts
--
-- A preset names values for window_size, measure, weight, positions and discount where they are null.

CREATE FUNCTION @extschema@.word_similarity(
    docs text,
    top_k integer DEFAULT 20,
    window_size integer DEFAULT NULL,
    vocabulary integer DEFAULT 100000,
    min_count integer DEFAULT 5,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    positions boolean DEFAULT NULL,
    discount double precision DEFAULT NULL,
    config regconfig DEFAULT 'pg_catalog.simple',
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbors text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word_similarity(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text) IS
    'thesaurus: for every word of the texts of an inner query the most similar words, judged by the words beside them';

CREATE FUNCTION @extschema@.word_similarity_pairs(
    docs text,
    top_k integer DEFAULT 20,
    window_size integer DEFAULT NULL,
    vocabulary integer DEFAULT 100000,
    min_count integer DEFAULT 5,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    positions boolean DEFAULT NULL,
    discount double precision DEFAULT NULL,
    config regconfig DEFAULT 'pg_catalog.simple',
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbor text, rank integer, similarity real)
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_pairs' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 200000;
COMMENT ON FUNCTION @extschema@.word_similarity_pairs(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text) IS
    'word_similarity with a row for every word and neighbor';

CREATE FUNCTION @extschema@.word_cooccurrences(
    docs text,
    window_size integer DEFAULT NULL,
    vocabulary integer DEFAULT 100000,
    min_count integer DEFAULT 5,
    weight text DEFAULT NULL,
    positions boolean DEFAULT NULL,
    discount double precision DEFAULT NULL,
    config regconfig DEFAULT 'pg_catalog.simple',
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, "position" integer, neighbor text, count bigint, weight real)
    AS 'MODULE_PATHNAME', 'gputext_word_cooccurrences' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000000;
COMMENT ON FUNCTION @extschema@.word_cooccurrences(text, integer, integer, integer, text, boolean, double precision, regconfig, text) IS
    'co-occurrences of the words of the texts of an inner query: counts and weights by relative position';

-- The name of 0.1.0, and of its column
CREATE FUNCTION @extschema@.word_similarity_from(
    cooccurrences text,
    top_k integer DEFAULT 20,
    features integer DEFAULT NULL,
    measure text DEFAULT NULL,
    weight text DEFAULT NULL,
    discount double precision DEFAULT NULL,
    preset text DEFAULT 'default'
) RETURNS TABLE (word text, neighbours text[], similarities real[])
    AS 'MODULE_PATHNAME', 'gputext_word_similarity_from' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.word_similarity_from(text, integer, integer, text, text, double precision, text) IS
    'deprecated, by another name: word_similarity_from_counts, whose column is neighbors';
