-- What came of docs/program-repair.sql

-- Programs and groups of near-duplicates, how natural the programs are, the references' Prob, and what
-- it is when the model has seen them
SELECT problem, count(*) AS programs, count(DISTINCT group_id) AS groups, round(avg(n.prob)::numeric, 4) AS prob_mean,
       round(r.prob::numeric, 4) AS prob_reference, round(s.prob::numeric, 4) AS prob_seen,
       cardinality(r.lines) AS lines
FROM refs AS r JOIN fixes AS f USING (problem) JOIN parts AS p ON p.id = f.id JOIN naturalness AS n ON n.id = f.id
     JOIN seen AS s ON s.id = r.id
GROUP BY problem, r.prob, r.lines, s.prob ORDER BY problem;

-- Means by level, over the six problems
SELECT operator, level, round(avg(prob)::numeric, 4) AS prob, round(avg(dist)::numeric, 4) AS dist
FROM levels GROUP BY operator, level ORDER BY operator, level;

-- How often the next level's mean is lower (Prob) or not lower (Dist), of the ten steps from level 0
-- to level 10, and Spearman's correlation of the level and all mutants' scores
WITH ranks AS (
    SELECT problem, operator,
           rank() OVER l + (count(*) OVER (PARTITION BY problem, operator, level) - 1) / 2.0 AS level_rank,
           rank() OVER p + (count(*) OVER (PARTITION BY problem, operator, prob) - 1) / 2.0 AS prob_rank,
           rank() OVER d + (count(*) OVER (PARTITION BY problem, operator, dist) - 1) / 2.0 AS dist_rank
    FROM scores
    WINDOW l AS (PARTITION BY problem, operator ORDER BY level),
           p AS (PARTITION BY problem, operator ORDER BY prob),
           d AS (PARTITION BY problem, operator ORDER BY dist)
), correlations AS (
    SELECT problem, operator, corr(level_rank, prob_rank) AS prob_rho, corr(level_rank, dist_rank) AS dist_rho
    FROM ranks GROUP BY problem, operator
), steps AS (
    SELECT problem, operator, prob < lag(prob) OVER w AS falls, dist >= lag(dist) OVER w AS grows
    FROM levels WINDOW w AS (PARTITION BY problem, operator ORDER BY level)
), monotone AS (
    SELECT problem, operator, count(*) FILTER (WHERE falls) AS prob_falls, count(*) FILTER (WHERE grows) AS dist_grows
    FROM steps GROUP BY problem, operator
)
SELECT operator, problem, prob_falls, round(prob_rho::numeric, 3) AS prob_rho, dist_grows,
       round(dist_rho::numeric, 3) AS dist_rho
FROM monotone JOIN correlations USING (problem, operator) ORDER BY operator, problem;

-- How well a score tells a mutant from the reference: the share of mutants with a lower Prob (the
-- area under the ROC curve, equal ones counted half), by level, on average over the problems and at
-- least
SELECT operator,
       round(avg(auc) FILTER (WHERE level = 1)::numeric, 3) AS level_1,
       round(min(auc) FILTER (WHERE level = 1)::numeric, 3) AS level_1_least,
       round(avg(auc) FILTER (WHERE level = 2)::numeric, 3) AS level_2,
       round(avg(auc) FILTER (WHERE level = 5)::numeric, 3) AS level_5,
       round(avg(auc) FILTER (WHERE level = 10)::numeric, 3) AS level_10
FROM (SELECT s.problem, operator, level,
             avg(CASE WHEN s.prob < o.prob THEN 1 WHEN s.prob = o.prob THEN 0.5 ELSE 0 END) AS auc
      FROM scores AS s JOIN refs AS o USING (problem) GROUP BY s.problem, operator, level) AS aucs
GROUP BY operator ORDER BY operator;

-- Beside the thesis's table 6.19: one deletion, the first ten variants of each problem
SELECT problem, round(min(prob)::numeric, 4) AS prob_min, round(avg(prob)::numeric, 4) AS prob_mean,
       round(max(prob)::numeric, 4) AS prob_max, round(avg(dist)::numeric, 4) AS dist_mean,
       count(DISTINCT (prob, dist)) AS different
FROM scores WHERE operator = 'delete' AND level = 1 AND application <= 10
GROUP BY problem ORDER BY problem;

SELECT count(*) FILTER (WHERE operator = 'swap' AND dist <> 0) AS swaps_with_a_dist,
       count(*) AS mutants, count(*) FILTER (WHERE prob IS NULL OR dist IS NULL) AS without_a_score
FROM scores;
