-- The nearest rows of all rows of a join, or of one vector, found at once: gputext.plan_nearest
SET client_min_messages = warning;
LOAD 'gputext';
SET gputext.device = cpu;
SET extra_float_digits = 1;
\getenv directory PG_ABS_SRCDIR
\set compare :directory '/tests/plans/compare.sql'
\i :compare

CREATE TABLE base (id int PRIMARY KEY, kind text, e real[], d double precision[]);
INSERT INTO base SELECT i, 'kind ' || i % 3, ARRAY[sin(i), cos(i * 3), sin(i * 7)]::real[],
    ARRAY[sin(i * 2), cos(i), i % 5]::double precision[] FROM generate_series(1, 300) i;
CREATE TABLE uploads (id int PRIMARY KEY, name text, e real[], d double precision[]);
INSERT INTO uploads SELECT i, 'upload ' || i, ARRAY[sin(i * 5), cos(i), sin(i + 1)]::real[],
    ARRAY[sin(i), 1, i]::double precision[] FROM generate_series(1, 20) i;
ANALYZE base, uploads;

-- All operators, on both types
SELECT * FROM compare('SELECT u.id, b.id, b.distance FROM uploads u, LATERAL (SELECT id, e <=> u.e AS distance FROM base ORDER BY e <=> u.e LIMIT 10) b');
SELECT * FROM compare('SELECT u.id, b.id, b.distance FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM base ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, kind, u.e <#> e AS distance FROM base ORDER BY u.e <#> e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <+> u.e AS distance FROM base ORDER BY e <+> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, d <=> u.d AS distance FROM base ORDER BY d <=> u.d LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, d <-> u.d AS distance FROM base ORDER BY d <-> u.d LIMIT 3) b');

-- What the subquery shows, its conditions, conditions of the join, OFFSET, LEFT JOIN
SELECT * FROM compare('SELECT u.name, b.* FROM uploads u, LATERAL (SELECT upper(kind), base.id * 2 + u.id AS n, 1 - (e <=> u.e) AS similarity, u.name || kind AS both, 7 AS seven FROM base WHERE kind <> ''kind 1'' ORDER BY e <=> u.e LIMIT 4 OFFSET 2) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u JOIN LATERAL (SELECT id, e <-> u.e AS distance FROM base ORDER BY e <-> u.e LIMIT 5) b ON b.distance < 0.3 AND b.id <> u.id WHERE b.id > 3');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u LEFT JOIN LATERAL (SELECT id, e <-> u.e AS distance FROM base WHERE id < 0 ORDER BY e <-> u.e LIMIT 5) b ON true');
SELECT * FROM compare('SELECT u.id, b FROM uploads u LEFT JOIN LATERAL (SELECT base, e <-> u.e AS distance FROM base WHERE id IN (SELECT id * 3 FROM uploads) ORDER BY e <-> u.e LIMIT 5) b ON true');
SELECT * FROM compare('SELECT u.id, v.name, b.id FROM uploads u JOIN uploads v ON v.id = u.id + 1, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) b');
SELECT * FROM compare('SELECT b.id, count(*) FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 20) b GROUP BY b.id');
SELECT * FROM compare('SELECT u.id, (SELECT string_agg(b.id::text, '','' ORDER BY b.id) FROM (VALUES (u.e)) q (e), LATERAL (SELECT id FROM base ORDER BY e <-> q.e LIMIT 2) b) FROM uploads u');

-- Rows that only the ordinary query answers: no vector, no direction, few items
CREATE TABLE odd (id int, e real[]);
INSERT INTO odd VALUES (1, '{0,0,0}'), (2, NULL), (3, '{1,0,0}'), (4, '{0,1,0}');
SELECT * FROM compare('SELECT u.id, b.* FROM odd u, LATERAL (SELECT id, e <=> u.e AS distance FROM odd ORDER BY e <=> u.e LIMIT 4) b');
SELECT * FROM compare('SELECT u.id, b.* FROM odd u, LATERAL (SELECT id, e <=> u.e AS distance FROM base WHERE id < 3 ORDER BY e <=> u.e LIMIT 4) b WHERE u.e IS NOT NULL AND u.id <> 1');
SELECT * FROM compare('SELECT u.id, b.* FROM odd u, LATERAL (SELECT id, e <-> u.e AS distance FROM base WHERE id < 0 ORDER BY e <-> u.e LIMIT 4) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e FETCH FIRST 3 ROWS WITH TIES) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 0) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT NULL::int) b');

-- Rows without a vector first, or behind all others
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM odd ORDER BY e <-> u.e NULLS FIRST LIMIT 2) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM odd ORDER BY e <-> u.e NULLS LAST LIMIT 2) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM odd ORDER BY e <-> u.e LIMIT 4) b');

