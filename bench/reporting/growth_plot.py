"""Seconds against rows of every operator that bench/sql_growth measured: a small plot for each, on axes of one scale."""

import math

from matplotlib import pyplot

from .drawing import WIDTH, duration
from .tables import size_name

MARKERS = "os^D"


def draw(plot):
    table = plot.stored.table(plot.spec["table"])
    place = {column["name"]: i for i, column in enumerate(table.columns)}
    curves, machines = {}, plot.spec["machines"]
    for row in table.rows:
        seconds = row[place["seconds"]]
        if seconds is not None and row[place["outcome"]] == "ok":
            curves.setdefault(row[place["operator"]], {}).setdefault(row[0], []).append((float(row[place["rows"]]), float(seconds)))
    sizes = sorted({float(row[place["rows"]]) for row in table.rows})
    times = [time for lines in curves.values() for line in lines.values() for _, time in line]
    height = math.ceil(len(curves) / 2)
    figure, axes = pyplot.subplots(height, 2, figsize=(WIDTH, 0.8 + 1.55 * height + plot.caption_height()), sharex=True, sharey=True, constrained_layout=True,
                                   squeeze=False)
    for axis, (operator, lines) in zip(axes.flat, curves.items()):
        for machine, line in lines.items():
            number = machines.index(machine)
            axis.plot(*zip(*sorted(line)), color=plot.theme["series"][number % 6], marker=MARKERS[number % 4], markersize=5, linewidth=1.8)
        axis.set_title(operator, fontsize=9.5, loc="left")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_ylim(10 ** math.floor(math.log10(min(times))), 10 ** math.ceil(math.log10(max(times))))
        axis.set_xticks(sizes, [size_name(size).replace(" thousand", "k").replace(" million", "M") for size in sizes])
        axis.yaxis.set_major_formatter(lambda value, _: duration(value))
        axis.minorticks_off()
        axis.grid(True, color=plot.theme["grid"], linewidth=0.7)
        for side in ("right", "top"):
            axis.spines[side].set_visible(False)
    for axis in axes.flat[len(curves):]:
        axis.axis("off")
    for axis in axes[-1]:
        axis.set_xlabel("rows (log scale)")
    handles = [pyplot.Line2D([], [], color=plot.theme["series"][i % 6], marker=MARKERS[i % 4], label=name)
               for i, name in enumerate(machines)]
    plot.title(figure, lines=2)
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.01, 1 - 0.24 / figure.get_figheight()), frameon=False, fontsize=9.5,
                  ncols=len(handles), handletextpad=0.4, columnspacing=1.0)
    plot.draw_caption(figure)
    return figure
