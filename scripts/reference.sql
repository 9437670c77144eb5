-- Prints docs/reference.md from the catalogue of a database that has the extension; scripts/write-reference runs it.
-- The table "pages" says which page of docs/ describes a function. A function that is neither there nor one that only
-- PostgreSQL or gputext call is an error.
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
LOAD 'gputext';

CREATE TEMP TABLE pages (place integer GENERATED ALWAYS AS IDENTITY, topic text, name text, page text);
INSERT INTO pages (topic, name, page) VALUES
    ('Near-duplicate documents', 'near_duplicates', 'near-duplicates.md'),
    ('Near-duplicate documents', 'near_duplicates_between', 'near-duplicates.md#new-documents-against-old-ones'),
    ('Near-duplicate documents', 'near_duplicate_groups', 'near-duplicates.md#remove-duplicates'),
    ('Near-duplicate documents', 'near_duplicates_distributed', 'many-servers.md'),
    ('Near-duplicate documents', 'groups_of', 'groups-of.md'),
    ('Shared passages', 'shared_passages', 'passages.md'),
    ('Shared passages', 'shared_passages_between', 'passages.md'),
    ('Shared passages', 'common_passages', 'passages.md'),
    ('Shared passages', 'passage_coverage', 'passages.md'),
    ('Shared passages', 'passage_coverage_between', 'passages.md'),
    ('Shared passages', 'cut_passages', 'passages.md'),
    ('Similar sets', 'similar_sets', 'set-similarity.md'),
    ('Similar sets', 'similar_sets_between', 'set-similarity.md'),
    ('Near-duplicate documents', 'is_near_duplicate', 'near-duplicate-index.md'),
    ('Two documents', 'edit_distance', 'edit-distance.md'),
    ('Two documents', 'edit_rate', 'edit-distance.md'),
    ('Two documents', 'osa_distance', 'edit-distance.md#other-distances-of-strings'),
    ('Two documents', 'damerau_levenshtein', 'edit-distance.md#other-distances-of-strings'),
    ('Two documents', 'jaro_similarity', 'edit-distance.md#other-distances-of-strings'),
    ('Two documents', 'jaro_winkler_similarity', 'edit-distance.md#other-distances-of-strings'),
    ('Two documents', 'ctph_signature', 'ctph.md'),
    ('Two documents', 'ssdeep_hash', 'ssdeep.md'),
    ('Two documents', 'ssdeep_compare', 'ssdeep.md'),
    ('Record linkage', 'linkage_model', 'record-linkage.md#a-model'),
    ('Record linkage', 'linkage_model_between', 'record-linkage.md#a-model'),
    ('Record linkage', 'linked_records', 'record-linkage.md#pairs-that-match'),
    ('Record linkage', 'linked_records_between', 'record-linkage.md#pairs-that-match'),
    ('Nearest neighbors', 'gpu_knn', 'knn.md'),
    ('Nearest neighbors', 'gpu_knn_within', 'knn.md'),
    ('Nearest neighbors', 'gpu_knn_distributed', 'many-servers.md'),
    ('Nearest neighbors', 'gpu_knn_within_distributed', 'many-servers.md'),
    ('Nearest neighbors', 'knn_merge', 'knn.md#merge-the-answers-of-several-servers'),
    ('Nearest neighbors', 'knn_recall', 'knn-recall.md'),
    ('Nearest neighbors', 'cosine_similarities', 'cosine-similarity.md'),
    ('Two vectors', 'cosine_similarity', 'cosine-similarity.md'),
    ('Two vectors', 'euclidean_distance', 'distance-operators.md'),
    ('Two vectors', 'cosine_distance', 'distance-operators.md'),
    ('Two vectors', 'negative_inner_product', 'distance-operators.md'),
    ('Two vectors', 'manhattan_distance', 'distance-operators.md'),
    ('Clusters and outliers', 'k_means', 'k-means.md'),
    ('Clusters and outliers', 'k_means_centroids', 'k-means.md'),
    ('Clusters and outliers', 'dbscan', 'dbscan.md'),
    ('Clusters and outliers', 'semantic_duplicate_groups', 'semantic-duplicates.md'),
    ('Clusters and outliers', 'local_outlier_factor', 'outlier-factor.md'),
    ('Terms of texts', 'tfidf', 'text-knn.md#keywords'),
    ('Terms of texts', 'tfidf_frequencies', 'text-knn.md#texts-on-several-servers'),
    ('Terms of texts', 'tfidf_from_frequencies', 'text-knn.md#texts-on-several-servers'),
    ('Thesauri', 'word_similarity', 'word-similarity.md'),
    ('Thesauri', 'word_similarity_pairs', 'word-similarity.md'),
    ('Thesauri', 'word_cooccurrences', 'word-similarity.md'),
    ('Thesauri', 'word_similarity_from_counts', 'word-similarity.md'),
    ('Thesauri', 'word_similarity_from', 'word-similarity.md'),
    ('Thesauri', 'word_frequencies', 'word-similarity.md#texts-on-several-servers'),
    ('Word embeddings', 'word2vec', 'word2vec.md'),
    ('Word embeddings', 'word2vec_average', 'word2vec.md#several-servers'),
    ('Word embeddings', 'word_movers_distance', 'word-movers.md'),
    ('Word embeddings', 'sequence_probability', 'sequence-probability.md'),
    ('Dictionaries', 'trie_agg', 'trie.md'),
    ('Dictionaries', 'trie_encode', 'trie.md'),
    ('Dictionaries', 'trie_encode_documents', 'trie.md'),
    ('Dictionaries', 'trie_lookup', 'trie.md'),
    ('Dictionaries', 'trie_decode', 'trie.md'),
    ('Dictionaries', 'trie_prefix', 'trie.md'),
    ('Dictionaries', 'trie_prefix_range', 'trie.md'),
    ('Dictionaries', 'trie_prefixes_of', 'trie.md'),
    ('Dictionaries', 'trie_words', 'trie.md'),
    ('Dictionaries', 'trie_node', 'trie.md#structures'),
    ('Dictionaries', 'trie_stats', 'trie.md'),
    ('Dictionaries', 'trie_summary', 'trie.md#storage-dump-and-replication'),
    ('Dictionaries', 'trie', 'trie.md#storage-dump-and-replication'),
    ('Dictionaries', 'bytea', 'trie.md#storage-dump-and-replication'),
    ('Source code', 'code_tokens', 'code-tokens.md'),
    ('Source code', 'code_lines', 'code-tokens.md'),
    ('For administrators', 'gputext_devices', 'gpu.md'),
    ('For administrators', 'gputext_evict', 'resident-columns.md#memory'),
    ('For administrators', 'gputext_index_check', 'near-duplicate-index.md#the-index');