-- Keys: equalities between both sides
CREATE TABLE keyed (id int, small smallint, big bigint, word varchar(20), day date, name text COLLATE "C", e real[]);
INSERT INTO keyed SELECT i, nullif(i % 4, 3), i % 7, 'Kind ' || i % 3, date '2026-01-01' + i % 2, i % 3, CASE WHEN i % 50 > 0 THEN e END
    FROM base, LATERAL (SELECT base.id) b (i);
INSERT INTO keyed VALUES (301, 9, 9, 'lonely', '2027-01-01', 'x', '{1,2,3}'), (302, 10, 10, 'none', '2027-01-02', 'y', NULL), (303, 11, 11, 'zero', '2027-01-03', 'z', '{0,0,0}');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, small, e <-> u.e AS distance FROM keyed k WHERE k.small = u.small ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <=> u.e AS distance FROM keyed k WHERE u.big = k.small ORDER BY e <=> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE k.id > 20 AND k.word = u.word AND (k.day = u.day AND k.small = u.big - 1) ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u LEFT JOIN LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE lower(k.word) = lower(u.word) ORDER BY e <-> u.e LIMIT 60) b ON true WHERE u.id > 250');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE (k.small, k.big) = (u.id, u.id) ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT k.id, k.e <-> u.e AS distance FROM keyed k JOIN base USING (id) WHERE base.kind = ''kind '' || u.id % 4 ORDER BY k.e <-> u.e LIMIT 3 OFFSET 1) b');
-- Beside a key nothing may fail: without it, it would be computed for rows that the key leaves out
CREATE TABLE guarded (id int, kind text, vector text, price numeric, n int, e real[]);
INSERT INTO guarded SELECT id, kind, e::text, id % 7, id, e FROM base;
INSERT INTO guarded VALUES (0, 'word', 'no vector', 0, 0, '{1,2,3}');
CREATE VIEW guarded_vectors AS SELECT id, kind, vector::real[] AS e FROM guarded;
SELECT kind AS kind_of, e AS e_of, id AS number INTO wanted FROM base WHERE id <= 6;
SELECT * FROM compare('SELECT w.number, g.* FROM wanted w, LATERAL (SELECT id FROM guarded g WHERE g.kind = w.kind_of ORDER BY g.vector::real[] <-> w.e_of LIMIT 3) g');
SELECT * FROM compare('SELECT w.number, g.* FROM wanted w, LATERAL (SELECT id FROM guarded_vectors g WHERE g.kind = w.kind_of ORDER BY g.e <-> w.e_of LIMIT 3) g');
SELECT * FROM compare('SELECT w.number, g.* FROM wanted w, LATERAL (SELECT id, 1 / n AS part FROM guarded g WHERE g.kind = w.kind_of ORDER BY g.e <-> w.e_of LIMIT 3) g');
SELECT * FROM compare('SELECT w.number, g.* FROM wanted w, LATERAL (SELECT id FROM guarded g WHERE g.kind = w.kind_of AND 5 / n < 1 ORDER BY g.e <-> w.e_of LIMIT 3) g');
SELECT * FROM compare('SELECT w.number, g.* FROM wanted w, LATERAL (SELECT id FROM guarded g WHERE g.kind = w.kind_of AND w.number % 3 = 15 / n ORDER BY g.e <-> w.e_of LIMIT 3) g');
-- What cannot fail, and an expression that is the only condition, which is computed for all rows in any case
SELECT * FROM compare('SELECT w.number, g.* FROM wanted w, LATERAL (SELECT id, coalesce(vector, kind) AS text FROM guarded g WHERE g.kind = w.kind_of AND price < 5.5 AND n IN (SELECT id FROM base WHERE id > 9) AND n::bigint IN (1, 20, 30, 40) IS NOT NULL ORDER BY g.e <-> w.e_of LIMIT 3) g');
SELECT * FROM compare('SELECT w.number, g.* FROM wanted w, LATERAL (SELECT id FROM guarded g WHERE n % 5 = w.number ORDER BY g.e <-> w.e_of LIMIT 3) g');
DROP TABLE guarded, wanted CASCADE;
-- Conditions that are no such equalities are left to the planner
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE k.small = u.small OR k.big = u.big ORDER BY e <-> u.e LIMIT 3) b WHERE u.id < 30');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE k.small = u.small AND k.id <> u.id ORDER BY e <-> u.e LIMIT 3) b WHERE u.id < 30');
CREATE COLLATION gputext_any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE k.word = (''kIND '' || u.id % 4) COLLATE gputext_any_case ORDER BY e <-> u.e LIMIT 3) b WHERE u.id < 30');
DROP COLLATION gputext_any_case;

