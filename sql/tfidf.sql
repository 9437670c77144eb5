-- tfidf

SET default_text_search_config = 'pg_catalog.english';
CREATE TABLE articles (id bigint PRIMARY KEY, lang text, body text);
INSERT INTO articles VALUES
    (1, 'en', 'How to boil an egg: boil the water, add the egg.'),
    (2, 'en', 'Poaching eggs. The water must not boil, or the eggs break.'),
    (3, 'en', 'Changing a tyre on the road, not in the water'),
    (4, 'de', 'ein ei kochen: das wasser kochen'),
    (5, 'pt', 'ferver a água e juntar os ovos'),
    (6, 'ja', '卵 を 茹でる には 水 を 沸かし'),
    (7, 'en', ''),
    (8, 'en', NULL);

-- Texts in the order of the inner query, their terms by weight, then by their bytes
SELECT id, term, round(weight::numeric, 6) AS weight FROM tfidf('SELECT id, body FROM articles WHERE lang = ''en'' ORDER BY id DESC');
SELECT id, term, round(weight::numeric, 6) AS weight
FROM tfidf(items => 'SELECT id, body FROM articles ORDER BY id', config => 'simple', min_document_frequency => 2);
SELECT term FROM tfidf('SELECT id, body FROM articles WHERE id IN (4, 7)', config => 'german');
SELECT term FROM tfidf('SELECT id, body FROM articles WHERE id IN (5, 7)', config => 'portuguese');
SELECT term, round(weight / ln(2)) AS count FROM tfidf('SELECT id, body FROM articles WHERE id IN (6, 7)', config => 'simple');

-- Against SQL
WITH counts AS (
    SELECT id, lexeme AS term, cardinality(positions) AS count FROM articles, unnest(to_tsvector(body)) WHERE body IS NOT NULL
), expected AS (
    SELECT id, term, count * ln(7.0::double precision / count(*) OVER (PARTITION BY term)) AS weight FROM counts
)
SELECT count(*) AS terms, bool_and(abs(e.weight - t.weight) <= 1e-15 * t.weight) AS equal
FROM expected e FULL JOIN tfidf('SELECT id, body FROM articles') t USING (id, term);
-- Terms of weight 0 are left out: those that all texts have, or too few.
SELECT * FROM tfidf($$VALUES (1::bigint, 'egg water'), (2, 'egg')$$);
SELECT * FROM tfidf($$VALUES (1::bigint, 'egg water'), (2, 'egg')$$, min_document_frequency => 2);
SELECT * FROM tfidf($$SELECT 1::bigint, 'egg water'$$);
SELECT * FROM tfidf('SELECT id, body FROM articles WHERE false');
SELECT * FROM tfidf($$VALUES (1::bigint, ''), (2, 'the')$$);
-- tsvector, ids of other types, rows that occur twice
SELECT id, term, round(weight::numeric, 6) AS weight FROM tfidf('SELECT id, to_tsvector(body) FROM articles WHERE id IN (1, 3) ORDER BY id');
SELECT * FROM tfidf($$VALUES ('a', 'egg'), ('b', 'tyre'), ('a', 'egg')$$, NULL::text, 'simple', 2);
SELECT id, term FROM tfidf('SELECT md5(id::text)::uuid, body FROM articles WHERE id IN (5, 7)', id_type => NULL::uuid, config => 'simple') ORDER BY term LIMIT 1;
-- The weights are those of gpu_knn: a cosine of them is its distance.
WITH weights AS (SELECT * FROM tfidf('SELECT id, body FROM articles')),
norms AS (SELECT id, sqrt(sum(weight * weight)) AS norm FROM weights GROUP BY id)
SELECT n.query_id, n.item_id, abs(n.distance - d.distance) < 1e-15 AS equal
FROM gpu_knn('SELECT id, body FROM articles', 'SELECT id, body FROM articles', 9, exclude_self => true) n
FULL JOIN (SELECT a.id AS query_id, b.id AS item_id, 1 - sum(a.weight * b.weight) / min(na.norm * nb.norm) AS distance
           FROM weights a JOIN weights b USING (term) JOIN norms na ON na.id = a.id JOIN norms nb ON nb.id = b.id
           WHERE a.id <> b.id GROUP BY a.id, b.id) d USING (query_id, item_id)
ORDER BY 1, 2;
-- Nothing of it needs a device.
SET gputext.device = gpu;
SELECT count(*) FROM tfidf('SELECT id, body FROM articles');
RESET gputext.device;

-- Errors

SELECT * FROM tfidf(NULL);
SELECT * FROM tfidf('TABLE nothing');
SELECT * FROM tfidf('TABLE articles');
SELECT * FROM tfidf('SELECT id, id FROM articles');
SELECT * FROM tfidf('SELECT id, ''{1}''::real[] FROM articles');
SELECT * FROM tfidf('SELECT id, ''{1}''::integer[], ''{1}''::real[] FROM articles');
SELECT * FROM tfidf('SELECT lang, body FROM articles');
SELECT * FROM tfidf('SELECT id, body FROM articles', config => NULL);
SELECT * FROM tfidf('SELECT id, body FROM articles', config => 4::regconfig);
SELECT * FROM tfidf('SELECT id, body FROM articles', min_document_frequency => NULL);
SELECT * FROM tfidf('SELECT id, body FROM articles', min_document_frequency => -1);
-- A configuration without its name may also be an id of some type.
\set VERBOSITY terse
SELECT * FROM tfidf('SELECT id, body FROM articles', 'english');
\set VERBOSITY default
SELECT count(*) FROM tfidf('SELECT id, body FROM articles', 'english'::regconfig);

-- Rows of one id stay in the order of the query: of ids that are near each other, far apart, or of another type.
CREATE TABLE orders (ids text, items text);
INSERT INTO orders VALUES ('near', 'SELECT i * 7919 % 3, ''w'' || i FROM generate_series(1, 200) AS i'),
    ('far apart', 'SELECT (i * 7919 % 3) * 10000000000000, ''w'' || i FROM generate_series(1, 200) AS i');
SELECT ids, count(*), count(*) FILTER (WHERE n < before) AS out_of_order
FROM orders, LATERAL (SELECT substr(term, 2)::int AS n, lag(substr(term, 2)::int) OVER (PARTITION BY item_id ORDER BY place) AS before
                      FROM tfidf(items, min_document_frequency => 1) WITH ORDINALITY AS t (item_id, term, weight, place)) AS rows
GROUP BY ids ORDER BY ids;
SELECT count(*), count(*) FILTER (WHERE n < before) AS out_of_order
FROM (SELECT substr(term, 2)::int AS n, lag(substr(term, 2)::int) OVER (PARTITION BY item_id ORDER BY place) AS before
      FROM tfidf('SELECT (i * 7919 % 3)::text, ''w'' || i FROM generate_series(1, 200) AS i', NULL::text, min_document_frequency => 1) WITH ORDINALITY AS t (item_id, term, weight, place)) AS rows;
DROP TABLE orders;

DROP TABLE articles;
