"""Alembic's own tests: migrations that are made and compared with what the database says of itself, with psycopg 3."""

import os

from python import PYTEST, environment, pytest, sources

NAME = "Alembic 1.20.1"
VERSION = "1.20.1"
# A file each, because a table that a failed test leaves behind fails others.
FILES = "autogen_diffs autogen_indexes autogen_check_constraints autogen_composition batch postgresql suite version_table"
PARTS = {name: [f"tests/test_{name}.py"] for name in FILES.split()}
SAMPLE = ["suite"]


def install(folder):
    packages = ["psycopg[binary]==3.3.9", "sqlalchemy==2.1.9", "greenlet==3.5.6", f"alembic=={VERSION}", "tzdata"]
    environment(folder, "alembic", [*PYTEST, *packages])
    sources(folder, "alembic", VERSION)


def prepare(part, server):
    server.ask("CREATE SCHEMA test_schema", "CREATE SCHEMA test_schema_2")


def command(part, server, folder, seconds):
    python = os.path.join(folder, "tools", "alembic", "bin", "python")
    arguments = ["--dburi", server.url("postgresql+psycopg"), "--maxfail=100000"]
    return pytest(python, seconds, *arguments, "--backend-only", *PARTS[part]), {}, sources(folder, "alembic", VERSION)