-- Other shapes are left to the planner
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base WHERE base.id > u.id ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e DESC LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e DESC NULLS LAST LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e, id LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT DISTINCT ON (e <-> u.e) id FROM base ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base TABLESAMPLE BERNOULLI (50) REPEATABLE (1) ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('WITH c AS MATERIALIZED (SELECT * FROM base) SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM c ORDER BY e <-> u.e LIMIT 3) b');

-- One vector: statements that are sorted by the distance from it
SELECT * FROM compare_in_order('SELECT id, e <=> ''{1,2,3}'' AS distance FROM base WHERE id > 3 ORDER BY e <=> ''{1,2,3}'' LIMIT 10');
SELECT * FROM compare_in_order('SELECT id, ''{1,2,3}'' <-> e AS distance FROM base ORDER BY ''{1,2,3}'' <-> e LIMIT 10 OFFSET 3');
SELECT * FROM compare_in_order('SELECT d <#> ARRAY[1,2,3]::double precision[] AS distance, base FROM base ORDER BY distance LIMIT 10');
SELECT * FROM compare_in_order('SELECT *, ctid, upper(kind), 1 - (e <+> ''{1,2,3}'') AS near FROM base ORDER BY e <+> ''{1,2,3}'' FETCH FIRST 5 ROWS ONLY');
SELECT * FROM compare_in_order('SELECT FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 4');
SELECT * FROM compare_in_order('SELECT 1 AS one, b.id, u.name FROM base b JOIN uploads u USING (id) WHERE b.kind = ''kind 1'' ORDER BY b.e <-> ''{1,2,3}'' LIMIT 400');
SELECT * FROM compare_in_order('SELECT id FROM base WHERE false ORDER BY e <-> ''{1,2,3}'' LIMIT 4');
SELECT * FROM compare_in_order('SELECT id FROM base WHERE id IN (SELECT id * 2 FROM uploads) ORDER BY e <-> ''{1,2,3}'' LIMIT 4');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ARRAY[length(current_setting(''extra_float_digits'')), 2, 3]::real[] LIMIT 4');
-- Expensive columns are computed for the rows that are found alone
CREATE FUNCTION slow_name(id int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RAISE WARNING 'name of %', id;
    RETURN 'row ' || id;
END
$$;
SELECT array_to_string(rows_of('force', 'SELECT slow_name(id), 1 - (e <=> ''{1,2,3}'') > 0.99 AS near FROM base ORDER BY e <=> ''{1,2,3}'' LIMIT 2'), ' ');
DROP FUNCTION slow_name;
-- Casts of arrays, shown and sorted by; other expressions that look into arrays
SELECT * FROM compare_in_order('SELECT e::float8[] <-> ''{1,2,3}'' AS distance FROM base ORDER BY e::float8[] <-> ''{1,2,3}'' LIMIT 4');
SELECT * FROM compare_in_order('SELECT n.* FROM (SELECT d::real[] AS shown, 2 = ANY (d) AS two FROM base ORDER BY d::real[] <-> ''{1,2,3}'' LIMIT 4) n');
SELECT * FROM compare_in_order('SELECT n.* FROM (SELECT b.e::float8[] <-> ''{1,2,3}'' AS distance, u.d::real[] FROM base b JOIN uploads u USING (id) ORDER BY b.e::float8[] <-> ''{1,2,3}'' LIMIT 4) n');
SELECT * FROM compare('SELECT u.id, n.* FROM uploads u, LATERAL (SELECT id, e::float8[] AS shown, u.e::float8[] FROM base ORDER BY e::float8[] <-> u.e::float8[] LIMIT 2) n');
-- No items, no vectors, and no distances that are numbers
SELECT * FROM compare_in_order('SELECT id FROM base WHERE id < 0 ORDER BY e <-> ''{1,2,3}'' LIMIT 4');
SELECT * FROM compare_in_order('SELECT e <=> ''{1,2,3}'' AS distance FROM odd ORDER BY distance LIMIT 4');
SELECT * FROM compare_in_order('SELECT e <-> NULL AS distance FROM base ORDER BY distance LIMIT 4');
SELECT * FROM compare_in_order('SELECT id FROM odd ORDER BY e <-> ''{1,2,3}'' NULLS FIRST LIMIT 2');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' FETCH FIRST 4 ROWS WITH TIES');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 0');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT NULL');
-- Rows that do not fit into memory
SET gputext.host_memory_limit = '1MB';
SELECT * FROM compare_in_order('SELECT long FROM (SELECT e, repeat(kind, 1000) AS long FROM base) b ORDER BY e <-> ''{1,2,3}'' LIMIT 200');
SELECT * FROM compare_in_order('SELECT long FROM (SELECT e, repeat(kind, 1000) AS long FROM base) b ORDER BY e <-> ''{1,2,3}'' LIMIT 2');
SELECT array_to_string(rows_of('force', 'EXPLAIN ANALYZE SELECT long FROM (SELECT e, repeat(kind, 1000) AS long FROM base) b ORDER BY e <-> ''{1,2,3}'' LIMIT ' || n), '') LIKE '%Ordinary Queries: 1%' AS ordinary
    FROM (VALUES (200), (2)) v (n);
