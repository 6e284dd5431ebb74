"""--network-check: faulty nodes are found and named before training, and left out."""
# ctest: gate
# ctest: nodes

import json
import re

import pytest

from test_many_nodes import environments, job  # noqa: F401 (a fixture)

FAULTY = "This node failed the node-check procedure(mat-mul + comm) before training: "


def codes(nodes, timeout=60):
    results = [node.wait(timeout) for node in nodes]
    print("\n".join(result.stderr for result in results))  # pytest shows it if the test fails
    return [result.returncode for result in results]


def test_nodes_that_are_fit_train_and_one_line_says_that_they_are(job):  # noqa: F811
    nodes = [job.elastic_run.start("--network-check", "--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{job.port}",
                                   "--rdzv-backend=c10d", "--rdzv-id=job", "--no-python", "true") for _ in range(2)]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    told = "".join(result.stderr for result in results)
    assert len(re.findall(r"^elastic-run: (?:warning: )?2 nodes checked in \d+\.\d s: .*fit", told, re.MULTILINE)) == 1, results
    for result in results:
        assert "elastic-run: round 0: 2 nodes" in result.stderr, result
        # What a host lacks (a small /dev/shm) may be told, and on a busy machine that one looks slow.
        assert not re.search("faulty|undetermined|unfit", result.stderr), result


def test_one_node_alone_looks_at_itself(elastic_run):
    result = elastic_run("--network-check", "--log-level=info", "--no-python", "true")
    assert result.returncode == 0
    assert "1 node checked in" in result.stderr


@pytest.mark.parametrize("policy, checks", [((), 2), (("--check-policy=first",), 1)], ids=str)
def test_a_node_whose_worker_failed_is_checked_again_unless_the_policy_is_first(elastic_run, policy, checks):
    result = elastic_run("--network-check", *policy, "--max-restarts=1", "--log-level=info", "--no-python", "sh", "-c",
                         "exit $((1 - TORCHELASTIC_RESTART_COUNT))")
    assert result.returncode == 0, result
    assert result.stderr.count("1 node checked in") == checks, result


def test_a_faulty_node_is_left_out_and_says_so_and_the_others_train(job, tmp_path):  # noqa: F811
    logs = tmp_path / "logs"
    page = tmp_path / "page.html"
    nodes = job.nodes(3, "--network-check", f"--log-dir={logs}", f"--health-report={page}", nnodes="3:4",
                      script_arguments=["0"], conf="last_call_timeout=30")
    nodes.append(job.node("--network-check", nnodes="3:4", script_arguments=["0"], env={"MOCK_ERR_RANK": "0"}))
    assert codes(nodes) == [0, 0, 0, 1]
    faulty = nodes[3].stderr.text
    assert re.search(re.escape(FAULTY) + r"its exchange failed with .*MOCK_ERR_RANK", faulty), faulty
    assert "env {" not in nodes[3].stdout.text
    assert all(each["WORLD_SIZE"] == "3" for node in nodes[:3] for each in environments(node, 1))
    told = nodes[0].stderr.text
    rank = int(re.search(r"4 nodes checked in \S+ s: .*?node (\d) \(\S+\) is faulty", told).group(1))
    assert f"Fault nodes are: [{rank}]  and stragglers are: [" in told
    written, = logs.glob("*/health.json")
    report = json.loads(written.read_text())
    assert report["faulty"] == [rank] and len(report["nodes"]) == 4
    assert f"node {rank}" in page.read_text() and "</html>" in page.read_text()


def test_a_further_node_is_checked_and_takes_the_place_of_a_faulty_one(job):  # noqa: F811
    nodes = job.nodes(2, "--network-check", nnodes="3", script_arguments=["0"])
    faulty = job.node("--network-check", nnodes="3", script_arguments=["0"], env={"MOCK_ERR_RANK": "0"})
    faulty.wait_for_line("round 0: 3 nodes")
    nodes.append(job.node("--network-check", nnodes="3", script_arguments=["0"]))
    assert codes([*nodes, faulty]) == [0, 0, 0, 1]
    assert "node-check procedure" in faulty.stderr.text
    assert len(re.findall(r"3 nodes checked in \S+ s: ", nodes[0].stderr.text)) == 2
    assert {each["WORLD_SIZE"] for node in nodes for each in environments(node, 1)} == {"3"}


