"""Connected components by scipy, on pairs that bench/run groups wrote: scipy_groups.py FILE.

numpy.unique numbers the ids, as scipy wants nodes from 0; its time is told apart.
"""

import sys
import time

import numpy
import scipy
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

pairs = numpy.fromfile(sys.argv[1], dtype=numpy.int64).reshape(-1, 2)
start = time.perf_counter()
ids, numbers = numpy.unique(pairs, return_inverse=True)
numbers = numbers.reshape(-1, 2)
numbered = time.perf_counter()
graph = coo_matrix((numpy.ones(len(pairs), dtype=numpy.int8), (numbers[:, 0], numbers[:, 1])),
                   shape=(len(ids), len(ids)))
count, _ = connected_components(graph, directed=False)
end = time.perf_counter()
print(f"scipy {scipy.__version__} connected_components: {len(pairs) / 1e6:g} million pairs: "
      f"{end - start:.2f} s; numbering {numbered - start:.2f}, components {end - numbered:.2f}; "
      f"{len(ids)} ids, {count} groups")
