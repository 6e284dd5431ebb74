"""Jobs that hang, or only seem to, of which the worker store, their output or a learned limit tells: docs/hangs.md."""
# ctest: long
# ctest: clock

import json
import pathlib
import signal
import sys

import pytest

from hanging import GLOO_KEYS, RECORDER, WORKER
from harness import alive, wait_until
from http_client import http_port, status
from raw_store import HELLO, SET, WAIT, keys, request, text
from workers import REPORT, read_reports

LIMIT_S = 3


class Job:
    """A job on this host that may hang."""

    def __init__(self, elastic_run, program, *options, ranks=3, limit=f"{LIMIT_S}s", **popen):
        self.directory = pathlib.Path(elastic_run.directory)
        self.logs = self.directory / "logs"
        limits = [f"--hang-timeout={limit}"] if limit else []
        self.run = elastic_run.start("--standalone", f"--nproc-per-node={ranks}", f"--log-dir={self.logs}", *limits, *options,
                                     program, self.directory, **popen)

    def pid(self, rank):
        file = self.directory / f"pid_{rank}"
        wait_until(lambda: file.exists() and file.read_text(), what=f"{file}")
        return int(file.read_text())

    def note(self, name):
        (self.directory / name).write_text("")

    def report(self):
        """What hang.json has as soon as the verdict was told."""
        self.run.wait_for_line("no progress for", timeout=150)
        file = wait_until(lambda: next(self.logs.glob("*/attempt_0/hang/hang.json"), None), what="hang.json")
        return json.loads(file.read_text())["hang"]

    def evidence(self):
        """What each source has said, as people read it."""
        return "".join(file.read_text() for file in self.logs.glob("*/attempt_0/hang/*_stacks.txt"))

    def end(self):
        self.run.send_signal(signal.SIGTERM)
        self.run.wait()


@pytest.fixture
def train(elastic_run, script):
    """train(body, ...): a job whose ranks run `body` after what hanging.WORKER gives them."""
    return lambda body, *options, **settings: Job(elastic_run, script("train.py", WORKER + body), *options, **settings)


def culprits(report):
    return [culprit["rank"] for culprit in report["culprits"]]


# --- What the worker store tells. ---------------------------------------------------------------------------

# A rank that is no Python, so that nobody can read its stack, and says to the worker store what PyTorch says with gloo.
COMES = """#!/bin/bash
echo $$ > "$1/pid_$RANK"
[ "$RANK" = 1 ] && exec sleep 10000
exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT"
cat "$1/says_$RANK" >&3
exec cat <&3
"""


def test_a_rank_that_does_not_come_to_init_is_named_by_the_store_alone(elastic_run, script):
    for rank in (0, 2):
        said = HELLO + request(SET, text(GLOO_KEYS + b"%d" % rank), text(b"here")) + request(WAIT, keys(GLOO_KEYS + b"1"))
        (elastic_run.directory / f"says_{rank}").write_bytes(said)
    job = Job(elastic_run, script("comes.sh", COMES), "--no-python")
    report = job.report()
    assert report["verdict"] == {"rule": 5, "name": "not at init"} and report["fault"] == "soft", report
    assert culprits(report) == [1] and report["culprits"][0]["pid"] == job.pid(1), report
    assert (report["limit_from"], report["limit_s"]) == ("fact", LIMIT_S), report
    assert report["sources"]["store"] == "ok" and report["sources"]["stacks"] != "ok", report
    job.run.wait_for_line(r"cause: rank 1 \(node .*\) has not come to init_process_group")
    assert all(alive(job.pid(rank)) for rank in range(3)), "a worker was ended"
    job.end()


def test_the_first_rank_to_time_out_shortens_the_wait_and_is_not_the_culprit_for_that(train):
    job = train("""
import struct


def text(content):
    return struct.pack("<q", len(content)) + content


def time_out():
    store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    store.sendall(bytes.fromhex("00cef7853c01") + text(b"/exception_dump") + text(struct.pack("=i", rank)))
    return store  # it stays open


def load_batch():
    wait_for("never")


steps(3)
if rank == 2:
    store = time_out()
if rank == 1:
    load_batch()
all_reduce()
""", limit=3600)
    report = job.report()
    assert (report["limit_from"], report["limit_s"]) == ("fact", 10) and report["silent_s"] < 60, report
    assert report["verdict"]["rule"] == 8 and culprits(report) == [1], report
    assert "rank 2 was the first whose collective has timed out" in job.evidence()
    job.end()


