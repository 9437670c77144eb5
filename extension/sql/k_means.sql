-- k-means

CREATE FUNCTION @extschema@.k_means(
    items text,
    k integer,
    metric text DEFAULT 'euclidean',
    seed bigint DEFAULT 1,
    iterations integer DEFAULT 20,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, cluster integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_k_means' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.k_means(text, integer, text, bigint, integer, @extschema@.gputext_type_name) IS
    'cluster of each item of an inner query, 1 to k, by k-means, and its distance from the centroid';

CREATE FUNCTION @extschema@.k_means(
    items text,
    id_type anyelement,
    k integer,
    metric text DEFAULT 'euclidean',
    seed bigint DEFAULT 1,
    iterations integer DEFAULT 20
) RETURNS TABLE (id anyelement, cluster integer, distance double precision)
    AS 'MODULE_PATHNAME', 'gputext_k_means_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.k_means(text, anyelement, integer, text, bigint, integer) IS
    'cluster of each item of an inner query, 1 to k, by k-means, and its distance from the centroid, ids of the type of id_type';

CREATE FUNCTION @extschema@.k_means_centroids(
    items text,
    k integer,
    metric text DEFAULT 'euclidean',
    seed bigint DEFAULT 1,
    iterations integer DEFAULT 20,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (cluster integer, size bigint, centroid real[])
    AS 'MODULE_PATHNAME', 'gputext_k_means_centroids' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100;
COMMENT ON FUNCTION @extschema@.k_means_centroids(text, integer, text, bigint, integer, @extschema@.gputext_type_name) IS
    'size and centroid of each cluster of the items of an inner query, by k-means';

CREATE FUNCTION @extschema@.k_means_centroids(
    items text,
    id_type anyelement,
    k integer,
    metric text DEFAULT 'euclidean',
    seed bigint DEFAULT 1,
    iterations integer DEFAULT 20
) RETURNS TABLE (cluster integer, size bigint, centroid real[])
    AS 'MODULE_PATHNAME', 'gputext_k_means_centroids_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.k_means_centroids(text, anyelement, integer, text, bigint, integer) IS
    'size and centroid of each cluster of the items of an inner query, by k-means, ids of the type of id_type';
