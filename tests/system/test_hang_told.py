"""When a job is taken for one that hangs, what is told then, and what is not: docs/hangs.md."""
# ctest: nodes

import pathlib

import pytest

from hanging import WORKER
from workers import free_port

STEPS = "steps(3)\n"


@pytest.fixture
def train(elastic_run, script):
    """train(body, ...): a job on this host; its ranks run `body` after what hanging.WORKER gives them."""
    directory = pathlib.Path(elastic_run.directory)

    def start(body, *options, ranks=2, limit="3s"):
        run = elastic_run.start("--standalone", f"--nproc-per-node={ranks}", f"--hang-timeout={limit}",
                                "--log-level=info", *options, script("train.py", WORKER + body), directory)
        run.directory = directory
        return run

    return start


def go_on(run, name="go"):
    (run.directory / name).write_text("")


WAITS = """
if rank == 1:
    wait_for("go")
all_reduce()
step(4)
wait_for("end")
"""


def test_progress_after_the_verdict_is_told(train):
    run = train(STEPS + WAITS)
    run.wait_for_line("  cause: ", timeout=60)
    go_on(run)
    run.wait_for_line("makes progress again", timeout=30)
    go_on(run, "end")
    assert run.wait().returncode == 0, run


def test_progress_that_returns_while_evidence_is_collected_withdraws_the_alarm(train):
    run = train(STEPS + WAITS)
    run.wait_for_line("collecting evidence", timeout=60)
    go_on(run)
    run.wait_for_line("the job does not hang", timeout=30)
    go_on(run, "end")
    result = run.wait()
    assert result.returncode == 0, result
    assert "cause:" not in result.stderr, result


def test_a_job_that_ends_while_it_hangs_ends_as_ever(train):
    run = train(STEPS + """
if rank == 1:
    wait_for("go")
    os._exit(7)
all_reduce()
""", "--max-restarts=0")
    run.wait_for_line("  cause: ", timeout=60)
    go_on(run)
    result = run.wait()
    assert result.returncode == 1 and "exitcode  : 7" in result.stderr, result


def test_a_first_step_that_takes_long_is_no_hang_and_that_nothing_is_watched_is_said_once(train):
    run = train("""
wait_for("go")
steps(3)
""")
    run.wait_for_line("no progress of this job is seen", timeout=60)
    go_on(run)
    result = run.wait()
    assert result.returncode == 0, result
    assert result.stderr.count("no progress of this job is seen") == 1, result
    assert "cause:" not in result.stderr and "collecting evidence" not in result.stderr, result


def test_a_first_limit_that_the_user_gives_is_one(train):
    run = train("""
if rank == 1:
    wait_for("go")
all_reduce()
""", "--hang-first-timeout=2s", ranks=3)
    run.wait_for_line("cause: rank 1", timeout=60)
    go_on(run)
    assert run.wait().returncode == 0


def test_a_checkpoint_that_is_being_written_is_no_hang(train):
    run = train(STEPS + """
ends = time.monotonic() + 14
while time.monotonic() < ends:
    with open(os.path.join(directory, f"checkpoint_{rank}"), "wb") as file:
        file.write(bytes(1_000_000))
    time.sleep(0.1)
step(4)
""")
    result = run.wait(timeout=90)
    assert result.returncode == 0 and "cause:" not in result.stderr, result


def test_with_hang_off_nobody_looks(train):
    run = train(STEPS + """
if rank == 1:
    time.sleep(12)
all_reduce()
""", "--hang=off")
    result = run.wait(timeout=90)
    assert result.returncode == 0, result
    assert "progress for" not in result.stderr and "no progress of this job" not in result.stderr, result


def test_a_time_that_is_none_is_refused(elastic_run):
    result = elastic_run("--hang-timeout=soon", "--no-python", "true")
    assert result.returncode == 2 and "--hang-timeout=soon" in result.stderr and "90s, 5m or 1h" in result.stderr, result


def test_every_node_tells_of_the_hang_and_of_its_end(elastic_run, script):
    directory = pathlib.Path(elastic_run.directory)
    program = script("train.py", WORKER + STEPS + WAITS)
    endpoint = f"127.0.0.1:{free_port()}"
    nodes = [elastic_run.start("--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}",
                               "--rdzv-id=job", "--hang-timeout=3s", f"--local-addr={name}", program, directory)
             for name in ("127.0.0.1", "localhost")]
    for node in nodes:
        node.wait_for_line("no progress for", timeout=90)
        node.wait_for_line("cause: rank 1 ", timeout=10)
        node.wait_for_line("wait_for", timeout=10)
    (directory / "go").write_text("")
    for node in nodes:
        node.wait_for_line("makes progress again", timeout=30)
    (directory / "end").write_text("")
    for node in nodes:
        assert node.wait().returncode == 0, node
