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

CREATE FUNCTION gputext_resident(
    OUT relation regclass, OUT rows bigint, OUT bytes bigint, OUT device_bytes bigint,
    OUT hits bigint, OUT misses bigint, OUT last_used timestamp with time zone
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_resident' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gputext_resident() IS 'rows of the view gputext_resident';

CREATE VIEW gputext_resident AS SELECT * FROM gputext_resident();
COMMENT ON VIEW gputext_resident IS
    'relations of this database of which gputextd keeps values, so that statements need not read them again; those that the user may read';
GRANT SELECT ON gputext_resident TO PUBLIC;

CREATE FUNCTION gputext_forget(relation regclass) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_forget' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION gputext_forget(regclass) IS
    'makes gputextd forget what it keeps of a relation and its partitions; returns how many values it kept';

CREATE FUNCTION gputext_forget() RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_forget_all' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION gputext_forget() IS
    'makes gputextd forget what it keeps of this database; returns how many values it kept';

CREATE FUNCTION near_duplicates_between(
    new_docs text,
    old_docs text,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100,
    id_type gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, id2 bigint, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION near_duplicates_between(text, text, double precision, text, integer, gputext_type_name) IS
    'pairs of a document of the first inner query and one of the second with an edit rate of at most the threshold';

CREATE FUNCTION near_duplicates_between(
    new_docs text,
    old_docs text,
    id_type anyelement,
    threshold double precision DEFAULT 0.05,
    mode text DEFAULT 'auto',
    max_length integer DEFAULT 100
) RETURNS TABLE (id1 anyelement, id2 anyelement, edit_rate double precision)
    AS 'MODULE_PATHNAME', 'gputext_near_duplicates_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION near_duplicates_between(text, text, anyelement, double precision, text, integer) IS
    'pairs of a document of the first inner query and one of the second with an edit rate of at most the threshold, ids of the type of id_type';
