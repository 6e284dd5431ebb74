#!/bin/bash
# Tells elastic-run, by a file in DIR, that Slurm drains a node of this batch job, or of this task of a job array:
#
#   drain_poller.sh DIR [SECONDS] &
#   srun elastic-run --segment-health-dir=DIR train.py
#
# Every SECONDS (10) it asks Slurm for the state of these nodes. While one is drained, draining, down or failing, the
# file has a line "node: state: reason" for each; otherwise there is no file. DIR is on a file system that all nodes
# see. No other program may write this file. The script ends with the batch script that has started it.
set -u

fail() {
  echo "drain_poller.sh: error: $*" >&2
  exit 2
}

(($# == 1 || $# == 2)) || fail "usage: drain_poller.sh DIR [SECONDS]"
[[ -d $1 ]] || fail "there is no directory $1"
[[ ${2:-10} =~ ^[1-9][0-9]*$ ]] || fail "SECONDS is a whole number from 1, not $2"
[[ ${SLURM_JOB_ID:-} && ${SLURM_JOB_NODELIST:-} ]] ||
  fail "SLURM_JOB_ID or SLURM_JOB_NODELIST is not set: start it in a batch script of Slurm"
readonly seconds=${2:-10}

# NVRx's name for this file.
readonly file=$1/segment_health_check.${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}.${SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}
readonly unfinished=$file.$$

# A task that was requeued has other nodes now: what its earlier run has left says nothing of them.
rm -f -- "$file"
trap 'rm -f -- "$unfinished"' EXIT

# A pipe that nobody writes to. Reading from it waits without a child process, which would be left at SIGTERM.
exec {silence}<> <(:)

# lost_nodes ANSWER: the lines of the file; none if no node is lost. A node of several partitions is named for each.
lost_nodes() {
  local node state reason
  while IFS='|' read -r node state reason; do
    case $state in # "drained*" is one that does not answer, either
      drain* | down* | fail*) echo "$node: $state: $reason" ;;
    esac
  done <<<"$1" | sort -u
}

parent_lives() { [[ $(</proc/$$/status) == *$'\nPPid:\t'"$PPID"$'\n'* ]]; }

told='' # what the file says
sinfo_fails=no
while parent_lives; do
  if answer=$(sinfo --all -h -N -n "$SLURM_JOB_NODELIST" -o '%N|%T|%E' 2>&1); then
    sinfo_fails=no
    found=$(lost_nodes "$answer")
    if [[ $found && $found != "$told" ]]; then
      # elastic-run never sees half of the text.
      echo "$found" >"$unfinished" && mv -f -- "$unfinished" "$file" && told=$found
    elif [[ -z $found && $told ]]; then
      rm -f -- "$file" && told=''
    fi
  elif [[ $sinfo_fails == no ]]; then
    sinfo_fails=yes
    echo "drain_poller.sh: warning: sinfo fails, and is asked again every $seconds s: $answer" >&2
  fi
  read -rt "$seconds" -u "$silence"
done
