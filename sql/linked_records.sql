-- linked_records and linked_records_between
\set SHOW_CONTEXT never
CREATE SCHEMA linked_records;
SET search_path = linked_records, public;

-- ---- Ten records, and weights by hand ----

CREATE TABLE people (id bigint PRIMARY KEY, surname text, born date, city text);
INSERT INTO people VALUES
    (1, 'Meyer', '1970-03-01', 'Bonn'), (2, 'Meyer', '1970-03-01', 'Bonn'), (3, 'Meier', '1970-03-21', 'Bonn'), (4, 'Meyer', '1970-03-01', NULL),
    (5, 'Lopez', '1988-12-24', 'Cadiz'), (6, 'Lopes', '1988-12-24', 'Cadiz'), (7, NULL, '1988-12-24', 'Cadiz'), (8, 'Okafor', NULL, NULL),
    (9, 'Okafor', '1991-07-07', 'Enugu'), (10, NULL, NULL, NULL);
-- The prior odds are 1 to 16, and m / u is a power of two at each level, so that weights are whole numbers.
CREATE TABLE model (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision);
INSERT INTO model VALUES
    (NULL, NULL, 'prior', NULL, 1 / 17.0, 16 / 17.0),        -- -4
    ('surname', 2, 'exact', false, 0.75, 0.046875),          --  4
    ('surname', 1, 'jaro_winkler >= 0.8', false, 0.125, 0.03125),  --  2
    ('surname', 0, 'else', false, 0.125, 1),                 -- -3
    ('born', 2, 'exact', false, 0.75, 0.01171875),           --  6
    ('born', 1, 'within 31', false, 0.125, 0.015625),        --  3
    ('born', 0, 'else', false, 0.0625, 1),                   -- -4
    ('city', 1, 'exact', false, 0.5, 0.125),                 --  2
    ('city', 0, 'else', false, 0.5, 1);                      -- -1
-- Equal ones have -4 + 4 + 6 + 2 = 8. A similar surname has 2, a date some days away 3, and a null nothing.
SELECT id1, id2, round(match_weight::numeric, 9) AS match_weight, round(match_probability::numeric, 9) AS match_probability, pattern, weights
FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', min_weight => 0);
-- All 45 pairs; the least is -4 - 3 - 4 - 1.
SELECT count(*), min(match_weight) FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', '-Infinity'::double precision);
-- The threshold belongs to it.
SELECT id1, id2 FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', 8);
SELECT id1, id2 FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', 8.000001);
-- Term frequencies: u of a surname is its share of the 8 that there are. Meyer has 3, so 0.75 / (3 / 8) = 2; Okafor 2, so 3.
SELECT id1, id2, match_weight, weights
FROM linked_records('SELECT * FROM people', 'SELECT field, level, condition, field = ''surname'' AS term_frequency, m, u FROM model', -4)
WHERE pattern[1] = 2;
-- The weights and the prior's are the match weight.
SELECT count(*) FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', '-Infinity'::double precision) AS l
WHERE match_weight <> -4 + (SELECT sum(w) FROM unnest(weights) AS w) OR match_probability <> 1 / (1 + 2 ^ -match_weight);
-- Two tables
SELECT id1, id2, match_weight, pattern
FROM linked_records_between('SELECT * FROM people WHERE id IN (1, 7, 8)', 'SELECT * FROM people WHERE id > 1', 'SELECT * FROM model');
-- Keys: pairs that agree in the city, or in surname and date of birth
SELECT id1, id2, match_weight FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', keys => '{city, "surname, born"}');
-- A key need not be a field.
SELECT id1, id2 FROM linked_records('SELECT *, id % 2 AS half FROM people', 'SELECT * FROM model', keys => '{half}');
SELECT id1, id2 FROM linked_records('SELECT *, id % 2 AS "The ""half"", odd" FROM people', 'SELECT * FROM model', keys => ARRAY['"The ""half"", odd"']);

