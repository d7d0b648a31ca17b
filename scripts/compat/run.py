"""Runs the suites, part by part, on both databases, and remembers what has been run: run.py PROGRAM FOLDER.

What it reads from the environment stands in scripts/compat.sh.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import page
from outcomes import lines
from servers import Entente, PostgreSQL, with_parent

HERE = os.path.dirname(os.path.abspath(__file__))
ALL = ["sqlalchemy", "asyncpg", "psycopg2", "alembic", "django", "pgx", "pgjdbc"]
SECONDS_PER_TEST = int(os.environ.get("SECONDS_PER_TEST", "60"))
# A part is given up after so long; what it has not reached counts as failed.
SECONDS_PER_PART = int(os.environ.get("SECONDS_PER_PART", "2400"))
# A test that hangs in a driver's C code cannot be interrupted: its process is ended, and another one runs the rest.
PROCESSES_PER_PART = 30


def is_finished(path):
    found = lines(path)
    return bool(found) and "end" in found[-1]


def asked_again(name, part):
    words = os.environ.get("AGAIN", "").replace(",", " ").split()
    return any(word in ("all", name, f"{name}/{part}") for word in words)


def wait(process, path):
    """Waits for a program that writes outcomes to a file; ends it where nothing has been written for too long."""
    started = changed = time.monotonic()
    size = -1
    limit = SECONDS_PER_TEST * 2 + 30
    while process.poll() is None:
        time.sleep(0.2)
        now = time.monotonic()
        new = os.path.getsize(path) if os.path.exists(path) else -1
        if new != size:
            size, changed = new, now
        if now - changed > limit or now - started > SECONDS_PER_PART:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "time"
    return None


def forget_begun(path):
    """A test that was running when somebody stopped the run is run again."""
    found = lines(path)
    ended = {one["test"] for one in found if "test" in one}
    kept = [one for one in found if "begin" not in one or one["begin"] in ended]
    if len(kept) < len(found):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in kept)


def has_none(log):
    """Whether a runner has said that there is no test."""
    with open(log, encoding="utf-8", errors="replace") as file:
        return "Ran 0 tests" in file.read()


def run_part(suite, name, part, where, server, path, folder):
    """One part on one database: its lines, the last of which says that it is the end."""
    started = time.monotonic()
    forget_begun(path)
    for _ in range(PROCESSES_PER_PART):
        argv, environment, place = suite.command(part, server, folder, SECONDS_PER_TEST)
        environment = os.environ | server.environment() | {"COMPAT_OUT": path, "PYTHONPATH": HERE} | environment
        before = len(lines(path))
        with open(f"{path}.log", "ab") as log:
            process = subprocess.Popen(
                argv,
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=with_parent(signal.SIGKILL),
            )
            why = wait(process, getattr(suite, "watched", lambda path: path)(path))
        more = suite.collect(path, folder) if hasattr(suite, "collect") else False
        found = lines(path)
        open_tests = {one["begin"] for one in found if "begin" in one} - {one["test"] for one in found if "test" in one}
        if time.monotonic() - started > SECONDS_PER_PART:
            why = "time"
            break
        # What hung or ended its process is known now; another process runs the rest.
        if len(found) == before or not (more or open_tests or why):
            break
    # A part may have no test for this database; what has not even begun is wrong.
    if server.name == "postgres" and not any("test" in one for one in lines(path)) and not has_none(f"{path}.log"):
        raise SystemExit(f"{name}/{part}: no test has run on PostgreSQL; see {path}.log")
    with open(path, "a", encoding="utf-8") as file:
        end = {"end": why or "all", "seconds": round(time.monotonic() - started, 1), "is_up": server.alive()}
        if where == "four" and end["is_up"]:
            end["states"] = server.states()
        file.write(json.dumps(end) + "\n")


def say(name, part, where, path):
    counts = {}
    for one in lines(path):
        if "test" in one:
            counts[one["outcome"]] = counts.get(one["outcome"], 0) + 1
    end = lines(path)[-1]
    print(f"{name}/{part} on {where}: {counts} in {end['seconds']} s" + ("" if end["is_up"] else ", THE SERVER ENDED"), flush=True)


def main():
    # So that servers are stopped and their folders removed when somebody stops the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    program, folder = sys.argv[1:]
    names = os.environ.get("SUITES", "").replace(",", " ").split() or ALL
    places = os.environ.get("ON", "postgres entente four").replace(",", " ").split()
    results = os.path.join(folder, "results")
    for name in names:
        suite = importlib.import_module(f"suites.{name}")
        print(f"{suite.NAME}: {' '.join((suite.__doc__ or '').split())}", flush=True)
        suite.install(folder)
        for part in suite.PARTS:
            for where in places:
                if where == "four" and part not in suite.SAMPLE:
                    continue
                path = os.path.join(results, name, f"{part}.{where}.jsonl")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if asked_again(name, part) and os.path.exists(path):
                    os.remove(path)
                if is_finished(path):
                    continue
                if where == "postgres":
                    server = PostgreSQL()
                else:
                    server = Entente(program, 4 if where == "four" else 1)
                with server:
                    getattr(suite, "prepare", lambda *_: None)(part, server)
                    run_part(suite, name, part, where, server, path, folder)
                say(name, part, where, path)
    page.write(results, program)


if __name__ == "__main__":
    main()
