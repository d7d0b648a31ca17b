"""An export as readers find it: which version of each Delta table belongs to a certified height."""

import json
import os


def manifest(lake, height=None):
    """The newest checkpoint that is there whole, or that of a height."""
    name = "latest.json" if height is None else f"checkpoints/{height:020}.json"
    with open(os.path.join(lake, "_entente", name), encoding="utf-8") as file:
        return json.load(file)


def tables(lake, height=None):
    """Height, and by name of each table its folder and the version."""
    found = manifest(lake, height)
    places = {one["name"]: (os.path.join(lake, one["folder"]), one["version"]) for one in found["tables"]}
    return found["height"], places


# What every reader is asked: all customers, and the money that they have together, in cents.
QUERY = """
SELECT count(*) AS customers, sum(c.balance + s.balance) AS cents, max(a.name) AS last_name
FROM accounts a JOIN checking c ON c.customer_id = a.customer_id JOIN savings s ON s.customer_id = a.customer_id
"""
TABLES = ("accounts", "checking", "savings")
