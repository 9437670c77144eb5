-- Weights of the terms of texts (tf-idf)

CREATE FUNCTION @extschema@.tfidf(
    items text,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf(text, regconfig, integer, @extschema@.gputext_type_name) IS
    'terms of every text of an inner query and their tf-idf weights';

CREATE FUNCTION @extschema@.tfidf(
    items text,
    id_type anyelement,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf(text, anyelement, regconfig, integer) IS
    'terms of every text of an inner query and their tf-idf weights, ids of the type of id_type';
