"""asyncpg's own tests, which speak the protocol's extended form with binary values."""

import os
import shutil

from python import PYTEST, environment, pytest, sources

NAME = "asyncpg 0.32.0"
VERSION = "0.32.0"
PARTS = {"all": ["tests"]}
SAMPLE = []


def install(folder):
    environment(folder, "asyncpg", [*PYTEST, f"asyncpg=={VERSION}", "distro==1.9.0"])
    copy = os.path.join(folder, "sources", "asyncpg-tests")
    if not os.path.exists(copy):
        # Without the package beside it, which is not compiled.
        shutil.copytree(os.path.join(sources(folder, "asyncpg", VERSION), "tests"), os.path.join(copy, "tests"))


def command(part, server, folder, seconds):
    python = os.path.join(folder, "tools", "asyncpg", "bin", "python")
    return pytest(python, seconds, *PARTS[part]), {}, os.path.join(folder, "sources", "asyncpg-tests")
