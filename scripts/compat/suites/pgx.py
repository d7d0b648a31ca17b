"""pgx's own tests: the driver of Go, its connections, types and pool, and its part below database/sql. Needs Go 1.21 or newer."""

import json
import os
import re
import shlex
import shutil
import subprocess

NAME = "pgx 5.13.0"
VERSION = "v5.13.0"
MODULE = "github.com/jackc/pgx/v5"
PARTS = {
    "pgx": ["."],
    "pgconn": ["./pgconn"],
    "pgtype": ["./pgtype", "./pgtype/zeronull"],
    "pgxpool": ["./pgxpool"],
    "stdlib": ["./stdlib"],
}
SAMPLE = []
# What has an outcome in the part that runs.
KNOWN = set()


def install(folder):
    if shutil.which("go") is None:
        raise SystemExit("pgx's tests need Go 1.21 or newer in PATH; leave them out with SUITES=…")
    place = os.path.join(folder, "sources", "pgx")
    if os.path.exists(place):
        return
    downloaded = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], check=True, capture_output=True, cwd=folder
    )
    shutil.copytree(json.loads(downloaded.stdout)["Dir"], place)
    subprocess.run(["chmod", "-R", "u+w", place], check=True)


def prepare(part, server):
    """What pgx's testsetup makes; roles for other ways to log in are left out."""
    KNOWN.clear()
    server.try_all("CREATE EXTENSION hstore", "CREATE EXTENSION ltree", "CREATE DOMAIN uint64 AS numeric(20,0)")


def watched(path):
    return f"{path}.go"


def command(part, server, folder, seconds):
    skip = ""
    known = [test.split(" ")[1].split("/")[0] for test in KNOWN]
    if known:
        skip = " -skip " + shlex.quote(f"^({'|'.join(sorted(set(known)))})$")
    go = f"go test -json -count=1 -p 1 -timeout 3600s{skip} {' '.join(PARTS[part])}"
    place = f"host={server.host} port={server.port} user=entente dbname=entente"
    return ["sh", "-c", f'exec {go} >"$COMPAT_OUT.go"'], {"PGX_TEST_DATABASE": place}, os.path.join(folder, "sources", "pgx")


def cause(output):
    """The first error of a database in what a test has printed, or its first line that says something."""
    found = re.search(r"ERROR: (.*?) \(SQLSTATE (\w+)\)", output)
    if found:
        return {"kind": "PgError", "message": found[1][:400], "sqlstate": found[2]}
    noise = re.compile(r"^\s*(=== |--- |Error Trace:|Test:|/|panic: test timed|$)")
    lines = [line.strip() for line in output.splitlines() if not noise.match(line)]
    lines = [re.sub(r"^\w+\.go:\d+:\s*", "", line) for line in lines]
    lines = [line for line in lines if line]
    # What testify says stands in several lines.
    message = re.sub(r"\s+", " ", " ".join(lines[:3] if lines and lines[0].startswith("Error:") else lines[:1]))
    return {"kind": "Go", "message": message[:400], "detail": "\n".join(lines[1:12])[:800]}


def collect(path, folder):
    """Turns what `go test -json` has written into lines; says whether another process has to run the rest."""
    outputs, outcomes, begun = {}, {}, []
    if not os.path.exists(watched(path)):
        return False
    with open(watched(path), encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if "Test" not in one:
                continue
            test = f"{one['Package'].removeprefix(MODULE).strip('/') or 'pgx'} {one['Test']}"
            action = one["Action"]
            if action == "run":
                begun.append(test)
            elif action == "output":
                outputs[test] = outputs.get(test, "") + one["Output"]
            elif action in ("pass", "fail", "skip"):
                outcomes[test] = {"pass": "passed", "fail": "failed", "skip": "skipped"}[action]
    hung = [test for test in begun if test not in outcomes]
    with open(path, "a", encoding="utf-8") as file:
        for test in begun:
            more = {}
            if test in hung:
                more = {"kind": "Hung", "message": "it does not end, or it ends the program that runs the tests"}
            elif outcomes[test] == "failed":
                inner = "".join(text for name, text in outputs.items() if name == test or name.startswith(f"{test}/"))
                more = cause(inner)
            file.write(json.dumps({"test": test, "outcome": outcomes.get(test, "failed")} | more) + "\n")
    KNOWN.update(begun)
    return bool(hung)
