"""How far workers are, without a change of their script, and by its word: docs/progress.md."""

import json
import os
import re
import signal

import pytest

from harness import alive, wait_until
from http_client import http_port, metrics, status, value
from workers import free_port

# Prints a line for each step, which `line` makes of the step, until it is told to end.
STEPS = """
import os, sys, time
step = 0
while not os.path.exists(sys.argv[1]):
    step += 1
    {line}
    time.sleep(0.02)
"""
MEGATRON = 'print(f" iteration {step:8}/ 500000 | consumed samples: {step * 8} | elapsed time per iteration (ms): 20.0 |", flush=True)'
BAR = r'sys.stderr.write(f"\r  1%|#    | {step}/500000 [00:12<03:14,  2.42it/s]"); sys.stderr.flush()'
ANY = 'print(f"trained batch {step}, loss 0.5", flush=True)'


@pytest.fixture
def train(elastic_run, script):
    """train(line, ...): a job whose workers print that; .port is that of its status, and end() ends it."""
    go = elastic_run.directory / "go"

    def start(line, *options, worker=None, **popen):
        run = elastic_run.start("--standalone", "--http-port=0", "--log-level=info", *options,
                                worker or script("train.py", STEPS.format(line=line)), go, **popen)
        run.port = http_port(run)
        return run

    yield start
    go.write_text("")


def node_progress(run):
    return status(run.port)["node"]["progress"]


def wait_for_progress(run, is_wanted=lambda progress: True):
    """The node's progress as soon as there is one that is wanted."""
    found = []

    def look():
        progress = node_progress(run)
        found[:] = [progress]
        return progress is not None and is_wanted(progress)

    wait_until(look, timeout=60, what=f"progress; the last was {found}")
    return found[0]


def page(elastic_run, run):
    shown = elastic_run(f"--status=127.0.0.1:{run.port}")
    assert shown.returncode == 0, shown
    return re.sub(r"\s+", " ", shown.stdout)


@pytest.mark.parametrize("line, options, source", [
    (MEGATRON, ["--tee=1"], "megatron"),
    (MEGATRON, ["--tee=3", "--local-ranks-filter=1", "--nproc-per-node=2"], "megatron"),
    (BAR, [], "tqdm"),
    (BAR, ["--tee=2"], "tqdm"),
    (ANY, ["--tee=1"], "lines"),
    ('print(f"lap {step} done, retry 7", flush=True)', ["--tee=1", r"--progress-pattern=lap (\d+) done"],
     "progress-pattern"),
])
def test_steps_are_seen_in_output_that_passes_through_us(train, line, options, source):
    run = train(line, *options)
    first = wait_for_progress(run)
    assert first["source"] == source and first["rank"] in (0, 1), first
    later = wait_for_progress(run, lambda progress: progress["step"] > first["step"] and progress["steps_per_second"])
    assert later["age_seconds"] < 60


@pytest.mark.parametrize("options", [["--redirects=3"], ["--redirects=1", "--nproc-per-node=2"]])
def test_steps_are_seen_in_log_files_that_workers_write_themselves(train, options):
    first = wait_for_progress(run := train(MEGATRON, *options))
    assert first["source"] == "megatron" and first["rank"] is not None
    wait_for_progress(run, lambda progress: progress["step"] > first["step"])


def test_steps_are_seen_in_a_file_that_is_our_own_stdout_and_of_several_workers_it_is_of_none(train, tmp_path):
    with open(tmp_path / "out", "wb") as out:
        run = train(MEGATRON, "--nproc-per-node=2", stdout=out)
        first = wait_for_progress(run)
    assert first["source"] == "megatron" and first["rank"] is None


def test_steps_are_seen_in_a_file_to_which_a_script_has_led_its_stdout(train, script):
    run = train("", "--no-python", worker=script("train.sh", """#!/bin/sh
exec > own.log
step=0
while [ ! -e "$1" ]; do
    step=$((step + 1))
    echo "step: $step  loss: 0.5"
    sleep 0.02
done
"""))
    assert wait_for_progress(run)["source"] == "torchtitan"


def test_a_line_that_repeats_its_step_is_no_progress(train):
    run = train('print(" iteration 7/ 500 | waits |" if step > 50 else f" iteration {step}/ 500 | 0 |", flush=True)'
                .replace('" iteration 7/', '" iteration 50/'), "--tee=1")
    wait_for_progress(run, lambda progress: progress["step"] == 50)
    wait_for_progress(run, lambda progress: progress["age_seconds"] > 1)
    assert node_progress(run)["step"] == 50


