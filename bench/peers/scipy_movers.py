"""Exact Word Mover's Distances by scipy's linear programming, against ours.

usage: scipy_movers.py DIRECTORY DIMENSIONS

Reads what word_movers_bench wrote there. Pairs of as many words of equal masses are solved as an assignment, too.
"""

import os
import sys

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import coo_array
from scipy.spatial.distance import cdist

sys.path.insert(0, os.path.dirname(__file__))
import movers


def by_programming(p, q, costs):
    n, m = costs.shape
    cells = np.arange(n * m)
    rows = np.concatenate([cells // m, n + cells % m])
    sums = coo_array((np.ones(2 * n * m), (rows, np.concatenate([cells, cells]))), shape=(n + m, n * m)).tocsr()
    answer = linprog(costs.ravel(), A_eq=sums, b_eq=np.concatenate([p, q]), method="highs")
    assert answer.status == 0, answer.message
    return answer.fun


def main():
    pairs, ours = movers.problems(sys.argv[1], int(sys.argv[2]))
    worst = assigned = 0
    for (p, q, x, y), distance in zip(pairs, ours):
        costs = cdist(x, y)
        theirs = [by_programming(p, q, costs)]
        if len(p) == len(q) and np.ptp(p) == 0 and np.ptp(q) == 0:
            theirs.append(costs[linear_sum_assignment(costs)].mean())
            assigned += 1
        worst = max([worst] + [abs(distance - other) / other for other in theirs])
    print(f"scipy: {len(ours)} pairs by linear programming, {assigned} of them as an assignment, too: "
          f"ours differ by {worst:.1e} of the distance at most")
    assert worst < 1e-5


if __name__ == "__main__":
    main()
