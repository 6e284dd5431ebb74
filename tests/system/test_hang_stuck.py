"""Hangs that end by themselves, with --hang=restart, where a node's workers cannot be ended: docs/hangs.md."""
# ctest: long

import re
import subprocess

import pytest

import harness
from test_hang_restart import job  # noqa: F401 (a fixture)

PATIENCE = 120

# In the first round a rank of the second node waits for a file server that never answers, and nothing can end it: from
# SIGKILL on it is in state D. Its node is blamed for the first time, for which it would stay.
READS = """
def read_block():
    note("stuck", str(os.getpid()))
    os.stat(os.environ["DEAF"])


note(f"world_{number}_{rank}", str(world))
steps(3)
if number == 0 and os.environ["NODE"] == "127.0.0.2" and os.environ["LOCAL_RANK"] == "0":
    read_block()
all_reduce()
"""


@pytest.fixture
def stuck(job, deaf_server):  # noqa: F811
    """stuck(body, ...): how the two nodes of a job ended, of which the first can go on without the second. When both
    have ended the process that cannot end is still there, in state D."""

    def run(body, *options, env=None):
        first = job.node("127.0.0.1", "1:2", body, *options, conf=",stuck_timeout=2")
        second = job.node("127.0.0.2", "1:2", body, *options, conf=",stuck_timeout=2",
                          env={"DEAF": str(deaf_server.directory / "file")} | (env or {}),
                          preexec_fn=deaf_server.mount_here)
        deaf_server.start()
        result = first.wait(timeout=PATIENCE)
        assert result.returncode == 0, result
        second.popen.wait(PATIENCE)
        process = int((job.directory / "stuck").read_text())
        assert harness.read_process(process).state == "D", process
        deaf_server.close()
        return result, second.wait(timeout=PATIENCE)

    return run


def worlds(directory, number):
    """How many ranks the job had in that round, as each of them says."""
    return [file.read_text() for file in sorted(directory.glob(f"world_{number}_?"))]


@pytest.mark.parametrize("what", ["fail", "ignore"])
def test_a_worker_that_cannot_be_ended_costs_its_node_and_nobody_waits_for_it(job, stuck, what):  # noqa: F811
    first, second = stuck(READS, f"--stuck-worker={what}")
    assert "action: restart (hang 1 of 3)" in first.stderr, first
    assert second.returncode == 1, second
    assert re.search(r"the job hung, and this node cannot end its workers: process \d+ \(\w+, state D, in \w+\) "
                     r"survived SIGKILL$", second.stderr, re.MULTILINE), second
    assert worlds(job.directory, 1) == ["2", "2"], first


ALONE = READS.replace('os.environ["NODE"] == "127.0.0.2" and os.environ["LOCAL_RANK"] == "0"', "rank == 1")


def test_a_job_of_one_node_goes_on_beside_a_worker_that_is_to_be_ignored(job, deaf_server):  # noqa: F811
    run = job.alone(ALONE, "--stuck-worker=ignore", "--rdzv-conf=stuck_timeout=2", ranks=2,
                    env={"DEAF": str(deaf_server.directory / "file")}, preexec_fn=deaf_server.mount_here)
    deaf_server.start()
    assert run.popen.wait(PATIENCE) == 0, run.so_far()
    process = int((job.directory / "stuck").read_text())
    assert harness.read_process(process).state == "D", process
    deaf_server.close()
    assert f"warning: process {process} (" in run.wait(timeout=PATIENCE).stderr
    assert worlds(job.directory, 1) == ["2", "2"]


# The rank waits in state D for a child of vfork(), and that one for the file server: it cannot be ended.
VFORKS = READS.replace("""    note("stuck", str(os.getpid()))
    os.stat(os.environ["DEAF"])
""", """    import ctypes
    child = os.path.join(directory, "stuck")
    ctypes.CDLL(os.environ["LIBRARY"]).in_vfork(child.encode(), os.environ["DEAF"].encode())
""")
LIBRARY = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
void in_vfork(const char* place, const char* path) {
  struct stat facts;
  char text[32];
  if (vfork()) return;
  int file = open(place, O_WRONLY | O_CREAT, 0644);
  snprintf(text, sizeof text, "%d", (int)getpid());
  if (write(file, text, strlen(text)) > 0) stat(path, &facts);
  _exit(0);
}
"""


def test_a_node_with_a_worker_in_state_d_is_out_at_once_and_nobody_waits_for_that(job, stuck, tmp_path):  # noqa: F811
    library = tmp_path / "vforks.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], check=True, text=True, input=LIBRARY)
    # It is looked at when it has been in that state for 10 s.
    first, second = stuck(VFORKS, "--hang-timeout=8s", env={"LIBRARY": str(library)})
    assert "action: restart, without node 1 (127.0.0.2) (hang 1 of 3)" in first.stderr, first
    assert second.returncode == 1, second
    assert re.search("the job hung, and this node is at fault: .*state D", second.stderr), second
    assert worlds(job.directory, 1) == ["2", "2"], first
