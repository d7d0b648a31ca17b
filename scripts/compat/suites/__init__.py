"""One file per suite: NAME, PARTS, SAMPLE (the parts that also run on four nodes), install and command."""
