"""The nearest texts by tf-idf with scipy's CSR product and numpy's argpartition.

Arguments: DIRECTORY K PROCESSES, and optionally how many of the queries. The directory holds what
`bench/run term_knn ... DIRECTORY` wrote. Weights are float32, in batches of 16 queries, one process
a core, as scipy's product runs on one thread.
"""

import multiprocessing
import sys
import time

import numpy as np
import scipy
import scipy.sparse as sparse

BATCH = 16


def matrix(prefix, factors):
    """Rows of tf-idf weights, each divided by the root of its square."""
    begins = np.fromfile(prefix + ".begins", np.uint64).astype(np.int64)
    columns = np.fromfile(prefix + ".columns", np.uint32).astype(np.int32)
    weights = np.fromfile(prefix + ".counts", np.int32) * factors[columns].astype(np.float32)
    weights = weights.astype(np.float32)
    if begins[-1] < 2**31:
        begins = begins.astype(np.int32)
    rows = sparse.csr_matrix((weights, columns, begins), shape=(len(begins) - 1, len(factors)))
    squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    norms = np.where(squares > 0, np.sqrt(squares), 1).astype(np.float32)
    rows.data /= np.repeat(norms, np.diff(rows.indptr))
    return rows


def nearest(span):
    """Distances of the k nearest of some queries, ascending."""
    answers = []
    for begin in range(span[0], span[1], BATCH):
        end = min(begin + BATCH, span[1])
        product = queries[begin:end] @ by_term
        for i in range(end - begin):
            found = slice(product.indptr[i], product.indptr[i + 1])
            scores, items = product.data[found], product.indices[found]
            keep = min(k + 1, len(scores))
            best = np.argpartition(-scores, keep - 1)[:keep]
            best = best[np.argsort(-scores[best])]
            answers.append([1 - scores[b] for b in best if items[b] != own[begin + i]][:k])
    return answers


if __name__ == "__main__":
    directory, k, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    factors = np.fromfile(directory + "/factors")
    own = np.fromfile(directory + "/rows", np.uint32)
    start = time.perf_counter()
    items = matrix(directory + "/items", factors)
    queries = matrix(directory + "/queries", factors)
    weighing = time.perf_counter() - start
    start = time.perf_counter()
    by_term = items.T.tocsr()
    indexing = time.perf_counter() - start
    count = min(len(own), int(sys.argv[4]) if len(sys.argv) > 4 else len(own))
    step = max(BATCH, count // (4 * processes))
    spans = [(begin, min(begin + step, count)) for begin in range(0, count, step)]
    # Forked processes share the matrices.
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        pool.map(nearest, [(0, 1)] * processes)
        start = time.perf_counter()
        answers = sum(pool.map(nearest, spans, chunksize=1), [])
        seconds = time.perf_counter() - start
    ours = np.fromfile(directory + "/distances").reshape(len(own), -1)[:count]
    full = [row for row, answer in zip(ours, answers) if len(answer) == k]
    theirs = [answer for answer in answers if len(answer) == k]
    error = np.abs(np.array(full) - np.array(theirs)).max()
    print(f"scipy {scipy.__version__}: {items.shape[0]} documents, {items.shape[1]} terms, "
          f"{items.nnz} elements, {count} queries, k = {k}, {processes} processes: "
          f"{seconds:.3f} s, {1e6 * seconds / count:.1f} us a query; weighing {weighing:.3f} s, "
          f"transposing {indexing:.3f} s; largest difference to our distances {error:.1e}")