RESET gputext.host_memory_limit;
-- In FROM, and of each other
SELECT * FROM compare_in_order('SELECT n.distance, n.id FROM (SELECT id, e <-> ''{1,2,3}'' AS distance FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 9) n WHERE n.id > 50 ORDER BY n.distance DESC');
SELECT * FROM compare_in_order('WITH n AS (SELECT id, e FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 30) SELECT n.id FROM n ORDER BY n.e <=> ''{3,1,2}'' LIMIT 5');
SELECT * FROM compare_in_order('SELECT u.id, n.id AS item FROM uploads u JOIN (SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 30) n ON n.id % 20 = u.id ORDER BY u.id, n.id');
SELECT * FROM compare_in_order('SELECT n FROM (SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 3) n');
SELECT * FROM compare_in_order('SELECT id FROM uploads WHERE id * 15 IN (SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 100) ORDER BY id');
SELECT * FROM compare_in_order('SELECT b.id FROM (SELECT u.id, u.e FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 1) n) b ORDER BY b.e <-> ''{1,2,3}'' LIMIT 5');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, name, u.id + id AS both FROM base WHERE kind = ''kind '' || u.id % 3 ORDER BY e <-> ''{1,2,3}'' LIMIT 2) b (item, name)');
-- Set operations: a branch is not the whole
SELECT * FROM compare_in_order('(SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2) UNION ALL SELECT id FROM base WHERE id > 298');
SELECT * FROM compare_in_order('SELECT id FROM base WHERE id > 298 UNION ALL (SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2)');
SELECT * FROM compare_in_order('(SELECT id, e <-> ''{1,2,3}'' AS d FROM base ORDER BY d LIMIT 2) UNION ALL (SELECT id, e <-> ''{1,2,3}'' FROM uploads ORDER BY 2 LIMIT 2) ORDER BY d LIMIT 3');
SELECT * FROM compare_in_order('SELECT count(*) FROM ((SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2) UNION ALL SELECT 42 ORDER BY 1) n');
SELECT * FROM compare_in_order('SELECT n.* FROM ((SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2) UNION ALL (SELECT id FROM base ORDER BY e <=> ''{1,2,3}'' LIMIT 2)) n');
SELECT * FROM compare_in_order('WITH n AS MATERIALIZED ((SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2) UNION ALL SELECT 42) SELECT * FROM n');
SELECT * FROM compare_in_order('WITH n AS ((SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2) UNION ALL SELECT 42) SELECT * FROM n WHERE id > 1');
SELECT * FROM compare_in_order('SELECT id FROM uploads WHERE id IN ((SELECT id % 20 FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2) UNION ALL SELECT 5) ORDER BY id');
SELECT * FROM compare_in_order('SELECT ARRAY((SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2) UNION ALL SELECT 5)');
SELECT * FROM compare_in_order('(SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 2) UNION SELECT id FROM base WHERE id > 298 ORDER BY 1');
SELECT * FROM compare_in_order('(SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 20) EXCEPT ALL SELECT id FROM base WHERE id < 100 ORDER BY 1');
SELECT * FROM compare_in_order('(SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 20) INTERSECT SELECT id FROM base WHERE id < 100 ORDER BY 1');
SELECT * FROM compare('SELECT u.id, n.* FROM uploads u, LATERAL ((SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) UNION ALL (SELECT id FROM base ORDER BY e <=> u.e LIMIT 1) UNION ALL SELECT u.id) n');
SELECT * FROM compare('SELECT u.id, n.id FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) n UNION ALL SELECT 0, 0');
SELECT * FROM compare('WITH RECURSIVE r (step, id, e) AS (SELECT 1, id, e FROM uploads UNION ALL SELECT step + 1, n.id, n.e FROM r, LATERAL (SELECT id, e FROM base ORDER BY e <=> r.e LIMIT 1 OFFSET 1) n WHERE step < 4) SELECT step, id FROM r');
-- What a LEFT JOIN computes of the subquery is null where that has no rows
SELECT * FROM compare('SELECT u.id, n.* FROM uploads u LEFT JOIN LATERAL (SELECT m.id, 7 AS seven FROM (SELECT id FROM base WHERE id < 0 ORDER BY e <-> u.e LIMIT 2) m) n ON true');
SELECT * FROM compare('SELECT u.id, n.* FROM uploads u LEFT JOIN LATERAL (SELECT coalesce(m.id, u.id) AS id FROM (SELECT id FROM base WHERE id < 0 ORDER BY e <-> u.e LIMIT 2) m) n ON true');
SELECT * FROM compare('SELECT u.id, n.* FROM uploads u LEFT JOIN (SELECT m.id, coalesce(m.id, 7) AS seven FROM (SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 200) m) n ON n.id = u.id');
-- Other shapes are left to the planner
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' DESC LIMIT 3');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' DESC NULLS LAST LIMIT 3');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ''{1,2,3}'', id LIMIT 3');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ''{1,2,3}''');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> (SELECT e FROM base WHERE id = 7) LIMIT 3');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> d::real[] LIMIT 3');
SELECT * FROM compare_in_order('SELECT id FROM base WHERE random() < 2 ORDER BY e <-> ''{1,2,3}'' LIMIT 3');
SELECT * FROM compare_in_order('SELECT id FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 3 FOR UPDATE');
SELECT * FROM compare_in_order('SELECT DISTINCT e <-> ''{1,2,3}'' AS distance FROM base ORDER BY distance LIMIT 3');
SELECT * FROM compare_in_order('SELECT (SELECT id FROM base ORDER BY e <-> u.e LIMIT 1) FROM uploads u ORDER BY u.id');