CREATE TEMP TABLE other_pages (kind text, name text, page text);
INSERT INTO other_pages VALUES
    ('operator', '~=', 'near-duplicate-index.md'), ('operator', '@~', 'near-duplicate-index.md'),
    ('operator', '<->', 'distance-operators.md'), ('operator', '<=>', 'distance-operators.md'),
    ('operator', '<#>', 'distance-operators.md'), ('operator', '<+>', 'distance-operators.md'),
    ('operator', '=', 'ctph.md#operators-and-indexes'), ('operator', '<>', 'ctph.md#operators-and-indexes'),
    ('operator', '<', 'ctph.md#operators-and-indexes'), ('operator', '<=', 'ctph.md#operators-and-indexes'),
    ('operator', '>', 'ctph.md#operators-and-indexes'), ('operator', '>=', 'ctph.md#operators-and-indexes'),
    ('type', 'ctph', 'ctph.md'), ('type', 'trie', 'trie.md'), ('type', 'near_duplicate_query', 'near-duplicate-index.md'),
    ('view', 'gputext_activity', 'gpu.md#watching'), ('view', 'gputext_stat', 'gpu.md#watching'),
    ('view', 'gputext_resident', 'resident-columns.md#memory'),
    ('setting', 'gputext.device', 'gpu.md#choosing-where'), ('setting', 'gputext.scan_memory', 'resident-columns.md#tables-that-have-not-changed'),
    ('setting', 'gputext.near_duplicate_threshold', 'near-duplicate-index.md'), ('setting', 'gputext.plan_nearest', 'nearest-in-sql.md'),
    ('setting', 'gputext.progress', 'gpu.md#watching'), ('setting', 'gputext.read_workers', 'reading-rows.md'),
    ('setting', 'gputext.resident_memory', 'resident-columns.md#memory'), ('setting', 'gputext.trie_output', 'trie.md#storage-dump-and-replication');

