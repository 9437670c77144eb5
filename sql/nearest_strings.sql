-- gpu_knn and gpu_knn_within on texts by metrics of strings: edit_rate, levenshtein, osa, jaro, jaro_winkler

CREATE TABLE canon (id integer PRIMARY KEY, name text, country text);
INSERT INTO canon VALUES
    (1, 'Anna Smith', 'us'), (2, 'Anne Smith', 'uk'), (3, 'Peter Müller', 'de'), (4, 'Petra Mueller', 'de'), (5, 'José García', 'es'),
    (6, 'Иван Иванов', 'ru'), (7, '', NULL), (8, NULL, 'us'), (9, 'Anna Smith', 'de'), (10, '山田太郎', 'jp');
CREATE TABLE dirty (id integer PRIMARY KEY, name text, country text);
INSERT INTO dirty VALUES (1, 'Ana Smith', 'us'), (2, 'Peter Mueler', 'de'), (3, 'Jose Garcia', 'es'), (4, 'Иван Иваонв', 'ru'), (5, '', 'us'), (6, NULL, 'us');

-- The best match of each; ties in the order of the items
SELECT q.name, i.name AS best, round(n.distance::numeric, 4) AS distance
FROM gpu_knn('SELECT id, name FROM dirty', 'SELECT id, name FROM canon', k => 1, metric => 'edit_rate') AS n
     JOIN dirty AS q ON q.id = n.query_id JOIN canon AS i ON i.id = n.item_id ORDER BY q.id;
SELECT query_id, item_id, rank, distance
FROM gpu_knn('SELECT id, name FROM dirty', 'SELECT id, name FROM canon', k => 3, metric => 'levenshtein') ORDER BY query_id, rank;
SELECT query_id, item_id, rank, distance
FROM gpu_knn('SELECT id, name FROM dirty', 'SELECT id, name FROM canon', k => 1, metric => 'osa') ORDER BY query_id, rank;
SELECT query_id, item_id, rank, distance
FROM gpu_knn('SELECT id, name FROM dirty', 'SELECT id, name FROM canon', k => 2, metric => 'jaro') ORDER BY query_id, rank;
SELECT query_id, item_id, rank, distance
FROM gpu_knn('SELECT id, name FROM dirty', 'SELECT id, name FROM canon', k => 2, metric => 'jaro_winkler') ORDER BY query_id, rank;

-- All within a distance; keys; not itself
SELECT * FROM gpu_knn_within('SELECT id, name FROM dirty', 'SELECT id, name FROM canon', radius => 2, metric => 'levenshtein') ORDER BY query_id, rank;
SELECT * FROM gpu_knn('SELECT id, name, country FROM dirty', 'SELECT id, name, country FROM canon', k => 2, metric => 'jaro_winkler')
ORDER BY query_id, rank;
SELECT * FROM gpu_knn('SELECT id, name, country FROM dirty', 'SELECT id, name, country FROM canon', k => 1, exclude_key => true, metric => 'edit_rate')
ORDER BY query_id, rank;
SELECT * FROM gpu_knn('SELECT id, name FROM canon', 'SELECT id, name FROM canon', k => 1, metric => 'jaro_winkler', exclude_self => true)
ORDER BY query_id, rank;

-- Ids of other types, other types of strings, bytea
SELECT * FROM gpu_knn('SELECT ''x'', ''Ana''', 'SELECT ''i'' || id, name FROM canon', id_type => NULL::text, k => 1, metric => 'jaro');
SELECT * FROM gpu_knn('SELECT 1, ''Anna''::char(20)', 'SELECT 1, ''Anna''::varchar', k => 1, metric => 'levenshtein');
SELECT * FROM gpu_knn('SELECT 1, ''\x00ff''::bytea', 'SELECT i, decode(lpad(to_hex(i), 4, ''0''), ''hex'') FROM generate_series(250, 260) AS i', k => 2,
                      metric => 'levenshtein');
