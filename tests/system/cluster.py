"""A job whose nodes are hosts of their own, and whose workers note their lives."""

import os
import pathlib
import signal
import tempfile

import pytest

import lives
from lives import STAMPS, Worker

LOSS_TIMEOUT = 5  # seconds, of which a lease is three fifths; the leader looks at the file each fifth


class Cluster:
    """Nodes of one job on hosts of their own, which meet in a file that all hosts reach, or at the address of the first
    host, or of one more whose coordinator runs alone."""

    def __init__(self, elastic_run, static_c, network, place):
        """What all hosts reach is in the directory `place`."""
        self._run = elastic_run
        self._network = network
        self._program = static_c(STAMPS.replace("for (;;) {", 'for (;;) {\n    if (access("done", F_OK) == 0) return 0;'))
        self._done = pathlib.Path(elastic_run.directory) / "done"
        self.shared = place / "shared"
        self.shared.mkdir()
        self._mounts = place
        self.nodes = []

    def start(self, count, nnodes, kind="file", conf="", loss_timeout=LOSS_TIMEOUT):
        self.hosts = list(self._network(count))
        endpoint = ""
        if kind == "endpoint":
            endpoint = f"{self.hosts[0].address}:29400"
        elif kind == "alone":
            self.coordinator_host = self._network.add()
            endpoint = f"{self.coordinator_host.address}:29400"
            self.coordinator = self._run.start("--coordinator-only", f"--rdzv-endpoint={endpoint}",
                                               preexec_fn=self.coordinator_host.enter)
            self.coordinator.wait_for_line("the coordinator listens")
        place = "store_type=file" if kind == "file" else ""
        conf = ",".join(filter(None, [place, f"loss_timeout={loss_timeout},last_call_timeout=60", conf]))
        self._command = [f"--nnodes={nnodes}", "--nproc-per-node=1", "--rdzv-backend=c10d",
                         "--rdzv-id=job", f"--rdzv-conf={conf}", "--log-level=debug", "--no-python", self._program]
        self._endpoint = endpoint
        for host in self.hosts:
            self.join(host)
            # The first hosts the coordinator.
            if len(self.nodes) == 1 and kind != "alone":
                self.nodes[0].wait_for_line("this node hosts the coordinator")
        self.round_of(self.nodes)

    def join(self, host):
        if not self._endpoint and not self._mount_of(host).is_symlink():
            self.reach_file(host)
        endpoint = self._endpoint or self._mount_of(host) / "meeting"
        self.nodes.append(self._run.start(f"--rdzv-endpoint={endpoint}", *self._command, preexec_fn=host.enter))
        return self.nodes[-1]

    def _mount_of(self, host):
        """The directory of the file, as this host sees it."""
        return self._mounts / host.name

    def reach_file(self, host):
        self._mount_of(host).symlink_to(self.shared)

    def lose_file(self, host):
        """The file is not there for this host any more; for the others it is."""
        self._mount_of(host).unlink()

    def round_of(self, nodes):
        """Waits for the workers of a round of these nodes and no others."""
        for node in nodes:
            while Worker(node, pathlib.Path(self._run.directory)).world != len(nodes):
                pass

    def assert_no_rank_lived_twice(self):
        """Nor two worlds. Returns the workers' lives."""
        return lives.check(pathlib.Path(self._run.directory))

    def cut(self, ones, others):
        for one in ones:
            for other in others:
                one.cut_off_from(other)
                other.cut_off_from(one)

    def heal(self, ones, others):
        for one in ones:
            for other in others:
                one.reach_again(other)
                other.reach_again(one)

    def succeed(self, nodes):
        """The workers of these nodes are done; those that are started after that are not."""
        self._done.touch()
        assert [node.wait().returncode for node in nodes] == [0] * len(nodes)
        self._done.unlink()

    def end(self):
        for node in self.nodes:
            if node.popen.poll() is None:
                node.send_signal(signal.SIGTERM)
        return [node.wait() for node in self.nodes]


@pytest.fixture
def cluster(elastic_run, static_c, network, tmp_path):  # noqa: F811
    # In memory: the entry of the file is synchronized with the disk, which other work may keep busy.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as place:
        yield Cluster(elastic_run, static_c, network, pathlib.Path(place))


def hosts_of(nodes):
    return [node for node in nodes if "this node hosts the coordinator" in node.stderr.text]
