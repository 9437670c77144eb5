-- Processor seconds of this session, and of all processes that the postmaster has had and that have ended, parallel workers among them
CREATE FUNCTION processor_seconds() RETURNS double precision LANGUAGE sql VOLATILE AS $$
    SELECT (own[12]::double precision + own[13]::double precision + parent[14]::double precision + parent[15]::double precision) / 100
    FROM string_to_array(regexp_replace(pg_read_file('/proc/' || pg_backend_pid() || '/stat'), '^.*\) ', ''), ' ') AS own,
         string_to_array(regexp_replace(pg_read_file('/proc/' || own[2] || '/stat'), '^.*\) ', ''), ' ') AS parent $$;
