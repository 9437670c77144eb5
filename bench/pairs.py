"""Files of document pairs: id1 and id2, one pair a line."""

from documents import BENCH_BUILD, read_documents


def read_pairs(path):
    pairs = set()
    with open(path, encoding="ascii") as lines:
        for line in lines:
            id1, id2 = map(int, line.split()[:2])
            pairs.add((min(id1, id2), max(id1, id2)))
    return pairs


def read_edit_rates(corpus):
    """{(id1, id2): edit rate} of the true pairs."""
    lengths = [len(body.decode("utf-8")) for body in read_documents(corpus)]
    rates = {}
    with open(BENCH_BUILD / corpus / "truth.tsv", encoding="ascii") as lines:
        for line in lines:
            id1, id2, distance = map(int, line.split())
            rates[id1, id2] = distance / (lengths[id1 - 1] + lengths[id2 - 1])
    return rates
