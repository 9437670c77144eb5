"""Corpora, oracle and peers of shared passages.

usage: passages.py posts WORDS COUNT OUT.bin             posts with quotes and signatures, from a fixed seed
       passages.py lines WORDS COUNT FIRST               lines of an id from FIRST and a text of 16 words for COPY, one of ten with the most of one before it
       passages.py rows DOCUMENTS.bin                    lines of an id and a text for COPY
       passages.py oracle FOLDER                         of the .bin files of FOLDER; psql leads to the server
       passages.py suffix_array DOCUMENTS.bin LENGTH     coverage by a suffix array
       passages.py winnowing DOCUMENTS.bin LENGTH COUNT  copydetect on the first documents
       passages.py difflib DOCUMENTS.bin LENGTH COUNT    difflib on all pairs of the first documents

WORDS is a file of words, compressed by xz or not; - for made words.
"""

import collections
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from documents import COPY_ESCAPES, read_file, word_lines

# ---- Posts ----

POST_WORDS = 290     # of its own, in the mean
AUTHORS = 2000
REPLIES = 0.6        # posts that answer one of the last THREADS posts
THREADS = 500


def posts(words, count, out):
    """Lines of 70 characters, a header, own paragraphs, of an answer one to three quotes of which each line begins with "> ", and the signature of the author."""
    source = random.Random(48)
    stream = (word for line in word_lines(words) for word in line.split())
    own_words = lambda number: [word for word, _ in zip(stream, range(number))]
    authors = []
    for _ in range(AUTHORS):
        name = " ".join(own_words(2)).title()
        authors.append((name, textwrap.wrap(" ".join(own_words(source.randint(4, 24))), 70)))
    bodies, written = [], []
    for number in range(count):
        name, signature = source.choice(authors)
        lines = [f"From: {name} <user{number % 7919}@example.org>", "Subject: " + " ".join(own_words(5)), ""]
        if bodies and source.random() < REPLIES:
            quoted_name, quoted = written[-source.randint(1, min(THREADS, len(written)))]
            lines.append(f"In a former article {quoted_name} writes:")
            for _ in range(source.randint(1, 3)):
                begin = source.randrange(len(quoted))
                lines += ["> " + line for line in quoted[begin:begin + source.randint(2, 15)]]
                lines.append("")
        own = textwrap.wrap(" ".join(own_words(round(source.expovariate(1 / POST_WORDS)) + 20)), 70)
        written.append((name, own))
        bodies.append("\n".join([*lines, *own, "", "-- ", *signature]).encode())
    with open(out, "wb") as file:
        for body in bodies:
            file.write(len(body).to_bytes(4, "little") + body)
    print(f"{out}: {count} posts, {sum(map(len, bodies))} bytes")


def lines(path, count, first):
    source = random.Random(48 + first)
    stream = (word for line in word_lines(path, first) for word in line.split())
    recent = collections.deque(maxlen=1000)
    for number in range(count):
        if number % 10 == 9:
            words = [*itertools.islice(stream, 4), *source.choice(recent)[:12]]
        else:
            words = list(itertools.islice(stream, 16))
        recent.append(words)
        sys.stdout.write(f"{first + number}\t{' '.join(words)}\n")


def rows(path):
    for number, body in enumerate(read_file(path), 1):
        sys.stdout.write(f"{number}\t{body.decode('utf-8').translate(COPY_ESCAPES)}\n")


# ---- A suffix array of all documents ----

FORMS = {
    "characters": {},
    "words": {"unit": "words"},
    "words, folded case": {"unit": "words", "fold_case": True},
    "folded case and blanks": {"fold_case": True, "fold_blanks": True},
}


def symbols_of(text, form):
    """What is compared, and the first and last character of each."""
    if form.get("fold_case"):
        text = re.sub("[A-Z]", lambda letter: letter[0].lower(), text)
    if form.get("unit") == "words":
        pattern = r"[A-Za-z0-9\u0080-\U0010ffff]+"
    elif form.get("fold_blanks"):
        pattern = r"[ \t-\r]+|[^ \t-\r]"
    else:
        return list(text), range(len(text)), range(1, len(text) + 1)
    found = list(re.finditer(pattern, text))
    spelled = [one[0] for one in found]
    if form.get("fold_blanks"):
        spelled = [" " if one[0] in " \t\n\v\f\r" else one for one in spelled]
    return spelled, [one.start() for one in found], [one.end() for one in found]


