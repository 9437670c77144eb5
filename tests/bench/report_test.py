#!/usr/bin/env python3
"""Tests of bench/report on a store, a page and a repository of its own, without matplotlib."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent.parent / "bench"

RESULTS = """{
 "capability": "Joins", "sources": ["code"],
 "runs": {"old": {"hardware": "a machine", "device": null, "date": "2020-05-01", "commit": null, "command": "bench/run old", "page": null},
          "theirs": {"hardware": null, "device": null, "date": null, "commit": null, "command": null, "page": null}},
 "tables": [{"name": "seconds", "run": "old",
  "columns": [{"name": ""}, {"name": "seconds", "unit": "s", "align": "right"}, {"name": "peer", "run": "theirs"}],
  "rows": [["ours", 0.200, [1.10, 2]], ["rate", {"values": [1.6e12, 12345], "as": "{} pairs/s, {} ms"}, null], ["said", "none", 7], ["again", {"see": ["joins/seconds", "ours", "seconds"]}, {"see": ["joins/seconds", "rate", 1]}]]}],
 "plots": [{"name": "join", "alt": "A join takes {} s here, and the peer takes {}.",
  "alt_figures": [["joins/seconds", "ours", "seconds"], ["joins/seconds", "ours", "peer"]]}]
}"""

PAGE = """# Page

<!-- table: joins/seconds -->
<!-- end -->

<!-- plot: join -->
<!-- end -->

