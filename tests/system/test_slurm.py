"""Under a real Slurm: what is taken from it, its signals, lost nodes, requeued jobs, arrays, and the scripts of scripts/slurm."""
# ctest: long
# ctest: timeout=1800
# ctest: release-only
# ctest: clock

import json
import pathlib
import re

import pytest

from harness import alive, wait_until
from slurm_cluster import REQUEUE_STATUS, ask_until, cluster, slurm  # noqa: F401 (fixtures)
from workers import LEAVE

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "slurm"

# Says who and where it is, in one write; then it does what its argument says: "leave", or wait for a signal. It says
# each SIGUSR1 and SIGTERM that comes, and takes two seconds to end after SIGTERM.
WORKER = """
import json, os, signal, sys, time
names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "SLURMD_NODENAME",
         "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT", "SLURM_ARRAY_TASK_ID", "SLURM_STEP_ID"]
signals = {signal.SIGUSR1, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)

def say(text):
    os.write(1, (text + chr(10)).encode())

def took(number):
    say(f"rank {rank} got {signal.Signals(number).name}")

rank = os.environ["RANK"]
what, *more = sys.argv[1:] or ["wait"]
say("env " + json.dumps({name: os.environ[name] for name in names if name in os.environ} | {"PID": os.getpid()}))
if what == "leave":
    sys.exit(int(more[0]) if more else 0)
while (came := signal.sigwaitinfo(signals).si_signo) != signal.SIGTERM:
    took(came)
    if what == "leave-on-usr1":
        sys.exit(int(more[0]))
took(came)
end = time.monotonic() + (1000 if what == "stay" else 2)
while (left := end - time.monotonic()) > 0:
    if again := signal.sigtimedwait(signals, left):
        took(again.si_signo)
say(f"rank {rank} has saved")
"""


# A line that a worker has said of itself. Of one that is still being written only the beginning may be there.
WHOLE = r"env \{.*\}$"


@pytest.fixture
def worker(script):
    return script("worker.py", WORKER)


def environments(text):
    """What the workers found, each a dict."""
    return [json.loads(found) for found in re.findall(r"env (\{.*\})$", text, re.MULTILINE)]


def one_value(found, name):
    values = {each.get(name) for each in found}
    assert len(values) == 1, found
    return values.pop()


# --- What is taken from Slurm -----------------------------------------------------------------

ALL_REDUCE = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
sum = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(sum)
os.write(1, f"rank {dist.get_rank()} of {dist.get_world_size()} on {os.environ['SLURMD_NODENAME']}: {sum.item()}\\n".encode())
dist.destroy_process_group()
""" + LEAVE


@pytest.mark.time_limit(300)
def test_srun_over_three_nodes_without_any_flag_trains_with_pytorch(slurm, script):
    result = slurm.srun("-N3", "elastic-run", script("train.py", ALL_REDUCE)).wait(timeout=280)
    assert result.returncode == 0, result
    told = sorted(re.findall(r"^rank (\d) of (\d) on (\w+): (\S+)$", result.stdout, re.MULTILINE))
    assert told == [("0", "3", "node1", "6.0"), ("1", "3", "node2", "6.0"), ("2", "3", "node3", "6.0")], result


def test_the_nodes_of_a_step_prove_themselves_by_the_clusters_own_munge(slurm, cluster, worker):
    conf = f"--rdzv-conf=slurm_auth=munge,munge_socket={cluster.directory}/munge.socket"
    result = slurm.srun("-N2", "elastic-run", conf, "--log-level=INFO", worker, "leave").wait()
    assert result.returncode == 0, result
    assert sorted(each["SLURMD_NODENAME"] for each in environments(result.stdout)) == ["node1", "node2"]
    assert result.stderr.count("munge answers") == 2, result


def test_gpus_of_the_step_give_the_workers_of_each_node(slurm, worker):
    result = slurm.srun("-N2", "--gpus-per-node=2", "elastic-run", worker, "leave").wait()
    assert result.returncode == 0, result
    found = environments(result.stdout)
    assert sorted((each["RANK"], each["SLURMD_NODENAME"]) for each in found) == [
        ("0", "node1"), ("1", "node1"), ("2", "node2"), ("3", "node2")]


def test_a_step_of_some_of_a_jobs_nodes_is_a_job_of_these_nodes(slurm, worker, script):
    """And so are two of them at once, each with an endpoint of its own."""
    batch = script("two_steps", f"""#!/bin/bash