-- The order of pairs is that of rows: by ids, unless the query has an order of its own.
SELECT id1, id2 FROM linked_records('SELECT * FROM people ORDER BY id DESC', 'SELECT * FROM model', 4);
SELECT id1, id2 FROM linked_records('SELECT * FROM (SELECT * FROM people ORDER BY random()) AS p', 'SELECT * FROM model', 4);
SELECT id1, id2 FROM linked_records_between('SELECT * FROM people ORDER BY id DESC', 'SELECT * FROM people', 'SELECT * FROM model', 7);
SELECT id1, id2 FROM linked_records_between('SELECT * FROM people', 'SELECT * FROM people ORDER BY id DESC', 'SELECT * FROM model', 7);
SELECT id1, id2 FROM linked_records_between('SELECT * FROM people', 'SELECT * FROM (SELECT * FROM people ORDER BY md5(id::text)) AS p', 'SELECT * FROM model', 7);
-- Ids of other types
SELECT pg_typeof(id1), id1, id2 FROM linked_records('SELECT ''p'' || id, surname, born, city FROM people', 'SELECT * FROM model', id_type => NULL::text, min_weight => 5);
SELECT pg_typeof(id2), id1, id2
FROM linked_records_between('SELECT id::smallint, surname, born, city FROM people', 'SELECT id::smallint, surname, born, city FROM people', 'SELECT * FROM model', NULL::smallint, 8);
SELECT id1, id2 FROM linked_records('SELECT id::integer, surname, born, city FROM people', 'SELECT * FROM model', 8);
-- Few records, and none
SELECT * FROM linked_records('SELECT * FROM people WHERE id = 1', 'SELECT * FROM model', '-Infinity'::double precision);
SELECT * FROM linked_records('SELECT * FROM people WHERE false', 'SELECT * FROM model', '-Infinity'::double precision);
SELECT * FROM linked_records_between('SELECT * FROM people', 'SELECT * FROM people WHERE false', 'SELECT * FROM model', '-Infinity'::double precision);
SELECT * FROM linked_records_between('SELECT * FROM people WHERE false', 'SELECT * FROM people', 'SELECT * FROM model', '-Infinity'::double precision);
-- The rows of a model come in any order. Fields are in the order in which they come first.
SELECT id1, id2, pattern, weights FROM linked_records('SELECT * FROM people', 'SELECT * FROM model ORDER BY field, level', 8);
SELECT id1, id2, pattern FROM linked_records('SELECT * FROM people',
    'SELECT m::numeric, u::real, condition::varchar, level::bigint, field, term_frequency, now(), ln(m / u) / ln(2) AS match_weight FROM model ORDER BY field DESC', 8);

-- ---- Against a plain comparison of all pairs ----

CREATE FUNCTION dice(seed text, sides integer) RETURNS integer LANGUAGE SQL IMMUTABLE AS
    $$SELECT abs(('x' || substr(md5(seed), 1, 8))::bit(32)::integer::bigint % sides)::integer$$;
-- Two records of each of 150 people, of which the second one often says something else
CREATE FUNCTION of_person(seed text, record integer, sides integer) RETURNS integer LANGUAGE SQL IMMUTABLE AS
    $$SELECT dice(seed || CASE WHEN record % 2 = 1 AND dice(seed || '?' || record, 4) = 0 THEN 'r' || record ELSE 'p' || record / 2 END, sides)$$;
CREATE TABLE records AS
SELECT i AS id,
       CASE WHEN dice('n' || i, 8) > 0 THEN (ARRAY['smith', 'smyth', 'smithe', 'jones', 'johns', 'müller', 'mueller', 'muller', 'lee', 'li', ''])[1 + of_person('s', i, 11)] END AS surname,
       CASE WHEN dice('o' || i, 9) > 0 THEN (ARRAY['anna', 'hannah', 'anne', 'johann', 'john', 'jon', 'martha', 'marhta'])[1 + of_person('g', i, 8)] END AS given,
       CASE WHEN dice('p' || i, 10) > 0 THEN '1980-01-01'::date + 20 * of_person('b', i, 40) END AS born,
       CASE WHEN dice('q' || i, 7) > 0 THEN (of_person('a', i, 60) - 9) * 1.5 END AS amount,
       CASE WHEN dice('r' || i, 6) > 0 THEN ARRAY[chr(97 + of_person('t', i, 5)), chr(97 + of_person('u', i, 5)), NULL, chr(97 + of_person('v', i, 9))] END AS tags,
       CASE WHEN dice('w' || i, 5) > 0 THEN of_person('c', i, 4) || '-' || of_person('d', i, 3) END AS code,
       of_person('k', i, 6) AS k1, NULLIF(of_person('l', i, 4), 0) AS k2
