#!/bin/sh
# The statements of the tests' .slt files, one in each file of fuzz/corpus/sql: what the fuzzer starts from.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/sql
cat ../crates/sql/tests/slt/*.slt | awk '
    /^(statement|query)/ { reading = 1; text = ""; next }
    reading && (/^----/ || /^$/) {
        if (length(text) > 0 && length(text) <= 400) {
            file = sprintf("corpus/sql/%05d", ++count)
            printf "%s", text > file
            close(file)
        }
        reading = 0
        next
    }
    reading { text = text $0 "\n" }
'
echo "$(ls corpus/sql | wc -l) statements in fuzz/corpus/sql"