srun -N1 -n1 --relative=0 elastic-run {worker} leave &
srun -N2 -n2 --relative=1 elastic-run {worker} leave &
wait
""")
    job = slurm.sbatch("-N3", batch)
    assert job.wait() == "COMPLETED"
    found = environments(job.text)
    by_size = {size: [each for each in found if each["WORLD_SIZE"] == size] for size in ("1", "2")}
    assert sorted(each["SLURMD_NODENAME"] for each in by_size["1"]) == ["node1"], job.text
    assert sorted((each["RANK"], each["SLURMD_NODENAME"]) for each in by_size["2"]) == [("0", "node2"), ("1", "node3")]


def test_two_steps_on_the_same_nodes_at_once_do_not_meet(slurm, worker, script):
    batch = script("two_steps", f"""#!/bin/bash
srun -N2 -n2 --exact elastic-run {worker} &
srun -N2 -n2 --exact elastic-run {worker} &
wait
""")
    job = slurm.sbatch("-N2", "--ntasks=4", "--ntasks-per-node=2", batch)
    job.wait_for(WHOLE, count=4)
    found = environments(job.text)
    assert {each["WORLD_SIZE"] for each in found} == {"2"}, job.text
    assert {each["SLURM_STEP_ID"] for each in found} == {"0", "1"}
    assert len({each["TORCHELASTIC_RUN_ID"] for each in found}) == 2
    slurm.ask("scancel", job.number)
    job.wait()


def test_a_dry_run_says_what_came_from_slurm(slurm, worker):
    result = slurm.srun("-N2", "--gpus-per-node=1", "elastic-run", "--dry-run", "--max-restarts=2", worker).wait()
    assert result.returncode == 0, result
    for line in (r"SLURM_STEP_NUM_NODES=2", r"SLURM_STEP_NODELIST=node\[1-2\]", r"SLURM_GPUS_ON_NODE=1", r"SLURM_NODEID=1",
                 r"node1:2\d{4}\b"):
        assert re.search(line, result.stdout), (line, result)


def test_flags_win_each_by_itself(slurm, worker):
    result = slurm.srun("-N2", "--gpus-per-node=2", "elastic-run", "--nproc-per-node=1", "--rdzv-id=mine", worker, "leave").wait()
    assert result.returncode == 0, result
    found = environments(result.stdout)
    assert sorted((each["RANK"], each["SLURMD_NODENAME"]) for each in found) == [("0", "node1"), ("1", "node2")], result
    assert one_value(found, "TORCHELASTIC_RUN_ID") == "mine"


def test_a_rendezvous_of_ones_own_is_taken_whole(slurm, worker):
    """As `srun torchrun` is run: nothing of it is mixed with Slurm's."""
    port = 20000  # the hosts are the test's own
    result = slurm.srun("-N2", "elastic-run", "--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=node2:{port}", "--rdzv-id=mine",
                        "--log-level=info", worker, "leave").wait()
    assert result.returncode == 0, result
    assert one_value(environments(result.stdout), "WORLD_SIZE") == "2"
    assert one_value(environments(result.stdout), "TORCHELASTIC_RUN_ID") == "mine"


def test_a_batch_script_itself_takes_nothing_and_says_so(slurm, worker, script):
    job = slurm.sbatch("-N2", script("batch", f"#!/bin/bash\nelastic-run {worker} leave\n"))
    assert job.wait() == "COMPLETED", job.text
    assert one_value(environments(job.text), "WORLD_SIZE") == "1"
    lines = [line for line in job.text.splitlines() if "srun" in line]
    assert len(lines) == 1 and f"Slurm job {job.number}" in lines[0], job.text


