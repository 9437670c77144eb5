-- Hostile twins of all that the SQL of :script names: functions, operators, types and relations of pg_catalog's names that would be
-- preferred to those of pg_catalog. They are derived from the catalogue and from the words of the script, so that new SQL has twins, too.
-- A twin that is run says so by a warning. What this file makes has a search_path of its own, as the twins are for this session, too.

CREATE SCHEMA checks;
GRANT USAGE ON SCHEMA checks TO PUBLIC;
CREATE TABLE checks.words AS
SELECT DISTINCT w[1] AS word FROM regexp_matches(:'script', '\m[a-z_][a-z0-9_]*\M', 'g') AS w;
-- IN, BETWEEN, LIKE, CASE, NULLIF, USING and IS DISTINCT FROM have operators, too.
CREATE TABLE checks.signs AS
SELECT DISTINCT s[1] AS sign FROM regexp_matches(:'script', '[-+*/<>=~!@#%^&|]+', 'g') AS s
UNION SELECT unnest('{=,<>,<,<=,>,>=,~~,!~~,~~*,!~~*}'::text[]);

CREATE FUNCTION checks.spy(twin text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE WARNING 'the twin % is run by a %', twin, (SELECT CASE WHEN rolsuper THEN 'superuser' ELSE 'role without rights' END FROM pg_roles WHERE rolname = current_user);
    RETURN NULL;
END $$;

-- The types that arguments may have of a twin that would be called in place of a function or an operator for `types`: these types; all
-- types of elements in place of polymorphic ones; and types that convert to them, in one place, or in all that have the type.
CREATE FUNCTION checks.preferred(types oid[]) RETURNS SETOF oid[] LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH elements AS (
        SELECT oid AS element, typarray AS elements, oid = ANY ('{text,name,oid}'::regtype[]) AS common
        FROM pg_type WHERE oid = ANY ('{text,name,varchar,int4,int8,float4,float8,oid,bool,regclass,regtype,json,jsonb,timestamptz}'::regtype[])
    ), polymorphic AS (
        SELECT '{anyelement,anynonarray,anycompatible,anycompatiblenonarray}'::regtype[]::oid[] AS one, '{anyarray,anycompatiblearray}'::regtype[]::oid[] AS several
    ), exact AS (
        SELECT types AS found FROM polymorphic WHERE NOT types && (one || several || '"any"'::regtype::oid)
        UNION
        SELECT ARRAY(SELECT CASE WHEN t = ANY (one) THEN element WHEN t = ANY (several) THEN elements ELSE t END
                     FROM unnest(types) WITH ORDINALITY AS u (t, n) ORDER BY n)
        FROM elements, polymorphic WHERE types && (one || several)
        UNION
        SELECT types[:cardinality(types) - 1] || more    -- in place of "any", such as format()'s
        FROM (SELECT ARRAY[element] AS more FROM elements
              UNION ALL SELECT ARRAY[a.element, b.element] FROM elements AS a, elements AS b WHERE a.common OR b.common
              UNION ALL SELECT ARRAY[a.element, b.element, c.element] FROM elements AS a, elements AS b, elements AS c
              WHERE a.common AND b.common AND c.common) AS m
        WHERE types[cardinality(types)] = '"any"'::regtype
    ), casts AS (
        SELECT castsource AS source, casttarget AS target FROM pg_cast JOIN pg_type AS t ON t.oid = castsource
        WHERE castcontext = 'i' AND castsource <> casttarget AND typtype = 'b' AND typnamespace = 'pg_catalog'::regnamespace
    )
    SELECT found FROM exact
    UNION SELECT found[:n - 1] || source || found[n + 1:]
          FROM exact, unnest(found) WITH ORDINALITY AS u (t, n), casts WHERE t = target AND NOT '"any"'::regtype = ANY (types)
    UNION SELECT array_replace(found, target, source) FROM exact, unnest(found) AS u (t), casts WHERE t = target AND NOT '"any"'::regtype = ANY (types)
$$;

-- PL/pgSQL has no functions of other pseudo-types.
CREATE FUNCTION checks.can_be_written(types oid[]) RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM pg_type WHERE oid = ANY (types) AND typtype = 'p' AND typname <> 'record')
$$;

CREATE FUNCTION checks.listed(types oid[]) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(string_agg(format_type(t, NULL), ', ' ORDER BY n), '') FROM unnest(types) WITH ORDINALITY AS u (t, n)
$$;

CREATE FUNCTION checks.function_twin(schema text, name text, types oid[], result oid, is_set boolean) RETURNS text LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE FUNCTION %I.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS %L', schema, name, checks.listed(types), CASE WHEN is_set THEN 'SETOF' END,
                  CASE WHEN checks.can_be_written(ARRAY[result]) THEN format_type(result, NULL) ELSE 'text' END,
                  format('BEGIN PERFORM checks.spy(%L); RETURN%s; END', format('%I.%I(%s)', schema, name, checks.listed(types)),
                         CASE WHEN NOT is_set THEN ' NULL' END))
