"""The store of measured figures: bench/results/*.json.

A file is a capability: its runs (what was measured where, when and by which command) and its tables. A number in a row of a table
is a figure; its unit and its run are those of its column, else of its row's or its table's. Numbers keep the digits that they are
written with, so that 0.200 stays 0.200. bench/README.md describes the format.
"""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "bench" / "results"

RUN_KEYS = {"hardware", "processors", "device", "date", "commit", "command", "page", "server", "version"}
# Units that may stand within a cell
UNITS = ["%", "s", "ms", "µs", "ns", "KB", "MB", "GB", "GB/s", "pairs/s", "words/s", "operations/s", "M", "bytes a document"]
REQUIRED_RUN_KEYS = {"hardware", "device", "date", "commit", "command", "page"}


class Wrong(Exception):
    """A file of the store, or a page, that is not what it has to be."""


@dataclass(frozen=True)
class Figure:
    capability: str
    table: str
    series: str       # the first cell of the row
    name: str         # of the column
    value: object     # Decimal, or [Decimal, Decimal] from least to most
    unit: str | None
    run: dict


class Number(Decimal):
    """A number of the store, which is written with the digits that it was read with."""

    def __new__(cls, literal):
        number = super().__new__(cls, literal)
        number.literal = literal
        return number


class Table:
    def __init__(self, given, file):
        self.name = given["name"]
        self.columns = given["columns"]
        self.rows = given["rows"]
        self.given = given
        self.file = file

    def index(self, column):
        for place, candidate in enumerate(self.columns):
            if candidate["name"] == column:
                return place
        raise Wrong(f"{self.file.path.name}: table {self.name} has no column {column!r}")

    def row(self, series):
        for row in self.rows:
            if row[0] == series:
                return row
        raise Wrong(f"{self.file.path.name}: table {self.name} has no row {series!r}")

    def cell(self, series, column):
        return self.row(series)[self.index(column)]

    def run(self, row, column):
        """The run of a cell: that of its row, its column or the table. In a long table, the first cell of a row names it if none else does."""
        keys = [str(cell) for place, cell in enumerate(row) if place == 0 or self.columns[place].get("key")]
        of_rows = self.given.get("row_runs", {})
        return self.file.runs.get(of_rows.get(" | ".join(keys)) or column.get("run") or (row[0] if self.given.get("long") else self.given.get("run")))

    def figures(self):
        for row in self.rows:
            long = self.given.get("long")
            series = ", ".join(str(cell) for cell in row[1:3]) if long else row[0]
            for place, (column, cell) in enumerate(zip(self.columns, row)):
                if place == 0 or column.get("key"):
                    continue
                run = self.run(row, column)
                for value, unit in numbers(cell):
                    yield Figure(self.file.capability, self.name, series, column["name"], value, unit or column.get("unit"), run)


class File:
    def __init__(self, path):
        self.path = path
        try:
            self.given = parse(path.read_text())
        except ValueError as error:
            raise Wrong(f"{path.name} is no JSON: {error}")
        try:
            self.capability = self.given["capability"]
            self.sources = self.given["sources"]
            self.runs = self.given["runs"]
            self.plots = self.given.get("plots", [])
            self.tables = {table["name"]: Table(table, self) for table in self.given["tables"]}
        except KeyError as missing:
            raise Wrong(f"{path.name} lacks {missing}")

    def complaints(self):
        for name, run in self.runs.items():
            for key in sorted(REQUIRED_RUN_KEYS - run.keys()):
                yield f"{self.path.name}: run {name!r} lacks {key}, which may be null"
            for key in sorted(run.keys() - RUN_KEYS):
                yield f"{self.path.name}: run {name!r} has {key}, which no run has"
        for path in sorted({*self.sources, *(path for table in self.tables.values() for path in table.given.get("sources", []))}):
            if not (ROOT / path).exists():
                yield f"{self.path.name}: its source {path} does not exist"
        for table in self.tables.values():
            for row in table.rows:
                if len(row) != len(table.columns):
                    yield f"{self.path.name}: row {row[0]!r} of table {table.name} has {len(row)} of {len(table.columns)} cells"
            for figure in table.figures():
                if figure.run is None:
                    yield f"{self.path.name}: {table.name}, {figure.series!r}, {figure.name!r} belongs to no run"
                    break

    def figures(self):
        for table in self.tables.values():
            yield from table.figures()


def numbers(cell):
    """The figures of a cell with the units that stand in it: a number; a range, which is an array of two; or an object of several
    values with the text around them, in which a unit behind a value is that of the values before it, too, that have none."""
    if isinstance(cell, (Number, list)):
        return [(cell, None)]
    if not isinstance(cell, dict) or "see" in cell:
        return []    # a text, or a figure of another table
    behind = [re.match(rf" ?({'|'.join(UNITS)})(?![A-Za-z])", text) for text in cell["as"].split("{}")[1:]]
    units = [found[1] if found else None for found in behind]
    for place in range(len(units) - 2, -1, -1):
        units[place] = units[place] or units[place + 1]
    return list(zip(cell["values"], units))


def read(folder=RESULTS):
    files = [File(path) for path in sorted(folder.glob("*.json"))]
    if not files:
        raise Wrong(f"{folder} has no results")
    return files


def parse(text):
    return json.loads(text, parse_float=Number, parse_int=Number)


def marked(part):
    """The same with each Number as a string that as_text() turns back into its digits."""
    if isinstance(part, Number):
        return f"@number {part.literal}@"
    if isinstance(part, list):
        return [marked(element) for element in part]
    if isinstance(part, dict):
        return {key: marked(value) for key, value in part.items()}
    return part


def as_text(stored):
    """JSON with a line for each run, column and row, so that a change of a figure changes one line."""
    lines = []

    def keep(part):
        lines.append(re.sub(r'"@number ([^"@]*)@"', r"\1", json.dumps(marked(part), ensure_ascii=False)))
        return f"@line {len(lines) - 1}@"

    def table_lines(table):
        sources = {"sources": keep(table["sources"])} if "sources" in table else {}
        return table | sources | {part: [keep(line) for line in table[part]] for part in ("columns", "rows")}

    flat = stored | {"sources": keep(stored["sources"]), "runs": {name: keep(run) for name, run in stored["runs"].items()},
                     "tables": [table_lines(table) for table in stored["tables"]]}
    if "machines" in stored:
        flat["machines"] = {"columns": keep(stored["machines"]["columns"]), "rows": [keep(row) for row in stored["machines"]["rows"]]}
    if "lists" in stored:
        flat["lists"] = {name: part | {"rows": [keep(row) for row in part["rows"]]} for name, part in stored["lists"].items()}
    if "plots" in stored:
        flat["plots"] = [{key: keep(value) for key, value in plot.items()} for plot in stored["plots"]]
    return re.sub(r'"@line (\d+)@"', lambda found: lines[int(found[1])], json.dumps(flat, ensure_ascii=False, indent=1)) + "\n"
