-- What gputextd keeps of tables

CREATE FUNCTION @extschema@.gputext_resident(
    OUT relation regclass, OUT rows bigint, OUT bytes bigint, OUT device_bytes bigint,
    OUT hits bigint, OUT misses bigint, OUT last_used timestamp with time zone
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_resident' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION @extschema@.gputext_resident() IS 'rows of the view gputext_resident';

CREATE VIEW @extschema@.gputext_resident AS SELECT * FROM @extschema@.gputext_resident();
COMMENT ON VIEW @extschema@.gputext_resident IS
    'relations of this database of which gputextd keeps values, so that statements need not read them again; those that the user may read whole';
GRANT SELECT ON @extschema@.gputext_resident TO PUBLIC;

CREATE FUNCTION @extschema@.gputext_evict(relation regclass) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_evict' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION @extschema@.gputext_evict(regclass) IS
    'makes gputextd forget what it keeps of a relation and its partitions; returns how many values it kept';

CREATE FUNCTION @extschema@.gputext_evict() RETURNS bigint
    AS 'MODULE_PATHNAME', 'gputext_evict_all' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION @extschema@.gputext_evict() IS
    'makes gputextd forget what it keeps of this database; returns how many values it kept';
