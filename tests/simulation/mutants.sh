#!/bin/sh
# Every mistake that is planted in a program is found within so many seeds, and without it the same seeds are clean.
# tests/mistakes.py has them, by the program's name.
#   mutants.sh SIMULATE SIMULATE_MUTANTS SEEDS
set -eu
seeds=$3
mutants=$(python3 "$(dirname -- "$0")/../mistakes.py" "$(basename -- "$2")" --list | cut -d ' ' -f 1)
test -n "$mutants"
"$1" --count $seeds
status=0
for mutant in $mutants; do
  code=0
  found=$("$2" --mutant "$mutant" --count $seeds) || code=$?
  if [ $code -eq 1 ]; then
    echo "mutant $mutant: $(printf '%s\n' "$found" | head -n 1)"
  else
    echo "mutant $mutant: NOT FOUND in $seeds seeds (exit status $code)"
    status=1
  fi
done
exit $status
