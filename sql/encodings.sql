-- The unit is a character of the database's encoding; the client sends UTF-8 in any case.
SELECT current_database() AS database \gset

CREATE DATABASE regress_gputext_latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_gputext_latin1
CREATE EXTENSION gputext;
SET client_encoding = 'UTF8';
SELECT edit_distance('café', 'cafe') AS one, edit_distance('é', 'ü') AS replaced, octet_length('é') AS bytes,
       edit_distance('ééé', 'é') AS removed, edit_rate('é', '') AS rate;
SELECT edit_rate FROM near_duplicates($$VALUES (1::bigint, repeat('é', 20)), (2, repeat('é', 21))$$, mode => 'exact');
SELECT code_tokens('int größe = höhe(é) / 2; // über'), code_lines('größe é;');

CREATE DATABASE regress_gputext_euc_jp ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_gputext_euc_jp
CREATE EXTENSION gputext;
SET client_encoding = 'UTF8';
-- Two bytes, of half-width katakana too, and three bytes for JIS X 0212
SELECT octet_length('日') AS kanji, octet_length('ｱ') AS katakana, octet_length('丂') AS jis_x_0212;
SELECT edit_distance('日本語', '日本') AS removed, edit_distance('日本語', '中国語') AS replaced,
       edit_distance('ｱｲｳ', 'ｱｳ') AS katakana, edit_distance('丂日a', 'a') AS jis_x_0212,
       edit_distance('日本語', 'a日本語') AS shifted;
SELECT edit_rate FROM near_duplicates($$VALUES (1::bigint, repeat('日本丂ｱa', 4)), (2, repeat('日本丂ｱa', 4) || '語')$$, mode => 'exact');
SELECT id, term, octet_length(term) AS bytes FROM tfidf($$VALUES (1::bigint, '日本語 の 本'), (2, 'の')$$, config => 'simple');
SELECT code_tokens('int 名前 = 関数(丂, ｱ) + "文字列"; // 注釈'), code_lines('名前 日本;');

CREATE DATABASE regress_gputext_euc_kr ENCODING 'EUC_KR' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_gputext_euc_kr
CREATE EXTENSION gputext;
SET client_encoding = 'UTF8';
SELECT edit_distance('안녕하세요', '안녕') AS removed, edit_distance('한국', '한글') AS replaced,
       octet_length('한') AS bytes, edit_distance('가나다', '나다') AS first_removed;

CREATE DATABASE regress_gputext_sql_ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_gputext_sql_ascii
CREATE EXTENSION gputext;
-- Without an encoding every byte is a character.
SELECT edit_distance('é', 'e') AS bytes, edit_distance('日本語', '日本') AS three_bytes,
       edit_distance(E'\xff\xfe', E'\xff') AS bytes_of_no_encoding;
SELECT octet_length(array_to_string(code_tokens(E'int \xff = \xfe();'), ' ')) AS bytes;

\c :database
DROP DATABASE regress_gputext_latin1;
DROP DATABASE regress_gputext_euc_jp;
DROP DATABASE regress_gputext_euc_kr;
DROP DATABASE regress_gputext_sql_ascii;
