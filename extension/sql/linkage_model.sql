-- Linkage models: how likely levels of agreement are among pairs of records that match, and among others

CREATE FUNCTION @extschema@.linkage_model(
    records text,
    comparisons text[],
    term_frequencies text[] DEFAULT '{}',
    matches text DEFAULT NULL,
    keys text[] DEFAULT '{}',
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision, match_weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_linkage_model' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 30;
COMMENT ON FUNCTION @extschema@.linkage_model(text, text[], text[], text, text[], @extschema@.gputext_type_name) IS
    'the linkage model of the records of an inner query: m and u probabilities of each level of each field, estimated from the records';

CREATE FUNCTION @extschema@.linkage_model(
    records text,
    comparisons text[],
    id_type anyelement,
    term_frequencies text[] DEFAULT '{}',
    matches text DEFAULT NULL,
    keys text[] DEFAULT '{}'
) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision, match_weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_linkage_model_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 30;
COMMENT ON FUNCTION @extschema@.linkage_model(text, text[], anyelement, text[], text, text[]) IS
    'the linkage model of the records of an inner query: m and u probabilities of each level of each field, estimated from the records, ids of the type of id_type';

CREATE FUNCTION @extschema@.linkage_model_between(
    records1 text,
    records2 text,
    comparisons text[],
    term_frequencies text[] DEFAULT '{}',
    matches text DEFAULT NULL,
    keys text[] DEFAULT '{}',
    id_type @extschema@.gputext_type_name DEFAULT NULL
) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision, match_weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_linkage_model_between' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 30;
COMMENT ON FUNCTION @extschema@.linkage_model_between(text, text, text[], text[], text, text[], @extschema@.gputext_type_name) IS
    'the linkage model of records of two inner queries: m and u probabilities of each level of each field, estimated from the records';

CREATE FUNCTION @extschema@.linkage_model_between(
    records1 text,
    records2 text,
    comparisons text[],
    id_type anyelement,
    term_frequencies text[] DEFAULT '{}',
    matches text DEFAULT NULL,
    keys text[] DEFAULT '{}'
) RETURNS TABLE (field text, level integer, condition text, term_frequency boolean, m double precision, u double precision, match_weight double precision)
    AS 'MODULE_PATHNAME', 'gputext_linkage_model_between_typed' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 30;
COMMENT ON FUNCTION @extschema@.linkage_model_between(text, text, text[], anyelement, text[], text, text[]) IS
    'the linkage model of records of two inner queries: m and u probabilities of each level of each field, estimated from the records, ids of the type of id_type';
