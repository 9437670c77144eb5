-- What tests of gputext.plan_nearest compare statements with

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

-- As compare(), of rows in their order, at the top of a statement, where a subquery would be another shape.
CREATE FUNCTION rows_of(setting text, statement text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    found text[] := '{}';
    r record;
BEGIN
    PERFORM set_config('gputext.plan_nearest', setting, true);
    FOR r IN EXECUTE statement LOOP
        found := found || r::text;
    END LOOP;
    PERFORM set_config('gputext.plan_nearest', 'off', true);
    RETURN found;
END
$$;
CREATE FUNCTION compare_in_order(statement text) RETURNS TABLE (same boolean, rows bigint, planned boolean) LANGUAGE plpgsql AS $$
DECLARE
    off text[] := rows_of('off', statement);
BEGIN
    same := rows_of('on', statement) = off AND rows_of('force', statement) = off;
    rows := cardinality(off);
    planned := array_to_string(rows_of('force', 'EXPLAIN ' || statement), '') LIKE '%GputextNearest%';
    RETURN NEXT;
END
$$;

-- The lines of EXPLAIN. PostgreSQL 19 also says what a Result stands for.
CREATE FUNCTION plan_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
        CONTINUE WHEN line ~ '^ *Replaces: ';
        RETURN NEXT line;
    END LOOP;
END $$;
