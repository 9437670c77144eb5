"""The pairs of texts that a benchmark of ours wrote, for its peers."""

import numpy as np


def problems(directory, dimensions):
    """For each pair the masses of both sides, which add up to 1, and the vectors of their words; and our distances."""
    model = np.fromfile(f"{directory}/model.f32", np.float32).reshape(-1, dimensions).astype(float)
    begins = np.fromfile(f"{directory}/begins.u64", np.uint64).astype(int)
    masses = np.fromfile(f"{directory}/masses.u32", np.uint32).reshape(-1, 2)
    ours = np.fromfile(f"{directory}/distances.f64", float)
    pairs = []
    for pair in range(len(ours)):
        a, b = (masses[begins[2 * pair + side]:begins[2 * pair + side + 1]] for side in (0, 1))
        pairs.append((a[:, 1] / a[:, 1].sum(), b[:, 1] / b[:, 1].sum(), model[a[:, 0]], model[b[:, 0]]))
    return pairs, ours
