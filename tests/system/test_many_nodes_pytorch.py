"""Real PyTorch over several hosts, of which some are lost, and others come: training goes on."""
# ctest: computes
# ctest: long
# ctest: release-only
# ctest: clock

import gzip
import pathlib
import re
import signal

import pytest

from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import job  # noqa: F401 (a fixture)
from test_nothing_left import kill_in_one_call
from workers import LEAVE

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "fashion_mnist.py"
# Hosts of the tests' own have names that nobody resolves: gloo is told where it is.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}


def kill_node(node):
    """The whole node at once, as if its power were cut; but its sockets are closed."""
    launcher = node.launcher()
    kill_in_one_call([node.pid, launcher, *(each.pid for each in node.processes() if each.parent == launcher)])
    assert node.wait().returncode == -signal.SIGKILL


IMAGES = 30_000  # of the training data's 60,000
STEPS = -(-IMAGES // 256)


@pytest.fixture
def half_of_the_data(tmp_path):
    """A directory with fewer images to train on, and all to test with."""
    whole, place = pathlib.Path("/usr/share/datasets/fashion-mnist"), tmp_path / "data"
    place.mkdir()
    for name, size in (("train-images-idx3-ubyte.gz", 784), ("train-labels-idx1-ubyte.gz", 1)):
        with gzip.open(whole / name) as file:
            head = bytearray(file.read(16 if size > 1 else 8))
            head[4:8] = IMAGES.to_bytes(4, "big")
            (place / name).write_bytes(gzip.compress(bytes(head) + file.read(IMAGES * size), compresslevel=1))
    for name in ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"):
        (place / name).symlink_to(whole / name)
    return place


# The example, in which rank 0 tells of each tenth step, and goes on from some of them when the test lets it. At the end
# every rank but those of the first host takes its time.
HOLDS = (20, 50, 80)
LINGERS = f"""
import builtins, os, pathlib, re, runpy, socket, sys, time
tell = print
def tell_and_hold(*words, **how):
    tell(*words, **how)
    step = int((re.match("step ([0-9]+)/", str(words[0])) or [0, 0])[1])
    while any(step >= hold and not pathlib.Path(f"on from {{hold}}").exists() for hold in {HOLDS}):
        time.sleep(0.02)
builtins.print = tell_and_hold
sys.argv[0] = {str(EXAMPLE)!r}
runpy.run_path(sys.argv[0], run_name="__main__")
while socket.gethostname() != "node0" and not pathlib.Path("host is done").exists():
    time.sleep(0.02)
sys.stdout.flush()
{LEAVE}"""


@pytest.mark.time_limit(500)
def test_fashion_mnist_ends_as_it_should_though_nodes_are_killed_added_silenced_and_the_host_is_done_first(
        network, job, script, half_of_the_data, tmp_path):
    worker = script("lingers.py", LINGERS)
    hosts = network(5)
    job.host = hosts[0].address

    def start(host):
        return job.node("--max-restarts=0", nnodes="3:4", script=worker, env=ONE_THREAD, preexec_fn=host.enter,
                        conf="last_call_timeout=60,loss_timeout=10",
                        script_arguments=["--epochs=1", "--data", half_of_the_data, "--checkpoint", tmp_path / "model.pt",
                                          "--checkpoint-every=10", "--log-every=10"])

    nodes = [start(host) for host in hosts[:4]]
    # Rank 0 tells of the steps; whichever node has it.
    for node in nodes:
        node.wait_for_line("round 0: 4 nodes, 4 workers", timeout=60)
    by_rank = {int(re.search(r"this is node (\d)", node.stderr.text).group(1)): node for node in nodes}
    teller = by_rank[0]
    assert teller is nodes[0]

    def step(least):
        while int(teller.wait_for_line(rf"^step (\d+)/{STEPS} ", timeout=90, stream="stdout").group(1)) < least:
            pass

    def go_on(hold):
        (job.elastic_run.directory / f"on from {hold}").touch()

    step(20)
    kill_node(nodes[1])
    go_on(20)
    for node in (nodes[0], nodes[2], nodes[3]):
        node.wait_for_line(r"round 1: 3 nodes, 3 workers.*node1", timeout=60)
    step(50)
    nodes.append(start(hosts[4]))
    for node in (nodes[0], nodes[2], nodes[3], nodes[4]):
        node.wait_for_line(r"round 2: 4 nodes, 4 workers", timeout=60)
    go_on(50)
    step(80)
    hosts[2].silence()
    go_on(80)
    for node in (nodes[0], nodes[3], nodes[4]):
        node.wait_for_line(r"round 3: 3 nodes, 3 workers.*node2", timeout=60)
    teller.wait_for_line("exited with code 0", timeout=120)
    (job.elastic_run.directory / "host is done").touch()
    results = [node.wait() for node in (nodes[0], nodes[3], nodes[4])]
    assert [result.returncode for result in results] == [0, 0, 0], results
    told = results[0].stdout
    found = re.findall(r"^test accuracy: (.*) % of 10000 images$", told, re.MULTILINE)
    assert len(found) == 1 and float(found[0]) >= 75, results[0]
    # From where it was, each time, and not from the beginning.
    assert len(re.findall(r"^resumed from step (\d+)", told, re.MULTILINE)) == 3, told
    assert "restart 1" not in results[0].stderr
    hosts[2].restore()
    nodes[2].send_signal(signal.SIGTERM)
    nodes[2].wait()
