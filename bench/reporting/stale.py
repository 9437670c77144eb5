"""Which figures are older than the code that they measure."""

import subprocess

from .store import ROOT


def git(*arguments, root=ROOT):
    """What git prints; None where there is no git, or no repository."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def last_change(paths, root=ROOT):
    """Date and short number of the last commit on the paths; None where git does not tell."""
    told = git("log", "-1", "--format=%cs %h", "--", *paths, root=root)
    return tuple(told.split(" ")) if told else None


def is_older(run, paths, change, root=ROOT):
    """Whether the code has changed since the run: by the run's commit where that is known here, else by the day."""
    if run["commit"] and git("cat-file", "-e", run["commit"], root=root) is not None:
        return bool(git("log", "-1", "--format=%h", f"{run['commit']}..HEAD", "--", *paths, root=root))
    return run["date"] is None or run["date"] < change[0]


def stale_runs(files, root=ROOT):
    """For each run with figures: file, name, run, tables, the number of figures, and the last change of their code."""
    for file in files:
        for name, run in file.runs.items():
            if run["command"] is None:
                continue    # somebody else's
            tables = [table for table in file.tables.values() if any(figure.run is run for figure in table.figures())]
            paths = sorted({path for table in tables for path in table.given.get("sources", file.sources)})
            change = last_change(paths, root) if paths else None
            if change and is_older(run, paths, change, root):
                count = sum(figure.run is run for table in tables for figure in table.figures())
                yield file, name, run, tables, count, change


def report(files, root=ROOT):
    if git("rev-parse", "HEAD", root=root) is None:
        print("There is no git, or no repository: it cannot be told which figures are older than their code.")
        return 0
    if git("rev-parse", "--is-shallow-repository", root=root) == "true":
        print("This clone is shallow: a change before its first commit looks as new as that commit.")
    old = 0
    for file, name, run, tables, count, change in stale_runs(files, root):
        old += count
        measured = run["date"] or "on a day that was not recorded"
        print(f"{file.path.stem}, {name}: {count} figures, measured {measured}{' at ' + run['commit'] if run['commit'] else ''}, "
              f"code changed {change[0]} ({change[1]}); again: {run['command']}")
    print(f"{old} of {sum(1 for file in files for _ in file.figures())} figures are older than the code that they measure.")
    return 0