class Suffixes:
    """Of documents, each a sequence of numbers from 1, or bytes above 0: the suffix array, and how much a suffix has in common with the next one."""

    def __init__(self, documents, narrow=False):
        import numpy
        from pydivsufsort import divsufsort, kasai
        lengths = numpy.array([len(document) + 1 for document in documents])
        self.ends = numpy.cumsum(lengths) - 1
        self.begins = self.ends - lengths + 1
        if narrow:
            self.all = numpy.frombuffer(bytearray(b"\0".join(documents) + b"\0"), dtype=numpy.uint8)
        else:
            self.all = numpy.array([number for document in documents for number in [*document, 0]], dtype=numpy.uint32)
        self.document = numpy.repeat(numpy.arange(len(documents)), lengths)
        self.order = divsufsort(self.all)
        rest = (self.ends[self.document] - numpy.arange(len(self.all)))[self.order]
        self.rest = rest
        self.common = numpy.minimum(kasai(self.all, self.order)[:-1], numpy.minimum(rest[:-1], rest[1:]))
        self.rank = numpy.empty_like(self.order)
        self.rank[self.order] = numpy.arange(len(self.order))
        self.numpy = numpy

    def groups(self, length):
        """For each place of the order the number of its group of equal windows, and whether it is a window; documents of each group."""
        numpy = self.numpy
        group = numpy.concatenate([[0], numpy.cumsum(self.common < length)])
        seen = numpy.unique(group * len(self.ends) + self.document[self.order])
        documents = numpy.bincount(seen // len(self.ends), minlength=group[-1] + 1)
        return group, self.rest >= length, documents

    def covered(self, length, least, gaps):
        """Where stretches of the windows that stand in so many documents begin and end. With gaps between symbols none goes on where no window has both."""
        numpy = self.numpy
        group, is_window, documents = self.groups(length)
        starts = numpy.sort(self.order[is_window & (documents[group] >= least)])
        ends_one = numpy.diff(starts) > length - gaps
        first = numpy.concatenate([[True], ends_one]) if len(starts) else []
        last = numpy.concatenate([ends_one, [True]]) if len(starts) else []
        return starts[first], starts[last] + length

    def runs(self, marks):
        """Where those that are set begin and end."""
        steps = self.numpy.flatnonzero(self.numpy.diff(marks, prepend=False, append=False))
        return steps.reshape(-1, 2).tolist()

    def places(self, place, length):
        """Of all stretches of symbols that are equal to this one: their number, that of their documents, and where the first one begins."""
        first = last = self.rank[place]
        while first > 0 and self.common[first - 1] >= length:
            others = self.numpy.flatnonzero(self.common[max(0, first - 1000):first] < length)
            first = max(0, first - 1000) + others[-1] + 1 if len(others) else max(0, first - 1000)
        while last < len(self.common) and self.common[last] >= length:
            others = self.numpy.flatnonzero(self.common[last:last + 1000] < length)
            last += others[0] if len(others) else min(1000, len(self.common) - last)
        places = self.order[first:last + 1]
        return len(places), len(self.numpy.unique(self.document[places])), places.min()

    def pairs(self, length):
        """All maximal ones: document and symbol of both, and the length, a row each."""
        numpy = self.numpy
        group, is_window, _ = self.groups(length)
        before = numpy.where(numpy.arange(len(self.all)) == self.begins[self.document], -1 - self.document,
                             numpy.roll(self.all, 1).astype(numpy.int64))
        at = numpy.flatnonzero(is_window)
        common = numpy.full(len(at), numpy.iinfo(numpy.int64).max)
        found, step = [], 0
        while True:
            step += 1
            keep = at + step < len(group)
            at, common = at[keep], common[keep]
            keep = group[at + step] == group[at]
            at, common = at[keep], common[keep]
            if not len(at):
                break
            common = numpy.minimum(common, self.common[at + step - 1])
            a, b = self.order[at], self.order[at + step]
            maximal = (self.document[a] != self.document[b]) & (before[a] != before[b])
            found.append(numpy.stack([numpy.minimum(a, b), numpy.maximum(a, b), common])[:, maximal])
        found = numpy.concatenate(found, axis=1) if found else numpy.zeros((3, 0), dtype=numpy.int64)
        first, second = self.document[found[0]], self.document[found[1]]
        return numpy.stack([first, found[0] - self.begins[first], second, found[1] - self.begins[second], found[2]])


# ---- The oracle ----


def psql(*commands, stdin=None, lines=True):
    arguments = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", "bench", *arguments],
                          input=stdin, capture_output=True, encoding="utf-8")
    if done.returncode:
        sys.exit(f"passages: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()] if lines else done.stdout


def integers(numpy, sql, columns):
    """The rows of integers that a statement gives, as columns."""
    rows = psql(f"COPY ({sql}) TO STDOUT", lines=False)
    return (numpy.fromstring(rows, dtype=numpy.int64, sep=" ") if rows else numpy.zeros(0, dtype=numpy.int64)).reshape(-1, columns).T


def in_order(numpy, rows):
    return rows[:, numpy.lexsort(rows[::-1])]


def made_corpora(source):
    words = ["".join(source.choices("abcdefgh", k=source.randint(1, 9))) for _ in range(300)]
    text = lambda count: " ".join(source.choices(words, k=count))
    letter = text(400)
    quoting = [text(80) for _ in range(60)]
    for number in range(60, 240):
        old = source.choice(quoting)
        begin = source.randrange(len(old))
        quoting.append(text(20) + "\n> " + old[begin:begin + source.randint(10, 300)].replace(" ", source.choice([" ", "\n> ", "  "])) + "\n" + text(20))
    yield "quotes", quoting
    yield "one document repeated", [letter] * 25 + [letter[:-1], letter[1:], letter.upper()]
    yield "repeated characters", ["a" * 120, "a" * 75, "b" + "a" * 60 + "b", "ab" * 80, "ba" * 61, "-" * 90 + letter, letter + "-" * 70]
    yield "empty and short", ["", "a", "", letter[:49], letter[:50], letter[:51], "", letter[1:51], letter]
    yield "characters of several bytes", [source.choice(["日本語の文章です", "ŁódźÅßẞ", "😀🎉 ja"]) * source.randint(1, 12) + text(5) for _ in range(80)]
    yield "two letters", ["".join(source.choices("ab", k=200)) for _ in range(80)]


def corpora(folder, source):
    yield from made_corpora(source)
    files = sorted({path.resolve() for path in Path("/usr/share/common-licenses").glob("*")})
    yield "common-licenses", [path.read_text(encoding="utf-8") for path in files]
    for name, count, longest in ("sources", 1200, 3000), ("licences", 200, 20000), ("kernel", 100, 30000), ("posts", 1000, 10000):
        path = Path(folder) / f"{name}.bin"
        if not path.exists():
            print(f"{name}: no {path}, left out")
            continue
        bodies = [body.decode("utf-8") for body in read_file(path) if len(body) <= longest]
        yield name, bodies[:count]


def oracle(folder):
    failed = False
    for name, texts in corpora(folder, random.Random(48)):
        psql("DROP TABLE IF EXISTS oracle", "CREATE TABLE oracle (id bigint PRIMARY KEY, body text)")
        psql("\\copy oracle FROM STDIN", stdin="".join(f"{number}\t{text.translate(COPY_ESCAPES)}\n" for number, text in enumerate(texts)))
        for form_name, form in FORMS.items():
            if form_name != "characters" and len(texts) > 1000:
                continue
            numbers = {}
            symbols = [symbols_of(text, form) for text in texts]
            suffixes = Suffixes([[numbers.setdefault(one, len(numbers) + 1) for one in spelled] for spelled, _, _ in symbols])
            for length in (10, 3) if form.get("unit") == "words" else (50, 20):
                failed |= differs(f"{name}, {form_name}, {length}", texts, symbols, suffixes, form, length)
    sys.exit(failed)


def differs(name, texts, symbols, suffixes, form, length):
    options = "".join(f", {key} => {json.dumps(value) if value is True else repr(value)}" for key, value in form.items())
    call = f"('SELECT id, body FROM oracle', min_length => {length}{options}"
    numpy = suffixes.numpy
    firsts, ends = (numpy.array([at for one in symbols for at in one[column]] + [0]) for column in (1, 2))
    begins = numpy.cumsum([0] + [len(one[0]) for one in symbols])

    def place_of(document, first, count):
        """Where so many symbols stand in their document, from 1, and how many characters they are."""
        start = firsts[begins[document] + first]
        return start + 1, ends[begins[document] + first + count - 1] - start

    a, i, b, j, count = suffixes.pairs(length)
    wanted = in_order(numpy, numpy.stack([a, *place_of(a, i, count), b, *place_of(b, j, count)]))
    found = in_order(numpy, integers(numpy, f"SELECT id1, start1, length1, id2, start2, length2 FROM shared_passages{call}, max_pairs => 100000000)", 6))
    wrong = not numpy.array_equal(wanted, found)
    missing, extra = (set(map(tuple, wanted.T)), set(map(tuple, found.T))) if wrong else (set(), set())
    print(f"{name}: {wanted.shape[1]} pairs, {len(missing - extra)} missing, {len(extra - missing)} extra", end="")
    for least in (2, 3):
        expected = [(document, len(text), []) for document, text in enumerate(texts)]
        for at, end in zip(*suffixes.covered(length, least, gaps=form.get("unit") == "words")):
            document = suffixes.document[at]
            expected[document][2].append(place_of(document, at - suffixes.begins[document], end - at))
        got = [(int(row[0]), int(row[1]), list(zip(json.loads(row[3]), json.loads(row[4]))), int(row[2])) for row in psql(
            f"SELECT id, characters, covered, to_json(starts), to_json(lengths) FROM passage_coverage{call}, min_documents => {least}) ORDER BY id")]
        rows = sum(a != b[:3] or b[3] != sum(count for _, count in b[2]) for a, b in zip(expected, got)) + abs(len(expected) - len(got))
        print(f"; coverage by {least} documents: {rows} of {len(expected)} documents differ", end="")
        wrong += rows
        wrong += differs_in_common(symbols, suffixes, place_of, call, length, least)
    print(flush=True)
    return wrong > 0


def differs_in_common(symbols, suffixes, place_of, call, length, least):
    group, is_window, documents = suffixes.groups(length)
    shared = suffixes.numpy.zeros(len(suffixes.all), dtype=bool)
    shared[suffixes.order[is_window & (documents[group] >= least)]] = True
    expected = {}
    for document, begin in enumerate(suffixes.begins):
        spelled = symbols[document][0]
        for at, end in suffixes.runs(shared[begin:begin + len(spelled)]):
            count = end - at + length - 1
            passage = tuple(spelled[at:at + count])
            if passage not in expected:
                places, having, first = suffixes.places(begin + at, count)
                expected[passage] = (having, places, suffixes.document[first], *place_of(suffixes.document[first], first - suffixes.begins[suffixes.document[first]], count))
    got = [tuple(map(int, row)) for row in psql(f"SELECT documents, occurrences, id, start, length FROM common_passages{call}, min_documents => {least})")]
    wrong = len(set(expected.values()) ^ set(got)) + abs(len(expected) - len(got))
    print(f", {wrong} of {len(expected)} common passages", end="")
    return wrong


# ---- Peers ----


def timed(name, work):
    started, processor = time.perf_counter(), time.process_time()
    what = work()
    print(f"{name}: {time.process_time() - processor:.2f} processor seconds, {time.perf_counter() - started:.2f} s; {what}", flush=True)


def suffix_array(path, length):
    bodies = read_file(path)

    def work():
        suffixes = Suffixes(bodies, narrow=True)
        at, end = suffixes.covered(int(length), 2, gaps=False)
        return f"{(end - at).sum()} of {sum(map(len, bodies))} bytes covered"

    timed("pydivsufsort, LCP and numpy", work)


def winnowing(path, length, count):
    from copydetect import CopyDetector
    bodies = read_file(path)[:int(count)]
    with tempfile.TemporaryDirectory() as folder:
        for number, body in enumerate(bodies):
            (Path(folder) / f"{number}.txt").write_bytes(body)

        def work():
            detector = CopyDetector(test_dirs=[folder], extensions=["txt"], noise_t=25, guarantee_t=int(length), display_t=0, autoopen=False,
                                    disable_filtering=True, silent=True)
            detector.run()
            return f"{(detector.token_overlap_matrix > 0).sum() // 2} pairs of documents"

        timed(f"copydetect, {len(bodies)} documents", work)


def difflib(path, length, count):
    """Its blocks are those of one alignment: what moved is not among them."""
    from difflib import SequenceMatcher
    bodies = [body.decode("utf-8") for body in read_file(path)[:int(count)]]

    def work():
        blocks = [block for a, b in itertools.combinations(bodies, 2)
                  for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks() if block.size >= int(length)]
        return f"{len(blocks)} passages in pairs"

    timed(f"difflib, {len(bodies)} documents", work)


def main():
    commands = {"posts": lambda words, count, out: posts(words, int(count), out), "rows": rows, "oracle": oracle,
                "lines": lambda words, count, first: lines(words, int(count), int(first)), "suffix_array": suffix_array, "winnowing": winnowing, "difflib": difflib}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
