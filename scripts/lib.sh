# shellcheck shell=bash disable=SC2034  # the lists below are read by the scripts that source this
# What scripts/run, scripts/test and scripts/pytest share: packages, build, Python environment.
# To be sourced. Everything it prints goes to stderr: stdout belongs to the program that is run.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root

# --- What has to be there ---------------------------------------------------------------------

# Debian 12 packages, one line each with its reason. This list is the only one.
packages_for_build=(
  g++                   # the compiler
  cmake                 # 3.25, with presets
  ninja-build           # what the presets build with
  pkg-config            # finds libuv, libsodium, c-ares, libmunge and RE2
  libuv1-dev            # event loop: sockets, timers, worker pool
  libc-ares-dev         # host names, on the event loop
  libhttp-parser-dev    # HTTP requests: status and metrics
  libsodium-dev         # keyed hashes: a node proves that it knows the job's secret
  libmunge-dev          # under Slurm nodes prove by munge whose they are
  libre2-dev            # --progress-pattern: matches lines in linear time
  libcli11-dev          # checks the values of the command line, behind cli/parse (headers only)
  libfmt-dev            # text formatting (headers only)
  libspdlog-dev         # behind src/base/log (headers only)
  nlohmann-json3-dev    # behind src/base/json (headers only)
  doctest-dev           # unit tests, which every preset builds
)
packages_for_python=(
  python3               # runs the example and the tests, makes the packages
  python3-venv          # makes the Python environment
)
packages_for_example=(
  dataset-fashion-mnist # the images that examples/fashion_mnist.py learns
)
packages_for_gate=(
  ccache                # what was compiled once for some clone is not compiled again
  binutils              # strip and readelf, for the size and the linking of the binary
  zsh fish              # the completions are loaded by the real shells (bash is always there)
  man-db mandoc         # the manual page is formatted and checked
  procps                # ps and pkill, as users have them
  iproute2              # ip and ss, for network namespaces
  nftables              # nft: hosts behind firewalls
  strace                # shows that a dry run starts nothing
  shellcheck            # reads these scripts
  clang-format-14       # holds the layout of the sources
  busybox-static musl musl-tools  # systems without glibc, and workers for them
)
packages_for_tests=(  # what only `scripts/test full` runs
  prometheus            # scrapes /metrics, and promtool checks it; its daemon is kept from starting
  lintian               # reads the .deb
  debootstrap           # makes the bare system on which the packages are installed
  slurmctld slurmd slurm-client munge # a real Slurm, whose daemons the tests start themselves
)
packages_for_fuzzing=(
  clang-19              # libFuzzer's compiler; clang 14 does not know g++ 12's std::expected
  libclang-rt-19-dev    # libFuzzer and the sanitizers of clang
)

# Python packages. The versions of these, and of all that they need, are in scripts/python-packages.txt, which
# scripts/update-pins writes anew.
python_packages_for_example=(torch numpy)
python_packages_for_tests=(torch numpy pytest kubernetes_validate py_spy)
# What people train with on top of PyTorch; tests/peers runs them under elastic-run and torchrun.
python_packages_for_peers=(
  accelerate            # the loop that many write themselves, and what the Trainer below stands on
  lightning             # its Trainer, with DDP
  transformers          # its Trainer, on a tiny model with random weights
  deepspeed             # its engine, on CPUs
  nvidia-resiliency-ext # NVRx's client, which needs no GPU
  dlrover               # its ElasticDataLoader, at the file of --auto-tunning
)

# PyTorch takes 5.4 GB, and pip unpacks the downloads beside it.
venv_needs_mib=9000

# --- Saying what goes on ----------------------------------------------------------------------

steps_total=0  # set by the script that sources this
step_number=0
step_name=
quiet_steps=no  # yes: a step that has nothing to do is not mentioned
seconds_between_lines=10  # of progress, where stderr is no terminal

say() { printf '%s\n' "$*" >&2; }

die() {
  printf '%s: error: %s\n' "$(basename -- "$0")" "$*" >&2
  exit 1
}

