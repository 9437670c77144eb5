-- What a dictionary is, in a line

CREATE FUNCTION @extschema@.trie_summary(dictionary @extschema@.trie) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_trie_summary' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_summary(@extschema@.trie) IS 'a line about a dictionary: its structure, words and bytes';
