"""psycopg 2's own tests, over libpq. Those of psycopg 3 are in no package; SQLAlchemy's, Alembic's and Django's tests run on psycopg 3."""

import os
import shutil

from python import PYTEST, environment, pytest, sources

NAME = "psycopg2 2.9.13"
VERSION = "2.9.13"
PARTS = {"all": ["tests"]}
SAMPLE = ["all"]


def install(folder):
    environment(folder, "psycopg2", [*PYTEST, f"psycopg2-binary=={VERSION}"])
    copy = os.path.join(folder, "sources", "psycopg2-tests")
    if not os.path.exists(copy):
        shutil.copytree(os.path.join(sources(folder, "psycopg2", VERSION), "tests"), os.path.join(copy, "tests"))


def command(part, server, folder, seconds):
    python = os.path.join(folder, "tools", "psycopg2", "bin", "python")
    names = {"PSYCOPG2_TESTDB": server.environment()["PGDATABASE"]}
    return pytest(python, seconds, *PARTS[part]), names, os.path.join(folder, "sources", "psycopg2-tests")
