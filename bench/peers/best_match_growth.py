"""The best match of each of N names with typos among N / 4 names. bench/best_match_growth says how it is run.

With the arguments "tool NAME QUERIES ITEMS RESULT" it runs one tool on files of a name a line, and writes the places of the matches.
"""

import argparse
import datetime
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy

BENCH = Path(__file__).resolve().parent.parent
RESULTS = BENCH / "results" / "best_match.json"
sys.path.insert(0, str(BENCH))
from reporting.store import as_text, parse  # noqa: E402  # the folder beside this one

SEED = 45

# ---- Names ----


def weighted(path):
    lines = [line.split() for line in Path(path).read_text().splitlines() if line.strip()]
    return [line[0].capitalize() for line in lines], [float(line[1]) + 0.0005 for line in lines]


def different_names(count, source):
    import names
    first, first_weights = map(sum, zip(weighted(names.FILES["first:male"]), weighted(names.FILES["first:female"])), ([], []))
    last, last_weights = weighted(names.FILES["last"])
    found = {}
    while len(found) < count:
        drawn = zip(source.choices(first, first_weights, k=count), source.choices(last, last_weights, k=count))
        found.update(dict.fromkeys(f"{a} {b}" for a, b in drawn))
    return list(found)[:count]


def with_typo(name, source):
    """A character replaced, left out, doubled, or exchanged with the next one."""
    place = source.randrange(len(name) - 1)
    changed = source.choice([name[:place] + source.choice("abcdefghijklmnopqrstuvwxyz") + name[place + 1:], name[:place] + name[place + 1:],
                             name[:place] + name[place] + name[place:], name[:place] + name[place + 1] + name[place] + name[place + 2:]])
    return changed if changed != name else with_typo(name, source)


def misspelled(names, source):
    """Four of each, two with one typo, two with two."""
    once = [with_typo(name, source) for name in names for _ in range(4)]
    return [with_typo(name, source) if place % 4 > 1 else name for place, name in enumerate(once)]


# ---- Tools that are libraries: places of the matches, of strings in memory ----

BLOCK = 500    # queries whose distances are in memory at once


def rapidfuzz(queries, items):
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist
    blocks = (queries[start:start + BLOCK] for start in range(0, len(queries), BLOCK))
    return numpy.concatenate([cdist(block, items, scorer=Levenshtein.distance, workers=1, dtype=numpy.uint8).argmin(axis=1) for block in blocks])


def stringzilla(queries, items):
    import stringzilla
    import stringzillas
    scope = stringzillas.DeviceScope(cpu_cores=1)
    engine = stringzillas.LevenshteinDistances(capabilities=scope)
    items = stringzilla.Strs(items)
    blocks = (stringzilla.Strs(queries[start:start + BLOCK]) for start in range(0, len(queries), BLOCK))
    return numpy.concatenate([numpy.asarray(engine(block, items, device=scope)).argmin(axis=1) for block in blocks])


def sparse_dot_topn(queries, items):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sparse_dot_topn import sp_matmul_topn
    weigher = TfidfVectorizer(analyzer="char", ngram_range=(3, 3), dtype=numpy.float32)
    right = weigher.fit_transform(items)
    best = sp_matmul_topn(weigher.transform(queries), right.T.tocsr(), top_n=1, n_threads=1)
    places = numpy.zeros(len(queries), dtype=numpy.int64)
    found = numpy.flatnonzero(numpy.diff(best.indptr))
    places[found] = best.indices[best.indptr[found]]
    return places


def duckdb(queries, items):
    import duckdb
    db = duckdb.connect()
    db.sql("SET threads = 1")
    for name, strings in (("queries", queries), ("items", items)):
        columns = {"id": numpy.arange(len(strings)), "name": numpy.array(strings, dtype=object)}  # noqa: F841  # the statement reads them
        db.sql(f"CREATE TABLE {name} AS SELECT * FROM columns")
    return db.sql("SELECT arg_max(i.id, jaro_winkler_similarity(q.name, i.name)) AS best FROM queries q, items i GROUP BY q.id ORDER BY q.id").fetchnumpy()["best"]


TOOLS = {"rapidfuzz": (rapidfuzz, "Levenshtein", ["rapidfuzz"]), "StringZilla": (stringzilla, "Levenshtein, CPU", ["stringzillas-cpus"]),
         "DuckDB": (duckdb, "Jaro-Winkler", ["duckdb"]), "sparse_dot_topn": (sparse_dot_topn, "cosine of trigrams", ["sparse-dot-topn"])}


