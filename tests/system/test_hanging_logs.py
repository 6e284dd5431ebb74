"""A log directory on a file system that never answers: training goes on, and its end is not held up."""

import re

import pytest

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
        running.popen.wait(60)
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


def launcher_left(result):
    """The thread that waits for the file system keeps the launcher from ending, but not elastic-run."""
    assert re.search(r"warning: /\S+ does not answer; what was to be written there is lost\n", result.stderr), result
    assert re.search(r"error: (the launcher \(process \d+\)|process \d+ \(elastic_launch, state D, .*\)) was killed but "
                     r"does not end; it is left behind\n$", result.stderr), result
    assert result.stderr.count("left behind") == 1
