#!/usr/bin/env bash
# Installs system packages whose command is missing: install-missing.sh [--optional] [--but COMMAND,...] COMMAND:PACKAGE ...
# As root with apt it installs them; otherwise it says exactly what to run. With --optional a failure is only said. The
# commands behind --but may be missing.
set -euo pipefail
optional=no
if [ "${1:-}" = "--optional" ]; then optional=yes; shift; fi
but=
if [ "${1:-}" = "--but" ]; then but=$2; without=ENTENTE_TESTS_WITHOUT; shift 2; fi
packages=()
for pair in "$@"; do
  case ",${but// /}," in *",${pair%%:*},"*) continue ;; esac
  command -v "${pair%%:*}" >/dev/null 2>&1 || packages+=("${pair##*:}")
done
[ "${#packages[@]}" -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing ${packages[*]}"
  if { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}"; } >/dev/null; then
    exit 0
  fi
fi
echo "missing: ${packages[*]}; install with: sudo apt-get update && sudo apt-get install -y ${packages[*]}" >&2
if [ -n "${without:-}" ]; then
  echo "or leave out the tests that need them: $without=COMMAND,... make test" >&2
fi
[ "$optional" = yes ]
