\echo Use "ALTER EXTENSION gputext UPDATE TO '0.2.0'" to load this file. \quit

-- A session from before an upgrade keeps the library that it has loaded, and so does a server whose
-- shared_preload_libraries names gputext. An older library lacks functions that are created below.

LOAD 'MODULE_PATHNAME';

CREATE FUNCTION gputext_refuse_loaded_version() RETURNS void LANGUAGE sql AS $function$
    DO $block$
    BEGIN
        RAISE EXCEPTION 'gputext cannot be updated to version 0.2.0 while an older library of gputext is loaded'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = format('The library is of version %s.', coalesce(current_setting('gputext.version', true), '0.1.0')),
                  HINT = 'Connect anew. If shared_preload_libraries names gputext, restart the server.';
    END
    $block$
$function$;
SELECT gputext_refuse_loaded_version()
WHERE string_to_array(coalesce(current_setting('gputext.version', true), '0.1.0'), '.')::integer[]
    < string_to_array('0.2.0', '.')::integer[];
DROP FUNCTION gputext_refuse_loaded_version();

-- The text form of dictionaries does not depend on a setting any more.
ALTER FUNCTION trie_out(trie) IMMUTABLE;

CREATE FUNCTION trie_summary(dictionary trie) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_trie_summary' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_summary(trie) IS 'a line about a dictionary: its structure, words and bytes';
