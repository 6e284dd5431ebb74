#!/bin/sh
# Every planted mistake is found within 2,000 seeds, and without it the same seeds are clean.
#   mutants.sh SIMULATE SIMULATE_MUTANTS
# a: an agent of an older round is let in with its workers   b: failures on two nodes are charged twice
# c: an agent whose workers are stale joins without ending them   d: a node that stood by is promoted twice
# e: who has heard the verdict does not bring it to the next coordinator   f: the lease is longer than the loss timeout
# g: a worker's failure is charged before a silent node is known to be lost
set -eu
seeds=2000
"$1" --count $seeds
status=0
for mutant in a b c d e f g; do
  code=0
  found=$("$2" --mutant $mutant --count $seeds) || code=$?
  if [ $code -eq 1 ]; then
    echo "mutant $mutant: $(printf '%s\n' "$found" | head -n 1)"
  else
    echo "mutant $mutant: NOT FOUND in $seeds seeds (exit status $code)"
    status=1
  fi
done
exit $status
