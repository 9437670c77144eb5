"""Which figures are older than the code that they measure."""

from .changes import git, last_change
from .store import ROOT


def change_since(run, paths, capability, root=ROOT):
    """Date and number of the last commit that changes code below the paths since the run: since its commit, where that is known here,
    else since the last one of its day, else ever. None if there is none."""
    since = run["commit"] if run["commit"] and git("cat-file", "-e", run["commit"], root=root) is not None else None
    if not since and run["date"]:
        since = git("rev-list", "-1", f"--before={run['date']}T23:59:59Z", "HEAD", root=root) or None
    return last_change(paths, capability, since, root)


def stale_runs(files, root=ROOT):
    """For each run with figures that are older than their code: file, name, run, the number of figures, and the last change."""
    for file in files:
        for name, run in file.runs.items():
            if run["command"] is None:
                continue    # somebody else's
            tables = [table for table in file.tables.values() if any(figure.run is run for figure in table.figures())]
            # A table may be of less code than others.
            counts, changes = 0, []
            for table in tables:
                paths = table.given.get("sources", file.sources)
                change = change_since(run, paths, file.path.stem, root) if paths else None
                if change:
                    changes.append(change)
                    counts += sum(figure.run is run for figure in table.figures())
            if changes:
                yield file, name, run, counts, max(changes)


def report(files, root=ROOT):
    if git("rev-parse", "HEAD", root=root) is None:
        print("There is no git, or no repository: it cannot be told which figures are older than their code.")
        return 0
    if git("rev-parse", "--is-shallow-repository", root=root) == "true":
        print("This clone is shallow: a change before its first commit looks as new as that commit.")
    old = 0
    for file, name, run, count, change in stale_runs(files, root):
        old += count
        measured = run["date"] or "on a day that was not recorded"
        print(f"{file.path.stem}, {name}: {count} figures, measured {measured}{' at ' + run['commit'] if run['commit'] else ''}, "
              f"code changed {change[0]} ({change[1]}); again: {run['command']}")
    print(f"{old} of {sum(1 for file in files for _ in file.figures())} figures are older than the code that they measure.")
    return 0
