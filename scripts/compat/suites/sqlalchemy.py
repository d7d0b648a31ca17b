"""SQLAlchemy's tests for dialects, its tests of the PostgreSQL dialect, and those of its tests that ask a database, with psycopg 3."""

import os

from python import PYTEST, environment, pytest, sources

NAME = "SQLAlchemy 2.1.9"
VERSION = "2.1.9"
PARTS = {
    "suite": ["test/dialect/test_suite.py"],
    "postgresql": [f"test/dialect/postgresql/test_{name}.py" for name in ("dialect", "on_conflict", "query", "reflection", "types", "async_pg")],
    "engine": ["test/engine"],
    "sql": ["test/sql"],
}
SAMPLE = []


def install(folder):
    environment(folder, "sqlalchemy", [*PYTEST, "psycopg[binary]==3.3.9", "greenlet==3.5.6", "typing_extensions"])
    sources(folder, "sqlalchemy", VERSION)


def prepare(part, server):
    """What SQLAlchemy's README.unittests asks for."""
    server.ask("CREATE SCHEMA test_schema", "CREATE SCHEMA test_schema_2")


def command(part, server, folder, seconds):
    python = os.path.join(folder, "tools", "sqlalchemy", "bin", "python")
    arguments = ["--dburi", server.url("postgresql+psycopg"), "--maxfail=100000"]
    # Of the large folders only what is marked as depending on the database; of the dialect's not its compiler, which asks none.
    if part in ("engine", "sql"):
        arguments.append("--backend-only")
    where = sources(folder, "sqlalchemy", VERSION)
    # One process writes the profile of calls that it finds; nobody reads it.
    return pytest(python, seconds, *arguments, *PARTS[part]), {}, where
