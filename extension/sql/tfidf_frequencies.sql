-- Over several servers: each one's frequencies, and weights by the sum of all

CREATE FUNCTION @extschema@.tfidf_frequencies(
    items text,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (term text, documents bigint, first_id bigint)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf_frequencies(text, regconfig, @extschema@.gputext_type_name) IS
    'how many texts of an inner query have each term, and in a row without a term how many texts there are';

CREATE FUNCTION @extschema@.tfidf_frequencies(
    items text,
    id_type anyelement,
    config regconfig DEFAULT pg_catalog.get_current_ts_config()
) RETURNS TABLE (term text, documents bigint, first_id anyelement)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_frequencies_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf_frequencies(text, anyelement, regconfig) IS
    'how many texts of an inner query have each term, and in a row without a term how many texts there are, ids of the type of id_type';

CREATE FUNCTION @extschema@.tfidf_from_frequencies(
    items text,
    frequencies text,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_from_frequencies' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf_from_frequencies(text, text, regconfig, integer, @extschema@.gputext_type_name) IS
    'tfidf by the document frequencies that an inner query gives, such as the sum of those of several servers';

CREATE FUNCTION @extschema@.tfidf_from_frequencies(
    items text,
    frequencies text,
    id_type anyelement,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_from_frequencies_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf_from_frequencies(text, text, anyelement, regconfig, integer) IS
    'tfidf by the document frequencies that an inner query gives, such as the sum of those of several servers, ids of the type of id_type';
