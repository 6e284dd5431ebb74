"""--auto-tunning in a job of several nodes: docs/auto-tunning.md."""
# ctest: long
# ctest: nodes

import os
import pathlib

import pytest

from loaders import WORKERS, Training
from workers import free_port


class TwoNodes:
    """A job of two nodes on this host; the first one has group rank 0, and its workers' steps are measured."""

    def __init__(self, elastic_run, script):
        self.nodes = [Training(elastic_run, script, str(rank)) for rank in range(2)]
        self.first, self.other = self.nodes

    def start(self, *options, step="", program=None):
        """`step`: what a worker does before each step. `program`: the command line of the other node's elastic-run."""
        meeting = ("--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=job",
                   "--rdzv-conf=last_call_timeout=60,loss_timeout=20")
        for rank, node in enumerate(self.nodes):
            node.start(*meeting, f"--node-rank={rank}", *options, step=step + WORKERS,
                       program=program if rank == 1 else None)
            if rank == 0:
                node.run.wait_for_line("this node hosts the coordinator")

    def end(self):
        self.first.go.touch()
        results = [node.run.wait() for node in self.nodes]
        assert [result.returncode for result in results] == [0, 0], results


@pytest.fixture
def two_nodes(elastic_run, script):
    return TwoNodes(elastic_run, script)


@pytest.mark.time_limit(600)
def test_one_node_finds_the_best_number_of_loaders_for_all_nodes_within_five_changes(two_nodes):
    two_nodes.start(step="""if step == 0:
        note("file", config)
    """)
    two_nodes.first.wait_for("ended", timeout=500)
    assert [(event["from"], event["to"]) for event in two_nodes.first.events("kept")] == [(1, 2), (2, 4)]
    assert 2 <= len(two_nodes.first.events("tried")) <= 5, two_nodes.first.events()
    for node in two_nodes.nodes:
        node.adopts(4)
        assert all(note[2]["num_workers"] >= 1 for note in node.notes())
    files = [next(note[3] for note in node.notes() if note[1] == "file") for node in two_nodes.nodes]
    assert files[0] != files[1]
    assert len({pathlib.Path(file).read_text() for file in files}) == 1
    two_nodes.end()
    assert two_nodes.other.events() == []  # who decides tells


@pytest.mark.time_limit(600)
def test_a_rank_of_another_node_that_dies_of_memory_takes_the_change_back_for_all(two_nodes):
    two_nodes.start("--max-restarts=2", step="""if os.environ["GROUP_RANK"] == "1" and values["num_workers"] >= 4:
        note("dies")
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
    """)
    back = two_nodes.first.wait_for("taken_back", timeout=500)
    assert (back["value"], back["from"], back["to"]) == ("num_workers", 4, 2)
    assert "a rank died of memory (cuda-out-of-memory)" in back["message"]
    two_nodes.first.wait_for("ended", timeout=500)
    for node in two_nodes.nodes:
        node.adopts(2, attempt=1)
        assert node.notes()[-1][0] == 1
    two_nodes.end()
    assert [note[0] for note in two_nodes.other.notes() if note[1] == "dies"] == [0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes mounts in a namespace of its own")
@pytest.mark.time_limit(600)
def test_nothing_is_tried_where_another_node_has_no_memory_for_it(two_nodes, elastic_run):
    (elastic_run.directory / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 1000000 kB\n")
    two_nodes.start(program=["unshare", "--mount", "--propagation", "private", "sh", "-ec",
                             'mount --bind meminfo /proc/meminfo; exec "$0" "$@"', elastic_run.binary])
    ended = two_nodes.first.wait_for("ended", timeout=500)
    assert "976 MiB of memory are free on another node, and a change needs 1024 MiB" in ended["message"]
    assert two_nodes.first.events("tried") == []
    two_nodes.end()
