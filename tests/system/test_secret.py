"""The secret of a job: who has it may join, nobody else finds it out or does any harm."""
# ctest: gate-cases
# ctest: clock
# ctest: nodes

import contextlib
import os
import pathlib
import random
import select
import signal
import socket
import time

import pytest

from harness import alive
from relay import Relay
from test_many_nodes import ALL_COME, environments, job  # noqa: F401 (a fixture)

# Nothing else looks like it.
SECRET = "kq7-Zebra-0451-horizon"
GREETING = 5  # seconds that a connection may take to introduce itself


def given(how, tmp_path):
    """Options of Job.node that give it the secret by the environment, or by a file."""
    if how == "environment":
        return {"env": {"ELASTIC_RUN_TOKEN": SECRET}}
    file = tmp_path / "token"
    file.write_text(SECRET + "\n")
    file.chmod(0o600)
    return {"conf": f"token_file={file}"}


def shown_in_proc(processes):
    """What of them shows the secret in /proc."""
    found = []
    for process in processes:
        for name in ("environ", "cmdline", "comm"):
            with contextlib.suppress(OSError):
                if SECRET.encode() in pathlib.Path(f"/proc/{process.pid}/{name}").read_bytes():
                    found.append(f"{name} of {process}")
    return found


@pytest.mark.parametrize("how", ["environment", "file"])
def test_the_secret_lets_nodes_meet_and_is_seen_nowhere(job, tmp_path, how):
    options = given(how, tmp_path)
    record = tmp_path / "record.jsonl"
    common = ["--log-level=debug", "--log-dir", tmp_path / "logs"]
    # All three are in the first round, and there when it is looked what they show.
    first = job.node(*common, "--record", record, nnodes="2:3", env=options.get("env"),
                     conf=",".join(filter(None, [ALL_COME, options.get("conf")])))
    first.wait_for_line("this node hosts the coordinator")
    relay = Relay(job.port)
    job.port = relay.port
    conf = "is_host=0" + (f",{options['conf']}" if "conf" in options else "")
    others = [job.node(*common, nnodes="2:3", env=options.get("env"), conf=conf) for _ in range(2)]
    for node in (first, *others):
        environments(node, 1)

    assert len(job.elastic_run.processes()) >= 9  # of each node two and a worker
    assert shown_in_proc(job.elastic_run.processes()) == []
    # The guardian's last word is proved by the secret, too.
    os.kill(others[1].launcher(), signal.SIGKILL)
    others[1].wait()
    left = (first, others[0])
    assert {environments(node, 1)[0]["WORLD_SIZE"] for node in left} == {"2"}
    for node in left:
        node.send_signal(signal.SIGTERM)
    results = [node.wait() for node in left]
    relay.close()

    wire = relay.conversations
    assert sum(len(each) > 0 for each in wire) >= 5, "two agents' both ways, and the last word"
    assert not any(SECRET.encode() in each for each in wire)
    assert not any(SECRET in result.stderr + result.stdout for result in results)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "token"]
    assert record in written
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("how", ["environment", "file"])
def test_a_dry_run_says_that_there_is_a_secret_and_not_which(job, tmp_path, how, form):
    result = job.node(f"--dry-run={form}", **given(how, tmp_path)).wait()
    assert result.returncode == 0, result
    assert "secret" in result.stdout and SECRET not in result.stdout + result.stderr
    assert ("ELASTIC_RUN_TOKEN" if how == "environment" else "token") in result.stdout


def test_no_worker_inherits_the_secret(job, script):
    shows = script("shows.py", "import os\nprint('env', int('ELASTIC_RUN_TOKEN' in os.environ), flush=True)\n")
    nodes = job.nodes(2, script=shows, env={"ELASTIC_RUN_TOKEN": SECRET})
    assert [environments(node, 1) for node in nodes] == [[0]] * 2
    assert [node.wait().returncode for node in nodes] == [0, 0]


@pytest.mark.parametrize("content, word", [("", "is empty"), (None, "No such file")])
def test_a_file_without_a_secret_is_an_error_of_the_command_line(job, tmp_path, content, word):
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    result = job.node(conf=f"token_file={file}").wait()
    assert result.returncode == 2 and str(file) in result.stderr and word in result.stderr, result


class Crowd:
    """Strangers at the coordinator's port."""

    def __init__(self, port):
        self._port = port
        self._open = []

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=60)
        self._open.append(connection)
        return connection

    def scan(self, count):
        for number in range(count):
            connection = self.connect()
            if number % 2:  # half of them by a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self._open.pop().close()

    def garbage(self, count):
        random_bytes = random.Random(8)
        for number in range(count):
            with contextlib.suppress(ConnectionError):  # it may close before all is sent
                self.connect().sendall(random_bytes.randbytes(1 + number * 37))

    def half_words(self, count, beginning):
        for number in range(count):
            self.connect().sendall(beginning[:1 + number % len(beginning)])

    def say_nothing(self, count):
        for _ in range(count):
            self.connect()

    def wait_until_all_are_closed(self, timeout):
        deadline = time.monotonic() + timeout
        poll = select.poll()
        left = {connection.fileno(): connection for connection in self._open}
        for number in left:
            poll.register(number, select.POLLIN | select.POLLRDHUP)
        while left:
            assert time.monotonic() < deadline, f"{len(left)} connections are open still"
            for number, _ in poll.poll(200):
                try:
                    ended = not left[number].recv(65536)
                except ConnectionError:
                    ended = True
                if ended:
                    poll.unregister(number)
                    left.pop(number).close()
        self._open.clear()


@pytest.mark.time_limit(240)
@pytest.mark.gate
def test_scans_garbage_and_floods_do_nothing_to_a_running_job(job):
    """And whoever says nothing is shown the door, while a node that has the secret still comes in."""
    env = {"ELASTIC_RUN_TOKEN": SECRET}
    options = {"nnodes": "2:3", "env": env}
    first = job.node(**options, conf="scale_up=never,failover=off")  # nothing is to begin anew for the third
    first.wait_for_line("this node hosts the coordinator")
    relay = Relay(job.port)  # of which the true beginning of a conversation is taken
    direct, job.port = job.port, relay.port
    second = job.node(**options, conf="is_host=0,scale_up=never,failover=off")
    pids = [environments(node, 1)[0]["PID"] for node in (first, second)]
    beginning = max(relay.conversations, key=len)[:64]

    crowd = Crowd(direct)
    crowd.scan(500)
    crowd.garbage(200)
    crowd.half_words(100, beginning)
    crowd.say_nothing(500)
    job.port = direct
    third = job.node(**options, conf="is_host=0,scale_up=never,failover=off")
    crowd.wait_until_all_are_closed(GREETING + 55)
    third.wait_for_line("waiting for .*round|standing by", timeout=60)

    assert all(alive(pid) for pid in pids)
    nodes = (third, second, first)
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    results = [node.wait() for node in nodes]
    relay.close()
    assert "round 1" not in results[1].stderr and "lost" not in results[1].stderr, results[1]
    assert len(results[2].stderr.splitlines()) < 2000, "the log is no place for a flood"
