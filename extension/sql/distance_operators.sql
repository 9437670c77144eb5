-- Distances of two vectors, and operators for them. They have the names that pgvector gives the same distances of its types; on arrays
-- pgvector has none. Each gives the bits of gpu_knn's distance.

CREATE FUNCTION @extschema@.euclidean_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_euclidean_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.euclidean_distance(real[], real[]) IS
    'euclidean distance';
CREATE OPERATOR @extschema@.<-> (FUNCTION = @extschema@.euclidean_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = OPERATOR(@extschema@.<->));
COMMENT ON OPERATOR @extschema@.<-> (real[], real[]) IS
    'euclidean distance';

CREATE FUNCTION @extschema@.cosine_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.cosine_distance(real[], real[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';
CREATE OPERATOR @extschema@.<=> (FUNCTION = @extschema@.cosine_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = OPERATOR(@extschema@.<=>));
COMMENT ON OPERATOR @extschema@.<=> (real[], real[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';

CREATE FUNCTION @extschema@.negative_inner_product(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.negative_inner_product(real[], real[]) IS
    'negative inner product';
CREATE OPERATOR @extschema@.<#> (FUNCTION = @extschema@.negative_inner_product, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = OPERATOR(@extschema@.<#>));
COMMENT ON OPERATOR @extschema@.<#> (real[], real[]) IS
    'negative inner product';

CREATE FUNCTION @extschema@.manhattan_distance(a real[], b real[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_manhattan_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.manhattan_distance(real[], real[]) IS
    'manhattan distance';
CREATE OPERATOR @extschema@.<+> (FUNCTION = @extschema@.manhattan_distance, LEFTARG = real[], RIGHTARG = real[], COMMUTATOR = OPERATOR(@extschema@.<+>));
COMMENT ON OPERATOR @extschema@.<+> (real[], real[]) IS
    'manhattan distance';

CREATE FUNCTION @extschema@.euclidean_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_euclidean_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.euclidean_distance(double precision[], double precision[]) IS
    'euclidean distance';
CREATE OPERATOR @extschema@.<-> (FUNCTION = @extschema@.euclidean_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = OPERATOR(@extschema@.<->));
COMMENT ON OPERATOR @extschema@.<-> (double precision[], double precision[]) IS
    'euclidean distance';

CREATE FUNCTION @extschema@.cosine_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.cosine_distance(double precision[], double precision[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';
CREATE OPERATOR @extschema@.<=> (FUNCTION = @extschema@.cosine_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = OPERATOR(@extschema@.<=>));
COMMENT ON OPERATOR @extschema@.<=> (double precision[], double precision[]) IS
    'cosine distance, 1 - similarity; NaN when either is all zeros';

CREATE FUNCTION @extschema@.negative_inner_product(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.negative_inner_product(double precision[], double precision[]) IS
    'negative inner product';
CREATE OPERATOR @extschema@.<#> (FUNCTION = @extschema@.negative_inner_product, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = OPERATOR(@extschema@.<#>));
COMMENT ON OPERATOR @extschema@.<#> (double precision[], double precision[]) IS
    'negative inner product';

CREATE FUNCTION @extschema@.manhattan_distance(a double precision[], b double precision[]) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gputext_manhattan_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION @extschema@.manhattan_distance(double precision[], double precision[]) IS
    'manhattan distance';
CREATE OPERATOR @extschema@.<+> (FUNCTION = @extschema@.manhattan_distance, LEFTARG = double precision[], RIGHTARG = double precision[], COMMUTATOR = OPERATOR(@extschema@.<+>));
COMMENT ON OPERATOR @extschema@.<+> (double precision[], double precision[]) IS
    'manhattan distance';
