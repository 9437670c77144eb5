"""The pictures of the pages, from the plots that the files of bench/results describe. Run by bench/report in bench/venv.

A plot is drawn twice, for light and dark pages, without a background. Its text is large enough for a phone, each mark and line has its
name next to it, and a kind of mark of its own as well as a colour. Axes that do not begin at 0 are logarithmic, say so, and have dots, not
bars. "machine" of a plot names the machine with its processor and the versions of other programs, below the axis.
"""

import math
import sys
import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402  # the backend comes first

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from reporting import growth_plot, pages, store  # noqa: E402
from reporting.drawing import THEMES, WIDTH, duration, settings, short, spread  # noqa: E402

MARKERS = "os^Dv<>P"
LOG_SCALE = " (log scale)"
CAPTION_SIZE = 8.5       # points
CAPTION_WIDTH = 82       # characters of that size in a line
LABEL_CHARACTER = 6.3    # points that a character of a value's label is wide, on average


class Plot:
    def __init__(self, stored, spec, theme):
        self.stored, self.spec, self.theme = stored, spec, theme

    def bounds(self, point):
        """Least and most of a point, in the plot's unit."""
        value = self.stored.cell(point["cell"])
        low, high = value if isinstance(value, list) else (value, value)
        scale = point.get("scale", 1)
        return float(low) * float(scale), float(high) * float(scale)

    def value(self, point):
        low, high = self.bounds(point)
        return (low + high) / 2

    def shown(self, value):
        return duration(value) if self.spec["unit"] == "s" else f"{short(value)} {self.spec['unit']}"

    def colour(self, series):
        return self.theme["floor"] if series == "floor" else self.theme["series"][self.series().index(series) % len(self.theme["series"])]

    def marker(self, series):
        return "|" if series == "floor" else MARKERS[self.series().index(series) % len(MARKERS)]

    def series(self):
        """In the order of the spec, the floor left out: gputext comes first and has the first colour."""
        return [name for name in self.spec.get("series", []) if name != "floor"]

    def title(self, figure, lines=1):
        """The title, with room for more lines below it."""
        figure.suptitle(self.spec["title"] + "\n " * (lines - 1), x=0.02, ha="left", fontsize=12, fontweight="bold", color=self.theme["text"])

    def is_log(self):
        return self.spec.get("log", True)

    def caption(self):
        """The machine and the versions, in lines."""
        return textwrap.fill(self.spec["machine"], CAPTION_WIDTH)

    def caption_height(self):
        """Inches that the caption takes."""
        return (self.caption().count("\n") + 1) * CAPTION_SIZE * 1.25 / 72

    def draw_caption(self, figure):
        figure.supxlabel(self.caption(), x=0.02, ha="left", fontsize=CAPTION_SIZE, color=self.theme["text"])

    def save(self, figure, suffix):
        figure.savefig(pages.IMAGES / f"{self.spec['name']}{suffix}.svg", metadata={"Date": None, "Creator": None}, transparent=True)
        pyplot.close(figure)


def mark_rows(plot, axis, rows):
    """A line for each row: its name above, its marks below, and their values where a row has one mark."""
    for place, (label, points) in enumerate(rows):
        y = -place
        axis.text(0, y + 0.30, label, transform=axis.get_yaxis_transform(), va="center", fontsize=10.5)
        for series, point in points:
            low, high = plot.bounds(point)
            colour = plot.colour(series)
            if not plot.is_log():
                axis.barh(y - 0.08, high, height=0.3, color=colour)
            else:
                # Of several marks the line goes to the end of the axis, of one no further than the mark: no line crosses its label.
                end = axis.get_xlim()[1] if len(points) > 1 else low
                axis.plot([axis.get_xlim()[0], end], [y - 0.08] * 2, color=plot.theme["grid"], linewidth=0.8, zorder=0)
                axis.plot([low, high], [y - 0.08] * 2, color=colour, linewidth=3)
                axis.plot([plot.value(point)], [y - 0.08], marker=plot.marker(series), markersize=13 if series == "floor" else 8,
                          markeredgewidth=2.5 if series == "floor" else 0.5, color=colour)
            if len(points) == 1:
                axis.annotate(value_label(plot, point), (high, y - 0.08), xytext=(9, 0), textcoords="offset points", va="center", fontsize=10.5)


def value_label(plot, point):
    low, high = plot.bounds(point)
    return plot.shown(high) if low == high else f"{plot.shown(low)} to {plot.shown(high)}"


