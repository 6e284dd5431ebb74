"""64 ranks write at once for ten minutes: no byte of their output is lost, no line is mixed with another's."""

import argparse
import collections
import contextlib
import dataclasses
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

import common
from common import BenchError, positive, say

PIECE = 64 * 1024  # what the console has of a line in one piece, and what of a line moves to the next file
JOB_TIMEOUT_S = 300
FILTERS = {"stdout": ["99", "13 2"], "stderr": ["7 7", "abcdefghijklmnopqrstuvwxyzabc"]}

LINE = re.compile(rb"(\d+) ([12]) (\d+) (\d+) (\d+) (\d+) ([a-z]*) (\d+) (\d+)( end)?")
REST = re.compile(rb"[a-z0-9 ]*?(\d*)( end)?")  # of a line that was cut; it ends with its length
PREFIXED = re.compile(rb"\[default(\d+)\]:(.*)", re.DOTALL)

NOTES = """\
Each job starts all ranks at once; each rank writes the same amount to stdout and to stderr, in turns, most of it in
lines of up to 4 KiB, some of up to 200 KiB, in pieces that end anywhere, the last line without its end. Then every
file and both consoles (files, too) are read: every line must be whole, its sum right, its number the one that
follows, its rank and stream those of its file, and the last one the last. Of rotated files (--log-max-bytes) what is
kept must be the end of the stream without a gap, no file larger than allowed, and none ended sooner than needed. On
the console without tee lines have less than 4 KiB and come at once: what comes in parts may be shown in parts."""


class Wrong(Exception):
    """Output was lost, mixed or changed."""


@dataclasses.dataclass(frozen=True)
class Line:
    rank: int
    stream: int
    turn: int
    number: int
    is_last: bool


@dataclasses.dataclass
class Variant:
    """One kind of job, and what was seen of it."""

    name: str
    options: list
    how: str  # as output_worker has it
    check: object  # check(job): (lines, bytes)
    jobs: int = 0
    lines: int = 0
    bytes: int = 0
    parts: int = 0
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Job:
    variant: Variant
    directory: pathlib.Path
    ranks: int
    max_bytes: int

    def log(self, rank, stream):
        run, = (self.directory / "logs").iterdir()
        return run / f"attempt_0/{rank}/{('stdout', 'stderr')[stream - 1]}.log"

    def filtered(self, name):
        run, = (self.directory / "logs").iterdir()
        return run / f"attempt_0/filtered_{name}.log"

    def console(self, stream):
        return (self.directory / ("stdout", "stderr")[stream - 1]).read_bytes()


# --- What is right -------------------------------------------------------------------------------


def parsed(text, where):
    match = LINE.fullmatch(text)
    if match is None:
        shown = text if len(text) < 300 else text[:150] + b" ... " + text[-150:]
        raise Wrong(f"{where}: no line of a rank, or not the whole of one: {shown!r}")
    rank, stream, turn, number, length, total, letters, again, length_again, end = match.groups()
    if number != again or length != length_again or len(letters) != int(length):
        raise Wrong(f"{where}: line {int(number)} of rank {int(rank)} is put together of two, or cut")
    if zlib.adler32(letters) != int(total):
        raise Wrong(f"{where}: line {int(number)} of rank {int(rank)} was changed")
    return Line(int(rank), int(stream), int(turn), int(number), end is not None)


class Sequence:
    """The lines of one stream of one rank, in the order in which they must come."""

    def __init__(self, rank, stream, where, first=0):
        self._rank, self._stream, self._where, self._next = rank, stream, where, first
        self.ended = False

    def add(self, line):
        if (line.rank, line.stream) != (self._rank, self._stream):
            raise Wrong(f"{self._where}: a line of rank {line.rank}, stream {line.stream}, among those of rank "
                        f"{self._rank}, stream {self._stream}")
        if self._next is not None and line.number != self._next or self.ended:
            raise Wrong(f"{self._where}: rank {self._rank}: line {line.number} where {self._next} should be")
        self._next = line.number + 1
        self.ended = line.is_last

    def finish(self):
        if not self.ended:
            raise Wrong(f"{self._where}: rank {self._rank} ends at line {self._next}, before its last one")