-- Errors are the ordinary ones
SET gputext.plan_nearest = force;
INSERT INTO odd VALUES (5, '{1,2}');
SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM odd ORDER BY e <-> u.e LIMIT 3) b;
SELECT u.id, b.* FROM odd u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 3) b WHERE u.id = 5;
SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT -1) b;
SELECT id FROM base ORDER BY e <-> '{1,2}' LIMIT 3;
SELECT id FROM odd ORDER BY e <-> '{1,2}' LIMIT 3;
SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 3 OFFSET -1;
SELECT id FROM base ORDER BY e <-> '{1,2,Infinity}' LIMIT 3;
UPDATE odd SET e = '{1,2,-Infinity}' WHERE id = 5;
SELECT id FROM odd WHERE id > 2 ORDER BY e <-> '{1,2,3}' LIMIT 3;
SELECT u.id, b.* FROM odd u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 3) b WHERE u.id = 5;
UPDATE odd SET e = '{1,2}' WHERE id = 5;

-- What a vector is unpacked to takes memory for its row alone: 8 kB for each of these
CREATE TABLE packed AS SELECT i AS id, array_fill(1::double precision, ARRAY[1000]) || (i % 10)::double precision AS d FROM generate_series(1, 10000) AS i;
CREATE FUNCTION peak_megabytes() RETURNS bigint LANGUAGE sql VOLATILE AS
$$SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+)')::bigint / 1024$$;
SET gputext.host_memory_limit = '8MB';
SELECT count(*) FROM packed p, LATERAL (SELECT id FROM packed WHERE id < 20 ORDER BY d <-> p.d LIMIT 1) n WHERE p.id < 100;
SELECT peak_megabytes() AS before \gset
SELECT count(*) FROM packed p, LATERAL (SELECT id FROM packed WHERE id < 20 ORDER BY d <-> p.d LIMIT 1) n;
SELECT peak_megabytes() - :before < 40 AS stays_small;
RESET gputext.host_memory_limit;
DROP FUNCTION peak_megabytes;
DROP TABLE packed;

-- EXPLAIN
EXPLAIN (COSTS OFF) SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM base WHERE id > 5 ORDER BY e <-> u.e LIMIT 3) b;
-- As JSON, without the properties that other releases add
CREATE FUNCTION explained(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || statement INTO plan;
    plan := plan->0->'Plan';
    RETURN QUERY SELECT format('%s: %s', key, value) FROM json_each_text(plan) WHERE key NOT IN ('Item Plan', 'Plans')
        AND key ~ '^(Node|Custom|Distance|Limit|Device|Items|.*Queries)';
    RETURN NEXT format('rows: %s', round((plan->>'Actual Rows')::numeric));
    RETURN NEXT format('items: %s of %s', round((plan->'Item Plan'->'Plan'->>'Actual Rows')::numeric), plan->'Item Plan'->'Plan'->>'Alias');
    RETURN NEXT format('outer rows: %s of %s', round((plan->'Plans'->0->>'Actual Rows')::numeric), plan->'Plans'->0->>'Alias');
END
$$;
SELECT explained('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM base ORDER BY e <-> u.e LIMIT 3) b');
DROP FUNCTION explained;
EXPLAIN (COSTS OFF) SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE id > 5 AND k.word = u.word AND k.small = u.big ORDER BY e <-> u.e LIMIT 3) b;
SELECT * FROM plan_of($$SELECT id, e <=> '{1,2,3}' AS distance FROM base WHERE id > 3 ORDER BY e <=> '{1,2,3}' LIMIT 10$$) AS "QUERY PLAN";

