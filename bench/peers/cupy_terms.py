"""The nearest texts as CuPy users compute them, on one GPU.

usage: cupy_terms.py DIRECTORY

DIRECTORY holds a corpus that bench/gpu_terms_bench wrote. Rows are tf-idf weights divided by their
lengths, in float32. Questions are documents at equal distances: the sparse matrix of all documents
times a dense one of a batch of questions, and a selection of the k largest of each. Times are
between CUDA events, matrices resident, the least of several passes at the best of a few sizes of a
batch.
"""

import sys

import cupy
import numpy
from cupyx.scipy import sparse

try:
    import torch
except ImportError:
    torch = None


def load(directory):
    rows, terms, _ = (int(n) for n in numpy.fromfile(f"{directory}/sizes.u64", numpy.uint64))
    begins = numpy.fromfile(f"{directory}/begins.u64", numpy.uint64).astype(numpy.int32)
    columns = cupy.asarray(numpy.fromfile(f"{directory}/columns.u32", numpy.int32))
    counts = cupy.asarray(numpy.fromfile(f"{directory}/counts.i32", numpy.int32))
    frequencies = cupy.bincount(columns, minlength=terms)
    idf = cupy.log(rows / cupy.maximum(frequencies, 1)).astype(cupy.float32)
    weights = counts.astype(cupy.float32)
    del counts
    weights *= idf[columns]
    begins = cupy.asarray(begins)
    starts = cupy.bincount(begins[1:-1], minlength=len(columns) + 1)[: len(columns)]
    row = cupy.cumsum(starts).astype(cupy.int32)
    squares = cupy.bincount(row, weights * weights, minlength=rows)
    lengths = cupy.sqrt(cupy.maximum(squares, 1e-30)).astype(cupy.float32)
    weights /= lengths[row]
    return sparse.csr_matrix((weights, columns, begins), shape=(rows, terms))


def timed(call, passes=3):
    """Least milliseconds on the device."""
    call()
    best = float("inf")
    for _ in range(passes):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(begin, end))
    return best


def topk(scores, k):
    """Of each column."""
    if torch is not None:
        return torch.from_dlpack(scores.T).topk(k)
    return cupy.argpartition(scores, -k, axis=0)[-k:]


def main():
    items = load(sys.argv[1])
    rows = items.shape[0]
    for batch in (1, 64, 256, 512):
        chosen = cupy.arange(batch) * (rows // batch)
        question = cupy.asfortranarray(items[chosen].toarray().T)
        product = timed(lambda: items @ question)
        for k in (32, 512):
            whole = timed(lambda: topk(items @ question, k))
            print(
                f"cupy, batch of {batch}, k = {k}: {whole * 1e3 / batch:.1f} us a query, "
                f"the product {product * 1e3 / batch:.1f}",
                flush=True,
            )
        del question
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
