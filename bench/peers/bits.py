"""Random bit strings, and peers of their nearest ones by Hamming distance.

usage: bits.py rows SIDE BITS COUNT                     lines for COPY, of the queries or the items, from a fixed seed
       bits.py NAME BITS QUERIES ITEMS NEAREST          faiss or numpy: seconds of the ten nearest; NEAREST are lines of a query and a distance
"""

import sys
import time

import numpy

K = 10


def rows(side, bits, count):
    seed = [bits, 0 if side == "queries" else 1]
    return numpy.random.default_rng(seed).integers(0, 256, (count, bits // 8), dtype=numpy.uint8)


def faiss_distances(queries, items):
    import faiss

    index = faiss.IndexBinaryFlat(items.shape[1] * 8)
    index.add(items)
    return index.search(queries, K)[0]


def numpy_distances(queries, items):
    words = items.view(numpy.uint64)
    nearest = []
    for query in queries.view(numpy.uint64):
        distances = numpy.bitwise_count(words ^ query).sum(axis=1, dtype=numpy.uint16)
        nearest.append(numpy.sort(numpy.partition(distances, K)[:K]))
    return numpy.array(nearest)


PEERS = {"faiss": faiss_distances, "numpy": numpy_distances}


def compare(name, bits, query_count, item_count, path):
    queries, items = rows("queries", bits, query_count), rows("items", bits, item_count)
    started, used = time.perf_counter(), time.process_time()
    distances = PEERS[name](queries, items)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    wanted = numpy.loadtxt(path, dtype=numpy.int64)[: query_count * K, 1].reshape(query_count, K)
    print(
        f"{name}: {query_count} queries among {item_count} items of {bits} bits: {used:.2f} processor seconds, {seconds:.2f} s; "
        f"{(distances != wanted).sum()} distances differ"
    )


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "rows":
        for number, row in enumerate(rows(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))):
            print(number, "".join(f"{byte:08b}" for byte in row), sep="\t")
    elif len(sys.argv) == 6 and sys.argv[1] in PEERS:
        compare(sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5])
    else:
        sys.exit(__doc__)


main()
