"""The pictures of docs/gallery.md: runs the SQL after each comment <!-- draw: NAME -->, and draws the rows of its last statement.

python -m reporting.gallery PSQL [ARGUMENT..]    the command that runs psql on the database with the table documents

Layouts begin from fixed places, so that the same rows give the same picture.
"""

import csv
import io
import math
import re
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import numpy  # noqa: E402  # the backend comes first
from matplotlib import patheffects, pyplot  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from reporting.drawing import THEMES, WIDTH, settings  # noqa: E402
from reporting.store import ROOT  # noqa: E402

PAGE = ROOT / "docs" / "gallery.md"


def statements():
    """The name of each picture, and the SQL that gives its rows."""
    return re.findall(r"<!-- draw: (\S+) -->.*?```sql\n(.*?)```", PAGE.read_text(), re.S)


def rows_of(psql, sql):
    """The rows of the last statement, each by the names of its columns."""
    done = subprocess.run([*psql, "-X", "-q", "--csv", "-v", "ON_ERROR_STOP=1", "-f", "-"], input=sql, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench/gallery: {done.stderr.strip()}")
    return list(csv.DictReader(io.StringIO(done.stdout)))


def force_layout(count, edges, steps=400, seed=1):
    """Places of the nodes of a graph: nodes repel each other, edges draw theirs together, and all are drawn to the middle."""
    places = numpy.random.default_rng(seed).normal(size=(count, 2))
    if count == 1:
        return places * 0
    edges = numpy.array(sorted(edges))
    for step in range(steps):
        difference = places[:, None] - places[None]
        distance = numpy.maximum(numpy.hypot(difference[..., 0], difference[..., 1]), 0.05)
        move = (difference / distance[..., None] ** 2).sum(axis=1) - 0.4 * places
        along = places[edges[:, 1]] - places[edges[:, 0]]
        pull = along * numpy.hypot(along[:, 0], along[:, 1])[:, None]
        numpy.add.at(move, edges[:, 0], pull)
        numpy.add.at(move, edges[:, 1], -pull)
        length = numpy.maximum(numpy.hypot(move[:, 0], move[:, 1]), 1e-9)[:, None]
        places = places + move / length * numpy.minimum(length * 0.05, 0.3 * (1 - step / steps))
    return places - places.mean(axis=0)


def without_axes(axis):
    axis.set_aspect("equal")
    axis.axis("off")


def file_name(path):
    """The package of a licence, else the name of the file."""
    package = re.fullmatch(r"/usr/share/doc/([^/]+)/copyright", path)
    return package[1] if package else path.rsplit("/", 1)[-1]


def near_duplicates(rows, theme):
    """Groups in lines from the left, each a small graph as large as its number of files."""
    groups = {}
    for row in rows:
        groups.setdefault(row["group_id"], (row["name"], []))[1].append((row["id1"], row["id2"]))
    figure, axis = pyplot.subplots(figsize=(WIDTH, 5.8), constrained_layout=True)
    x, y, line_height, width = 0.0, 0.0, 0.0, 56.0
    for number, (first, pairs) in enumerate(groups.values()):
        nodes = sorted({node for pair in pairs for node in pair}, key=int)
        index = {node: place for place, node in enumerate(nodes)}
        places = force_layout(len(nodes), [(index[a], index[b]) for a, b in pairs], seed=number)
        # A group's circle grows with the square root of its files; room for its name where it has one
        radius = 0.62 * math.sqrt(len(nodes)) + 0.1
        places = places / max(numpy.hypot(places[:, 0], places[:, 1]).max(), 1e-9) * radius
        named = number < 8
        step = 2 * radius + 0.9 + (4.6 if named else 0)
        if x + step > width:
            x, y, line_height = 0.0, y - line_height - 0.5, 0.0
        line_height = max(line_height, 2 * radius + 0.5 + (1.4 if named else 0))
        center = numpy.array([x + step / 2, y - radius])
        colour = theme["series"][number % len(theme["series"])]
        # One path of all lines, with gaps between them, is a small file.
        ends = numpy.concatenate([numpy.vstack([places[[index[a], index[b]]] + center, [[numpy.nan] * 2]]) for a, b in pairs])
        axis.plot(*ends.T, color=colour, linewidth=0.5, alpha=0.45)
        axis.plot(*(places + center).T, "o", color=colour, markersize=3.2, markeredgewidth=0)
        if named:
            axis.text(center[0], y - 2 * radius - 0.9, f"{file_name(first)[:15]}\n{len(nodes)} files", ha="center", va="top", fontsize=8.5)
            line_height = max(line_height, 2 * radius + 3.6)
        x += step
    without_axes(axis)
    files = len({node for _, pairs in groups.values() for pair in pairs for node in pair})
    return figure, f"{files} files in {len(groups)} groups of near-duplicates"


def outliers(rows, theme):
    figure, axis = pyplot.subplots(figsize=(WIDTH, 4.4), constrained_layout=True)
    capitals, blanks, lof = (numpy.array([float(row[name]) for row in rows]) * scale
                             for name, scale in (("capitals", 100), ("blanks", 100), ("lof", 1)))
    named = numpy.arange(len(rows)) < 5
    for chosen, size in ((~named & (lof < 1.5), 3), (~named & (lof >= 1.5), 7)):
        axis.plot(capitals[chosen], blanks[chosen], "o", color=theme["series"][0], alpha=0.5, markersize=size, markeredgewidth=0)
    axis.plot(capitals[named], blanks[named], "s", color=theme["series"][1], markersize=8, markeredgewidth=0)
    top = blanks.max() * 1.08
    axis.set_xlabel("capital letters, % of the characters")
    axis.set_ylabel("blanks, % of the characters")
    axis.set_ylim(0, top)
    for side in ("right", "top"):
        axis.spines[side].set_visible(False)
    labels = [f"{file_name(rows[place]['name'])} ({lof[place]:.1f})" for place in numpy.flatnonzero(named)]
    name_marks(figure, axis, theme, labels, numpy.stack([capitals, blanks], axis=1), len(labels))
    return figure, f"Local outlier factors of {len(rows)} files"


# Where a name may stand: to the side, above or below its mark, in points
SIDES = [(8, 0, "left", "center"), (-8, 0, "right", "center"), (0, 8, "center", "bottom"), (0, -8, "center", "top"),
         (8, 6, "left", "bottom"), (-8, 6, "right", "bottom"), (8, -6, "left", "top"), (-8, -6, "right", "top")]


def name_marks(figure, axis, theme, names, places, count):
    """Names of the first marks, each on the side where it covers no named mark, no name and the fewest dots."""
    figure.draw_without_rendering()
    dots = axis.transData.transform(places)
    taken = []
    for number, text in enumerate(names):
        best = None
        for x, y, across, along in SIDES:
            name = axis.annotate(text, places[number], xytext=(x, y), textcoords="offset points", ha=across, va=along, fontsize=9.5,
                                 color=theme["series"][1])
            box = name.get_window_extent().padded(6)
            covered = [place for place, dot in enumerate(dots) if box.contains(*dot)]
            outside = not (axis.bbox.x0 <= box.x0 and box.x1 <= axis.bbox.x1 and axis.bbox.y0 <= box.y0)
            cost = len(covered) + 1000 * (sum(place < count for place in covered) + sum(box.overlaps(other) for other in taken) + outside)
            if best is None or cost < best[0]:
                if best:
                    best[1].remove()
                best = cost, name, box
            else:
                name.remove()
        best[1].set_path_effects([patheffects.withStroke(linewidth=3.5, foreground=theme["page"])])
        taken.append(best[2])


def components(count, edges):
    """The nodes that edges connect, the largest set first."""
    group = list(range(count))

    def root(node):
        while group[node] != node:
            node = group[node]
        return node

    for a, b in sorted(edges):
        group[max(root(a), root(b))] = min(root(a), root(b))
    sets = {}
    for node in range(count):
        sets.setdefault(root(node), []).append(node)
    return sorted(sets.values(), key=lambda nodes: (-len(nodes), nodes))


def apart(places, sizes, ways=(0, 1)):
    """Moves boxes with these middles in these ways, 0 to the side and 1 up or down, until none overlaps another one."""
    for _ in range(600):
        moved = False
        for a in range(len(places)):
            for b in range(a):
                lack = (sizes[a] + sizes[b]) / 2 - numpy.abs(places[a] - places[b])
                if (lack > 1e-6).all():
                    way = max(ways, key=lambda one: lack[one])
                    push = lack[way] / 2 * (1 if places[a][way] >= places[b][way] else -1)
                    places[a][way] += push
                    places[b][way] -= push
                    moved = True
        if not moved:
            break
    return places


def thesaurus(rows, theme):
    """Each connected part of the graph by itself, one below the other in two columns; places are in characters and lines of text."""
    words = sorted({row["word"] for row in rows} | {row["neighbor"] for row in rows})
    index = {word: place for place, word in enumerate(words)}
    edges = sorted({tuple(sorted((index[row["word"]], index[row["neighbor"]]))) for row in rows})
    asked = {row["word"] for row in rows}
    figure, axis = pyplot.subplots(figsize=(WIDTH, 6.6), constrained_layout=True)
    bottoms, width = [0.0, 0.0], 37.0
    for nodes in components(len(words), edges):
        number = {node: place for place, node in enumerate(nodes)}
        own = [(number[a], number[b]) for a, b in edges if a in number]
        places = force_layout(len(nodes), own, steps=700) * [5.5, 1.9]
        places = apart(places, numpy.array([[1.25 * len(words[node]) + 2, 1.5] for node in nodes]))
        sizes = numpy.array([0.6 * len(words[node]) for node in nodes])
        span = (places[:, 0] + sizes).max() - (places[:, 0] - sizes).min()
        if span > width - 2:    # wider than its column: words that would then overlap move up or down
            places[:, 0] *= (width - 2) / span
            places = apart(places, numpy.array([[1.25 * len(words[node]) + 2, 1.5] for node in nodes]), ways=(1,))
        column = int(bottoms[1] > bottoms[0])
        places += [column * width + width / 2 - (places[:, 0].min() + places[:, 0].max()) / 2, bottoms[column] - places[:, 1].max()]
        bottoms[column] = places[:, 1].min() - 3
        for a, b in own:
            axis.plot(*places[[a, b]].T, color=theme["grid"], linewidth=1.2, zorder=0)
        for node, (x, y) in zip(nodes, places):
            first = words[node] in asked
            axis.text(x, y, words[node], ha="center", va="center", fontsize=10.5 if first else 9.5, color=theme["series"][0 if first else 1],
                      fontweight="bold" if first else "normal")
    axis.set_xlim(0, 2 * width)
    axis.set_ylim(min(bottoms) + 2, 1.5)
    axis.axis("off")
    return figure, f"{len(words)} words of a thesaurus"


def linkage_pair(rows, theme):
    """A waterfall: the prior, what each field adds, and the sum."""
    figure, axis = pyplot.subplots(figsize=(WIDTH, 3.4), constrained_layout=True)
    weights = [float(row["weight"]) for row in rows]
    ends = numpy.cumsum(weights)
    names = [row["field"] for row in rows] + ["match weight"]
    bars = [*zip([0, *ends], weights), (0, ends[-1])]
    low, high = min(0, *ends), max(0, *ends)
    for place, (start, weight) in enumerate(bars):
        whole = place in (0, len(rows))
        axis.barh(place, weight, left=start, height=0.62, color=theme["floor"] if whole else theme["series"][0 if weight >= 0 else 1])
        axis.annotate(f"{weight:+.1f}" if not whole else f"{weight:.1f}", (max(start, start + weight), place), xytext=(4, 0), textcoords="offset points", va="center",
                      fontsize=9.5)
        if place < len(rows):
            axis.plot([ends[place]] * 2, [place, place + 1], color=theme["floor"], linewidth=0.8, zorder=0)
        if 0 < place < len(rows):
            one, other = rows[place]["one"], rows[place]["other"]
            names[place] += f"\n{one}" + (f" / {other}" if other != one else "")
    axis.axvline(0, color=theme["grid"], linewidth=0.8, zorder=0)
    axis.set_xlim(low - 0.5, high + 0.16 * (high - low))
    axis.set_yticks(range(len(names)), names, fontsize=9.5)
    axis.invert_yaxis()
    axis.set_xlabel("match weight: log2 of the odds of a match")
    axis.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        axis.spines[side].set_visible(False)
    return figure, f"Why two records are of one person: probability {1 / (1 + 2 ** -ends[-1]):.3f}"


def linkage_weights(rows, theme):
    """Histograms of pairs that match and of others on one scale, which begins below 1 so that a single pair is seen."""
    figure, axis = pyplot.subplots(figsize=(WIDTH, 3.4), constrained_layout=True)
    weight, matches, others = (numpy.array([float(row[name]) for row in rows]) for name in ("weight", "matches", "others"))
    for pairs, name, colour in ((others, "other pairs", theme["series"][1]), (matches, "pairs that match", theme["series"][0])):
        axis.bar(weight, numpy.where(pairs > 0, pairs, numpy.nan), width=1, align="edge", color=colour, alpha=0.7, label=name)
    axis.axvline(0, color=theme["text"], linewidth=1.2, linestyle="--", label="threshold")
    axis.set_yscale("log")
    axis.set_ylim(0.7, None)
    axis.set_xlabel("match weight")
    axis.set_ylabel("pairs")
    axis.legend(frameon=False, fontsize=9.5, loc="upper right")
    for side in ("right", "top"):
        axis.spines[side].set_visible(False)
    above = weight >= 0
    return figure, f"At or above 0: {matches[above].sum():,.0f} pairs that match, {others[above].sum():,.0f} other"


def passages(rows, theme):
    """A bar for each document, as long as the document; what it has of an older one is in the colour of the oldest one, if that is one of the first sources."""
    documents = {row["id"]: (row["name"], int(row["characters"])) for row in rows}
    oldest = {document: numpy.zeros(characters, dtype=object) for document, (_, characters) in documents.items()}
    for row in reversed(rows):    # they are by document and source
        if row["source"]:
            oldest[row["id"]][int(row["start"]) - 1:int(row["start"]) - 1 + int(row["length"])] = row["source"]
    found = [source for marks in oldest.values() for source in marks[marks != 0]]
    largest = sorted(set(found), key=lambda source: (-found.count(source), int(source)))[:len(theme["series"]) - 1]
    colours = dict(zip(sorted(largest, key=int), theme["series"]))
    figure, axis = pyplot.subplots(figsize=(WIDTH, 5.2), constrained_layout=True)
    for place, (document, marks) in enumerate(oldest.items()):
        axis.barh(place, len(marks), height=0.62, color=theme["grid"])
        ends = numpy.flatnonzero(numpy.concatenate([[True], marks[1:] != marks[:-1], [True]]))
        for start, end in zip(ends, ends[1:]):
            if marks[start]:
                axis.barh(place, end - start, left=start, height=0.62, color=colours.get(marks[start], theme["floor"]), linewidth=0)
        share = (marks != 0).mean()
        axis.annotate(f"{share:.0%}" if share else "", (len(marks), place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9.5)
    axis.set_yticks(range(len(documents)), [name for name, _ in documents.values()], fontsize=9.5)
    for label, document in zip(axis.get_yticklabels(), documents):
        if document in colours:
            label.set_color(colours[document])
            label.set_fontweight("bold")
    axis.invert_yaxis()
    axis.set_xlim(0, 1.08 * max(map(len, oldest.values())))
    axis.set_xlabel("characters")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        axis.spines[side].set_visible(False)
    shared = sum((marks != 0).any() for marks in oldest.values())
    return figure, f"{shared} of {len(documents)} licences have passages of an older one"


PICTURES = {"gallery-near-duplicates": near_duplicates, "gallery-linkage-pair": linkage_pair, "gallery-linkage-weights": linkage_weights, "gallery-passages": passages, "gallery-outliers": outliers, "gallery-thesaurus": thesaurus}


def main():
    for name, sql in statements():
        rows = rows_of(sys.argv[1:], sql)
        if not rows:
            sys.exit(f"bench/gallery: the SQL of {name} gives no rows")
        for suffix, theme in THEMES.items():
            with matplotlib.rc_context(settings(theme)):
                figure, title = PICTURES[name](rows, theme)
                figure.suptitle(title, x=0.02, ha="left", fontsize=12, fontweight="bold")
                figure.savefig(ROOT / "docs" / "images" / f"{name}{suffix}.svg", metadata={"Date": None, "Creator": None}, transparent=True)
                pyplot.close(figure)
        print(f"drew {name} of {len(rows)} rows")


if __name__ == "__main__":
    main()