def test_a_shell_of_salloc_takes_nothing_and_says_so(slurm, worker):
    """The shell runs on the first node, in a step that is none of srun's."""
    result = slurm.start("salloc", "-N2", stdin=f"{slurm.binary} {worker} leave\nexit\n", env={"SHELL": "/bin/bash"}).wait()
    told = result.stdout + result.stderr
    assert one_value(environments(told), "WORLD_SIZE") == "1", result
    assert one_value(environments(told), "SLURMD_NODENAME") == "node1"
    assert len(re.findall(r"elastic-run: .*Slurm job \d+.*`srun ", told)) == 1, result


def test_of_several_tasks_on_a_node_one_launches_and_all_end_with_its_status(slurm, worker):
    tasks = ["-N2", "--ntasks-per-node=2", "--kill-on-bad-exit=0", "--output=task.%t", "--error=task.%t", "elastic-run",
             "--propagate-exit-code"]
    assert slurm.srun(*tasks, worker, "leave").wait().returncode == 0
    texts = [(slurm.directory / f"task.{task}").read_text() for task in range(4)]
    assert [len(environments(text)) for text in texts] == [1, 0, 1, 0], texts
    result = slurm.srun(*tasks, worker, "leave", "7").wait()
    assert result.returncode == 7
    ended = "".join(re.findall(r"tasks? (.*): Exited with exit code 7", result.stderr))
    assert sorted(re.findall(r"\d", ended.replace("-", ","))) == ["0", "1", "2", "3"], result


def test_a_heterogeneous_job_is_refused_with_the_reason(slurm, worker):
    result = slurm.srun("-N1", "elastic-run", worker, ":", "-N2", "elastic-run", worker).wait()
    assert result.returncode == 2, result
    assert environments(result.stdout) == []
    assert re.search(r"elastic-run: error: .*SLURM_HET_SIZE=2.*heterogeneous", result.stderr), result


# --- Signals ----------------------------------------------------------------------------------

def test_usr1_and_sigterm_reach_each_worker_once_and_a_stop_leaves_time(slurm, worker):
    job = slurm.sbatch("-N2", "--gpus-per-node=2", "--wrap", f"srun elastic-run --forward-signals=USR1 {worker}")
    job.wait_for(WHOLE, count=4)
    slurm.ask("scancel", "--signal=USR1", job.number)
    job.wait_for(r"^rank \d got SIGUSR1", count=4)
    slurm.ask("scancel", job.number)
    assert job.wait() == "CANCELLED"
    assert sorted(re.findall(r"^rank (\d) got SIGUSR1$", job.text, re.MULTILINE)) == ["0", "1", "2", "3"], job.text
    assert sorted(re.findall(r"^rank (\d) got SIGTERM$", job.text, re.MULTILINE)) == ["0", "1", "2", "3"], job.text
    assert sorted(re.findall(r"^rank (\d) has saved$", job.text, re.MULTILINE)) == ["0", "1", "2", "3"], job.text


def test_a_stop_by_slurm_ends_in_order_before_its_sigkill(slurm, worker):
    """Of workers that do not heed SIGTERM."""
    job = slurm.sbatch("-N2", "--wrap", f"srun elastic-run {worker} stay")
    job.wait_for(WHOLE, count=2)
    slurm.ask("scancel", job.number)
    assert job.wait() == "CANCELLED"
    assert len(re.findall(r"^elastic-run: .*stopped by SIGTERM", job.text, re.MULTILINE)) == 2, job.text
    assert "Killed" not in job.text, job.text  # as srun says of a task that Slurm has killed


@pytest.mark.timing  # kind H: Slurm has 15 s to start the job
@pytest.mark.time_limit(240)
def test_usr1_before_the_time_limit_comes_once_and_the_job_can_be_requeued(slurm, worker):
    """scripts/slurm/requeue.sbatch. Slurm's least limit is a minute, and its warning may come a minute early."""
    job = slurm.sbatch("--time=1", "--signal=USR1@45", EXAMPLES / "requeue.sbatch", worker, "leave-on-usr1", "75")
    job.wait_for(r"goes back to the queue", timeout=100)
    first = job.text
    assert sorted(re.findall(r"^rank (\d) got SIGUSR1$", first, re.MULTILINE)) == ["0", "1"], first
    job.wait_for(WHOLE, count=4, timeout=100)
    again = [each for each in environments(job.text) if each.get("SLURM_RESTART_COUNT") == "1"]
    assert sorted(each["RANK"] for each in again) == ["0", "1"], job.text
    assert job.field("Restarts") == "1"