CREATE FUNCTION pg_temp.linked(page text) RETURNS text LANGUAGE sql AS
    $$ SELECT format('[%s](%s)', split_part(page, '.md', 1), page) $$;
-- What a cell of a table may hold
CREATE FUNCTION pg_temp.cell(value text) RETURNS text LANGUAGE sql AS $$ SELECT replace(coalesce(value, ''), '|', '\|') $$;
CREATE FUNCTION pg_temp.code(value text) RETURNS text LANGUAGE sql AS $$ SELECT '`' || replace(value, '|', '\|') || '`' $$;
CREATE FUNCTION pg_temp.sentence(value text) RETURNS text LANGUAGE sql AS
    $$ SELECT CASE WHEN value ~ '^[a-z]+_' THEN value ELSE upper(left(value, 1)) || substr(value, 2) END || '.' $$;
-- Types of the forms of a function, or of an operator: `text` or `bytea`
CREATE FUNCTION pg_temp.types(names text[]) RETURNS text LANGUAGE sql AS
    $$ SELECT string_agg(pg_temp.code(name), ' or ' ORDER BY place) FROM unnest(names) WITH ORDINALITY AS n (name, place)
       WHERE NOT EXISTS (SELECT FROM unnest(names) WITH ORDINALITY AS earlier (name, place) WHERE earlier.name = n.name AND earlier.place < n.place) $$;

CREATE TEMP TABLE members AS
SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
WHERE d.refclassid = 'pg_extension'::regclass AND e.extname = 'gputext' AND d.deptype = 'e';

-- The forms of all functions: those that users call have a page.
CREATE TEMP TABLE forms AS
SELECT p.oid, p.proname AS name, p.prokind, p.prorettype, p.provolatile, p.proisstrict, p.proparallel,
       obj_description(p.oid, 'pg_proc') AS comment,
       -- The order in which they are shown: without id_type first, then by the number of their arguments, those of texts first
       row_number() OVER (PARTITION BY p.proname ORDER BY 'anyelement'::regtype = ANY (p.proargtypes), p.pronargs,
                          p.pronargs > 0 AND p.proargtypes[0] <> 'text'::regtype, p.oid::regprocedure::text COLLATE "C") AS form,
       pages.page IS NULL OR EXISTS (SELECT FROM pg_operator WHERE oprcode = p.oid AND p.proname = 'is_near_duplicate') AS is_called_by_server
FROM members AS m JOIN pg_proc AS p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
LEFT JOIN pages ON pages.name = p.proname;

CREATE TEMP TABLE arguments AS
SELECT f.oid, f.name, f.form, f.is_called_by_server, a.number, coalesce(p.proargnames[a.number], '') AS argument, format_type(a.type, NULL) AS type,
       coalesce(p.proargmodes[a.number], 'i') AS mode,
       -- The default without the cast to its type
       regexp_replace(pg_get_function_arg_default(f.oid, a.number::integer), '::[a-z_ ]+$', '') AS given
FROM forms AS f JOIN pg_proc AS p USING (oid)
CROSS JOIN unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS a (type, number);
-- An argument that only refuses the name of a type as id_type
DELETE FROM arguments WHERE type = 'gputext_type_name' AND argument = 'id_type';

-- What nobody else would notice: a new function, operator or view without a page, or a page for none
DO $$
DECLARE
    lacking text;
BEGIN
    SELECT string_agg(name, ', ') INTO lacking FROM (
        SELECT f.name FROM forms AS f
        WHERE is_called_by_server AND name NOT LIKE 'gputext\_%' AND name <> 'near_duplicate_query'
          AND NOT EXISTS (SELECT FROM arguments AS a WHERE a.oid = f.oid AND a.type IN ('internal', 'cstring'))
          AND NOT EXISTS (SELECT FROM pg_operator WHERE oprcode = f.oid) AND NOT EXISTS (SELECT FROM pg_amproc WHERE amproc = f.oid)
          AND NOT EXISTS (SELECT FROM pg_type WHERE f.oid IN (typoutput, typsend))
        UNION SELECT oprname FROM members JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
        WHERE oprname NOT IN (SELECT name FROM other_pages WHERE kind = 'operator')
        UNION SELECT relname FROM members JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
        WHERE relkind = 'v' AND relname NOT IN (SELECT name FROM other_pages WHERE kind = 'view')) AS n;
    IF lacking IS NOT NULL THEN
        RAISE EXCEPTION 'scripts/reference.sql names no page for %', lacking;
    END IF;
    SELECT string_agg(name, ', ') INTO lacking FROM pages WHERE name NOT IN (SELECT name FROM forms);
    IF lacking IS NOT NULL THEN
        RAISE EXCEPTION 'scripts/reference.sql names pages for functions that do not exist: %', lacking;
    END IF;
