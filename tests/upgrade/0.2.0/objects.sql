-- What 0.2.0 adds to the tables of 0.1.0: indexes for near-duplicates, exclusion constraints, stored conditions

\ir ../0.1.0/objects.sql

CREATE INDEX documents_near ON documents USING gputext (body);
CREATE TABLE unlike (
    id bigint PRIMARY KEY,
    body text,
    bytes bytea,
    EXCLUDE USING gputext (body WITH ~=) WITH (threshold = 0.2),
    EXCLUDE USING gputext (bytes WITH ~=)
);
INSERT INTO unlike SELECT id, body, body::bytea FROM documents WHERE id <= 100 ON CONFLICT DO NOTHING;
CREATE TABLE conditions (condition near_duplicate_query CHECK (NOT 'forbidden' @~ condition), bytes_condition near_duplicate_query);
INSERT INTO conditions SELECT near_duplicate_query(body, 0.2), near_duplicate_query(body::bytea, 0.1) FROM documents WHERE id = 9;

CREATE VIEW near_a_condition AS SELECT id FROM documents, conditions WHERE body @~ condition;
CREATE VIEW nearest_places AS
SELECT a.id, b.id AS other, a.place <-> b.place AS distance FROM vectors a, vectors b WHERE a.id < 5 AND b.id < 30;
CREATE MATERIALIZED VIEW near_groups AS
SELECT * FROM groups_of('SELECT id1, id2 FROM public.near_duplicates(''SELECT id, body FROM public.documents'')');
CREATE FUNCTION is_near(a text, b text) RETURNS boolean LANGUAGE sql STABLE RETURN a ~= b;