# --- Nodes that are lost ----------------------------------------------------------------------

def test_a_node_whose_processes_are_killed_is_left_out_and_the_others_train_on(slurm, worker):
    job = slurm.sbatch("-N3", "--wrap", f"srun elastic-run --nnodes=2:3 {worker}")
    job.wait_for(WHOLE, count=3)
    slurm.kill_processes_on(3)
    job.wait_for(WHOLE, count=5)
    after = environments(job.text)[3:]
    assert sorted((each["RANK"], each["WORLD_SIZE"], each["SLURMD_NODENAME"]) for each in after) == [
        ("0", "2", "node1"), ("1", "2", "node2")], job.text
    assert one_value(after, "TORCHELASTIC_RESTART_COUNT") == "0"
    assert job.field("JobState") == "RUNNING"


def test_a_node_lost_under_no_kill_leaves_the_rest_going(slurm, worker):
    """scripts/slurm/elastic.sbatch; the node is gone with its slurmd, and its cable."""
    job = slurm.sbatch("--nodes=3", "--time=5", EXAMPLES / "elastic.sbatch", worker, env={"MIN_NODES": "2"})
    job.wait_for(WHOLE, count=3)
    slurm.cluster.hosts[3].silence()
    slurm.cluster.kill_slurm_on(3)
    slurm.kill_processes_on(3)
    # As slurmctld does when SlurmdTimeout is over.
    slurm.ask("scontrol", "update", "NodeName=node3", "State=DOWN", "Reason=lost")
    job.wait_for(r"Node failure on node3")
    job.wait_for(WHOLE, count=5)
    after = environments(job.text)[3:]
    assert sorted((each["RANK"], each["WORLD_SIZE"]) for each in after) == [("0", "2"), ("1", "2")], job.text
    assert job.field("JobState") == "RUNNING"
    slurm.ask("scancel", job.number)
    assert job.wait() == "CANCELLED"


def test_slurmd_that_is_killed_and_comes_back_changes_nothing(slurm, worker):
    job = slurm.sbatch("-N2", "--wrap", f"srun elastic-run --forward-signals=USR1 {worker} leave-on-usr1 0")
    job.wait_for(WHOLE, count=2)
    slurm.cluster.kill_slurmd(2)
    slurm.cluster.start_slurmd(2)
    slurm.cluster.wait_until_up(2)
    slurm.ask("scancel", "--signal=USR1", job.number)
    assert job.wait() == "COMPLETED", job.text
    assert len(environments(job.text)) == 2


@pytest.mark.time_limit(300)
def test_a_requeued_job_does_not_meet_its_own_ghost(slurm, worker, script):
    """A node that Slurm has lost lives on, and comes back to the others when the job runs elsewhere under its number."""
    # There is room for a third node, and time for Slurm to start the job again. What the ghost says would else be lost with
    # its slurmstepd.
    node = script("node", f"""#!/bin/bash
exec elastic-run --log-level=info --nnodes=2:3 --rdzv-conf=last_call_timeout=1,rejoin_timeout=60 {worker} 2>>{slurm.directory}/said.$SLURMD_NODENAME
""")
    job = slurm.sbatch("-N2", "--exclude=node4", "--requeue", "--time=5", "--wrap", f"srun {node}")
    job.wait_for(WHOLE, count=2)
    slurm.cluster.hosts[2].silence()
    slurm.cluster.kill_slurm_on(2)
    slurm.ask("scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=lost")
    job.wait_for(WHOLE, count=4, timeout=90)
    again = environments(job.text)[2:]
    assert sorted((each["RANK"], each["SLURMD_NODENAME"]) for each in again) == [("0", "node1"), ("1", "node3")], job.text
    assert one_value(again, "SLURM_RESTART_COUNT") == "1"
    ghosts = [process for process in slurm.processes_on(2) if process.name == "elastic_launch"]
    assert ghosts, "the ghost is gone before it could be met"
    slurm.cluster.hosts[2].restore()
    wait_until(lambda: not alive(ghosts[0].pid), 90, "the end of the ghost")
    said = (slurm.directory / "said.node2").read_text()
    assert f"this coordinator serves job slurm-{job.number}.0-restart1 and no other" in said, said
    assert len(environments(job.text)) == 4, job.text  # no other round
    assert job.field("JobState") == "RUNNING"


