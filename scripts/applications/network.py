"""The network of four organisations that an application runs on, and what psql sees at each of them."""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compat"))
from servers import DATABASE, Entente, free_port_base, with_parent

# Applications make their tables in transaction blocks, and a change of the schema in a block cannot wait for the consent of others.
# So organisation 1, whose application it is, decides alone about the schema. The others cannot change it, and hold every row.
GOVERNANCE = "org1"


class Network(Entente):
    """Four nodes, of which one may be killed and started again."""

    name = "the network"

    def __init__(self, program):
        super().__init__(program, organisations=4)

    def start(self):
        base = free_port_base([more + number for more in (0, 100, 200) for number in range(4)])
        self.run("init", "--dir", "net", "--orgs", "4", "--governance", GOVERNANCE, "--port-base", str(base))
        self.port = base + 100
        self.http = [f"127.0.0.1:{base + 200 + number}" for number in range(4)]
        self.processes = [self.node(organisation) for organisation in range(1, 5)]
        self.wait_until_ready(300)

    def node(self, organisation):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            return subprocess.Popen(
                [self.program, "node", "--dir", f"net/org{organisation}"],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                preexec_fn=with_parent(self.end),
                process_group=0,
            )

    def kill(self, organisation):
        """`kill -9`: the node has no time to save anything."""
        process = self.processes[organisation - 1]
        process.send_signal(signal.SIGKILL)
        process.wait()

    def start_again(self, organisation):
        self.processes[organisation - 1] = self.node(organisation)

    def environment(self):
        """What an application's own client gets to know: the same as `connection`."""
        return {"PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": "org1", "PGDATABASE": DATABASE}

    def connection(self, scheme="postgresql"):
        """The connection string of organisation 1, all that an application is told."""
        return f"{scheme}://org1@{self.host}:{self.port}/{DATABASE}"

    def jdbc(self, url, user):
        """The same for Java, whose drivers are told the user apart: these two variables."""
        return {url: f"jdbc:postgresql://{self.host}:{self.port}/{DATABASE}", user: "org1"}

    def rows(self, organisation, query):
        """What psql gives at one organisation's node: lines, with `|` between columns."""
        command = ["psql", "-X", "-q", "-A", "-t", "-h", self.host, "-p", str(self.port + organisation - 1)]
        command += ["-U", f"org{organisation}", "-v", "ON_ERROR_STOP=1", "-c", query, DATABASE]
        asked = subprocess.run(command, capture_output=True, text=True)
        return asked.stdout.splitlines() if asked.returncode == 0 else [asked.stderr.strip()]

    def see(self, query, expected, organisations=(2, 3, 4), seconds=300):
        """Waits until these organisations see the rows. A node that was killed has to come back first."""
        for organisation in organisations:
            until = time.monotonic() + seconds
            while (found := self.rows(organisation, query)) != expected:
                if time.monotonic() > until:
                    raise SystemExit(f"organisation {organisation} was to see {expected}, and sees {found}: {query}")
                time.sleep(0.2)
