"""Asks DuckDB, over the list of files that deltalake reads from the log: read_duckdb.py LAKE [--rounds N | --as FILE].

With --as it is asked at each height of that file, and must answer the same.
"""

import argparse
import json
import sys
import time

import duckdb
from deltalake import DeltaTable

from lake import QUERY, TABLES, tables


def ask(lake, height=None):
    height, places = tables(lake, height)
    connection = duckdb.connect()
    for name in TABLES:
        folder, version = places[name]
        files = DeltaTable(folder, version=version).file_uris()
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files!r})")
    customers, cents, last_name = connection.execute(QUERY).fetchall()[0]
    return {"height": height, "customers": int(customers), "cents": int(cents), "last_name": last_name}


arguments = argparse.ArgumentParser()
arguments.add_argument("lake")
arguments.add_argument("--rounds", type=int, default=1)
arguments.add_argument("--as", dest="other")
arguments = arguments.parse_args()
if arguments.other:
    with open(arguments.other, encoding="utf-8") as file:
        expected = [json.loads(line) for line in file]
    for one in expected:
        found = ask(arguments.lake, one["height"])
        if found != one:
            sys.exit(f"expected {one}, found {found}")
    print(f"the same at {len(expected)} heights")
    sys.exit(0 if expected else "no heights to compare")
for _ in range(arguments.rounds):
    print(json.dumps(ask(arguments.lake)), flush=True)
    time.sleep(1)
