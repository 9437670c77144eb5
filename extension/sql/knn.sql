-- Nearest neighbors
--
-- As for near-duplicates, each function comes with ids of type bigint, and with ids of the type of
-- id_type, which follows the inner queries. What the inner queries give decides what is compared:
-- vectors, texts or weights of terms, and behind them a key, if wanted: only rows of equal keys are
-- neighbors. config is for texts, min_document_frequency for texts and weights.

CREATE FUNCTION @extschema@.gpu_knn(
    queries text,
    items text,
    k integer,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.gpu_knn(text, text, integer, text, boolean, regconfig, integer, @extschema@.gputext_type_name) IS
    'the k nearest items of every query, exactly, both given by inner queries';

CREATE FUNCTION @extschema@.gpu_knn(
    queries text,
    items text,
    id_type anyelement,
    k integer,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.gpu_knn(text, text, anyelement, integer, text, boolean, regconfig, integer) IS
    'the k nearest items of every query, exactly, both given by inner queries, ids of the type of id_type';

CREATE FUNCTION @extschema@.gpu_knn_within(
    queries text,
    items text,
    radius double precision,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.gpu_knn_within(text, text, double precision, text, boolean, regconfig, integer, @extschema@.gputext_type_name) IS
    'all items within a distance of every query, nearest first, both given by inner queries';

CREATE FUNCTION @extschema@.gpu_knn_within(
    queries text,
    items text,
    id_type anyelement,
    radius double precision,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.gpu_knn_within(text, text, anyelement, double precision, text, boolean, regconfig, integer) IS
    'all items within a distance of every query, nearest first, both given by inner queries, ids of the type of id_type';
