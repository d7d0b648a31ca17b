"""The two databases that a suite runs on: PostgreSQL 15 and a network of Entente, each in a temporary folder, with free ports."""

import contextlib
import ctypes
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

# The role that the suites connect as, and the database: the same on both. `entente` is the administrator of any network.
USER = "entente"
DATABASE = "entente"


def free_port_base(offsets):
    """A port such that it is free with each of the offsets added to it."""
    for base in range(20000 + os.getpid() % 8000, 60000, 7):
        with contextlib.ExitStack() as stack:
            try:
                for offset in offsets:
                    listener = stack.enter_context(socket.socket())
                    listener.bind(("127.0.0.1", base + offset))
            except OSError:
                continue
            return base
    raise SystemExit("no free ports between 20000 and 60000")


def with_parent(end):
    """What a child does before it runs: the kernel sends it a signal when its parent ends in whichever way."""

    def prepare():
        ctypes.CDLL(None).prctl(1, end)  # PR_SET_PDEATHSIG

    return prepare


class Server:
    """A database that runs; it ends with the `with` block."""

    host = "127.0.0.1"

    def __init__(self):
        self.processes = []
        self.folder = tempfile.mkdtemp(prefix="entente-compat-")

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.send_signal(self.end)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def alive(self):
        return all(process.poll() is None for process in self.processes)

    def environment(self):
        return {"PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": USER, "PGDATABASE": DATABASE}

    def url(self, scheme):
        return f"{scheme}://{USER}@{self.host}:{self.port}/{DATABASE}"

    def ask(self, *statements):
        """Runs statements that prepare a database; all must succeed."""
        command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"]
        for statement in statements:
            command += ["-c", statement]
        subprocess.run(command, env=os.environ | self.environment(), check=True, stdout=subprocess.DEVNULL)

    def try_all(self, *statements):
        """Runs statements that prepare a database; what is refused is missing in the tests."""
        for statement in statements:
            command = ["psql", "-X", "-q", "-c", statement]
            subprocess.run(command, env=os.environ | self.environment(), capture_output=True, check=False)

    def wait_until_ready(self, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            asked = subprocess.run(
                ["psql", "-X", "-q", "-c", "SELECT 1"], env=os.environ | self.environment(), capture_output=True
            )
            if asked.returncode == 0:
                return
            if not self.alive():
                break
            time.sleep(0.1)
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            raise SystemExit(f"{self.name} does not start:\n{log.read()[-3000:]}")


class PostgreSQL(Server):
    """PostgreSQL 15, as another user if this one is root. Its superuser has the name of Entente's administrator."""

    name = "postgres"
    end = signal.SIGINT
    programs = "/usr/lib/postgresql/15/bin"

    def start(self):
        account = {}
        if os.geteuid() == 0:
            user = next(one for one in pwd.getpwall() if one.pw_name in ("postgres", "nobody"))
            account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        data = os.path.join(self.folder, "data")
        initdb = [f"{self.programs}/initdb", "--pgdata", data, f"--username={USER}"]
        initdb += ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **account)
        self.port = free_port_base([0])
        settings = {
            "listen_addresses": self.host,
            "fsync": "off",
            "max_prepared_transactions": "10",
            "max_connections": "200",
            # What a session of Entente always has.
            "TimeZone": "UTC",
        }
        command = [f"{self.programs}/postgres", "-D", data, "-k", self.folder, "-p", str(self.port)]
        for setting, value in settings.items():
            command += ["-c", f"{setting}={value}"]
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.processes.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    preexec_fn=with_parent(self.end),
                    process_group=0,
                    **account,
                )
            )
        socket_folder = os.environ | self.environment() | {"PGDATABASE": "postgres"}
        until = time.monotonic() + 60
        while subprocess.run(["psql", "-X", "-qc", "SELECT 1"], env=socket_folder, capture_output=True).returncode:
            if time.monotonic() > until or not self.alive():
                self.wait_until_ready(0)
            time.sleep(0.1)
        subprocess.run(["psql", "-X", "-qc", f"CREATE DATABASE {DATABASE}"], env=socket_folder, check=True)


class Entente(Server):
    """A network of one node, or of four, in which any organisation changes the schema alone."""

    name = "entente"
    end = signal.SIGTERM

    def __init__(self, program, organisations=1):
        super().__init__()
        self.program = program
        self.organisations = organisations

    def run(self, *arguments):
        subprocess.run([self.program, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self):
        count = self.organisations
        base = free_port_base([more + number for more in (0, 100, 200) for number in range(count)])
        self.run("init", "--dir", "net", "--orgs", str(count), "--governance", "any", "--port-base", str(base))
        nodes = [f"net/org{number + 1}" for number in range(count)]
        self.port = base + 100
        self.http = [f"127.0.0.1:{base + 200 + number}" for number in range(count)]
        with open(os.path.join(self.folder, "log"), "wb") as log:
            for node in nodes:
                self.processes.append(
                    subprocess.Popen(
                        [self.program, "node", "--dir", node],
                        stdout=log,
                        stderr=log,
                        cwd=self.folder,
                        preexec_fn=with_parent(self.end),
                        process_group=0,
                    )
                )
        self.wait_until_ready()

    def states(self):
        """Whether the nodes have come to the same state at the newest height that all of them know."""
        recent = []
        for address in self.http:
            with urllib.request.urlopen(f"http://{address}/status", timeout=10) as answer:
                recent.append({one["height"]: one["state_digest"] for one in json.load(answer)["recent"]})
        heights = set.intersection(*map(set, recent))
        if not heights:
            return "no height in common"
        digests = {states[max(heights)] for states in recent}
        return f"{'the same' if len(digests) == 1 else 'DIFFERENT'} at height {max(heights)}"
