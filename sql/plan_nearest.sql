-- The nearest rows of all rows of a join, found at once: gputext.plan_nearest
SET client_min_messages = warning;
LOAD 'gputext';
SET gputext.device = cpu;
SET extra_float_digits = 1;

CREATE TABLE base (id int PRIMARY KEY, kind text, e real[], d double precision[]);
INSERT INTO base SELECT i, 'kind ' || i % 3, ARRAY[sin(i), cos(i * 3), sin(i * 7)]::real[],
    ARRAY[sin(i * 2), cos(i), i % 5]::double precision[] FROM generate_series(1, 300) i;
CREATE TABLE uploads (id int PRIMARY KEY, name text, e real[], d double precision[]);
INSERT INTO uploads SELECT i, 'upload ' || i, ARRAY[sin(i * 5), cos(i), sin(i + 1)]::real[],
    ARRAY[sin(i), 1, i]::double precision[] FROM generate_series(1, 20) i;
ANALYZE base, uploads;

-- Runs a statement with the setting off, on and forced. Says whether the rows are the same, how many there are, and whether the
-- forced plan has the node.
CREATE FUNCTION compare(statement text) RETURNS TABLE (same boolean, rows bigint, planned boolean) LANGUAGE plpgsql AS $$
DECLARE
    off text[];
    other text[];
    line text;
BEGIN
    same := true;
    PERFORM set_config('gputext.plan_nearest', 'off', true);
    EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || statement || ') r' INTO off;
    PERFORM set_config('gputext.plan_nearest', 'on', true);
    EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || statement || ') r' INTO other;
    same := same AND off IS NOT DISTINCT FROM other;
    PERFORM set_config('gputext.plan_nearest', 'force', true);
    EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || statement || ') r' INTO other;
    same := same AND off IS NOT DISTINCT FROM other;
    rows := coalesce(cardinality(off), 0);
    planned := false;
    FOR line IN EXECUTE 'EXPLAIN ' || statement LOOP
        planned := planned OR line LIKE '%GputextNearest%';
    END LOOP;
    PERFORM set_config('gputext.plan_nearest', 'off', true);
    RETURN NEXT;
END
$$;

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
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 0) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT NULL::int) b');

-- Keys: equalities between both sides
CREATE TABLE keyed (id int, small smallint, big bigint, word varchar(20), day date, name text COLLATE "C", e real[]);
INSERT INTO keyed SELECT i, nullif(i % 4, 3), i % 7, 'Kind ' || i % 3, date '2026-01-01' + i % 2, i % 3, CASE WHEN i % 50 > 0 THEN e END
    FROM base, LATERAL (SELECT base.id) b (i);
INSERT INTO keyed VALUES (301, 9, 9, 'lonely', '2027-01-01', 'x', '{1,2,3}'), (302, 10, 10, 'none', '2027-01-02', 'y', NULL), (303, 11, 11, 'zero', '2027-01-03', 'z', '{0,0,0}');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, small, e <-> u.e AS distance FROM keyed k WHERE k.small = u.small ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <=> u.e AS distance FROM keyed k WHERE u.big = k.small ORDER BY e <=> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE k.id > 20 AND k.word = u.word AND (k.day = u.day AND k.small + 1 = u.big) ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u LEFT JOIN LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE lower(k.word) = lower(u.word) AND k.name = u.name ORDER BY e <-> u.e LIMIT 60) b ON true WHERE u.id > 250');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE (k.small, k.big) = (u.id, u.id) ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT k.id, k.e <-> u.e AS distance FROM keyed k JOIN base USING (id) WHERE base.kind = ''kind '' || u.id % 4 ORDER BY k.e <-> u.e LIMIT 3 OFFSET 1) b');
-- Conditions that are no such equalities are left to the planner
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE k.small = u.small OR k.big = u.big ORDER BY e <-> u.e LIMIT 3) b WHERE u.id < 30');
SELECT * FROM compare('SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE k.small = u.small AND k.id <> u.id ORDER BY e <-> u.e LIMIT 3) b WHERE u.id < 30');
CREATE COLLATION gputext_any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE k.word = (''kIND '' || u.id % 4) COLLATE gputext_any_case ORDER BY e <-> u.e LIMIT 3) b WHERE u.id < 30');
DROP COLLATION gputext_any_case;

-- Other shapes are left to the planner
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base WHERE base.id > u.id ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e DESC LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e, id LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT DISTINCT ON (e <-> u.e) id FROM base ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('WITH c AS MATERIALIZED (SELECT * FROM base) SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM c ORDER BY e <-> u.e LIMIT 3) b');

-- Errors are the ordinary ones
SET gputext.plan_nearest = force;
INSERT INTO odd VALUES (5, '{1,2}');
SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM odd ORDER BY e <-> u.e LIMIT 3) b;
SELECT u.id, b.* FROM odd u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 3) b WHERE u.id = 5;
SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT -1) b;

-- EXPLAIN
EXPLAIN (COSTS OFF) SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM base WHERE id > 5 ORDER BY e <-> u.e LIMIT 3) b;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON) SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM base ORDER BY e <-> u.e LIMIT 3) b;
EXPLAIN (COSTS OFF) SELECT u.id, b.* FROM keyed u, LATERAL (SELECT id, e <-> u.e AS distance FROM keyed k WHERE id > 5 AND k.word = u.word AND k.small = u.big ORDER BY e <-> u.e LIMIT 3) b;

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
RESET plan_cache_mode;

-- Cursors, row-level security, views, partitions, rescans
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT u.id, b.id FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) b WHERE u.id < 4;
FETCH 3 FROM c;
SAVEPOINT s;
FETCH 2 FROM c;
ROLLBACK TO s;
FETCH BACKWARD 4 FROM c;
COMMIT;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM base WHERE id % 2 = 0;
CREATE TABLE parts (id int, e real[]) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE parts_2 (e real[], id int);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (100) TO (1000);
INSERT INTO parts SELECT id, e FROM base;
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM barrier ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM parts ORDER BY e <-> u.e LIMIT 3) b');
SELECT * FROM compare('SELECT w.n, x.* FROM generate_series(1, 3) w (n), LATERAL (SELECT u.id, b.id AS item FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) b WHERE u.id < w.n OFFSET 0) x');
CREATE ROLE gputext_reader;
GRANT SELECT ON uploads, base TO gputext_reader;
ALTER TABLE base ENABLE ROW LEVEL SECURITY;
CREATE POLICY first_rows ON base TO gputext_reader USING (id < 50);
SET ROLE gputext_reader;
SELECT * FROM compare('SELECT u.id, b.* FROM uploads u, LATERAL (SELECT id, e <-> u.e AS distance FROM base ORDER BY e <-> u.e LIMIT 60) b WHERE u.id = 1');
RESET ROLE;
REVOKE SELECT ON base FROM gputext_reader;
SET ROLE gputext_reader;
SELECT u.id, b.id FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 3) b;
RESET ROLE;

-- Locks of rows, and changes of rows, are left to the planner
EXPLAIN (COSTS OFF) SELECT u.id FROM uploads u, LATERAL (SELECT id FROM barrier ORDER BY e <-> u.e LIMIT 1) b FOR UPDATE OF u;
INSERT INTO odd SELECT b.id, NULL FROM uploads u, LATERAL (SELECT id FROM base ORDER BY e <-> u.e LIMIT 2) b WHERE u.id < 3;
SELECT count(*) FROM odd;

RESET gputext.plan_nearest;
DROP TABLE base, uploads, odd, keyed, parts CASCADE;
DROP ROLE gputext_reader;
DROP FUNCTION compare;