-- Prepared statements: parameters, plans that are kept, tables that change
SET plan_cache_mode = force_generic_plan;
PREPARE nearest (int, int) AS
    SELECT u.id, array_agg(b.id) FROM uploads u, LATERAL (SELECT id FROM base WHERE id < $1 ORDER BY e <-> u.e LIMIT $2) b WHERE u.id < 3 GROUP BY u.id ORDER BY u.id;
EXECUTE nearest(100, 2);
EXECUTE nearest(5, 3);
ALTER TABLE base ADD COLUMN more int;
EXECUTE nearest(100, 2);
DELETE FROM base WHERE id IN (1, 2, 3);
EXECUTE nearest(5, 3);
PREPARE nearest_of_one (real[], int, int) AS SELECT id, e <-> $1 AS distance FROM base WHERE id > $2 ORDER BY e <-> $1 LIMIT $3;
SELECT * FROM plan_of($$EXECUTE nearest_of_one('{1,2,3}', 10, 2)$$) AS "QUERY PLAN";
EXECUTE nearest_of_one('{1,2,3}', 10, 2);
EXECUTE nearest_of_one('{3,2,1}', 200, 1);
EXECUTE nearest_of_one('{3,2,1,0}', 200, 1);
EXECUTE nearest_of_one(NULL, 299, 1);
CREATE INDEX base_kind ON base (kind);
ALTER TABLE base DROP COLUMN more;
DELETE FROM base WHERE id = 46;
EXECUTE nearest_of_one('{1,2,3}', 10, 2);
-- A plan that is kept follows changes of what the tables, views and functions behind its nodes are
CREATE FUNCTION shown(id int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'row ' || id $$;
CREATE VIEW chosen AS SELECT id, e FROM base WHERE id > 10;
PREPARE chosen_rows AS SELECT u.id, b.* FROM uploads u, LATERAL (SELECT shown(id) FROM chosen ORDER BY e <-> u.e LIMIT 1) b WHERE u.id = 1;
EXPLAIN (COSTS OFF) EXECUTE chosen_rows;
EXECUTE chosen_rows;
CREATE OR REPLACE FUNCTION shown(id int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'item ' || id $$;
EXECUTE chosen_rows;
CREATE OR REPLACE VIEW chosen AS SELECT id, e FROM base WHERE id > 200;
EXECUTE chosen_rows;
ALTER TABLE base RENAME e TO embedding;
EXECUTE chosen_rows;
ALTER TABLE base RENAME embedding TO e;
DROP FUNCTION shown;
\set VERBOSITY sqlstate
EXECUTE chosen_rows;
\set VERBOSITY default
DEALLOCATE chosen_rows;
DROP VIEW chosen;
SET gputext.plan_nearest = off;
EXECUTE nearest_of_one('{1,2,3}', 10, 2);
SET gputext.plan_nearest = force;
RESET plan_cache_mode;
CREATE FUNCTION nearest_id(vector real[], number int) RETURNS SETOF int LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT id FROM base ORDER BY e <-> vector LIMIT number;
END
$$;
SELECT array_agg(n) FROM nearest_id('{1,2,3}', 3) n;
SELECT array_agg(n) FROM nearest_id('{3,2,1}', 4) n;
DROP FUNCTION nearest_id;
-- A field of a record that has no value yet is an error only where it is asked for
CREATE FUNCTION nearest_but(known boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    other record;
BEGIN
    IF known THEN
        SELECT 1 AS id INTO other;
    END IF;
    RETURN count(*) FROM uploads u, LATERAL (SELECT id FROM base WHERE kind <> kind AND id <> other.id ORDER BY e <-> u.e LIMIT 3) n;
END
$$;
SELECT nearest_but(true), nearest_but(false);
DROP FUNCTION nearest_but;

-- The columns of a statement keep their names, types and origins
SELECT id AS "Item", kind, e <-> '{1,2,3}' AS d, kind || 1, id::numeric(7, 2) FROM base ORDER BY e <-> '{1,2,3}' LIMIT 1 \gdesc
SELECT id AS "Item", kind, kind || 1, id::numeric(7, 2) FROM base ORDER BY e <-> '{1,2,3}' LIMIT 1;
CREATE TABLE made AS SELECT id AS "Item", kind::varchar(10) COLLATE "C" AS kind, id::numeric(7, 2) AS n FROM base ORDER BY e <-> '{1,2,3}' LIMIT 3;
SELECT attname, format_type(atttypid, atttypmod), attcollation::regcollation FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0;
INSERT INTO made SELECT id, 'new', 1 FROM base ORDER BY e <-> '{3,2,1}' LIMIT 2;
SELECT * FROM plan_of($$INSERT INTO made SELECT id, 'new', 1 FROM base ORDER BY e <-> '{3,2,1}' LIMIT 2$$) AS "QUERY PLAN";
SELECT * FROM made;
COPY (SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 2) TO STDOUT;
DROP TABLE made;

-- Cursors, row-level security, views, partitions, rescans
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT u.id, b.id FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) b WHERE u.id < 4;
FETCH 3 FROM c;
SAVEPOINT s;
FETCH 2 FROM c;
ROLLBACK TO s;
FETCH BACKWARD 4 FROM c;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 4;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
SAVEPOINT s;
DELETE FROM base WHERE CURRENT OF c;
ROLLBACK TO s;
DECLARE forward NO SCROLL CURSOR FOR SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 4;
FETCH 3 FROM forward;
FETCH BACKWARD 1 FROM forward;
ROLLBACK TO s;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 4;
FETCH 1 FROM held;
COMMIT;
FETCH 2 FROM held;
FETCH ABSOLUTE 1 FROM held;
CLOSE held;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM base WHERE id % 2 = 0;
CREATE TABLE parts (id int, e real[]) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE parts_2 (e real[], id int);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (100) TO (1000);
INSERT INTO parts SELECT id, e FROM base;
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM barrier ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM parts ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT w.n, x.* FROM generate_series(1, 3) w (n), LATERAL (SELECT u.id, b.id AS item FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) b WHERE u.id < w.n OFFSET 0) x');
SELECT * FROM compare_in_order('SELECT id, e <-> ''{1,2,3}'' AS distance FROM barrier ORDER BY e <-> ''{1,2,3}'' LIMIT 3');
SELECT * FROM compare_in_order('SELECT id, e <-> ''{1,2,3}'' AS distance FROM parts ORDER BY e <-> ''{1,2,3}'' LIMIT 3');
CREATE VIEW nearest_rows AS SELECT id, e <-> '{1,2,3}' AS distance FROM base ORDER BY e <-> '{1,2,3}' LIMIT 3;
SELECT * FROM compare_in_order('SELECT * FROM nearest_rows');
SELECT * FROM compare_in_order('SELECT w.n, x.* FROM generate_series(1, 3) w (n), LATERAL (SELECT r.id FROM nearest_rows r WHERE r.id > w.n OFFSET 0) x ORDER BY w.n, x.id');
CREATE ROLE gputext_reader;
GRANT SELECT ON uploads, base TO gputext_reader;
ALTER TABLE base ENABLE ROW LEVEL SECURITY;
CREATE POLICY first_rows ON base TO gputext_reader USING (id < 50);
SET ROLE gputext_reader;
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM base ORDER BY e <-> u.e LIMIT 60) b WHERE u.id = 1');
SELECT * FROM compare_in_order('SELECT id, e <-> ''{1,2,3}'' AS distance FROM base ORDER BY e <-> ''{1,2,3}'' LIMIT 60');
RESET ROLE;
SET plan_cache_mode = force_generic_plan;
SET gputext.plan_nearest = force;
-- A plan that is kept locks all that its nodes read: the ordinary plan infers from both keys that it needs one partition
PREPARE nearest_parts AS SELECT u.id, p.id FROM uploads u, LATERAL
    (SELECT p.id FROM parts p JOIN base b ON b.id = 150 WHERE p.id = u.id * 15 AND b.id = u.id * 15 ORDER BY p.e <-> u.e LIMIT 1) p WHERE u.id = 10;
