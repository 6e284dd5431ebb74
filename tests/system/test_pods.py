"""elastic-run as the entrypoint of pods: their environments, replayed from pods/*.env."""
# ctest: gate
# ctest: nodes

import contextlib
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from networks import network  # noqa: F401 (a fixture)
from ports import free_port
from test_many_nodes import environments, job  # noqa: F401 (a fixture)

PODS = sorted((pathlib.Path(__file__).parent / "pods").glob("*.env"))

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18


WORKER = """
import json, os, time
found = {name: os.environ[name] for name in ["RANK", "WORLD_SIZE", "GROUP_RANK"]}
os.write(1, f"env {json.dumps(found)}\\n".encode())
"""


class Pods:
    """Two pods, each on a host of its own, where all names of both are found, as by the cluster's name service."""

    def __init__(self, network, file, directory):  # noqa: F811
        lines = file.read_text().splitlines()
        notes = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)
        self.arguments = notes.get("arguments", "").split()
        self.lines = [line for line in lines if not line.startswith("#")]
        self.host_name = notes["host name"]
        self.hosts = network(2)
        self.hosts_file = directory / "hosts"
        self.hosts_file.write_text("127.0.0.1 localhost\n" + "".join(
            f"{host.address} {notes['names']} {self.host_name}\n".replace("{index}", str(index))
            for index, host in enumerate(self.hosts)))

    def filled(self, text, index):
        return text.replace("{index}", str(index)).replace("{address}", self.hosts[index].address)

    def environment(self, index):
        return dict(self.filled(line, index).split("=", 1) for line in self.lines)

    def enter(self, index):
        """A preexec_fn: what is started with it is in this pod."""
        def enter():
            self.hosts[index].enter()
            name = self.filled(self.host_name, index).encode()
            libc = ctypes.CDLL(None, use_errno=True)
            if (libc.sethostname(name, len(name)) or libc.unshare(CLONE_NEWNS) or
                    libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or
                    libc.mount(os.fsencode(self.hosts_file), b"/etc/hosts", None, MS_BIND, None)):
                raise OSError(ctypes.get_errno(), "cannot enter the pod")
        return enter

    def kill(self, index):
        """All that runs in it, at once, as the kubelet does."""
        inside = subprocess.run(["ip", "netns", "pids", self.hosts[index].namespace],
                                check=True, capture_output=True, text=True).stdout
        for pid in inside.split():
            with contextlib.suppress(ProcessLookupError):  # another's end was its end
                os.kill(int(pid), signal.SIGKILL)


def told(result):
    """What the workers of a node said."""
    return [json.loads(line.removeprefix("env ")) for line in result.stdout.splitlines() if line.startswith("env ")]


def forms_one_job(pods, job, elastic_run):  # noqa: F811
    nodes = [elastic_run.start(*pods.arguments, "--log-level=info", job.worker, "0",
                               env=pods.environment(index), preexec_fn=pods.enter(index))
             for index in (1, 0)]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    found = [each for result in reversed(results) for each in told(result)]
    workers = int(pods.environment(0).get("PET_NPROC_PER_NODE", 1))
    assert {each["WORLD_SIZE"] for each in found} == {str(2 * workers)}
    assert sorted((int(each["GROUP_RANK"]), int(each["LOCAL_RANK"])) for each in found) == [
        (node, rank) for node in range(2) for rank in range(workers)]
    assert [each["GROUP_RANK"] for each in found] == sorted(each["GROUP_RANK"] for each in found), "ranks are the pods'"


@pytest.mark.parametrize("file", PODS, ids=lambda path: path.stem)
def test_pods_form_one_job_by_their_environment_alone(file, network, job, elastic_run, tmp_path):  # noqa: F811
    forms_one_job(Pods(network, file, tmp_path), job, elastic_run)


def test_pod_0s_replacement_is_found_by_its_name_though_its_address_is_another(network, elastic_run, script, tmp_path):  # noqa: F811
    pods = Pods(network, next(file for file in PODS if file.stem == "indexed-job"), tmp_path)
    last_round = tmp_path / "last_round"
    # It has looked before it is seen to run.
    worker = script("worker.py", f"import os; is_last = os.path.exists({str(last_round)!r})\n{WORKER}" """
if not is_last:
    time.sleep(600)
""")

    def start(index):
        return elastic_run.start("--rdzv-conf=last_call_timeout=1", worker, env=pods.environment(index),
                                 preexec_fn=pods.enter(index))

    first, other = start(0), start(1)
    for node in first, other:
        environments(node, 1)
    last_round.touch()
    pods.kill(0)
    first.wait()
    gone = pods.hosts[0].address
    pods.hosts[0] = network.add()
    pods.hosts_file.write_text(pods.hosts_file.read_text().replace(f"{gone} ", f"{pods.hosts[0].address} "))
    results = [start(0).wait(), other.wait()]
    assert [result.returncode for result in results] == [0, 0], results
    assert {each["WORLD_SIZE"] for result in results for each in told(result)} == {"2"}


def test_the_store_is_at_a_free_port_of_the_pods_own_and_at_any_other_where_none_is(job):  # noqa: F811
    taken, own = free_port(), free_port()
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", taken))
        holder.listen()
        nodes = job.nodes(2, script_arguments=["0"], env={"HOST_PORTS": f"{taken},{own}", "POD_IP": "127.0.0.1"})
        found = [environments(node, 1)[0] for node in nodes]
        assert [node.wait().returncode for node in nodes] == [0, 0]
        assert {(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found} == {("127.0.0.1", str(own))}

        nodes = job.nodes(2, script_arguments=["0"], env={"HOST_PORTS": str(taken)})
        found = [environments(node, 1)[0] for node in nodes]
        assert [node.wait().returncode for node in nodes] == [0, 0]
        assert not {each["MASTER_PORT"] for each in found} & {str(taken), str(own)}


def test_each_round_has_another_port_of_the_pods_own(job, script):  # noqa: F811
    ports = {str(free_port()) for _ in range(3)}
    once = script("once.py", job.worker.read_text().replace(
        "time.sleep(600)", "sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')"))
    nodes = job.nodes(2, "--max-restarts=1", script=once, env={"HOST_PORTS": ",".join(ports)})
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    # Who fails first has said where it was; its node may have stopped the other before that did.
    used = {each["TORCHELASTIC_RESTART_COUNT"]: each["MASTER_PORT"] for result in results for each in told(result)}
    assert sorted(used) == ["0", "1"]
    assert used["0"] != used["1"] and set(used.values()) <= ports, used
