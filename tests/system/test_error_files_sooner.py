"""With --warm-workers a worker's error file stops the others before the worker has ended of its exception; what becomes
of it decides whether it has failed."""
# ctest: nodes

import json
import signal

import pytest
from harness import alive
from test_many_nodes import job  # noqa: F401

# Each round of rank 0 does the next of its parts: when all others are there it writes its error file as torch does, or only a
# part of that, and ends when it is told to, with that exit code. After a half rank 0 writes no more, and rank 1 does the
# same in its place when it is told to. All say which of their rounds they are in, and that they live when they are asked.
WORKER = """
import json, os, sys, time
place, parts, rank = sys.argv[1], sys.argv[2].split(","), int(os.environ["RANK"])
number = 0
while os.path.exists(f"{place}/began.{rank}.{number}"):
    number += 1
open(f"{place}/began.{rank}.{number}", "w").close()
def say(text):
    os.write(1, f"{text} {number} {rank} {os.getpid()}\\n".encode())
def wait_for(name):
    while not os.path.exists(f"{place}/{name}.{number}"):
        time.sleep(0.005)
say("began")
how, code = parts[number].split(":") if number < len(parts) else ("", "0")
if how == "" or rank > (how == "half"):
    wait_for("ask")
    say("lives")
    wait_for("end")
    sys.exit(0)
text = json.dumps({"message": {"message": "ValueError: bad data", "extraInfo": {
    "py_callstack": "Traceback (most recent call last):\\n  ...\\nValueError: bad data\\n", "timestamp": str(int(time.time()))}}})
for other in range(int(os.environ["WORLD_SIZE"])):
    while not os.path.exists(f"{place}/began.{other}.{number}"):
        time.sleep(0.005)
if rank == 1:
    wait_for("other")
elif how in ("part", "half"):
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        file.write(text[:-3])
    say("part")
    wait_for("whole")  # never, after a half
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    file.write(text)
say("wrote")
wait_for("die")
os._exit(int(code))
"""


class Rounds:
    def __init__(self, elastic_run, script):
        self.place = elastic_run.directory
        self.elastic_run = elastic_run
        self.worker = script("rounds.py", WORKER)

    def start(self, parts, *arguments, warm="on", restarts=3, nproc=3, **options):
        self.nproc = nproc
        self.events_file = self.place / "events"
        self.run = self.elastic_run.start(
            f"--nproc-per-node={nproc}", f"--max-restarts={restarts}", f"--warm-workers={warm}", f"--log-dir={self.place}/logs",
            f"--events={self.events_file}", "--log-level=info", *arguments, self.worker, self.place, parts, **options)
        return self.run

    def tell(self, what, number):
        (self.place / f"{what}.{number}").touch()

    def said(self, what, number, rank):
        return int(self.run.wait_for_line(rf"^{what} {number} {rank} (\d+)$", stream="stdout").group(1))

    def others_live(self, number):
        self.tell("ask", number)
        for _ in range(1, self.nproc):
            self.said("lives", number, "[1-9]")

    def others_are_stopped(self, number):
        self.run.wait_for_line(f"round {number}: rank 0 has written an error file, and ends")
        for _ in range(1, self.nproc):
            self.run.wait_for_line(f"round {number}: rank [1-9] was killed by SIGTERM")

    def ends_well(self, number):
        for _ in range(self.nproc):
            self.said("began", number, "[0-9]")
        self.tell("ask", number)
        self.tell("end", number)
        result = self.run.wait()
        assert result.returncode == 0, result
        return result

    def events(self, name):
        return [event for event in map(json.loads, self.events_file.read_text().splitlines()) if event["event"] == name]


@pytest.fixture
def rounds(elastic_run, script):
    return Rounds(elastic_run, script)


def test_an_error_file_stops_the_others_before_its_worker_has_ended_whose_end_is_the_failure(rounds):
    rounds.start("whole:1")
    pid = rounds.said("wrote", 0, 0)
    rounds.others_are_stopped(0)
    assert alive(pid)
    rounds.tell("die", 0)
    result = rounds.ends_well(1)
    assert "restarting all workers (restart 1 of 3)" in result.stderr
    assert "1 of 3 restarts were used" in result.stderr
    exits = {event["rank"]: event for event in rounds.events("worker_exited") if event["round"] == 0}
    assert (exits[0]["exit_code"], exits[0]["stopped_by_us"]) == (1, False)
    assert [exits[rank]["stopped_by_us"] for rank in (1, 2)] == [True, True]
    (stop,) = [event for event in rounds.events("stop") if event["round"] == 0]
    assert stop["reason"] == "rank 0 has written an error file"
    (seen,) = rounds.events("error_file")
    assert (seen["round"], seen["rank"], seen["local_rank"]) == (0, 0, 0)


