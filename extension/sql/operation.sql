-- What runs where

CREATE FUNCTION gputext_devices(
    OUT device integer, OUT name text, OUT memory bigint, OUT driver text, OUT status text
) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gputext_devices' LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 4;
COMMENT ON FUNCTION gputext_devices() IS
    'the GPUs that gputext can use, or one row that says why there are none; memory in bytes';
