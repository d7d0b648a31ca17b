#!/usr/bin/env bash
# Prints the folder that cargo builds into.
set -euo pipefail
cargo metadata --format-version 1 --no-deps --locked | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
