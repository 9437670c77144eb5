-- Weights of the terms of texts (tf-idf)

CREATE FUNCTION tfidf(
    items text,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION tfidf(text, regconfig, integer, gputext_type_name) IS
    'terms of every text of an inner query and their tf-idf weights';

CREATE FUNCTION tfidf(
    items text,
    id_type anyelement,
    config regconfig DEFAULT get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION tfidf(text, anyelement, regconfig, integer) IS
    'terms of every text of an inner query and their tf-idf weights, ids of the type of id_type';
