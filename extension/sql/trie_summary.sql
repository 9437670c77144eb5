-- What a dictionary is, in a line

CREATE FUNCTION trie_summary(dictionary trie) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_trie_summary' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_summary(trie) IS 'a line about a dictionary: its structure, words and bytes';
