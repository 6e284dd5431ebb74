#!/bin/sh
# Every planted mistake is found within 10,000 seeds, and without it the same seeds are clean. tests/mistakes.py has them.
#   mutants.sh SIMULATE SIMULATE_MUTANTS
set -eu
seeds=10000
mutants=$(python3 "$(dirname -- "$0")/../mistakes.py" simulate_mutants --list | cut -d ' ' -f 1)
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
