"""BM25 by bm25s or rank_bm25, beside the answers of gpu_knn.

Arguments: DIRECTORY K PEER. The directory holds what bench/sql_text_knn wrote: terms of documents and questions, a text a line,
and the answer, "question document distance" a line, both by numbers from 1. k1 is 1.2 and b 0.75.

rank_bm25 scores every document for every question, so it has only the first 20 questions. Its idf is not Lucene's, and it
multiplies scores by k1 + 1: they are compared after its idf has been replaced, and divided by that.
"""

import math
import resource
import sys
import time

import numpy as np

K1, B = 1.2, 0.75


class Phase:
    """The seconds since it began, by the clock and of processors."""

    def __init__(self):
        self.clock, self.processor = time.perf_counter(), self.spent()

    @staticmethod
    def spent():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    def __str__(self):
        return f"{time.perf_counter() - self.clock:.3f} s, {self.spent() - self.processor:.3f} s of processors"


def by_bm25s(documents, questions, k):
    import bm25s

    phase = Phase()
    model = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba")
    model.index(documents, show_progress=False)
    indexing = str(phase)
    model.retrieve(questions[:1], k=k, show_progress=False)  # compiles
    phase = Phase()
    _, scores = model.retrieve(questions, k=k, show_progress=False)
    print(f"bm25s {bm25s.__version__}, {len(questions)} questions: {phase}; before it indexing {indexing}")
    return scores


def by_rank_bm25(documents, questions, k):
    import rank_bm25

    phase = Phase()
    model = rank_bm25.BM25Okapi(documents, k1=K1, b=B)
    indexing = str(phase)
    for term in model.idf:
        frequency = model_frequency[term]
        model.idf[term] = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
    questions = questions[:20]
    phase = Phase()
    scores = [np.sort(model.get_scores(question))[::-1][:k] / (K1 + 1) for question in questions]
    print(f"rank_bm25, {len(questions)} questions: {phase}; before it indexing {indexing}")
    return scores


if __name__ == "__main__":
    directory, k, peer = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    documents, questions = ([line.split() for line in open(f"{directory}/{name}", encoding="utf-8")]
                            for name in ("stored", "questions"))
    ours = [[] for _ in questions]
    for line in open(f"{directory}/answer", encoding="utf-8"):
        question, _, distance = line.split()
        ours[int(question) - 1].append(-float(distance))
    model_frequency = {}
    for document in documents:
        for term in set(document):
            model_frequency[term] = model_frequency.get(term, 0) + 1
    theirs = {"bm25s": by_bm25s, "rank_bm25": by_rank_bm25}[peer](documents, questions, k)
    # A document that shares no term has no row, and the score 0.
    differences = [abs(a - b) / max(b, 1e-9) for own, other in zip(ours, theirs)
                   for a, b in zip(own + [0.0] * (k - len(own)), other)]
    print(f"  largest difference of {len(differences)} scores: {max(differences):.1e} of the score")