EXECUTE nearest_parts;
BEGIN;
EXECUTE nearest_parts;
SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('parts_1'::regclass, 'parts_2'::regclass) ORDER BY 1;
COMMIT;
DEALLOCATE nearest_parts;
-- A plan that is kept is of one role
PREPARE nearest_count AS SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 1000;
CREATE TABLE counts AS EXECUTE nearest_count;
SET ROLE gputext_reader;
SELECT * FROM plan_of('EXECUTE nearest_count') AS "QUERY PLAN";
RESET ROLE;
SELECT * FROM plan_of('EXECUTE nearest_count') AS "QUERY PLAN";
SELECT count(*) > 100 AS all_rows FROM counts;
DROP TABLE counts;
RESET plan_cache_mode;
REVOKE SELECT ON base FROM gputext_reader;
SET ROLE gputext_reader;
SELECT u.id, b.id FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 3) b;
SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 3;
EXPLAIN SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 3;
RESET ROLE;

-- Locks of rows, and changes of rows, are left to the planner
EXPLAIN (COSTS OFF) SELECT u.id FROM uploads u, LATERAL (SELECT id FROM barrier ORDER BY e <-> u.e LIMIT 1) b FOR UPDATE OF u;
EXPLAIN (COSTS OFF) SELECT u.id FROM uploads u JOIN (SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 3) n USING (id) FOR UPDATE OF u;
SELECT count(*) AS nodes FROM plan_of('SELECT v.id FROM uploads v JOIN (SELECT u.id FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 1) b OFFSET 0) n USING (id) FOR UPDATE OF v') AS line WHERE line LIKE '%GputextNearest%';
EXPLAIN (COSTS OFF) UPDATE uploads u SET name = 'near' FROM (SELECT id FROM base ORDER BY e <-> '{1,2,3}' LIMIT 3) n WHERE n.id = u.id;
-- So are rows of a trigger
CREATE FUNCTION show_nearest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING 'nearest: %', ARRAY(SELECT id FROM (SELECT id FROM new_rows ORDER BY e <-> '{1,2,3}' LIMIT 2) n);
    RETURN NULL;
