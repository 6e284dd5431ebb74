"""Who is at fault when a job hangs: docs/hangs.md. Each job makes a few steps, and then one of its ranks does what hangs
jobs."""
# ctest: clock

import json
import os
import pathlib
import signal

import gpu_probe
import pytest
import raw_store

from hanging import LOADS, WORKER, in_state_d
from harness import alive, wait_until

STEPS = "steps(3)\n"


class Hanging:
    """A job of the standard library on this host, whose ranks run `body` after what hanging.WORKER gives them."""

    def __init__(self, elastic_run, script, body, *options, ranks=3, limit=3, env=None):
        self.directory = pathlib.Path(elastic_run.directory)
        self.logs = self.directory / "logs"
        self.run = elastic_run.start("--standalone", f"--nproc-per-node={ranks}", f"--hang-timeout={limit}s",
                                     f"--log-dir={self.logs}", *options, script("train.py", WORKER + body),
                                     self.directory, env=env)

    def pid(self, rank):
        file = self.directory / f"pid_{rank}"
        wait_until(file.exists, what=f"{file}")
        return int(file.read_text())

    def verdict(self):
        """What is told of the hang: the lines on the screen, and the report. The job goes on as before."""
        self.run.wait_for_line("no progress for", timeout=60)
        self.run.wait_for_line("not had:|evidence:|and \\d+ ranks", timeout=10)
        report = wait_until(lambda: next(iter(self.logs.glob("*/attempt_0/hang/hang.json")), None), timeout=10,
                            what="hang.json")
        return self.run.stderr.text, json.loads(report.read_text())["hang"]

    def end(self):
        """No worker was signalled by then."""
        self.run.send_signal(signal.SIGTERM)
        self.run.wait()


@pytest.fixture
def hanging(elastic_run, script):
    return lambda body, *options, **settings: Hanging(elastic_run, script, body, *options, **settings)


def assert_blames(job, rule, rank, frame, ranks=3):
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == rule, (screen, report)
    assert [culprit["rank"] for culprit in report["culprits"]] == [rank], report
    assert report["culprits"][0]["pid"] == job.pid(rank) and report["culprits"][0]["node"], report
    assert f"cause: rank {rank} (node " in screen, screen
    assert report["last_line"] and "step 3 (script)" in screen, screen
    odd = [group for group in report["groups"] if group["odd"]]
    assert [group["ranks"] for group in odd] == [str(rank)], report
    assert frame in screen, screen
    assert frame in [entry["function"] for entry in odd[0]["stack"] or []], odd
    assert all(alive(job.pid(each)) for each in range(ranks)), "a worker was ended"
    job.end()
    return report


@pytest.mark.parametrize("load", LOADS)
def test_a_rank_that_does_not_come_is_named_with_the_line_where_it_stands(hanging, load):
    job = hanging(LOADS[load] + STEPS + """
if rank == 1:
    load_batch()
all_reduce()
""")
    report = assert_blames(job, 8, 1, "load_batch")
    assert report["sources"]["stacks"] == "ok" and report["fault"] == "soft", report


def test_a_worker_that_is_stopped_is_named_whatever_the_limit_is(hanging):
    job = hanging(STEPS + """
if rank == 1:
    note("stands")
    wait_for("never")
all_reduce()
""", limit=3600)
    wait_until((job.directory / "stands").exists)
    os.kill(job.pid(1), signal.SIGSTOP)
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == 4 and report["limit_from"] == "fact", report
    assert [culprit["rank"] for culprit in report["culprits"]] == [1], report
    assert "rank 1 (node " in screen and "stopped" in screen, screen
    os.kill(job.pid(1), signal.SIGCONT)
    job.end()


def test_different_collectives_are_the_scripts_fault_and_no_nodes(hanging):
    job = hanging(STEPS + """
everybody_waits = socket.socketpair()
if rank < 2:
    def all_reduce():
        everybody_waits[0].recv(1)
    all_reduce()
else:
    def broadcast():
        everybody_waits[0].recv(1)
    broadcast()
""", ranks=4)
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == 6 and report["fault"] == "script" and report["culprits"] == [], (screen, report)
    assert "all_reduce" in screen and "broadcast" in screen, screen
    job.end()


def test_a_child_that_loads_data_is_shown_with_its_own_stack(hanging):
    job = hanging("""
import multiprocessing


def read_file():
    time.sleep(10000)


def loader(queue):
    read_file()


def next_batch():
    return queue.get()


queue = multiprocessing.get_context("fork").SimpleQueue()
if rank == 1:
    child = multiprocessing.get_context("fork").Process(target=loader, args=(queue,), daemon=True)
    child.start()
""" + STEPS + """
if rank == 1:
    next_batch()
all_reduce()
""")
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == 8 and [culprit["rank"] for culprit in report["culprits"]] == [1], report
    odd = [group for group in report["groups"] if group["odd"]][0]
    assert "next_batch" in [frame["function"] for frame in odd["stack"]], odd
    assert "read_file" in [frame["function"] for frame in odd["child_stack"]], odd
    assert "read_file" in screen, screen
    job.end()


