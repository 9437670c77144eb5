"""Exact Word Mover's Distances by POT, one pair after the other on one core.

usage: pot_movers.py DIRECTORY [DIMENSIONS]

Reads what gpu_movers_bench wrote there, and compares its distances.
"""

import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import ot


def main():
    directory = sys.argv[1]
    dimensions = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    model = np.fromfile(f"{directory}/model.f32", np.float32).reshape(-1, dimensions).astype(float)
    begins = np.fromfile(f"{directory}/begins.u64", np.uint64).astype(int)
    masses = np.fromfile(f"{directory}/masses.u32", np.uint32).reshape(-1, 2)
    ours = np.fromfile(f"{directory}/distances.f64", float)
    problems = []
    for pair in range(len(ours)):
        a, b = (masses[begins[2 * pair + side]:begins[2 * pair + side + 1]] for side in (0, 1))
        problems.append((a[:, 1] / a[:, 1].sum(), b[:, 1] / b[:, 1].sum(), a[:, 0], b[:, 0]))
    start = time.perf_counter()
    costs = [np.sqrt(np.maximum(ot.dist(model[a], model[b]), 0)) for _, _, a, b in problems]
    measured = time.perf_counter()
    theirs = np.array([ot.emd2(p, q, c) for (p, q, _, _), c in zip(problems, costs)])
    ended = time.perf_counter()
    worst = np.max(np.abs(theirs - ours) / theirs)
    print(f"POT: {1e3 * (measured - start) / len(ours):.3f} ms a pair for the costs, "
          f"{1e3 * (ended - measured) / len(ours):.3f} ms for emd2, on one core; "
          f"ours differ by {worst:.1e} of the distance at most")


if __name__ == "__main__":
    main()
