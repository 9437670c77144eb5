-- Exclusion constraints with the operator ~=: a table without near-duplicates

CREATE TABLE docs (id integer PRIMARY KEY, day integer DEFAULT 1, body text, CONSTRAINT no_near_duplicates EXCLUDE USING gputext (body WITH ~=));
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'no_near_duplicates';
INSERT INTO docs (id, body) VALUES (1, 'It was a bright cold day in April.'), (2, 'The clocks were striking thirteen.'), (3, NULL), (4, NULL), (5, '');
INSERT INTO docs (id, body) VALUES (6, 'It was a bright cold day in april.');
INSERT INTO docs (id, body) VALUES (6, '');
INSERT INTO docs (id, body) VALUES (6, 'a new document'), (7, 'a new document!');
INSERT INTO docs (id, body) VALUES (6, NULL);
-- At the threshold, one edit in 10 + 10 letters, and beyond it
INSERT INTO docs (id, body) VALUES (10, 'abcdefghij');
INSERT INTO docs (id, body) VALUES (11, 'abcdefghiX');
INSERT INTO docs (id, body) VALUES (11, 'abcdefghXX');
DELETE FROM docs WHERE id = 11;
-- What a deleted row had may come again, as may what a row that is changed had.
DELETE FROM docs WHERE id = 10;
INSERT INTO docs (id, body) VALUES (10, 'abcdefghiX');
UPDATE docs SET body = 'abcdefghij' WHERE id = 10;
UPDATE docs SET body = 'the clocks were striking thirteen.' WHERE id = 10;
UPDATE docs SET day = 2;
UPDATE docs SET body = body || '!' WHERE id < 3;

-- ON CONFLICT: rows that are near to others are left out, those of the same statement, too.
INSERT INTO docs (id, body) VALUES (20, 'It was a bright cold day in April!'), (21, 'Big Brother is watching you'), (22, 'Big Brother is watching you.')
ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO docs (id, body) VALUES (23, 'War is peace'), (24, 'It was a bright cold day in April'), (25, NULL)
ON CONFLICT ON CONSTRAINT no_near_duplicates DO NOTHING RETURNING id;
INSERT INTO docs (id, body) VALUES (23, 'Freedom is slavery') ON CONFLICT ON CONSTRAINT no_near_duplicates DO NOTHING;
INSERT INTO docs (id, body) VALUES (26, 'War is peace') ON CONFLICT (id) DO NOTHING;
INSERT INTO docs (id, body) VALUES (26, 'War is peace') ON CONFLICT (body) DO NOTHING;
INSERT INTO docs (id, body) VALUES (26, 'War is peace') ON CONFLICT ON CONSTRAINT no_near_duplicates DO UPDATE SET day = 3;

COPY docs (id, body) FROM stdin;
30	Ignorance is strength
31	Ignorance is strength.
\.
COPY docs (id, body) FROM stdin;
30	Ignorance is strength
\.
-- A transaction goes on after a savepoint.
BEGIN;
INSERT INTO docs (id, body) VALUES (40, 'Who controls the past controls the future');
SAVEPOINT before;
INSERT INTO docs (id, body) VALUES (41, 'Who controls the past controls the futures');
ROLLBACK TO before;
INSERT INTO docs (id, body) VALUES (41, 'Who controls the present controls the past');
COMMIT;
SELECT id, day, body FROM docs ORDER BY id;
SELECT count(*) AS near FROM docs a JOIN docs b ON a.body ~= b.body AND a.id < b.id;
-- The constraint has a threshold of its own; that of the session is for queries.
SET gputext.near_duplicate_threshold = 0.3;
SELECT count(*) AS near FROM docs a JOIN docs b ON a.body ~= b.body AND a.id < b.id;
INSERT INTO docs (id, body) VALUES (50, 'War is piece or');
INSERT INTO docs (id, body) VALUES (51, 'War is piece or ');
SET gputext.near_duplicate_threshold = 0;
INSERT INTO docs (id, body) VALUES (51, 'War is piece or ');
UPDATE docs SET day = 4;
RESET gputext.near_duplicate_threshold;

-- The index answers searches, too.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT id FROM docs WHERE is_near_duplicate(body, 'War is peace', 0.2);
SELECT id FROM docs WHERE is_near_duplicate(body, 'War is peace', 0.2) ORDER BY id;
RESET enable_bitmapscan;
RESET enable_seqscan;
VACUUM FULL docs;
INSERT INTO docs (id, body) VALUES (60, 'War is peace');
REINDEX INDEX no_near_duplicates;
INSERT INTO docs (id, body) VALUES (60, 'War is peace');

-- Whoever may not read the table is not told what it has.
CREATE ROLE regress_gputext_writer;
GRANT INSERT ON docs TO regress_gputext_writer;
SET ROLE regress_gputext_writer;
INSERT INTO docs (id, body) VALUES (60, 'War is peace');
RESET ROLE;
DROP TABLE docs;
DROP ROLE regress_gputext_writer;

