-- The threshold of an exclusion constraint is its index's: whatever the session's is, and whatever rebuilds the index

SET gputext.near_duplicate_threshold = 0.2;
CREATE TABLE docs (id integer PRIMARY KEY, n integer DEFAULT 0, body text, CONSTRAINT none_near EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 0.01));
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'none_near';
-- At 0.01, 0.03 is not near; 0.005 is.
INSERT INTO docs (id, body) VALUES (1, repeat('one two three ', 5)), (2, repeat('one two three ', 5) || 'four');
INSERT INTO docs (id, body) VALUES (3, repeat('one two three ', 5) || '!');
INSERT INTO docs (id, body) VALUES (3, repeat('one two three ', 5) || '!') ON CONFLICT DO NOTHING;
SELECT a.id, b.id, round(edit_rate(a.body, b.body)::numeric, 3) FROM docs a, docs b WHERE a.id < b.id;

-- Queries have the session's, by the same index.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM docs WHERE body ~= repeat('one two three ', 5);
SET gputext.near_duplicate_threshold = 0;
SELECT count(*) FROM docs WHERE body ~= repeat('one two three ', 5);
INSERT INTO docs (id, body) VALUES (3, repeat('one two three ', 5) || '!');
RESET enable_bitmapscan;
RESET enable_seqscan;

-- Each of these leaves the constraint as it is, at any threshold of the session.
SET gputext.near_duplicate_threshold = 0.45;
REINDEX INDEX none_near;
REINDEX TABLE docs;
SET client_min_messages = error;
REINDEX TABLE CONCURRENTLY docs;
RESET client_min_messages;
VACUUM FULL docs;
CLUSTER docs USING docs_pkey;
UPDATE docs SET n = n + 1;
UPDATE docs SET id = id + 10;
ALTER TABLE docs ALTER n TYPE bigint;
ALTER TABLE docs ALTER body TYPE varchar(200);
ALTER TABLE docs ALTER body TYPE varchar(300);
ALTER TABLE docs ALTER body TYPE text;
CREATE TABLE alike (LIKE docs INCLUDING ALL);
INSERT INTO alike SELECT * FROM docs;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'alike'::regclass AND contype = 'x';
TRUNCATE alike;
INSERT INTO alike SELECT * FROM docs;
INSERT INTO alike (id, body) VALUES (3, repeat('one two three ', 5) || '!');
SELECT gputext_index_check('none_near', true);
DROP TABLE alike;

-- Rows were compared at the threshold that the index has, so that it cannot be changed under them.
ALTER INDEX none_near SET (threshold = 0.1);
ALTER INDEX none_near SET (threshold = 0.001);
ALTER INDEX none_near RESET (threshold);
ALTER INDEX none_near SET (threshold = 0.01);
ALTER INDEX none_near SET (bins = 64);
ALTER INDEX none_near RENAME TO still_none_near;
SELECT reloptions FROM pg_class WHERE relname = 'still_none_near';
INSERT INTO docs (id, body) VALUES (3, repeat('one two three ', 5) || '!');
ALTER TABLE docs DROP CONSTRAINT still_none_near;
ALTER TABLE docs ADD CONSTRAINT none_near EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 0.1);
ALTER TABLE docs ADD CONSTRAINT none_near EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 0.02);
DROP TABLE docs;

-- Two constraints of one column, and two thresholds
RESET gputext.near_duplicate_threshold;
CREATE TABLE docs (id integer, body text, draft boolean,
    CONSTRAINT exact EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 0) WHERE (draft),
    CONSTRAINT rough EXCLUDE USING gputext (lower(body) WITH ~=) WITH (threshold = 0.2) WHERE (NOT draft));
INSERT INTO docs VALUES (1, 'It was a bright cold day in April', true), (2, 'It was a bright cold day in april', true), (3, 'The clocks were striking thirteen', false);
INSERT INTO docs VALUES (4, 'It was a bright cold day in April', true);
INSERT INTO docs VALUES (4, 'THE CLOCK STRUCK THIRTEEN', false);
INSERT INTO docs VALUES (4, 'THE CLOCK STRUCK', false);
UPDATE docs SET draft = true WHERE id = 3;
UPDATE docs SET body = 'It was a bright cold day in April' WHERE id = 3;
DROP TABLE docs;

-- Deferred, of an expression, of partitions, and with tables that inherit
CREATE TABLE docs (id integer, body text, EXCLUDE USING gputext (upper(body) WITH ~=) WITH (threshold = 0.01) DEFERRABLE INITIALLY DEFERRED);
SET gputext.near_duplicate_threshold = 0.3;
BEGIN;
INSERT INTO docs VALUES (1, 'It was a bright cold day in April'), (2, 'It was a bright cold day in April!');
INSERT INTO docs VALUES (3, 'it was a bright cold day in april');
DELETE FROM docs WHERE id = 1;
COMMIT;
INSERT INTO docs VALUES (4, 'IT was a bright cold day in April!');
CREATE TABLE parts (id integer, body text) PARTITION BY LIST (id);
CREATE TABLE parts_1 PARTITION OF parts (EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 0.01)) FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts (EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 0.2)) FOR VALUES IN (2);
INSERT INTO parts VALUES (1, 'It was a bright cold day in April'), (1, 'It was a bright cold day in April!'), (2, 'It was a bright cold day in April');
INSERT INTO parts VALUES (2, 'It was a bright cold day in May');
UPDATE parts SET id = 2;
CREATE TABLE heirs () INHERITS (docs);
INSERT INTO heirs TABLE docs;
INSERT INTO heirs TABLE docs;
SELECT count(*) FROM docs;
DROP TABLE docs, parts, heirs;
RESET gputext.near_duplicate_threshold;

-- Old near-duplicates stay, and new ones are refused: those that are copies of others are left out.
CREATE TABLE docs (id integer, body text);
INSERT INTO docs VALUES (1, 'It was a bright cold day in April'), (2, 'It was a bright cold day in april'), (3, 'The clocks were striking thirteen');
ALTER TABLE docs ADD is_copy boolean NOT NULL DEFAULT false;
UPDATE docs SET is_copy = true FROM near_duplicate_groups('SELECT id, body FROM docs', threshold => 0.05) AS g WHERE docs.id = g.id AND g.id <> g.group_id;
ALTER TABLE docs ADD EXCLUDE USING gputext (body WITH ~=) WHERE (NOT is_copy);
INSERT INTO docs VALUES (4, 'It was a bright cold day in April!');
INSERT INTO docs VALUES (4, 'All happy families are alike');
SELECT id, is_copy FROM docs ORDER BY id;
DROP TABLE docs;

-- What the option takes, and where
CREATE TABLE docs (id integer, body text);
CREATE INDEX ON docs USING gputext (body) WITH (threshold = 0.1);
CREATE INDEX docs_body ON docs USING gputext (body);
ALTER INDEX docs_body SET (threshold = 0.1);
ALTER INDEX docs_body SET (threshold = 0.05);
REINDEX INDEX docs_body;
ALTER TABLE docs ADD EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 0.5);
\set VERBOSITY terse
ALTER TABLE docs ADD EXCLUDE USING gputext (body WITH ~=) WITH (threshold = -0.1);
\set VERBOSITY default
ALTER TABLE docs ADD EXCLUDE USING gputext (body WITH ~=) WITH (threshold = near);
ALTER TABLE docs ADD EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 'NaN');
DROP TABLE docs;
