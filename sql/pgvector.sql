-- Vectors of pgvector's types, which are known by their names and their extension

-- Types of the same layout stand in for pgvector's, so that it need not be installed.
SET client_min_messages = warning;
CREATE TYPE vector;
CREATE FUNCTION vector_in(cstring) RETURNS vector AS 'byteain' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION vector_out(vector) RETURNS cstring AS 'byteaout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE vector (INPUT = vector_in, OUTPUT = vector_out, STORAGE = external);
CREATE TYPE halfvec;
CREATE FUNCTION halfvec_in(cstring) RETURNS halfvec AS 'byteain' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION halfvec_out(halfvec) RETURNS cstring AS 'byteaout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE halfvec (INPUT = halfvec_in, OUTPUT = halfvec_out, STORAGE = external);
CREATE TYPE sparsevec;
CREATE FUNCTION sparsevec_in(cstring) RETURNS sparsevec AS 'byteain' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION sparsevec_out(sparsevec) RETURNS cstring AS 'byteaout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE sparsevec (INPUT = sparsevec_in, OUTPUT = sparsevec_out, STORAGE = external);
RESET client_min_messages;

-- Bytes in the machine's order, which is the reverse of the network's
CREATE FUNCTION machine(network bytea) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT string_agg(lpad(to_hex(get_byte(network, i)), 2, '0'), '' ORDER BY i DESC) FROM generate_series(0, length(network) - 1) AS i $$;
-- Of numbers that are whole, up to 2048
CREATE FUNCTION half(x real) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT machine(int2send((CASE WHEN x < 0 THEN -32768 ELSE 0 END + CASE WHEN x = 0 THEN 0
                            ELSE (('x' || encode(float4send(abs(x)), 'hex'))::bit(32)::integer >> 13) - (112 << 10) END)::smallint)) $$;
CREATE FUNCTION as_vector(real[]) RETURNS vector LANGUAGE sql IMMUTABLE AS
$$ SELECT vector_in(('\x' || machine(int2send(cardinality($1)::smallint)) || '0000' || string_agg(machine(float4send(x)), '' ORDER BY n))::cstring)
   FROM unnest($1) WITH ORDINALITY AS elements(x, n) $$;
CREATE FUNCTION as_halfvec(real[]) RETURNS halfvec LANGUAGE sql IMMUTABLE AS
$$ SELECT halfvec_in(('\x' || machine(int2send(cardinality($1)::smallint)) || '0000' || string_agg(half(x), '' ORDER BY n))::cstring)
   FROM unnest($1) WITH ORDINALITY AS elements(x, n) $$;
CREATE FUNCTION as_sparsevec(real[]) RETURNS sparsevec LANGUAGE sql IMMUTABLE AS
$$ SELECT sparsevec_in(('\x' || machine(int4send(cardinality($1))) || machine(int4send(count(*) FILTER (WHERE x <> 0)::integer)) || '00000000'
                        || coalesce(string_agg(machine(int4send(n::integer - 1)), '' ORDER BY n) FILTER (WHERE x <> 0), '')
                        || coalesce(string_agg(machine(float4send(x)), '' ORDER BY n) FILTER (WHERE x <> 0), ''))::cstring)
   FROM unnest($1) WITH ORDINALITY AS elements(x, n) $$;
SELECT as_vector('{1,2}'), as_halfvec('{1,-2}'), as_sparsevec('{0,1,0,2}');

CREATE TABLE rows AS
SELECT i::bigint AS id, ARRAY[i * 7 % 11 - 3, i * 5 % 13, 0, i % 3]::real[] AS plain FROM generate_series(1, 100) AS i;
INSERT INTO rows VALUES (101, '{0,0,0,0}'), (102, '{0,0,0,0}');
ALTER TABLE rows ADD dense vector, ADD half halfvec, ADD sparse sparsevec;
UPDATE rows SET dense = as_vector(plain), half = as_halfvec(plain), sparse = as_sparsevec(plain);

-- Names alone do not make them pgvector's.
SELECT * FROM gpu_knn('SELECT id, dense FROM rows', 'SELECT id, dense FROM rows', 1);
INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
SELECT pg_nextoid('pg_extension', 'oid', 'pg_extension_oid_index'), 'vector', oid, 'public'::regnamespace, true, '0'
FROM pg_roles WHERE rolname = current_user;
ALTER EXTENSION vector ADD TYPE vector;
ALTER EXTENSION vector ADD TYPE halfvec;
ALTER EXTENSION vector ADD TYPE sparsevec;
-- Their input functions are the extension's, too.
SELECT * FROM gpu_knn('SELECT id, dense FROM rows', 'SELECT id, dense FROM rows', 1);
ALTER EXTENSION vector ADD FUNCTION vector_in(cstring);
ALTER EXTENSION vector ADD FUNCTION halfvec_in(cstring);
ALTER EXTENSION vector ADD FUNCTION sparsevec_in(cstring);

-- Every type has the answer of real[], to the bit.
CREATE FUNCTION answer(type1 text, type2 text, k integer, metric text) RETURNS SETOF record LANGUAGE sql AS
$$ SELECT query_id, item_id, rank, distance
   FROM gpu_knn(format('SELECT id, %I FROM rows ORDER BY id', type1), format('SELECT id, %I FROM rows ORDER BY id', type2), k, metric, true) $$;
