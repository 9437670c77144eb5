-- knn_recall without pgvector: what it refuses. The test knn_recall_pgvector has indexes that it is for.

CREATE TABLE places (id integer PRIMARY KEY, place point, vector real[]);
CREATE INDEX places_place ON places USING gist (place);
CREATE TABLE parts (id integer, place point) PARTITION BY RANGE (id);
CREATE INDEX parts_place ON parts USING gist (place);
CREATE VIEW view_of_places AS TABLE places;
SELECT * FROM knn_recall('places', 'SELECT id, vector FROM places', 10);
SELECT * FROM knn_recall('view_of_places', 'SELECT id, vector FROM places', 10);
SELECT * FROM knn_recall('places_pkey', 'SELECT id, vector FROM places', 10);
SELECT * FROM knn_recall('places_place', 'SELECT id, vector FROM places', 10);
SELECT * FROM knn_recall('parts_place', 'SELECT id, vector FROM places', 10);
SELECT * FROM knn_recall(3::regclass, 'SELECT id, vector FROM places', 10);
SELECT * FROM knn_recall('places_place', 'SELECT id, vector FROM places', 0);
SELECT * FROM knn_recall('places_place', NULL, 10);
SELECT * FROM knn_recall(NULL, 'SELECT id, vector FROM places', 10);
SELECT * FROM knn_recall('no_index', 'SELECT id, vector FROM places', 10);
DROP VIEW view_of_places;
DROP TABLE places, parts;
