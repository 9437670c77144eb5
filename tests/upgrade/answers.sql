-- The answers to the calls of a release (VERSION/calls.sql)

-- The rows of each answer, and a digest of them in the order of their texts; for an error its SQLSTATE and message.
CREATE FUNCTION answers() RETURNS TABLE (name text, rows bigint, digest text) LANGUAGE plpgsql AS $function$
DECLARE
    call record;
BEGIN
    FOR call IN SELECT * FROM calls ORDER BY calls.name LOOP
        name := call.name;
        BEGIN
            EXECUTE format($$SELECT count(*), md5(string_agg(r::text, E'\n' ORDER BY r::text COLLATE "C")) FROM (%s) AS r$$, call.query)
            INTO rows, digest;
        EXCEPTION WHEN OTHERS THEN
            rows := NULL;
            digest := SQLSTATE || ': ' || SQLERRM;
        END;
        RETURN NEXT;
    END LOOP;
END $function$;

-- The SQLSTATE of a statement that fails
CREATE FUNCTION error_of(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE query;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;

-- Functions of the extension that none of the calls names, but for those that SQL cannot call, and those that only
-- other functions call: their names begin with gputext_
CREATE VIEW uncalled AS
SELECT p.oid::regprocedure AS function
FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'gputext'
WHERE NOT proargtypes::oid[] && ARRAY['internal'::regtype, 'cstring'::regtype]::oid[] AND prorettype <> 'cstring'::regtype
  AND proname NOT LIKE 'gputext\_%' AND NOT EXISTS (SELECT FROM calls WHERE query ~ ('\m' || proname || '\M'));
