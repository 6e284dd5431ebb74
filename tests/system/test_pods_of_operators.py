"""elastic-run in pods of JobSet and LeaderWorkerSet, in init containers, and in containers that are restarted in place."""
# ctest: gate
# ctest: nodes

import pathlib
import re

import pytest

from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import environments, job  # noqa: F401 (a fixture)
from test_pods import Pods, WORKER, forms_one_job, told

PODS = pathlib.Path(__file__).parent / "pods"


def file_of(name):
    return PODS / f"{name}.env"


@pytest.mark.parametrize("name", ["jobset", "leaderworkerset"])
def test_pods_of_operators_form_one_job_by_their_environment_alone(name, network, job, elastic_run, tmp_path):  # noqa: F811
    forms_one_job(Pods(network, file_of(f"operators/{name}"), tmp_path), job, elastic_run)


def test_pods_whose_containers_are_all_restarted_in_place_train_again_each_time(network, elastic_run, script, tmp_path):  # noqa: F811
    """Everything is killed and begins again, in the same pods, by the same names, with what lay in /tmp."""
    pods = Pods(network, file_of("indexed-job"), tmp_path)
    last_round = tmp_path / "last_round"
    worker = script("worker.py", f"import os; is_last = os.path.exists({str(last_round)!r})\n{WORKER}" """
if not is_last:
    time.sleep(600)
""")

    def start():
        return [elastic_run.start(worker, env=pods.environment(index), preexec_fn=pods.enter(index))
                for index in range(2)]

    for _ in range(3):
        nodes = start()
        for node in nodes:
            assert environments(node, 1)[0]["WORLD_SIZE"] == "2"
        for index, node in enumerate(nodes):
            pods.kill(index)
            node.wait()
    last_round.touch()
    results = [node.wait() for node in start()]
    assert [result.returncode for result in results] == [0, 0], results
    assert [each["GROUP_RANK"] for result in results for each in told(result)] == ["0", "1"]


@pytest.mark.parametrize("given, check", [
    ("PET_NNODES alone", "env -u PET_NODE_RANK -u PET_MASTER_ADDR -u PET_MASTER_PORT {} --check-only"),
    ("all variables", "{} --check-only --rdzv-id=check"),
])
def test_init_containers_check_the_nodes_before_the_training_begins(given, check, network, job, elastic_run, tmp_path):  # noqa: F811
    """As in examples/kubernetes/kubeflow-runtime-checked.yaml, and where the init container gets what the training gets."""
    pods = Pods(network, file_of("kubeflow-trainjob"), tmp_path)
    steps = f"{check.format(elastic_run.binary)}; echo check $?; exec {elastic_run.binary} {job.worker} 0"
    results = [node.wait() for node in [
        elastic_run.start("-c", steps, program=["/bin/sh"], env=pods.environment(index), preexec_fn=pods.enter(index))
        for index in range(2)]]
    assert [result.returncode for result in results] == [0, 0], results
    checked = re.search(r"2 nodes checked in \S+ s: (.*)", "".join(result.stderr for result in results))
    assert checked, results
    # A busy machine may make a node look slow.
    status = 0 if checked[1].startswith("all fit") else 1
    assert status == 0 or "slow" in checked[1], results
    assert [re.findall(r"^check (\d+)$", result.stdout, re.MULTILINE) for result in results] == [[str(status)]] * 2
    assert [(each["GROUP_RANK"], each["WORLD_SIZE"]) for result in results for each in told(result)] == [
        ("0", "2"), ("1", "2")]


def test_a_pod_of_a_jobsets_second_job_that_does_not_know_its_place_ends_with_2_and_what_to_map(
        network, elastic_run, job, tmp_path):  # noqa: F811
    pods = Pods(network, file_of("operators/jobset"), tmp_path)
    environment = {name: value for name, value in pods.environment(1).items() if not name.startswith("JOBSET_")}
    result = elastic_run.start(job.worker, "0", env=environment, preexec_fn=pods.enter(1)).wait()
    assert result.returncode == 2, result
    assert "Job 1 of the JobSet train" in result.stderr
    assert "JOBSET_JOB_INDEX" in result.stderr and "PET_RDZV_ID" in result.stderr
