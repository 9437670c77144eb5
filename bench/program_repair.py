"""Programs for bench/program_repair, and its curves.

program_repair.py rows ARCHIVE    problem and source of each program, as COPY reads them
program_repair.py plot FILE.svg   draws problem, operator, level, Prob and Dist from standard input
"""

import collections
import sys
import tarfile

PANELS = [
    ("prob", "delete", "6.1 (a)"),
    ("prob", "insert", "6.2 (a)"),
    ("prob", "swap", "6.3"),
    ("dist", "delete", "6.1 (b)"),
    ("dist", "insert", "6.2 (b)"),
]


def rows(archive):
    """In the order of their names; no two machines list a directory alike."""
    escapes = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})
    with tarfile.open(archive) as files:
        for member in sorted((m for m in files if m.name.endswith(".c")), key=lambda m: m.name):
            source = files.extractfile(member).read().decode("latin-1")
            problem = member.name.removeprefix("./").split("/")[0]
            print(problem, source.translate(escapes), sep="\t")


def plot(path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gputext", "font.size": 8})
    from matplotlib import pyplot

    curves = collections.defaultdict(list)
    for line in sys.stdin:
        problem, operator, level, prob, dist = line.split("\t")
        curves["prob", operator, problem].append((int(level), float(prob)))
        curves["dist", operator, problem].append((int(level), float(dist)))
    problems = sorted({problem for _, _, problem in curves})
    figure, axes = pyplot.subplots(2, 3, figsize=(9, 5.5), sharex=True, constrained_layout=True)
    for panel, (score, operator, name) in zip(axes.flat, PANELS):
        for marker, problem in zip("os^vDx", problems):
            panel.plot(*zip(*curves[score, operator, problem]), marker=marker, markersize=3,
                       linewidth=1, label=problem)
        panel.set_title(f"{operator}: {score.capitalize()} (thesis: figure {name})")
        panel.set_xlabel("level")
        panel.set_ylim(bottom=0)
    axes.flat[5].axis("off")
    axes.flat[5].legend(*axes.flat[0].get_legend_handles_labels(), loc="center")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    {"rows": rows, "plot": plot}[sys.argv[1]](sys.argv[2])
