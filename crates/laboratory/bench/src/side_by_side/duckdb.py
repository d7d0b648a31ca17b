"""Loads files into DuckDB and answers queries with one thread: a request and an answer are a line of JSON each."""

import json
import sys
import threading
import time
from decimal import Decimal

import duckdb


def load(request):
    """A database with tables from files of CSV."""
    connection = duckdb.connect(request["database"])
    for table in request["tables"]:
        connection.execute(table["definition"])
        file = table["file"].replace("'", "''")
        connection.execute(f"""COPY {table["name"]} FROM '{file}' (FORMAT csv, HEADER false, QUOTE '"', ESCAPE '"')""")
    connection.execute("CHECKPOINT")
    connection.execute("SET threads = 1")
    return connection


def text(value):
    """A value as PostgreSQL writes it."""
    if value is None:
        return None
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def query(connection, sql, seconds_max):
    """The rows, and the milliseconds until they were there; an error where that takes more than `seconds_max`, unless it is None."""
    timer = threading.Timer(threading.TIMEOUT_MAX if seconds_max is None else seconds_max, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        start = time.perf_counter()
        rows = connection.execute(sql).fetchall()
        ms = (time.perf_counter() - start) * 1e3
    finally:
        timer.cancel()
    floating = [any(isinstance(value, float) for value in column) for column in zip(*rows)]
    return {"ms": ms, "floating": floating, "cells": [[text(value) for value in row] for row in rows]}


def main():
    connection = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "query" in request:
                answer = query(connection, request["query"], request["seconds_max"])
            else:
                connection, answer = load(request), {"ms": 0.0, "floating": [], "cells": []}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


main()
