-- What has changed since the last release of that what it had

-- The text form of dictionaries does not depend on a setting any more.
ALTER FUNCTION @extschema@.trie_out(@extschema@.trie) IMMUTABLE;