def check_log(job, rank, stream):
    """A log file that was not rotated has everything. Its lines."""
    path = job.log(rank, stream)
    lines = path.read_bytes().split(b"\n")
    sequence = Sequence(rank, stream, path)
    for text in lines:
        sequence.add(parsed(text, path))
    sequence.finish()
    if older_of(path).exists():
        raise Wrong(f"{path} was rotated")
    return lines


def older_of(path):
    return path.with_name(path.name + ".1")


def check_rotated_log(job, rank, stream):
    path = job.log(rank, stream)
    older, newer = older_of(path).read_bytes(), path.read_bytes()
    for data in (older, newer):
        if len(data) > job.max_bytes:
            raise Wrong(f"{path}: {len(data)} bytes of {job.max_bytes}")
    if len(older) + len(newer.split(b"\n", 1)[0]) + 1 <= job.max_bytes:
        raise Wrong(f"{path}: the older file has {len(older)} of {job.max_bytes} bytes, the next line had fitted")
    lines = (older + newer).split(b"\n")
    if LINE.fullmatch(lines[0]) is None:
        allow_cut(lines.pop(0), path)
    if not older.endswith(b"\n"):
        allow_cut(older.rpartition(b"\n")[2] + newer.split(b"\n", 1)[0], path)
    sequence = Sequence(rank, stream, path, first=None)
    for text in lines:
        sequence.add(parsed(text, path))
    sequence.ended = sequence.ended or (not lines and newer.endswith(b" end"))  # the last line alone fills both
    sequence.finish()
    return lines


def allow_cut(rest, path):
    """Of a line that begins in the file before there must be too much to move it."""
    match = REST.fullmatch(rest)
    cut_in_the_number = match is not None and not re.search(rb"[a-z]", rest.removesuffix(b" end"))
    if match is None or (int(match[1] or 0) + 200 < PIECE and not cut_in_the_number):
        raise Wrong(f"{path}: a line that could have moved was cut: {rest[-100:]!r}")


def check_teed_console(job, stream):
    """Lines with prefixes; long ones come in pieces, and so does what its rank paused in. How many of those."""
    where = f"console, stream {stream}"
    pending = collections.defaultdict(bytes)
    sequences = {rank: Sequence(rank, stream, where) for rank in range(job.ranks)}
    parts = 0
    *texts, rest = job.console(stream).split(b"\n")
    if rest:
        raise Wrong(f"{where}: the end of the last line is missing")
    for text in texts:
        match = PREFIXED.fullmatch(text)
        if match is None:
            raise Wrong(f"{where}: {text[:300]!r}")
        rank = int(match[1])
        whole = pending[rank] + match[2]
        if LINE.fullmatch(whole) is None or not is_complete(whole):
            pending[rank] = whole
            parts += len(match[2]) != PIECE
            if len(whole) > 5 * PIECE:
                parsed(whole, where)
            continue
        pending[rank] = b""
        sequences[rank].add(parsed(whole, where))
    for rank, sequence in sequences.items():
        if pending[rank]:
            parsed(pending[rank], where)
        sequence.finish()
    return parts


def is_complete(text):
    """Whether what looks like a line has as many letters as it says: a part may look like one."""
    match = LINE.fullmatch(text)
    return len(match[7]) == int(match[5]) and match[9] == match[5]


def check_plain_console(job, stream):
    where = f"console, stream {stream}"
    sequences = {rank: Sequence(rank, stream, where) for rank in range(job.ranks)}
    lines = [text for text in job.console(stream).split(b"\n") if text]
    for text in lines:
        line = parsed(text, where)
        sequences[line.rank].add(line)
    for sequence in sequences.values():
        sequence.finish()
    return lines