# `set -e` sleeps in a function that is called in a condition, so what may fail is asked.
make_directory() { mkdir -p -- "$1" || die "cannot make the directory $1"; }

# Begins step k of n. It is printed by what it has to do, or by nothing_to_do.
step() {
  step_number=$((step_number + 1))
  step_name="[$step_number/$steps_total] $*"
}

nothing_to_do() { [[ $quiet_steps == yes ]] || say "$step_name: nothing to do"; }

# Runs a command whose output is of interest only if it fails. Meanwhile one line shows the time and
# the newest line of the output: a live line on a terminal, else a line now and then.
with_progress() {
  local what=$1 log started=$SECONDS status
  shift
  log=$root/build/log/$(basename -- "$0")-$step_number.log
  make_directory "$root/build/log"
  say "$step_name: $what"
  # With pipefail this is the command's own status.
  status=0
  "$@" </dev/null 2>&1 | show_progress "$log" || status=$?
  if ((status != 0)); then
    say "$step_name: failed after $((SECONDS - started)) s. The end of its output:"
    tail -n 40 -- "$log" >&2
    say "(all of it: $log)"
    return "$status"
  fi
  say "$step_name: done in $((SECONDS - started)) s"
}

show_progress() {
  local log=$1 started=$SECONDS line='' part='' last='' next_line=$((SECONDS + seconds_between_lines)) status
  exec 3>"$log"
  while true; do
    status=0
    IFS= read -r -t 1 part || status=$?
    line+=$part
    # A status above 128 is the second that passed; anything else that is not 0 is the end.
    if ((status <= 128)); then
      [[ -z $line ]] || { printf '%s\n' "$line" >&3; last=$line; line=''; }
      ((status == 0)) || break
    fi
    if [[ -t 2 ]]; then
      printf '\r\033[K  %4d s  %.68s' $((SECONDS - started)) "${last//[^[:print:]]/ }" >&2
    elif ((SECONDS >= next_line)); then
      printf '  %4d s  %.88s\n' $((SECONDS - started)) "${last//[^[:print:]]/ }" >&2
      next_line=$((SECONDS + seconds_between_lines))
    fi
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  exec 3>&-
}

lock_patience=3600  # seconds that another run may be at it: longer than any step takes

# Holds a lock until `unlock`, so that two of these scripts at once do not disturb each other.
lock() {
  make_directory "$(dirname -- "$1")"
  exec 9>"$1" || die "cannot write $1"
  flock -n 9 && return
  say "$step_name: waiting for another run that is at it ($1)"
  flock -w "$lock_patience" 9 || die "another run has held $1 for $lock_patience s and seems to hang: end it" \
    "(\`fuser -v $1\` shows it), then start again"
}
unlock() { exec 9>&-; }

# --- Debian packages --------------------------------------------------------------------------

# Installs what is missing of the packages named. Asks dpkg first: no network if nothing is missing.
ensure_packages() {
  local missing=() sudo=() name
  command -v apt-get >/dev/null || die \
    "this is not Debian (there is no apt-get). Install what scripts/lib.sh lists by your system's" \
    "own means, then: cmake --preset release && cmake --build --preset release"
  for name in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
      missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then
    nothing_to_do
    return
  fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "packages are missing, and only root can install them (there is" \
      "no sudo here). Let root run: apt-get install --no-install-recommends ${missing[*]}"
    say "$step_name: sudo installs ${missing[*]}"
    sudo -v || die "sudo refused. Let root run: apt-get install --no-install-recommends ${missing[*]}"
    sudo=(sudo)
  fi
  mask_daemons "${missing[@]}"
  local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  # One broken source among many is not our affair: the installation says what is really missing.
  with_progress "reading the package lists" "${apt[@]}" update || say "going on with the lists as they are"
  with_progress "installing ${missing[*]}" "${sudo[@]}" sh -c "$without_daemons" sh "$policy_of_daemons" \
    "${apt[@]:${#sudo[@]}}" install -y --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]}"
}