def end_with_labels(plot, points, begin):
    """The end of the axis beyond which no label of a mark reaches."""
    scale = math.log if plot.is_log() else float
    ends = []
    for point in points:
        share = (LABEL_CHARACTER * len(value_label(plot, point)) + 14) / (WIDTH * 72 - 20)
        ends.append((scale(plot.bounds(point)[1]) - share * scale(begin)) / (1 - share) if begin else plot.bounds(point)[1] / (1 - share))
    return math.exp(max(ends)) if plot.is_log() else max(ends)


def legend(plot, axis):
    """The names of the marks in their colours, above the rows."""
    names = plot.spec.get("series", [])
    if len(names) > 1:
        handles = [matplotlib.lines.Line2D([], [], linestyle="", marker=plot.marker(name), markersize=11 if name == "floor" else 8,
                                           markeredgewidth=2.5 if name == "floor" else 0.5, color=plot.colour(name)) for name in names]
        axis.legend(handles, names, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=min(4, len(names)), frameon=False, fontsize=10,
                    handletextpad=0.1, columnspacing=0.9, borderaxespad=0.1)


def log_ticks(axis, which):
    """Powers of ten, and where there are less than three also twice and five times them."""
    low, high = getattr(axis, f"get_{which}lim")()
    steps = (1,) if high / low > 300 else (1, 3) if high / low > 60 else (1, 2, 5)
    one = getattr(axis, f"{which}axis")
    one.set_major_locator(ticker.LogLocator(subs=steps, numticks=12))
    one.set_minor_locator(ticker.NullLocator())


def value_axis(plot, axis, rows):
    points = [point for _, row in rows for _, point in row]
    values = [bound for point in points for bound in plot.bounds(point)]
    labelled = [row[0][1] for _, row in rows if len(row) == 1]
    begin = min(values) / 1.7 if plot.is_log() else 0
    ends = [max(values) * (1.7 if plot.is_log() else 1.05)] + ([end_with_labels(plot, labelled, begin)] if labelled else [])
    if plot.is_log():
        axis.set_xscale("log")
    axis.set_xlim(begin, max(ends))
    if plot.is_log():
        log_ticks(axis, "x")
    else:
        axis.xaxis.set_major_locator(ticker.MaxNLocator(4))
    axis.xaxis.set_major_formatter(lambda value, _: duration(value) if plot.spec["unit"] == "s" else short(value))


def rows_plot(plot):
    """Dots on a logarithmic axis, or bars from 0: a row for each program or case."""
    first = plot.series()[0] if plot.series() else None
    label = lambda row: row["label"].format(*(plot.stored.text(reference) for reference in row.get("label_figures", [])))
    rows = [(label(row), [(p.get("series", first), p) for p in row["points"]]) for row in plot.spec["rows"]]
    height = 0.95 + 0.48 * len(rows) + (0.3 if len(plot.spec.get("series", [])) > 1 else 0) + plot.caption_height()
    figure, axis = pyplot.subplots(figsize=(WIDTH, height), constrained_layout=True)
    value_axis(plot, axis, rows)
    mark_rows(plot, axis, rows)
    axis.set_ylim(-len(rows) + 0.45, 0.6)
    axis.yaxis.set_visible(False)
    for side in ("left", "right", "top"):
        axis.spines[side].set_visible(False)
    if not plot.spec.get("plain"):
        legend(plot, axis)
    axis.set_xlabel(plot.spec["axis"] + (LOG_SCALE if plot.is_log() else ""))
    plot.draw_caption(figure)
    plot.title(figure)
    return figure


