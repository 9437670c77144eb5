-- What has changed, since the last release, of what that had

-- The text form of dictionaries does not depend on a setting any more.
ALTER FUNCTION @extschema@.trie_out(@extschema@.trie) IMMUTABLE;

-- Names of results that have changed. CREATE OR REPLACE cannot change them, and views may depend on the functions: they find a result
-- by its number.
UPDATE pg_catalog.pg_proc
SET proargnames = pg_catalog.array_replace(pg_catalog.array_replace(pg_catalog.array_replace(
    proargnames, 'neighbours', 'neighbors'), 'neighbour', 'neighbor'), 'operator', 'function_name')
WHERE oid OPERATOR(pg_catalog.=) ANY (ARRAY[
    '@extschema@.word_similarity(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text)'::pg_catalog.regprocedure,
    '@extschema@.word_similarity_pairs(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text)'::pg_catalog.regprocedure,
    '@extschema@.word_cooccurrences(text, integer, integer, integer, text, boolean, double precision, regconfig, text)'::pg_catalog.regprocedure,
    '@extschema@.gputext_activity()'::pg_catalog.regprocedure]::pg_catalog.oid[]);
ALTER VIEW @extschema@.gputext_activity RENAME COLUMN operator TO function_name;
CREATE OR REPLACE VIEW @extschema@.gputext_activity AS SELECT * FROM @extschema@.gputext_activity();

COMMENT ON FUNCTION @extschema@.word_similarity_from(text, integer, integer, text, text, double precision, text) IS
    'deprecated, by another name: word_similarity_from_counts, whose column is neighbors';
COMMENT ON FUNCTION @extschema@.word_similarity_pairs(text, integer, integer, integer, integer, integer, text, text, boolean, double precision, regconfig, text) IS
    'word_similarity with a row for every word and neighbor';
COMMENT ON FUNCTION @extschema@.local_outlier_factor(text, integer, text, text, @extschema@.gputext_type_name) IS
    'local outlier factor (LOF) of each item of an inner query: mean density at its k nearest neighbors over its own';
COMMENT ON FUNCTION @extschema@.local_outlier_factor(text, anyelement, integer, text, text) IS
    'local outlier factor (LOF) of each item of an inner query: mean density at its k nearest neighbors over its own, ids of the type of id_type';
