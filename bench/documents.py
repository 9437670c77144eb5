"""The corpora's files: where they lie, how they are written and read."""

import hashlib
import lzma
import pathlib
import random
import string
import struct

BENCH_BUILD = pathlib.Path(__file__).resolve().parent.parent / "build" / "bench"

# What PostgreSQL's COPY text format needs escaped.
COPY_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def write_corpus(corpus, documents, sources):
    """Write (name, body) pairs as ids 1..n; returns the text of the corpus's README."""
    folder = BENCH_BUILD / corpus
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "documents.bin", "wb") as binary:
        for _, body in documents:
            binary.write(struct.pack("<I", len(body)) + body)
    with open(folder / "documents.tsv", "w", encoding="utf-8", newline="") as table:
        for number, (name, body) in enumerate(documents, 1):
            text = body.decode("utf-8").translate(COPY_ESCAPES)
            table.write(f"{number}\t{name.translate(COPY_ESCAPES)}\t{text}\n")
    readme = describe(corpus, documents, sources)
    # Written last: its presence says that the corpus is complete.
    (folder / "README").write_text(readme, encoding="utf-8")
    return readme


def describe(corpus, documents, sources):
    sizes = [len(body) for _, body in documents]
    digest = hashlib.sha256((BENCH_BUILD / corpus / "documents.bin").read_bytes()).hexdigest()
    used = {source: 0 for source in sources}
    for name, _ in documents:
        used[name.split("/", 1)[0]] += 1
    lines = [
        f"corpus: {corpus}",
        f"documents: {len(sizes)}",
        f"bytes: {sum(sizes)}",
        f"mean bytes: {sum(sizes) / len(sizes):.1f}",
        f"smallest, largest: {min(sizes)}, {max(sizes)} bytes",
        f"sha256 of documents.bin: {digest}",
        "documents by the source in which each text is first met:",
        *(f"  {source}: {count}" for source, count in used.items()),
    ]
    return "\n".join(lines) + "\n"


def read_documents(corpus):
    """The bodies of a corpus as bytes, in the order of the ids 1..n."""
    return read_file(BENCH_BUILD / corpus / "documents.bin")


def read_file(path):
    """The bodies of a documents.bin as bytes, in the order of the ids 1..n."""
    data = pathlib.Path(path).read_bytes()
    bodies = []
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from("<I", data, position)
        position += 4
        bodies.append(data[position : position + length])
        position += length
    return bodies


def word_lines(path, seed=1):
    """The lines of a file of words, compressed by xz or not. Of "-" those of made words by Zipf's law, without end: for more text than there is to be had."""
    if path != "-":
        with (lzma.open if path.endswith(".xz") else open)(path, "rt", encoding="utf-8") as file:
            yield from file
        return
    letters = random.Random(48)
    # Frequent words are short, as in a language.
    words = ["".join(letters.choices(string.ascii_lowercase, k=2 + rank.bit_length() // 3)) for rank in range(200000)]
    chance, most = random.Random(seed).random, len(words)
    while True:
        yield " ".join([words[int(most ** chance())] for _ in range(1000)])
