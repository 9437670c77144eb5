-- Type trie: dictionaries of words

CREATE TYPE @extschema@.trie;

CREATE FUNCTION @extschema@.trie_in(cstring) RETURNS @extschema@.trie
    AS 'MODULE_PATHNAME', 'gputext_trie_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_in(cstring) IS 'I/O';

CREATE FUNCTION @extschema@.trie_out(@extschema@.trie) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_trie_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_out(@extschema@.trie) IS 'I/O';

CREATE FUNCTION @extschema@.trie_recv(internal) RETURNS @extschema@.trie
    AS 'MODULE_PATHNAME', 'gputext_trie_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_recv(internal) IS 'I/O';

CREATE FUNCTION @extschema@.trie_send(@extschema@.trie) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_trie_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_send(@extschema@.trie) IS 'I/O';

-- Stored as it is: it is packed already, and unpacked its summary can be made from its first bytes alone.
CREATE TYPE @extschema@.trie (
    INPUT = @extschema@.trie_in,
    OUTPUT = @extschema@.trie_out,
    RECEIVE = @extschema@.trie_recv,
    SEND = @extschema@.trie_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = external
);
COMMENT ON TYPE @extschema@.trie IS 'immutable dictionary: words and their codes, which are 0, 1, ... in the byte order of the words';

CREATE FUNCTION @extschema@.bytea(dictionary @extschema@.trie) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_trie_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.bytea(@extschema@.trie) IS 'the bytes of a dictionary';

CREATE FUNCTION @extschema@.trie(image bytea) RETURNS @extschema@.trie
    AS 'MODULE_PATHNAME', 'gputext_trie_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000;
COMMENT ON FUNCTION @extschema@.trie(bytea) IS 'dictionary from its bytes, all of which are checked';

CREATE CAST (@extschema@.trie AS bytea) WITH FUNCTION @extschema@.bytea(@extschema@.trie);
COMMENT ON CAST (@extschema@.trie AS bytea) IS 'the bytes of a dictionary';

CREATE CAST (bytea AS @extschema@.trie) WITH FUNCTION @extschema@.trie(bytea);
COMMENT ON CAST (bytea AS @extschema@.trie) IS 'dictionary from its bytes, all of which are checked';

CREATE FUNCTION @extschema@.trie_agg_transition(internal, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_agg_transition(internal, text) IS 'transition function of trie_agg';

CREATE FUNCTION @extschema@.trie_agg_final(internal) RETURNS @extschema@.trie
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.trie_agg_final(internal) IS 'final function of trie_agg';

CREATE AGGREGATE @extschema@.trie_agg(word text) (
    SFUNC = @extschema@.trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = @extschema@.trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.trie_agg(text) IS 'dictionary of all different words that are not null, NULL when there are none';

CREATE FUNCTION @extschema@.trie_agg_transition(internal, text, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_agg_transition(internal, text, text) IS 'transition function of trie_agg with a structure';

CREATE AGGREGATE @extschema@.trie_agg(word text, structure text) (
    SFUNC = @extschema@.trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = @extschema@.trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.trie_agg(text, text) IS
    'dictionary of all different words that are not null, NULL when there are none, of the structure front or xbw';

CREATE FUNCTION @extschema@.trie_stats(
    dictionary @extschema@.trie,
    OUT structure text,
    OUT words bigint,
    OUT bytes bigint,
    OUT bits_per_word double precision,
    OUT alphabet integer,
    OUT longest_word bigint
) RETURNS record
    AS 'MODULE_PATHNAME', 'gputext_trie_stats' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.trie_stats(@extschema@.trie) IS
    'statistics of a dictionary: structure, words, bytes, bits per word, different byte values in words, bytes of the longest word';

CREATE FUNCTION @extschema@.trie_lookup(dictionary @extschema@.trie, word text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_trie_lookup' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION @extschema@.trie_lookup(@extschema@.trie, text) IS 'code of a word, NULL when the dictionary does not have it';

CREATE FUNCTION @extschema@.trie_decode(dictionary @extschema@.trie, code bigint) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_trie_decode' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION @extschema@.trie_decode(@extschema@.trie, bigint) IS 'word of a code';

CREATE FUNCTION @extschema@.trie_node(dictionary @extschema@.trie, word text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_trie_node' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION @extschema@.trie_node(@extschema@.trie, text) IS
    'number of the node in which a word ends, in the order of all prefixes of words read backwards, NULL when the dictionary does not have it; for the structure xbw';

CREATE FUNCTION @extschema@.trie_prefix_range(dictionary @extschema@.trie, prefix text, OUT first bigint, OUT last bigint) RETURNS record
    AS 'MODULE_PATHNAME', 'gputext_trie_prefix_range' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION @extschema@.trie_prefix_range(@extschema@.trie, text) IS
    'first and last code of the words with a prefix, both NULL when there are none';

CREATE FUNCTION @extschema@.trie_prefix(dictionary @extschema@.trie, prefix text, max integer DEFAULT NULL)
    RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_prefix' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 ROWS 100;
COMMENT ON FUNCTION @extschema@.trie_prefix(@extschema@.trie, text, integer) IS
    'words with a prefix in the order of their codes, at most max of them';

CREATE FUNCTION @extschema@.trie_prefixes_of(dictionary @extschema@.trie, document text) RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_prefixes_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 ROWS 5;
COMMENT ON FUNCTION @extschema@.trie_prefixes_of(@extschema@.trie, text) IS 'words of a dictionary that a text begins with, the shortest first';

CREATE FUNCTION @extschema@.trie_words(dictionary @extschema@.trie) RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_words' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.trie_words(@extschema@.trie) IS 'all words of a dictionary in the order of their codes';

-- As for near-duplicates, each function comes with ids of type bigint, and with ids of the type of
-- id_type, which follows the inner query.

CREATE FUNCTION @extschema@.trie_encode(dictionary @extschema@.trie, words text, id_type @extschema@.gputext_type_name DEFAULT NULL) RETURNS TABLE (id bigint, code bigint)
    AS 'MODULE_PATHNAME', 'gputext_trie_encode' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION @extschema@.trie_encode(@extschema@.trie, text, @extschema@.gputext_type_name) IS
    'code of every word of an inner query, NULL when the dictionary does not have it';

CREATE FUNCTION @extschema@.trie_encode(dictionary @extschema@.trie, words text, id_type anyelement)
    RETURNS TABLE (id anyelement, code bigint)
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.trie_encode(@extschema@.trie, text, anyelement) IS
    'code of every word of an inner query, NULL when the dictionary does not have it, ids of the type of id_type';

CREATE FUNCTION @extschema@.trie_encode_documents(dictionary @extschema@.trie, docs text, config regconfig DEFAULT 'pg_catalog.simple', id_type @extschema@.gputext_type_name DEFAULT NULL)
    RETURNS TABLE (id bigint, codes bigint[])
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_documents' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION @extschema@.trie_encode_documents(@extschema@.trie, text, regconfig, @extschema@.gputext_type_name) IS
    'codes of the words of every text of an inner query, in their order, NULL for those that the dictionary does not have';

CREATE FUNCTION @extschema@.trie_encode_documents(dictionary @extschema@.trie, docs text, id_type anyelement, config regconfig DEFAULT 'pg_catalog.simple')
    RETURNS TABLE (id anyelement, codes bigint[])
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_documents_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.trie_encode_documents(@extschema@.trie, text, anyelement, regconfig) IS
    'codes of the words of every text of an inner query, in their order, NULL for those that the dictionary does not have, ids of the type of id_type';
