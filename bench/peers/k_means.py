"""k-means by faiss-cpu, scikit-learn and PyTorch on a GPU, beside ours on the same items.

Arguments: faiss|sklearn|torch|torch_tf32 ITEMS.f32 DIMENSIONS K ITERATIONS THREADS. faiss and PyTorch
begin with random items and scikit-learn with k-means++; the assignment to the last centroids is part
of all times, as of ours. PyTorch has no k-means of its own: its steps are a matrix product, argmin and
index_add_, with the items copied to the GPU within the time.
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


def torch(rows, k, iterations, _, tf32=False):
    import torch as library

    library.backends.cuda.matmul.allow_tf32 = tf32
    generator = library.Generator().manual_seed(1)
    first = library.randperm(len(rows), generator=generator)[:k]
    step = 1 << 16

    def assign(items, centroids):
        squares = (centroids * centroids).sum(1)
        least = [library.addmm(squares, part, centroids.T, alpha=-2).min(1)
                 for part in items.split(step)]
        return library.cat([part.indices for part in least]), library.cat(
            [part.values for part in least])

    def work():
        items = library.from_numpy(rows).cuda()
        centroids = items[first.cuda()]
        ones = library.ones(len(items), device="cuda")
        for _ in range(iterations):
            clusters, _ = assign(items, centroids)
            sums = library.zeros_like(centroids).index_add_(0, clusters, items)
            sizes = library.zeros(k, device="cuda").index_add_(0, clusters, ones)
            centroids = library.where((sizes > 0)[:, None], sums / sizes.clamp(min=1)[:, None],
                                      centroids)
        clusters, least = assign(items, centroids)
        clusters.cpu()
        return float((least.double() + (items.double() ** 2).sum(1)).sum())

    work()  # loads kernels
    return f"PyTorch {library.__version__}{', TF32' if tf32 else ''}", work, iterations


def torch_tf32(rows, k, iterations, threads):
    return torch(rows, k, iterations, threads, tf32=True)


if __name__ == "__main__":
    d, k, iterations, threads = (int(argument) for argument in sys.argv[3:7])
    import numpy as np

    items = np.fromfile(sys.argv[2], np.float32).reshape(-1, d)
    name, work, iterations = {"faiss": faiss, "sklearn": sklearn, "torch": torch,
                              "torch_tf32": torch_tf32}[sys.argv[1]](items, k, iterations, threads)
    elapsed, processor, inertia = measured(work)
    print(f"{name} k-means: {len(items)} items, d = {d}, k = {k}, at most {iterations} iterations, "
          f"{threads} threads: {elapsed:.3f} s, {processor:.3f} s of processors, "
          f"inertia {inertia:.6g}")
