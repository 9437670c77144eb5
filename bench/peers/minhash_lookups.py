"""Look-ups of documents in datasketch's MinHashLSH: shingles of 5 characters, 128 permutations.

usage: minhash_lookups.py FOLDER SECONDS JACCARD...

FOLDER has docs.csv (id, body) and copies.csv (number, kind, body). For each threshold JACCARD of the
index, and for it with the answers verified by the edit rate, adds a line to built.tsv (peer, seconds,
bytes a document), and for each look-up one to times.tsv (peer, number, milliseconds) and one for each
answer to answers.tsv (peer, number, id). The look-ups of a kind end after SECONDS.

Seconds to build are processor seconds of all processes: sketches are made by one for each core. Bytes
are what the memory of the process grows by; verifying needs the documents as well.
"""

import csv
import gc
import multiprocessing
import os
import pathlib
import resource
import sys
import time
import zlib

from datasketch import MinHash, MinHashLSH
from rapidfuzz.distance import Levenshtein

SHINGLE = 5
PERMUTATIONS = 128
EDIT_RATE = 0.05

# crc32 in place of the default SHA-1, which would take most of the time.
EMPTY = MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32)

texts = []  # read before the processes are forked, which find it there


def read_rows(path):
    csv.field_size_limit(sys.maxsize)
    with open(path, encoding="utf-8", newline="") as rows:
        yield from csv.reader(rows)


def minhash(text):
    shingles = {text[i : i + SHINGLE] for i in range(max(len(text) - SHINGLE + 1, 1))}
    sketch = EMPTY.copy()
    sketch.update_batch([shingle.encode() for shingle in shingles])
    return sketch


def hash_values(number):
    return minhash(texts[number]).hashvalues


def near(a, b):
    most = int(EDIT_RATE * (len(a) + len(b)))
    return Levenshtein.distance(a, b, score_cutoff=most) <= most


def processor_seconds():
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def memory():
    gc.collect()
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def sketches_of_all():
    """An array of the sketches of all texts, and the processor seconds that they took."""
    started = processor_seconds()
    with multiprocessing.get_context("fork").Pool() as pool:
        values = pool.map(hash_values, range(len(texts)), chunksize=256)
        pool.close()
        pool.join()
    return values, processor_seconds() - started


def build(jaccard, values):
    """The index, its processor seconds, and its bytes a document."""
    before = memory()
    started = time.process_time()
    index = MinHashLSH(threshold=jaccard, num_perm=PERMUTATIONS)
    for number, value in enumerate(values):
        sketch = MinHash(hashvalues=value, permutations=EMPTY.permutations, hashfunc=zlib.crc32)
        index.insert(number, sketch, check_duplication=False)
    seconds = time.process_time() - started
    return index, seconds, (memory() - before) / len(values)


def look_up(index, body):
    """Candidates and near-duplicates of a text, and the milliseconds until each was known."""
    started = time.perf_counter()
    candidates = index.query(minhash(body))
    unverified = time.perf_counter()
    verified = [number for number in candidates if near(body, texts[number])]
    ended = time.perf_counter()
    return (candidates, 1000 * (unverified - started)), (verified, 1000 * (ended - started))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    limit = float(sys.argv[2])
    ids = []
    for number, body in read_rows(folder / "docs.csv"):
        ids.append(number)
        texts.append(body)
    copies = list(read_rows(folder / "copies.csv"))
    values, seconds_of_sketches = sketches_of_all()
    with (
        open(folder / "built.tsv", "w", encoding="ascii") as built,
        open(folder / "times.tsv", "w", encoding="ascii") as times,
        open(folder / "answers.tsv", "w", encoding="ascii") as answers,
    ):
        for jaccard in map(float, sys.argv[3:]):
            index, seconds, size = build(jaccard, values)
            name = f"datasketch MinHashLSH {jaccard}"
            peers = (name, f"{name}, verified")
            for peer in peers:
                built.write(f"{peer}\t{seconds_of_sketches + seconds:.2f}\t{size:.0f}\n")
            for kind in dict.fromkeys(copy[1] for copy in copies):
                deadline = time.monotonic() + limit
                for number, _, body in (copy for copy in copies if copy[1] == kind):
                    if time.monotonic() > deadline:
                        break
                    for peer, (found, ms) in zip(peers, look_up(index, body)):
                        times.write(f"{peer}\t{number}\t{ms:.4f}\n")
                        answers.writelines(f"{peer}\t{number}\t{ids[i]}\n" for i in found)
            del index


if __name__ == "__main__":
    main()
