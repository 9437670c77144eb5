"""Every pair of a corpus's documents that TLSH puts within a distance, by comparing all pairs.

usage: tlsh_pairs.py corpus distance pairs.tsv
"""

import sys
import time

import tlsh

from documents import read_documents


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bodies = read_documents(sys.argv[1])
    limit = int(sys.argv[2])
    started = time.process_time()
    hashes = [tlsh.Tlsh() for _ in bodies]
    for hasher, body in zip(hashes, bodies):
        hasher.update(body)
        hasher.final()
    hashed = time.process_time()

    found = 0
    with open(sys.argv[3], "w", encoding="ascii") as out:
        for i, first in enumerate(hashes):
            for j in range(i + 1, len(hashes)):
                if first.diff(hashes[j]) <= limit:
                    out.write(f"{i + 1}\t{j + 1}\n")
                    found += 1
    compared = time.process_time()
    print(
        f"TLSH distance <= {limit}: {found} pairs; hash "
        f"{sum(map(len, bodies)) / (hashed - started) / 1e6:.1f} MB/s "
        f"({hashed - started:.2f} CPU s), compare {compared - hashed:.2f} CPU s from Python"
    )


if __name__ == "__main__":
    main()
