"""--on-event: a command of the site's is run once in the job for each event of a kind, and nothing of it is left."""
# ctest: gate
# ctest: nodes

import json
import os
import re
import signal

from harness import alive, wait_until
from test_many_nodes import environments, job  # noqa: F401 (a fixture)

KEEP = "cat >> $AT/events"
# Says where it and what it has started are, and hangs.
HANG = "trap '' TERM; setsid sleep 1000 & echo $! > $AT/daemon; echo $$ > $AT/shell; wait"


def events(directory):
    path = directory / "events"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def pid_in(path):
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), timeout=60, what=f"a number in {path}")
    return int(path.read_text())


def test_the_end_of_a_job_of_one_node_is_told_once_with_the_line_that_events_has(elastic_run, tmp_path):
    result = elastic_run(f"--on-event={KEEP}", f"--events={tmp_path / 'all'}", "--no-python", "false",
                         env={"AT": str(tmp_path)})
    assert result.returncode == 1, result
    told, = events(tmp_path)
    assert (told["event"], told["outcome"], told["restarts_used"]) == ("job_ends", "failed", 0)
    assert "exited with code 1" in told["reason"]
    assert (tmp_path / "events").read_text() in (tmp_path / "all").read_text()


def test_a_lost_node_is_told_once_in_the_job_where_the_coordinator_is(job, tmp_path):  # noqa: F811
    nodes = []
    for name in ("host", "other"):
        (tmp_path / name).mkdir()
        nodes.append(job.node(f"--on-event={KEEP}", "--on-event-kinds=node_lost,job_ends", nnodes="2:2", conf="join_timeout=60",
                              env={"AT": str(tmp_path / name)}))
        if name == "host":
            nodes[0].wait_for_line("this node hosts the coordinator")
    host, other = nodes
    for node in nodes:
        environments(node, 1)
    os.kill(other.launcher(), signal.SIGKILL)
    other.wait()
    wait_until(lambda: events(tmp_path / "host"), timeout=60, what="the event of the lost node")
    host.send_signal(signal.SIGTERM)
    host.wait()
    lost, end = events(tmp_path / "host")
    assert (lost["event"], lost["of_node"], lost["of_job"]) == ("node_lost", 1, "job")
    assert lost["of_host"] and lost["reason"]
    assert end["event"] == "job_ends"
    assert events(tmp_path / "other") == []


def test_an_unfit_node_is_told(job, tmp_path):  # noqa: F811
    found = {"AT": str(tmp_path)}
    nodes = job.nodes(2, "--network-check", f"--on-event={KEEP}", "--on-event-kinds=node_unfit", nnodes="2:3",
                      script_arguments=["0"], conf="last_call_timeout=30", env=found)
    nodes.append(job.node("--network-check", "--health-hook=echo broken; exit 3", nnodes="2:3", script_arguments=["0"]))
    assert [node.wait().returncode for node in nodes] == [0, 0, 1]
    told, = events(tmp_path)
    assert told["event"] == "node_unfit" and "ended with 3: broken" in told["reason"], told
    assert told["of_node"] in (0, 1, 2) and told["of_host"]


def test_the_output_of_a_command_is_in_the_log_and_its_failure_changes_nothing(elastic_run):
    result = elastic_run("--on-event=echo drained; echo twice >&2; exit 3", "--log-level=info", "--no-python", "true")
    assert result.returncode == 0, result
    for line in ("drained", "twice"):
        assert f"elastic-run: info: on-event job_ends: {line}\n" in result.stderr, result
    assert "elastic-run: warning: --on-event: the command for job_ends exited with code 3\n" in result.stderr, result


def test_a_command_that_hangs_does_not_keep_the_job_from_ending_and_is_killed_with_what_it_has_started(elastic_run, tmp_path):
    result = elastic_run(f"--on-event={HANG}", "--no-python", "true", env={"AT": str(tmp_path)})
    assert result.returncode == 0, result
    assert "--on-event: the job is over; killed 1 command that did not end in time" in result.stderr, result
    for name in ("shell", "daemon"):
        pid = pid_in(tmp_path / name)
        wait_until(lambda pid=pid: not alive(pid), what=f"the end of the {name}")


def test_what_a_command_leaves_behind_is_killed_when_it_ends(elastic_run, tmp_path):
    leaves = "setsid sh -c 'echo $$ > $AT/daemon; exec sleep 1000' & until [ -s $AT/daemon ]; do sleep 0.01; done"
    result = elastic_run(f"--on-event={leaves}", "--no-python", "true", env={"AT": str(tmp_path)})
    assert result.returncode == 0, result
    assert not alive(pid_in(tmp_path / "daemon"))


def test_a_signal_ends_the_wait_for_a_command(elastic_run, tmp_path):
    node = elastic_run.start(f"--on-event={HANG}", "--no-python", "true", env={"AT": str(tmp_path)})
    daemon = pid_in(tmp_path / "daemon")
    node.send_signal(signal.SIGTERM)
    assert "killed 1 command that did not end in time" in node.wait().stderr
    wait_until(lambda: not alive(daemon), what="the end of the command")


def killed_while_a_command_runs(elastic_run, tmp_path, which):
    node = elastic_run.start(f"--on-event={HANG}", "--no-python", "true", env={"AT": str(tmp_path)})
    pids = [pid_in(tmp_path / "daemon"), pid_in(tmp_path / "shell"), node.launcher()]
    os.kill(which(node), signal.SIGKILL)
    node.wait()
    for pid in pids:
        wait_until(lambda pid=pid: not alive(pid), timeout=60, what=f"the end of process {pid}")


def test_with_a_launcher_that_is_killed_its_commands_end(elastic_run, tmp_path):
    killed_while_a_command_runs(elastic_run, tmp_path, lambda node: node.launcher())


def test_with_an_outer_process_that_is_killed_its_commands_end(elastic_run, tmp_path):
    killed_while_a_command_runs(elastic_run, tmp_path, lambda node: node.pid)


def test_a_command_has_the_environment_of_workers_and_the_directory_of_the_job(elastic_run, tmp_path):
    look = 'echo "$COLOUR $PWD $ELASTIC_RUN_TOKEN." > $AT/found'
    result = elastic_run(f"--on-event={look}", "--no-python", "true", cwd=tmp_path,
                         env={"AT": str(tmp_path), "COLOUR": "red", "ELASTIC_RUN_TOKEN": "secret"})
    assert result.returncode == 0, result
    assert (tmp_path / "found").read_text() == f"red {tmp_path} .\n"


def test_a_kind_that_is_none_is_refused_and_so_are_kinds_without_a_command(elastic_run):
    result = elastic_run("--on-event=true", "--on-event-kinds=node_lost,worker_lost", "--no-python", "true")
    assert result.returncode == 2 and re.search('"worker_lost" is not an event that can run a command', result.stderr), result
    result = elastic_run("--on-event-kinds=node_lost", "--no-python", "true")
    assert result.returncode == 2 and "give --on-event=CMD, too" in result.stderr, result