# --- Exit statuses ----------------------------------------------------------------------------

def test_a_failure_under_kill_on_bad_exit_is_told_before_slurm_ends_the_rest(slurm, script):
    fails = script("fails.py", "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(600)\n")
    result = slurm.srun("-N2", "--kill-on-bad-exit=1", "elastic-run", fails).wait()
    assert result.returncode == 1, result
    assert "first failure: rank 1" in result.stderr and "exited with code 7" in result.stderr, result
    assert "Killed" not in result.stderr


def test_a_status_that_the_site_requeues_by_takes_the_job_back_to_the_queue(slurm, script):
    once = script("once.py", f"import os, sys\nsys.exit(0 if 'SLURM_RESTART_COUNT' in os.environ else {REQUEUE_STATUS})\n")
    job = slurm.sbatch("-N2", "--requeue", "--wrap", f"srun elastic-run --propagate-exit-code {once}")
    ask_until(lambda: job.field("Restarts") == "1", 60, "requeued")
    assert job.wait() == "COMPLETED", job.text


def test_a_worker_that_says_so_keeps_the_job_from_being_requeued(slurm, script):
    """Status 93: no restart is tried, and every node ends with it."""
    script("never.py", "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(93)\ntime.sleep(600)\n")
    result = slurm.srun("-N2", "elastic-run", "--max-restarts=5", slurm.directory / "never.py").wait()
    assert result.returncode == 93, result
    assert sorted(re.findall(r"\d", "".join(re.findall(r"tasks? (\S+): Exited with exit code 93", result.stderr)))) == ["0", "1"], result


# --- The scripts of scripts/slurm --------------------------------------------------------------

def test_a_job_of_one_node_by_its_example(slurm, worker):
    job = slurm.sbatch("--time=5", "--gpus-per-node=2", EXAMPLES / "single-node.sbatch", worker, "leave")
    assert job.wait() == "COMPLETED", job.text
    assert sorted(each["LOCAL_RANK"] for each in environments(job.text)) == ["0", "1"]


def test_a_job_of_many_nodes_by_its_example(slurm, worker):
    job = slurm.sbatch("--nodes=4", "--time=5", "--gpus-per-node=2", EXAMPLES / "many-nodes.sbatch", worker, "leave")
    assert job.wait() == "COMPLETED", job.text
    assert sorted(int(each["RANK"]) for each in environments(job.text)) == list(range(8)), job.text


def test_an_array_by_its_example(slurm, script):
    """Both of its tasks run on the same two nodes at once, and do not meet."""
    says = script("says.py", WORKER.replace('what, *more = sys.argv[1:] or ["wait"]', 'what, more = "leave", []')
                  .replace('say("env', 'say(" ".join(sys.argv[1:]))\nsay("env'))
    job = slurm.sbatch("--array=0-1", "--time=5", EXAMPLES / "array.sbatch", says)
    job.wait_for(WHOLE, count=4)
    ask_until(lambda: not slurm.ask("squeue", "-h"), 60, "the end of the array")
    found = environments(job.text)
    for task in "01":
        of_task = [each for each in found if each["SLURM_ARRAY_TASK_ID"] == task]
        assert sorted(each["RANK"] for each in of_task) == ["0", "1"], job.text
        assert one_value(of_task, "WORLD_SIZE") == "2"
        one_value(of_task, "TORCHELASTIC_RUN_ID")
        assert job.text.count(f"--seed={task}\n") == 2
    assert len({each["TORCHELASTIC_RUN_ID"] for each in found}) == 2


def test_every_example_is_submitted_by_a_test():
    text = pathlib.Path(__file__).read_text()
    for example in EXAMPLES.glob("*"):
        assert f'EXAMPLES / "{example.name}"' in text, example
