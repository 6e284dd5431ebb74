"""What a user is told whose --rdzv-endpoint leads to something else, or to nothing: what it is, and never a hang."""
# ctest: clock
# ctest: nodes

import contextlib
import os
import signal
import socket
import sys
import threading

import pytest

from harness import read_process, wait_until
from test_many_nodes import ALL_COME, WORKER, environments, job  # noqa: F401 (a fixture)
from workers import free_port

# Seconds for what answers at once or never, and for what is known by its silence of a second.
JOIN_TIMEOUT, OF_SILENCE = 4, 10
# What a program may take beside it, on a machine that is busy.
SPARE = 60


@contextlib.contextmanager
def peer(behave):
    """A server on loopback; `behave(connection)` is called for each connection in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        kept = []

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                kept.append(connection)
                threading.Thread(target=attend, args=(connection,), daemon=True).start()

        def attend(connection):
            with contextlib.suppress(OSError):
                behave(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()


def says(text, after_a_word):
    """Sends the text, to those that have said something or to everybody."""

    def behave(connection):
        if after_a_word:
            connection.recv(1)
        connection.sendall(text)
        while connection.recv(65536):
            pass

    return behave


def hears(connection):
    while connection.recv(65536):
        pass


def hangs_up(connection):
    connection.recv(1)
    connection.close()


def last_words(job, join_timeout=JOIN_TIMEOUT):
    """What a node says last that looks for a coordinator at job.port, where there is none."""
    node = job.node("--log-level=warning", conf=f"is_host=0,join_timeout={join_timeout}")
    result = node.wait()
    assert result.returncode == 1, result
    assert result.duration < join_timeout + SPARE, result
    assert result.stdout == "", "no worker may have been started"
    return result.stderr.splitlines()[-1]


def test_a_dead_port_is_named_with_what_was_tried_and_for_how_long(job):
    job.port = free_port()
    said = last_words(job)
    assert f"127.0.0.1:{job.port}" in said and f"{JOIN_TIMEOUT} s" in said and "Connection refused" in said


@pytest.mark.parametrize("behave, word", [
    (hears, "accepts the connection, but sends nothing"),
    (hangs_up, "closed the connection"),
    (says(b"\xff\xfehello, world", after_a_word=False), "ff fe"),
], ids=["silent", "hangs up", "unknown"])
def test_whatever_else_listens_there_is_named(job, behave, word):
    with peer(behave) as port:
        job.port = port
        said = last_words(job, OF_SILENCE if behave is hears else JOIN_TIMEOUT)
    assert f"127.0.0.1:{port}" in said and word in said


def test_torchruns_own_store_is_named(elastic_run, job):
    """It hears of our protocol and says nothing: it is asked in its own tongue what it is."""
    from store_servers import TorchProcess  # here: PyTorch takes seconds to import, and nobody else needs it

    store = TorchProcess(elastic_run)
    job.port = store.port
    said = last_words(job, OF_SILENCE)
    store.end()
    assert f"127.0.0.1:{job.port}" in said and "TCPStore" in said


@pytest.mark.time_limit(240)
def test_a_torchrun_that_comes_to_us_is_named_in_our_log_and_trains_nowhere(job):
    first = job.node(nnodes="2")
    first.wait_for_line("this node hosts the coordinator")
    stranger = job.elastic_run.start(
        "-m", "torch.distributed.run", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{job.port}",
        "--rdzv-conf=is_host=0", "--nnodes=2", job.worker, program=[sys.executable])
    first.wait_for_line(r"127\.0\.0\.1.*TCPStore", timeout=120)
    stranger.popen.kill()  # it tries for a long time
    assert stranger.wait().stdout == ""
    second = job.node(nnodes="2")  # the job is as good as before
    for node in (first, second):
        environments(node, 1)
    for node in (second, first):
        node.send_signal(signal.SIGTERM)
    for node in (second, first):
        node.wait()


def test_another_secret_is_named_at_once_on_both_sides(job):
    first = job.node(nnodes="1:2", env={"ELASTIC_RUN_TOKEN": "one"})
    environments(first, 1)
    stranger = job.node(nnodes="1:2", env={"ELASTIC_RUN_TOKEN": "another"}, conf="is_host=0")
    result = stranger.wait()
    assert result.returncode == 1 and result.duration < SPARE, result
    said = result.stderr.splitlines()[-1]
    assert f"127.0.0.1:{job.port}" in said and "another secret" in said, result
    first.wait_for_line("proof.*secret")
    assert "TOKEN" not in result.stderr
    first.send_signal(signal.SIGTERM)
    rest = first.wait()
    assert "round 2" not in rest.stderr, rest


def test_a_node_that_has_slept_over_the_end_of_its_job_hears_the_verdict(job, script):
    """The coordinator is there still, for other jobs; the others have failed in a round without it."""
    alone = job.elastic_run.start("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{job.port}",
                                  "--rdzv-conf=loss_timeout=10")
    alone.wait_for_line("the coordinator listens")
    fails = script("fails.py", WORKER.replace("time.sleep(600)", """
if os.environ["WORLD_SIZE"] == "1":
    sys.exit(9)
time.sleep(600)"""))
    first, late = (job.node(nnodes="1:2", script=fails, conf=f"is_host=0,{ALL_COME}") for _ in range(2))
    for node in (first, late):
        environments(node, 1)
    launcher = late.launcher()
    os.kill(launcher, signal.SIGSTOP)
    assert first.wait().returncode == 1
    os.kill(launcher, signal.SIGCONT)
    result = late.wait()
    assert result.returncode == 1 and "exited with code 9" in result.stderr, result
    alone.send_signal(signal.SIGTERM)
    alone.wait()


def test_a_fresh_node_of_a_job_that_is_ending_is_told_to_try_again_and_begins_the_next(job, script):
    """All have succeeded, but one does not answer: until it is lost the name is the old job's."""
    succeeds = script("succeeds.py", WORKER.replace("time.sleep(600)", """
import pathlib
while not pathlib.Path(f"done{os.environ['RANK']}").exists():
    time.sleep(0.02)"""))
    alone = job.elastic_run.start("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{job.port}")
    alone.wait_for_line("the coordinator listens")
    # So late that the fresh ones come before that on a busy machine, too.
    nodes = [job.node(nnodes="2", script=succeeds, conf="is_host=0,loss_timeout=15") for _ in range(2)]
    by_rank = {environments(node, 1)[0]["RANK"]: node for node in nodes}
    launcher = by_rank["0"].launcher()
    (job.elastic_run.directory / "done0").touch()
    by_rank["0"].wait_for_line("all its processes have ended|exited with code 0")
    wait_until(lambda: read_process(launcher).state == "S", what="the launcher to have said so")
    os.kill(launcher, signal.SIGSTOP)
    (job.elastic_run.directory / "done1").touch()
    by_rank["1"].wait_for_line("exited with code 0")
    fresh = [job.node(nnodes="1:2", script_arguments=["0"], conf="is_host=0") for _ in range(2)]
    fresh[0].wait_for_line("a job of this name is ending", timeout=60)
    assert [node.wait().returncode for node in (by_rank["1"], *fresh)] == [0, 0, 0]
    os.kill(launcher, signal.SIGCONT)
    assert by_rank["0"].wait().returncode == 0
    alone.send_signal(signal.SIGTERM)
    alone.wait()
