-- Devices, activity and statistics

CREATE FUNCTION @extschema@.gputext_devices(
    OUT device integer, OUT name text, OUT memory bigint, OUT driver text, OUT status text
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_devices' LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 4;
COMMENT ON FUNCTION @extschema@.gputext_devices() IS
    'the GPUs that gputext can use, or one row that says why there are none; memory in bytes';

CREATE FUNCTION @extschema@.gputext_activity(
    OUT pid integer, OUT function_name text, OUT device text, OUT device_name text, OUT phase text,
    OUT done bigint, OUT total bigint, OUT rate double precision, OUT epoch integer,
    OUT loss double precision, OUT rows bigint, OUT bytes bigint,
    OUT seconds double precision, OUT started timestamp with time zone
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_activity' LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION @extschema@.gputext_activity() IS 'rows of the view gputext_activity';

CREATE VIEW @extschema@.gputext_activity AS SELECT * FROM @extschema@.gputext_activity();
COMMENT ON VIEW @extschema@.gputext_activity IS
    'running statements of gputext: where each computes and how far it is';
GRANT SELECT ON @extschema@.gputext_activity TO PUBLIC;

CREATE FUNCTION @extschema@.gputext_stat(
    OUT gpu_jobs bigint, OUT cpu_jobs bigint, OUT failures bigint, OUT cancelled bigint,
    OUT rows bigint, OUT bytes bigint, OUT gpu_milliseconds bigint, OUT cpu_milliseconds bigint,
    OUT retries bigint, OUT restarts bigint, OUT cpu_fallbacks bigint, OUT fallback_reasons jsonb,
    OUT since timestamp with time zone
) RETURNS record
    AS 'MODULE_PATHNAME', 'gputext_stat' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION @extschema@.gputext_stat() IS 'row of the view gputext_stat';

CREATE VIEW @extschema@.gputext_stat AS SELECT * FROM @extschema@.gputext_stat();
COMMENT ON VIEW @extschema@.gputext_stat IS
    'totals of what gputext has computed in all sessions since the server started';
GRANT SELECT ON @extschema@.gputext_stat TO PUBLIC;
