#!/bin/sh
# The statements of the tests' .slt files, one in each file of fuzz/corpus/sql: what the fuzzer starts from. The first line
# of each names the .slt file whose database it runs on.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/sql
awk '
    FNR == 1 { name = FILENAME; sub(/.*\//, "", name); sub(/\.slt$/, "", name) }
    /^(statement|query)/ { reading = 1; text = ""; next }
    reading && (/^----/ || /^$/) {
        if (length(text) > 0 && length(text) <= 400) {
            file = sprintf("corpus/sql/%05d", ++count)
            printf "%s\n%s", name, text > file
            close(file)
        }
        reading = 0
        next
    }
    reading { text = text $0 "\n" }
' ../crates/language/sql/tests/slt/*.slt
echo "$(ls corpus/sql | wc -l) statements in fuzz/corpus/sql"
