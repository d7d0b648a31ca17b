#!/usr/bin/env bash
# Runs the own tests of drivers and of object-relational mappers on PostgreSQL 15 and on Entente, and writes
# docs/compatibility-suites.md. Installs what it needs. What is finished is not run again.
#   SUITES="sqlalchemy django"   only these (scripts/compat/suites)
#   AGAIN="django/queries"       run these again: suites, parts of suites, or `all`
#   ON="entente"                 only on: postgres, entente, four (the sample on four nodes)
#   COMPAT_REASONS=FILE          also writes every test that passes on PostgreSQL only, by reason, with its statement
#   SECONDS_PER_TEST=60, SECONDS_PER_PART=2400, COMPAT_FOLDER (packages and results; beside the program)
set -euo pipefail
cd "$(dirname "$0")/.."
entente="$(realpath "${1:?the program}")"
folder="${COMPAT_FOLDER:-$(dirname "$entente")/../compat}"
scripts/install-missing.sh psql:postgresql-client python3:python3-venv
if [ ! -x /usr/lib/postgresql/15/bin/postgres ]; then
  [ "$(id -u)" = 0 ] || { echo "PostgreSQL 15 is missing; install with: sudo apt-get install -y postgresql-15" >&2; exit 1; }
  # At runlevel 1 packages start no servers.
  apt-get update -qq
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15 >/dev/null
fi
mkdir -p "$folder"
exec python3 scripts/compat/run.py "$entente" "$(realpath "$folder")"
