#!/usr/bin/env bash
# Runs applications that others wrote on four organisations, uses them through their own web interfaces, and takes the screenshots of
# docs/applications.md. Installs what it needs, once. Nothing goes on running afterwards.
#   APPS="wagtail"               only these (scripts/applications); otherwise all
#   APPLICATIONS_FOLDER          packages, logs and results; beside the program
#   PICTURES=FOLDER              where screenshots go; docs/images
set -euo pipefail
cd "$(dirname "$0")/.."
entente="$(realpath "${1:?the program}")"
folder="${APPLICATIONS_FOLDER:-$(dirname "$entente")/../applications}"
scripts/install-missing.sh psql:postgresql-client python3:python3-venv chromium:chromium chromedriver:chromium-driver
if [[ "${APPS:-keycloak}" == *keycloak* ]]; then scripts/install-missing.sh java:default-jdk-headless mvn:maven; fi
# One of Directus's packages is compiled.
if [[ "${APPS:-directus}" == *directus* ]]; then scripts/install-missing.sh npm:npm make:make g++:g++; fi
mkdir -p "$folder"
folder="$(realpath "$folder")"
if [ ! -f "$folder/browser/ready" ]; then
  python3 -m venv "$folder/browser"
  "$folder/browser/bin/pip" install -q "selenium==4.51.0" "pillow==13.0.0"
  touch "$folder/browser/ready"
fi
exec "$folder/browser/bin/python" scripts/applications/run.py "$entente" "$folder" "$(realpath "${PICTURES:-docs/images}")"
