"""A short run of each bench: that it runs to its end and prints what it promises. Its figures say nothing."""
# ctest: long
# ctest: release-only
# ctest: computes

import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys

import pytest
from warm_torch import ANY, TORCH

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_startup_compares_the_three_launchers(elastic_run, tmp_path):
    result = elastic_run.start("startup", "--ranks", "1,2", "--runs", "2", "--torchrun-runs", "1",
                               "--memory-runs", "1", "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": sys.prefix}).wait(timeout=220)
    assert result.returncode == 0, result
    assert "elastic-run" in result.stdout and "torchrun" in result.stdout
    assert json.loads((tmp_path / "figures.json").read_text())


def test_restart_compares_all_launchers_and_judges_the_goal(elastic_run, tmp_path):
    result = elastic_run.start("restart", "--ranks=3", "--runs=2", "--restarts=4", "--torchrun-runs=1",
                               "--torchrun-restarts=2", "--training-runs=1", "--training-ranks=2",
                               "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": sys.prefix}).wait(timeout=220)
    assert result.returncode == 0, result
    for part in ("RANK 0 OF 3 DIES", "A RANK OF 2 DIES", "GOALS", "restart: times the bare loop"):
        assert part in result.stdout
    found = json.loads((tmp_path / "figures.json").read_text())
    gaps = found["restart_ms"]
    lengths = {name: [len(of_run) for of_run in rounds.values()] for name, rounds in gaps.items()}
    assert lengths == {"elastic-run": [4, 4], "elastic-run, no logs": [4, 4], "elastic-run, bound": [4, 4],
                       "bare loop": [4, 4], "torchrun": [2], "torchrun, 1 ms": [2]}
    assert all(0 < gap < 30_000 for rounds in gaps.values() for of_run in rounds.values() for gap in of_run)
    # The goals: the ratio of the medians, round by round, and of these the median.
    goals = found["goals"]
    for goal, numerator, denominator, most in zip(goals, ["elastic-run", "elastic-run, bound"], ["bare loop", "elastic-run"],
                                                  [1.3, 1.02], strict=True):
        ratios = [statistics.median(gaps[numerator][number]) / statistics.median(gaps[denominator][number])
                  for number in gaps[denominator]]
        assert goal["median"] == pytest.approx(statistics.median(ratios))
        assert goal["reached"] == (goal["median"] <= most)
    assert ("MISSED" in result.stdout) == (not all(goal["reached"] for goal in goals))
    assert all(took > 0 for rounds in found["failure_to_step_ms"].values() for took in rounds.values())


FIRST_STEP_GOALS = {  # what: (bound, which side)
    "mapped: warm, times the floor": (1.25, "at most"), "mapped: times faster than fresh workers": (12, "at least"),
    "mapped: warm, CPU of a rank, s": (0.4, "at most"), "mapped: warm, order to first lines, ms": (50, "at most"),
    "memory: warm, times fresh workers": (0.5, "at most"), "first round: on, times off": (1.02, "at most")}


# Processor time that it takes to import what stands in PyTorch's place.
IMPORT_S = 0.2
BURN = f"import time\nwhile time.process_time() < {IMPORT_S}:\n    pass\n"

# In the example's place: its options, and ranks that do their steps each for itself.
EXAMPLE = """\
# Trains nothing.
import argparse
import time
import torch

parser = argparse.ArgumentParser()
for name in ("--epochs", "--checkpoint", "--checkpoint-every", "--log-every", "--mapped"):
    parser.add_argument(name)
args = parser.parse_args()

def train(rank, first_step, steps, optimizer):
    for step in range(first_step, steps):
        time.sleep(0.001)  # the work
        optimizer.step()

train(int(os.environ["RANK"]), 0, 235 * int(args.epochs), torch.optim)
"""


