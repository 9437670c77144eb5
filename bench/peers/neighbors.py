"""Exact neighbors, local outlier factors and DBSCAN by faiss-cpu and scikit-learn.

Arguments: faiss ITEMS QUERIES DIMENSIONS K THREADS, or
sklearn-lof ITEMS DIMENSIONS K THREADS [items.f32 [lof.f64]], where lof.f64 holds our factors, or
sklearn-dbscan DIMENSIONS EPSILON MIN_POINTS METRIC THREADS rows.f32 clusters.i32, with our clusters.
"""

import sys
import time

import numpy as np


def best_of(runs, work):
    """Least seconds elapsed, least seconds of processors, and the last result."""
    elapsed = processor = float("inf")
    for _ in range(runs):
        cpu, start = time.process_time(), time.perf_counter()
        result = work()
        elapsed = min(elapsed, time.perf_counter() - start)
        processor = min(processor, time.process_time() - cpu)
    return elapsed, processor, result


def faiss(n, q, d, k, threads):
    import faiss as library

    library.omp_set_num_threads(threads)
    random = np.random.default_rng(1)
    index = library.IndexFlatL2(d)
    index.add(random.standard_normal((n, d), dtype=np.float32))
    queries = random.standard_normal((q, d), dtype=np.float32)
    elapsed, processor, _ = best_of(5, lambda: index.search(queries, k))
    print(f"faiss-cpu {library.__version__} euclidean: {n} items, {q} queries, d = {d}, k = {k}, "
          f"{threads} threads: {elapsed:.4f} s, {processor:.4f} s of processors (best of 5)")


def sklearn_lof(n, d, k, threads, items=None, ours=None):
    import sklearn
    from sklearn.neighbors import LocalOutlierFactor

    rows = np.random.default_rng(1).standard_normal((n, d)) if items is None \
        else np.fromfile(items, np.float32).reshape(n, d).astype(float)
    lof = LocalOutlierFactor(n_neighbors=k, n_jobs=threads)
    elapsed, processor, _ = best_of(1, lambda: lof.fit(rows))
    print(f"scikit-learn {sklearn.__version__} lof: {n} items, d = {d}, k = {k}, {threads} threads: "
          f"{elapsed:.4f} s, {processor:.4f} s of processors")
    if ours is not None:
        factors = -lof.negative_outlier_factor_
        error = np.abs(np.fromfile(ours) / factors - 1)
        print(f"  largest relative difference {error.max():.2e}, {np.sum(error > 1e-6)} above 1e-6")


def sklearn_dbscan(d, epsilon, min_points, metric, threads, items, ours):
    import sklearn
    from sklearn.cluster import DBSCAN

    rows = np.fromfile(items, np.float32).reshape(-1, d).astype(float)
    dbscan = DBSCAN(eps=float(epsilon), min_samples=min_points, metric=metric, n_jobs=threads)
    elapsed, processor, _ = best_of(1, lambda: dbscan.fit(rows))
    labels = dbscan.labels_
    print(f"scikit-learn {sklearn.__version__} dbscan: {len(rows)} rows, d = {d}, epsilon = {epsilon}, "
          f"min_points = {min_points}, {metric}, {threads} threads: {labels.max() + 1} clusters, "
          f"{len(dbscan.core_sample_indices_)} core, {np.sum(labels < 0)} noise: "
          f"{elapsed:.4f} s, {processor:.4f} s of processors")
    print(f"  {np.sum(labels != np.fromfile(ours, np.int32))} rows with another label")


if __name__ == "__main__":
    numbers = [int(a) if a.isdigit() else a for a in sys.argv[2:]]
    {"faiss": faiss, "sklearn-lof": sklearn_lof, "sklearn-dbscan": sklearn_dbscan}[sys.argv[1]](*numbers)
