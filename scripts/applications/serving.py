"""The server of an application, which ends with the program that has started it."""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compat"))
from servers import with_parent


def serve(command, place, environment, output):
    """Starts it in a folder, with a session of its own, and gives its process. What it says goes into a file that is open."""
    return subprocess.Popen(
        command,
        cwd=place,
        env=environment,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=with_parent(signal.SIGKILL),
    )
