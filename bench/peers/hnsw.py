"""HNSW graphs by hnswlib and faiss-cpu, of the files that bench/hnsw_vectors makes.

Arguments: FOLDER METRIC THREADS EF...; FOLDER has items.copy and queries.copy; METRIC is cosine, l2 or ip. For m = 16 and several ef_construction, seconds and processor
seconds of the build from memory to memory, and the recall of the 10 nearest of all queries at each EF, mean and least.
"""

import sys
import time
from pathlib import Path

import numpy as np

M, K = 16, 10
EF_CONSTRUCTION = (64, 100, 200)


def vectors(folder, name):
    file = folder / f"{name}.copy"
    # Of the first row of the file for COPY: the length of its vector.
    with open(file, "rb") as head:
        length = int.from_bytes(head.read(37)[33:], "big")
    row = np.dtype([("id", "V14"), ("head", "V8"), ("numbers", ">f4", ((length - 4) // 4,))])
    return np.fromfile(file, dtype=row, offset=19, count=(file.stat().st_size - 21) // row.itemsize)["numbers"].astype(np.float32)


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


def scores(queries, items, metric):
    """Less is nearer."""
    products = queries.astype(np.float64) @ items.T.astype(np.float64)
    if metric == "l2":
        return np.einsum("ij,ij->i", items, items, dtype=np.float64) - 2 * products
    return -products


def measured(work):
    cpu, start = time.process_time(), time.perf_counter()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def hnswlib_index(items, metric, threads, construction):
    import hnswlib

    index = hnswlib.Index(space="l2" if metric == "l2" else "ip", dim=items.shape[1])
    index.init_index(max_elements=len(items), ef_construction=construction, M=M, random_seed=1)
    index.set_num_threads(threads)

    def search(queries, ef):
        index.set_ef(max(ef, K))
        return index.knn_query(queries, k=K)[0]

    return f"hnswlib {hnswlib.__version__}" if hasattr(hnswlib, "__version__") else "hnswlib", lambda: index.add_items(items), search


def faiss_index(items, metric, threads, construction):
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(items.shape[1], M, faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = construction

    def search(queries, ef):
        index.hnsw.efSearch = ef
        return index.search(queries, K)[1]

    return f"faiss-cpu {faiss.__version__}", lambda: index.add(items), search


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    folder, metric, threads = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    items, queries = vectors(folder, "items"), vectors(folder, "queries")
    if metric == "cosine":
        items, queries = unit(items), unit(queries)
    kth = np.concatenate([np.partition(scores(queries[i:i + 100], items, metric), K - 1, axis=1)[:, K - 1]
                          for i in range(0, len(queries), 100)])
    for make in (hnswlib_index, faiss_index):
        for construction in EF_CONSTRUCTION:
            name, build, search = make(items, metric, threads, construction)
            elapsed, processor = measured(build)
            print(f"{name}, ef_construction {construction}, {threads} threads: {elapsed:.2f} s, {processor:.2f} processor seconds")
            for ef in map(int, sys.argv[4:]):
                found = search(queries, ef)
                right = np.array([np.sum(scores(queries[i:i + 1], items[found[i][found[i] >= 0]], metric)[0] <= kth[i] + 1e-6 * abs(kth[i]))
                                  for i in range(len(queries))]) / K
                print(f"  ef_search {ef}: recall {right.mean():.4f}, least {right.min():g}, below 0.8 {np.sum(right < 0.8)} of {len(right)}")


if __name__ == "__main__":
    main()
