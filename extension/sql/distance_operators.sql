-- Distances of two vectors, and operators for them. They have the names that pgvector gives the same distances of its types; on arrays
-- pgvector has none. Each gives the bits of gpu_knn's distance.

CREATE FUNCTION euclidean_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_euclidean_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION euclidean_distance(real[], real[]) IS
    'euclidean distance';
CREATE OPERATOR <-> (FUNCTION = euclidean_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = <->);
COMMENT ON OPERATOR <-> (real[], real[]) IS
    'euclidean distance';

CREATE FUNCTION cosine_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION cosine_distance(real[], real[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';
CREATE OPERATOR <=> (FUNCTION = cosine_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = <=>);
COMMENT ON OPERATOR <=> (real[], real[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';

CREATE FUNCTION negative_inner_product(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION negative_inner_product(real[], real[]) IS
    'negative inner product';
CREATE OPERATOR <#> (FUNCTION = negative_inner_product, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = <#>);
COMMENT ON OPERATOR <#> (real[], real[]) IS
    'negative inner product';

CREATE FUNCTION manhattan_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_manhattan_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION manhattan_distance(real[], real[]) IS
    'manhattan distance';
CREATE OPERATOR <+> (FUNCTION = manhattan_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = <+>);
COMMENT ON OPERATOR <+> (real[], real[]) IS
    'manhattan distance';

CREATE FUNCTION euclidean_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_euclidean_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION euclidean_distance(double precision[], double precision[]) IS
    'euclidean distance';
CREATE OPERATOR <-> (FUNCTION = euclidean_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = <->);
COMMENT ON OPERATOR <-> (double precision[], double precision[]) IS
    'euclidean distance';

CREATE FUNCTION cosine_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION cosine_distance(double precision[], double precision[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';
CREATE OPERATOR <=> (FUNCTION = cosine_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = <=>);
COMMENT ON OPERATOR <=> (double precision[], double precision[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';

CREATE FUNCTION negative_inner_product(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION negative_inner_product(double precision[], double precision[]) IS
    'negative inner product';
CREATE OPERATOR <#> (FUNCTION = negative_inner_product, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = <#>);
COMMENT ON OPERATOR <#> (double precision[], double precision[]) IS
    'negative inner product';

CREATE FUNCTION manhattan_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_manhattan_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION manhattan_distance(double precision[], double precision[]) IS
    'manhattan distance';
CREATE OPERATOR <+> (FUNCTION = manhattan_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = <+>);
COMMENT ON OPERATOR <+> (double precision[], double precision[]) IS
    'manhattan distance';
