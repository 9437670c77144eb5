-- Type trie: dictionaries of words

CREATE TYPE trie;

CREATE FUNCTION trie_in(cstring) RETURNS trie
    AS 'MODULE_PATHNAME', 'gputext_trie_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_in(cstring) IS 'I/O';

CREATE FUNCTION trie_out(trie) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gputext_trie_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_out(trie) IS 'I/O';

CREATE FUNCTION trie_recv(internal) RETURNS trie
    AS 'MODULE_PATHNAME', 'gputext_trie_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_recv(internal) IS 'I/O';

CREATE FUNCTION trie_send(trie) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_trie_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_send(trie) IS 'I/O';

-- Stored as it is: it is packed already, and unpacked its summary can be made from its first bytes alone.
CREATE TYPE trie (
    INPUT = trie_in,
    OUTPUT = trie_out,
    RECEIVE = trie_recv,
    SEND = trie_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = external
);
COMMENT ON TYPE trie IS 'immutable dictionary: words and their codes, which are 0, 1, ... in the byte order of the words';

CREATE FUNCTION bytea(dictionary trie) RETURNS bytea
    AS 'MODULE_PATHNAME', 'gputext_trie_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bytea(trie) IS 'the bytes of a dictionary';

CREATE FUNCTION trie(image bytea) RETURNS trie
    AS 'MODULE_PATHNAME', 'gputext_trie_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000;
COMMENT ON FUNCTION trie(bytea) IS 'dictionary from its bytes, all of which are checked';

CREATE CAST (trie AS bytea) WITH FUNCTION bytea(trie);
COMMENT ON CAST (trie AS bytea) IS 'the bytes of a dictionary';

CREATE CAST (bytea AS trie) WITH FUNCTION trie(bytea);
COMMENT ON CAST (bytea AS trie) IS 'dictionary from its bytes, all of which are checked';

CREATE FUNCTION trie_agg_transition(internal, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION trie_agg_transition(internal, text) IS 'transition function of trie_agg';

CREATE FUNCTION trie_agg_final(internal) RETURNS trie
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000000;
COMMENT ON FUNCTION trie_agg_final(internal) IS 'final function of trie_agg';

CREATE AGGREGATE trie_agg(word text) (
    SFUNC = trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE trie_agg(text) IS 'dictionary of all different words that are not null, NULL when there are none';

CREATE FUNCTION trie_agg_transition(internal, text, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'gputext_trie_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION trie_agg_transition(internal, text, text) IS 'transition function of trie_agg with a structure';

CREATE AGGREGATE trie_agg(word text, structure text) (
    SFUNC = trie_agg_transition,
    STYPE = internal,
    SSPACE = 1000000,
    FINALFUNC = trie_agg_final,
    FINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE trie_agg(text, text) IS
    'dictionary of all different words that are not null, NULL when there are none, of the structure front or xbw';

CREATE FUNCTION trie_stats(
    dictionary trie,
    OUT structure text,
    OUT words bigint,
    OUT bytes bigint,
    OUT bits_per_word double precision,
    OUT alphabet integer,
    OUT longest_word bigint
) RETURNS record
    AS 'MODULE_PATHNAME', 'gputext_trie_stats' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION trie_stats(trie) IS
    'statistics of a dictionary: structure, words, bytes, bits per word, different byte values in words, bytes of the longest word';

CREATE FUNCTION trie_lookup(dictionary trie, word text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_trie_lookup' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION trie_lookup(trie, text) IS 'code of a word, NULL when the dictionary does not have it';

CREATE FUNCTION trie_decode(dictionary trie, code bigint) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_trie_decode' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION trie_decode(trie, bigint) IS 'word of a code';

CREATE FUNCTION trie_node(dictionary trie, word text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_trie_node' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION trie_node(trie, text) IS
    'number of the node in which a word ends, in the order of all prefixes of words read backwards, NULL when the dictionary does not have it; for the structure xbw';

CREATE FUNCTION trie_prefix_range(dictionary trie, prefix text, OUT first bigint, OUT last bigint) RETURNS record
    AS 'MODULE_PATHNAME', 'gputext_trie_prefix_range' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION trie_prefix_range(trie, text) IS
    'first and last code of the words with a prefix, both NULL when there are none';

CREATE FUNCTION trie_prefix(dictionary trie, prefix text, max integer DEFAULT NULL)
    RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_prefix' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 ROWS 100;
COMMENT ON FUNCTION trie_prefix(trie, text, integer) IS
    'words with a prefix in the order of their codes, at most max of them';

CREATE FUNCTION trie_prefixes_of(dictionary trie, document text) RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_prefixes_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 ROWS 5;
COMMENT ON FUNCTION trie_prefixes_of(trie, text) IS 'words of a dictionary that a text begins with, the shortest first';

CREATE FUNCTION trie_words(dictionary trie) RETURNS TABLE (code bigint, word text)
    AS 'MODULE_PATHNAME', 'gputext_trie_words' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100000 ROWS 100000;
COMMENT ON FUNCTION trie_words(trie) IS 'all words of a dictionary in the order of their codes';

-- As for near-duplicates, each function comes with ids of type bigint, and with ids of the type of
-- id_type, which follows the inner query.

CREATE FUNCTION trie_encode(dictionary trie, words text, id_type gputext_type_name DEFAULT NULL) RETURNS TABLE (id bigint, code bigint)
    AS 'MODULE_PATHNAME', 'gputext_trie_encode' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000;
COMMENT ON FUNCTION trie_encode(trie, text, gputext_type_name) IS
    'code of every word of an inner query, NULL when the dictionary does not have it';

CREATE FUNCTION trie_encode(dictionary trie, words text, id_type anyelement)
    RETURNS TABLE (id anyelement, code bigint)
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION trie_encode(trie, text, anyelement) IS
    'code of every word of an inner query, NULL when the dictionary does not have it, ids of the type of id_type';

CREATE FUNCTION trie_encode_documents(dictionary trie, docs text, config regconfig DEFAULT 'pg_catalog.simple', id_type gputext_type_name DEFAULT NULL)
    RETURNS TABLE (id bigint, codes bigint[])
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_documents' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000;
COMMENT ON FUNCTION trie_encode_documents(trie, text, regconfig, gputext_type_name) IS
    'codes of the words of every text of an inner query, in their order, NULL for those that the dictionary does not have';

CREATE FUNCTION trie_encode_documents(dictionary trie, docs text, id_type anyelement, config regconfig DEFAULT 'pg_catalog.simple')
    RETURNS TABLE (id anyelement, codes bigint[])
    AS 'MODULE_PATHNAME', 'gputext_trie_encode_documents_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
    SUPPORT gputext_id_type_support;
COMMENT ON FUNCTION trie_encode_documents(trie, text, anyelement, regconfig) IS
    'codes of the words of every text of an inner query, in their order, NULL for those that the dictionary does not have, ids of the type of id_type';
