-- The experiment of docs/program-repair.sql on programs of our own: two problems, each solved in
-- all ways that a few choices leave.
CREATE TABLE programs (id bigint GENERATED ALWAYS AS IDENTITY, problem text, source text);
INSERT INTO programs (problem, source)
SELECT 'smallest', concat_ws(E'\n', head, '{', declared, 'printf("Three numbers > ");',
                             'scanf("%d%d%d", &a, &b, &c);', compared, shown, ending, '}')
FROM (VALUES (E'#include <stdio.h>\nint main()'), (E'#include <stdio.h>\n#include <math.h>\nint main(void)'),
             (E'#include <stdio.h>\n\nint main(int argc, char **argv)')) AS heads(head),
     (VALUES (E'int a, b, c;\nint least;'), (E'int a;\nint b;\nint c;\nint least = 0;')) AS declarations(declared),
     (VALUES (E'least = a;\nif (b < least)\nleast = b;\nif (c < least)\nleast = c;'),
             (E'if (a <= b && a <= c) {\nleast = a;\n}\nelse if (b <= c) {\nleast = b;\n}\nelse {\nleast = c;\n}'),
             (E'least = a < b ? a : b;\nif (c < least) {\nleast = c;\n}')) AS comparisons(compared),
     (VALUES ('printf("%d is the smallest\n", least);'), (E'printf("The smallest is ");\nprintf("%d\\n", least);')) AS outputs(shown),
     (VALUES ('return 0;'), (E'\n/* all is well */\nreturn (0);')) AS endings(ending)
UNION ALL
SELECT 'mean', concat_ws(E'\n', declared, 'printf("How many? ");', 'scanf("%d", &n);', loop, shown, 'return 0;', '}')
FROM (VALUES (E'#include <stdio.h>\nint main()\n{\nint i, n;\ndouble x;\ndouble sum = 0;'),
             (E'#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n\nint main(int argc, char *argv[]) {\nint n;\nint i = 0;\ndouble x, sum = 0.0;')) AS declarations(declared),
     (VALUES (E'for (i = 0; i < n; i++) {\nscanf("%lf", &x);\nsum += x;\n}'),
             (E'i = 0;\nwhile (i < n)\n{\nprintf("Next: ");\nscanf("%lf", &x);\nsum = sum + x;\ni = i + 1;\n}'),
             (E'do {\nscanf("%lf", &x);\nsum += x;\ni++;\n} while (i < n);')) AS loops(loop),
     (VALUES (E'printf("%f\\n", sum / n);'),
             (E'if (n == 0) {\nprintf("There are none");\nreturn 1;\n}\nelse {\nsum = sum / n;\nprintf("%f\\n", sum);\n}')) AS outputs(shown);

\set applications 20
\getenv directory PG_ABS_SRCDIR
\set script :directory '/docs/program-repair.sql'
\i :script

SELECT problem, cardinality(lines) > 11 AS long_enough, lines[1] AS first_line, lines[cardinality(lines)] AS last_line,
       prob > (SELECT avg(n.prob) FROM naturalness AS n JOIN fixes AS f USING (id) WHERE f.problem = refs.problem) AS natural
FROM refs ORDER BY problem;
SELECT lines, mutant(lines, 'delete', 2, 1) AS deleted, mutant(lines, 'insert', 2, 1) AS inserted,
       mutant(lines, 'swap', 2, 1) AS swapped, mutant(lines, 'swap', 0, 1) = lines AS unchanged
FROM (VALUES ('{a,b,c,d,e}'::text[])) AS l(lines);
SELECT operator, min(cardinality(m.lines) - cardinality(r.lines)) AS least, max(cardinality(m.lines) - cardinality(r.lines)) AS most,
       count(*), count(DISTINCT m.lines) > 100 AS different
FROM mutants AS m JOIN refs AS r USING (problem) GROUP BY operator ORDER BY operator;

-- The order of lines is nothing to Dist, and everything to Prob.
SELECT count(*) FILTER (WHERE dist <> 0) AS with_a_distance FROM scores WHERE operator = 'swap';
SELECT operator, problem, min(dist) FILTER (WHERE level > 0) > 0 AS apart, corr(level, prob) < -0.8 AS prob_falls, corr(level, dist) > 0.8 AS dist_grows
FROM levels GROUP BY operator, problem ORDER BY operator, problem;

DROP TABLE programs, fixes, parts, models, naturalness, refs, seen, mutants, scores, levels;
DROP FUNCTION mutant, draw;
