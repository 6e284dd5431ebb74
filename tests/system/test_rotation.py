"""--log-max-bytes: log files of workers are rotated between lines, and cost at most twice the size."""
# ctest: gate

import re

import pytest

SH = ["--no-python", "sh", "-c"]
QUIET = {"OMP_NUM_THREADS": "1"}
SIZE = 4096

# Numbered lines of 100 bytes to both streams.
NUMBERED = """
    i=0
    while [ $i -lt {count} ]; do
        i=$((i+1)); printf '%s %8d %*s\\n' $RANK $i {width} ''; printf '%s %8d %*s\\n' $RANK $i {width} '' >&2
    done"""


@pytest.fixture
def run(elastic_run, tmp_path):
    """run(options..., script="...", ranks=1): (result, {path below the attempt's directory: bytes})."""

    def start(*options, script=NUMBERED.format(count=100, width=88), ranks=1, **more):
        result = elastic_run(f"--nproc-per-node={ranks}", "--log-dir=logs", *options, *SH, script, env=QUIET, **more)
        (directory,) = (tmp_path / "logs").iterdir()
        attempt = directory / "attempt_0"
        return result, {str(path.relative_to(attempt)): path.read_bytes()
                        for path in attempt.rglob("*") if path.is_file()}

    return start


def numbers(data):
    return [int(line.split()[1]) for line in data.splitlines()]


@pytest.mark.parametrize("options", [["-r", "3"], ["-t", "3"], ["-r", "1", "-t", "2"]])
def test_each_stream_keeps_its_end_in_two_files_of_whole_lines(run, options):
    result, files = run(*options, f"--log-max-bytes={SIZE}", ranks=2)
    assert result.returncode == 0, result
    assert set(files) == {f"{rank}/std{name}.log{older}" for rank in (0, 1) for name in ("out", "err")
                          for older in ("", ".1")}
    for rank in (0, 1):
        for name in ("out", "err"):
            older, newer = (files[f"{rank}/std{name}.log{end}"] for end in (".1", ""))
            assert len(older) == 4000 and len(newer) == 2000  # 40 lines of 100 bytes are a file
            assert numbers(older + newer) == list(range(41, 101))
            assert {line[:1] for line in (older + newer).splitlines()} == {b"%d" % rank}


def test_without_the_option_files_grow_and_a_redirect_is_the_workers_own_descriptor(run):
    result, files = run("-r", "3", script="readlink /proc/self/fd/1; " + NUMBERED.format(count=100, width=88))
    assert result.returncode == 0
    assert set(files) == {"0/stdout.log", "0/stderr.log"}
    assert files["0/stdout.log"].splitlines()[0].endswith(b"/attempt_0/0/stdout.log")
    assert numbers(files["0/stderr.log"]) == list(range(1, 101))


@pytest.mark.parametrize("option", ["-r", "-t"])
def test_a_file_below_its_size_is_left_alone(run, option):
    result, files = run(option, "3", "--log-max-bytes=10000", script=NUMBERED.format(count=100, width=87))
    assert result.returncode == 0
    assert set(files) == {"0/stdout.log", "0/stderr.log"}
    assert numbers(files["0/stdout.log"]) == list(range(1, 101))


def test_a_line_that_is_written_in_pieces_is_whole_in_the_newer_file(run):
    """Its beginning is in the file, for everybody to see, before the rest turns out to be too much."""
    result, files = run("-r", "1", f"--log-max-bytes={SIZE}", script=f"""
        printf '%4000s\\n' first; printf 'begin'
        while ! grep -q begin {'logs/*/attempt_0/0/stdout.log'}; do :; done
        printf '%200s\\n' end""")
    assert result.returncode == 0
    assert files == {"0/stdout.log.1": b"%4000s\n" % b"first", "0/stdout.log": b"begin%200s\n" % b"end"}


def test_a_line_longer_than_a_file_is_cut_and_no_byte_of_what_is_kept_is_missing(run):
    result, files = run("-t", "1", f"--log-max-bytes={SIZE}", script="printf 'short\\n'; printf '%10000s\\nlast' x")
    assert result.returncode == 0
    whole = b"short\n%10000s\nlast" % b"x"
    assert whole.endswith(files["0/stdout.log.1"] + files["0/stdout.log"])
    assert len(files["0/stdout.log.1"]) == SIZE


def test_the_console_has_every_line_although_the_files_are_rotated(run):
    result, _ = run("-t", "3", f"--log-max-bytes={SIZE}")
    for data in (result.stdout, result.stderr):
        lines = data.splitlines()
        assert all(line.startswith("[default0]:") for line in lines)
        assert numbers("\n".join(lines).encode().replace(b"[default0]:", b"")) == list(range(1, 101))