def check_filtered(job, name, logs):
    """Exactly the lines with one of the texts, by rank; a long line is tested piece by piece."""
    texts = [text.encode() for text in FILTERS[name]]
    found = collections.defaultdict(list)
    path = job.filtered(name)
    for text in path.read_bytes().split(b"\n")[:-1]:
        match = PREFIXED.fullmatch(text)
        if match is None:
            raise Wrong(f"{path}: {text[:300]!r}")
        found[int(match[1])].append(match[2])
    for rank, lines in logs.items():
        pieces = (line[at:at + PIECE] for line in lines for at in range(0, max(1, len(line)), PIECE))
        wanted = [piece for piece in pieces if any(text in piece for text in texts)]
        if found[rank] != wanted:
            raise Wrong(f"{path}: rank {rank} has {len(found[rank])} lines instead of {len(wanted)}, or others")


# --- The jobs ------------------------------------------------------------------------------------


def check_files(job, check=check_log):
    """{stream: {rank: lines}}"""
    return {stream: {rank: check(job, rank, stream) for rank in range(job.ranks)} for stream in (1, 2)}


def redirected(job):
    for stream in (1, 2):
        if job.console(stream):
            raise Wrong(f"console, stream {stream}: {job.console(stream)[:300]!r}")
    return sizes(check_files(job))


def redirected_rotated(job):
    return sizes(check_files(job, check_rotated_log))


def teed(job):
    found = check_files(job)
    job.variant.parts += sum(check_teed_console(job, stream) for stream in (1, 2))
    return sizes(found)


def teed_rotated(job):
    found = check_files(job, check_rotated_log)
    job.variant.parts += sum(check_teed_console(job, stream) for stream in (1, 2))
    return sizes(found)


def filtered(job):
    found = check_files(job)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        check_filtered(job, name, found[stream])
    return sizes(found)


def console(job):
    return sizes({stream: {0: check_plain_console(job, stream)} for stream in (1, 2)})


def merged(job):
    """Both streams to one place: each rank's lines in the order in which it wrote them."""
    following = collections.Counter()
    ends = collections.Counter()
    lines = [text for text in job.console(1).split(b"\n") if text]
    for text in lines:
        line = parsed(text, "console")
        if line.turn != following[line.rank]:
            raise Wrong(f"console: rank {line.rank}: line {line.turn} where {following[line.rank]} should be")
        following[line.rank] += 1
        ends[line.rank] += line.is_last
    if ends != {rank: 2 for rank in range(job.ranks)}:
        raise Wrong(f"console: ranks without their last lines: {[r for r in range(job.ranks) if ends[r] != 2]}")
    return sizes({1: {0: lines}})


def sizes(found):
    all_lines = [lines for ranks in found.values() for lines in ranks.values()]
    return sum(map(len, all_lines)), sum(len(text) + 1 for lines in all_lines for text in lines)


def variants(max_bytes):
    rotated = [f"--log-max-bytes={max_bytes}"]
    filters = [f"--duplicate-{name}-filters={','.join(texts)}" for name, texts in FILTERS.items()]
    return [Variant("-r 3", ["-r", "3"], "pieces", redirected),
            Variant("-r 3, rotated", ["-r", "3", *rotated], "pieces", redirected_rotated),
            Variant("-t 3", ["-t", "3"], "pieces", teed),
            Variant("-t 3, rotated", ["-t", "3", *rotated], "pieces", teed_rotated),
            Variant("-t 3, filters", ["-t", "3", *filters], "pieces", filtered),
            Variant("console", [], "whole", console),
            Variant("console, 2>&1", [], "merged", merged)]


