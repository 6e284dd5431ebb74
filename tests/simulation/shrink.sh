#!/bin/sh
# A seed that a planted mistake makes fail is shrunk to at most five faults, which still fail, and replays exactly.
#   shrink.sh SIMULATE_MUTANTS
set -eu
most=5
seed=$("$1" --mutant b --count 2000 | sed -n 's/^seed \([0-9]*\): .*/\1/p' | head -n 1)
shrunk=$("$1" --mutant b --seed "$seed" --shrink) && { echo "seed $seed does not fail"; exit 1; }
printf '%s\n' "$shrunk" | tail -n 12
faults=$(printf '%s\n' "$shrunk" | sed -n 's/^seed [0-9]* fails with \([0-9]*\) of .*/\1/p')
test -n "$faults" && test "$faults" -le "$most" || { echo "$faults faults are left, more than $most"; exit 1; }
first=$("$1" --mutant b --seed "$seed" --trace) || true
second=$("$1" --mutant b --seed "$seed" --trace) || true
test "$first" = "$second" || { echo "two runs of seed $seed differ"; exit 1; }
