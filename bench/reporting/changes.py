"""Which commits change code, and which only what is said of it: comments and places."""

import re
import subprocess
from collections import Counter
from functools import lru_cache

from .store import ROOT

TOKEN = re.compile(r"""//.*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d[\w.']*|\S""")
# What only says where a declaration is
PLACE = re.compile(r"\s*(#\s*(include|pragma once)\b|(inline )?namespace\b[^=;]*\{\s*(//.*)?$|\}\s*// namespace|using namespace\b)")
# Commits that change code, but by all that is known no figure of some capabilities: a line each, a commit, the names of their files in
# bench/results with a comma between them, or * for all, and a reason.
SAME_FIGURES = "bench/results/same_figures"


def git(*arguments, root=ROOT):
    """What git prints; None where there is no git, or no repository."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, errors="replace")
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def tokens(line):
    """Of a line of C++, without comments and what says where it stands."""
    if PLACE.match(line):
        return []
    return [token for token in TOKEN.findall(line) if not token.startswith(("//", "/*"))]


class Difference:
    """Tokens that went and that came, in a file or in several."""

    def __init__(self):
        self.gone, self.new = Counter(), Counter()

    def add(self, other):
        self.gone.update(other.gone)
        self.new.update(other.new)


@lru_cache(maxsize=None)
def files_of(commit, root):
    """For each file that the commit changes: its old and its new name, None where there is none, and the difference."""
    files = []
    printed = git("show", "--format=", "--find-renames=40%", "--unified=0", commit, root=root) or ""
    old = difference = None
    for line in printed.split("\n"):
        if line.startswith("diff --git"):
            old = difference = None
        elif line.startswith("rename from "):
            old = line[len("rename from "):]
        elif line.startswith("rename to "):
            difference = Difference()
            files.append((old, line[len("rename to "):], difference))
        elif line.startswith("--- ") and (difference is None or old is None):
            old = line[6:] if line.startswith("--- a/") else None
        elif line.startswith("+++ ") and difference is None:
            difference = Difference()
            files.append((old, line[6:] if line.startswith("+++ b/") else None, difference))
        elif difference is not None and line[:1] in "+-" and line[:3] not in ("+++", "---"):
            (difference.new if line[:1] == "+" else difference.gone).update(tokens(line[1:]))
    return files


@lru_cache(maxsize=None)
def listed(root):
    """SAME_FIGURES: pairs of a commit and the set of capabilities."""
    path = root / SAME_FIGURES
    lines = path.read_text().split("\n") if path.exists() else []
    return [(line.split()[0], set(line.split()[1].split(","))) for line in lines if line.strip() and not line.startswith("#")]


def within(name, paths):
    return name is not None and not name.endswith(".md") and any(name == path or name.startswith(path.rstrip("/") + "/") for path in paths)


@lru_cache(maxsize=None)
def changes_code(commit, paths, capability, root):
    """Whether the commit changes code below the paths, as a compiler sees it: not if all of its tokens there, or in all files, are the
    same ones as before in another order or place; if only files are new, which what was there does not call yet; or if it is listed.
    An order that means another thing is not seen."""
    if any((commit.startswith(known) or known.startswith(commit)) and names & {"*", capability} for known, names in listed(root)):
        return False
    here, there_before, everywhere = Difference(), Difference(), Difference()
    for old, new, difference in files_of(commit, root):
        if within(old, paths) or within(new, paths):
            here.add(difference)
            if old is not None:
                there_before.add(difference)
        if not (new or old).endswith(".md"):
            everywhere.add(difference)
    return all(difference.gone != difference.new for difference in (here, there_before, everywhere))


def last_change(paths, capability, since, root=ROOT):
    """Date and short number of the last commit after `since` that changes code below the paths; None if there is none. `since` is a
    commit, or None for all."""
    printed = git("log", "--no-merges", "--format=%cs %h", *([f"{since}..HEAD"] if since else []), "--", *paths, root=root)
    for line in (printed or "").split("\n"):
        if line and changes_code(line.split(" ")[1], tuple(paths), capability, root):
            return tuple(line.split(" "))
    return None