$$;

CREATE TABLE checks.function_twins AS
SELECT DISTINCT ON (name, types) proname AS name, types, prorettype AS result, proretset AS is_set
FROM pg_proc JOIN checks.words ON word = proname, checks.preferred(ARRAY(SELECT unnest(proargtypes))) AS types
WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind <> 'p' AND checks.can_be_written(types)
ORDER BY name, types, prorettype;
CREATE TABLE checks.operator_twins AS
SELECT DISTINCT ON (name, types) oprname AS name, types, oprresult AS result
FROM pg_operator JOIN checks.signs ON sign = oprname, checks.preferred(array_remove(ARRAY[oprleft, oprright], 0::oid)) AS types
WHERE oprnamespace = 'pg_catalog'::regnamespace AND checks.can_be_written(types)
ORDER BY name, types, oprresult;

-- PL/pgSQL looks for record by its name, too.
CREATE TABLE checks.type_twins AS
SELECT typname AS name, CASE typtype WHEN 'p' THEN 'text' ELSE typname END AS base
FROM pg_type JOIN checks.words ON word = typname WHERE typnamespace = 'pg_catalog'::regnamespace AND (typtype IN ('b', 'e', 'r', 'm') OR typname = 'record');
-- No column of a view has a pseudo-type.
CREATE TABLE checks.relation_twins AS
SELECT relname AS name, (SELECT string_agg(CASE WHEN typtype = 'p' THEN format('NULL::text AS %I', attname) ELSE format('r.%I', attname) END, ', ' ORDER BY attnum)
                         FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid WHERE attrelid = c.oid AND attnum > 0) AS columns
FROM pg_class AS c JOIN checks.words ON word = relname WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v');

-- Makes the twins, as the role that calls it. PostgreSQL looks for types and relations in pg_temp, but never for functions and operators.
-- Casts between types of PostgreSQL are made by superusers alone.
CREATE PROCEDURE checks.plant(schema text) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET check_function_bodies = off AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT * FROM checks.function_twins WHERE schema <> 'pg_temp' LOOP
        EXECUTE checks.function_twin(schema, one.name, one.types, one.result, one.is_set);
    END LOOP;
    FOR one IN SELECT *, format('operator %s', name) AS function FROM checks.operator_twins WHERE schema <> 'pg_temp' LOOP
        EXECUTE checks.function_twin(schema, one.function, one.types, one.result, false);
        EXECUTE format('CREATE OPERATOR %I.%s (FUNCTION = %I.%I, %s RIGHTARG = %s)', schema, one.name, schema, one.function,
                       'LEFTARG = ' || format_type(one.types[cardinality(one.types) - 1], NULL) || ',', format_type(one.types[cardinality(one.types)], NULL));
    END LOOP;
    FOR one IN SELECT * FROM checks.type_twins LOOP
        EXECUTE format('CREATE DOMAIN %I.%I AS pg_catalog.%I CHECK (checks.spy(%L))', schema, one.name, one.base, format('%I.%I', schema, one.name));
    END LOOP;
    FOR one IN SELECT * FROM checks.relation_twins LOOP
        EXECUTE format('CREATE VIEW %1$I.%2$I AS SELECT %3$s FROM pg_catalog.%2$I AS r, (SELECT checks.spy(%4$L) OFFSET 0) AS s',
                       schema, one.name, one.columns, format('%I.%I', schema, one.name));
    END LOOP;
END $$;
GRANT SELECT ON ALL TABLES IN SCHEMA checks TO PUBLIC;

-- What of the extension depends on a twin
CREATE FUNCTION checks.captured(maker regrole) RETURNS TABLE (object text, twin text) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH member AS (
        SELECT classid, objid FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
            AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gputext')
        UNION ALL
        SELECT 'pg_rewrite'::regclass, w.oid FROM pg_rewrite AS w, pg_depend AS d WHERE d.deptype = 'e' AND (d.classid, d.objid) = ('pg_class'::regclass, ev_class)
    ), twins AS (
        SELECT 'pg_proc'::regclass AS class, oid FROM pg_proc WHERE proowner = maker UNION ALL
        SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprowner = maker UNION ALL
        SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typowner = maker UNION ALL
        SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relowner = maker
    )
    SELECT pg_describe_object(classid, objid, 0), pg_describe_object(class, oid, 0)
    FROM member JOIN pg_depend USING (classid, objid) JOIN twins ON (class, oid) = (refclassid, refobjid)
$$;