-- Checked at the end of the transaction: two rows may change places meanwhile.
CREATE TABLE docs (id integer, body text, EXCLUDE USING gputext (body WITH ~=) DEFERRABLE INITIALLY IMMEDIATE);
INSERT INTO docs VALUES (1, 'It was a bright cold day in April.'), (2, 'The clocks were striking thirteen.');
UPDATE docs SET body = (SELECT body FROM docs d WHERE d.id = 3 - docs.id);
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO docs VALUES (3, 'It was a bright cold day in April');
DELETE FROM docs WHERE id = 2;
COMMIT;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO docs VALUES (4, 'It was a bright cold day in April');
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
INSERT INTO docs VALUES (4, 'It was a bright cold day in April') ON CONFLICT DO NOTHING;
SELECT * FROM docs ORDER BY id;
DROP TABLE docs;

-- Of some rows, and of an expression
CREATE TABLE docs (id integer, draft boolean, body text, EXCLUDE USING gputext (lower(body) WITH ~=) WITH (bins = 64) WHERE (NOT draft));
INSERT INTO docs VALUES (1, true, 'It was a bright cold day in April.'), (2, true, 'It was a bright cold day in April'), (3, false, 'It was a bright cold day in April');
INSERT INTO docs VALUES (4, false, 'IT WAS A BRIGHT COLD DAY IN APRIL');
UPDATE docs SET draft = false WHERE id = 1;
DROP TABLE docs;

-- Rows that are there already
CREATE TABLE docs AS SELECT i AS id, repeat(md5((i / 2)::text), 3) || i AS body FROM generate_series(2, 201) AS i;
ALTER TABLE docs ADD CONSTRAINT none_near EXCLUDE USING gputext (body WITH ~=);
DELETE FROM docs WHERE id % 2 = 0;
ALTER TABLE docs ADD CONSTRAINT none_near EXCLUDE USING gputext (body WITH ~=);
\set VERBOSITY terse
INSERT INTO docs SELECT 300, body FROM docs WHERE id = 11;
\set VERBOSITY default
-- With many rows: of 100 new ones and 100 that are near to others, the former
INSERT INTO docs SELECT i, repeat(md5((i / 2)::text), 3) || i FROM generate_series(102, 301) AS i ORDER BY i % 2 DESC, i ON CONFLICT DO NOTHING;
SELECT count(*), min(id), max(id), count(*) FILTER (WHERE id % 2 = 1) AS first FROM docs;
SELECT count(*) AS near FROM docs a JOIN docs b ON is_near_duplicate(a.body, b.body, 0.05) AND a.id < b.id;
DROP TABLE docs;

-- bytea
CREATE TABLE images (bytes bytea, EXCLUDE USING gputext (bytes WITH ~=));
INSERT INTO images VALUES ('\x0001020304050607080900'), ('\x00010203040506070809ff');
DROP TABLE images;

-- The same bytes are near in characters alone, in whichever order they are compared.
CREATE TABLE docs (body text, EXCLUDE USING gputext (body WITH ~=));
CREATE TABLE images (bytes bytea, EXCLUDE USING gputext (bytes WITH ~=));
INSERT INTO docs VALUES (repeat('é', 10));
INSERT INTO images VALUES (repeat('é', 10)::bytea);
INSERT INTO docs VALUES ('漢' || repeat('é', 9)) ON CONFLICT DO NOTHING;
INSERT INTO images VALUES (('漢' || repeat('é', 9))::bytea) ON CONFLICT DO NOTHING;
INSERT INTO docs VALUES ('漢' || repeat('é', 9)) ON CONFLICT DO NOTHING;
SELECT (SELECT count(*) FROM docs) AS texts, (SELECT count(*) FROM images) AS images;
DROP TABLE docs, images;

-- What it cannot do
\set VERBOSITY sqlstate
CREATE TABLE docs (id integer, body text, EXCLUDE USING gputext (body WITH ~=, id WITH =));
CREATE TABLE docs (id integer, body text, EXCLUDE USING gputext (body WITH =));
CREATE TABLE docs (id integer, body text, EXCLUDE USING gputext (body WITH @~));
CREATE TABLE docs (id integer, body text, EXCLUDE USING gputext (id WITH =));
CREATE TABLE docs (id integer, body text, EXCLUDE USING gist (body WITH ~=));
CREATE TABLE docs (id integer, body text, EXCLUDE USING gputext (body WITH ~=)) PARTITION BY LIST (id);
-- A partition can have one of its own.
\set VERBOSITY default
CREATE TABLE docs (id integer, body text) PARTITION BY LIST (id);
CREATE TABLE docs_1 PARTITION OF docs (EXCLUDE USING gputext (body WITH ~=)) FOR VALUES IN (1);
CREATE TABLE docs_2 PARTITION OF docs (EXCLUDE USING gputext (body WITH ~=)) FOR VALUES IN (2);
INSERT INTO docs VALUES (1, 'It was a bright cold day in April'), (2, 'It was a bright cold day in April');
INSERT INTO docs VALUES (2, 'It was a bright cold day in April!');
DROP TABLE docs;