# Some packages would start their daemons (munge). By this file Debian asks whether they may: no, for as long as the
# command runs. Where there is one already, its owner has decided.
policy_of_daemons=/usr/sbin/policy-rc.d
# shellcheck disable=SC2016  # for sh -c: FILE COMMAND...
without_daemons='
  policy=$1
  shift
  made=no
  # noclobber: made anew, or not at all
  if (set -C; printf "#!/bin/sh\nexit 101\n" >"$policy") 2>/dev/null; then made=yes; chmod 755 "$policy"; fi
  "$@"
  status=$?
  [ "$made" = no ] || rm -f -- "$policy"
  exit "$status"'
# Later boots would start them, too: where a package was not there before, its unit is masked. Uses the array `sudo` of
# ensure_packages.
mask_daemons() {
  local package unit
  for package in "$@"; do
    [[ " prometheus munge slurmctld slurmd " == *" $package "* ]] || continue
    unit=/etc/systemd/system/$package.service
    [[ ! -e $unit && ! -L $unit ]] || continue
    "${sudo[@]}" mkdir -p "${unit%/*}"
    "${sudo[@]}" ln -s /dev/null "$unit"
  done
}

# --- Build ------------------------------------------------------------------------------------

# Brings build/PRESET up to date: ensure_build PRESET [TARGET ...], all targets by default.
ensure_build() {
  local preset=$1 directory=$root/build/$1 stamp=$root/build/$1/.configured fresh=() launcher configured
  shift
  launcher=$(command -v ccache || true)
  configured=$root${launcher:+ with $launcher}
  lock "$root/build/$preset.lock"
  # A clone that was moved, or presets that changed, need a build directory from scratch.
  if [[ ! -f $directory/build.ninja || ! -f $stamp || $root/CMakePresets.json -nt $stamp ||
    $(<"$stamp") != "$configured" ]]; then
    [[ ! -e $directory/CMakeCache.txt ]] || fresh=(--fresh)
    with_progress "configuring ($preset)" in_root cmake --preset "$preset" "${fresh[@]}" \
      ${launcher:+"-DCMAKE_C_COMPILER_LAUNCHER=$launcher" "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher"} ||
      die "cmake could not configure the preset $preset"
    printf '%s\n' "$configured" >"$stamp"
  fi
  build_if_needed "$preset" "$directory" "$@" || die "the build ($preset) failed"
  unlock
}

build_if_needed() {
  local preset=$1 directory=$2 answer
  shift 2
  # Ninja first takes care of build.ninja itself (sources that are new or gone), then is asked.
  ninja -C "$directory" build.ninja >/dev/null 2>&1 || true
  answer=$(ninja -C "$directory" -n "$@" 2>&1) || true
  if [[ $answer == *"no work to do"* ]]; then
    nothing_to_do
  else
    # Where an old precompiled header lies ccache takes the new one for another than in a fresh clone, and so all that is
    # compiled with it.
    (cd -- "$directory" && grep -o '[^ ]*\.gch$' <<<"$answer" | xargs -r rm -f --) || true
    with_progress "compiling ($preset)" "${cached[@]}" ninja -C "$directory" -j "$(nproc)" "$@"
  fi
}

in_root() { (cd -- "$root" && "$@"); }

# ccache takes what it knows from any clone, wherever it lies; these are what it needs for that with precompiled headers.
cached=(env "CCACHE_BASEDIR=$root" CCACHE_NOHASHDIR=true "CCACHE_SLOPPINESS=pch_defines,time_macros")
# How often ccache has known what it was asked, and how often it has not, until now: "HITS MISSES".
cache_counts() {
  ccache --print-stats 2>/dev/null | awk '
    $1 == "direct_cache_hit" || $1 == "preprocessed_cache_hit" { hits += $2 }
    $1 == "cache_miss" { misses += $2 }
    END { print hits + 0, misses + 0 }' || true
}
# What happened between two answers of cache_counts, in words: "12 of 345 (3 %)".
cache_hits() {
  awk -v before="$1" -v after="$2" 'BEGIN {
    split(before, b); split(after, a)
    hits = a[1] - b[1]; asked = hits + a[2] - b[2]
    printf "%d of %d (%d %%)\n", hits, asked, asked ? 100 * hits / asked : 0
  }'
}

