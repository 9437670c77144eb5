"""Splink, recordlinkage, dedupe or GoldenMatch on a data set of bench/record_data, at their documented settings.

Arguments: PEER FOLDER SET; PEER is one of PEERS below; splink_all_pairs has the rule 1=1. Prints pairs compared, matches that are not
among them, seconds and processor seconds from the tables in memory to the answer, and F1: of the best threshold, from match
probability 0.5, and of the best threshold of pairs that are the best of both their records.
"""

import csv
import logging
import os
import random
import sys
import time
import warnings
from pathlib import Path

logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")

NAMES = [0.92, 0.88, 0.7]
ADDRESS = ("street_number", "street_name", "city", "state", "zipcode")


def read(path):
    """The rows; what is empty is None."""
    with open(path, newline="") as lines:
        return [{field: value or None for field, value in row.items()} for row in csv.DictReader(lines)]


class Records:
    def __init__(self, folder, name):
        self.name = name
        self.tables = [read(path) for side in "ab" if (path := folder / f"{name}_{side}.csv").exists()]
        for row in (row for table in self.tables for row in table if "street_name" in row):
            row["address"] = None if None in [row[part] for part in ADDRESS] else " ".join(filter(None, [*(row[part] for part in ADDRESS), row["unit_number"]]))
        self.one = len(self.tables) == 1
        self.truth = {self.pair(row["id1"], row["id2"]) for row in read(folder / f"{name}_truth.csv")}

    def pair(self, a, b):
        return (min(a, b), max(a, b)) if self.one else (a, b)

    def frames(self):
        import pandas

        return [pandas.DataFrame(table).astype("string").astype(object).where(lambda frame: frame.notna(), None) for table in self.tables]


def f1(scores, truth, least=None):
    """Of pairs with scores: the F1 of the best threshold, or of all from `least` on."""
    order = sorted(scores, key=scores.get, reverse=True)
    best, right = (0.0, 0, 0), 0
    if least is not None:
        order = [pair for pair in order if scores[pair] >= least]
    for count, pair in enumerate(order, 1):
        right += pair in truth
        # A threshold does not part equal scores.
        if count == len(order) or least is None and scores[order[count]] != scores[pair]:
            value = 2 * right / (count + len(truth)), right, count - right
            best = value if least is not None else max(best, value)
    return best


def best_of_both(scores):
    most = ({}, {})
    for pair, score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
        for side, record in zip(most, pair):
            side.setdefault(record, pair)
    return {pair: score for pair, score in scores.items() if most[0][pair[0]] == pair == most[1][pair[1]]}


def splink_settings(name):
    """Comparisons; rules of pairs; rules that match surely, and the share of the matches that they find; rules of EM's sessions; whether EM goes
    without term frequencies. Those of febrl3, febrl4 and acs are of Splink's notebooks; the others as near to them as the data allow."""
    import splink.comparison_library as library
    from splink import block_on

    def by_term(comparison):
        return comparison.configure(term_frequency_adjustments=True)

    date = {"input_is_string": True, "datetime_format": "%Y%m%d"}
    if name.startswith("febrl"):
        exchanged = "l.given_name = r.surname and l.surname = r.given_name"
        sure = [block_on("soc_sec_id"), block_on("given_name", "surname", "date_of_birth")]
        em = [block_on("date_of_birth"), block_on("postcode")]
        number = by_term(library.ExactMatch("street_number"))
    if name == "febrl3":
        return ([library.NameComparison("given_name"), library.NameComparison("surname"), library.DateOfBirthComparison("date_of_birth", **date),
                 library.DamerauLevenshteinAtThresholds("soc_sec_id", [2]), number, by_term(library.ExactMatch("postcode"))],
                [block_on(field) for field in ("soc_sec_id", "given_name", "surname", "date_of_birth", "postcode")],
                [*sure, f"{exchanged} and l.date_of_birth = r.date_of_birth"], 0.9, em, False)
    if name == "febrl4":
        return ([by_term(library.NameComparison("given_name")), by_term(library.NameComparison("surname")),
                 library.DateOfBirthComparison("date_of_birth", invalid_dates_as_null=True, **date),
                 library.DamerauLevenshteinAtThresholds("soc_sec_id", [1, 2]), number, by_term(library.DamerauLevenshteinAtThresholds("postcode", [1, 2]))],
                [block_on("given_name", "surname"), exchanged, block_on("date_of_birth"), block_on("soc_sec_id"), block_on("state", "address_1"),
                 block_on("street_number", "address_1"), block_on("postcode")], sure, 0.8, em, True)
    if name == "restaurants":
        return ([library.JaroWinklerAtThresholds("name", NAMES), library.JaroWinklerAtThresholds("addr", NAMES), by_term(library.ExactMatch("city")),
                 library.DamerauLevenshteinAtThresholds("phone", [1, 2]), by_term(library.ExactMatch("type"))],
                [block_on("phone"), block_on("name"), block_on("addr"), block_on("city", "type"), block_on("substr(name,1,4)")],
                [block_on("phone")], 0.9, [block_on("phone"), block_on("city")], True)
    comparisons = [by_term(library.NameComparison("first_name", jaro_winkler_thresholds=[0.9])), by_term(library.ExactMatch("middle_initial")),
                   by_term(library.NameComparison("last_name", jaro_winkler_thresholds=[0.9]))]
    rules = [block_on("first_name"), block_on("last_name")]
    if name != "w2":
        comparisons += [library.DamerauLevenshteinAtThresholds("date_of_birth", 1), library.ExactMatch("sex")]
        rules.append(block_on("date_of_birth"))
    if name != "ssa":
        comparisons.append(by_term(library.DamerauLevenshteinAtThresholds("address")))
        rules += [block_on("street_name"), block_on("street_number")]
    sure, recall, em = [block_on("first_name", "last_name", "date_of_birth")], 0.7 if name == "census" else 0.8, [block_on("date_of_birth"), block_on("last_name")]
    if name == "w2":
        sure = [block_on("first_name", "last_name", "address"), block_on("first_name", "last_name", "middle_initial")]
        em = [block_on("first_name"), block_on("last_name")]
    elif name == "acs":
        sure = None
        rules.append(block_on("middle_initial", "sex"))
    return comparisons, rules, sure, recall, em, True