@pytest.fixture
def venv_without_pytorch(elastic_run, tmp_path):
    """An environment with a stand-in for PyTorch, and elastic-run in torchrun's place."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    packages, = place.glob("lib/python*/site-packages")
    for name, text in {"torch/__init__.py": BURN + TORCH, "torch/distributed.py": ANY, "torch/utils/__init__.py": "",
                       "torch/utils/data.py": ""}.items():
        (packages / name).parent.mkdir(exist_ok=True)
        (packages / name).write_text(text)
    (place / "bin/torchrun").symlink_to(elastic_run.binary)
    return place


def test_restart_measures_how_soon_training_goes_on_with_warm_workers_and_judges_each_goal(
        elastic_run, script, venv_without_pytorch, tmp_path):
    result = elastic_run.start("restart", "--first-step", "--data=mapped", "--training-runs=1", "--training-ranks=2",
                               "--memory-runs=1", "--memory-ranks=2", "--round-runs=1", "--round-epochs=10",
                               "--round-warm-after=0", "--json", tmp_path / "figures.json",
                               "--example", script("example.py", EXAMPLE), program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": str(venv_without_pytorch)}).wait(timeout=220)
    assert result.returncode == 0, result
    for part in ("RANK 1 OF 2 DIES", "MEMORY (PSS) OF A JOB OF 2 RANKS", "FIRST ROUND OF 2 RANKS", "GOALS"):
        assert part in result.stdout
    found = json.loads((tmp_path / "figures.json").read_text())
    runs = {one["launcher"]: one["runs"]["0"] for one in found["first_step"]}
    assert list(runs) == ["floor: all imported", "elastic-run, warm", "elastic-run", "torchrun"]
    for launcher, run in runs.items():
        # What is imported already takes no processor time again.
        is_fresh = launcher in ("elastic-run", "torchrun")
        assert len(run["cpu_s"]) == 2 and all(0 < cpu_s and (cpu_s >= IMPORT_S) == is_fresh for cpu_s in run["cpu_s"])
        if launcher != "torchrun":  # it does not tell when it orders
            assert 0 < run["gone_ms"] and 0 < run["lines_ms"] and run["gone_ms"] + run["lines_ms"] < run["step_ms"]
    jobs = {launcher: of_runs["0"] for launcher, of_runs in found["memory_kib"].items()}
    assert all(0 < job["ranks"] < job["job"] for job in jobs.values())
    rounds = {launcher: took["0"] for launcher, took in found["first_round_ms"].items()}

    floor, warm, fresh, _ = runs.values()
    medians = [warm["step_ms"] / floor["step_ms"], fresh["step_ms"] / warm["step_ms"], statistics.mean(warm["cpu_s"]),
               warm["lines_ms"], jobs["elastic-run, warm"]["job"] / jobs["elastic-run"]["job"],
               rounds["elastic-run, warm"] / rounds["elastic-run"]]
    assert {goal["what"]: (goal["bound"], goal["side"]) for goal in found["goals"]} == FIRST_STEP_GOALS
    assert [goal["median"] for goal in found["goals"]] == pytest.approx(medians)
    printed = re.findall(r"^ *(reached|MISSED)  ", result.stdout, re.MULTILINE)
    assert printed == ["reached" if goal["reached"] else "MISSED" for goal in found["goals"]]


def test_the_example_is_as_the_measurement_of_its_first_step_knows_it(tmp_path):
    sys.path.insert(0, str(ROOT / "tests/bench"))
    try:
        from first_step import Place
    finally:
        del sys.path[0]
    place = Place(tmp_path)
    for copy, marks in ((place.script, 3), (place.listing_script, 4)):
        compile(copy.read_text(), copy, "exec")
        assert copy.read_text().count("_mark(") == marks


WAITED_FOR = """\
import os, signal, sys
def say(*words):  # a line in one piece: others write to the same pipe
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
signal.signal(signal.SIGTERM, lambda *_: (say("told", rank), os._exit(0)))
say("runs", rank, attempt, "wave" in sys.modules, os.environ["MASTER_PORT"].isdigit(), *sys.argv[1:], os.getpid())
signal.pause()
"""


@pytest.fixture
def waiting(elastic_run, script, tmp_path):
    """(the stand-in for a launcher, with 2 ranks that run and 2 interpreters that wait; the ranks' pids)"""
    os.mkfifo(tmp_path / "marks")
    (tmp_path / "modules").write_text("wave\nno.such.module")
    marks = os.open(tmp_path / "marks", os.O_RDWR)
    running = elastic_run.start(elastic_run.binary, sys.executable, "2", tmp_path / "modules", tmp_path / "marks",
                                script("script.py", WAITED_FOR), "--given",
                                program=[sys.executable, ROOT / "tests/bench/waiting.py"])
    lines = [running.wait_for_line(r"^(runs .*|2 interpreters wait)", stream="stdout")[1] for _ in range(3)]
    pids = {line.split()[1]: int(line.split()[-1]) for line in lines if line.startswith("runs")}
    assert sorted(line.rpartition(" ")[0] for line in lines) == [
        "2 interpreters", "runs 0 0 False True --given", "runs 1 0 False True --given"]
    yield running, pids
    os.close(marks)


def test_interpreters_that_wait_take_the_ranks_when_the_old_ones_have_gone(waiting):
    running, pids = waiting
    os.kill(pids["1"], signal.SIGKILL)
    assert running.wait_for_line("(.*)", stream="stdout")[1] == "told 0"
    lines = [running.wait_for_line("(runs .*)", stream="stdout")[1].split() for _ in range(2)]
    assert sorted(line[1:-1] for line in lines) == [["0", "1", "True", "True", "--given"], ["1", "1", "True", "True", "--given"]]
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_interpreters_that_wait_when_their_launcher_ends(waiting, number):
    running, _ = waiting
    running.send_signal(number)
    running.wait()


BREAKS_ONCE = """#!/bin/sh
case "$*" in
*fashion_mnist*)
  if mkdir {broke} 2>/dev/null; then
    echo "rank 1 kills itself at step 8"
    echo "    self._capture_process_failures("
    echo "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    exit 1
  fi ;;
esac
exec {torchrun} "$@"
"""


def test_restart_counts_the_runs_that_torchruns_own_mistake_has_ended(elastic_run, tmp_path):
    real, fake = pathlib.Path(sys.prefix) / "bin", tmp_path / "venv/bin"
    fake.mkdir(parents=True)
    (fake / "python3").write_text(f'#!/bin/sh\nexec {real / "python3"} "$@"\n')
    (fake / "torchrun").write_text(BREAKS_ONCE.format(broke=tmp_path / "broke", torchrun=real / "torchrun"))
    for program in fake.iterdir():
        program.chmod(0o755)
    result = elastic_run.start("restart", "--ranks=1", "--runs=1", "--restarts=1", "--torchrun-runs=1",
                               "--torchrun-restarts=1", "--training-runs=1", "--training-ranks=2",
                               "--json", tmp_path / "figures.json", program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": str(fake.parent)}).wait(timeout=220)
    assert result.returncode == 0, result
    found = json.loads((tmp_path / "figures.json").read_text())
    # It may break once more, really.
    assert found["broken_runs"]["elastic-run"] == 0 and found["broken_runs"]["torchrun"] >= 1
    assert found["failure_to_step_ms"]["torchrun"]["0"] > 0


def test_guardian_prints_time_and_memory_and_judges_both(elastic_run, tmp_path):
    result = elastic_run.start("guardian", "--pairs", "10", "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=220)
    assert result.returncode == 0, result
    found = json.loads((tmp_path / "figures.json").read_text())
    assert len(found["plain_ns"]) == len(found["split_ns"]) == 10 and found["private_kib"] > 0
    assert len(re.findall(r" (reached|MISSED)$", result.stdout, re.MULTILINE)) == 2


def store_ratio(load, other, figure="quiet_cpu_us_per_op"):
    """The median of the ratios of elastic-run's figure to another server's, round by round."""
    ours, others = load["servers"]["elastic-run"], load["servers"][other]
    assert ours.keys() == others.keys()
    return statistics.median(ours[number][figure] / others[number][figure] for number in ours)


def test_status_measures_restarts_with_and_without_a_load_of_requests(elastic_run, tmp_path):
    result = elastic_run.start("status", "--ranks=2", "--runs=2", "--restarts=3", "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary), "ELASTIC_RUN_VENV": sys.prefix}).wait()
    assert result.returncode == 0, result
    found = json.loads((tmp_path / "figures.json").read_text())
    for runs in found["restart_ms"].values():
        assert sorted(runs) == ["0", "1"] and all(len(gaps) == 3 and min(gaps) > 0 for gaps in runs.values())
    assert len(found["requests_per_s"]) == 2 and min(found["requests_per_s"]) > 0
    assert len(found["goals"]) == 1 and found["goals"][0]["median"] > 0


def test_store_compares_the_three_servers_and_judges_each_goal(elastic_run, tmp_path):
    result = elastic_run.start("store", "--only=get,wait-notify,pipelined,wake,connects,memory,groups",
                               "--clients=1,2", "--idle=0,300", "--rounds=2", "--turns=1", "--seconds=0.05",
                               "--wake=40", "--connects=100", "--ranks=2", "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": sys.prefix}).wait(timeout=220)
    assert result.returncode == 0, result
    for part in ("CPU OF THE SERVER", "PRIVATE MEMORY OF AN IDLE CLIENT", "init_process_group", "GOALS"):
        assert part in result.stdout
    found = json.loads((tmp_path / "figures.json").read_text())
    loads = {(load["operation"], load["clients"], load["idle"], load["depth"]): load for load in found["loads"]}
    assert loads.keys() == {*((operation, clients, idle, 1) for operation in ("get", "wait-notify")
                              for clients in (1, 2) for idle in (0, 300)),
                            ("get", 8, 0, 8), ("wake", 40, 0, 1), ("connects", 100, 0, 1)}
    for load in loads.values():
        assert load["servers"].keys() == {"elastic-run", "PyTorch", "bare store"}
        for rounds in load["servers"].values():
            assert len(rounds) == 2
            assert all(figures["operations"] > 0 and figures["ops_per_s"] > 0 for figures in rounds.values())
            # Real work, and not the work of something else.
            assert all(0.02 < figures["quiet_cpu_us_per_op"] < 20_000 for figures in rounds.values())
    assert all(len(rounds) == 2 and all(0 <= kib < 100 for kib in rounds.values())
               for rounds in found["idle_client_kib"].values())
    assert all(len(rounds) == 2 and all(took > 0 for took in rounds.values())
               for rounds in found["init_process_group_ms"]["2"].values())

    # The goals, from the figures: each at its worst point.
    expected = []
    for operation, depth in (("get", 1), ("wait-notify", 1), ("get", 8), ("wake", 1), ("connects", 1)):
        alike = [load for (name, _, _, deep), load in loads.items() if (name, deep) == (operation, depth)]
        expected.append((max(store_ratio(load, "bare store") for load in alike), "<=", 1.15))
        expected.append((max(store_ratio(load, "PyTorch") for load in alike), "<=", 1.0))
        if len(alike) > 1:
            flat = [[loads[operation, clients, idle, 1]["servers"]["elastic-run"] for idle in (300, 0)]
                    for clients in (1, 2)]
            expected.append((max(statistics.median(
                many[number]["quiet_cpu_us_per_op"] / none[number]["quiet_cpu_us_per_op"] for number in none)
                for many, none in flat), "<=", 1.1))
        if depth == 8:
            expected.append((store_ratio(alike[0], "PyTorch", "ops_per_s"), ">=", 4.0))
    memory = found["idle_client_kib"]
    expected.append((statistics.median(memory["elastic-run"][number] / memory["PyTorch"][number]
                                       for number in memory["PyTorch"]), "<=", 1.0))
    assert [(goal["median"], goal["bound"]) for goal in found["goals"]] == [
        (pytest.approx(median), bound) for median, _, bound in expected]
    assert [goal["reached"] for goal in found["goals"]] == [
        median <= bound if side == "<=" else median >= bound for median, side, bound in expected]
    printed = re.findall(r"^ *(reached|MISSED)  ", result.stdout, re.MULTILINE)
    assert printed == ["reached" if goal["reached"] else "MISSED" for goal in found["goals"]]


@pytest.mark.parametrize("side", ["ours", "torch"])
def test_the_load_generator_verifies_every_request_of_a_server(elastic_run, side):
    from store_servers import OurServer, TorchProcess

    server = (OurServer if side == "ours" else TorchProcess)(elastic_run)
    program = elastic_run.binary.parent / "tests/bench/store_load"
    result = elastic_run(f"--port={server.port}", "--verify", program=[program])
    assert result.returncode == 0, result
    assert sorted(json.loads(result.stdout)["verified"]) == sorted([
        "PING", "CHECK", "SET", "GET", "APPEND", "COMPARE_SET", "ADD", "MULTI_SET", "MULTI_GET", "WAIT", "CANCEL_WAIT",
        "QUEUE_LEN", "QUEUE_PUSH", "QUEUE_POP", "BARRIER", "DELETE_KEY", "LIST_KEYS", "GETNUMKEYS"])
    server.end()


@pytest.mark.parametrize("arguments, message", [
    (["--operation=get"], "--port: it is needed; --help lists the options"),
    (["--port=1", "--operation=put"],
     "--operation=put: not one of get, set, set-ack, add, check, wait-notify; --help lists the options"),
    (["--port=1", "--operation=get", "--clients", "0"],
     "--clients=0: not a whole number from 1 to 100000; --help lists the options"),
    (["--port=1", "--verify", "--scenario=wake"],
     "--operation, --scenario, --verify: one of them is needed, and only one; --help lists the options"),
    (["--port=1", "get"], "get: no such option; --help lists the options"),
])
def test_the_load_generator_tells_a_wrong_option(elastic_run, arguments, message):
    result = elastic_run(*arguments, program=[elastic_run.binary.parent / "tests/bench/store_load"])
    assert (result.returncode, result.stderr) == (2, f"store_load: error: {message}\n")


def test_tee_compares_speed_and_delay_and_judges_each_goal(elastic_run, tmp_path):
    result = elastic_run.start("tee", "--ranks=2", "--megabytes=3", "--runs=2", "--torchrun-runs=1", "--stamps=30",
                               "--pause-us=500", "--json", tmp_path / "figures.json", program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": sys.prefix}).wait(timeout=220)
    assert result.returncode == 0, result
    for part in ("2 RANKS WRITE 3 MB EACH", "DELAY OF A LINE", "lines missing", "GOALS"):
        assert part in result.stdout
    found = json.loads((tmp_path / "figures.json").read_text())
    runs, delays = found["runs"], found["delay_us"]
    assert {name: len(of_name) for name, of_name in runs.items()} == {"elastic-run": 2, "torchrun": 1, "tee(1)": 2}
    for of_name in runs.values():
        for run in of_name.values():
            assert run["lines_written"] == 60_000 and run["bytes_in_files"] == run["bytes_written"] == 6_000_000
            assert 0 < run["flow_s"] <= run["total_s"]
    assert {name: len(of_name) for name, of_name in delays.items()} == dict.fromkeys(
        ["elastic-run", "torchrun", "tee(1)", "pipe alone"], 60)
    assert all(delay > 0 for of_name in delays.values() for delay in of_name)

    ours, theirs, tee = (runs[name] for name in ("elastic-run", "torchrun", "tee(1)"))
    expected = [
        (statistics.median(theirs[number]["flow_s"] / ours[number]["flow_s"] for number in theirs), ">=", 3),
        (statistics.median(ours[number]["total_s"] / tee[number]["total_s"] for number in tee), "<=", 2),
        (statistics.median(run["lines_shown"] / 60_000 for run in ours.values()), ">=", 1),
        (1, ">=", 1),
        (sorted(delays["elastic-run"])[59] / 1000, "<=", 2),
    ]
    assert [(goal["median"], goal["bound"]) for goal in found["goals"]] == [
        (pytest.approx(median), bound) for median, _, bound in expected]
    printed = re.findall(r"^ *(reached|MISSED)  ", result.stdout, re.MULTILINE)
    assert printed == ["reached" if (median <= bound if side == "<=" else median >= bound) else "MISSED"
                       for median, side, bound in expected]


def test_rendezvous_counts_what_each_node_costs_and_judges_each_goal(elastic_run, tmp_path):
    result = elastic_run.start("rendezvous", "--nodes=3,6", "--runs=1", "--torchrun-nodes=0",
                               "--failover-pairs=1", "--steady=1", "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=220)
    assert result.returncode == 0, result
    found = json.loads((tmp_path / "figures.json").read_text())
    for nodes, (run,) in found["runs"].items():
        assert run["nodes"] == int(nodes)
        assert 0 < run["started_ms"] <= run["formed_ms"] and run["spawns_ms"] > 0
        # Both processes killed: the lease is waited for, and not counted.
        assert 0 < run["again_guardian_ms"] and 0 < run["again_killed_ms"] < run["killed_ms"]
        assert run["agent_cpu_ms"] > 0 and 100 < run["bytes_per_agent"] < 10_000
        assert 4 <= run["messages_per_agent"] < 100
        assert all(kib > 0 for kib in (*run["coordinator_kib"], *run["agent_kib"]))
    for (pair,) in found["failover"].values():
        assert all(pair[which][name] > 0 for which in ("off", "majority") for name in ("formed_ms", "agent_us"))
    formed, again, *flat, failover = found["goals"]
    pair = found["failover"]["6"][0]
    assert failover["median"] == pytest.approx(pair["majority"]["formed_ms"] / pair["off"]["formed_ms"])
    few, many = (found["runs"][nodes][0] for nodes in ("3", "6"))
    assert formed["median"] == pytest.approx(many["formed_ms"] / many["spawns_ms"]) and formed["bound"] == 3
    assert again["max"] == pytest.approx(max(many["again_guardian_ms"], many["again_killed_ms"]) / 1000)
    assert flat[-1]["median"] == pytest.approx(many["bytes_per_agent"] / few["bytes_per_agent"])
    printed = re.findall(r"^ *(reached|MISSED)  ", result.stdout, re.MULTILINE)
    assert printed == ["reached" if goal["reached"] else "MISSED" for goal in found["goals"]]


def test_failures_measures_each_and_judges_each_goal(elastic_run, tmp_path):
    result = elastic_run.start("failures", "--runs=1", "--torchrun=0", "--only=worker,launcher,node,late,round", "--json",
                               tmp_path / "figures.json", program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=220)
    assert result.returncode == 0, result
    figures = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert [(figure["goal_ms"], len(figure["ours_ms"])) for figure in figures] == [
        (20, 5), (500, 1), (500, 1), (500, 1), (None, 1)]
    worker, launcher, node, late, new_round = (figure["ours_ms"] for figure in figures)
    assert all(took > 0 for took in (*worker, *launcher, *new_round))
    # Less the lease and the delay of scale_up: were these not waited for, they would be far below.
    assert all(took > -100 for took in (*node, *late))
    printed = re.findall(r"^ *(reached|MISSED)  ", result.stdout, re.MULTILINE)
    assert printed == ["reached" if figure["reached"] else "MISSED" for figure in figures if figure["goal_ms"]]


def health_bench(elastic_run, tmp_path, *arguments):
    """(what it printed, its figures); no dlrover-run is on its PATH."""
    places = [place for place in os.environ["PATH"].split(":") if not os.path.exists(f"{place}/dlrover-run")]
    result = elastic_run.start("health", "--nodes=2", "--json", tmp_path / "figures.json", *arguments,
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary), "PATH": ":".join(places)}).wait(timeout=220)
    assert result.returncode == 0, result
    return result.stdout, json.loads((tmp_path / "figures.json").read_text())


def test_health_takes_the_check_apart_and_judges_the_goal(elastic_run, tmp_path):
    printed, found = health_bench(elastic_run, tmp_path, "--runs=2")
    assert "dlrover-run: not installed" in printed
    runs = found["runs"]["2"]
    assert len(runs) == 2
    for run in runs:
        assert 2 <= len(run["phase_ms"]) <= 4 and all(took >= 0 for took in run["phase_ms"])
        # Whole milliseconds of two clocks: each phase and both ends of the check may be one off.
        assert 0 < sum(run["phase_ms"]) < run["over_ms"] + 6 and run["over_ms"] < run["checked_ms"] + 1
        assert run["plain_ms"] > 0 and 0 <= run["slow"] <= 2
    figures = {figure["what"]: figure for figure in found["figures"]}
    assert figures["phase 0, each by itself, ms"]["values"] == [run["phase_ms"][0] for run in runs]
    assert figures["all phases, ms"]["values"] == [sum(run["phase_ms"]) for run in runs]
    assert figures["launch: times that without it"]["values"] == [run["checked_ms"] / run["plain_ms"] for run in runs]
    assert all(figure["peer"] == [] for figure in found["figures"])
    goal = figures["start to the end of the check, ms"]
    assert goal["goal"] == 500 and goal["values"] == [run["over_ms"] for run in runs]
    assert goal["reached"] == (statistics.median(goal["values"]) <= 500)
    assert re.findall(r"^ *(reached|MISSED)  ", printed, re.MULTILINE) == ["reached" if goal["reached"] else "MISSED"]


# In the place of dlrover-run: meets at the job master, has /tmp/dlrover for itself and tells of a check of RANK + 1 s.
PEER_AGENT = """#!{python}
import datetime, os, socket, sys
host, port = os.environ["DLROVER_MASTER_ADDR"].split(":")
socket.create_connection((host, int(port)), 10).close()
open("/tmp/dlrover/mine", "x")
now = datetime.datetime.now(datetime.timezone.utc)
assert sys.argv[1:3] == ["--nnodes=2", "--nproc-per-node=1"] and "--no-python" not in sys.argv
if "--network-check" in sys.argv:
    end = now + datetime.timedelta(seconds=1 + int(os.environ["NODE_RANK"]))
    for when, what in ((now, "[dlrover-trainer] starting node-check workers for entrypoint: python3"),
                       (end, "Network check result is True")):
        print(f"[{{when:%Y-%m-%d %H:%M:%S}},{{when.microsecond // 1000:03}}] [INFO] [training.py:1:run] {{what}}")
{more}"""

PEER_MASTER = """#!{python}
import socket, sys
arguments = dict(one.split("=") for one in sys.argv[3:])
assert sys.argv[1:3] == ["-m", "dlrover.python.master.main"] and arguments["--node_num"] == "2"
listener = socket.create_server(("127.0.0.1", int(arguments["--port"])))
while True:
    listener.accept()[0].close()
"""


def peer(tmp_path, more=""):
    """The path of a dlrover-run with its Python beside it, which only knows the job master."""
    if subprocess.run(["unshare", "--mount", "--map-root-user", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces for us")
    (tmp_path / "peer").mkdir()
    for name, text in (("dlrover-run", PEER_AGENT), ("python3", PEER_MASTER)):
        (tmp_path / "peer" / name).write_text(text.format(python=sys.executable, more=more))
        (tmp_path / "peer" / name).chmod(0o755)
    return tmp_path / "peer/dlrover-run"


def test_health_measures_two_agents_of_dlrover_run_beside_it(elastic_run, tmp_path):
    places = [pathlib.Path(place) for place in ("/tmp/dlrover", "/tmp/ckpt_sock")]
    before = [place.exists() for place in places]
    printed, found = health_bench(elastic_run, tmp_path, "--runs=1", "--peer-runs=2", "--dlrover-run", peer(tmp_path))
    assert [place.exists() for place in places] == before
    runs = found["dlrover-run"]["runs"]
    assert len(runs) == 2 and found["dlrover-run"]["missing"] == ""
    for run in runs:
        # From the first agent's begin to the end of the second's, which is told to take 2 s.
        assert 2000 <= run["phases_ms"] < run["over_ms"] < run["phases_ms"] + run["checked_ms"]
        assert run["plain_ms"] > 0
    peers = {figure["what"]: figure["peer"] for figure in found["figures"]}
    assert peers["all phases, ms"] == [run["phases_ms"] for run in runs]
    assert peers["added to the launch, ms"] == [run["checked_ms"] - run["plain_ms"] for run in runs]
    assert peers["phase 0, each by itself, ms"] == []
    assert "dlrover-run: medians, runs: 2" in printed
    middle = statistics.median(peers["all phases, ms"])
    assert re.search(rf" all phases, ms .* 1  +{middle:.0f}$", printed, re.MULTILINE), printed


def test_health_says_why_dlrover_run_is_not_measured(elastic_run, tmp_path):
    printed, found = health_bench(elastic_run, tmp_path, "--runs=1", "--dlrover-run",
                                  peer(tmp_path, "sys.exit('no luck here')"))
    assert found["dlrover-run"]["runs"] == []
    assert "dlrover-run: not measured: an agent has failed: " in printed and "no luck here" in printed


def gpu_bench(elastic_run, *arguments, **env):
    result = elastic_run.start("gpu", *arguments, program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)} | env).wait(timeout=220)
    assert result.returncode == 0, result
    return result.stdout


def test_gpu_holds_the_check_of_a_pair_to_the_least_and_says_that_stand_ins_are_no_gpu(elastic_run, tmp_path):
    printed = gpu_bench(elastic_run, f"--stand-ins={elastic_run.binary.parent}/tests/stand_ins/gpu", "--runs=2",
                        "--bytes=65536", "--json", tmp_path / "figures.json")
    assert printed.startswith("STAND-INS FOR NVIDIA'S LIBRARIES: these figures say nothing of a GPU.\n")
    found = json.loads((tmp_path / "figures.json").read_text())
    assert found["is_stand_in"] and found["gpu"]["name"] == "Stand-in H100" and len(found["runs"]) == 2
    for run in found["runs"]:
        steps = [run["floor"][f"{step}_ms"] for step in ("context", "id", "init", "gather", "teardown")]
        assert all(took >= 0 for took in steps) and max(steps) <= run["floor"]["total_ms"]
        assert len(run["check"]["phase_ms"]) >= 3 and run["check"]["gather_ms"] > 0
        probe = run["probe"]
        assert 0 < probe["gather: init_ms"] + probe["gather: first_ms"] < probe["gather_ms"] and probe["compute_ms"] > 0
    pairs_ms = [sum(run["check"]["phase_ms"][:2]) for run in found["runs"]]
    took, ratio = found["goals"]
    assert (took["median"], took["bound"]) == (pytest.approx(statistics.median(pairs_ms) / 1000), 2)
    assert (ratio["median"], ratio["bound"]) == (pytest.approx(statistics.median(
        pair / run["floor"]["total_ms"] for pair, run in zip(pairs_ms, found["runs"]))), 1.5)
    printed_goals = re.findall(r"^ *(reached|MISSED)  ", printed, re.MULTILINE)
    assert printed_goals == ["reached" if goal["reached"] else "MISSED" for goal in found["goals"]]


def test_gpu_is_skipped_by_name_where_there_is_none(elastic_run):
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has one")
    assert gpu_bench(elastic_run) == "skipped: no GPU: there is no /dev/nvidia0\n"


@pytest.mark.time_limit(500)
def test_hang_times_the_verdict_the_next_step_the_stacks_and_the_watching_and_judges_each_goal(elastic_run, tmp_path):
    result = elastic_run.start("hang", "--ranks=4", "--hangs=1", "--turns=3", "--limit=2", "--runs=2", "--torchrun-runs=1",
                               "--torch-ranks=3", "--torch-jobs=1", "--torch-limit=5", "--seconds=1", "--json",
                               tmp_path / "figures.json", program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": sys.prefix}).wait(timeout=400)
    assert result.returncode == 0, result
    for part in ("4 RANKS HANG, --hang-timeout=2s", "THEIR STACKS", "A HANG ENDS", "PROCESSOR TIME OF THE LAUNCHER",
                 "GOALS"):
        assert part in result.stdout
    found = json.loads((tmp_path / "figures.json").read_text())
    hang, = found["hangs"]
    # No evidence is asked for before the second look, 5 s after the first.
    assert 4.9 < hang["suspect_s"] < hang["verdict_s"], hang
    stacks = [hang[name] for name in ("all_ms", "one_ms", "py_spy_ms", "py_spy_start_ms")]
    assert all(len(took) == 3 and min(took) > 0 for took in stacks), hang
    stop, = found["stops"]
    assert 4.9 < stop["suspect_s"] < stop["verdict_s"] <= stop["stopped_s"], stop
    (ours,), (torchrun,) = found["next"]["elastic-run"], found["next"]["torchrun"]
    assert 4.9 < ours["known_s"] <= ours["stopped_s"] < ours["next_s"], ours
    # The collective begins right after the last step, and its timeout with it.
    assert -0.5 < torchrun["known_s"] < torchrun["stopped_s"] < torchrun["next_s"], torchrun
    watched = found["launcher_cpu_percent"]
    assert {launcher: len(runs) for launcher, runs in watched.items()} == {
        "--hang=report": 2, "--hang=off": 2, "torchrun": 1}
    assert all(0 < percent < 100 for runs in watched.values() for percent in runs.values()), watched
    medians = [hang["verdict_s"], (statistics.median(hang["all_ms"]) - statistics.median(hang["one_ms"])) / 3, stop["stopped_s"],
               statistics.median(watched["--hang=report"][number] - watched["--hang=off"][number] for number in ("0", "1"))]
    assert [goal["median"] for goal in found["goals"]] == pytest.approx(medians)
    assert [goal["bound"] for goal in found["goals"]] == [15, 1, 25, 0.5]
