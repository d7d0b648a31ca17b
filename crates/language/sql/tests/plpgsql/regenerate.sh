#!/bin/sh
# Writes the expected output (*.out) of every program here (*.sql) with a real PostgreSQL 15.
#
#   regenerate.sh [program …]
#
# Needs initdb, pg_ctl and psql of PostgreSQL 15 on the PATH or under $PGBIN. The server lives in a temporary folder,
# listens on a socket there only, and is gone afterwards. PostgreSQL refuses to run as root; root runs it as the user
# in $PGUSER_SYSTEM (default: nobody).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ -z "${PGBIN:-}" ] || PATH=$PGBIN:$PATH
work=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid="${PGUSER_SYSTEM:-nobody}" --clear-groups "$@"; else "$@"; fi; }
stop() { as pg_ctl -D "$work/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$work"; }
trap stop EXIT INT TERM
[ "$(id -u)" != 0 ] || chown "${PGUSER_SYSTEM:-nobody}" "$work"
cd "$work"
as initdb -D "$work/data" -U entente -A trust -E UTF8 --locale=C >/dev/null
as pg_ctl -D "$work/data" -l "$work/log" -w -o "-c fsync=off -c listen_addresses='' -k $work -c timezone=UTC" start >/dev/null
export PGHOST="$work" PGUSER=entente PGOPTIONS='-c client_min_messages=error'
case $(psql -X -A -t -d postgres -c 'SHOW server_version') in
15*) ;;
*) echo "expected PostgreSQL 15; put its programs first on the PATH or name their folder in PGBIN" >&2; exit 1 ;;
esac
[ $# -gt 0 ] || set -- "$here"/*.sql
for program in "$@"; do
  name=$(basename "$program" .sql)
  psql -X -q -d postgres -c "CREATE DATABASE \"$name\""
  # Rows without padding, errors as SQLSTATE and message with detail and hint; no other fields and no messages.
  psql -X -q -A -t -d "$name" -v VERBOSITY=verbose -v SHOW_CONTEXT=never -P null='<NULL>' \
    <"$here/$name.sql" 2>&1 |
    sed -E -e '/^(LOCATION|QUERY|(SCHEMA|TABLE|COLUMN|CONSTRAINT) NAME|INFO): /d' -e '/^LINE [0-9]+:/d' -e '/^ *\^$/d' \
      >"$here/$name.out"
done
