-- What make demo runs on its database. ECHO shows each statement before its result.
\set ON_ERROR_STOP on
\set QUIET on
\pset pager off
\pset linestyle unicode
\pset border 2
\pset footer off

\echo
\echo 'How many documents, and how large?'
\echo
\set ECHO queries
SELECT count(*) AS documents,
       round(sum(octet_length(body)) / 1e6, 1) AS megabytes
FROM documents;

\set ECHO none
\echo
\echo 'Every pair of documents at most 5 % of their characters apart, kept in a table:'
\echo
\timing on
\set ECHO queries
CREATE TABLE pairs AS
SELECT * FROM near_duplicates('SELECT id, body FROM documents ORDER BY id');

\set ECHO none
\timing off
\echo
\echo 'And for every document the group that it belongs to:'
\echo
\timing on
\set ECHO queries
CREATE TABLE groups AS
SELECT * FROM near_duplicate_groups('SELECT id, body FROM documents ORDER BY id');

\set ECHO none
\timing off
\echo
\echo 'What did they find?'
\echo
\set ECHO queries
SELECT (SELECT count(*) FROM pairs) AS pairs,
       count(DISTINCT group_id) AS groups,
       count(*) AS documents_in_groups
FROM groups
WHERE group_size > 1;

\set ECHO none
\echo
\echo 'The ten largest groups:'
\echo
\set ECHO queries
SELECT g.group_size AS documents,
       d.name || (SELECT string_agg(E'\n  ' || name, '' ORDER BY id)
                  FROM (SELECT m.id, o.name
                        FROM groups m JOIN documents o USING (id)
                        WHERE m.group_id = g.group_id AND m.id <> m.group_id
                        ORDER BY m.id
                        LIMIT 3) AS others) AS the_first_and_some_others
FROM groups g JOIN documents d USING (id)
WHERE g.id = g.group_id AND g.group_size > 1
ORDER BY g.group_size DESC, g.id
LIMIT 10;

\set ECHO none
\echo
\echo 'Five pairs that are close but not the same:'
\echo
\set ECHO queries
SELECT round(p.edit_rate::numeric, 4) AS edit_rate,
       a.name || E'\n' || b.name AS pair
FROM pairs p
JOIN documents a ON a.id = p.id1
JOIN documents b ON b.id = p.id2
WHERE p.edit_rate > 0
ORDER BY p.edit_rate DESC, p.id1, p.id2
LIMIT 5;
