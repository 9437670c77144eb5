-- What people write at first, and what they are told
CREATE TABLE docs (id bigint, body text);
INSERT INTO docs VALUES (1, 'It was a bright cold day in April'), (2, 'It was a bright cold day in April!');
CREATE TABLE others (id uuid, body text);
INSERT INTO others VALUES ('00000000-0000-0000-0000-000000000001', 'It was a bright cold day in April');
CREATE TABLE vectors (id bigint, embedding real[]);
INSERT INTO vectors VALUES (1, '{1,2}'), (2, NULL);

-- The columns in the wrong order: one hint leads to the rows.
SELECT * FROM near_duplicates('SELECT body, id FROM docs');
SELECT * FROM near_duplicates('SELECT id, body FROM docs');
SELECT * FROM near_duplicate_groups('SELECT body::bytea, id FROM docs');
SELECT * FROM k_means('SELECT embedding, id FROM vectors', 1);

-- Ids of another type, with arguments after them
SELECT * FROM near_duplicates('SELECT id, body FROM others', 0.1);
SELECT * FROM near_duplicates('SELECT id, body FROM others', id_type => NULL::uuid, threshold => 0.1);
SELECT * FROM near_duplicates('SELECT id::float8, body FROM docs', 0.1);
SELECT * FROM near_duplicates('SELECT id::float8, body FROM docs', id_type => NULL::double precision, threshold => 0.1);
-- Ids of two types: the hint leads out of the circle.
SELECT * FROM near_duplicates_between('SELECT id, body FROM docs', 'SELECT id, body FROM others');
SELECT * FROM near_duplicates_between('SELECT id, body FROM docs', 'SELECT id, body FROM others', id_type => NULL::uuid);
SELECT * FROM near_duplicates_between('SELECT id::text, body FROM docs', 'SELECT id::text, body FROM others', id_type => NULL::text);
SELECT * FROM gpu_knn('SELECT id, body FROM docs', 'SELECT id, body FROM others', 1);

-- Something else than a query
SELECT * FROM near_duplicates('docs');
SELECT * FROM near_duplicates('public.docs');
SELECT * FROM gpu_knn('SELECT id, embedding FROM vectors', 'vectors', 1);
SELECT near_duplicates(body) FROM docs;
-- A query with an error of its own
SELECT * FROM near_duplicates('SELECT id, body FROM docs WHERE');
SELECT * FROM near_duplicates('  (SELECT id, body FROM docs');
SELECT * FROM near_duplicates('SELECT id, boddy FROM docs');

-- Parameters, columns and variables of the statement around it
PREPARE of_one AS SELECT * FROM near_duplicates('SELECT id, body FROM docs WHERE id < $1');
EXECUTE of_one;
SELECT * FROM docs AS d, near_duplicates('SELECT id, body FROM docs WHERE id < d.id') AS n;
DO $$
DECLARE
    most bigint := 3;
BEGIN
    PERFORM * FROM near_duplicates('SELECT id, body FROM docs WHERE id < most');
END $$;
DO $$
DECLARE
    most bigint := 3;
BEGIN
    RAISE NOTICE '% pair', (SELECT count(*) FROM near_duplicates(format('SELECT id, body FROM docs WHERE id < %L', most)));
END $$;
SELECT d.id, n.* FROM docs AS d, near_duplicates(format('SELECT id, body FROM docs WHERE id <= %L', d.id)) AS n;

-- How much is alike, in place of how much differs
SELECT * FROM near_duplicates('SELECT id, body FROM docs', 0.95);
SELECT is_near_duplicate('a', 'b', 0.9);
SELECT * FROM near_duplicates('SELECT id, body FROM docs', 0.05);

-- Which rows have a null
SELECT * FROM near_duplicates_between('SELECT 1::bigint, NULL::text', 'SELECT id, nullif(body, body) FROM docs');
SELECT count(*) FROM gpu_knn('SELECT 1::bigint, NULL::text', 'SELECT id, body FROM docs', 1);
SELECT count(*) FROM gpu_knn('TABLE vectors', 'SELECT id, NULL::real[] FROM vectors', 1);
SELECT count(*) FROM k_means('TABLE vectors', 1);

-- Elements that would be 0 as real
SELECT * FROM k_means('SELECT 1::bigint, ARRAY[1e-300]::float8[]', 1);
DROP TABLE docs, others, vectors;
