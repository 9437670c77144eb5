-- The type ctph and ctph_signature

-- A signature is a block size, the letters of the document's pieces at that block size, and those
-- at twice the block size. A document without a place to cut is one piece at any block size.
SELECT ctph_signature('');
SELECT ctph_signature('a');
SELECT ctph_signature('The quick brown fox jumps over the lazy dog.', 4);
SELECT ctph_signature(repeat('The quick brown fox jumps over the lazy dog. ', 20), 10);

-- A text and its bytes have one signature, in the letters of the longest signature that fits.
SELECT ctph_signature('The quick brown fox'::text) = ctph_signature('The quick brown fox'::bytea)
       AS same;
SELECT ctph_signature('The quick brown fox') = ctph_signature('The quick brown fox', 100)
       AS default_is_100;
SELECT n AS max_length,
       bool_and(length(split_part(s::text, ':', 2)) <= n) AS first_fits,
       bool_and(length(split_part(s::text, ':', 3)) <= length(split_part(s::text, ':', 2)))
         AS second_is_not_longer
FROM (VALUES (1), (2), (10), (100), (1024)) AS lengths(n),
     generate_series(0, 4000, 500) AS size,
     LATERAL (SELECT string_agg(md5(i::text), '' ORDER BY i) AS body
              FROM generate_series(1, size / 32) AS i) AS documents,
     LATERAL ctph_signature(coalesce(body, ''), n) AS s
GROUP BY n ORDER BY n;

-- An edit changes the letters around it, and no others.
SELECT ctph_signature(string_agg(i || ' ', '' ORDER BY i), 32) AS document,
       ctph_signature(string_agg(CASE i WHEN 150 THEN 'edited' ELSE i::text END || ' ', ''
                                 ORDER BY i), 32) AS edited
FROM generate_series(1, 300) AS i \gset
\echo :document
\echo :edited

SELECT ctph_signature('a', 0);
SELECT ctph_signature('a', -1);
SELECT ctph_signature('a', 1025);
SELECT ctph_signature('a'::bytea, 0);
SELECT ctph_signature(NULL::text) IS NULL AS text,
       ctph_signature(NULL::bytea) IS NULL AS bytea,
       ctph_signature('a', NULL) IS NULL AS max_length;

-- Text form

SELECT '1::'::ctph, '2:abc:d'::ctph, '8589934592:A+/:'::ctph, '4:abc:def'::ctph;
SELECT ('1:' || repeat('a', 1024) || ':' || repeat('b', 1024))::ctph::text =
       '1:' || repeat('a', 1024) || ':' || repeat('b', 1024) AS longest;

SELECT ''::ctph;
SELECT 'abc'::ctph;
SELECT '1'::ctph;
SELECT '1:abc'::ctph;
SELECT ':abc:d'::ctph;
SELECT '0:abc:d'::ctph;
SELECT '3:abc:d'::ctph;
SELECT '-1:abc:d'::ctph;
SELECT '+1:abc:d'::ctph;
SELECT '01:abc:d'::ctph;
SELECT ' 1:abc:d'::ctph;
SELECT '1 :abc:d'::ctph;
SELECT '1.0:abc:d'::ctph;
SELECT '17179869184:abc:d'::ctph;
SELECT '18446744073709551616:abc:d'::ctph;
SELECT '340282366920938463463374607431768211456:abc:d'::ctph;
SELECT '1:abc:d '::ctph;
SELECT '1:abc:d:e'::ctph;
SELECT '1:a-c:d'::ctph;
SELECT '1:abc:é'::ctph;
SELECT '1:a:bc'::ctph;
SELECT '1::a'::ctph;

-- Too many letters: of the message only what is new.
DO $$
DECLARE
    detail text;
BEGIN
    PERFORM ('1:' || repeat('a', 1025) || ':')::ctph;
EXCEPTION WHEN invalid_text_representation THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '%', detail;
END $$;
DO $$
DECLARE
    detail text;
BEGIN
    PERFORM repeat('9', 100000)::ctph;
EXCEPTION WHEN invalid_text_representation THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '%', detail;
END $$;

-- Binary form: the level, as the block size is 2^level; the length of the first part; all letters

SELECT ctph_send('1::'), ctph_send('2:abc:d'), ctph_send('8589934592:a:');

CREATE TABLE signatures (id int PRIMARY KEY, signature ctph);
INSERT INTO signatures VALUES
    (1, '1::'), (2, '2:abc:d'), (3, '4:abc:def'), (4, '8589934592:A+/:'), (5, NULL),
    (6, ('1:' || repeat('a', 1024) || ':' || repeat('b', 1024))::ctph),
    (7, ctph_signature(repeat('The quick brown fox jumps over the lazy dog. ', 99)));

