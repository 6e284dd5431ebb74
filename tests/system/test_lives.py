"""Who looks at the lives of a job's workers finds a rank that was there twice, and two worlds at once."""
# ctest: gate

import signal

import pytest

import lives
from harness import wait_until
from lives import STAMPS, STAMPS_IN_PYTHON, TIMES

# began, was alive, rank, fence
SOUND = [(100, 200, 0, "1"), (110, 210, 1, "1"), (220, 300, 0, "2"), (230, 310, 1, "2")]


def write(directory, workers):
    for number, (began, was_alive, rank, fence) in enumerate(workers):
        who = f"node{rank} {rank} 2 {fence}\n"
        (directory / f"stamps.{number}").write_bytes(TIMES.pack(began, was_alive) + who.encode())


def test_two_worlds_one_after_the_other_are_sound(tmp_path):
    write(tmp_path, SOUND)
    (tmp_path / "stamps.9").write_bytes(b"")  # was killed before it noted anything
    assert [life.rank for life in lives.check(tmp_path)] == [0, 1, 0, 1]


@pytest.mark.parametrize("planted, what", [
    ((150, 160, 0, "1"), "rank 0 was there twice"),
    ((205, 400, 1, "2"), "rank 1 was there twice"),
    ((190, 195, 2, "2"), "two worlds were there at once"),
    ((320, 330, 2, "1"), "an earlier world began after a later one")])
def test_what_may_not_be_is_found(tmp_path, planted, what):
    write(tmp_path, [*SOUND, planted])
    with pytest.raises(AssertionError, match=what):
        lives.check(tmp_path)


def test_a_directory_in_which_nobody_has_noted_anything_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="no worker has noted anything"):
        lives.check(tmp_path)


def test_workers_of_either_language_that_live_at_once_with_one_rank_are_found(elastic_run, static_c, script):
    """Two jobs in one directory, as two halves of one job would be."""
    python = script("worker.py", STAMPS_IN_PYTHON + 'os.write(1, b"up\\n")\ntime.sleep(600)\n')
    jobs = []
    for arguments in (["--no-python", static_c(STAMPS)], [python]):
        jobs.append(elastic_run.start(*arguments))
        jobs[-1].wait_for_line("^up", stream="stdout")

    def overlap():
        found = lives.of_workers(elastic_run.directory)
        return all(one.was_alive > found[-1].began for one in found)  # each has noted that it lives since the last one began

    wait_until(overlap, what="both to have lived at once")
    with pytest.raises(AssertionError, match="rank 0 was there twice"):
        lives.check(elastic_run.directory)
    for job in jobs:
        job.send_signal(signal.SIGTERM)
        job.wait()