# --- What a script says

def test_a_python_script_says_its_step_and_phase_by_a_file(train):
    run = train("""
    if step == 1:
        says = open(os.environ["ELASTIC_RUN_PROGRESS"], "w", buffering=1)
        says.write("garbage\\n" + "x" * 100000 + "\\nstep=oops phase=none\\n\\0\\n")
    says.write(f"step={step} phase=" + ("train" if step < 20 else "checkpoint") + "\\n")
""")
    told = wait_for_progress(run, lambda progress: progress["phase"] == "checkpoint")
    assert told["source"] == "script" and told["step"] >= 20 and told["rank"] == 0


def test_a_shell_script_says_its_step_and_no_open_or_write_waits_for_a_reader(train, script):
    run = train("", "--no-python", "--nproc-per-node=2", worker=script("train.sh", """#!/bin/sh
step=0
while [ ! -e "$1" ]; do
    step=$((step + 1))
    echo "step=$step" > "$ELASTIC_RUN_PROGRESS"
    sleep 0.02
done
"""))
    wait_for_progress(run, lambda progress: progress["step"] > 5)
    wait_until(lambda: all(worker["progress"] for worker in status(run.port)["node"]["workers"]), timeout=60,
               what="both workers to be seen")


def test_a_worker_that_floods_its_file_does_not_keep_the_launcher_from_answering(train):
    run = train("""
    says = os.open(os.environ["ELASTIC_RUN_PROGRESS"], os.O_WRONLY)
    while not os.path.exists(sys.argv[1]):
        for _ in range(1000):
            step += 1
            os.write(says, b"step=%d\\n" % step)
""")
    first = wait_for_progress(run)
    wait_for_progress(run, lambda progress: progress["step"] > first["step"])


def test_dlrovers_file_is_read_where_a_flag_asks_for_it(train):
    run = train("""
    import json
    path = os.environ["RUNTIME_METRICS_PATH"]
    with open(path + ".new", "w") as file:
        json.dump({"step": step, "timestamp": time.time()}, file)
    os.replace(path + ".new", path)
""", "--progress-from=dlrover")
    first = wait_for_progress(run)
    assert first["source"] == "runtime-metrics"
    wait_for_progress(run, lambda progress: progress["step"] > first["step"])


def test_a_step_in_dlrovers_file_is_none_of_the_next_round(elastic_run, script, tmp_path):
    run = elastic_run.start("--standalone", "--http-port=0", "--nproc-per-node=1", "--max-restarts=1",
                            "--progress-from=dlrover", "--log-level=info", script("fails.py", """\
import json, os, sys
path = os.environ["RUNTIME_METRICS_PATH"]
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    with open(path, "w") as file:
        json.dump({"step": 5000}, file)
    sys.exit(3)
sys.exit(4 if os.path.exists(path) else 0)
"""))
    assert run.wait().returncode == 0


# --- Where it is told

def test_progress_is_told_by_status_metrics_and_one_event(elastic_run, train, tmp_path):
    run = train(MEGATRON, "--tee=1", "--nproc-per-node=2", "--rdzv-id=job", f"--events={tmp_path}/events")
    wait_until(lambda: all((worker["progress"] or {}).get("steps_per_second")
                           for worker in status(run.port)["node"]["workers"]), timeout=60, what="both workers' steps")
    wait_until(lambda: status(run.port)["coordinator"]["jobs"][0]["progress"], timeout=60, what="the coordinator to know")
    [told] = status(run.port)["coordinator"]["jobs"]
    assert told["progress"]["step"] >= 1 and told["progress"]["source"] == "megatron"
    assert told["members"][0]["progress"]["step"] == told["progress"]["step"]
    found, _ = metrics(run.port)
    job = status(run.port)["node"]["run_id"]
    assert value(found, "elastic_run_job_step", run_id=job) >= 1
    for rank in "01":
        assert value(found, "elastic_run_worker_step", run_id=job, rank=rank) >= 1
        assert value(found, "elastic_run_worker_steps_per_second", run_id=job, rank=rank) > 0
        assert value(found, "elastic_run_worker_progress_age_seconds", run_id=job, rank=rank) < 60
    assert re.search(r"progress step \d+, .*\(rank [01], megatron, train\)", page(elastic_run, run))
    (tmp_path / "go").write_text("")
    assert run.wait().returncode == 0
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    [seen] = [event for event in events if event["event"] == "progress_seen"]
    assert seen["source"] == "megatron" and seen["step"] >= 1 and seen["rank"] in (0, 1) and seen["round"] == 0


