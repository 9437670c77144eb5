-- A session from before an upgrade keeps the library that it has loaded, and so does a server whose
-- shared_preload_libraries names gputext. An older library lacks functions that are created below.

LOAD 'MODULE_PATHNAME';

CREATE FUNCTION gputext_refuse_loaded_version() RETURNS void LANGUAGE sql AS $function$
    DO $block$
    BEGIN
        RAISE EXCEPTION 'version @VERSION@ of gputext cannot be created while an older library of gputext is loaded'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = format('The library is of version %s.', coalesce(current_setting('gputext.version', true), '0.1.0')),
                  HINT = 'Connect anew. If shared_preload_libraries names gputext, restart the server.';
    END
    $block$
$function$;
SELECT gputext_refuse_loaded_version()
WHERE string_to_array(coalesce(current_setting('gputext.version', true), '0.1.0'), '.')::integer[]
    < string_to_array('@VERSION@', '.')::integer[];
DROP FUNCTION gputext_refuse_loaded_version();