def test_a_worker_that_wrote_an_error_file_and_ends_well_costs_no_restart_and_no_error_file_stops_anybody_after_that(rounds):
    rounds.start("whole:0,whole:1")
    rounds.said("wrote", 0, 0)
    rounds.others_are_stopped(0)
    rounds.tell("die", 0)
    rounds.run.wait_for_line(r"rank 0 wrote an error file, but did not fail: .*; restarting all workers \(not counted as a restart\)")
    rounds.said("wrote", 1, 0)
    rounds.others_live(1)
    rounds.tell("die", 1)
    result = rounds.ends_well(2)
    assert "1 of 3 restarts were used" in result.stderr
    assert len(rounds.events("error_file")) == 1
    assert [event["restart_count"] for event in rounds.events("round_prepared")] == [0, 0, 1]


def test_a_worker_that_wrote_an_error_file_and_hangs_is_killed_like_any_other_and_costs_no_restart(rounds):
    rounds.start("whole:1", "--shutdown-timeout=1")
    rounds.said("wrote", 0, 0)
    rounds.others_are_stopped(0)
    rounds.run.wait_for_line("round 0: rank 0 was killed by SIGKILL")
    assert "0 of 3 restarts were used" in rounds.ends_well(1).stderr


def test_an_error_file_that_is_not_whole_stops_nobody(rounds):
    rounds.start("part:1")
    rounds.said("part", 0, 0)
    rounds.others_live(0)
    rounds.tell("whole", 0)
    rounds.others_are_stopped(0)
    rounds.tell("die", 0)
    rounds.ends_well(1)


def test_a_part_of_an_error_file_that_was_looked_at_stops_nobody(rounds):
    rounds.start("half:1")
    rounds.said("part", 0, 0)
    rounds.tell("other", 0)
    # Files are looked at in the order in which they were written: rank 0's was before this one.
    rounds.run.wait_for_line("round 0: rank [0-9] has written an error file, and ends")
    rounds.tell("die", 0)
    rounds.ends_well(1)
    (seen,) = rounds.events("error_file")
    assert seen["rank"] == 1
    exits = {event["rank"]: event["stopped_by_us"] for event in rounds.events("worker_exited") if event["round"] == 0}
    assert exits == {0: True, 1: False, 2: True}


@pytest.mark.parametrize("warm, restarts", [("off", 3), ("on", 0)])
def test_an_error_file_stops_nobody_without_warm_workers_or_without_a_restart(rounds, warm, restarts):
    rounds.start("whole:1", warm=warm, restarts=restarts)
    rounds.said("wrote", 0, 0)
    rounds.others_live(0)
    rounds.tell("die", 0)
    rounds.run.wait_for_line("round 0: rank 0 exited with code 1")
    if restarts:
        rounds.ends_well(1)
    else:
        assert rounds.run.wait().returncode == 1
    assert rounds.events("error_file") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_that_wrote_an_error_file_at_once(rounds, number):
    rounds.start("whole:1")
    pid = rounds.said("wrote", 0, 0)
    rounds.others_are_stopped(0)
    rounds.run.send_signal(number)
    assert rounds.run.wait().returncode != 0
    assert not alive(pid)


@pytest.mark.parametrize("code", [1, 0])
def test_the_other_nodes_are_stopped_too_and_the_restart_is_charged_when_the_failure_is_certain(rounds, job, code):  # noqa: F811
    first, second = job.nodes(2, "--warm-workers=auto", "--max-restarts=3", script=rounds.worker, nproc=1,
                              script_arguments=[rounds.place, f"whole:{code}"])
    rounds.run, rounds.nproc = first, 1
    pid = int(first.wait_for_line(r"^wrote 0 0 (\d+)$", stream="stdout").group(1))
    second.wait_for_line("round 0: stopping workers with SIGTERM: the coordinator stopped the round")
    second.wait_for_line("round 0: all its processes have ended")
    assert alive(pid)
    rounds.tell("die", 0)
    for node in (first, second):
        node.wait_for_line(r"^began 1 \d", stream="stdout")
    for what in ("ask", "end"):
        rounds.tell(what, 1)
    results = [node.wait() for node in (first, second)]
    assert [result.returncode for result in results] == [0, 0], results
    for result in results:
        assert f"{code} of 3 restarts were used" in result.stderr
        assert ("not counted as a restart" in result.stderr) == (code == 0)