END $$;

\echo '# Reference'
\echo
\echo 'All functions, operators, types, operator classes, views and settings of gputext. `scripts/write-reference` writes this page from the catalogue'
\echo 'of PostgreSQL; descriptions are the comments that `\\df+`, `\\do+` and `\\dT+` show in psql. The links lead to the pages that say more.'
\echo
\echo '- An *inner query* is a `SELECT` in a text, as in `near_duplicates(''SELECT id, body FROM docs'')`. Arguments that are inner queries have the type'
\echo '  `text`, and the comments say which ones they are.'
\echo '- `[...]` may be left out. `SELECT` can give arguments by their names: `threshold => 0.1`.'
\echo '- Functions with ids have a form with the argument `id_type`, a null of the type of the ids, such as `NULL::text`. `anyelement` is then this'
\echo '  type. Without it ids of integer types are returned as `bigint` ([Ids of other types](tour.md#ids-of-other-types)).'
\echo '- Functions of several rows are called in `FROM`.'
\echo
\echo '[Functions](#functions), [operators](#operators), [types](#types), [operator classes](#operator-classes), [views](#views), [settings](#settings),'
\echo '[functions that PostgreSQL and gputext call](#functions-that-postgresql-and-gputext-call).'
\echo
\echo '## Functions'


-- One line for each form: name(argument [, argument])
CREATE TEMP TABLE calls AS
SELECT f.oid, f.name, f.form, format('%s(%s)', f.name, (
    SELECT string_agg(CASE WHEN a.given IS NOT NULL THEN format(CASE WHEN a.number = 1 THEN '[%s]' ELSE ' [, %s]' END, a.argument)
                           ELSE CASE WHEN a.number = 1 THEN '' ELSE ', ' END || a.argument END, '' ORDER BY a.number)
    FROM arguments AS a WHERE a.oid = f.oid AND a.mode = 'i')) AS call
FROM forms AS f WHERE NOT f.is_called_by_server;

SELECT CASE WHEN lag(topic) OVER (ORDER BY place) IS DISTINCT FROM topic THEN E'\n### ' || topic || E'\n' ELSE '' END
       || E'\n#### ' || pages.name || E'\n\n' || described.lines || E'\n'
       || E'\n```\n' || calls.lines || E'\n```\n'
       || coalesce(E'\n| Argument | Type | Default |\n|---|---|---|\n' || given.lines || E'\n', '')
       || E'\n' || coalesce(E'| Column | Type |\n|---|---|\n' || columns.lines || E'\n\n', format(E'Returns %s. ', returned.types))
       || upper(left(attributes.line, 1)) || substr(attributes.line, 2)
