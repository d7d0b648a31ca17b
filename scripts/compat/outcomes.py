"""Writes what became of each test, one line of JSON each, for pytest and for unittest; tests that have a line are not run again.

COMPAT_OUT names the file. A test that has begun and has no outcome has ended the process, or hung: it counts as failed.
"""

import json
import os

def lines(path):
    """The lines of a file of outcomes. One that was cut off, because its writer was ended, is left out."""
    found = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
    return found


NEEDLES = ("orig", "__cause__", "__context__")


def database_error(error):
    """The exception of a driver that stands behind another one, or none."""
    seen, queue = set(), [error]
    while queue:
        one = queue.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        code = getattr(one, "sqlstate", None) or getattr(one, "pgcode", None)
        if code and not hasattr(one, "orig"):
            return one, str(code)
        queue += [getattr(one, needle, None) for needle in NEEDLES]
    return None, None


def text(query):
    """A statement as text; drivers keep it as bytes, too."""
    return query.decode("utf-8", "replace") if isinstance(query, bytes) else query if isinstance(query, str) else None


def statement_of(error, behind):
    """The statement that failed: as the library says it, or as it stands in the variables of the functions that were running."""
    one, seen = error, set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        cursor = getattr(one, "cursor", None)
        for said in (getattr(one, "statement", None), getattr(one, "query", None), getattr(cursor, "query", None)):
            if text(said):
                return text(said)
        one = one.__cause__ or one.__context__
    found, frame = None, getattr(behind, "__traceback__", None)
    while frame is not None:
        variables = frame.tb_frame.f_locals
        found = next((text(variables[name]) for name in ("query", "sql", "statement") if text(variables.get(name))), found)
        frame = frame.tb_next
    return found


def cause(error):
    """What to show of an exception: its SQLSTATE where there is one, its first line, and the statement where the library says it."""
    behind, code = database_error(error)
    shown = behind if behind is not None else error
    lines = str(shown).strip().splitlines()
    found = {"kind": type(shown).__name__, "message": (lines[0] if lines else "")[:400]}
    if code:
        found["sqlstate"] = code
    statement = statement_of(error, behind)
    if statement:
        found["statement"] = statement[:2000]
    if code is None and not isinstance(error, AssertionError):
        found["detail"] = "\n".join(lines[1:6])[:600]
    elif code is None:
        found["detail"] = "\n".join(lines[1:30])[:1500]
    return found


class Outcomes:
    """The file, and what stands in it."""

    def __init__(self, path):
        self.path = path
        self.known = {}
        begun = set()
        for one in lines(path):
            if "begin" in one:
                begun.add(one["begin"])
            elif "test" in one:
                self.known[one["test"]] = one["outcome"]
        self.file = open(path, "ab+", buffering=0)
        if self.file.tell() > 0 and os.pread(self.file.fileno(), 1, self.file.tell() - 1) != b"\n":
            self.file.write(b"\n")
        for test in begun - self.known.keys():
            hung = {"kind": "Hung", "message": "it does not end, or it ends the program that runs the tests"}
            self.write({"test": test, "outcome": "failed"} | hung)

    def write(self, line):
        if "test" in line:
            self.known[line["test"]] = line["outcome"]
        self.file.write(json.dumps(line).encode() + b"\n")

    def begin(self, test):
        self.write({"begin": test})


OUTCOMES = Outcomes(os.environ["COMPAT_OUT"]) if os.environ.get("COMPAT_OUT") else None


def pytest_collection_modifyitems(session, config, items):
    """Leaves out what has an outcome."""
    left = [item for item in items if item.nodeid not in OUTCOMES.known]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in OUTCOMES.known])
    items[:] = left


def pytest_collectreport(report):
    """A file that cannot be read counts as a test that fails."""
    if report.failed and report.nodeid not in OUTCOMES.known:
        lines = str(report.longrepr).strip().splitlines()
        OUTCOMES.write(
            {"test": report.nodeid, "outcome": "failed", "kind": "Collection", "message": lines[-1][:400] if lines else ""}
        )


def pytest_runtest_logstart(nodeid, location):
    OUTCOMES.begin(nodeid)
    REPORTS.clear()


REPORTS = []


def pytest_exception_interact(node, call, report):
    if hasattr(report, "when"):
        REPORTS.append((report.when, cause(call.excinfo.value)))


def pytest_runtest_logreport(report):
    if report.skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
        REPORTS.append(("skipped", {"message": why[:400]}))


def pytest_runtest_logfinish(nodeid, location):
    failed = [found | {"when": when} for when, found in REPORTS if when != "skipped"]
    skipped = [found for when, found in REPORTS if when == "skipped"]
    outcome = "failed" if failed else "skipped" if skipped else "passed"
    OUTCOMES.write({"test": nodeid, "outcome": outcome} | (failed or skipped or [{}])[0])