def test_the_coordinator_knows_how_far_the_ranks_of_other_nodes_are(elastic_run, script, tmp_path):
    """The last rank alone speaks, as with Megatron."""
    worker = script("train.py", STEPS.format(line=f"if os.environ['RANK'] == '1': {MEGATRON}"))
    endpoint = f"127.0.0.1:{free_port()}"
    nodes = [elastic_run.start("--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}", "--rdzv-id=job",
                               "--rdzv-conf=last_call_timeout=1", "--tee=1", worker, tmp_path / "go")
             for _ in range(2)]
    port = endpoint.split(":")[1]

    def progress():
        jobs = status(port)["coordinator"]["jobs"]
        return jobs and jobs[0]["progress"]

    for node in nodes:
        node.wait_for_line("round 0: 2 nodes")
    wait_until(progress, timeout=60, what="the coordinator to know")
    first = progress()
    assert first["rank"] == 1 and first["source"] == "megatron"
    wait_until(lambda: progress()["step"] > first["step"], timeout=60, what="a later step")
    (tmp_path / "go").write_text("")
    assert [node.wait().returncode for node in nodes] == [0, 0]


def test_where_nothing_can_be_seen_the_status_says_so_and_what_to_do(elastic_run, train):
    run = train(MEGATRON)  # stdout is ours, a pipe
    run.wait_for_line("iteration +50/", stream="stdout")
    assert node_progress(run) is None
    shown = page(elastic_run, run)
    assert "progress not seen; show elastic-run the steps" in shown
    for remedy in ("--tee=3", "--redirects=3", "--progress-pattern=RE", "step=N to the file $ELASTIC_RUN_PROGRESS"):
        assert remedy in shown


def test_a_new_round_begins_without_the_progress_of_the_last_one(train):
    run = train("""
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if first:
        print(f" iteration {step + 1000}/ 500000 | |", flush=True)
    if first and step == 10:
        sys.exit(3)
""", "--tee=1", "--max-restarts=1")
    run.wait_for_line("round 1: rank 0 started|round 1: .* started")
    wait_until(lambda: status(run.port)["node"]["restart_count"] == 1 and status(run.port)["node"]["ready"],
               what="the second round")
    assert node_progress(run) is None


# --- Bad patterns, and what is left

@pytest.mark.parametrize("pattern, why", [
    ("batch (", "missing )"),
    (r"batch \d+", "it has no group; put parentheses around the step"),
    (r"(\d+)/(\d+)", "it has 2 groups"),
    ("(" + "a" * 2000 + ")", "1024 is the most"),
])
def test_a_pattern_that_is_wrong_is_refused_with_the_reason(elastic_run, pattern, why):
    result = elastic_run(f"--progress-pattern={pattern}", "--no-python", "true")
    assert result.returncode == 2 and why in result.stderr and "--progress-pattern=" in result.stderr, result


def directories(programs):
    return list((programs.directory / "tmp").glob("elastic_run_*"))


def test_the_directory_is_ours_alone_and_goes_with_the_job(elastic_run, train, tmp_path):
    run = train(MEGATRON)
    run.wait_for_line("iteration +1/", stream="stdout")
    [directory] = directories(elastic_run)
    assert directory.stat().st_mode & 0o7777 == 0o700
    (tmp_path / "go").write_text("")
    assert run.wait().returncode == 0
    wait_until(lambda: directories(elastic_run) == [], what="the directory to go")


@pytest.mark.parametrize("who", ["launcher", "outer process"])
def test_the_directory_goes_where_either_of_our_processes_is_killed(elastic_run, train, who):
    run = train(MEGATRON)
    run.wait_for_line("iteration +1/", stream="stdout")
    launcher = run.launcher()
    assert len(directories(elastic_run)) == 1
    os.kill(launcher if who == "launcher" else run.popen.pid, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not alive(launcher), what="the launcher to end")
    wait_until(lambda: directories(elastic_run) == [], what="the directory to be removed")