# --- Python environment -----------------------------------------------------------------------

# Where the environment lies: one for all clones of a user.
venv_directory() {
  if [[ -n ${ELASTIC_RUN_VENV:-} ]]; then
    realpath -ms -- "$ELASTIC_RUN_VENV"
    return
  fi
  local home=${HOME:-}
  [[ -n $home ]] || home=$(getent passwd "$(id -u)" | cut -d: -f6)
  [[ -n $home || -n ${XDG_CACHE_HOME:-} ]] ||
    die "no home directory: set HOME, or name the Python environment by ELASTIC_RUN_VENV"
  printf '%s\n' "${XDG_CACHE_HOME:-$home/.cache}/elastic-run/venv"
}

# The versions of Python packages, as pip wants them: NAME==VERSION, a line each. In an environment that the user named
# any version is as good.
pins=$root/scripts/python-packages.txt
if [[ -n ${ELASTIC_RUN_VENV:-} || ! -e $pins ]]; then pins=/dev/null; fi

# NAME==VERSION of the package NAME, or NAME where any version will do. To PyPI `-`, `_` and `.` are one.
pinned() {
  local line
  line=$(grep -i "^${1//[-_.]/[-_.]}==" "$pins") || true
  printf '%s\n' "$1${line:+==${line#*==}}"
}