FROM generate_series(2, 301) AS i;
CREATE TABLE comparisons (comparison text);
INSERT INTO comparisons VALUES
    ('surname: exact, jaro_winkler >= 0.91, levenshtein <= 2'), ('given: exact, jaro >= 0.86, osa <= 1, edit_rate <= 0.3'),
    ('born: exact, within 31, within 100'), ('amount: within 5 percent, within 3'), ('tags: exact, overlap >= 2, overlap >= 1'), ('code: exact');
CREATE VIEW pairs AS
SELECT a.id AS id1, b.id AS id2, a.surname, a.code,
       CASE WHEN a.k1 = b.k1 THEN 1 ELSE 0 END AS same_k1, CASE WHEN a.k2 = b.k2 AND a.code = b.code THEN 1 ELSE 0 END AS same_k2,
       ARRAY[CASE WHEN a.surname IS NULL OR b.surname IS NULL THEN -1 WHEN a.surname = b.surname THEN 3
                  WHEN jaro_winkler_similarity(a.surname, b.surname) >= 0.91 THEN 2 WHEN edit_distance(a.surname, b.surname) <= 2 THEN 1 ELSE 0 END,
             CASE WHEN a.given IS NULL OR b.given IS NULL THEN -1 WHEN a.given = b.given THEN 4 WHEN jaro_similarity(a.given, b.given) >= 0.86 THEN 3
                  WHEN osa_distance(a.given, b.given) <= 1 THEN 2 WHEN edit_rate(a.given, b.given) <= 0.3 THEN 1 ELSE 0 END,
             CASE WHEN a.born IS NULL OR b.born IS NULL THEN -1 WHEN a.born = b.born THEN 3 WHEN abs(a.born - b.born) <= 31 THEN 2 WHEN abs(a.born - b.born) <= 100 THEN 1 ELSE 0 END,
             CASE WHEN a.amount IS NULL OR b.amount IS NULL THEN -1 WHEN abs(a.amount - b.amount) <= 0.05 * greatest(abs(a.amount), abs(b.amount)) THEN 2
                  WHEN abs(a.amount - b.amount) <= 3 THEN 1 ELSE 0 END,
             CASE WHEN a.tags IS NULL OR b.tags IS NULL THEN -1
                  WHEN a.tags @> array_remove(b.tags, NULL) AND b.tags @> array_remove(a.tags, NULL) THEN 3
                  ELSE least(2, (SELECT count(*) FROM (SELECT unnest(a.tags) INTERSECT SELECT unnest(b.tags)) AS c (t) WHERE t IS NOT NULL)) END,
             CASE WHEN a.code IS NULL OR b.code IS NULL THEN -1 WHEN a.code = b.code THEN 1 ELSE 0 END]::integer[] AS pattern
FROM records AS a, records AS b;
CREATE TABLE plain AS SELECT * FROM pairs;
CREATE TABLE fields (place integer, field text);
INSERT INTO fields SELECT row_number() OVER (), split_part(comparison, ':', 1) FROM comparisons;

ANALYZE plain, fields, comparisons;
-- A model whose u is that of the plain counts, and whose m ascends with the level
CREATE FUNCTION counted_model(pairs text, frequent text[]) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('WITH counts AS (
        SELECT p.place, p.level, count(*) AS n FROM plain, unnest(pattern) WITH ORDINALITY AS p (level, place) WHERE %s AND p.level >= 0 GROUP BY p.place, p.level)
    SELECT NULL, NULL::integer, ''prior'', NULL::boolean, 0.01::double precision, 0.99::double precision UNION ALL (
        SELECT f.field, l.level::integer, l.condition, f.field = ANY (%L), 0.9::double precision * l.level / cardinality(conditions) + 0.05,
               coalesce(n, 0.5) / (SELECT sum(c.n) FROM counts AS c WHERE c.place = f.place)::double precision
        FROM (SELECT *, string_to_array(split_part(comparison, '': '', 2), '', '') AS conditions FROM fields JOIN comparisons ON split_part(comparison, '':'', 1) = field) AS f
             CROSS JOIN LATERAL (SELECT cardinality(conditions) + 1 - n, c FROM unnest(conditions) WITH ORDINALITY AS u (c, n) UNION ALL SELECT 0, ''else'') AS l (level, condition)
             LEFT JOIN counts ON (counts.place, counts.level) = (f.place, l.level) ORDER BY f.place, l.level)', pairs, frequent);
