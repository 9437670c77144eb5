-- Over several servers: each one's frequencies, and weights by the sum of all

CREATE FUNCTION @extschema@.tfidf_frequencies(
    items text,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (term text, documents bigint, first_id bigint, occurrences bigint)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf_frequencies(text, regconfig, @extschema@.gputext_type_name) IS
    'how many texts of an inner query have each term, and how often; in a row without a term how many texts there are, and their length';

CREATE FUNCTION @extschema@.tfidf_frequencies(
    items text,
    id_type anyelement,
    config regconfig DEFAULT pg_catalog.get_current_ts_config()
) RETURNS TABLE (term text, documents bigint, first_id anyelement, occurrences bigint)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_frequencies_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf_frequencies(text, anyelement, regconfig) IS
    'how many texts of an inner query have each term, and how often; in a row without a term how many texts there are, and their length; ids of the type of id_type';

CREATE FUNCTION @extschema@.tfidf_from_frequencies(
    items text,
    frequencies text,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    bm25 boolean DEFAULT false,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_from_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf_from_frequencies(text, text, regconfig, integer, boolean, double precision, double precision, @extschema@.gputext_type_name) IS
    'tfidf by the document frequencies that an inner query gives, such as the sum of those of several servers';

CREATE FUNCTION @extschema@.tfidf_from_frequencies(
    items text,
    frequencies text,
    id_type anyelement,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    bm25 boolean DEFAULT false,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_from_frequencies_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf_from_frequencies(text, text, anyelement, regconfig, integer, boolean, double precision, double precision) IS
    'tfidf by the document frequencies that an inner query gives, such as the sum of those of several servers, ids of the type of id_type';
