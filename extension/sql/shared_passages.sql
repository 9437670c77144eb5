-- Passages that stand in several documents

CREATE FUNCTION @extschema@.shared_passages(
    docs text,
    min_length integer DEFAULT 50,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, start1 integer, length1 integer, id2 bigint, start2 integer, length2 integer)
    AS 'MODULE_PATHNAME', 'gputext_shared_passages' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.shared_passages(text, integer, text, boolean, boolean, bigint, @extschema@.gputext_type_name) IS
    'passages that two documents of an inner query share, with their places in both';

CREATE FUNCTION @extschema@.shared_passages(
    docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000
) RETURNS TABLE (id1 anyelement, start1 integer, length1 integer, id2 anyelement, start2 integer, length2 integer)
    AS 'MODULE_PATHNAME', 'gputext_shared_passages_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.shared_passages(text, anyelement, integer, text, boolean, boolean, bigint) IS
    'passages that two documents of an inner query share, with their places in both, ids of the type of id_type';

CREATE FUNCTION @extschema@.shared_passages_between(
    new_docs text,
    old_docs text,
    min_length integer DEFAULT 50,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id1 bigint, start1 integer, length1 integer, id2 bigint, start2 integer, length2 integer)
    AS 'MODULE_PATHNAME', 'gputext_shared_passages_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.shared_passages_between(text, text, integer, text, boolean, boolean, bigint, @extschema@.gputext_type_name) IS
    'passages that a document of the first inner query and one of the second share, with their places in both';

CREATE FUNCTION @extschema@.shared_passages_between(
    new_docs text,
    old_docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    max_pairs bigint DEFAULT 10000000
) RETURNS TABLE (id1 anyelement, start1 integer, length1 integer, id2 anyelement, start2 integer, length2 integer)
    AS 'MODULE_PATHNAME', 'gputext_shared_passages_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.shared_passages_between(text, text, anyelement, integer, text, boolean, boolean, bigint) IS
    'passages that a document of the first inner query and one of the second share, with their places in both, ids of the type of id_type';

CREATE FUNCTION @extschema@.common_passages(
    docs text,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 2,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (passage text, documents integer, occurrences bigint, id bigint, start integer, length integer)
    AS 'MODULE_PATHNAME', 'gputext_common_passages' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.common_passages(text, integer, integer, text, boolean, boolean, @extschema@.gputext_type_name) IS
    'passages that stand in several documents of an inner query, each once, with the number of documents and the first place';

CREATE FUNCTION @extschema@.common_passages(
    docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 2,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false
) RETURNS TABLE (passage text, documents integer, occurrences bigint, id anyelement, start integer, length integer)
    AS 'MODULE_PATHNAME', 'gputext_common_passages_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.common_passages(text, anyelement, integer, integer, text, boolean, boolean) IS
    'passages that stand in several documents of an inner query, each once, with the number of documents and the first place, ids of the type of id_type';

CREATE FUNCTION @extschema@.passage_coverage(
    docs text,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 2,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, characters integer, covered integer, coverage double precision, starts integer[], lengths integer[])
    AS 'MODULE_PATHNAME', 'gputext_passage_coverage' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.passage_coverage(text, integer, integer, text, boolean, boolean, @extschema@.gputext_type_name) IS
    'what of each document of an inner query stands in other documents, too';

CREATE FUNCTION @extschema@.passage_coverage(
    docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 2,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false
) RETURNS TABLE (id anyelement, characters integer, covered integer, coverage double precision, starts integer[], lengths integer[])
    AS 'MODULE_PATHNAME', 'gputext_passage_coverage_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.passage_coverage(text, anyelement, integer, integer, text, boolean, boolean) IS
    'what of each document of an inner query stands in other documents, too, ids of the type of id_type';

CREATE FUNCTION @extschema@.passage_coverage_between(
    new_docs text,
    old_docs text,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 1,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false,
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (id bigint, characters integer, covered integer, coverage double precision, starts integer[], lengths integer[])
    AS 'MODULE_PATHNAME', 'gputext_passage_coverage_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000;
COMMENT ON FUNCTION @extschema@.passage_coverage_between(text, text, integer, integer, text, boolean, boolean, @extschema@.gputext_type_name) IS
    'what of each document of the first inner query stands in documents of the second';

CREATE FUNCTION @extschema@.passage_coverage_between(
    new_docs text,
    old_docs text,
    id_type anyelement,
    min_length integer DEFAULT 50,
    min_documents integer DEFAULT 1,
    unit text DEFAULT 'characters',
    fold_case boolean DEFAULT false,
    fold_blanks boolean DEFAULT false
) RETURNS TABLE (id anyelement, characters integer, covered integer, coverage double precision, starts integer[], lengths integer[])
    AS 'MODULE_PATHNAME', 'gputext_passage_coverage_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000
    SUPPORT @extschema@.gputext_id_type_support;
COMMENT ON FUNCTION @extschema@.passage_coverage_between(text, text, anyelement, integer, integer, text, boolean, boolean) IS
    'what of each document of the first inner query stands in documents of the second, ids of the type of id_type';

CREATE FUNCTION @extschema@.cut_passages(document text, starts integer[], lengths integer[]) RETURNS text
    AS 'MODULE_PATHNAME', 'gputext_cut_passages' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.cut_passages(text, integer[], integer[]) IS
    'the document without the characters from each of the starts on, as many as the lengths say';