END$$;
CREATE TABLE learned AS SELECT * FROM counted_model('id1 < id2', '{surname,code}');
ANALYZE learned;
SELECT count(*) AS levels, count(DISTINCT field) AS fields FROM learned;

-- Pairs and weights: how many there are, and how many differ from the plain ones
CREATE FUNCTION plain_weights(model text, pairs text) RETURNS TABLE (id1 bigint, id2 bigint, weight double precision, pattern integer[]) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('WITH shares AS (
        SELECT surname AS value, ''surname'' AS field, count(*) / sum(count(*)) OVER () AS share FROM records WHERE surname IS NOT NULL GROUP BY surname
        UNION ALL SELECT code, ''code'', count(*) / sum(count(*)) OVER () FROM records WHERE code IS NOT NULL GROUP BY code)
    SELECT p.id1::bigint, p.id2::bigint, sum(CASE WHEN x.field IS NULL OR x.level < x.top OR NOT x.term_frequency THEN ln(x.m / x.u) / ln(2)
                               ELSE ln(x.m / s.share) / ln(2) END), p.pattern
    FROM (SELECT *, max(level) OVER (PARTITION BY field) AS top FROM %I) AS x
    LEFT JOIN fields AS f USING (field)
    JOIN plain AS p ON x.field IS NULL OR x.level = p.pattern[f.place]
    LEFT JOIN shares AS s ON x.term_frequency AND s.field = x.field AND s.value = CASE x.field WHEN ''surname'' THEN p.surname ELSE p.code END
    WHERE %s GROUP BY p.id1, p.id2, p.pattern', model, pairs);