def run_tool(name, queries, items, result):
    queries, items = (Path(path).read_text().split("\n") for path in (queries, items))
    function = TOOLS[name][0]
    function(queries[:8], items[:8])    # loads what it needs
    before = time.process_time()
    places = function(queries, items)
    print(time.process_time() - before)
    numpy.save(result, numpy.asarray(places, dtype=numpy.int64))


def of_tool(name):
    def measure(folder, size):
        result = folder / "places.npy"
        one = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
        done = subprocess.run([sys.executable, __file__, "tool", name, folder / "queries", folder / "items", result], capture_output=True, text=True,
                              env=os.environ | one)
        if done.returncode:
            sys.exit(f"best_match_growth: {name}: {done.stderr.strip()[-500:]}")
        return float(done.stdout), numpy.load(result)
    return measure


# ---- The server ----


def psql(*commands, database="bench"):
    arguments = [part for command in commands for part in (("-f", str(command)) if isinstance(command, Path) else ("-c", command))]
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", database, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"best_match_growth: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def of_statements(settings, *statements, clock=False, shortest=0):
    """The last of the statements makes the table found (query, item), of numbers from 1. They are run so often that the server's
    clock of processors, which counts hundredths of a second, is good for that many rows."""
    def measure(folder, size):
        times = max(1, shortest // size)
        now = "extract(epoch FROM clock_timestamp())" if clock else "processor_seconds()"
        places = folder / "places.csv"
        again = ["DROP TABLE IF EXISTS found", *statements] * times
        seconds = psql("DROP INDEX IF EXISTS by_trigrams", *settings, f"SELECT {now}", *again, f"SELECT {now}",
                       f"\\copy (SELECT coalesce(f.item, 1) - 1 FROM queries q LEFT JOIN found f ON f.query = q.id ORDER BY q.id) TO '{places}'")
        return (float(seconds[1][0]) - float(seconds[0][0])) / times, numpy.loadtxt(places, dtype=numpy.int64, ndmin=1)
    return measure


def of_gputext(metric, device):
    return of_statements(["LOAD 'gputext'", f"SET gputext.device = {device}"],
                         "CREATE TEMP TABLE found AS SELECT query_id AS query, item_id AS item"
                         f" FROM gpu_knn('SELECT id, name FROM queries', 'SELECT id, name FROM items', k => 1, metric => '{metric}')", clock=device == "gpu", shortest=50000)


def of_index(method, subquery):
    return of_statements(["SET max_parallel_workers_per_gather = 0", "SET enable_seqscan = off"],
                         f"CREATE INDEX by_trigrams ON items USING {method} (name {method}_trgm_ops)",
                         f"CREATE TEMP TABLE found AS SELECT q.id AS query, n.id AS item FROM queries q CROSS JOIN LATERAL ({subquery} LIMIT 1) n")


def contenders(device):
    """By name: what measures it, and whether it is left out where it would take long."""
    where = ", GPU" if device == "gpu" else ""
    found = {f"`gpu_knn`{where}, `{metric}`": (of_gputext(metric, device), False) for metric in ("edit_rate", "levenshtein", "jaro_winkler", "trigram")}
    if device == "gpu":
        return found
    for name, (_, metric, packages) in TOOLS.items():
        found[f"{name} {version(packages[0])}, {metric}"] = (of_tool(name), True)
    trigrams = psql("SELECT default_version FROM pg_available_extensions WHERE name = 'pg_trgm'", database="postgres")
    if trigrams:
        name = f"pg_trgm {trigrams[0][0]}"
        found[f"{name}, GIN, `%`"] = (of_index("gin", "SELECT i.id FROM items i WHERE i.name % q.name ORDER BY similarity(i.name, q.name) DESC, i.id"), True)
        found[f"{name}, GiST, `<->`"] = (of_index("gist", "SELECT i.id FROM items i ORDER BY i.name <-> q.name"), True)
    return found


# ---- The table ----


def make_names(folder, size):
    source = random.Random(SEED)
    items = different_names(size // 4, source)
    queries = misspelled(items, source)
    for name, strings in (("queries", queries), ("items", items)):
        (folder / name).write_text("\n".join(strings))
        (folder / f"{name}.tsv").write_text("".join(f"{place}\t{string}\n" for place, string in enumerate(strings, 1)))
        psql(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} (id bigint PRIMARY KEY, name text)", f"\\copy {name} FROM '{folder / name}.tsv'",
             f"VACUUM ANALYZE {name}")
    return numpy.arange(size) // 4


def measure_all(options):
    tools = {name: tool for name, tool in contenders(options.device).items() if not options.only or any(name.startswith(part) for part in options.only)}
    seconds, right, last = {name: {} for name in tools}, {name: None for name in tools}, {}
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        for size in options.sizes:
            wanted = make_names(folder, size)
            print(f"{size:,} names among {size // 4:,}, seed {SEED}", flush=True)
            for name, (measure, may_be_left_out) in tools.items():
                if may_be_left_out and name in last and last[name][1] * (size / last[name][0])**2 > options.limit:
                    continue
                spent, places = measure(folder, size)
                last[name] = size, spent
                seconds[name][size] = float(f"{spent:.3g}") if spent < 99.95 else round(spent)
                share = int((places == wanted).sum())
                if size == options.judged:
                    right[name] = f"{share:,} of {size:,}"
                print(f"  {name}: {spent:.3g} s, {share:,} right", flush=True)
    return seconds, right


# Names of the lines of the picture, and what the names of their rows of the table contain
DRAWN = {"gputext, edit rate": ["`gpu_knn`, `edit_rate`"], "gputext, trigram": ["`gpu_knn`, `trigram`"], "GPU, edit rate": ["GPU, `edit_rate`"],
         "GPU, trigram": ["GPU, `trigram`"], "rapidfuzz": ["rapidfuzz"], "StringZilla": ["StringZilla"], "DuckDB": ["DuckDB"],
         "sparse_dot_topn": ["sparse_dot_topn"], "pg_trgm, GIN": ["pg_trgm", "GIN"], "pg_trgm, GiST": ["pg_trgm", "GiST"]}


def draw_lines(stored, table):
    """The lines of the plot "best-match", for all that the table has."""
    plot = next((plot for plot in stored["plots"] if plot["name"] == "best-match"), None)
    if plot is None:
        return
    sizes = [column["name"] for column in table["columns"] if column.get("unit") == "s"]
    lines = []
    for series, parts in DRAWN.items():
        for row in table["rows"]:
            points = [{"cell": ["best_match/growth", row[0], size], "x": int(size.replace(",", ""))}
                      for place, size in enumerate(sizes, 1) if row[place] is not None]
            if all(part in row[0] for part in parts) and points:
                lines.append({"series": series, "points": points})
    plot["series"], plot["lines"] = [line["series"] for line in lines], lines


def write(options, seconds, right):
    stored = parse(RESULTS.read_text())
    cpu = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.M)
    commit = subprocess.run(["git", "-C", BENCH, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True).stdout.strip()
    run = f"growth {options.device}"
    stored["runs"][run] = {
        "hardware": f"{os.cpu_count()} processors, {cpu[1] if cpu else 'not recorded'}" + (f", {options.note}" if options.note else ""),
        "processors": os.cpu_count(), "device": options.note if options.device == "gpu" else None, "date": datetime.date.today().isoformat(), "commit": commit,
        "command": " ".join(["bench/best_match_growth", *sys.argv[1:]]), "page": "docs/fuzzy-join.md"}
    columns = [f"{size:,}" for size in options.sizes]
    judged = f"Right of {options.judged:,}"
    table = next((table for table in stored["tables"] if table["name"] == "growth"), None)
    if table is None:
        table = {"name": "growth", "run": run, "columns": [{"name": "Found by"}, *({"name": name, "unit": "s", "align": "right"} for name in columns),
                                                          {"name": judged, "align": "right"}], "rows": []}
        stored["tables"].append(table)
    names = [column["name"] for column in table["columns"]]
    for name, times in seconds.items():
        row = next((row for row in table["rows"] if row[0] == name), None)
        if row is None:
            row = [name] + [None] * (len(names) - 1)
            table["rows"].append(row)
        for size, spent in times.items():
            row[names.index(f"{size:,}")] = spent
        if right[name]:
            row[names.index(judged)] = right[name]
        if run != table["run"]:
            table.setdefault("row_runs", {})[name] = run
    draw_lines(stored, table)
    RESULTS.write_text(as_text(stored))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=lambda given: [int(size) for size in given.split(",")], default=[1000, 3000, 10000, 30000, 100000, 300000, 1000000])
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--judged", type=int, default=10000)
    parser.add_argument("--only", type=lambda given: given.split(","))
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--note")
    parser.add_argument("--out", action="store_true")
    options = parser.parse_args()
    psql("DROP DATABASE IF EXISTS bench", "CREATE DATABASE bench TEMPLATE template0 ENCODING 'UTF8'", database="postgres")
    psql("CREATE EXTENSION gputext", BENCH / "processor_seconds.sql")
    if psql("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'") == [["1"]]:
        psql("CREATE EXTENSION pg_trgm")
    seconds, right = measure_all(options)
    if options.out:
        write(options, seconds, right)


if __name__ == "__main__":
    if sys.argv[1:2] == ["tool"]:
        run_tool(*sys.argv[2:])
    else:
        main()
