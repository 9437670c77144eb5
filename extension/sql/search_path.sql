-- A script runs as a superuser, in a schema that another role may own. A bare name leads to PostgreSQL's own objects alone, and what is
-- ours is written with @extschema@.

SET LOCAL search_path = pg_catalog, pg_temp;
