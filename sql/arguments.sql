-- Parameters are known by their names in the catalogue, whatever their order
SELECT probin AS library FROM pg_proc WHERE proname = 'local_outlier_factor' LIMIT 1 \gset
CREATE FUNCTION outliers_in_another_order(ties text, metric text, k integer, items text)
    RETURNS TABLE (id bigint, lof double precision)
    AS :'library', 'gputext_local_outlier_factor' LANGUAGE C;
CREATE TABLE points AS SELECT i::bigint AS id, ARRAY[i * i, i]::real[] AS point FROM generate_series(1, 9) i;
SELECT count(*), count(*) FILTER (WHERE a.lof = b.lof) AS same
    FROM outliers_in_another_order('breunig', 'manhattan', 3, 'TABLE points') a
    JOIN local_outlier_factor('TABLE points', 3, metric => 'manhattan', ties => 'breunig') b USING (id);
SELECT outliers_in_another_order(NULL, 'manhattan', 3, 'TABLE points');

-- SQL objects of another release
CREATE FUNCTION outliers_without_ties(items text, k integer, metric text)
    RETURNS TABLE (id bigint, lof double precision)
    AS :'library', 'gputext_local_outlier_factor' LANGUAGE C;
SELECT outliers_without_ties('TABLE points', 3, 'manhattan');
\echo :LAST_ERROR_SQLSTATE
CREATE FUNCTION outliers_without_names(text, integer, text, text)
    RETURNS TABLE (id bigint, lof double precision)
    AS :'library', 'gputext_local_outlier_factor' LANGUAGE C;
SELECT outliers_without_names('TABLE points', 3, 'manhattan', 'breunig');

DROP FUNCTION outliers_in_another_order, outliers_without_ties, outliers_without_names;
DROP TABLE points;