FROM pages
CROSS JOIN LATERAL (
    SELECT string_agg(CASE WHEN forms > 1 THEN '- ' ELSE '' END || pg_temp.sentence(comment)
                      || CASE WHEN first = least THEN format(' More: %s', pg_temp.linked(pages.page)) ELSE '' END, E'\n' ORDER BY first) AS lines
    FROM (SELECT replace(comment, ', ids of the type of id_type', '') AS comment, min(form) AS first, min(min(form)) OVER () AS least, count(*) OVER () AS forms
          FROM forms WHERE name = pages.name AND NOT is_called_by_server GROUP BY 1) AS comments
) AS described
CROSS JOIN LATERAL (
    SELECT string_agg(call, E'\n' ORDER BY first) AS lines
    FROM (SELECT call, min(form) AS first FROM calls WHERE calls.name = pages.name GROUP BY call) AS different
) AS calls
CROSS JOIN LATERAL (
    SELECT string_agg(format('| `%s` | %s | %s |', argument, types, coalesce(pg_temp.code(given), '')), E'\n' ORDER BY place) AS lines
    FROM (SELECT argument, pg_temp.types(array_agg(type ORDER BY form)) AS types, min(given) AS given, max(number) AS place
          FROM arguments WHERE name = pages.name AND mode = 'i' AND NOT is_called_by_server GROUP BY argument) AS one
) AS given
CROSS JOIN LATERAL (
    SELECT string_agg(format('| `%s` | %s |', argument, types), E'\n' ORDER BY place) AS lines
    FROM (SELECT argument, pg_temp.types(array_agg(type ORDER BY form)) AS types, max(number) AS place
          FROM arguments WHERE name = pages.name AND mode IN ('o', 't') AND NOT is_called_by_server GROUP BY argument) AS one
) AS columns
CROSS JOIN LATERAL (
    SELECT pg_temp.types(array_agg(format_type(prorettype, NULL) ORDER BY form)) AS types FROM forms WHERE name = pages.name AND NOT is_called_by_server
) AS returned
CROSS JOIN LATERAL (
    SELECT CASE WHEN bool_or(prokind = 'a') THEN 'Aggregate, ' ELSE '' END
           || string_agg(DISTINCT CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END, ' or ')
           || CASE WHEN bool_and(proisstrict) THEN ', strict' ELSE '' END
           || ', parallel ' || string_agg(DISTINCT CASE proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END, ' or ') || '.' AS line
    FROM forms WHERE name = pages.name AND NOT is_called_by_server
) AS attributes
ORDER BY place;

\echo
\echo '## Operators'
\echo
\echo '| Operator | Left and right | Result | Description | Function | Page |'
\echo '|---|---|---|---|---|---|'
SELECT format('| %s | %s | `%s` | %s | `%s` | %s |', pg_temp.code(oprname),
              pg_temp.types(array_agg(format_type(oprleft, NULL) || CASE WHEN oprleft = oprright THEN '' ELSE ', ' || format_type(oprright, NULL) END
                                      ORDER BY format_type(oprleft, NULL) COLLATE "C")),
              format_type(oprresult, NULL), pg_temp.cell(obj_description(min(o.oid::bigint)::oid, 'pg_operator')), p.proname,
              (SELECT pg_temp.linked(page) FROM other_pages AS own WHERE own.kind = 'operator' AND own.name = oprname))
FROM members AS m JOIN pg_operator AS o ON m.classid = 'pg_operator'::regclass AND o.oid = m.objid JOIN pg_proc AS p ON p.oid = oprcode
GROUP BY oprname, oprresult, p.proname ORDER BY oprname COLLATE "C";

\echo
\echo '## Types'
\echo
\echo '| Type | Description | Page |'
\echo '|---|---|---|'
SELECT format('| `%s` | %s | %s |', typname, pg_temp.cell(obj_description(t.oid, 'pg_type')),
              (SELECT pg_temp.linked(page) FROM other_pages AS own WHERE own.kind = 'type' AND own.name = typname))
FROM members AS m JOIN pg_type AS t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
WHERE typcategory <> 'A' AND typtype <> 'c' ORDER BY typname COLLATE "C";
\echo
\echo '| Cast | Description | Used |'
\echo '|---|---|---|'
SELECT format('| `%s` to `%s` | %s | %s |', format_type(castsource, NULL), format_type(casttarget, NULL), pg_temp.cell(obj_description(c.oid, 'pg_cast')),
              CASE castcontext WHEN 'e' THEN 'explicitly' WHEN 'a' THEN 'in assignments' ELSE 'in every expression' END)
FROM members AS m JOIN pg_cast AS c ON m.classid = 'pg_cast'::regclass AND c.oid = m.objid ORDER BY format_type(castsource, NULL) COLLATE "C";

\echo
\echo '## Operator classes'
\echo
\echo '| Operator class | Access method | Type | Default | Operators | Description |'
\echo '|---|---|---|---|---|---|'
SELECT format('| `%s` | `%s` | `%s` | %s | %s | %s |', opcname, amname, format_type(opcintype, NULL), CASE WHEN opcdefault THEN 'yes' ELSE 'no' END,
              coalesce((SELECT string_agg(pg_temp.code(oprname), ', ' ORDER BY amopstrategy) FROM pg_amop JOIN pg_operator AS o ON o.oid = amopopr
                        WHERE amopfamily = opcfamily AND amoplefttype = opcintype), ''), pg_temp.cell(obj_description(c.oid, 'pg_opclass')))
