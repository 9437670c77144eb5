"""An exact near-duplicate join of documents from numpy and rapidfuzz, one core: what a few lines
of Python reach without gputext, and a truth for corpora too large for bench/truth.

usage: rapidfuzz_documents.py corpus truth.tsv

Writes id1, id2, distance of every pair with Levenshtein(a, b) / (|a| + |b|) < 0.05. Compares only
pairs that pass two bounds, neither of which loses a pair. Let M be the number of characters that
an optimal alignment matches; the distance is at least max(|a|, |b|) - M.
- Lengths: M <= min(|a|, |b|).
- Histograms: M <= the sum over c of min(count of c in a, count of c in b). Counting characters
  modulo 256 can only raise that sum.
"""

import sys
import time
from bisect import bisect_right

import numpy
from rapidfuzz.distance import Levenshtein

from documents import read_documents

# The edit rate's limit 0.05 as 1/20: 20 * distance < |a| + |b| is exact in integers.
RATE_INVERSE = 20
BINS = 256


def histogram(text):
    """Counts in 16 bits, which the corpora's longest document, and so any sum of them, fits."""
    assert len(text) < 1 << 16
    characters = numpy.frombuffer(text.encode("utf-32-le"), numpy.uint32)
    return numpy.bincount(characters % BINS, minlength=BINS).astype(numpy.uint16)


def candidates(lengths, histograms, i):
    """Positions j > i of the texts, sorted by length, that both bounds leave to text i."""
    end = bisect_right(lengths, (21 * lengths[i] - 1) // 19)
    matches = numpy.minimum(histograms[i], histograms[i + 1 : end]).sum(axis=1, dtype=numpy.uint16)
    longer = lengths[i + 1 : end]
    passing = RATE_INVERSE * (longer - matches.astype(int)) < longer + lengths[i]
    return i + 1 + numpy.flatnonzero(passing)


def join(texts):
    """(number of candidates, [(i, j, distance)]) of texts sorted by length."""
    lengths = numpy.array([len(text) for text in texts])
    histograms = numpy.array([histogram(text) for text in texts])
    compared = 0
    pairs = []
    for i, text in enumerate(texts):
        for j in candidates(lengths, histograms, i):
            cutoff = int(lengths[i] + lengths[j] - 1) // RATE_INVERSE
            distance = Levenshtein.distance(text, texts[j], score_cutoff=cutoff)
            compared += 1
            if distance <= cutoff:
                pairs.append((i, int(j), distance))
    return compared, pairs


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    texts = [body.decode("utf-8") for body in read_documents(sys.argv[1])]
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))

    started = time.process_time()
    compared, pairs = join([texts[i] for i in order])
    seconds = time.process_time() - started

    print(
        f"numpy and rapidfuzz exact document join: {seconds:.2f} CPU s ({len(texts)} documents, "
        f"{compared} candidates, {len(pairs)} near-duplicates)"
    )
    rows = sorted((*sorted((order[i] + 1, order[j] + 1)), distance) for i, j, distance in pairs)
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.writelines(f"{id1}\t{id2}\t{distance}\n" for id1, id2, distance in rows)


if __name__ == "__main__":
    main()