# What of the packages named is not, or only in part, or in another version in the environment. Looks at the record that
# pip writes last for each package, in a few milliseconds, instead of importing gigabytes.
venv_missing() {
  local venv=$1 python name wanted version records
  shift
  python=$("$venv/bin/python" -I -S -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || python=none
  for name in "$@"; do
    wanted=$(pinned "$name")
    version='*'
    [[ $wanted != *==* ]] || version=${wanted#*==}
    # shellcheck disable=SC2206 # a version of any kind
    records=("$venv/lib/python$python/site-packages/${name//[-.]/_}-"$version.dist-info/RECORD)
    [[ -s ${records[0]} ]] || printf '%s\n' "$wanted"
  done
}

# True if the environment is whole and has the packages named.
venv_ready() {
  [[ ! -e $1/.elastic-run-unfinished ]] && [[ -z $(venv_missing "$@") ]]
}

# Makes the tests' environment, or finishes it: ensure_venv PACKAGE ...
ensure_venv() { ensure_environment "$(venv_directory)" install_with_pip "$@"; }

# The environment of the frameworks lies beside the tests' one. It sees all that is in there, PyTorch above all, and
# has none of it again.
peers_directory() { printf '%s-peers\n' "$(venv_directory)"; }
ensure_peers() {
  ensure_environment --without-pip "$(peers_directory)" install_peers "${python_packages_for_peers[@]}"
}

install_peers() {
  local peers=$1 tests places
  shift
  tests=$(venv_directory)
  places=("$peers"/lib/python*/site-packages)
  "$tests/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"${places[0]}/elastic-run-tests.pth" || return
  "$tests/bin/python3" -m pip --disable-pip-version-check list --format=freeze >"$peers/constraints.txt" || return
  # DeepSpeed's setup imports torch, so it is built where torch is; no operation of it is compiled. By PEP 517, since pip
  # otherwise calls its setup.py, which leaves no record of what it has installed.
  DS_BUILD_OPS=0 install_with_pip "$peers" --use-pep517 --no-build-isolation --constraint "$peers/constraints.txt" "$@"
}

# Makes an environment, or finishes it: ensure_environment [--without-pip] DIRECTORY INSTALL PACKAGE ...; INSTALL is
# called as INSTALL DIRECTORY PACKAGE ...
# The file .elastic-run-unfinished lies in it for as long as pip is at work, so that an installation
# that was interrupted is seen. It says how far we may go in mending it: an environment that we
# "created" is made afresh, into one that was there before we only "add".
ensure_environment() {
  local venv missing unfinished install each bare=()
  if [[ $1 == --without-pip ]]; then
    bare=("$1")
    shift
  fi
  venv=$1 install=$2
  shift 2
  if venv_ready "$venv" "$@"; then
    nothing_to_do
    return
  fi
  lock "$venv.lock"
  if venv_ready "$venv" "$@"; then  # whoever held the lock has done it
    unlock
    nothing_to_do
    return
  fi
  unfinished=$venv/.elastic-run-unfinished
  if [[ ! -e $venv || -z $(ls -A -- "$venv") || $(cat -- "$unfinished" 2>/dev/null) == created ]]; then
    [[ " $* " != *" torch "* ]] || require_space "$venv"
    rm -rf -- "$venv" || die "cannot remove the half-made $venv"
    make_directory "$venv"
    echo created >"$unfinished"
    with_progress "making $venv" /usr/bin/python3 -m venv "${bare[@]}" -- "$venv" || die "python3 -m venv failed"
  elif [[ ! -x $venv/bin/python ]]; then
    die "$venv is no Python environment (there is no bin/python):" \
      "remove it, or name another by ELASTIC_RUN_VENV"
  elif ! "$venv/bin/python" -I -S -c '' 2>/dev/null; then
    die "the Python of $venv does not run any more: remove that directory and start again"
  fi
  mapfile -t missing < <(venv_missing "$venv" "$@")
  # In an environment that we only add to, pip must not trust what an interrupted pip left.
  local again=()
  if [[ $(cat -- "$unfinished" 2>/dev/null) == added ]]; then
    again=(--ignore-installed)
    mapfile -t missing < <(for each in "$@"; do pinned "$each"; done)
  fi
  [[ " ${missing[*]} " != *" torch"[\ =]* ]] || require_space "$venv"
  [[ -e $unfinished ]] || echo added >"$unfinished"
  with_progress "installing ${missing[*]} from PyPI into $venv" \
    "$install" "$venv" "${again[@]}" "${missing[@]}" ||
    die "pip could not install: ${missing[*]}. Mend the cause and start again"
  # What was once installed without a record is there for pip, and not for us.
  mapfile -t missing < <(venv_missing "$venv" "$@")
  ((${#missing[@]} == 0)) || with_progress "installing ${missing[*]} once more" \
    "$install" "$venv" --ignore-installed --no-deps "${missing[@]}" || die "pip could not install: ${missing[*]}"
  rm -f -- "$unfinished"
  unlock
}

# /tmp is too small for PyTorch on many machines, so pip unpacks beside the environment.
# Run as python3, which is then what torchrun and the other programs that it installs name as theirs.
install_with_pip() {
  local venv=$1 status=0
  shift
  rm -rf -- "$venv.tmp"
  mkdir -- "$venv.tmp" || return
  TMPDIR=$venv.tmp "$venv/bin/python3" -m pip install --disable-pip-version-check --no-input --constraint "$pins" "$@" ||
    status=$?
  rm -rf -- "$venv.tmp"
  return "$status"
}

require_space() {
  local parent free
  parent=$(dirname -- "$1")
  make_directory "$parent"
  free=$(df -Pm -- "$parent" | awk 'NR == 2 { print $4 }')
  ((free >= venv_needs_mib)) ||
    die "PyTorch needs $venv_needs_mib MiB while it is installed, and $parent has $free:" \
      "make room, or name a directory elsewhere by ELASTIC_RUN_VENV"
}

# Makes the environment the active one, as its own bin/activate does.
activate_venv() {
  VIRTUAL_ENV=$(venv_directory)
  export VIRTUAL_ENV PATH="$VIRTUAL_ENV/bin:$PATH"
  unset PYTHONHOME PYTHON_EXEC CONDA_PREFIX
}