def run_job(binary, worker, variant, args, seed, directory):
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        out, err = (stack.enter_context(open(directory / name, "wb")) for name in ("stdout", "stderr"))
        command = [binary, f"--nproc-per-node={args.ranks}", f"--log-dir={directory / 'logs'}", *variant.options,
                   "--no-python", worker, str(seed), str(args.bytes), variant.how, str(args.spread)]
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, env=common.environment(directory),
                               stderr=subprocess.STDOUT if variant.how == "merged" else err)
        try:
            status = job.wait(JOB_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise BenchError(f"still running after {JOB_TIMEOUT_S} s: {' '.join(command)}") from None
        finally:
            job.send_signal(signal.SIGTERM)  # does nothing to what has ended
            job.wait()
    if status != 0:
        raise BenchError(f"exit status {status}: {' '.join(command)}\n" +
                         (directory / "stderr").read_text(errors="replace")[-2000:])
    variant.seconds += time.perf_counter() - began
    lines, size = variant.check(Job(variant, directory, args.ranks, args.max_bytes))
    variant.jobs += 1
    variant.lines += lines
    variant.bytes += size


def main():
    args = parse_arguments()
    machine = common.machine()
    binary = common.elastic_run_binary()
    print(f"{common.elastic_run_version(binary)}; {common.describe(machine)}")
    kinds = variants(args.max_bytes)
    wrong = None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="elastic-run-soak.") as temporary:
        worker = common.compile_c("output_worker", temporary, place=pathlib.Path(__file__).parent)
        seed = args.seed
        while wrong is None and (time.monotonic() - began < args.seconds or seed == args.seed):
            for variant in kinds:
                say(f"{time.monotonic() - began:.0f} of {args.seconds} s: {variant.name}")
                directory = pathlib.Path(temporary) / "job"
                directory.mkdir()
                try:
                    run_job(binary, worker, variant, args, seed, directory)
                except Wrong as error:
                    wrong = f"{variant.name}, seed {seed}: {error}"
                    break
                shutil.rmtree(directory)
            seed += 1
    say("")
    took_s = time.monotonic() - began
    print(f"\n{args.ranks} RANKS, {args.bytes} bytes to each stream " +
          (f"over {args.spread} s" if args.spread else "as fast as they can") + f", {took_s:.0f} s in all")
    common.print_table(
        ["<output", "jobs", "lines", "MB", "s of writing", "shown in parts"],
        [[one.name, f"{one.jobs}", f"{one.lines}", f"{one.bytes / 1e6:.0f}", f"{one.seconds:.1f}", f"{one.parts}"]
         for one in kinds])
    print(f"\n{NOTES}\n\nverdict: " + (f"WRONG\n{wrong}" if wrong else "nothing lost, nothing mixed"))
    if args.json:
        common.write_json(args.json, {
            "soak": "output", "machine": machine, "ranks": args.ranks, "seconds": took_s, "wrong": wrong,
            "variants": {one.name: {"jobs": one.jobs, "lines": one.lines, "bytes": one.bytes, "parts": one.parts}
                         for one in kinds}})
    return 0 if wrong is None else 1


def positive_or_none(text):
    return 0 if text == "0" else positive(text)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak output", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=600, metavar="N",
                        help="jobs of each kind by turns for so long, and each once at least (%(default)s)")
    parser.add_argument("--ranks", type=positive, default=64, metavar="N")
    parser.add_argument("--bytes", type=positive, default=2_000_000, metavar="N",
                        help="to each stream of each rank in one job (%(default)s)")
    parser.add_argument("--spread", type=positive_or_none, default=45, metavar="SECONDS",
                        help="in bursts over so long; 0: as fast as they can (%(default)s)")
    parser.add_argument("--max-bytes", type=positive, metavar="N",
                        help="--log-max-bytes where files are rotated (a sixth of --bytes)")
    parser.add_argument("--seed", type=positive, default=1, metavar="N")
    parser.add_argument("--json", metavar="FILE", help="what was counted, as JSON")
    args = parser.parse_args()
    args.max_bytes = args.max_bytes or args.bytes // 6
    if args.bytes < 3 * args.max_bytes:
        parser.error("--bytes must be three times --max-bytes at least, so that files are rotated")
    return args


if __name__ == "__main__":
    common.run_main(main)
