-- Lexemes and positions of texts are those of PostgreSQL: from to_tsvector(), or for all types of tokens from parsetext(). The functions
-- are of the module of the tests (tests/module/), which servers of scripts/cluster have; expected/text_parser_1.out is for others.
CREATE SCHEMA text_parser;
SET search_path = text_parser, public;
SET gputext.device = 'cpu';
DO $$ BEGIN
    CREATE FUNCTION parsed_lexemes(regconfig, text) RETURNS text[] STRICT LANGUAGE c AS 'gputext', 'gputext_parsed_lexemes';
    CREATE FUNCTION parses_alike(regconfig, text) RETURNS boolean STRICT LANGUAGE c AS 'gputext', 'gputext_parses_alike';
EXCEPTION WHEN undefined_function THEN NULL;
END $$;
SELECT to_regproc('parsed_lexemes') IS NULL AS left_out \gset
\if :left_out
\quit
\endif
CREATE FUNCTION expected_lexemes(config regconfig, body text) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(position || ' ' || lexeme ORDER BY position, lexeme COLLATE "C")
    FROM unnest(to_tsvector(config, body)), unnest(positions) AS position
$$;
CREATE FUNCTION is_expected(config regconfig, body text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(l ORDER BY split_part(l, ' ', 1)::int, substr(l, strpos(l, ' ') + 1) COLLATE "C"), '{}') = coalesce(expected_lexemes(config, body), '{}')
    FROM unnest(parsed_lexemes(config, body)) AS l
$$;
SELECT parsed_lexemes('english', 'The well-known foxes, e.g. at http://example.com/foxes; don''t jump over 2 of the dogs, at the café.');

