"""Candidate pairs of datasketch's MinHash LSH with the settings of BigCode's deduplication of
source code: 5-grams of words, 256 permutations, Jaccard 0.7.

usage: minhash_pairs.py corpus pairs.tsv
"""

import re
import sys
import time
import zlib

from datasketch import MinHash, MinHashLSH

from documents import read_documents

NGRAM = 5
PERMUTATIONS = 256
JACCARD = 0.7
NOT_WORD = re.compile("[^A-Za-z_0-9]+")


def shingles(text):
    words = [word for word in NOT_WORD.split(text) if word]
    grams = (" ".join(words[i : i + NGRAM]) for i in range(max(len(words) - NGRAM + 1, 1)))
    return [gram.encode() for gram in set(grams)]


def minhash(text):
    # crc32 in place of the default SHA-1, which would take most of the time.
    sketch = MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32)
    sketch.update_batch(shingles(text))
    return sketch


def candidates(texts):
    """Pairs (id1, id2), id1 > id2, that share a bucket."""
    index = MinHashLSH(threshold=JACCARD, num_perm=PERMUTATIONS)
    for number, text in enumerate(texts, 1):
        sketch = minhash(text)
        for other in index.query(sketch):
            yield number, other
        index.insert(number, sketch)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    texts = [body.decode("utf-8") for body in read_documents(sys.argv[1])]
    started = time.process_time()
    found = list(candidates(texts))
    seconds = time.process_time() - started
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.writelines(f"{id1}\t{id2}\n" for id1, id2 in found)
    print(
        f"datasketch MinHash LSH: {len(found)} pairs, {len(texts) / seconds:.0f} documents/s "
        f"({seconds:.1f} CPU s)"
    )


if __name__ == "__main__":
    main()
