-- The first part of make demo, on its database: near-duplicates. ECHO shows each statement before its result.
\set ON_ERROR_STOP on
\set QUIET on
\pset pager off
\pset linestyle unicode
\pset border 2
\pset footer off
SET gputext.device = cpu;

\echo
\timing on
\set ECHO queries
CREATE TABLE pairs AS
SELECT * FROM near_duplicates('SELECT id, body FROM documents ORDER BY id', threshold => 0.05);
\set ECHO none
\timing off

CREATE TABLE groups AS
SELECT * FROM near_duplicate_groups('SELECT id, body FROM documents ORDER BY id', threshold => 0.05);

CREATE VIEW names AS
SELECT id, right(regexp_replace(name, '^(/usr/share/doc/|/usr/share/|.*/server/)', ''), 48) AS short_name,
       name LIKE '/usr/share/doc/%' AS of_package
FROM documents;

\echo
SELECT d.documents AS files, d.megabytes, d.documents * (d.documents - 1) / 2 AS pairs_of_files,
       p.pairs AS near_duplicate_pairs, g.redundant AS redundant_files,
       round(100 * g.redundant_megabytes / d.megabytes) || ' %' AS redundant_bytes
FROM (SELECT count(*) AS documents, round(sum(octet_length(body)) / 1e6, 1) AS megabytes FROM documents) AS d,
     (SELECT count(*) AS pairs FROM pairs) AS p,
     (SELECT count(*) AS redundant, sum(octet_length(body)) / 1e6 AS redundant_megabytes
      FROM groups JOIN documents USING (id) WHERE id <> group_id) AS g;

\echo
\echo 'Files that are nearly, but not quite, the same. The edit rate is the number of characters to insert, delete or'
\echo 'replace, divided by the sum of both lengths:'
\echo
SELECT round(p.edit_rate::numeric, 4) AS edit_rate,
       a.short_name AS one_file, b.short_name AS another_file
FROM (SELECT DISTINCT ON (width_bucket(edit_rate, 0, 0.05, 6)) pairs.*
      FROM pairs JOIN names AS a ON a.id = id1 JOIN names AS b ON b.id = id2
      WHERE edit_rate > 0
      ORDER BY width_bucket(edit_rate, 0, 0.05, 6), a.of_package AND b.of_package DESC, edit_rate DESC, id1, id2) AS p
JOIN names AS a ON a.id = p.id1
JOIN names AS b ON b.id = p.id2
ORDER BY p.edit_rate;

-- One such pair, of two packages if there is one: the lines that only one of both has, in their order
SELECT p.id1, p.id2, a.short_name AS one_file, b.short_name AS another_file
FROM pairs AS p
JOIN names AS a ON a.id = p.id1
JOIN names AS b ON b.id = p.id2
WHERE edit_rate > 0
ORDER BY a.of_package AND b.of_package DESC, abs(edit_rate - 0.04), id1, id2
LIMIT 1 \gset
\if :{?id1}
\echo
\echo 'The lines in which two of them differ, side by side:'
\echo
SELECT rpad(left(coalesce(l.line, ''), 56), 56) AS :"one_file", rpad(left(coalesce(r.line, ''), 56), 56) AS :"another_file"
FROM (SELECT row_number() OVER (ORDER BY place) AS row, line
      FROM documents, string_to_table(translate(body, E'\t\r', '  '), E'\n') WITH ORDINALITY AS lines (line, place)
      WHERE id = :id1 AND line NOT IN (SELECT string_to_table(translate(body, E'\t\r', '  '), E'\n')
                                       FROM documents WHERE id = :id2)) AS l
FULL JOIN
     (SELECT row_number() OVER (ORDER BY place) AS row, line
      FROM documents, string_to_table(translate(body, E'\t\r', '  '), E'\n') WITH ORDINALITY AS lines (line, place)
      WHERE id = :id2 AND line NOT IN (SELECT string_to_table(translate(body, E'\t\r', '  '), E'\n')
                                       FROM documents WHERE id = :id1)) AS r USING (row)
ORDER BY row
LIMIT 8;
\endif

\echo
\echo 'The largest groups of copies and versions:'
\echo
SELECT g.group_size AS files, d.short_name AS the_first_of_them
FROM groups AS g JOIN names AS d USING (id)
WHERE g.id = g.group_id AND g.group_size > 1
ORDER BY g.group_size DESC, g.id
LIMIT 5;

\echo
\echo 'To keep one of each group:'
\echo
\echo '    DELETE FROM documents USING groups WHERE documents.id = groups.id AND groups.id <> groups.group_id;'

\echo
\echo 'A table that refuses near-duplicates, by an index and an exclusion constraint. It takes the files in their order,'
\echo 'each unless it has a near-duplicate already:'
\echo
\timing on
\set ECHO queries
CREATE TABLE distinct_documents (id bigint, name text, body text, EXCLUDE USING gputext (body WITH ~=));
INSERT INTO distinct_documents SELECT * FROM documents ORDER BY id ON CONFLICT DO NOTHING;
\set ECHO none
\timing off
\echo
SELECT offered, accepted, offered - accepted AS refused,
       pg_size_pretty(pg_relation_size('distinct_documents_body_excl')) AS size_of_index
FROM (SELECT count(*) AS offered FROM documents) AS d, (SELECT count(*) AS accepted FROM distinct_documents) AS k;