-- Bytes are the symbols of bytea, characters those of text, with each metric that takes both.
SELECT metric, b.distance AS bytes, t.distance AS characters
FROM unnest('{edit_rate,levenshtein,osa}'::text[]) AS metric,
     gpu_knn('SELECT 1, ''é''::bytea', 'SELECT 1, ''e''::bytea', k => 1, metric => metric) AS b,
     gpu_knn('SELECT 1, ''é''', 'SELECT 1, ''e''', k => 1, metric => metric) AS t;

-- What the plain functions give, to the bit: strings of many lengths, of few letters or of many, some equal, some long
CREATE TABLE strings AS
SELECT i AS id, CASE WHEN i % 50 = 0 THEN repeat(md5(i::text), 1 + i % 17)
                     WHEN i % 3 = 0 THEN translate(substr(md5((i / 5)::text), 1, i % 29), '0123456789abcdef', 'aaaabbbbccccddéé')
                     ELSE substr(md5((i / 4)::text), 1 + i % 4, i % 31) || substr(md5(i::text), 1, i % 3) END AS s
FROM generate_series(1, 600) AS i;

CREATE FUNCTION differing(metric text, plain text, k integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE answer bigint;
BEGIN
    EXECUTE format($q$
        WITH found AS (SELECT * FROM gpu_knn('SELECT id, s FROM strings WHERE id %% 9 = 1', 'SELECT id, s FROM strings', k => %1$s, metric => %2$L)),
             wanted AS (SELECT q.id AS query_id, i.id AS item_id, row_number() OVER (PARTITION BY q.id ORDER BY d, i.id) AS rank, d AS distance
                        FROM strings AS q, strings AS i, LATERAL (SELECT (%3$s)::double precision AS d) AS plain WHERE q.id %% 9 = 1)
        SELECT count(*) FROM found FULL JOIN (SELECT * FROM wanted WHERE rank <= %1$s) AS wanted USING (query_id, rank)
        WHERE (found.item_id, found.distance) IS DISTINCT FROM (wanted.item_id, wanted.distance)$q$, k, metric, plain) INTO answer;
    RETURN answer;
END$$;
SELECT differing('edit_rate', 'edit_rate(q.s, i.s)', 5) AS edit_rate, differing('levenshtein', 'edit_distance(q.s, i.s)', 7) AS levenshtein,
       differing('osa', 'osa_distance(q.s, i.s)', 3) AS osa, differing('jaro', '1 - jaro_similarity(q.s, i.s)', 4) AS jaro,
       differing('jaro_winkler', '1 - jaro_winkler_similarity(q.s, i.s)', 6) AS jaro_winkler;

-- No rows
SELECT * FROM gpu_knn('SELECT 1, ''a'' WHERE false', 'SELECT id, name FROM canon', k => 1, metric => 'jaro');
SELECT * FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, ''b'' WHERE false', k => 1, metric => 'jaro');
SELECT * FROM gpu_knn_within('SELECT 1, ''a''', 'SELECT 1, ''b''', radius => -1, metric => 'jaro');

-- Errors
SELECT * FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, ''b''', k => 1, metric => 'editrate');
SELECT * FROM gpu_knn('SELECT 1', 'SELECT 1', k => 1, metric => 'edit_rate');
SELECT * FROM gpu_knn('SELECT 1, ''a'', 2, 3', 'SELECT 1, ''a'', 2, 3', k => 1, metric => 'edit_rate');
SELECT * FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, ''b''', k => 1, metric => 'euclidean');
SELECT * FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, 2', k => 1, metric => 'jaro');
SELECT * FROM gpu_knn('SELECT 1, ARRAY[1, 2]', 'SELECT 1, ''b''', k => 1, metric => 'edit_rate');
SELECT * FROM gpu_knn('SELECT 1, ''a''::bytea', 'SELECT 1, ''b''::bytea', k => 1, metric => 'jaro_winkler');
SELECT * FROM gpu_knn('SELECT 1, ''a''::bytea', 'SELECT 1, ''b''', k => 1, metric => 'levenshtein');
SELECT * FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, ''b''', k => 1, metric => 'jaro', min_document_frequency => 2);
SELECT * FROM gpu_knn('SELECT 1, ''a'', 1', 'SELECT 1, ''b''', k => 1, metric => 'jaro');
SELECT * FROM gpu_knn('SELECT 1, ''a'', 1, 2', 'SELECT 1, ''b'', 1, 2', k => 1, metric => 'jaro');
SET gputext.host_memory_limit = '1MB';
SELECT count(*) FROM gpu_knn('SELECT 1, ''a''', 'SELECT 1, repeat(''a'', 1000000)', k => 1, metric => 'jaro');
-- A long string is refused before its symbols take memory: 120 MB
CREATE TABLE long_string AS SELECT 1 AS id, repeat('abcdefghi ', 3000000) AS s;
CREATE FUNCTION peak_megabytes() RETURNS bigint LANGUAGE sql VOLATILE AS
$$SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+)')::bigint / 1024$$;
SELECT peak_megabytes() AS before \gset
SELECT count(*) FROM gpu_knn('SELECT 1, ''a''', 'SELECT id, s FROM long_string', k => 1, metric => 'jaro');
SELECT peak_megabytes() - :before < 90 AS stays_small;
DROP FUNCTION peak_megabytes;
DROP TABLE long_string;
RESET gputext.host_memory_limit;