SELECT metric, type1, type2, count(a) AS rows, count(*) FILTER (WHERE a IS DISTINCT FROM b) AS differing
FROM unnest(ARRAY['euclidean', 'cosine', 'inner_product', 'manhattan']) AS metric,
     (VALUES ('dense', 'dense'), ('plain', 'dense'), ('half', 'plain'), ('half', 'half'), ('dense', 'half'), ('sparse', 'sparse')) AS t(type1, type2),
     LATERAL ROWS FROM (answer('plain', 'plain', 10, metric) AS (q1 bigint, i1 bigint, r1 integer, d1 double precision),
                        answer(type1, type2, 10, metric) AS (q2 bigint, i2 bigint, r2 integer, d2 double precision)) AS f,
     LATERAL (SELECT (q1, i1, r1, d1) AS a, (q2, i2, r2, d2) AS b) AS g
GROUP BY metric, type1, type2 ORDER BY metric, type1, type2;

-- Domains, values that are stored elsewhere, and in a temporary file
CREATE DOMAIN embedding AS vector;
SELECT item_id FROM gpu_knn('SELECT id, dense::embedding FROM rows WHERE id = 7', 'SELECT id, dense FROM rows', 1, 'euclidean');
CREATE TABLE long_rows AS
SELECT id, as_vector(plain) AS dense, as_sparsevec(plain) AS sparse
FROM (SELECT i::bigint AS id, array_agg((i * j * 31 % 1009)::real ORDER BY j) AS plain
      FROM generate_series(1, 6) AS i, generate_series(1, 1000) AS j GROUP BY i) AS p;
SET gputext.host_memory_limit = '1MB';
SELECT count(*), bool_and(item_id % 10 = query_id AND distance = 0) AS found_themselves
FROM gpu_knn('SELECT id, dense FROM long_rows', 'SELECT n * 10 + id, dense FROM long_rows, generate_series(0, 99) AS n', 100, 'euclidean');
SELECT count(*), bool_and(item_id % 10 = query_id AND distance = 0) AS found_themselves
FROM gpu_knn('SELECT id, sparse FROM long_rows', 'SELECT n * 10 + id, sparse FROM long_rows, generate_series(0, 99) AS n', 100, 'euclidean');
RESET gputext.host_memory_limit;

-- Types of those names that whoever owns the extension has added to it: none is a base type with an
-- input function of the extension's, and the values of none are read.
CREATE SCHEMA others;
CREATE TYPE others.halfvec AS ENUM ('a');
CREATE DOMAIN others.vector AS integer;
CREATE TYPE others.sparsevec AS (a integer, b real);
CREATE SCHEMA ranges;
CREATE TYPE ranges.vector AS RANGE (subtype = integer);
ALTER EXTENSION vector ADD TYPE others.halfvec;
ALTER EXTENSION vector ADD DOMAIN others.vector;
ALTER EXTENSION vector ADD TYPE others.sparsevec;
ALTER EXTENSION vector ADD TYPE ranges.vector;
SELECT * FROM gpu_knn('SELECT 1, ''a''::others.halfvec', 'SELECT 1, ''a''::others.halfvec', 1);
SELECT * FROM gpu_knn('SELECT 1, 5::others.vector', 'SELECT 1, 5::others.vector', 1);
SELECT * FROM gpu_knn('SELECT 1, (1, 2)::others.sparsevec', 'SELECT 1, (1, 2)::others.sparsevec', 1);
SELECT * FROM local_outlier_factor('SELECT 1, ranges.vector(1, 5)', 1);
SELECT * FROM cosine_similarities('{1,2}', 'SELECT 1, ''a''::others.halfvec');
SELECT * FROM word_movers_distance('SELECT ''a'' AS word, ''a''::others.halfvec AS vector', 'SELECT 1, ''{a}''::text[], ''{a}''::text[]');
SELECT * FROM word2vec('SELECT ''a''', initial => 'SELECT ''a'', 1, ''a''::others.halfvec, ''a''::others.halfvec');

-- What is refused
SELECT * FROM gpu_knn('SELECT id, sparse FROM rows', 'SELECT id, dense FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, plain FROM rows', 'SELECT id, sparse FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, dense FROM rows', 'SELECT id, as_vector(plain[:2]) FROM rows ORDER BY id', 1);
SELECT * FROM gpu_knn('SELECT id, sparse FROM rows', 'SELECT id, as_sparsevec(plain || 0::real) FROM rows ORDER BY id', 1);
SELECT * FROM gpu_knn('SELECT id, as_vector(''{1,NaN}'') FROM rows ORDER BY id', 'SELECT id, dense FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, as_sparsevec(''{0,Infinity}'') FROM rows ORDER BY id', 'SELECT id, sparse FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, halfvec_in(''\x01000000007c'') FROM rows ORDER BY id', 'SELECT id, half FROM rows', 1);
-- Bytes that are none of pgvector's
SELECT * FROM gpu_knn('SELECT id, vector_in(''\x0200000000000000'') FROM rows', 'SELECT id, dense FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, vector_in('''') FROM rows', 'SELECT id, dense FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, vector_in(''\xffff0000'') FROM rows', 'SELECT id, dense FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, sparsevec_in(''\x020000000100000000000000020000000000803f'') FROM rows', 'SELECT id, sparse FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, sparsevec_in(''\x0200000003000000000000000000000000000000'') FROM rows', 'SELECT id, sparse FROM rows', 1);
SELECT * FROM gpu_knn('SELECT id, sparsevec_in(''\x02000000ffffffff00000000'') FROM rows', 'SELECT id, sparse FROM rows', 1);

DROP TABLE rows, long_rows;
DROP FUNCTION answer, as_vector, as_halfvec, as_sparsevec, half, machine;
DROP DOMAIN embedding;
SET client_min_messages = warning;
DROP EXTENSION vector CASCADE;
DROP SCHEMA others, ranges;
RESET client_min_messages;
SELECT count(*) FROM pg_type WHERE typname IN ('vector', 'halfvec', 'sparsevec');
