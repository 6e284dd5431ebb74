"""A log directory on a file system that never answers: training goes on, and its end is not held up."""
# ctest: gate

import re

import harness
import pytest
from file_server import FLUSH

# Says where its error file would be. With two arguments, rank 0 of the first round first puts the first,
# which never answers, in the place of the run's log directory, and fails.
WORKER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
int main(int argc, char** argv) {
  const char* file = getenv("TORCHELASTIC_ERROR_FILE");
  const char* attempt = getenv("TORCHELASTIC_RESTART_COUNT");
  printf("attempt %s file %s\n", attempt, file);
  fflush(stdout);
  if (argc < 2 || strcmp(attempt, "0")) return 0;
  char run[4096];
  snprintf(run, sizeof run, "%s", file);
  *strstr(run, "/attempt_0/") = 0;
  return mount(argv[1], run, NULL, MS_BIND, NULL) ? 9 : 3;
}
"""


@pytest.fixture
def launch(elastic_run, deaf_server):
    """launch(arguments...): the result of a job from whose launcher the file server is let go at the end."""

    def run(*arguments):
        running = elastic_run.start(*arguments, preexec_fn=deaf_server.mount_here)
        deaf_server.start()
        running.popen.wait(harness.RUN_PATIENCE)
        assert deaf_server.asked.is_set()
        deaf_server.close()
        return running.wait()

    return run


def test_training_goes_on_without_a_log_directory_that_hangs_from_the_start(launch, static_c, deaf_server):
    place = deaf_server.directory / "logs"
    result = launch(f"--log-dir={place}", "--no-python", static_c(WORKER))
    assert (result.returncode, result.stdout) == (0, "attempt 0 file \n"), result
    assert f"warning: {place} does not answer; going on without log directory and error files\n" in result.stderr
    launcher_left(result)


def test_training_goes_on_without_a_log_directory_that_hangs_later_on(launch, static_c, deaf_server, tmp_path):
    result = launch("--log-dir=logs", "--max-restarts=1", "--no-python", static_c(WORKER), deaf_server.directory)
    run = next((tmp_path / "logs").iterdir())
    assert (result.returncode, result.stdout) == (0, f"attempt 0 file {run}/attempt_0/0/error.json\n"
                                                     "attempt 1 file \n"), result
    assert f"warning: {run} does not answer; going on without log directory and error files\n" in result.stderr
    launcher_left(result)


@pytest.mark.parametrize("streams", [1, 3])
def test_a_file_system_that_stops_answering_after_the_first_of_a_round_s_workers_keeps_none_from_starting(
        elastic_run, tmp_path, file_server, sanitized, streams):
    """Each closing of a file of its own asks it. The launcher closes one for each file that it opens; then it does,
    beside its loop, with the first that a worker has."""
    if sanitized:
        pytest.skip("that build starts workers by plain vfork, which copies all descriptors (docs/supervision.md)")
    ranks = 4
    server = file_server(deaf_at=FLUSH, answered=ranks * streams.bit_count())
    running = elastic_run.start(f"--nproc-per-node={ranks}", "--log-dir=logs", "-r", str(streams), "--no-python", "sh",
                                "-c", ": > done.$RANK", preexec_fn=server.mount_here)
    server.start()
    harness.wait_until(lambda: len(list(tmp_path.glob("done.*"))) == ranks, what="all workers have run")
    assert server.asked.wait(harness.PATIENCE)
    server.close()  # which ends the closing that their ends wait for
    assert running.wait().returncode == 0


def launcher_left(result):
    """The thread that waits for the file system keeps the launcher from ending, but not elastic-run."""
    assert re.search(r"warning: /\S+ does not answer; output for it is lost\n", result.stderr), result
    assert re.search(r"error: (the launcher \(process \d+\)|process \d+ \(elastic_launch, state D, .*\)) "
                     r"did not exit after SIGKILL; giving up on it\n$", result.stderr), result
    assert result.stderr.count("giving up on it") == 1
