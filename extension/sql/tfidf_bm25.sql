-- Weights of the terms of texts by BM25: functions of their own, so that an update leaves those that a release had. With
-- bm25 => false they are these.

CREATE FUNCTION @extschema@.tfidf(
    items text,
    bm25 boolean,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.tfidf(text, boolean, regconfig, integer, double precision, double precision, @extschema@.gputext_type_name) IS
    'terms of every text of an inner query and their BM25 weights';

CREATE FUNCTION @extschema@.tfidf(
    items text,
    id_type anyelement,
    bm25 boolean,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75
) RETURNS TABLE (id anyelement, term text, weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_tfidf_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.tfidf(text, anyelement, boolean, regconfig, integer, double precision, double precision) IS
    'terms of every text of an inner query and their BM25 weights, ids of the type of id_type';
