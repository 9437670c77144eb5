"""Exact Word Mover's Distances by POT, one pair after the other on one core.

usage: pot_movers.py DIRECTORY DIMENSIONS

Reads what a benchmark of ours wrote there, and compares its distances.
"""

import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import ot

sys.path.insert(0, os.path.dirname(__file__))
import movers


def main():
    pairs, ours = movers.problems(sys.argv[1], int(sys.argv[2]))
    start = time.perf_counter()
    costs = [np.sqrt(np.maximum(ot.dist(x, y), 0)) for _, _, x, y in pairs]
    measured = time.perf_counter()
    theirs = np.array([ot.emd2(p, q, c) for (p, q, _, _), c in zip(pairs, costs)])
    ended = time.perf_counter()
    worst = np.max(np.abs(theirs - ours) / theirs)
    print(f"POT: {len(ours)} pairs, {1e6 * (measured - start) / len(ours):.0f} us a pair for the costs, "
          f"{1e6 * (ended - measured) / len(ours):.0f} us for emd2, on one core; "
          f"ours differ by {worst:.1e} of the distance at most")


if __name__ == "__main__":
    main()
