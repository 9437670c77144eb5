"""k-means by faiss-cpu and scikit-learn, beside ours on the same items.

Arguments: faiss|sklearn ITEMS.f32 DIMENSIONS K ITERATIONS THREADS. faiss begins with random items and
scikit-learn with k-means++; the assignment to the last centroids is part of both times, as of ours.
"""

import sys
import time


def measured(work):
    cpu, start = time.process_time(), time.perf_counter()
    result = work()
    return time.perf_counter() - start, time.process_time() - cpu, result


def faiss(rows, k, iterations, threads):
    import faiss as library

    library.omp_set_num_threads(threads)

    def work():
        model = library.Kmeans(rows.shape[1], k, niter=iterations, seed=1,
                               max_points_per_centroid=len(rows), min_points_per_centroid=1)
        model.train(rows)
        squares, _ = model.index.search(rows, 1)
        return squares.astype(float).sum()

    return f"faiss-cpu {library.__version__}", work, iterations


def sklearn(rows, k, iterations, _):
    import sklearn as library
    from sklearn.cluster import KMeans

    def work():
        model = KMeans(k, init="k-means++", n_init=1, max_iter=iterations, tol=0, random_state=1,
                       algorithm="lloyd")
        return float(model.fit(rows).inertia_)

    return f"scikit-learn {library.__version__}", work, iterations


if __name__ == "__main__":
    d, k, iterations, threads = (int(argument) for argument in sys.argv[3:7])
    import numpy as np

    items = np.fromfile(sys.argv[2], np.float32).reshape(-1, d)
    name, work, iterations = {"faiss": faiss, "sklearn": sklearn}[sys.argv[1]](items, k, iterations,
                                                                               threads)
    elapsed, processor, inertia = measured(work)
    print(f"{name} k-means: {len(items)} items, d = {d}, k = {k}, at most {iterations} iterations, "
          f"{threads} threads: {elapsed:.3f} s, {processor:.3f} s of processors, "
          f"inertia {inertia:.6g}")