def test_nodes_of_one_rack_meet_each_other_first(job, tmp_path):  # noqa: F811
    logs = tmp_path / "logs"
    nodes = [job.node("--network-check", f"--node-group={rack}", f"--node-rank={rank}", f"--log-dir={logs}", nnodes="4",
                      script_arguments=["0"]) for rank, rack in enumerate(["left", "right"] * 2)]
    assert codes(nodes) == [0] * 4
    written, = logs.glob("*/health.json")
    pairs = json.loads(written.read_text())["pairs"]
    assert [(pair["low"], pair["high"]) for pair in pairs if pair["stage"] == 1] == [(0, 2), (1, 3)], pairs


def test_all_ranks_of_a_node_count_for_mock_err_rank(job):  # noqa: F811
    """DLRover's test hook names a local rank; one that a node does not have changes nothing."""
    nodes = job.nodes(2, "--network-check", script_arguments=["0"], env={"MOCK_ERR_RANK": "1"})
    assert codes(nodes) == [0, 0]


# --- --check-only, the acceptance test of a cluster

def check_only(job, count, *arguments, env=()):  # noqa: F811
    """As many nodes as `env` has entries, each with these variables, that are checked and no more."""
    return [job.elastic_run.start("--check-only", f"--nnodes={count}", f"--rdzv-endpoint=127.0.0.1:{job.port}",
                                  "--rdzv-backend=c10d", "--rdzv-id=job", *arguments,
                                  env=variables) for variables in env]


def test_a_cluster_that_is_fit_passes_and_its_figures_are_printed(job):  # noqa: F811
    nodes = check_only(job, 3, env=[{}] * 3)
    results = [node.wait() for node in nodes]
    told = "".join(result.stderr for result in results)
    outcome = re.search(r"3 nodes checked in \S+ s: (.*)", told).group(1)
    # On a busy machine a node may look slow, and that counts; a link that does leaves all fit.
    expected = 0 if outcome.startswith("all fit") else 1
    assert [result.returncode for result in results] == [expected] * 3, results
    assert len(re.findall(r"^\d \S+ +[\d.]+ ", told, re.MULTILINE)) == 3, told
    for result in results:
        # One line about this node: with a look of slowness in it, where the machine is busy.
        assert re.fullmatch(r"elastic-run: [ -~]+\n", result.stdout), result
        assert expected or result.stdout.startswith("elastic-run: healthy"), result


def test_a_cluster_that_is_not_fit_fails_on_all_nodes_with_the_reason(job):  # noqa: F811
    nodes = check_only(job, 3, "nowhere.py", env=[{}, {"MOCK_ERR_RANK": "0"}, {}])
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [1, 1, 1], results
    for result in results:
        assert re.search(r"the check has found unfit nodes or links: .*node \d \(\S+\): its exchange failed", result.stderr), result
    lines = [result.stdout for result in results]
    assert re.fullmatch(r"elastic-run: its exchange failed [ -~]*\n", lines[1]), lines
    assert not any("exchange failed" in line for line in (lines[0], lines[2])), lines


def test_a_node_that_is_checked_alone_prints_one_line_fit_for_a_drain_reason(elastic_run):
    def line(hook):
        result = elastic_run("--check-only", f"--health-hook={hook}")
        return result.returncode, result.stdout

    status, told = line("true")
    assert status == 0 and re.fullmatch(r"elastic-run: healthy(; [ -~]+)?\n", told), told
    status, told = line("""echo '{"severity": "fatal", "what": "12 \\"bad\\" pages", "where": "GPU 3"}'""")
    assert status == 1 and re.match(r"elastic-run: 12 bad pages \(GPU 3\)(; [ -~]+)?\n$", told), told
    status, told = line("yes x | tr -d '\\n' | head -c 9000; exit 3")
    assert status == 1 and told.count("\n") == 1 and len(told) == 201, told


