#!/usr/bin/env bash
# Installs what reads a lakehouse into a folder: DuckDB and deltalake for Python, and Spark with Delta's jars from Maven; and moto,
# which answers as S3 does.
set -euo pipefail
folder="${1:?a folder}"
spark="${2:-yes}"
here="$(cd "$(dirname "$0")" && pwd)"
"$here/../install-missing.sh" python3:python3-venv
mkdir -p "$folder"
[ -x "$folder/python/bin/pip" ] || python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 duckdb==2.0.1 "moto[server]==5.2.5"
[ "$spark" = yes ] || exit 0
"$here/../install-missing.sh" java:default-jdk-headless mvn:maven
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pyspark==4.2.0
if ! ls "$folder/jars/delta-spark"* >/dev/null 2>&1; then
  mvn --quiet --batch-mode --file "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/jars"
fi