-- A cancel, wherever it finds the statement
\set SHOW_CONTEXT never
SET statement_timeout = 500;
SELECT count(*) FROM gpu_knn('SELECT i, repeat(md5(i::text), 300) FROM generate_series(1, 300) AS i',
                             'SELECT i, repeat(md5((i + 7000)::text), 300) FROM generate_series(1, 300) AS i', k => 1, metric => 'osa');
RESET statement_timeout;
\set SHOW_CONTEXT errors

DROP TABLE canon, dirty, strings;
DROP FUNCTION differing;
-- Many rows are read by threads: characters, char(n) without its blanks, and bytes.
CREATE TABLE many AS
SELECT i AS id, CASE WHEN i % 7 = 0 THEN 'Zoë ' WHEN i % 11 = 0 THEN '山田' ELSE '' END || left(md5(i::text), i % 12) AS name FROM generate_series(1, 66000) AS i;
CREATE FUNCTION differing_of_many(given text, compared text, OUT rows bigint, OUT differing bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('WITH wanted AS (SELECT q.id AS query_id, nearest.id AS item_id, nearest.rank FROM (SELECT id, %2$s AS s FROM many WHERE id IN (7, 11, 12, 13)) AS q,
                                    LATERAL (SELECT i.id, row_number() OVER (ORDER BY osa_distance(q.s, i.%2$s), i.id) AS rank FROM many AS i ORDER BY rank LIMIT 5) AS nearest)
                    SELECT count(*), count(*) FILTER (WHERE found.item_id IS DISTINCT FROM wanted.item_id)
                    FROM gpu_knn(''SELECT id, %1$s FROM many WHERE id IN (7, 11, 12, 13)'', ''SELECT id, %1$s FROM many'', k => 5, metric => ''osa'') AS found
                         FULL JOIN wanted USING (query_id, rank)', given, compared) INTO rows, differing;
END $$;
ALTER TABLE many ADD padded char(30), ADD bytes bytea, ADD latin text;
UPDATE many SET padded = name, bytes = convert_to(name, 'UTF8'), latin = convert_from(convert_to(name, 'UTF8'), 'LATIN1');
SELECT given, d.* FROM (VALUES ('name', 'name'), ('padded', 'name'), ('bytes', 'latin')) AS columns (given, compared), LATERAL differing_of_many(given, compared) AS d;
DROP TABLE many;
DROP FUNCTION differing_of_many;
