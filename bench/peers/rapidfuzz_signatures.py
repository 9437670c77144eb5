"""Rate of rapidfuzz's thresholded Levenshtein over all pairs of signatures, one core.

usage: rapidfuzz_signatures.py signatures.txt rate [pairs.tsv]

signatures.txt holds one signature a line. A pair is found when Levenshtein(a, b) < rate *
(|a| + |b|). Measured: process.cdist(scorer=Levenshtein.distance, score_cutoff, workers=1) on
blocks of signatures sorted by length, and the selection of the pairs below the threshold. A block
has one score_cutoff, its longest pair's, which is never below another's; rapidfuzz rejects by
length itself. The n(n-1)/2 unordered pairs are counted, whether rejected by length or not.
"""

import sys
import time
from fractions import Fraction

import numpy
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

ROWS = 64
COLUMNS = 1024


def below_rate(distances, row_lengths, column_lengths, rate):
    sums = row_lengths[:, None] + column_lengths[None, :]
    return distances.astype(numpy.int64) * rate.denominator < rate.numerator * sums


def cutoff(longest_sum, rate):
    """The greatest distance strictly below rate * longest_sum."""
    return max((rate.numerator * int(longest_sum) - 1) // rate.denominator, 0)


def block_pairs(signatures, lengths, rows, columns, rate):
    """Positions (i, j), i < j, of the pairs found in rows x columns."""
    distances = cdist(
        signatures[rows],
        signatures[columns],
        scorer=Levenshtein.distance,
        score_cutoff=cutoff(lengths[rows][-1] + lengths[columns][-1], rate),
        dtype=numpy.int32,
        workers=1,
    )
    found = numpy.argwhere(below_rate(distances, lengths[rows], lengths[columns], rate))
    found += (rows.start, columns.start)
    return found[found[:, 0] < found[:, 1]]


def join(signatures, rate):
    """The pairs found, as positions in `signatures`, which is sorted by length."""
    lengths = numpy.array([len(signature) for signature in signatures])
    blocks = []
    for row in range(0, len(signatures), ROWS):
        for column in range(row, len(signatures), COLUMNS):
            rows, columns = slice(row, row + ROWS), slice(column, column + COLUMNS)
            blocks.append(block_pairs(signatures, lengths, rows, columns, rate))
    return numpy.concatenate(blocks)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as lines:
        signatures = lines.read().splitlines()
    order = sorted(range(len(signatures)), key=lambda i: len(signatures[i]))

    started = time.process_time()
    found = join([signatures[i] for i in order], Fraction(sys.argv[2]))
    seconds = time.process_time() - started

    pairs = len(signatures) * (len(signatures) - 1) // 2
    print(
        f"rapidfuzz signature join: {pairs / seconds / 1e6:.2f} M pairs/s ({len(signatures)} "
        f"signatures, {pairs} pairs, {len(found)} below rate {sys.argv[2]}, {seconds:.2f} CPU s)"
    )
    if len(sys.argv) == 4:
        with open(sys.argv[3], "w", encoding="ascii") as out:
            out.writelines(f"{order[i] + 1}\t{order[j] + 1}\n" for i, j in found)


if __name__ == "__main__":
    main()