def test_a_checkpoint_that_stands_is_storage_and_nobodys_fault_and_is_told_after_four_times_the_limit(hanging):
    job = hanging(STEPS + """
def save_checkpoint():
    reader, writer = os.pipe()
    os.write(writer, bytes(2_000_000))


if rank == 0:
    save_checkpoint()
barrier()
""")
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == 2 and report["culprits"] == [] and report["fault"] == "none", (screen, report)
    assert report["silent_s"] >= 12, report
    assert "save_checkpoint" in screen, screen
    job.end()


def test_a_worker_in_state_d_is_its_nodes_hardware_or_storage(hanging, tmp_path):
    job = hanging(in_state_d(tmp_path) + STEPS + """
if rank == 1:
    read_block()
all_reduce()
""", limit=8)
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == 3 and report["fault"] == "hard", (screen, report)
    assert [group["state"] for group in report["groups"] if group["odd"]] == ["disk"], report
    job.end()


ALL_WAIT = STEPS + """
everybody_waits = socket.socketpair()


def all_reduce():
    everybody_waits[0].recv(1)


all_reduce()
"""


@pytest.fixture
def root(tmp_path):
    """A directory in the place of /, with a driver of so many GPUs, and ports of InfiniBand: {name: state}."""
    made = tmp_path / "root"

    def make(gpus=0, ports=None):
        made.mkdir()
        for gpu in range(gpus):
            place = made / f"proc/driver/nvidia/gpus/0000:{gpu:02x}:00.0"
            place.mkdir(parents=True)
            (place / "information").write_text(f"GPU UUID: \t GPU-{gpu}\n")
        for name, state in (ports or {}).items():
            port = made / f"sys/class/infiniband/{name}/ports/1"
            (port / "counters").mkdir(parents=True)
            (port / "state").write_text(f"{state}\n")
            (port / "link_layer").write_text("InfiniBand\n")
            (port / "counters/symbol_error").write_text("7\n")
            (port / "counters/port_xmit_data").write_text("1000\n")
            (port / "counters/port_rcv_data").write_text("1000\n")
        return made

    return make


def evidence_lines(job):
    """What people are told in the files of the evidence."""
    return wait_until(lambda: next(iter(job.logs.glob("*/attempt_0/hang/*_stacks.txt")), None)).read_text()


def test_a_gpu_whose_power_is_unlike_all_others_is_its_nodes_hardware(hanging, elastic_run, root, tmp_path):
    facts = gpu_probe.facts_file(tmp_path, devices=4, _2_power_mw=412_000)
    job = hanging(ALL_WAIT, ranks=4, env={
        "ELASTIC_RUN_PROBE_ROOT": str(root(gpus=4)), "LD_LIBRARY_PATH": str(gpu_probe.libraries(elastic_run)),
        "STAND_IN_GPU_FACTS": str(facts)})
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == 9 and report["fault"] == "hard", (screen, report)
    assert [culprit["rank"] for culprit in report["culprits"]] == [2], report
    assert "412 W, and about 118 W" in screen, screen
    assert report["sources"]["nvml"] == "ok" and report["sources"]["links"] == "off", report
    assert "gpus: GPU 2 (0000:1c:00.0), rank 2: 412 W, busy 100 % of the time, its memory 0 %" in evidence_lines(job)
    job.end()


def test_ports_that_are_not_active_are_named_where_all_have_launched_the_same(hanging, root):
    made = root(ports={"mlx5_0": "4: ACTIVE", "mlx5_1": "1: DOWN"})
    job = hanging(ALL_WAIT, env={"ELASTIC_RUN_PROBE_ROOT": str(made)})
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == 10 and report["culprits"] == [], (screen, report)
    assert "look at these links: port 1 of mlx5_1 of node" in report["remedy"] and "is DOWN" in report["remedy"], report
    assert "mlx5_0" not in report["remedy"] and report["sources"]["links"] == "ok", report
    told = evidence_lines(job)
    assert "links: port 1 of mlx5_0: ACTIVE, InfiniBand; 0 bytes sent and 0 received within 2 s; symbol_error 7" in told
    job.end()


def test_ranks_that_wait_in_the_store_are_named_with_the_key(hanging):
    """As where NCCL begins, and rank 0 does not come."""
    job = hanging(f"""
def make_id():
    time.sleep(10000)


def get_id():
    store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    store.sendall({raw_store.HELLO + raw_store.request(raw_store.WAIT, raw_store.keys(b"nccl_id"))!r})
    store.recv(1)


""" + STEPS + """
make_id() if rank == 0 else get_id()
""")
    screen, report = job.verdict()
    assert report["verdict"]["rule"] == 11 and report["culprits"] == [], (screen, report)
    assert report["others"] == "ranks 1-2 wait in the store for the key nccl_id", report
    assert "store: key nccl_id: 2 clients wait for it, of this node ranks 1-2" in evidence_lines(job)
    job.end()
