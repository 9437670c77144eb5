-- The program repair experiment of the 2019 thesis, section 6.4, as docs/program-repair.md tells it.
--
-- Wants a table programs (id bigint, problem text, source text) and, where the defaults are not to
-- be taken, the variables applications (of each operator at each level), epochs and seed:
--     psql -v applications=1000 -f docs/program-repair.sql
-- Leaves the tables fixes, parts, models, naturalness, refs, mutants, scores and levels.

\if :{?applications}
\else
    \set applications 100
\endif
\if :{?epochs}
\else
    \set epochs 20
\endif
\if :{?seed}
\else
    \set seed 1
\endif

-- A number below a bound that depends on nothing but the seed
CREATE FUNCTION draw(seed bigint, number integer, bound integer) RETURNS integer IMMUTABLE LANGUAGE sql
RETURN (hashint8extended(number, seed) & 9223372036854775807) % bound;

-- Programs without what their authors chose, once each: copies in the corpus would make the
-- programs under test known.
CREATE TABLE fixes AS
SELECT min(id) AS id, problem, lines
FROM (SELECT id, problem, code_lines(source) AS lines FROM programs) AS normalised
GROUP BY problem, lines;
SELECT problem, count(*) AS programs, round(avg(cardinality(lines)), 1) AS lines FROM fixes
GROUP BY problem ORDER BY problem;

-- Ten parts; near-duplicates are in the same one, so that a model of the other nine has seen
-- nothing of the programs of a part.
CREATE TABLE parts AS
SELECT id, group_id, draw(:seed, group_id::integer, 10) AS part
FROM near_duplicate_groups('SELECT id, array_to_string(lines, E''\n'') FROM fixes ORDER BY id',
                           threshold => 0.05, mode => 'exact');

-- A line is a word, and the lines beside it are its context.
CREATE TABLE models AS
SELECT part, m.*
FROM (SELECT DISTINCT part FROM parts) AS p,
     word2vec(format('SELECT lines FROM fixes JOIN parts USING (id) WHERE part <> %s ORDER BY id', part),
              model => 'cbow', dimensions => 50, window_size => 1, negative => 10, min_count => 1,
              sample => 0, epochs => :epochs, seed => :seed) AS m;
CREATE INDEX ON models (part, word);

-- How natural every program is to a model that has not seen it, nor some of its lines
SET client_min_messages = warning;
CREATE TABLE naturalness AS
SELECT p.id, p.probability AS prob
FROM (SELECT DISTINCT part FROM parts) AS q,
     sequence_probability(format('SELECT word, vector, output_vector FROM models WHERE part = %s', part),
                          format('SELECT id, lines FROM fixes JOIN parts USING (id) WHERE part = %s', part)) AS p;
RESET client_min_messages;

-- The reference of a problem: of its programs whose lines all occur elsewhere, and that are long
-- enough for ten deletions, the most natural one.
CREATE TABLE refs AS
SELECT DISTINCT ON (problem) problem, id, part, lines, prob
FROM fixes JOIN parts USING (id) JOIN naturalness USING (id)
WHERE cardinality(lines) > 11
      AND NOT EXISTS (SELECT FROM unnest(lines) AS line
                      WHERE NOT EXISTS (SELECT FROM models AS m WHERE m.part = parts.part AND word = line))
ORDER BY problem, prob DESC, id;

-- For comparison: one model of all programs with all their copies, the references among them
CREATE TABLE seen AS
SELECT id, probability AS prob
FROM sequence_probability(
    format($$SELECT word, vector, output_vector
             FROM word2vec('SELECT code_lines(source) FROM programs ORDER BY id', model => 'cbow', dimensions => 50,
                           window_size => 1, negative => 10, min_count => 1, sample => 0, epochs => %s, seed => %s)$$,
           :epochs, :seed),
    'SELECT id, lines FROM refs');

-- Mutants: an operator applied as often as the level says
CREATE FUNCTION mutant(lines text[], operator text, level integer, seed bigint) RETURNS text[]
IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    n integer;
    i integer;
    j integer;
BEGIN
    FOR step IN 1 .. level LOOP
        n := cardinality(lines);
        IF operator = 'delete' THEN
            i := 1 + draw(seed, 2 * step, n);
            lines := lines[:i - 1] || lines[i + 1:];
        ELSIF operator = 'insert' THEN  -- a copy of line j before line i, or at the end
            i := 1 + draw(seed, 2 * step, n + 1);
            j := 1 + draw(seed, 2 * step + 1, n);
            lines := lines[:i - 1] || lines[j] || lines[i:];
        ELSE  -- line i and another one j, counted from 0
            i := draw(seed, 2 * step, n);
            j := (i + 1 + draw(seed, 2 * step + 1, n - 1)) % n;
            SELECT array_agg(lines[1 + CASE place WHEN i THEN j WHEN j THEN i ELSE place END] ORDER BY place)
            INTO lines FROM generate_series(0, n - 1) AS place;
        END IF;
    END LOOP;
    RETURN lines;
END $$;
CREATE TABLE mutants AS
SELECT row_number() OVER (ORDER BY problem, operator, level, application) AS id, problem, operator,
       level, application,
       mutant(lines, operator, level,
              hashtextextended(concat_ws('/', problem, operator, level, application), :seed)) AS lines
FROM refs, unnest(ARRAY['delete', 'insert', 'swap']) AS operator, generate_series(1, 10) AS level,
     generate_series(1, :applications) AS application;
CREATE INDEX ON mutants (problem);
ANALYZE mutants;

CREATE TABLE scores AS
SELECT m.problem, m.operator, m.level, m.application, p.probability AS prob, d.distance AS dist
FROM refs AS r
CROSS JOIN LATERAL sequence_probability(
    format('SELECT word, vector, output_vector FROM models WHERE part = %s', part),
    format('SELECT id, lines FROM mutants WHERE problem = %L', problem)) AS p
JOIN LATERAL word_movers_distance(
    format('SELECT word, vector FROM models WHERE part = %s', part),
    format('SELECT m.id, m.lines, r.lines FROM mutants AS m JOIN refs AS r USING (problem)
            WHERE problem = %L', problem)) AS d ON d.id = p.id
JOIN mutants AS m ON m.id = p.id;

-- Level 0 is the reference itself. These are the curves of the thesis's figures 6.1 to 6.3
CREATE TABLE levels AS
SELECT problem, operator, level, avg(prob) AS prob, avg(dist) AS dist
FROM scores GROUP BY problem, operator, level
UNION ALL
SELECT problem, operator, 0, prob, 0 FROM refs, unnest(ARRAY['delete', 'insert', 'swap']) AS operator;