-- COPY BINARY calls ctph_recv: here from a program that prints one row with the given column.
CREATE FUNCTION receive(field bytea) RETURNS ctph LANGUAGE plpgsql AS $$
DECLARE
    copy bytea := '\x5047434f50590aff0d0a00'::bytea    -- PGCOPY\n\377\r\n\0
        || '\x0000000000000000'::bytea                 -- flags, length of the header's extension
        || '\x0001'::bytea                             -- columns
        || int4send(octet_length(field)) || field
        || '\xffff'::bytea;                            -- the end
    octal text := '';
    received ctph;
    detail text;
BEGIN
    FOR i IN 0 .. octet_length(copy) - 1 LOOP
        octal := octal || format('\%s%s%s', get_byte(copy, i) / 64, get_byte(copy, i) / 8 % 8,
                                 get_byte(copy, i) % 8);
    END LOOP;
    CREATE TEMPORARY TABLE one_value (signature ctph);
    EXECUTE format('COPY one_value FROM PROGRAM %L (FORMAT binary)', format('printf ''%s''', octal));
    received := (SELECT signature FROM one_value);
    DROP TABLE one_value;
    RETURN received;
EXCEPTION WHEN invalid_binary_representation OR protocol_violation THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '% %: %', SQLSTATE, SQLERRM, detail;
    RETURN NULL;
END $$;

SELECT id, receive(ctph_send(signature)) = signature AS equal
FROM signatures WHERE signature IS NOT NULL ORDER BY id;
SELECT receive('\x000000') AS empty, receive('\x01000361626364') AS four_letters,
       receive('\x21000161') AS largest_block_size;
SELECT receive('') AS nothing;
SELECT receive('\x00') AS no_length;
SELECT receive('\x0000') AS half_a_length;
SELECT receive('\x22000161') AS block_size_too_large;
SELECT receive('\xff000161') AS block_size_much_too_large;
SELECT receive('\x00000261') AS cut_short;
SELECT receive('\x000001616263') AS second_part_longer;
SELECT receive('\x00000100') AS not_a_letter;
SELECT receive('\x00ffff61') AS huge_length;
SELECT receive('\x00'::bytea || '\x0401' || convert_to(repeat('a', 1025), 'UTF8')) AS part_too_long;
SELECT receive('\x00'::bytea || '\x0400' || convert_to(repeat('a', 2049), 'UTF8')) AS too_long;

-- Order: by block size as a number, then the first parts, then the second, byte by byte

SELECT signature
FROM (VALUES ('16:a:a'), ('2:b:'), ('2:a:b'), ('2:a:a'), ('2:a:'), ('2:ab:'), ('2:B:'), ('2::'),
             ('1:zz:zz')) AS v(s),
     LATERAL (SELECT s::ctph AS signature) AS signatures
ORDER BY signature;

SELECT '2:a:b'::ctph < '2:b:a' AS lt, '2:a:b'::ctph <= '2:a:b' AS le, '2:a:b'::ctph = '2:a:b' AS eq,
       '2:ab:'::ctph <> '2:a:b' AS ne, '2:b:'::ctph >= '2:a:' AS ge, '16:a:'::ctph > '2:b:' AS gt;
SELECT '2:b:a'::ctph < '2:a:b' AS lt, '2:b:'::ctph <= '2:a:' AS le, '2:ab:'::ctph = '2:a:b' AS eq,
       '2:a:'::ctph <> '2:a:' AS ne, '2:a:'::ctph >= '2:b:' AS ge, '2:b:'::ctph > '16:a:' AS gt;
SELECT ctph_cmp('1:a:', '1:b:') < 0 AS less, ctph_cmp('1:a:', '1:a:') AS equal,
       ctph_cmp('2:a:', '1:b:') > 0 AS greater;
-- Indexes, hashing, merging: 2000 rows of 500 signatures

CREATE TABLE many AS
SELECT i AS id, ctph_signature(md5((i % 500)::text)) AS signature FROM generate_series(1, 2000) AS i;
SELECT count(DISTINCT signature) AS distinct, count(*) FROM many;
SELECT signature AS one FROM many WHERE id = 77 \gset

CREATE INDEX many_btree ON many USING btree (signature);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT id FROM many WHERE signature = '1:a:'::ctph;
SELECT id FROM many WHERE signature = :'one' ORDER BY id;
EXPLAIN (COSTS off) SELECT id FROM many WHERE signature < '1:a:'::ctph ORDER BY signature;
SELECT (SELECT count(*) FROM many WHERE signature < :'one') +
       (SELECT count(*) FROM many WHERE signature = :'one') +
       (SELECT count(*) FROM many WHERE signature > :'one') AS all_rows;
DROP INDEX many_btree;

