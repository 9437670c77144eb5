"""Pages that take tables and pictures from the store, between two comments:

    <!-- table: FILE/NAME -->      a table of bench/results/FILE.json
    <!-- growth: FILE/NAME -->     one that bench/sql_growth wrote, seconds by the number of rows
    <!-- memory: FILE/NAME -->     one that bench/sql_growth wrote, what happens where memory ends
    <!-- machines: -->             what each capability takes without a GPU and with one, as bench/results/machines.json has it
    <!-- list: NAME -->            figures of several capabilities, as "lists" of that file has them
    <!-- runs: FILE -->            where and when the figures of a file were measured, and by which command
    <!-- plot: NAME -->            a picture, with its text for those who do not see it
    <!-- end -->
"""

import os
import re

from . import tables
from .store import ROOT, Number, Wrong

IMAGES = ROOT / "docs" / "images"
BEGIN = re.compile(r"<!-- (table|growth|memory|machines|list|runs|plot): ?(.*?) ?-->")
END = "<!-- end -->"


def pages(root=ROOT):
    return [page for page in (root / "README.md", root / "bench" / "README.md", *sorted((root / "docs").glob("*.md"))) if page.exists()]


class Store:
    """All files, by what pages ask of them."""

    def __init__(self, files):
        self.files = {file.path.stem: file for file in files}
        self.plots = {plot["name"]: (file, plot) for file in files for plot in file.plots}

    def table(self, path):
        stem, _, name = path.partition("/")
        file = self.files.get(stem)
        if file is None or name not in file.tables:
            raise Wrong(f"there is no table {path} in bench/results")
        return file.tables[name]

    def whole_cell(self, path, key, column):
        """The cell of a row, which its first cell names, or as many of its first cells as are needed, and of a column, by name or place."""
        table = self.table(path)
        keys = [str(part) for part in key] if isinstance(key, list) else [str(key)]
        found = [row for row in table.rows if [plain(cell) for cell in row[:len(keys)]] == keys]
        if len(found) != 1:
            raise Wrong(f"{len(found)} rows of {path} begin with {keys}")
        return found[0][int(column) if isinstance(column, Number) else table.index(column)]

    def cell(self, reference):
        """The number that [table, row, column] names, or [table, row, column, place] of a cell with several; a range is a list."""
        cell = self.whole_cell(*reference[:3])
        if isinstance(cell, dict):
            cell = cell["values"][int(reference[3]) if len(reference) > 3 else 0]
        if cell is None or isinstance(cell, str):
            raise Wrong(f"{reference} is no number")
        return cell

    def text(self, reference):
        """What a page shows of it: without a place, the whole cell, with its units."""
        return tables.shown_cell(self.whole_cell(*reference) if len(reference) == 3 else self.cell(reference))


def plain(cell):
    return "" if cell is None else tables.shown_cell(cell).replace(",", "") if not isinstance(cell, str) else cell


def lines_of(kind, name, store, page):
    if kind == "table":
        return tables.markdown(store.table(name), store.whole_cell)
    if kind == "growth":
        return tables.growth(store.table(name))
    if kind == "memory":
        return tables.memory_ends(store.table(name))
    if kind == "machines":
        return machines(store)
    if kind == "list":
        return figure_list(store, name)
    if kind == "runs":
        return runs(store, name)
    return picture(store, name, page)


def machines(store):
    """A line for each task, a column for each kind of machine; what was not measured is blank."""
    layout = store.files["machines"].given["machines"]
    lines = [["", *layout["columns"]], ["---", *["---:"] * len(layout["columns"])]]
    for row in layout["rows"]:
        cells = ["" if cell is None else f"{tables.shown_cell(store.cell(cell['cell']))} {cell['unit']}" for cell in row["cells"]]
        lines.append([row["task"], *cells])
    return ["| " + " | ".join(line) + " |" for line in lines]


def figure_list(store, name):
    """A line for each task, with its figures in a text, or in a text for each further column."""
    layout = store.files["machines"].given["lists"].get(name)
    if layout is None:
        raise Wrong(f"there is no list {name} in bench/results/machines.json")
    lines = [layout["columns"], ["---"] * len(layout["columns"])]
    for row in layout["rows"]:
        texts = [store.text(reference) for reference in row["figures"]]
        cells = row["as"] if isinstance(row["as"], list) else [row["as"]]
        lines.append([row["task"], *(cell.format(*texts) for cell in cells)])
    return ["| " + " | ".join(line) + " |" for line in lines]


def runs(store, name):
    if name not in store.files:
        raise Wrong(f"there is no bench/results/{name}.json")
    lines = ["| measured | on | by |", "| --- | --- | --- |"]
    seen = {}
    for run in store.files[name].runs.values():
        if run["command"]:
            commands = seen.setdefault((run["date"] or "day not recorded", run["hardware"] or "machine not recorded"), [])
            commands += [command for command in run["command"].split("; ") if command not in commands]
    for (date, hardware), commands in sorted(seen.items()):
        lines.append(f"| {date} | {hardware} | {', '.join(f'`{command}`' for command in commands)} |")
    return lines


def alt_text(store, name):
    """The finding of a plot in a sentence, its figures taken from the store."""
    if name not in store.plots:
        raise Wrong(f"there is no plot {name} in bench/results")
    plot = store.plots[name][1]
    return plot["alt"].format(*(store.text(reference) for reference in plot.get("alt_figures", [])))


def picture(store, name, page):
    folder = os.path.relpath(IMAGES, page.parent)
    return ["<picture>", f'<source media="(prefers-color-scheme: dark)" srcset="{folder}/{name}-dark.svg">',
            f'<img src="{folder}/{name}.svg" alt="{alt_text(store, name)}" width="640">', "</picture>"]


def filled(text, store, page):
    """The page with what the store says between its comments."""
    out, lines = [], iter(text.split("\n"))
    for line in lines:
        out.append(line)
        begin = BEGIN.fullmatch(line)
        if not begin:
            continue
        try:
            out += lines_of(begin[1], begin[2], store, page)
        except Wrong as wrong:
            raise Wrong(f"{page.name}: {wrong}")
        for skipped in lines:
            if skipped == END:
                break
            if BEGIN.fullmatch(skipped):
                raise Wrong(f"{page.name}: no {END} after {line}")
        else:
            raise Wrong(f"{page.name}: no {END} after {line}")
        out.append(END)
    return "\n".join(out)


PICTURE = re.compile(r'<img [^>]*?src="([^"]+)"[^>]*>|!\[([^\]]*)\]\(([^)\s]+)\)|srcset="([^"]+)"')


def picture_complaints(text, page):
    """Each picture of a page has to be there, and to say in words what it shows."""
    for found in PICTURE.finditer(text):
        target = found[1] or found[3] or found[4]
        if re.match(r"[a-z]+:", target):
            continue
        if not (page.parent / target).exists():
            yield f"{page.name}: the picture {target} does not exist"
        alt = re.search(r'alt="([^"]*)"', found[0])
        words = (alt[1] if alt else "") if found[1] else found[2] if found[3] else None
        if words is not None and len(words.split()) < 4:
            yield f"{page.name}: the picture {target} has no text that says what it shows"
