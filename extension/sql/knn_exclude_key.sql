-- The same with a key that excludes, the last column of both inner queries: rows of equal keys are no
-- neighbors. Functions of their own, so that an update leaves those above to what depends on them.
-- k1 and b are of metric 'bm25'.

CREATE FUNCTION @extschema@.gpu_knn(
    queries text,
    items text,
    k integer,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.gpu_knn(text, text, integer, boolean, text, boolean, regconfig, integer, text, double precision, double precision, @extschema@.gputext_type_name) IS
    'the k nearest items of every query, exactly; with exclude_key never of an equal key; both given by inner queries';

CREATE FUNCTION @extschema@.gpu_knn(
    queries text,
    items text,
    id_type anyelement,
    k integer,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.gpu_knn(text, text, anyelement, integer, boolean, text, boolean, regconfig, integer, text, double precision, double precision) IS
    'the k nearest items of every query, exactly; with exclude_key never of an equal key; both given by inner queries, ids of the type of id_type';

CREATE FUNCTION @extschema@.gpu_knn_within(
    queries text,
    items text,
    radius double precision,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (query_id bigint, item_id bigint, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.gpu_knn_within(text, text, double precision, boolean, text, boolean, regconfig, integer, text, double precision, double precision, @extschema@.gputext_type_name) IS
    'all items within a distance of every query, nearest first; with exclude_key never of an equal key; both given by inner queries';

CREATE FUNCTION @extschema@.gpu_knn_within(
    queries text,
    items text,
    id_type anyelement,
    radius double precision,
    exclude_key boolean,
    metric text DEFAULT 'cosine',
    exclude_self boolean DEFAULT false,
    config regconfig DEFAULT pg_catalog.get_current_ts_config(),
    min_document_frequency integer DEFAULT 1,
    frequencies text DEFAULT NULL,
    k1 double precision DEFAULT 1.2,
    b double precision DEFAULT 0.75
) RETURNS TABLE (query_id anyelement, item_id anyelement, rank integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_knn_within_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.gpu_knn_within(text, text, anyelement, double precision, boolean, text, boolean, regconfig, integer, text, double precision, double precision) IS
    'all items within a distance of every query, nearest first; with exclude_key never of an equal key; both given by inner queries, ids of the type of id_type';
