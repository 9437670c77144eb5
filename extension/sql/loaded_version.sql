-- A session from before an upgrade keeps the library that it has loaded, and so does a server whose
-- shared_preload_libraries names gputext. An older library lacks functions that are created below.

LOAD 'MODULE_PATHNAME';

DO $$
DECLARE
    loaded pg_catalog.text := coalesce(pg_catalog.current_setting('gputext.version', true), '0.1.0');
BEGIN
    IF pg_catalog.string_to_array(loaded, '.')::pg_catalog.int4[]
        OPERATOR(pg_catalog.<) pg_catalog.string_to_array('@VERSION@', '.')::pg_catalog.int4[] THEN
        RAISE EXCEPTION 'gputext @VERSION@ needs a newer library than the one that is loaded'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = pg_catalog.format('The library is of version %s.', loaded),
                  HINT = 'Connect anew. If shared_preload_libraries names gputext, restart the server.';
    END IF;
END
$$;
