"""--health-hook: the user's own check of a host is run with the node check, and nothing of it is left."""
# ctest: gate
# ctest: nodes

import json
import os
import re
import signal

import pytest

from harness import alive, wait_until
from test_many_nodes import environments, job  # noqa: F401 (a fixture)
from test_network_check import FAULTY, codes

FATAL = """echo '{"severity": "fatal", "what": "ECC errors: 12", "where": "GPU 3", "remedy": "drain the host"}'"""


@pytest.fixture
def alone(elastic_run, tmp_path):
    """alone(hook, ...): one node with a hook that finds its directory in $AT, run to its end or, as alone.start, not."""
    def arguments(hook, program):
        return ["--network-check", f"--health-hook={hook}", "--log-level=info", *(program or ["--no-python", "true"])]

    def run(hook, *program, env=None, **options):
        return elastic_run(*arguments(hook, program), env={"AT": str(tmp_path)} | (env or {}), **options)

    def start(hook, *program, env=None, **options):
        return elastic_run.start(*arguments(hook, program), env={"AT": str(tmp_path)} | (env or {}), **options)

    run.start, run.at = start, tmp_path
    return run


def reason(result):
    assert result.returncode == 1, result
    found = re.search(re.escape(FAULTY) + "(.*)", result.stderr)
    assert found, result
    return found.group(1)


def pid_in(path):
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), what=f"a number in {path}")
    return int(path.read_text())


def test_a_node_whose_hook_says_that_it_is_unfit_is_left_out_with_the_reason(job):  # noqa: F811
    nodes = job.nodes(2, "--network-check", nnodes="2:3", script_arguments=["0"], conf="last_call_timeout=30")
    nodes.append(job.node("--network-check", f"--health-hook={FATAL}", nnodes="2:3", script_arguments=["0"]))
    assert codes(nodes) == [0, 0, 1]
    assert re.search(re.escape(FAULTY) + "ECC errors: 12", nodes[2].stderr.text), nodes[2].stderr.text
    assert re.search(r"fatal, node \d: ECC errors: 12 \(GPU 3\); drain the host", nodes[0].stderr.text), nodes[0].stderr.text
    assert all(each["WORLD_SIZE"] == "2" for node in nodes[:2] for each in environments(node, 1))


def test_a_hook_that_finds_nothing_lets_its_node_train(alone):
    assert alone("echo all is well").returncode == 0


def test_a_hook_that_ends_with_another_status_than_0_makes_its_node_unfit(alone):
    assert "ended with 3: no driver" in reason(alone("echo no driver; exit 3"))


def test_a_hook_that_is_killed_makes_its_node_unfit(alone):
    assert "was killed by SIGKILL" in reason(alone("kill -9 $$"))


def test_a_note_of_a_hook_stands_in_the_report_and_does_nothing_else(alone):
    note = """echo '{"severity": "note", "what": "driver 570"}'; exit 3"""
    logs = alone.at / "logs"
    assert alone(note, f"--log-dir={logs}", "--no-python", "true").returncode == 0
    written, = logs.glob("*/health.json")
    findings = json.loads(written.read_text())["nodes"][0]["findings"]
    assert {"severity": "note", "what": "driver 570"}.items() <= findings[-1].items()


def test_a_hook_that_hangs_is_killed_with_all_that_it_has_started(alone):
    hook = "trap '' TERM; echo $$ > $AT/shell; setsid sleep 1000 & echo $! > $AT/daemon; wait"
    result = alone(hook, env={"NETWORK_CHECK_TIMEOUT": "5"})
    assert "did not end in 5 s" in reason(result)
    assert not alive(pid_in(alone.at / "shell")) and not alive(pid_in(alone.at / "daemon"))


def test_a_hook_has_the_environment_of_workers_their_number_and_no_input(elastic_run, tmp_path):
    hook = 'read line && exit 1; echo "$COLOUR $LOCAL_WORLD_SIZE" > $AT/found; [ -z "$ELASTIC_RUN_TOKEN" ]'
    result = elastic_run("--network-check", f"--health-hook={hook}", "--nproc-per-node=3", "--no-python", "true",
                         stdin="a line\n", env={"AT": str(tmp_path), "COLOUR": "red", "ELASTIC_RUN_TOKEN": "secret"})
    assert result.returncode == 0, result
    assert (tmp_path / "found").read_text() == "red 3\n"


def test_what_a_hook_leaves_behind_is_gone_before_workers_start(alone):
    hook = ("sleep 1000 & echo $! > $AT/child; setsid sh -c 'echo $$ > $AT/daemon; exec sleep 1000' & "
            "until [ -s $AT/daemon ]; do sleep 0.01; done")
    worker = "for each in child daemon; do kill -0 $(cat $AT/$each) && exit 7; done; exit 0"
    result = alone(hook, "--no-python", "sh", "-c", worker)
    assert result.returncode == 0, result


def test_a_signal_ends_a_job_whose_hook_runs_and_the_hook(alone):
    node = alone.start("trap '' TERM; setsid sleep 1000 & echo $! > $AT/daemon; wait")
    daemon = pid_in(alone.at / "daemon")
    node.send_signal(signal.SIGTERM)
    node.wait()
    wait_until(lambda: not alive(daemon), what="the end of the hook")


def test_with_a_probe_that_is_killed_its_hook_ends(alone):
    node = alone.start("echo $PPID > $AT/probe; setsid sleep 1000 & echo $! > $AT/daemon; wait")
    daemon = pid_in(alone.at / "daemon")
    os.kill(pid_in(alone.at / "probe"), signal.SIGKILL)
    assert "its check process was killed by SIGKILL" in reason(node.wait())
    wait_until(lambda: not alive(daemon), what="the end of the hook")
