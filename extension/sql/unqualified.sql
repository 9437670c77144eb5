-- As long as distributed.sql names what is ours without its schema

SET LOCAL search_path = @extschema@, pg_temp;
