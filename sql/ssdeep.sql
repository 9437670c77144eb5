-- ssdeep_hash and ssdeep_compare: what the program ssdeep 2.14.1 prints and scores

CREATE TABLE documents (name text PRIMARY KEY, body bytea);
INSERT INTO documents VALUES
    ('empty', ''),
    ('a', 'a'),
    ('hello', E'Hello, world!\n'),
    ('numbers', (SELECT convert_to(string_agg(i || ' ', '' ORDER BY i), 'UTF8')
                 FROM generate_series(1, 300) AS i)),
    ('edited', (SELECT convert_to(string_agg(CASE i WHEN 150 THEN 'edited' ELSE i::text END || ' ',
                                             '' ORDER BY i), 'UTF8')
                FROM generate_series(1, 300) AS i)),
    ('zeros', decode(repeat('00', 5000), 'hex')),
    ('every byte', (SELECT string_agg(set_byte('\x00'::bytea, 0, i % 256), '' ORDER BY i)
                    FROM generate_series(0, 256 * 64 - 1) AS i)),
    ('utf', convert_to(repeat('Straße, 日本語, ελληνικά. ', 40), 'UTF8')),
    ('half', (SELECT convert_to(string_agg(md5(i::text), '' ORDER BY i), 'UTF8')
              FROM generate_series(1, 1000) AS i)),
    ('whole', (SELECT convert_to(string_agg(md5(i::text), '' ORDER BY i), 'UTF8')
               FROM generate_series(1, 1900) AS i)),
    ('other', (SELECT convert_to(string_agg(md5(i::text), '' ORDER BY i), 'UTF8')
               FROM generate_series(2001, 3000) AS i));

-- The printed text is what ssdeep -b prints for files of these bytes.
CREATE TABLE printed (name text PRIMARY KEY, signature text);
INSERT INTO printed VALUES
    ('empty', '3::'),
    ('a', '3:E:E'),
    ('hello', '3:a6/G:asG'),
    ('numbers', '24:cu+C7PzS+GMWvTtvWTzfPpTdULCjLt1L7bzv1dM:djPe+GMWvTRIbPteL2LLLvDY'),
    ('edited', '24:cu+C7PzS+GMWvTQvWTzfPpTdULCjLt1L7bzv1dM:djPe+GMWvTWIbPteL2LLLvDY'),
    ('zeros', '3::'),
    ('every byte', '192:znnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnb:n'),
    ('utf', '24:IVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyVyn:3'),
    ('half', '768:hifJrfe7yTqs364ge+VYoEwE5CIVKIqqZeqiAEdRmi:haeGD64y6hCvHLrL'),
    ('whole', '1536:haeGD64y6hCvHLrSAIxFjm9a3wZCv8ghdFAnfn:h14yaaHLrSX/6mwZM8ghdFon'),
    ('other', '768:I1HStDZyjYn+tCeCIrSBzz11hzcGv63JH/hKpkt3ohXEWoY:I1yijftZSB1LcGv63Jf4qt0XEQ');
SELECT name, ssdeep_hash(body) = signature AS equal FROM documents JOIN printed USING (name)
ORDER BY name COLLATE "C";

-- A text is hashed as its bytes.
SELECT ssdeep_hash(E'Hello, world!\n') AS literal,
       bool_and(ssdeep_hash(convert_from(body, 'UTF8')) = ssdeep_hash(body)) AS same
FROM documents WHERE name NOT IN ('zeros', 'every byte');

-- Scores, as ssdeep -a -m prints them
SELECT a.name AS a, b.name AS b, ssdeep_compare(a.signature, b.signature) AS score,
       ssdeep_compare(b.signature, a.signature) AS backwards
FROM printed a JOIN printed b ON a.name COLLATE "C" < b.name COLLATE "C"
WHERE ssdeep_compare(a.signature, b.signature) > 0
ORDER BY a.name COLLATE "C", b.name COLLATE "C";
-- Equal signatures score 100, short and empty ones too.
SELECT count(*) FILTER (WHERE ssdeep_compare(signature, signature) = 100) AS equal, count(*)
FROM printed;

-- A line of a file that ssdeep writes is a signature, with the name behind it.
SELECT ssdeep_compare('3:a6/G:asG,"hello"', '3:a6/G:asG') AS named,
       ssdeep_compare('3:a6/G:asG,', '3:a6/G:asG') AS comma;
-- Block sizes that are neither equal nor one the double of the other have nothing in common.
SELECT ssdeep_compare('3:abcdefgh:abcdefgh', '12:abcdefgh:abcdefgh') AS fourfold,
       ssdeep_compare('48:xyz:abcdefghij', '96:abcdefghij:xyz') AS double;
-- Of a run of one letter only three count.
SELECT ssdeep_compare('96:abcdefgggggggggh:i', '96:abcdefgggh:i') AS runs;

-- What is no signature
SELECT ssdeep_compare('', '3::');
SELECT ssdeep_compare('3::', '');
SELECT ssdeep_compare('3', '3::');
SELECT ssdeep_compare('3:abc', '3::');
SELECT ssdeep_compare('3::', '4:abc:d');
SELECT ssdeep_compare('3::', '0:abc:d');
SELECT ssdeep_compare('3::', '-3:abc:d');
SELECT ssdeep_compare('3::', '03:abc:d');
SELECT ssdeep_compare('3::', ' 3:abc:d');
SELECT ssdeep_compare('3::', '6442450944:abc:d');
SELECT ssdeep_compare('3::', '99999999999999999999999999:abc:d');
SELECT ssdeep_compare('3::', '3:a c:d');
SELECT ssdeep_compare('3::', '3:abc:é');
SELECT ssdeep_compare('3::', '3:abc:d:e');
SELECT ssdeep_compare('3::', 'ssdeep,1.1--blocksize:hash:hash,filename');
SELECT ssdeep_compare('3::', '3:' || repeat('ab', 33) || ':a');
SELECT ssdeep_compare('3::', '3:a:' || repeat('ab', 33));
SELECT ssdeep_compare('3::', repeat('é', 100));
DO $$
BEGIN
    PERFORM ssdeep_compare('3::', 'no signature');
EXCEPTION WHEN invalid_text_representation THEN
    RAISE NOTICE '%', SQLSTATE;
END $$;

SELECT ssdeep_hash(NULL::text) IS NULL AS text, ssdeep_hash(NULL::bytea) IS NULL AS bytea,
       ssdeep_compare(NULL, '3::') IS NULL AS a, ssdeep_compare('3::', NULL) IS NULL AS b;

DROP TABLE documents, printed;
