"""Tables of the store as Markdown."""

import re

from .store import Number, Wrong


def shown(number):
    """A number with the digits of the store, and a comma between thousands."""
    sign, whole, rest = re.fullmatch(r"(-?)(\d+)(.*)", number.literal).groups()
    return sign + (whole if "e" in rest.lower() else f"{int(whole):,}" if len(whole) > 3 else whole) + rest


def shown_cell(cell):
    """A cell: nothing, a number, a range of two, a text, or an object of several values and the text around them."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Number):
        return shown(cell)
    if isinstance(cell, list):
        return " to ".join(shown(bound) for bound in cell)
    try:
        return cell["as"].format(*(shown_cell(value) for value in cell["values"]))
    except (IndexError, KeyError, TypeError) as error:
        raise Wrong(f"the cell {cell} has not as many values as places for them: {error}")


def markdown(table, seen):
    """The lines of a table; seen() finds the cell of another table that {"see": reference} names."""
    shown_or_seen = lambda cell: shown_cell(seen(*cell["see"]) if isinstance(cell, dict) and "see" in cell else cell)
    rule = ["---:" if column.get("align") == "right" else "---" for column in table.columns]
    lines = [[column["name"] for column in table.columns], rule, *([shown_or_seen(cell) for cell in row] for row in table.rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


# Growth: a row of the store for each operator, machine and number of rows; a row of the page for each operator

def size_name(rows):
    millions, thousands = divmod(int(rows), 1_000_000)
    return f"{millions} million" if millions and not thousands else f"{int(rows) // 1000} thousand"


def growth(table):
    """Seconds by the number of rows, a line for each operator and machine; then a line for each error."""
    place = {column["name"]: i for i, column in enumerate(table.columns)}
    sizes = sorted({int(row[place["rows"]]) for row in table.rows})
    cells, order = {}, []
    for row in table.rows:
        key = (row[place["operator"]], row[place["machine"]])
        if key not in order:
            order.append(key)
        cells[key, int(row[place["rows"]])] = row
    names = list(dict.fromkeys(name for name, _ in order))
    order.sort(key=lambda key: names.index(key[0]))
    widest = lambda key, name: max((row[place[name]] for (k, _), row in cells.items() if k == key and row[place[name]] is not None),
                                   default=None)
    lines = [["operator", "machine", *(size_name(size) for size in sizes), "most memory: session; gputextd; GPU, MB", "most read, MB"],
             ["---", "---", *["---:"] * len(sizes), "---:", "---:"]]
    for key in order:
        seconds = []
        for size in sizes:
            row = cells.get((key, size))
            seconds.append("" if row is None else outcome(row, place))
        memory = "; ".join("–" if value is None else shown(value) for value in (widest(key, n) for n in ("backend", "gputextd", "GPU")))
        read = widest(key, "read")
        lines.append([*key, *seconds, memory, "" if read is None else shown(read)])
    errors = [f"- {row[place['operator']]}, {row[place['machine']]}, {size_name(row[place['rows']])} rows: {row[place['outcome']]}"
              for row in table.rows if outcome(row, place) == "error"]
    return ["| " + " | ".join(line) + " |" for line in lines] + ([""] + errors if errors else [])


def outcome(row, place):
    ended = row[place["outcome"]]
    if row[place["seconds"]] is not None:
        return shown(row[place["seconds"]]) + (" on the CPU" if ended == "computed on the CPU" else "")
    if ended.startswith("stopped after"):
        return "> " + ended.removeprefix("stopped after ").removesuffix(" s")
    return "not run" if ended.startswith(("not run", "no time")) else "error"


def memory_ends(table):
    """What each operator does with a small memory limit."""
    place = {column["name"]: i for i, column in enumerate(table.columns)}
    lines = [["operator", "machine", "rows", "limit", "what happens"], ["---", "---", "---:", "---:", "---"]]
    for row in table.rows:
        ended = row[place["outcome"]]
        text = f"answers, in {shown(row[place['seconds']])} s" if row[place["seconds"]] is not None else ended.replace("|", "\\|")
        lines.append([row[place["operator"]], row[place["machine"]], shown(row[place["rows"]]), row[place["limit"]], text])
    return ["| " + " | ".join(line) + " |" for line in lines]