def splink(records, all_pairs=False):
    import duckdb
    from splink import DuckDBAPI, Linker, SettingsCreator

    comparisons, rules, sure, recall, em, without_terms = splink_settings(records.name)
    frames = records.frames()
    yield
    connection = duckdb.connect()
    connection.execute(f"SET threads = {os.cpu_count()}")
    api = DuckDBAPI(connection=connection)
    prior = {} if sure else {"probability_two_random_records_match": 1 / len(frames[0])}
    settings = SettingsCreator(unique_id_column_name="id", link_type="dedupe_only" if records.one else "link_only", comparisons=comparisons,
                               blocking_rules_to_generate_predictions=["1=1"] if all_pairs else rules, **prior)
    given = [api.register(frame, dataset_display_name=side) for side, frame in zip("ab", frames)]
    linker = Linker(given[0] if records.one else given, settings)
    if sure:
        linker.training.estimate_probability_two_random_records_match(sure, recall=recall)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6 if records.name in ("febrl3", "febrl4", "acs") else 1e7, seed=2)
    for rule in em:
        linker.training.estimate_parameters_using_expectation_maximisation(rule, estimate_without_term_frequencies=without_terms)
    # All pairs of all weights would not fit into memory.
    found = linker.inference.predict(**({"threshold_match_weight": -12} if all_pairs else {}))
    rows = connection.sql(f"SELECT id_l, id_r, match_weight FROM {found.physical_name}").fetchall()
    yield
    compared = len(records.tables[0]) * ((len(records.tables[0]) - 1) / 2 if records.one else len(records.tables[1])) if all_pairs else len(rows)
    yield {records.pair(a, b): weight for a, b, weight in rows}, round(compared), 0.0


def recordlinkage(records, ecm=False):
    """Its tutorials' comparisons, summed up or classified by its ECM, which learns without labels; pairs of five blocks, of which its tutorials have one, which loses
    nearly half of febrl3's matches."""
    import recordlinkage as library

    frames = [frame.set_index("id") for frame in records.frames()]
    yield
    index, compare = library.Index(), library.Compare()
    if records.name == "restaurants":
        blocks, similar, equal = ("city", "phone", "name", "type"), ("name", "addr"), ("city", "type")
        compare.string("phone", "phone", method="levenshtein", threshold=0.8)
    else:
        blocks, similar, equal = ("given_name", "surname", "date_of_birth", "soc_sec_id", "postcode"), ("surname", "address_1"), ("given_name", "date_of_birth", "suburb", "state")
    for field in blocks:
        index.block(field)
    for field in similar:
        compare.string(field, field, method="jarowinkler", threshold=0.85)
    for field in equal:
        compare.exact(field, field)
    pairs = index.index(*frames)
    features = compare.compute(pairs, *frames)
    if ecm:
        matches = set(library.ECMClassifier().fit_predict((features > 0.5).astype(int)).tolist())
        scores = [float(pair in matches) for pair in pairs.tolist()]
    else:
        scores = features.sum(axis=1).tolist()
    yield
    # Its tutorials take pairs that agree in more than three fields.
    yield {records.pair(*pair): value for pair, value in zip(pairs.tolist(), scores)}, len(pairs), 1.0 if ecm else 4.0