def test_the_files_of_filters_are_rotated_too(run):
    result, files = run("-t", "1", f"--log-max-bytes={SIZE}", "--duplicate-stdout-filters=0 ")
    assert result.returncode == 0
    older, newer = files["filtered_stdout.log.1"], files["filtered_stdout.log"]
    assert len(older) == 111 * 36  # with their prefixes
    assert numbers((older + newer).replace(b"[default0]:", b"")) == list(range(37, 101))


@pytest.mark.parametrize("options", [["-r", "3"], ["-t", "3"]])
def test_the_report_has_the_last_lines_although_the_file_has_just_been_rotated(run, options):
    """The newest file has one line; its 20 last stand in both."""
    result, files = run(*options, f"--log-max-bytes={SIZE}",
                        script=NUMBERED.format(count=81, width=88) + "\nexit 3")
    assert result.returncode == 1
    assert len(files["0/stderr.log"]) == 100
    shown = re.search(r"its last 20 lines of stderr.*\n((?:    .*\n)+)", result.stderr).group(1)
    assert numbers(shown.encode()) == list(range(62, 82))


def test_each_round_has_files_of_its_own(elastic_run, tmp_path):
    result = elastic_run("--log-dir=logs", "--max-restarts=1", "-r", "1", f"--log-max-bytes={SIZE}", *SH,
                         NUMBERED.format(count=50, width=88) + "\nexit $((1 - TORCHELASTIC_RESTART_COUNT))",
                         env=QUIET)
    assert result.returncode == 0, result
    (directory,) = (tmp_path / "logs").iterdir()
    for attempt in ("attempt_0", "attempt_1"):
        older, newer = ((directory / attempt / "0" / name).read_bytes() for name in ("stdout.log.1", "stdout.log"))
        assert numbers(older + newer) == list(range(1, 51))


def test_a_file_that_cannot_be_renamed_is_told_once_and_training_goes_on(run, tmp_path):
    result, files = run("-r", "1", f"--log-max-bytes={SIZE}", script="""
        mkdir ${TORCHELASTIC_ERROR_FILE%/*}/stdout.log.1; """ + NUMBERED.format(count=100, width=88) + "; : > done")
    assert result.returncode == 0 and (tmp_path / "done").exists()
    (warning,) = [line for line in result.stderr.splitlines() if line.startswith("elastic-run: ")]
    assert re.fullmatch(r"elastic-run: warning: cannot write (/\S+/0/stdout\.log): it cannot be renamed to "
                        r"\1\.1: Is a directory; what follows is not kept", warning)
    assert numbers(files["0/stdout.log"]) == list(range(1, 41))


def test_a_size_that_is_none_is_refused_and_all_forms_of_one_are_known(elastic_run):
    for size in ("x", "-1", "1.5G", "10X", "100", "4095", "99999999T", "1GG", "M"):
        result = elastic_run(f"--log-max-bytes={size}", "--no-python", "true")
        assert (result.returncode, result.stdout) == (2, ""), size
        assert re.match(rf"elastic-run: error: --log-max-bytes={size}\S*: .*; give a size such as 100M", result.stderr)
    for size, count in (("4096", 4096), ("4K", 4096), ("100M", 100 << 20), ("1G", 1 << 30), ("1GiB", 1 << 30),
                        ("2gb", 2 * 10 ** 9), ("1T", 1 << 40)):
        result = elastic_run("--dry-run", f"--log-max-bytes={size}", "-r", "3", "--no-python", "true")
        assert re.search(rf"^log files +at most {count} bytes each, and one older file +"
                         rf"\(command line: --log-max-bytes={size}\)$", result.stdout, re.MULTILINE), result


def test_many_ranks_are_rotated_within_the_descriptors_that_are_asked_for(elastic_run, tmp_path):
    import resource

    def try_with(limit):
        return elastic_run("--nproc-per-node=50", "--log-dir=logs", "-r", "3", f"--log-max-bytes={SIZE}", *SH,
                           NUMBERED.format(count=100, width=88) + '; : > "up.$RANK"', env=QUIET,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))

    result = try_with(60)
    assert result.returncode == 1
    needed = int(re.search(r"--nproc-per-node=50 needs (\d+), and one more for each connection", result.stderr).group(1))
    assert not list(tmp_path.glob("up.*"))
    result = try_with(needed)
    assert (result.returncode, result.stderr) == (0, ""), result
    (directory,) = (tmp_path / "logs").iterdir()
    for rank in range(50):
        for name in ("stdout.log", "stderr.log"):
            path = directory / f"attempt_0/{rank}/{name}"
            data = path.with_name(name + ".1").read_bytes() + path.read_bytes()
            assert numbers(data) == list(range(41, 101))
