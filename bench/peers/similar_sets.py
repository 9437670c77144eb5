"""Texts, baskets and peers of similar sets.

usage: similar_sets.py rows WORDS KIND COUNT [FIRST]       lines for COPY, from a fixed seed: texts, long, short, baskets (without WORDS' text); ids from FIRST (1)
       similar_sets.py peer NAME TEXTS THRESHOLD PAIRS     the pairs of a peer, and how many of PAIRS, lines of two ids, it finds

WORDS is a file of words, compressed by xz or not; - for made words. Texts are windows of 60 words of a text, each fifth one a version of one of the 1,000 before it with one to six edits of words; long ones have 200
words; half of the short ones are 20 words of a long one, every second of these with another word in the middle. Baskets have up to 20 of 20,000 items by Zipf's law, each
fifth one a version.
"""

import collections
import itertools
import random
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from documents import word_lines

WORD = re.compile(r"[A-Za-z0-9\u0080-\U0010ffff]+")
SHINGLE = 5
PERMUTATIONS = 128

# ---- Texts ----


def word_stream(path, seed):
    for line in word_lines(path, seed):
        yield from WORD.findall(line)


def edited(words, source, fresh):
    words = list(words)
    for _ in range(source.randint(1, 6)):
        place, kind = source.randrange(len(words)), source.randrange(3)
        if kind == 0:
            words[place] = fresh()
        elif kind == 1:
            words.insert(place, fresh())
        elif len(words) > 1:
            del words[place]
    return words


def versions(count, make, fresh, source):
    recent = collections.deque(maxlen=1000)
    for number in range(count):
        one = edited(source.choice(recent), source, fresh) if number % 5 == 4 else make()
        recent.append(one)
        yield one


def short_texts(stream, long_count, count, source):
    """Of the same words as the long ones, which take the first ones."""
    excerpts = {source.randrange(long_count): None for _ in range(count // 2)}
    for number in range(long_count):
        words = list(itertools.islice(stream, 200))
        if number in excerpts:
            begin = source.randrange(180)
            excerpts[number] = words[begin:begin + 20]
    for number, excerpt in enumerate(excerpts.values()):
        if number % 2:
            excerpt[10] = "another"
        yield excerpt
    for _ in range(count - len(excerpts)):
        yield list(itertools.islice(stream, 20))


def rows(path, kind, count, first=1):
    source = random.Random(47 + first)
    stream = word_stream(path, first)
    if kind == "texts":
        texts = versions(count, lambda: list(itertools.islice(stream, 60)), lambda: f"word{source.randrange(10000)}", source)
    elif kind == "long":
        texts = (list(itertools.islice(stream, 200)) for _ in range(count))
    elif kind == "short":
        texts = short_texts(stream, 100000, count, source)
    else:
        item = lambda: int(20000 ** source.random())
        texts = versions(count, lambda: [item() for _ in range(source.randint(5, 20))], item, source)
    for number, text in enumerate(texts, first):
        sys.stdout.write(f"{number}\t{{{','.join(map(str, text))}}}\n" if kind == "baskets" else f"{number}\t{' '.join(text)}\n")


# ---- Peers ----


def shingles(text):
    words = WORD.findall(text)
    return {" ".join(words[i:i + SHINGLE]) for i in range(len(words) - SHINGLE + 1)}


def sets_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    if lines[0][1].startswith("{"):
        return [(int(number), set(body[1:-1].split(","))) for number, body in lines]
    return [(int(number), shingles(body)) for number, body in lines]


def datasketch(sets, threshold):
    """Candidates, unverified, as it is used; one permutation for all texts, and a fast hash."""
    import zlib

    from datasketch import MinHash, MinHashLSH
    index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    for number, one in sets:
        sketch = MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32)
        sketch.update_batch([shingle.encode() for shingle in one])
        for other in index.query(sketch):
            yield other, number
        index.insert(number, sketch)


def rensa(sets, threshold):
    """16 bands of 8, of which the probability is one half at 0.7."""
    from rensa import RMinHash, RMinHashLSH
    index = RMinHashLSH(threshold=threshold, num_perm=PERMUTATIONS, num_bands=16)
    for number, one in sets:
        sketch = RMinHash(num_perm=PERMUTATIONS, seed=48)
        sketch.update(list(one))
        for other in index.query(sketch):
            yield other, number
        index.insert(number, sketch)


def set_similarity_search(sets, threshold):
    from SetSimilaritySearch import all_pairs
    kept = [(number, one) for number, one in sets if one]
    for first, second, _ in all_pairs([one for _, one in kept], similarity_func_name="jaccard", similarity_threshold=threshold):
        yield tuple(sorted((kept[first][0], kept[second][0])))


PEERS = {"datasketch": datasketch, "rensa": rensa, "SetSimilaritySearch": set_similarity_search}


def peer(name, path, threshold, pairs):
    started = time.process_time()
    sets = sets_of(path)
    made = time.process_time()
    found = set(PEERS[name](sets, threshold))
    ended = time.process_time()
    with open(pairs, encoding="ascii") as file:
        true = {tuple(map(int, line.split())) for line in file}
    right = len(found & true)
    print(f"{name}: {ended - started:.2f} processor seconds, {made - started:.2f} of them for the sets; {len(found)} pairs, "
          f"recall {right / max(1, len(true)):.4f}, precision {right / max(1, len(found)):.4f}", flush=True)


def main():
    command, arguments = sys.argv[1:2], sys.argv[2:]
    if command == ["peer"] and len(arguments) == 4:
        peer(arguments[0], arguments[1], float(arguments[2]), arguments[3])
    elif command == ["rows"] and len(arguments) in (3, 4):
        rows(arguments[0], arguments[1], *map(int, arguments[2:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
