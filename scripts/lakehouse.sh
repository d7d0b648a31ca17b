#!/usr/bin/env bash
# Shows that others read a ledger's tables while the network runs: four organisations, an export that follows one of them,
# DuckDB and Spark on its files, and the proof of what they read. Needs Python and Java; the first time it fetches about 600 MB.
# SECONDS_OF_LOAD=60 and PORT_BASE=7400 can be changed; WITHOUT_SPARK=1 leaves Spark out.
set -euo pipefail
cd "$(dirname "$0")/.."
entente="${1:?the program}"
readers="$(dirname "$entente")/../lakehouse"
port_base="${PORT_BASE:-7400}"
seconds="${SECONDS_OF_LOAD:-60}"
spark="${WITHOUT_SPARK:+no}"

scripts/lakehouse/install-readers.sh "$readers" "${spark:-yes}"
python="$readers/python/bin/python"

work="$(mktemp -d)"
stopping=()
clean_up() {
  for process in "${stopping[@]}"; do kill "$process" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

echo "four organisations, $seconds s of load"
"$entente" demo --dir "$work/network" --port-base "$port_base" --customers 20000 --seconds "$seconds" --exit \
  >"$work/demo.log" 2>&1 &
demo=$!
stopping+=("$demo")

node="$work/network/org2"
lake="$work/lake"
until [ -f "$node/charter.toml" ]; do
  kill -0 "$demo" || { cat "$work/demo.log"; exit 1; }
  sleep 0.2
done
echo "an export follows organisation 2"
"$entente" export --follow --dir "$node" --to "$lake" >"$work/export.log" 2>&1 &
stopping+=("$!")

# A checkpoint every two seconds; without being asked a network makes one when enough has changed.
while sleep 2; do
  "$entente" sql --connect "127.0.0.1:$((port_base + 101))" --command CHECKPOINT >/dev/null 2>&1 || true
done &
stopping+=("$!")

until "$python" scripts/lakehouse/height.py "$lake" accounts 20000 2>/dev/null; do
  kill -0 "$demo" || { cat "$work/demo.log" "$work/export.log"; exit 1; }
  sleep 0.5
done

echo "DuckDB, again and again while the network writes"
"$python" scripts/lakehouse/read_duckdb.py "$lake" --rounds 10 | tee "$work/duckdb.json"
if [ -z "$spark" ]; then
  echo "Spark"
  "$python" scripts/lakehouse/read_spark.py "$lake" "$readers/jars" 2>"$work/spark.log" | tee "$work/spark.json" \
    || { tail -50 "$work/spark.log"; exit 1; }
  echo "DuckDB at the heights that Spark has read"
  "$python" scripts/lakehouse/read_duckdb.py "$lake" --as "$work/spark.json"
fi
kill -0 "$demo" || echo "the load was over before the readers; SECONDS_OF_LOAD=120 lets it run longer"

echo "an object store: the same tables over S3's protocol"
export AWS_ENDPOINT="http://127.0.0.1:$((port_base + 250))" AWS_ALLOW_HTTP=true AWS_REGION=us-east-1
export AWS_ACCESS_KEY_ID=nobody AWS_SECRET_ACCESS_KEY=nothing
"$readers/python/bin/moto_server" -H 127.0.0.1 -p "$((port_base + 250))" >"$work/s3.log" 2>&1 &
stopping+=("$!")
until "$python" scripts/lakehouse/make_bucket.py "$AWS_ENDPOINT" lake 2>/dev/null; do sleep 0.5; done
"$entente" export --dir "$work/network/org3" --to s3://lake/bank
"$entente" verify --export s3://lake/bank --charter "$node/charter.toml"

wait "$demo" || { cat "$work/demo.log"; exit 1; }
echo "the demo has ended well; every row of the newest export:"
"$entente" verify --export "$lake" --charter "$node/charter.toml"
tail -3 "$work/export.log"