def test_one_node_alone_can_be_checked_and_nothing_is_started(elastic_run, tmp_path):
    result = elastic_run("--check-only", "--no-python", "touch", str(tmp_path / "started"))
    assert result.returncode == 0, result
    assert "1 node checked in" in result.stderr
    assert not (tmp_path / "started").exists()


def test_a_node_that_is_left_out_has_an_exit_code_of_its_own_where_codes_are_handed_on(job):  # noqa: F811
    nodes = job.nodes(2, "--network-check", "--propagate-exit-code", nnodes="2:3", script_arguments=["0"],
                      conf="last_call_timeout=30")
    nodes.append(job.node("--network-check", "--propagate-exit-code", nnodes="2:3", script_arguments=["0"],
                          env={"MOCK_ERR_RANK": "0"}))
    assert codes(nodes) == [0, 0, 69]


# --- --comm-perf-test, all nodes at once

def test_with_comm_perf_test_the_all_gather_of_all_nodes_is_measured_and_told(job, tmp_path):  # noqa: F811
    logs = tmp_path / "logs"
    page = tmp_path / "page.html"
    nodes = job.nodes(3, "--network-check", "--comm-perf-test", f"--log-dir={logs}", f"--health-report={page}",
                      nnodes="3", script_arguments=["0"])
    assert codes(nodes) == [0, 0, 0]
    assert all(each["WORLD_SIZE"] == "3" for node in nodes for each in environments(node, 1))
    written, = logs.glob("*/health.json")
    report = json.loads(written.read_text())
    found = report["all_gather"]
    assert (found["world"], found["bytes"], found["why_not"]) == (3, 2 * 1024 * 1024, "")
    assert len(report["phase_ms"]) == 5 and found["ms"] > 0
    seconds = found["ms"] / 1000
    assert found["algobw_gbps"] == pytest.approx(3 * found["bytes"] / seconds / 1e9)
    assert found["busbw_gbps"] == pytest.approx(found["algobw_gbps"] * 2 / 3)
    told = nodes[0].stderr.text
    line = re.search(r"^elastic-run: (all-gather of 3 nodes over TCP, 2 MiB each: .* busbw \S+ GB/s)$", told, re.M)
    assert line, told
    assert line.group(1) in page.read_text()
    # DLRover's line, with its formula: GiB/s, and the bytes of one rank.
    theirs = re.search(r"AllGather Perf: world size = 3, algobw=(\S+) GB/s, busbw=(\S+) GB/s\.", told)
    assert theirs, told
    algobw = found["bytes"] / 2**30 / seconds
    assert [float(each) for each in theirs.groups()] == pytest.approx([algobw, algobw * 2 / 3], abs=0.006)
    assert not any("all-gather of" in node.stderr.text for node in nodes[1:])


def test_precheck_2_measures_too_and_is_told_at_the_default_log_level(job):  # noqa: F811
    nodes = [job.elastic_run.start("--precheck=2", "--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{job.port}",
                                   "--rdzv-backend=c10d", "--rdzv-id=job", "--no-python", "true") for _ in range(2)]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    assert sorted(result.stderr.count("all-gather of 2 nodes over TCP") for result in results) == [0, 1], results
    assert not any("AllGather Perf" in result.stderr for result in results), results


def test_comm_perf_test_measures_nothing_without_a_check_or_alone_and_says_so(elastic_run):
    for arguments, why in ((["--comm-perf-test"], "it is ignored without a check"),
                           (["--comm-perf-test", "--network-check"], "nothing is measured, as one node alone has no link"),
                           (["--precheck=2"], "nothing is measured, as one node alone has no link")):
        result = elastic_run(*arguments, "--no-python", "true")
        assert result.returncode == 0
        assert f"elastic-run: warning: {arguments[0]}: {why}" in result.stderr, result
        assert "all-gather" not in result.stderr.replace("an all-gather", ""), result
