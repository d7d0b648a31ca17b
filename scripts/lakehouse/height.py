"""Says the newest height of an export, if a table has so many rows there: height.py LAKE TABLE ROWS."""

import sys

from lake import manifest

lake, table, rows = sys.argv[1:]
found = manifest(lake)
counts = {one["name"]: one["rows"] for one in found["tables"]}
if counts.get(table, 0) < int(rows):
    sys.exit(f"{table} has {counts.get(table, 0)} rows at height {found['height']}")
print(f"the export has {counts[table]} rows of {table} at height {found['height']}")