def lines_plot(plot):
    """Curves over a number of rows or the like, with their names at their ends."""
    figure_height = 4.0 + plot.caption_height()
    top, bottom = 1 - 0.44 / figure_height, (0.62 + plot.caption_height()) / figure_height
    figure, axis = pyplot.subplots(figsize=(WIDTH, figure_height))
    figure.subplots_adjust(left=0.16, right=1 - float(plot.spec.get("margin", 0.24)), top=top, bottom=bottom)
    x_log = plot.spec.get("x_log", True)
    axis.set_xscale("log" if x_log else "linear")
    axis.set_yscale("log" if plot.is_log() else "linear")
    ends = []
    for line in plot.spec["lines"]:
        name = line["series"]
        xs = [float(p["x"]) for p in line["points"]]
        ys = [plot.value(p) for p in line["points"]]
        computed = line.get("computed", False)
        axis.plot(xs, ys, color=plot.colour(name), linewidth=2.2, linestyle="--" if computed or name == "floor" else "-",
                  marker=None if name == "floor" else plot.marker(name), markersize=7, markevery=[0] if computed else None)
        ends.append((name, ys[-1], xs[-1]))
    if not plot.is_log():
        axis.set_ylim(0, max(plot.value(p) for line in plot.spec["lines"] for p in line["points"]) * 1.05)
    # In points, of which the picture's height has 72 an inch; log axes are linear in the logarithm.
    axis.autoscale_view()
    height = figure_height * 72 * (top - bottom)
    fraction = axis.transAxes.inverted()
    places = [fraction.transform(axis.transData.transform((x, y)))[1] * height for _, y, x in ends]
    # Where there are more lines than colours, a name has its line's mark before it.
    marked = len(ends) > len(plot.theme["series"])
    for (name, _, _), place in zip(ends, spread(places, 14, height if marked else float("inf"))):
        if marked:
            axis.plot([1.05], [place / height], transform=axis.transAxes, clip_on=False, color=plot.colour(name), marker=plot.marker(name), markersize=7)
        axis.text(1.09 if marked else 1.02, place / height, name, transform=axis.transAxes, va="center", fontsize=10.5, color=plot.colour(name),
                  fontweight="bold" if name.startswith("gputext") else "normal")
    axis.grid(True, which="major", color=plot.theme["grid"], linewidth=0.8)
    axis.minorticks_off()
    if plot.is_log():
        log_ticks(axis, "y")
    xs = sorted({float(p["x"]) for line in plot.spec["lines"] for p in line["points"]})
    axis.set_xticks(xs if len(xs) < 6 else xs[::2], [short(x) for x in (xs if len(xs) < 6 else xs[::2])])
    axis.yaxis.set_major_formatter(lambda value, _: duration(value) if plot.spec["unit"] == "s" else short(value))
    for side in ("right", "top"):
        axis.spines[side].set_visible(False)
    axis.set_xlabel(plot.spec["x_axis"] + (LOG_SCALE if x_log else ""))
    axis.set_ylabel(plot.spec["axis"] + (LOG_SCALE if plot.is_log() else ""))
    plot.draw_caption(figure)
    plot.title(figure)
    return figure


def scatter_plot(plot):
    figure, axis = pyplot.subplots(figsize=(WIDTH, 4.2 + plot.caption_height()), constrained_layout=True)
    axis.set_xscale("log")
    axis.set_yscale("log")
    for point in plot.spec["points"]:
        x, y = plot.value(point["x"]), plot.value(point["y"])
        axis.plot([x], [y], marker=plot.marker(point["series"]), markersize=9, color=plot.colour(point["series"]), linestyle="")
        right = point.get("side", "right") == "right"
        axis.annotate(point["label"], (x, y), xytext=(8 if right else -8, point.get("lift", 0)), textcoords="offset points", va="center",
                      ha="left" if right else "right", fontsize=10.5, color=plot.colour(point["series"]))
    axis.grid(True, which="major", color=plot.theme["grid"], linewidth=0.8)
    axis.minorticks_off()
    for which, limits in (("x", plot.spec["x_limits"]), ("y", plot.spec["y_limits"])):
        low, high, *ticks = map(float, limits)
        getattr(axis, f"set_{which}lim")(low, high)
        shown = duration if which == "y" and plot.spec["unit"] == "s" else short
        getattr(axis, f"set_{which}ticks")(ticks, [shown(tick) for tick in ticks])
    for side in ("right", "top"):
        axis.spines[side].set_visible(False)
    axis.set_xlabel(plot.spec["x_axis"] + LOG_SCALE)
    axis.set_ylabel(plot.spec["axis"] + LOG_SCALE)
    plot.draw_caption(figure)
    plot.title(figure)
    return figure


KINDS = {"rows": rows_plot, "lines": lines_plot, "scatter": scatter_plot, "growth": growth_plot.draw}


def main():
    stored = pages.Store(store.read())
    for file, spec in stored.plots.values():
        for suffix, theme in THEMES.items():
            with matplotlib.rc_context(settings(theme)):
                plot = Plot(stored, spec, theme)
                plot.file = file
                plot.save(KINDS[spec["kind"]](plot), suffix)
    print(f"drew {len(stored.plots)} plots in docs/images")


if __name__ == "__main__":
    try:
        main()
    except store.Wrong as wrong:
        sys.exit(f"bench/report: {wrong}")
