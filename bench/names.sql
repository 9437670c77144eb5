-- Names of 24 characters with a first and a last name and a place, and typos in them. All depends on the id alone.
-- A number from 1 to choices that depends on an id and on a place in its name
CREATE FUNCTION pick(id bigint, place integer, choices integer) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    $$ SELECT 1 + ((hashint8extended(id, place) & 1073741823) % choices)::integer $$;
CREATE FUNCTION syllables(id bigint, place integer, count integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT string_agg((ARRAY['ka','mi','lo','ren','tor','van','des','pel','ari','ber','chi','dan','el','fre','gus','han','ing','jo','kel','lin','mar',
        'nor','os','pat','quin','ros','sen','ti','ul','ve','win','yor','zan','bel','cor','dor'])[pick(id, place + i, 36)], '') FROM generate_series(1, count) AS i $$;
CREATE FUNCTION name_of(id bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    $$ SELECT initcap(rpad(syllables(id, 0, 3) || ' ' || syllables(id, 10, 4) || ' ' || syllables(id, 20, 4), 24)) $$;
-- A character replaced, left out, doubled, or changed with the next one
CREATE FUNCTION typo(name text, id bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE pick(id, 90, 4)
           WHEN 1 THEN overlay(name PLACING chr(96 + pick(id, 91, 26)) FROM at FOR 1)
           WHEN 2 THEN overlay(name PLACING '' FROM at FOR 1)
           WHEN 3 THEN overlay(name PLACING repeat(substr(name, at, 1), 2) FROM at FOR 1)
           ELSE overlay(name PLACING reverse(substr(name, at, 2)) FROM at FOR 2) END
    FROM (SELECT pick(id, 92, length(name) - 1) AS at) AS chosen $$;
