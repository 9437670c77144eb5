-- What a plan of gputext.plan_nearest executes, and as whom: rights are those of the ordinary plan, and so is what is computed
SET client_min_messages = warning;
LOAD 'gputext';
SET gputext.device = cpu;
SET search_path = public, pg_temp;

CREATE ROLE gputext_reader;
CREATE ROLE gputext_keeper;
GRANT gputext_reader, gputext_keeper TO CURRENT_USER;
CREATE TABLE items (id int, kind int, word text, e real[]);
INSERT INTO items SELECT i, i % 3, CASE WHEN i = 99 THEN 'ninety-nine' ELSE i::text END, ARRAY[i, 1]::real[] FROM generate_series(1, 100) i;
CREATE TABLE queries (id int, kind int, e real[], t text);
INSERT INTO queries SELECT i, i % 3, ARRAY[i, 1]::real[], '{' || i || ',1}' FROM generate_series(1, 5) i;
CREATE TABLE nobody (LIKE queries);
GRANT SELECT ON queries, nobody TO gputext_reader;
ANALYZE items, queries, nobody;

-- How a statement ends, with the setting off, on and forced: its rows, or its error; and whether the forced plan has the node.
CREATE FUNCTION outcome(setting text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found text[] := '{}';
    r record;
BEGIN
    PERFORM set_config('gputext.plan_nearest', setting, true);
    FOR r IN EXECUTE statement LOOP
        found := found || r::text;
    END LOOP;
    PERFORM set_config('gputext.plan_nearest', 'off', true);
    RETURN array_to_string(ARRAY(SELECT f FROM unnest(found) f ORDER BY 1), ' ');
EXCEPTION WHEN OTHERS THEN
    RETURN SQLERRM;
END
$$;
CREATE FUNCTION outcomes(statement text) RETURNS TABLE (same boolean, planned boolean, "off" text) LANGUAGE plpgsql AS $$
BEGIN
    "off" := outcome('off', statement);
    same := outcome('on', statement) = "off" AND outcome('force', statement) = "off";
    planned := outcome('force', 'EXPLAIN ' || statement) LIKE '%GputextNearest%';
    RETURN NEXT;
END
$$;

-- Tables: whether there are outer rows or not
SET ROLE gputext_reader;
SELECT * FROM outcomes('SELECT q.id, n.id FROM queries q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT q.id, n.id FROM nobody q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT id FROM items ORDER BY e <-> ''{1,1}'' LIMIT 1');
SELECT * FROM outcomes('SELECT q.id, n.id FROM nobody q, LATERAL (SELECT id FROM queries WHERE id IN (SELECT id FROM items) ORDER BY e <-> q.e LIMIT 1) n');
RESET ROLE;
-- Columns
GRANT SELECT (id, e) ON items TO gputext_reader;
SET ROLE gputext_reader;
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT q.id, n.id FROM nobody q, LATERAL (SELECT id, word FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT q.id, n.id FROM nobody q, LATERAL (SELECT id FROM items i WHERE i.kind = q.kind ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT id, kind FROM items ORDER BY e <-> ''{1,1}'' LIMIT 1');
RESET ROLE;
-- Views have the rights of their owners, or of who calls
REVOKE SELECT (id, e) ON items FROM gputext_reader;
GRANT SELECT ON items TO gputext_keeper;
CREATE VIEW kept AS SELECT * FROM items;
CREATE VIEW kept_barrier WITH (security_barrier) AS SELECT * FROM items WHERE kind = 1;
CREATE VIEW invoked WITH (security_invoker) AS SELECT * FROM items;
ALTER VIEW kept OWNER TO gputext_keeper;
ALTER VIEW kept_barrier OWNER TO gputext_keeper;
GRANT SELECT ON kept, kept_barrier, invoked TO gputext_reader;
SET ROLE gputext_reader;
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id FROM kept ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id FROM kept_barrier ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id FROM invoked ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT id FROM kept ORDER BY e <-> ''{1,1}'' LIMIT 1');
SELECT * FROM outcomes('SELECT id FROM invoked ORDER BY e <-> ''{1,1}'' LIMIT 1');
RESET ROLE;
REVOKE SELECT ON items FROM gputext_keeper;
SET ROLE gputext_reader;
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id FROM kept ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM nobody q, LATERAL (SELECT id FROM kept_barrier ORDER BY e <-> q.e LIMIT 1) n');
RESET ROLE;
GRANT SELECT ON items TO gputext_keeper, gputext_reader;
-- Rows that another role may see are not those of a plan that is kept
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_kind ON items TO gputext_reader USING (kind = 1);
CREATE POLICY another ON items TO gputext_keeper USING (kind = 2);
GRANT SELECT ON queries TO gputext_keeper;
SET plan_cache_mode = force_generic_plan;
SET gputext.plan_nearest = force;
PREPARE nearest AS SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n WHERE q.id = 3;
EXECUTE nearest;
SET ROLE gputext_reader;
EXECUTE nearest;
SET ROLE gputext_keeper;
EXECUTE nearest;
RESET ROLE;
REVOKE SELECT ON items FROM gputext_reader;
SET ROLE gputext_reader;
EXECUTE nearest;
RESET ROLE;
GRANT SELECT ON items TO gputext_reader;
RESET plan_cache_mode;
ALTER TABLE items DISABLE ROW LEVEL SECURITY;
DROP POLICY one_kind ON items;
DROP POLICY another ON items;
-- A cursor that somebody else opened: rights are checked when it is
CREATE FUNCTION opened(cursor refcursor) RETURNS refcursor LANGUAGE plpgsql SECURITY DEFINER SET gputext.plan_nearest = force AS $$
BEGIN
    OPEN cursor FOR SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n;
    RETURN cursor;
END
$$;
REVOKE SELECT ON items FROM gputext_reader;
REVOKE EXECUTE ON FUNCTION euclidean_distance(real[], real[]) FROM public;
SET ROLE gputext_reader;
BEGIN;
SELECT opened('c');
FETCH 2 FROM c;
COMMIT;
RESET ROLE;
GRANT SELECT ON items TO gputext_reader;

-- Functions: that of the operator, and of whatever is computed
SET ROLE gputext_reader;
SELECT * FROM outcomes('SELECT q.id, n.id FROM queries q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT q.id, n.id FROM nobody q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT id FROM items ORDER BY e <-> ''{1,1}'' LIMIT 1');
RESET ROLE;
GRANT EXECUTE ON FUNCTION euclidean_distance(real[], real[]) TO public;
CREATE FUNCTION doubled(vector real[]) RETURNS real[] LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN vector || vector; END';
CREATE FUNCTION shown(number int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN number; END';
REVOKE EXECUTE ON FUNCTION doubled, shown FROM public;
SET ROLE gputext_reader;
SELECT * FROM outcomes('SELECT n.id FROM nobody q, LATERAL (SELECT id FROM items ORDER BY doubled(e) <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT n.id FROM nobody q, LATERAL (SELECT id FROM items ORDER BY e <-> doubled(q.e) LIMIT 1) n');
SELECT * FROM outcomes('SELECT n.* FROM nobody q, LATERAL (SELECT shown(id) FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT n.* FROM nobody q, LATERAL (SELECT shown(q.id) FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT n.id FROM nobody q, LATERAL (SELECT id FROM items i WHERE i.kind = shown(q.kind) ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT n.id FROM nobody q, LATERAL (SELECT id FROM items WHERE shown(id) > 3 ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT n.id FROM nobody q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT shown((SELECT 3))) n');
SELECT * FROM outcomes('SELECT shown(id) FROM items ORDER BY e <-> ''{1,1}'' LIMIT 1');
-- A column that nobody uses is not computed, and nobody is asked for the right to
SELECT * FROM outcomes('SELECT n.id AS item FROM queries q, LATERAL (SELECT id, shown(id) FROM items ORDER BY e <-> q.e LIMIT 1) n');
RESET ROLE;

-- The vector of an outer row is computed where there are items to compare it with
INSERT INTO queries VALUES (6, 77, NULL, 'no vector');
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q LEFT JOIN LATERAL (SELECT id FROM items WHERE items.kind = q.kind ORDER BY e <-> q.t::real[] LIMIT 1) n ON true');
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q LEFT JOIN LATERAL (SELECT id FROM items WHERE id < 0 ORDER BY e <-> q.t::real[] LIMIT 1) n ON true');
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q LEFT JOIN LATERAL (SELECT id FROM items ORDER BY e <-> q.t::real[] LIMIT 1) n ON true');
INSERT INTO items VALUES (200, 77, 'no vector', NULL);
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q LEFT JOIN LATERAL (SELECT id FROM items WHERE items.kind = q.kind ORDER BY e <-> q.t::real[] LIMIT 1) n ON true');
DELETE FROM items WHERE id = 200;
SELECT * FROM outcomes('SELECT id FROM items WHERE id < 0 ORDER BY e <-> replace(current_setting(''gputext.device''), ''c'', ''x'')::real[] LIMIT 1');
SELECT * FROM outcomes('SELECT id FROM items WHERE id < 3 ORDER BY e <-> replace(current_setting(''gputext.device''), ''c'', ''x'')::real[] LIMIT 1');
-- The key of an outer row the same
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q LEFT JOIN LATERAL (SELECT id FROM items WHERE items.id < 0 AND items.kind = q.t::int ORDER BY e <-> q.e LIMIT 1) n ON true');
DELETE FROM queries WHERE id = 6;

-- What is shown is computed for the rows that are found alone
CREATE FUNCTION number_of(word text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN word::int; END';
SELECT * FROM outcomes('SELECT q.id, n.* FROM queries q, LATERAL (SELECT number_of(word) FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT q.id, n.* FROM queries q, LATERAL (SELECT number_of(word) + q.id, 1 - (e <-> q.e) FROM items ORDER BY e <-> q.e LIMIT 1) n WHERE q.id = 2');
SELECT * FROM outcomes('SELECT number_of(word) FROM items ORDER BY e <-> ''{1,1}'' LIMIT 2');
SELECT * FROM outcomes('SELECT number_of(word) FROM items ORDER BY e <-> ''{99,1}'' LIMIT 2');
-- A column that nobody uses is not
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id, word::int, 1 / (id - q.id) FROM items ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT n.id FROM (SELECT id, word::int FROM items ORDER BY e <-> ''{99,1}'' LIMIT 1) n');
SELECT * FROM outcomes('SELECT n.id FROM (SELECT id, (SELECT max(word::int) FROM items) FROM items ORDER BY e <-> ''{99,1}'' LIMIT 1) n');
-- One that a view computes, and is expensive, is left to the planner, which computes it for these rows
CREATE VIEW numbered AS SELECT id, word, number_of(word) AS number, e FROM items;
SELECT * FROM outcomes('SELECT q.id, n.* FROM queries q, LATERAL (SELECT number FROM numbered ORDER BY e <-> q.e LIMIT 1) n');
SELECT * FROM outcomes('SELECT number + 1 AS next FROM numbered ORDER BY e <-> ''{1,1}'' LIMIT 2');
SELECT * FROM outcomes('SELECT q.id, n.* FROM queries q, LATERAL (SELECT id AS item, number_of(word) FROM numbered ORDER BY e <-> q.e LIMIT 1) n');
-- A condition on the rows that are found is looked at once for each
SELECT * FROM outcomes('SELECT q.id, n.id AS item FROM queries q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n WHERE random() * n.id >= 0');

-- Outer rows without a vector are answered by one plan, which begins once: its first part is computed once for all of them
CREATE FUNCTION least_id() RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
    RAISE WARNING 'begins';
    RETURN 3;
END
$$;
UPDATE queries SET e = NULL WHERE id > 1;
SET gputext.plan_nearest = force;
SELECT q.id, count(*) FROM queries q, LATERAL (SELECT id FROM items WHERE id >= (SELECT least_id()) ORDER BY e <-> q.e LIMIT 2) n GROUP BY q.id ORDER BY q.id;
SELECT q.id, n.* FROM queries q, LATERAL (SELECT i.word, q.t, 7 AS seven, 'unused' AS u FROM items i WHERE i.id = q.id OR i.id = 50 ORDER BY e <-> q.e LIMIT 2) n (word, t, seven) ORDER BY q.id, word;
SELECT q.id, n.* FROM queries q, LATERAL (SELECT i.kind, q.t, 7 AS seven, 'unused' AS u FROM items i WHERE i.kind = q.kind ORDER BY e <-> q.e LIMIT 1) n (kind, t, seven) ORDER BY q.id;
-- Items that nobody reads, in the plan that is shown
SELECT outcome('force', 'EXPLAIN ANALYZE SELECT q.id, n.id FROM nobody q, LATERAL (SELECT id FROM items ORDER BY e <-> q.e LIMIT 1) n')
    LIKE '%Seq Scan on items%(never executed)%' AS shown;

RESET gputext.plan_nearest;
DROP TABLE items, queries, nobody CASCADE;
DROP FUNCTION outcome, outcomes, opened, doubled, shown, number_of, least_id;
DROP ROLE gputext_reader, gputext_keeper;