END
$$;
CREATE TRIGGER shows AFTER INSERT ON odd REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION show_nearest();
INSERT INTO odd VALUES (7, '{1,2,2}'), (8, '{3,2,1}'), (9, '{1,2,3}');
DROP TRIGGER shows ON odd;
DROP FUNCTION show_nearest;
-- A cursor of PL/pgSQL
DO $$
DECLARE
    forward CURSOR (vector real[]) FOR SELECT id FROM base ORDER BY e <-> vector LIMIT 5;
    scrolling SCROLL CURSOR (vector real[]) FOR SELECT id FROM base ORDER BY e <-> vector LIMIT 5;
    found int[] := '{}';
    number int;
BEGIN
    FOR r IN forward ('{1,2,3}') LOOP
        found := found || r.id;
    END LOOP;
    OPEN scrolling ('{1,2,3}');
    FETCH LAST FROM scrolling INTO number;
    found := found || number;
    FETCH PRIOR FROM scrolling INTO number;
    RAISE WARNING 'nearest: %, %', found, number;
END
$$;
INSERT INTO odd SELECT b.id, NULL FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) b WHERE u.id < 3;
SELECT count(*) FROM odd;

RESET gputext.plan_nearest;
-- Of one vector: where a condition leaves few of the rows that are read, workers read them, as many as are worth it.
SET min_parallel_table_scan_size = 0;
SET cpu_tuple_cost = 100;
SET gputext.read_workers = 3;
SET gputext.plan_nearest = on;
SELECT * FROM plan_of('SELECT id FROM base WHERE right(kind, 1) = ''1'' ORDER BY e <-> ''{1,0,0}'' LIMIT 2') AS "QUERY PLAN";
SELECT * FROM compare_in_order('SELECT id, kind, e <-> ''{1,0,0}'' AS distance FROM base WHERE right(kind, 1) = ''1'' ORDER BY e <-> ''{1,0,0}'' LIMIT 40 OFFSET 3');
SELECT * FROM compare_in_order('SELECT id, e <=> ''{1,0}'' AS distance FROM base WHERE id < 0 ORDER BY e <=> ''{1,0}'' LIMIT 4');
-- The ordinary plan answers where there are few items that have a distance, and raises its errors.
SELECT * FROM compare('SELECT count(*) FROM (SELECT id FROM base WHERE right(kind, 1) = ''1'' ORDER BY nullif(e, e) <-> ''{1,0,0}'' LIMIT 3) n');
\set VERBOSITY sqlstate
SELECT id FROM base WHERE right(kind, 1) = '1' ORDER BY e <-> '{1,0}' LIMIT 2;
\set VERBOSITY default
SET max_parallel_workers_per_gather = 0;
SELECT * FROM plan_of('SELECT id FROM base WHERE right(kind, 1) = ''1'' ORDER BY e <-> ''{1,0,0}'' LIMIT 2') AS "QUERY PLAN";
RESET max_parallel_workers_per_gather;
RESET gputext.read_workers;
RESET cpu_tuple_cost;
RESET min_parallel_table_scan_size;
RESET gputext.plan_nearest;
DROP TABLE base, uploads, odd, keyed, parts CASCADE;
DROP ROLE gputext_reader;
DROP FUNCTION compare, compare_in_order, plan_of, rows_of;