<!-- runs: joins -->
<!-- end -->
"""


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("bench/results", "docs/images", "code"):
            (self.root / folder).mkdir(parents=True)
        shutil.copy(BENCH / "report", self.root / "bench")
        shutil.copytree(BENCH / "reporting", self.root / "bench" / "reporting", ignore=shutil.ignore_patterns("__pycache__"))
        self.results = self.root / "bench" / "results" / "joins.json"
        self.results.write_text(RESULTS)
        self.page = self.root / "docs" / "page.md"
        self.page.write_text(PAGE)
        for name in ("join.svg", "join-dark.svg"):
            (self.root / "docs" / "images" / name).write_text("<svg/>")

    def report(self, *arguments, path=None):
        environment = dict(os.environ, GIT_CEILING_DIRECTORIES=str(self.root.parent)) | ({"PATH": path} if path else {})
        return subprocess.run([sys.executable, self.root / "bench" / "report", *arguments], capture_output=True, text=True, env=environment)

    def change_results(self, change):
        stored = json.loads(RESULTS)
        change(stored)
        self.results.write_text(json.dumps(stored))

    def git(self, *arguments, day="2020-04-01"):
        when = f"{day}T12:00:00 +0000"
        environment = dict(os.environ, GIT_AUTHOR_DATE=when, GIT_COMMITTER_DATE=when, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1",
                           GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
        return subprocess.run(["git", "-C", self.root, *arguments], check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def commit_code(self, text, day):
        (self.root / "code" / "join.cpp").write_text(text)
        self.git("add", "code")
        self.git("commit", "-q", "-m", "change", day=day)
        return self.git("rev-parse", "--short", "HEAD")

    def test_writes_tables_with_the_digits_of_the_store(self):
        self.assertEqual(self.report("--tables").returncode, 0)
        text = self.page.read_text()
        self.assertIn("| ours | 0.200 | 1.10 to 2 |", text)
        self.assertIn("| rate | 1.6e12 pairs/s, 12,345 ms |  |", text)
        self.assertIn("| again | 0.200 | 1.6e12 pairs/s, 12,345 ms |", text)
        self.assertIn('alt="A join takes 0.200 s here, and the peer takes 1.10 to 2."', text)
        self.assertIn("| 2020-05-01 | a machine | `bench/run old` |", text)
        self.assertEqual(self.report("--check").stdout, "")
        self.assertEqual(self.report("--tables").stdout, "", "writing twice changes nothing")

    def test_finds_a_page_that_says_something_else(self):
        self.report("--tables")
        self.page.write_text(self.page.read_text().replace("0.200 |", "0.1 |"))
        done = self.report("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("page.md does not say what bench/results says", done.stdout)

    def test_finds_a_store_that_says_something_else(self):
        self.report("--tables")
        self.results.write_text(RESULTS.replace("0.200", "0.201"))
        self.assertEqual(self.report("--check").returncode, 1)

    def test_finds_missing_pictures_and_texts(self):
        self.report("--tables")
        (self.root / "docs" / "images" / "join-dark.svg").unlink()
        self.page.write_text(self.page.read_text() + '\n![](images/join.svg)\n<img src="images/none.svg" alt="What it shows in words">\n')
        complaints = self.report("--check").stdout
        self.assertIn("the picture images/join-dark.svg does not exist", complaints)
        self.assertIn("the picture images/none.svg does not exist", complaints)
        self.assertIn("the picture images/join.svg has no text", complaints)

    def test_finds_what_is_wrong_in_the_store(self):
        self.report("--tables")
        self.change_results(lambda stored: stored["runs"]["old"].pop("hardware"))
        self.assertIn("lacks hardware", self.report("--check").stdout)
        self.change_results(lambda stored: stored["tables"][0]["rows"][0].pop())
        self.assertIn("2 of 3 cells", self.report("--check").stdout)
        self.change_results(lambda stored: stored["tables"][0].update(run="none"))
        self.assertIn("belongs to no run", self.report("--check").stdout)
        self.change_results(lambda stored: stored["plots"][0].update(alt_figures=[["joins/seconds", "nobody", "seconds"]]))
        self.assertIn("0 rows of joins/seconds begin with ['nobody']", self.report("--check").stdout)
        self.change_results(lambda stored: stored.update(sources=["code", "gone"]))
        self.assertIn("its source gone does not exist", self.report("--check").stdout)
        self.results.write_text("{")
        self.assertIn("is no JSON", self.report("--check").stderr)

    def test_finds_a_table_without_an_end(self):
        self.page.write_text(PAGE.replace("<!-- end -->\n", "", 1))
        self.assertIn("no <!-- end --> after <!-- table: joins/seconds -->", self.report("--check").stdout)

    def test_writes_growth_with_errors_below(self):
        columns = ["machine", "operator", "device", "rows", "seconds", "backend", "gputextd", "GPU", "read", "outcome"]
        rows = [["old", "knn", "cpu", 10000, 0.5, 20, None, None, 3, "ok"], ["old", "knn", "cpu", 1000000, None, 90, 7, None, 1, "53200: out of memory"],
                ["theirs", "knn", "gpu", 10000, None, 1, None, None, 0, "stopped after 20 s"],
                ["theirs", "knn", "gpu", 1000000, None, None, None, None, None, "not run, since 10,000 rows did not end well"]]
        self.change_results(lambda stored: stored["tables"].append(
            {"name": "growth", "long": True, "columns": [{"name": name} for name in columns], "rows": rows}))
        self.page.write_text("<!-- growth: joins/growth -->\n<!-- end -->\n")
        self.report("--tables")
        text = self.page.read_text()
        self.assertIn("| knn | old | 0.5 | error | 90; 7; – | 3 |", text)
        self.assertIn("| knn | theirs | > 20 | not run | 1; –; – | 0 |", text)
        self.assertIn("- knn, old, 1 million rows: 53200: out of memory", text)

    def test_lists_figures_with_units_and_runs(self):
        lines = [line.split("\t") for line in self.report("--list").stdout.splitlines()]
        self.assertEqual([line[2:6] for line in lines], [
            ["ours", "seconds", "0.200", "s"], ["ours", "peer", "1.10 to 2", ""], ["rate", "seconds", "1.6e12", "pairs/s"],
            ["rate", "seconds", "12,345", "ms"], ["said", "peer", "7", ""]])
        self.assertEqual(lines[0][6], "2020-05-01")
        self.assertEqual(lines[1][6], "", "the peer's run has no date")

    def test_lists_figures_that_are_older_than_their_code(self):
        self.git("init", "-q")
        self.commit_code("first", "2020-04-01")
        self.assertIn("0 of 5 figures are older", self.report("--stale").stdout)
        hash_of = self.commit_code("second", "2020-06-01")
        told = self.report("--stale")
        self.assertEqual(told.returncode, 0, "a list, not a failure")
        self.assertIn(f"joins, old: 3 figures, measured 2020-05-01, code changed 2020-06-01 ({hash_of}); again: bench/run old", told.stdout)
        self.assertIn("3 of 5 figures are older", told.stdout)

    def test_compares_commits_where_they_are_known(self):
        self.git("init", "-q")
        measured = self.commit_code("first", "2020-04-01")
        self.change_results(lambda stored: stored["runs"]["old"].update(commit=measured))
        (self.root / "other").write_text("not measured")
        self.git("add", "other")
        self.git("commit", "-q", "-m", "elsewhere", day="2020-07-01")
        self.assertIn("0 of 5 figures are older", self.report("--stale").stdout)
        self.commit_code("second", "2020-04-02")
        self.assertIn(f"measured 2020-05-01 at {measured}, code changed 2020-04-02", self.report("--stale").stdout)

    def test_passes_over_commits_that_change_no_code(self):
        self.git("init", "-q")
        code, other = self.root / "code" / "join.cpp", self.root / "code" / "pairs.cpp"
        code.write_text("#include <map>\n\nnamespace joins {\n/// Joins.\nint join() { return 1; }\nint pairs() { return 2; }\n}  // namespace joins\n")
        self.git("add", "code")
        self.git("commit", "-q", "-m", "first", day="2020-04-01")
        code.write_text("#include <vector>\n\nnamespace joins {\n// Joins, in words\n// that are others.\nint join() {\n    return 1;\n}\n}  // namespace joins\n")
        other.write_text("namespace joins {\nint pairs() { return 2; }\n}  // namespace joins\n")
        (self.root / "code" / "README.md").write_text("Joins")
        self.git("add", "code")
        self.git("commit", "-q", "-m", "comments, and a function moved", day="2020-06-01")
        self.assertIn("0 of 5 figures are older", self.report("--stale").stdout)
        code.write_text(code.read_text().replace("return 1", "return 3"))
        self.git("commit", "-q", "-a", "-m", "another number", day="2020-07-01")
        hash_of = self.git("rev-parse", "--short", "HEAD")
        self.assertIn(f"code changed 2020-07-01 ({hash_of})", self.report("--stale").stdout)
        (self.results.parent / "same_figures").write_text(f"# a comment\n{hash_of} groups,others a number that joins measure\n")
        self.assertIn("3 of 5 figures are older", self.report("--stale").stdout)
        (self.results.parent / "same_figures").write_text(f"{hash_of} groups,joins a number that nothing measures\n")
        (self.root / "code" / "new.cpp").write_text("int new_function() { return 4; }\n")
        self.git("add", "code")
        self.git("commit", "-q", "-m", "a file that nothing calls", day="2020-08-01")
        self.assertIn("0 of 5 figures are older", self.report("--stale").stdout)

    def test_says_when_there_is_no_git(self):
        for path in (None, "/nonexistent"):
            told = self.report("--stale", path=path)
            self.assertEqual(told.returncode, 0)
            self.assertRegex(told.stdout, "There is no git, or no repository")

    def test_the_store_of_this_checkout(self):
        told = subprocess.run([sys.executable, BENCH / "report", "--list"], capture_output=True, text=True)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertGreater(len(told.stdout.splitlines()), 2000)


if __name__ == "__main__":
    unittest.main()