END$$;
CREATE TABLE plain_learned AS SELECT w.*, same_k1, same_k2 FROM plain_weights('learned', 'id1 < id2') AS w JOIN plain AS p USING (id1, id2);
CREATE FUNCTION differences(call text, pairs text, min_weight double precision) RETURNS TABLE (pairs_found bigint, missing bigint, extra bigint, different bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT count(l.id1), count(*) FILTER (WHERE l.id1 IS NULL), count(*) FILTER (WHERE p.id1 IS NULL),
        count(*) FILTER (WHERE abs(l.match_weight - p.weight) > 1e-9 OR l.pattern <> p.pattern)
    FROM (SELECT * FROM %s WHERE weight >= %s) AS p FULL JOIN %s AS l ON (l.id1, l.id2) = (p.id1, p.id2)', pairs, min_weight, call);
END$$;
SELECT w, d.* FROM unnest('{-20.001,-3.001,0.001,4.001,9.001,15.001}'::double precision[]) AS w,
    differences(format('linked_records(''SELECT * FROM records'', ''SELECT * FROM learned'', %s)', w), 'plain_learned', w) AS d;
SELECT w, d.* FROM unnest('{-3.001,4.001}'::double precision[]) AS w,
    differences(format('linked_records(''SELECT * FROM records'', ''SELECT * FROM learned'', %s, keys => ''{k1, "code,k2"}'')', w),
                '(SELECT * FROM plain_learned WHERE same_k1 + same_k2 > 0) AS k', w) AS d;
-- Two tables
CREATE TABLE learned_between AS SELECT * FROM counted_model('id1 % 2 = 0 AND id2 % 2 = 1', '{code}');
CREATE TABLE plain_between AS SELECT w.*, same_k2 FROM plain_weights('learned_between', 'id1 % 2 = 0 AND id2 % 2 = 1') AS w JOIN plain AS p USING (id1, id2);
SELECT w, d.* FROM unnest('{-20.001,0.001,6.001}'::double precision[]) AS w,
    differences(format('linked_records_between(''SELECT * FROM records WHERE id %% 2 = 0'', ''SELECT * FROM records WHERE id %% 2 = 1'', ''SELECT * FROM learned_between'', %s)', w),
                'plain_between', w) AS d;
SELECT d.* FROM differences('linked_records_between(''SELECT * FROM records WHERE id % 2 = 0'', ''SELECT * FROM records WHERE id % 2 = 1'', ''SELECT * FROM learned_between'', 0.001, ''{"k2, code"}'')',
                '(SELECT * FROM plain_between WHERE same_k2 > 0) AS k', 0.001) AS d;
-- The same with threads, and whatever the order in which rows come
SET gputext.cpu_threads = 4;
SELECT count(*) FROM (SELECT * FROM linked_records('SELECT * FROM records', 'SELECT * FROM learned', -3) EXCEPT ALL
    SELECT * FROM linked_records('SELECT * FROM (SELECT * FROM records ORDER BY md5(id::text)) AS r', 'SELECT * FROM learned', -3)) AS d;
-- As many pairs as are allowed, which several threads find
SELECT count(*) FROM linked_records('SELECT * FROM records', 'SELECT * FROM learned', -20.001, max_pairs => 30111);
RESET gputext.cpu_threads;
-- Columns that do not fit into the memory
CREATE TABLE long_codes AS SELECT id, repeat(md5(id::text), 100) AS code FROM generate_series(1, 2000) AS id UNION ALL SELECT 3000, repeat(md5('7'), 100);
SET gputext.host_memory_limit = '1MB';
SELECT id1, id2 FROM linked_records('SELECT * FROM long_codes',
    'SELECT * FROM (VALUES (NULL, NULL, ''prior'', NULL, 0.001, 0.999), (''code'', 1, ''exact'', false, 0.9, 0.0001), (''code'', 0, ''else'', false, 0.1, 0.9999)) AS m (field, level, condition, term_frequency, m, u)');
SELECT count(*) FROM linked_records('SELECT i, i % 2 AS code FROM generate_series(1, 1000) AS i',
    'SELECT * FROM (VALUES (NULL, NULL, ''prior'', NULL, 0.001, 0.999), (''code'', 1, ''exact'', false, 0.9, 0.0001), (''code'', 0, ''else'', false, 0.1, 0.9999)) AS m (field, level, condition, term_frequency, m, u)');
-- Columns share it: of two, each has half, and half of that for its bytes. What does not fit would go to disk.
-- The words of the error are the server's, and differ by release.
\set VERBOSITY sqlstate
SET temp_file_limit = 0;
SELECT count(*) FROM linked_records('SELECT i, repeat(''x'', 300) || i AS a, repeat(''y'', 300) || i AS b FROM generate_series(1, 1000) AS i',
    'SELECT * FROM (VALUES (NULL, NULL, ''prior'', NULL, 0.001, 0.999), (''a'', 1, ''exact'', false, 0.9, 0.0001), (''a'', 0, ''else'', false, 0.1, 0.9999),
     (''b'', 1, ''exact'', false, 0.9, 0.0001), (''b'', 0, ''else'', false, 0.1, 0.9999)) AS m (field, level, condition, term_frequency, m, u)');
\set VERBOSITY default
RESET temp_file_limit;
-- The search for pairs takes memory for each record and each value, too.
SELECT count(*) FROM linked_records('SELECT i, i AS code FROM generate_series(1, 20000) AS i',
    'SELECT * FROM (VALUES (NULL, NULL, ''prior'', NULL, 0.001, 0.999), (''code'', 1, ''exact'', false, 0.9, 0.0001), (''code'', 0, ''else'', false, 0.1, 0.9999)) AS m (field, level, condition, term_frequency, m, u)');
RESET gputext.host_memory_limit;

-- ---- Types ----

-- The level of two values of one field: 1 where they are equal, or with a wider condition 2, and 1 where that holds
CREATE FUNCTION level_of(a text, b text, wider text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    level integer;
BEGIN
    EXECUTE format('SELECT pattern[1] FROM linked_records_between(%L, %L, %L, ''-Infinity''::double precision)', 'SELECT 1, ' || a || ' AS x', 'SELECT 1, ' || b || ' AS x',
                   format('SELECT * FROM (VALUES (NULL, NULL, ''prior'', NULL, 0.5, 0.5), (''x'', %s, ''exact'', false, 0.5, 0.1), (''x'', 0, ''else'', false, 0.1, 0.5) %s) AS m (field, level, condition, term_frequency, m, u)',
                          CASE WHEN wider = '' THEN 1 ELSE 2 END, CASE WHEN wider <> '' THEN format(', (''x'', 1, %L, false, 0.2, 0.2)', wider) END)) INTO level;
    RETURN level;
EXCEPTION WHEN OTHERS THEN
    RAISE INFO '%', SQLERRM;
    RETURN NULL;
END$$;
CREATE DOMAIN surname AS varchar(20);
CREATE DOMAIN surnames AS surname[];
CREATE DOMAIN numbers AS integer[];
CREATE TYPE mood AS ENUM ('well', 'ill');
CREATE TYPE place AS (shelf integer, title text);
CREATE TABLE values_of_types (place integer GENERATED ALWAYS AS IDENTITY, a text, b text, wider text);
INSERT INTO values_of_types (a, b, wider) VALUES
    -- Texts, whatever they are called
    ('''Smith''::text', '''Smith''::varchar', ''), ('''Smith''::text', '''smith''::varchar(9)', 'osa <= 1'), ('''Smith''::char(20)', '''Smith''::text', 'osa <= 1'),
    ('''Smith''::name', '''Smyth''::char(9)', 'osa <= 1'), ('''Smith''::surname', '''Smith''::name', ''), ('''Müller''::text', '''Muller''::text', 'levenshtein <= 1'),
    ('''''::text', '''''::char(3)', 'jaro >= 0.5'), ('''''::text', '''a''::text', 'jaro >= 0.5'), ('NULL::text', '''a''::text', ''),
    ('(SELECT repeat(''abc'', 100000))', '(SELECT repeat(''abc'', 100000) || ''x'')', 'osa <= 1'),
    -- Numbers
    ('1::smallint', '1::bigint', ''), ('1', '1.00', ''), ('1.50', '1.5::numeric(9, 4)', ''), ('7', '9.5::float8', 'within 2.5'), ('7', '9.5::float8', 'within 2'), ('100', '105', 'within 5 percent'),
    ('0.0::float8', '''-0''::float8', 'within 0'), ('''NaN''::float8', '''NaN''::numeric', 'within 1'), ('''NaN''::float8', '1::float8', 'within 1e300'),
    ('''Infinity''::float4', '''Infinity''::float8', 'within 1'), ('''Infinity''::numeric', '''-Infinity''::numeric', 'within 1e300'), ('0', '0', 'within 1 percent'), ('1e400::numeric', '2e400::numeric', ''),
    -- Large integers that are one as double precision are told apart by equality alone.
    ('9007199254740993', '9007199254740992', ''), ('9007199254740993', '9007199254740992', 'within 1'), ('1', '1::float8', ''), ('1', '1::float8', 'within 1'),
    -- Dates
    ('date ''2000-01-31''', 'date ''2000-03-01''', 'within 30'), ('date ''2000-01-30''', 'date ''2000-03-01''', 'within 30'), ('date ''1999-02-03''', 'date ''1999-03-02''', 'day_month_exchanged'), ('date ''1999-02-03''', 'date ''1999-03-03''', 'day_month_exchanged'),
    ('date ''1969-12-01''', 'date ''1969-01-12''', 'day_month_exchanged'), ('date ''infinity''', 'date ''infinity''', 'within 1'),
    ('date ''infinity''', 'date ''-infinity''', 'within 1e300'), ('date ''-infinity''', 'date ''2000-01-01''', 'within 1e10'), ('date ''2000-01-01''', '1', 'within 1'), ('date ''2000-01-01''', 'timestamp ''2000-01-01''', ''),
    -- Arrays are sets.
    ('ARRAY[1, 2, 2]', 'ARRAY[2, 1]', ''), ('ARRAY[1, 2, NULL]', 'ARRAY[[2], [1]]::bigint[]', ''), ('ARRAY[1, 2]', 'ARRAY[2, 3]::numeric[]', 'overlap >= 1'), ('ARRAY[1, 2]', 'ARRAY[2, 3]', 'overlap >= 2'),
    ('ARRAY[1, 2.50]', 'ARRAY[2.5, 1.0]', ''), ('ARRAY[0.5::real, -0]', 'ARRAY[0::float8, 0.5]', ''), ('''{}''::text[]', '''{NULL}''::varchar[]', 'overlap >= 1'),
    ('ARRAY[''a'', ''b'']', 'ARRAY[''b ''::char(4), ''a'']', ''), ('ARRAY[''a'', ''b'']::surname[]', 'ARRAY[''b'', ''c'']::surnames', 'overlap >= 1'), ('ARRAY[true]', 'ARRAY[true]', 'overlap >= 1'), ('ARRAY[ARRAY[1]::numbers, ARRAY[2]]', 'ARRAY[ARRAY[2]::numbers]', 'overlap >= 1'), ('ARRAY[ARRAY[1]::numbers]', 'true', ''),
    ('ARRAY[1]', 'ARRAY[1::float8]', 'overlap >= 1'), ('ARRAY[1]', '1', ''), ('ARRAY[''a'']', '''a''::text', ''),
    -- All others
    ('true', 'true', ''), ('true', 'false', ''), ('md5(''a'')::uuid', 'upper(md5(''a''))::uuid', ''), ('''well''::mood', '''well''::mood', ''), ('''well''::mood', '''ill''::mood', ''),
    ('''well''::mood', '''well''::text', ''), ('''well''::mood', 'true', ''), ('timestamp ''2000-01-01 12:00''', 'timestamp ''2000-01-01 12:00:00.000001''', ''), ('timestamptz ''2000-01-01 12:00+00''', 'timestamptz ''2000-01-01 13:00+01''', ''),
    ('''{"a": 1, "b": 2}''::jsonb', '''{"b":2,"a":1}''::jsonb', ''), ('''\x00''::bytea', '''\x0000''::bytea', ''), ('ROW(1, ''a'')::place', 'ROW(1, ''a'')::place', ''), ('inet ''10.0.0.1''', 'inet ''10.0.0.1/32''', ''),
    ('interval ''1 hour''', 'interval ''60 min''', ''), ('true', 'true', 'osa <= 1'), ('1', '1', 'jaro >= 0.9'), ('1', '1', 'day_month_exchanged'), ('''a''::text', '''a''::text', 'within 2'), ('ARRAY[1]', 'ARRAY[1]', 'within 2'), ('1', '1', 'overlap >= 1');
SELECT a, b, wider, level_of(a, b, wider) AS level FROM values_of_types ORDER BY place;
-- Long arrays
SELECT level_of('ARRAY(SELECT generate_series(1, 3000))', 'ARRAY(SELECT generate_series(' || b || '))', '') AS level, b FROM (VALUES ('3000, 1, -1'), ('1, 2999')) AS v (b);
-- Keys are equal if the values are, also numbers that are compared by a distance.
SELECT id1, id2, pattern FROM linked_records('SELECT * FROM (VALUES (1, 9007199254740993), (2, 9007199254740992), (3, 9007199254740993), (4, NULL), (5, NULL)) AS r (id, x)',
    'SELECT * FROM (VALUES (NULL, NULL, ''prior'', NULL, 0.5, 0.5), (''x'', 1, ''within 1'', false, 0.5, 0.1), (''x'', 0, ''else'', false, 0.1, 0.5)) AS m (field, level, condition, term_frequency, m, u)', keys => '{x}');
-- 32 fields of 15 conditions
SELECT count(*), max(array_length(pattern, 1)) FROM linked_records((SELECT 'SELECT i AS id, ' || string_agg('i % 3 AS f' || f, ', ') || ' FROM generate_series(1, 20) AS i' FROM generate_series(1, 32) AS f),
    'SELECT NULL::text AS field, NULL::integer AS level, ''prior'' AS condition, NULL::boolean AS term_frequency, 0.1 AS m, 0.9 AS u
     UNION ALL SELECT ''f'' || f, l, CASE WHEN l = 0 THEN ''else'' ELSE ''within '' || (15 - l) / 10.0 END, false, (l + 1) / 200.0, (16 - l) / 200.0 FROM generate_series(1, 32) AS f, generate_series(0, 15) AS l');

-- ---- Errors ----

SELECT * FROM linked_records(NULL, 'SELECT * FROM model');
SELECT * FROM linked_records('SELECT * FROM people', NULL);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', NULL::double precision);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', 'NaN'::double precision);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', 'Infinity'::double precision);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', max_pairs => 0);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', max_pairs => 4294967295);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', max_pairs => 9);
SELECT count(*) FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', max_pairs => 10);
SELECT * FROM linked_records('SELECT i AS id, 1 AS x FROM generate_series(1, 3000) AS i', 'SELECT NULL AS field, NULL::integer AS level, ''prior'' AS condition, NULL::boolean AS term_frequency, 0.5 AS m, 0.5 AS u
    UNION ALL SELECT ''x'', 1 - i, (ARRAY[''exact'', ''else''])[i + 1], false, 0.5, 0.1 FROM generate_series(0, 1) AS i', max_pairs => 1);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', keys => NULL);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', keys => '{NULL}');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', keys => '{""}');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', keys => '{"city,"}');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', keys => '{"city born"}');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', keys => ARRAY['"city']);
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', keys => '{street}');
-- Records
SELECT * FROM linked_records('SELECT id, surname, born FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records('SELECT id FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records('SELECT city, surname, born FROM people', 'SELECT * FROM model', id_type => NULL::text);
SELECT * FROM linked_records('SELECT *, city FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records('SELECT NULLIF(id, 4), surname, born, city FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records('SELECT id::text, surname, born, city FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records_between('SELECT id::text, surname, born, city FROM people', 'SELECT * FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records_between('SELECT * FROM people', 'SELECT id, surname, born FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records_between('SELECT * FROM people', 'SELECT id, surname, born::timestamp, city FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records('SELECT * FROM nowhere', 'SELECT * FROM model');
SELECT * FROM linked_records('people', 'SELECT * FROM model');
SELECT * FROM linked_records('SELECT id, born AS surname, born, city FROM people', 'SELECT * FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model', id_type => 'text');
-- The model
SELECT * FROM linked_records('SELECT * FROM people', 'model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT *, m AS u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level::text, condition, term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, condition, 0 AS term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model WHERE field IS NOT NULL');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model UNION ALL SELECT * FROM model WHERE field IS NULL');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model WHERE field IS NULL');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model WHERE false');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, condition, term_frequency, CASE WHEN field IS NULL THEN 0.25 ELSE m END AS m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, condition, term_frequency, CASE WHEN level = 1 THEN 1.5 ELSE m END AS m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, condition, term_frequency, m, CASE WHEN field = ''born'' AND level = 2 THEN 0 ELSE u END AS u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, condition, term_frequency, NULLIF(m, 0.0625) AS m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, condition, term_frequency, CASE WHEN level = 1 THEN ''NaN'' ELSE m END AS m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT *, CASE WHEN field = ''city'' THEN 1 END AS match_weight FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model WHERE (field, level) IS DISTINCT FROM (''born'', 1)');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model WHERE level IS DISTINCT FROM 0');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT * FROM model UNION ALL SELECT * FROM model WHERE (field, level) = (''born'', 1)');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, NULLIF(level, 2) AS level, condition, term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level - 1 AS level, condition, term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, replace(condition, ''else'', ''exact'') AS condition, term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, NULLIF(condition, ''exact'') AS condition, term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, replace(condition, ''0.8'', ''80'') AS condition, term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, replace(condition, ''within 31'', ''soundex'') AS condition, term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, replace(condition, ''within 31'', ''exact'') AS condition, term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, condition, level = 1 AS term_frequency, m, u FROM model');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT field, level, replace(condition, ''exact'', ''within 1'') AS condition, field = ''born'' AS term_frequency, m, u FROM model WHERE field IS DISTINCT FROM ''surname''');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT m.* FROM model AS m, generate_series(1, 100) WHERE field IS NOT NULL');
SELECT * FROM linked_records('SELECT * FROM people', 'SELECT NULL AS field, NULL::integer AS level, ''prior'' AS condition, NULL::boolean AS term_frequency, 0.5 AS m, 0.5 AS u
    UNION ALL SELECT ''f'' || i, l, (ARRAY[''else'', ''exact''])[l + 1], false, 0.5, 0.5 FROM generate_series(1, 33) AS i, generate_series(0, 1) AS l');

SET client_min_messages = warning;
DROP SCHEMA linked_records CASCADE;