-- Dictionaries of every template of the server, and some of contrib: filters, synonyms, compounds, and phrases
CREATE EXTENSION unaccent;
CREATE EXTENSION dict_int;
CREATE EXTENSION dict_xsyn;
CREATE TEXT SEARCH DICTIONARY compound_words (TEMPLATE = ispell, DictFile = ispell_sample, AffFile = ispell_sample);
CREATE TEXT SEARCH DICTIONARY synonyms (TEMPLATE = synonym, SYNONYMS = synonym_sample);
CREATE TEXT SEARCH DICTIONARY phrases (TEMPLATE = thesaurus, DictFile = thesaurus_sample, Dictionary = english_stem);
CREATE TEXT SEARCH DICTIONARY known_words (TEMPLATE = simple, ACCEPT = false, STOPWORDS = english);
ALTER TEXT SEARCH DICTIONARY xsyn (RULES = 'xsyn_sample', KEEPORIG = true, MATCHSYNONYMS = true);
CREATE TEXT SEARCH CONFIGURATION many (COPY = english);
ALTER TEXT SEARCH CONFIGURATION many ALTER MAPPING FOR asciiword, asciihword, hword_asciipart WITH synonyms, compound_words, xsyn, english_stem;
ALTER TEXT SEARCH CONFIGURATION many ALTER MAPPING FOR word, hword, hword_part WITH unaccent, compound_words, french_stem;
ALTER TEXT SEARCH CONFIGURATION many ALTER MAPPING FOR uint, int WITH intdict;
ALTER TEXT SEARCH CONFIGURATION many DROP MAPPING FOR email, host;
CREATE TEXT SEARCH CONFIGURATION filtered (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION filtered ALTER MAPPING FOR asciiword WITH known_words;
ALTER TEXT SEARCH CONFIGURATION filtered ALTER MAPPING FOR word WITH unaccent;
CREATE TEXT SEARCH CONFIGURATION thesaurus (COPY = english);
ALTER TEXT SEARCH CONFIGURATION thesaurus ALTER MAPPING FOR asciiword, asciihword, hword_asciipart WITH phrases, english_stem;
CREATE FUNCTION twice_lexize(internal, internal, internal, internal) RETURNS internal STRICT LANGUAGE c AS 'gputext', 'gputext_twice_lexize';
CREATE TEXT SEARCH TEMPLATE twice (LEXIZE = twice_lexize);
CREATE TEXT SEARCH DICTIONARY twice (TEMPLATE = twice);
CREATE TEXT SEARCH CONFIGURATION twice (COPY = english);
ALTER TEXT SEARCH CONFIGURATION twice ALTER MAPPING FOR asciiword, uint WITH twice;
CREATE TEXT SEARCH CONFIGURATION blanks (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION blanks ADD MAPPING FOR blank, tag, protocol WITH simple;
-- In each type of tokens another set of these
DO $$ BEGIN
    FOR bit IN 0..4 LOOP
        EXECUTE format('CREATE TEXT SEARCH CONFIGURATION bit%s (PARSER = default)', bit);
        EXECUTE (SELECT format('ALTER TEXT SEARCH CONFIGURATION bit%s ADD MAPPING FOR %s WITH simple', bit, string_agg(alias, ', '))
                 FROM ts_token_type('default') WHERE tokid >> bit & 1 = 1 AND alias <> 'blank');
    END LOOP;
END $$;

CREATE TABLE texts (id serial, body text);
INSERT INTO texts (body) VALUES
    (''), (' '), ('.'), ('a'), ('a.'), ('a.b'), ('a..b'), ('.. a'), ('../a'), ('a... b'), ('... ..'), ('a:/b'), ('a://b'), ('a: b'),
    ('state-of-the-art x-1 1-x a-b-1 -a- a--b 12-13 re-re-read'), ('user@example.com a@b @a a@ first.last@a-b.example.org'),
    ('http://example.com/a/b?c=d#e,f; www.example.com:80/x ftp://a.b/ example.com/ 1.2.3.4:5/6'), ('/usr/lib/x.so ./a ~/b ~c a/b a/ 1/2 //a'),
    ('1 1.5 -1.5 +3 1e5 1.5e-10 1e 1.e 1.2.3 -1.2.3 1. .5 1,000 1_000 20th x86 1a1 $5.00 10% 10:30'),
    ('<b>bold</b> <br/> <a href="x > y" title=''"''>z</a> a < b <- <> <1 << <a <a;'), ('<!-- a > b -- c --> d <!--> e --> f'), ('<!-- a'), ('<!DOCTYPE html> <?xml version="1.0"?> <?b'),
    ('a <script type="x"> b < c </script> d'), ('a <STYLE> b e@f.gh'), ('a <style; b'), ('<a ''b> c'' d> e'), ('<a "\" > b" > c'), ('<a'' <b x ''c> d'' e> f'), ('<a x="<!--"> b <c y=''d --> e''> f'),
    ('&amp; &lt;a &#64; &#x40; &nbsp &; a&b &a.b-c;'), ('don''t "quoted" (word) [x] {y} a|b a=b a+b #tag C++ a*b _a_ a_b'),
    ('naïve café’s “Straße”—Łódź İstanbul ıŞık'), ('Ελλάδα русский עִבְרִית العَرَبِيَّة हिन्दी ไทย 中文字 日本語の かな 한국어'),
    ('１２３ ٣٤٥ x² ½ Ⅷ ⑧ ™ µ'), ('a' || U&'\0301' || ' ' || U&'\0301' || 'b e' || U&'\00AD' || 'f g' || U&'\200D' || 'h i' || U&'\00A0' || 'j' || U&'\2028' || 'k'), (U&'\+01F600 a\+01F600 \+01D400bc \+01F468\200D\+01F469 \+020000'),
    ('supernovae stars, sn  supernova star and crab nebulae indices ski footballklubber footballyklubber booking Öl-é'),
    (E'\x01 a\x7f b\x1b[0m\r\n c\fd\ve'), (repeat('x', 15) || ' ' || repeat('y', 16) || ' ' || repeat('z', 254) || ' ' || repeat('w', 255) || ' ' || repeat('v', 2046));
-- Any three characters between others
WITH characters AS (SELECT regexp_split_to_table(E'a1 .-_/@:<>&;~+e#!\'é“?', '') AS c)
INSERT INTO texts (body) SELECT format('b%s%s%s c', a.c, b.c, c.c) FROM characters a, characters b, characters c;
-- Random ones
SELECT setseed(0.19);
WITH parts AS (
    SELECT array_agg(part) AS all_of FROM texts, regexp_split_to_table(body, '(?<= )|(?= )') AS part WHERE length(body) BETWEEN 10 AND 200)
INSERT INTO texts (body)
SELECT (SELECT string_agg(CASE WHEN random() < 0.8 THEN all_of[1 + (random() * (cardinality(all_of) - 1))::int]
                               ELSE chr(1 + (random() * CASE WHEN random() < 0.7 THEN 126 ELSE 12000 END)::int) END, '' ORDER BY j)
        FROM generate_series(1, 2 + i % 60) AS j)
FROM generate_series(1, 5000) AS i, parts;
SELECT count(*) > 15000 AS many, count(DISTINCT body) > 14000 AS different FROM texts;
-- Every configuration with the first texts and some of the others, or all
SELECT cfgname, min(body) AS differs FROM (SELECT cfgname, oid FROM pg_ts_config ORDER BY cfgname COLLATE "C" OFFSET 0) AS c
CROSS JOIN LATERAL (SELECT body FROM texts WHERE id <= 80 OR id % 20 = 0 OR cfgname ~ '^(bit|many|thesaurus|filtered|blanks|english)' OFFSET 0) AS t
WHERE NOT parses_alike(c.oid::regconfig, body) GROUP BY cfgname;
SELECT cfgname, body FROM (SELECT cfgname, oid FROM pg_ts_config ORDER BY cfgname COLLATE "C" OFFSET 0) AS c
CROSS JOIN LATERAL (SELECT body FROM texts WHERE id <= 80 OR id % CASE WHEN cfgname ~ '^(many|thesaurus|english)' THEN 5 ELSE 200 END = 0 OFFSET 0) AS t
WHERE NOT is_expected(c.oid::regconfig, body);
SELECT count(*) > 30 AS configurations FROM pg_ts_config;
SELECT parsed_lexemes('twice', 'two eggs, 2 boiled eggs');

-- Behind position 16383 a tsvector has none. Phrases, too, are found there.
SELECT (parsed_lexemes('english', repeat('the egg ', 20000)))[20000], (parsed_lexemes('thesaurus', repeat('one egg ', 20000) || 'supernovae stars'))[40001],
       cardinality(parsed_lexemes('simple', repeat('egg, water. ', 200000))), (parsed_lexemes('simple', repeat('egg, water. ', 200000)))[400000];
-- Too long, whatever it is
SELECT parsed_lexemes('simple', 'a ' || repeat('b', 2048) || repeat(' ', 2048) || 'c' || repeat(E'\n', 2046) || '<d ' || repeat('e', 2048) || '>' || repeat('é', 1024));
SELECT to_tsvector('simple', 'a ' || repeat('b', 2048) || repeat(' ', 2048) || 'c' || repeat(E'\n', 2046) || '<d ' || repeat('e', 2048) || '>' || repeat('é', 1024));
-- More different words than are kept
SELECT count(*) AS texts, bool_and(parses_alike('english', body)) AS alike
FROM (SELECT string_agg(md5(i::text) || ' ' || translate(md5(i::text), '0123456789', 'ghijklmnop'), ' ') AS body FROM generate_series(1, 300000) AS i GROUP BY i % 200) AS words;

-- With other encodings
SELECT current_database() AS database \gset
CREATE DATABASE regress_gputext_parser_latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
CREATE DATABASE regress_gputext_parser_euc_jp ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
CREATE DATABASE regress_gputext_parser_utf8_c ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\set check 'CREATE EXTENSION gputext; CREATE FUNCTION parses_alike(regconfig, text) RETURNS boolean STRICT LANGUAGE c AS ''gputext'', ''gputext_parses_alike''; SET client_encoding = ''UTF8'';'
\c regress_gputext_parser_latin1
:check
SELECT bool_and(parses_alike('simple', a || b)) FROM unnest('{"naïve café, a-é x@y.fr ¿x? ½",é,a1é,"é.é","«a»"}'::text[]) a, unnest('{"",é,-é,.fr," ½²",/é,é1}'::text[]) b;
\c regress_gputext_parser_euc_jp
:check
SELECT bool_and(parses_alike('simple', a || b)) FROM unnest('{"日本語の a-日 x@y.jp",日,a1日,"日.日","「a」ｱ"}'::text[]) a, unnest('{"",日,-日,.jp," 、",/日,日1,丂}'::text[]) b;
\c regress_gputext_parser_utf8_c
:check
SELECT bool_and(parses_alike('simple', a || b)) FROM unnest('{"naïve café, a-é x@y.fr ¿x? ½ “日本語の”",日,a1日,"日.é","«a»"}'::text[]) a, unnest('{"",日,-é,.fr," ½²",/é,é1,😀}'::text[]) b;
\c :database
DROP DATABASE regress_gputext_parser_latin1;
DROP DATABASE regress_gputext_parser_euc_jp;
DROP DATABASE regress_gputext_parser_utf8_c;
SET client_min_messages = warning;
DROP SCHEMA text_parser CASCADE;