# --- What the output tells. -----------------------------------------------------------------------------------

# Steps by their lines alone. Nothing writes to ELASTIC_RUN_PROGRESS.
LINES = """
def say(number):
    os.write(2, f" iteration {number:8}/     500 | consumed samples: {number * 8} | lm loss: 1.5 |\\n".encode())


for number in range(1, 4):
    all_reduce()
    say(number)
"""


def test_a_line_that_is_repeated_with_the_same_number_is_no_progress_and_the_hang_behind_it_is_told(train):
    job = train(LINES + """
def retry():
    while True:
        say(3)
        time.sleep(0.05)


if rank == 1:
    retry()
all_reduce()
""")
    report = job.report()
    assert report["verdict"]["rule"] == 8 and culprits(report) == [1], report
    odd, = [group for group in report["groups"] if group["odd"]]
    assert "retry" in [frame["function"] for frame in odd["stack"]], odd
    assert "(megatron)" in report["last_line"], report
    job.end()


# --- What was learned. ----------------------------------------------------------------------------------------


def test_a_first_evaluation_has_the_longest_limit_and_a_later_one_what_was_learned_of_it(train):
    job = train("""
steps(3)
for evaluation in range(2):
    wait_for(f"evaluate_{evaluation}")
    step(1 + evaluation, "eval")
    wait_for(f"train_{evaluation}")
    steps(1, 4 + evaluation)
wait_for("end")
""", "--http-port=0", ranks=1, limit=None)
    port = http_port(job.run)
    seen = []

    def wait_for_limit(phase, seconds, where):
        def look():
            of_job, = status(port)["coordinator"]["jobs"]
            seen.append(of_job["hang"])
            return (seen[-1]["phase"], seen[-1]["limit_seconds"], seen[-1]["limit_from"]) == (phase, seconds, where)
        wait_until(look, what=f"{(phase, seconds, where)}; the last was {seen[-1:]}")

    wait_for_limit("train", 1800, "none")  # one beat was told, and no time between two
    job.note("evaluate_0")
    wait_for_limit("eval", 1800, "none")
    job.note("train_0")
    wait_for_limit("train", 60, "learned")
    job.note("evaluate_1")
    wait_for_limit("eval", 60, "learned")
    job.note("train_1")
    job.note("end")
    assert job.run.wait().returncode == 0
    assert {hang["state"] for hang in seen} <= {"idle", "starting", "armed"}, seen


# --- What NCCL tells. -----------------------------------------------------------------------------------------

# Says what NCCL's RAS says, at NCCL_RAS_ADDR; what it reports is in a file.
RAS = """
import socketserver, sys, time
behaviour, report = sys.argv[1:]

class Client(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            word = line.decode().strip().upper()
            if behaviour == "silent":
                continue
            if word.startswith("CLIENT PROTOCOL"):
                self.wfile.write(b"SERVER PROTOCOL 2\\n")
            elif word.startswith(("TIMEOUT", "SET FORMAT")):
                self.wfile.write(b"OK\\n")
            else:
                text = open(report, "rb").read()
                return self.wfile.write(text[:len(text) // 2] if behaviour == "closes early" else text)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

with Server(("127.0.0.1", 0), Client) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""


def ras_report(pids):
    """Of one communicator, in which rank 1 has launched one collective less than the others."""
    ranks = [{"rank": rank, "host": "127.0.0.1", "pid": pid, "cuda_dev": rank, "nvml_dev": rank,
              "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                         "abort_flag": False},
              "collective_counts": {"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0,
                                    "AllReduce": 40 if rank == 1 else 41}} for rank, pid in enumerate(pids)]
    of = {"hash": "0x1f", "secondary_hash": "0x2f", "size": len(pids), "ranks_count": len(pids),
          "missing_ranks_count": 0, "ranks": ranks, "missing_ranks": []}
    return {"nccl_version": "2.28.9", "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
            "timestamp": "2026-11-21 19:57:07", "communicators_count": 1, "communicators": [of],
            "ras": {"collection_time_sec": 0.01, "timeouts_count": 0}}


@pytest.mark.parametrize("behaviour, source, rule", [
    ("answers", "ok", 7), ("of others", "refused", 8), ("silent", "late", 8), ("closes early", "lost", 8)])
def test_counts_of_ras_name_the_rank_that_is_behind_and_ras_that_does_not_help_costs_no_verdict(
        elastic_run, script, behaviour, source, rule):
    said = elastic_run.directory / "ras.json"
    ras = elastic_run.start("-c", RAS, behaviour, said, program=[sys.executable])
    port = ras.wait_for_line(r"(\d+)", stream="stdout")[1]
    body = """
