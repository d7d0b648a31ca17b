#!/usr/bin/env bash
# Founds a network of four organisations on one machine, to try packaging/compose.yaml or packaging/kubernetes:
# packaging/found-trial.sh PROGRAM FOLDER [HOST HOST HOST HOST]. Writes FOLDER/org1 to FOLDER/org4, one node's folder each. HOST is how
# the other nodes reach it: org1 to org4 where nothing is said, as in compose.yaml.
#
# The steps are those of a real founding (docs/founding.md), where each organisation makes its keys on its own machine, and all compare
# the draft over the phone. Here one person has all keys, so nobody is protected from anybody.
set -euo pipefail
entente="$(realpath "${1:?the program}")"
folder="${2:?the folder to write into}"
shift 2
hosts=("$@")
[ "${#hosts[@]}" -gt 0 ] || hosts=(org1 org2 org3 org4)
[ "${#hosts[@]}" = 4 ] || { echo "expected four hosts, or none; found ${#hosts[@]}" >&2; exit 1; }
mkdir -p "$folder"
cd "$folder"

cards=() signatures=()
for place in 1 2 3 4; do
  host="${hosts[place - 1]}"
  # A name is for other machines, so the node listens on all addresses of its own.
  case "$host" in *[!0-9.]*) listen=0.0.0.0 ;; *) listen=$host ;; esac
  "$entente" keys --dir "org$place" --network trial --name "org$place" --public-address "$host" --public-address "org$place" \
    --listen "$listen:7000" --postgres "$listen:7100" --http "$listen:7200" >/dev/null
  cards+=(--card "org$place/card.toml")
  signatures+=(--signature "org$place/org$place.signature.toml")
done
"$entente" charter draft --name trial "${cards[@]}" --out draft.toml >/dev/null
for place in 1 2 3 4; do "$entente" charter sign --dir "org$place" draft.toml >/dev/null; done
"$entente" charter assemble draft.toml "${signatures[@]}" --out charter.toml
for place in 1 2 3 4; do "$entente" charter install --dir "org$place" charter.toml >/dev/null; done
# In a container somebody else runs the node, and must be able to read its keys.
if [ "$(id -u)" = 0 ]; then chown -R 10001:10001 org1 org2 org3 org4; else echo "For containers: sudo chown -R 10001:10001 $folder/org?"; fi
