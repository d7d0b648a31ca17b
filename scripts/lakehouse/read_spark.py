"""Asks Spark with Delta's jars, twice while the export goes on: read_spark.py LAKE JARS."""

import glob
import json
import sys
import time

from pyspark.sql import SparkSession

from lake import QUERY, TABLES, tables

lake, jars = sys.argv[1:]
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", ",".join(glob.glob(f"{jars}/*.jar")))
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    # Small tables on one machine: as many parts as threads.
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)
for _ in range(2):
    height, places = tables(lake)
    for name in TABLES:
        folder, version = places[name]
        table = session.read.format("delta").option("versionAsOf", version).load(folder)
        table.createOrReplaceTempView(name)
    row = session.sql(QUERY).collect()[0]
    answer = {"height": height, "customers": row["customers"], "cents": int(row["cents"]), "last_name": row["last_name"]}
    print(json.dumps(answer), flush=True)
    time.sleep(2)