def dedupe(records):
    """Supervised: a tenth of the matches and as many other pairs are given as labels."""
    import dedupe as library
    import numpy

    chance = random.Random(1)
    random.seed(1)
    numpy.random.seed(1)
    fields = [field for field in records.tables[0][0] if field != "id"]
    rows = [{side + row["id"]: {field: row[field] for field in fields} for row in table} for side, table in zip("ab", records.tables)]
    first, second = rows[0], rows[-1]
    other = "a" if records.one else "b"
    known = chance.sample(sorted(records.truth), max(30, len(records.truth) // 10))
    match = [(first["a" + a], second[other + b]) for a, b in known]
    pairs = [(chance.choice(list(first)), chance.choice(list(second))) for _ in known]
    distinct = [(first[a], second[b]) for a, b in pairs if a != b and records.pair(a[1:], b[1:]) not in records.truth]
    yield
    variables = [library.variables.String(field, has_missing=True) for field in fields]
    linker = (library.Dedupe if records.one else library.RecordLink)(variables, num_cores=1, in_memory=True)
    linker.prepare_training(*rows, sample_size=1500)
    linker.mark_pairs({"match": match, "distinct": distinct})
    linker.train(recall=1.0)
    scored = linker.score(linker.pairs(*rows))
    found = {records.pair(a[1:], b[1:]): float(score) for (a, b), score in zip(scored["pairs"].tolist(), scored["score"].tolist())}
    yield
    yield found, len(found), 0.5


def goldenmatch(records):
    """Its configuration of its own making: probabilistic for one table, whose groups' pairs count; match_df for two."""
    import goldenmatch as library
    import pyarrow

    def table(rows, leave=()):
        return pyarrow.table({field: pyarrow.array([row[field] for row in rows], pyarrow.string()) for field in rows[0] if field not in leave and field != "id"}
                             | {"rid": pyarrow.array([row["id"] for row in rows], pyarrow.string())})

    tables = [table(rows) for rows in records.tables]
    yield
    found = {}
    if records.one:
        from goldenmatch.core.autoconfig import auto_configure_probabilistic_df

        ids = tables[0]["rid"].to_pylist()
        frame = tables[0].drop(["rid"])
        answer = library.dedupe_df(frame, config=auto_configure_probabilistic_df(frame), confidence_required=False, allow_red_config=True)
        for cluster in answer.clusters.values():
            members = [ids[member] for member in cluster["members"]]
            found.update({records.pair(a, b): 1.0 for place, a in enumerate(members) for b in members[:place]})
    else:
        columns = [name for name in tables[0].column_names if name in tables[1].column_names]
        answer = library.match_df(tables[1].select(columns), tables[0].select(columns), confidence_required=False, allow_red_config=True, exclude_columns=["rid"]).matched
        names = answer.column_names
        reference = next(name for name in names if name.endswith("rid") and "ref" in name)
        target = next(name for name in names if name.endswith("rid") and "ref" not in name)
        score = next(name for name in names if "score" in name)
        found = dict(zip(zip(answer[reference].to_pylist(), answer[target].to_pylist()), answer[score].to_pylist()))
    yield
    # It does not say how many pairs it compares.
    yield found, None, 0.0


PEERS = {"splink": splink, "splink_all_pairs": lambda records: splink(records, True), "recordlinkage": recordlinkage,
         "recordlinkage_ecm": lambda records: recordlinkage(records, True), "dedupe": dedupe, "goldenmatch": goldenmatch}
# What each is for, or has a documented setting for
SETS = {peer: ("febrl3", "febrl4", "restaurants") for peer in ("recordlinkage", "recordlinkage_ecm", "dedupe", "goldenmatch")}


def main():
    peer, folder, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    if name == "dblp_acm" or name not in SETS.get(peer, (name,)):
        return
    records = Records(folder, name)
    steps = PEERS[peer](records)
    next(steps)
    start, processor = time.perf_counter(), sum(os.times()[:4])
    next(steps)
    seconds, processor = time.perf_counter() - start, sum(os.times()[:4]) - processor
    scores, compared, least = next(steps)
    best, fixed = f1(scores, records.truth), f1(scores, records.truth, least)
    print(f"{name}, {peer}: {'unknown' if compared is None else compared} pairs, {len(records.truth - scores.keys())} of {len(records.truth)} matches not among them, "
          f"{seconds:.1f} s, {processor:.1f} processor seconds")
    print(f"  all pairs: F1 {best[0]:.4f}, {best[1]} right and {best[2]} wrong; {fixed[0]:.4f} from {least:g}")
    if not records.one:
        best = f1(best_of_both(scores), records.truth)
        print(f"  best of both records: F1 {best[0]:.4f}, {best[1]} right and {best[2]} wrong", flush=True)


if __name__ == "__main__":
    main()