def load_batch():
    wait_for("never")


steps(3)
if rank == 1:
    load_batch()
wait_for("reported")
all_reduce()
"""
    job = Job(elastic_run, script("train.py", WORKER + body), env={"NCCL_RAS_ADDR": f"127.0.0.1:{port}"}, limit="5s")
    pids = [job.pid(rank) for rank in range(3)]
    said.write_text(json.dumps(ras_report([1, 1, 1] if behaviour == "of others" else pids)))
    job.note("reported")
    report = job.report()
    assert report["sources"]["ras"] == source, report
    assert report["verdict"]["rule"] == rule and culprits(report) == [1], report
    job.end()
    ras.send_signal(signal.SIGTERM)
    ras.wait()


# Reads its pipe as PyTorch's flight recorder does, and dumps when something comes; then it waits, or stands. What
# TORCH_NCCL_DEBUG_INFO_* name are the stems of both files.
RECORDS = RECORDER + """
def record():
    pipe, dump = (os.environ[f"TORCH_NCCL_DEBUG_INFO_{name}"] + str(rank) for name in ("PIPE_FILE", "TEMP_FILE"))
    os.mkfifo(pipe + ".pipe")
    reading = os.open(pipe + ".pipe", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    writing = os.open(pipe + ".pipe", os.O_WRONLY)  # so that reading waits
    note(f"records_{rank}")
    while os.read(reading, 128):
        hostile = rank == 0 and HOSTILE
        write_dump(dump, pickle.dumps(Runs(), protocol=2) if hostile else json.dumps(recorded()).encode())


threading.Thread(target=record, daemon=True).start()
for each in range(world):
    wait_for(f"records_{each}")


def load_batch():
    wait_for("never")


steps(3)
if rank == 1:
    load_batch()
all_reduce()
"""


@pytest.mark.parametrize("is_hostile", [False, True])
def test_the_flight_recorder_names_the_rank_that_is_behind_and_a_hostile_dump_is_refused_and_never_run(
        train, tmp_path, is_hostile):
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    job = train(RECORDS.replace("HOSTILE", str(is_hostile)), limit="5s",
                env={"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{dumps}/pipe_", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{dumps}/rank_"})
    report = job.report()
    assert report["verdict"]["rule"] == 7 and culprits(report) == [1], report
    assert report["sources"]["fr"] == ("lost" if is_hostile else "ok"), report
    assert 'in all_reduce number 7 of group "default_pg"; rank 1 has launched 6' in report["others"], report
    assert is_hostile == ("GLOBAL" in job.evidence()), job.evidence()
    assert (dumps / "rank_0").exists() and not (job.directory / "was_run").exists()
    job.end()


# --- What workers see of it. ------------------------------------------------------------------------------------


def test_workers_have_the_same_environment_whether_anybody_looks_for_hangs_or_not(elastic_run, script, tmp_path):
    found = []
    for hang in ("off", "report"):
        reports = tmp_path / hang
        reports.mkdir()
        result = elastic_run("--nproc-per-node=2", "--rdzv-id=job", f"--log-dir={tmp_path}/logs", f"--hang={hang}",
                             "--hang-timeout=3s", script("report.py", REPORT), env={"REPORTS": str(reports)})
        assert result.returncode == 0, result
        found.append({rank: told["environment"] for (_, rank), told in read_reports(reports).items()})
    of_round = {"MASTER_PORT", "REPORTS", "ELASTIC_RUN_FENCE", "ELASTIC_RUN_PROGRESS", "TORCHELASTIC_ERROR_FILE",
                "TORCHELASTIC_RUN_ID", "ELASTIC_RUN_ID"}
    off, report = ([{name: value for name, value in environment[rank].items() if name not in of_round} for rank in range(2)]
                   for environment in found)
    assert off == report
    assert [set(environment) for environment in found[0].values()] == [set(environment) for environment in found[1].values()]
