"""The nearest words with CuPy: cuSPARSE's products, sums and quotients of their elements, and the
largest of each row.

usage: cupy_words.py DIRECTORY TOP ROWS [AT_ONCE]

DIRECTORY holds the features that gpu_words_bench wrote. For ROWS words at equal distances, AT_ONCE
of them at a time, S = A B^T and T = B A^T are computed, A being the weights and B where they are, and
(S + T) / (sums of rows and columns); then the TOP largest of each row but the word itself. What all
words would take is told in proportion.
"""

import sys

import cupy
import numpy
from cupyx.scipy import sparse


def read(directory):
    words, columns, _ = numpy.fromfile(f"{directory}/sizes.u64", numpy.uint64)
    begins = cupy.asarray(numpy.fromfile(f"{directory}/begins.u64", numpy.uint64).astype(numpy.int32))
    indices = cupy.asarray(numpy.fromfile(f"{directory}/columns.u32", numpy.uint32).astype(numpy.int32))
    weights = cupy.asarray(numpy.fromfile(f"{directory}/weights.u16", numpy.uint16).astype(numpy.float32))
    shape = (int(words), int(columns))
    return (sparse.csr_matrix((weights, indices, begins), shape),
            sparse.csr_matrix((cupy.ones_like(weights), indices, begins), shape))


def compare(weights, marks, weights_across, marks_across, sums, rows, top):
    shared = weights[rows] @ marks_across + marks[rows] @ weights_across
    dense = shared.toarray()
    dense /= sums[rows][:, None] + sums[None, :]
    dense[cupy.arange(len(rows)), rows] = -1
    nearest = cupy.argpartition(dense, dense.shape[1] - top, axis=1)[:, -top:]
    values = cupy.take_along_axis(dense, nearest, axis=1)
    order = cupy.argsort(-values, axis=1)
    return cupy.take_along_axis(nearest, order, axis=1)


def main():
    directory, top, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    at_once = int(sys.argv[4]) if len(sys.argv) > 4 else 1024
    weights, marks = read(directory)
    words = weights.shape[0]
    sums = weights.sum(axis=1).ravel()
    weights_across, marks_across = weights.T.tocsr(), marks.T.tocsr()
    rows = cupy.linspace(0, words - 1, min(count, words)).astype(cupy.int64)
    compare(weights, marks, weights_across, marks_across, sums, rows[:16], top)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for begin in range(0, len(rows), at_once):
        compare(weights, marks, weights_across, marks_across, sums, rows[begin:begin + at_once], top)
    end.record()
    end.synchronize()
    taken = cupy.cuda.get_elapsed_time(start, end)
    print(f"CuPy {cupy.__version__}: {len(rows)} of {words} words, {weights.nnz} features, top {top}: "
          f"{taken:.0f} ms, all words {taken * words / len(rows) / 1e3:.2f} s")


if __name__ == "__main__":
    main()