FROM members AS m JOIN pg_opclass AS c ON m.classid = 'pg_opclass'::regclass AND c.oid = m.objid JOIN pg_am AS a ON a.oid = opcmethod
ORDER BY amname COLLATE "C", opcname COLLATE "C";
\echo
SELECT format('The access method `%s`: %s. More: %s', amname, obj_description(a.oid, 'pg_am'), pg_temp.linked('near-duplicate-index.md#the-index'))
FROM members AS m JOIN pg_am AS a ON m.classid = 'pg_am'::regclass AND a.oid = m.objid;

\echo
\echo '## Views'
SELECT format(E'\n### %s\n\n%s More: %s\n\n| Column | Type |\n|---|---|\n', relname, pg_temp.sentence(obj_description(c.oid, 'pg_class')), pg_temp.linked(page))
       || (SELECT string_agg(format('| `%s` | `%s` |', attname, format_type(atttypid, NULL)), E'\n' ORDER BY attnum)
           FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
FROM members AS m JOIN pg_class AS c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
LEFT JOIN other_pages AS own ON own.kind = 'view' AND own.name = relname WHERE relkind = 'v' ORDER BY relname COLLATE "C";

\echo
\echo '## Settings'
\echo
\echo 'Any role may set a setting of the context *any role*. *Superusers* also stands for roles with the right `SET` on the setting, and *server* for'
\echo '`postgresql.conf` and its like, where `SELECT pg_reload_conf()` makes it valid. [Settings](settings.md) has the effects and what they count.'
\echo
\echo '| Setting | Type | Default | Range | Who | Description | Page |'
\echo '|---|---|---|---|---|---|---|'
CREATE FUNCTION pg_temp.with_unit(value text, unit text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN unit IS DISTINCT FROM 'kB' OR value::bigint <= 0 THEN value
                WHEN value::bigint % 1048576 = 0 THEN value::bigint / 1048576 || 'GB' WHEN value::bigint % 1024 = 0 THEN value::bigint / 1024 || 'MB'
                ELSE value || 'kB' END $$;
SELECT format('| `%s` | %s | %s | %s | %s | %s | %s |', name, vartype,
              CASE WHEN context <> 'internal' AND boot_val <> '' THEN pg_temp.code(pg_temp.with_unit(boot_val, unit)) ELSE '' END,
              CASE WHEN enumvals IS NOT NULL THEN array_to_string(ARRAY(SELECT pg_temp.code(value) FROM unnest(enumvals) AS value), ', ')
                   WHEN min_val IS NOT NULL THEN format('%s to %s', pg_temp.with_unit(min_val, unit), pg_temp.with_unit(max_val, unit)) ELSE '' END,
              CASE context WHEN 'user' THEN 'any role' WHEN 'superuser' THEN 'superusers' WHEN 'sighup' THEN 'server' WHEN 'internal' THEN 'nobody' ELSE context END,
              pg_temp.cell(concat_ws(' ', short_desc, extra_desc)),
              coalesce((SELECT pg_temp.linked(page) FROM other_pages AS own WHERE own.kind = 'setting' AND own.name = s.name), pg_temp.linked('settings.md')))
FROM pg_settings AS s WHERE name LIKE 'gputext.%' ORDER BY name COLLATE "C";

\echo
\echo '## Functions that PostgreSQL and gputext call'
\echo
\echo 'No statement needs to call these functions. They belong to types, operators, operator classes and views, or functions of gputext call them. Another'
\echo 'release may change or remove them.'
\echo
\echo '| Function | Result | Description |'
\echo '|---|---|---|'
SELECT format('| `%s(%s)` | `%s` | %s |', f.name, coalesce((
                  SELECT string_agg(concat_ws(' ', nullif(argument, ''), type, 'DEFAULT ' || given), ', ' ORDER BY number)
                  FROM arguments AS a WHERE a.oid = f.oid AND mode = 'i'), ''),
              coalesce((SELECT string_agg(argument || ' ' || type, ', ' ORDER BY number) FROM arguments AS a WHERE a.oid = f.oid AND mode IN ('o', 't')),
                       format_type(prorettype, NULL)), pg_temp.cell(comment))
FROM forms AS f WHERE is_called_by_server ORDER BY f.name COLLATE "C", f.form;
