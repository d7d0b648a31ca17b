"""Runs applications on four organisations: run.py PROGRAM FOLDER PICTURES.

What it reads from the environment stands in scripts/applications.sh. A file per application beside this one has

    NAME, VERSION, LOG_ERRORS             what it is; what stands in its log where a statement has failed
    install(packages)                     its packages, once
    start(packages, place, network, log)  what prepares it, then its web server: a Popen and the address
    use(browser, address, steps)          what a person does, and what psql sees at the others
"""

import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser
from network import Network

ALL = ["wagtail", "keycloak", "directus"]


class Steps:
    """What was done, with how long it took, and what psql has seen."""

    def __init__(self, network, place):
        self.network = network
        self.place = place
        self.done = []
        self.newest = time.monotonic()

    def say(self, what):
        now = time.monotonic()
        self.done.append({"what": what, "seconds": round(now - self.newest, 1)})
        self.newest = now
        print(f"  {what} ({self.done[-1]['seconds']} s)", flush=True)

    def seen(self, what, query, expected, organisations=(2, 3, 4), seconds=300):
        self.network.see(query, expected, organisations, seconds)
        self.say(f"{what}: psql at organisations {', '.join(map(str, organisations))}")

    def kill(self, organisation):
        self.network.kill(organisation)
        self.say(f"kill -9 of organisation {organisation}'s node")

    def start_again(self, organisation):
        self.network.start_again(organisation)
        self.say(f"organisation {organisation}'s node starts again")


def wait_for(address, process, log, seconds=3600):
    """Until an application's web server answers, with whatever."""
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(address, timeout=10)
            return
        except urllib.error.HTTPError as answer:
            if answer.code < 500:
                return
        except OSError:
            pass
        time.sleep(0.5)
    with open(log, encoding="utf-8", errors="replace") as file:
        raise SystemExit(f"{address} does not answer:\n{file.read()[-4000:]}")


def stop(process):
    """An application's web server, with whatever it has started."""
    for end in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, end)
            process.wait(20)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def failed_statements(application, log):
    """Lines of its log that say that a statement has failed, each once."""
    with open(log, encoding="utf-8", errors="replace") as file:
        found = [line.strip()[:300] for line in file if re.search(application.LOG_ERRORS, line)]
    return list(dict.fromkeys(found))


def run(name, program, folder, pictures):
    application = importlib.import_module(name)
    print(f"{application.NAME} {application.VERSION}", flush=True)
    packages = os.path.join(folder, name)
    os.makedirs(packages, exist_ok=True)
    ready = os.path.join(packages, f"ready-{application.VERSION}")
    if not os.path.exists(ready):
        application.install(packages)
        open(ready, "w").close()
    with Network(program) as network:
        place = os.path.join(packages, "run")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        log = os.path.join(folder, f"{name}.log")
        steps = Steps(network, place)
        process, address = application.start(packages, place, network, log)
        try:
            wait_for(address, process, log)
            steps.say("it answers")
            with Browser(pictures) as browser:
                application.use(browser, address, steps)
        finally:
            stop(process)
        failed = failed_statements(application, log)
        states = network.states()
        print(f"  states: {states}; statements that failed in its log: {failed or 'none'}", flush=True)
        return {"version": application.VERSION, "steps": steps.done, "states": states, "failed": failed}


def main():
    # So that servers are stopped and their folders removed when somebody stops the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    program, folder, pictures = sys.argv[1:]
    os.makedirs(pictures, exist_ok=True)
    for name in os.environ.get("APPS", "").replace(",", " ").split() or ALL:
        result = run(name, program, folder, pictures)
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


main()