CREATE INDEX many_hash ON many USING hash (signature);
EXPLAIN (COSTS off) SELECT id FROM many WHERE signature = '1:a:'::ctph;
SELECT id FROM many WHERE signature = :'one' ORDER BY id;
DROP INDEX many_hash;
RESET enable_seqscan;
RESET enable_bitmapscan;

SET enable_sort = off;
EXPLAIN (COSTS off) SELECT signature, count(*) FROM many GROUP BY signature;
SELECT count(*) AS groups, min(count) AS smallest, max(count) AS largest
FROM (SELECT count(*) FROM many GROUP BY signature) AS groups;
RESET enable_sort;
SET enable_hashagg = off;
SELECT count(*) AS groups, min(count) AS smallest, max(count) AS largest
FROM (SELECT count(*) FROM many GROUP BY signature) AS groups;
RESET enable_hashagg;
SELECT count(*) FROM (SELECT DISTINCT signature FROM many) AS signatures;

SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS off) SELECT count(*) FROM many a JOIN many b USING (signature);
SELECT count(*) FROM many a JOIN many b USING (signature);
RESET enable_mergejoin;
SET enable_hashjoin = off;
EXPLAIN (COSTS off) SELECT count(*) FROM many a JOIN many b USING (signature);
SELECT count(*) FROM many a JOIN many b USING (signature);
RESET enable_hashjoin;
RESET enable_nestloop;

-- Equal signatures hash equally, and partitions by hash find them.
CREATE TABLE parts (signature ctph) PARTITION BY HASH (signature);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT signature FROM many;
SELECT count(*) FROM parts WHERE signature = :'one';
SELECT (SELECT count(*) > 0 FROM parts_0) AND (SELECT count(*) > 0 FROM parts_1) AS spread;

-- A column that is generated, unique, kept with its document

CREATE TABLE documents (
    id bigint PRIMARY KEY,
    body text,
    signature ctph GENERATED ALWAYS AS (ctph_signature(body)) STORED
);
INSERT INTO documents VALUES (1, 'some text'), (2, NULL), (3, 'some text');
UPDATE documents SET body = 'some other text' WHERE id = 3;
SELECT id, signature IS NOT DISTINCT FROM ctph_signature(body) AS right FROM documents ORDER BY id;
CREATE UNIQUE INDEX ON documents (signature);
INSERT INTO documents VALUES (4, 'some text');
INSERT INTO documents VALUES (5, NULL);
CREATE INDEX ON documents (ctph_signature(body, 10));

-- Long signatures are compressed and moved out of the row as other values are.
CREATE TABLE toasted (id int, signature ctph);
INSERT INTO toasted
SELECT i, ('1:' || string_agg(md5(i || '/' || j), '' ORDER BY j) || ':' || repeat('b', 1024))::ctph
FROM generate_series(1, 3) AS i, generate_series(1, 32) AS j GROUP BY i;
ALTER TABLE toasted ALTER signature SET STORAGE external;
INSERT INTO toasted SELECT id + 3, signature::text::ctph FROM toasted;
SELECT t.id, t.signature = u.signature AS equal, length(t.signature::text) AS length,
       edit_rate(t.signature, u.signature), ctph_send(t.signature) = ctph_send(u.signature) AS sent,
       ctph_hash(t.signature) = ctph_hash(u.signature) AS hash
FROM toasted t JOIN toasted u ON u.id = t.id + 3 ORDER BY t.id;

-- NULL

SELECT NULL::ctph IS NULL AS value, (NULL::ctph = '1::') IS NULL AS equal,
       edit_rate(NULL::ctph, '1::') IS NULL AS rate;
SELECT id FROM signatures WHERE signature IS NULL;

-- Edit rate of two signatures: the smallest over the parts of one block size

-- Both parts count at equal block sizes: 1 of 3 + 3 letters, and 1 of 1 + 1.
SELECT edit_rate('2:abc:d'::ctph, '2:abx:e') AS first_part;
-- The second part is the nearer one: none of 2 letters.
SELECT edit_rate('2:abc:d'::ctph, '2:xyz:d') AS second_part;
-- At twice the block size the second part of one meets the first part of the other.
SELECT edit_rate('2:abc:de'::ctph, '4:df:g') AS half, edit_rate('4:df:g'::ctph, '2:abc:de') AS twice;
SELECT edit_rate('2:abc:d'::ctph, '8:d:d') AS nothing_in_common;
SELECT edit_rate('1::'::ctph, '1::') AS empty, edit_rate('1:a:'::ctph, '1:b:') AS empty_second_parts;

-- Size and casts
SELECT pg_column_size('1:abc:d'::ctph) AS bytes, '1:abc:d'::ctph::text AS text, '1:a:'::text::ctph AS cast;

DROP TABLE signatures, many, parts, documents, toasted;
DROP FUNCTION receive;
