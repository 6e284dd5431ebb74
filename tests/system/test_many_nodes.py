"""A job over many nodes: real elastic-runs that meet over real sockets."""
# ctest: long
# ctest: gate-cases
# ctest: clock
# ctest: nodes

import json
import os
import re
import signal

import pytest

from harness import alive, wait_until
from networks import network  # noqa: F401 (a fixture)
from workers import free_port

# Says who it is, and waits to be ended or, with an argument, ends.
WORKER = """
import json, os, sys, time
names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "ELASTIC_RUN_FENCE"]
found = {name: os.environ.get(name) for name in names} | {"PID": os.getpid()}
os.write(1, f"env {json.dumps(found)}\\n".encode())  # in one piece: others write there, too
if len(sys.argv) > 1:
    sys.exit(int(sys.argv[1]))
time.sleep(600)
"""


# For nodes that are all that a round may have: it begins when the last of them has come, however late that is.
ALL_COME = "last_call_timeout=60"

# For jobs in which nobody falls silent: no machine is so busy that a node loses its lease of 12 s.
NOBODY_IS_SILENT = "loss_timeout=20"


class Job:
    """Nodes of one job, each an elastic-run on this host."""

    def __init__(self, elastic_run, script, port=None):
        self.elastic_run = elastic_run
        self.worker = script("worker.py", WORKER)
        self.port = port or free_port()
        self.host = "127.0.0.1"

    def node(self, *arguments, nnodes="2", nproc=1, script=None, script_arguments=(), conf="", **popen):
        conf = ",".join(filter(None, ["last_call_timeout=1", conf]))
        return self.elastic_run.start(
            f"--nnodes={nnodes}", f"--nproc-per-node={nproc}", "--rdzv-backend=c10d",
            f"--rdzv-endpoint={self.host}:{self.port}", "--rdzv-id=job", f"--rdzv-conf={conf}",
            "--log-level=info", *arguments, script or self.worker, *script_arguments, **popen)

    def nodes(self, count, *arguments, **options):
        """So many, of which the first hosts the coordinator. If the job may have no more, all are in the first round,
        however late they come."""
        if int(str(options.get("nnodes", 2)).rpartition(":")[2]) == count:
            options["conf"] = ",".join(filter(None, [ALL_COME, options.get("conf")]))
        first = self.node(*arguments, **options)
        first.wait_for_line("this node hosts the coordinator")
        return [first, *(self.node(*arguments, **options) for _ in range(count - 1))]


def environments(node, count):
    """What so many workers of a node found."""
    return [json.loads(node.wait_for_line(r"^env (.*)", timeout=60, stream="stdout").group(1)) for _ in range(count)]


def until_size(node, size):
    """What the node's worker found in its next round of so many. A busy machine may cost a lease, and so begin a round
    that the test has not caused."""
    while (found := environments(node, 1)[0])["WORLD_SIZE"] != str(size):
        pass
    return found


@pytest.fixture
def job(elastic_run, script):
    return Job(elastic_run, script)


def test_two_nodes_form_a_round_and_succeed_together(job):
    nodes = job.nodes(2, nproc=2, script_arguments=["0"])
    found = [each for node in nodes for each in environments(node, 2)]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    assert sorted(each["RANK"] for each in found) == ["0", "1", "2", "3"]
    assert {each["WORLD_SIZE"] for each in found} == {"4"}
    assert len({(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found}) == 1


def test_a_worker_that_fails_stops_the_other_node_and_fails_the_job_everywhere(job, script):
    fails = script("fails.py", "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(600)\n")
    nodes = job.nodes(2, script=fails)
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [1, 1]
    for result in results:
        assert "rank 1" in result.stderr and "exited with code 7" in result.stderr, result


def test_a_host_of_the_coordinator_whose_outer_process_is_killed_goes_and_the_other_node_hears_why(job):
    host, other = job.nodes(2, nnodes="2:3", conf="failover=off")
    for node in (host, other):
        environments(node, 1)
    launcher = host.launcher()
    os.kill(host.pid, signal.SIGKILL)
    wait_until(lambda: not alive(launcher), timeout=60, what="the launcher to go with its outer process")
    result = other.wait()
    assert result.returncode == 1, result
    assert re.search(r"node 0 \(.*\): its outer elastic-run process was killed", result.stderr), result
    host.wait()


def test_a_host_of_the_coordinator_whose_outer_process_is_killed_while_it_waits_for_nodes_goes(job):
    host, other = job.nodes(2, nnodes="3:4", conf="failover=off")
    other.wait_for_line("2 nodes present, 3 needed", timeout=60)
    launcher = host.launcher()
    os.kill(host.pid, signal.SIGKILL)
    wait_until(lambda: not alive(launcher), timeout=60, what="the launcher to go with its outer process")
    result = other.wait()
    assert result.returncode == 1 and "its outer elastic-run process was killed" in result.stderr, result
    host.wait()


@pytest.mark.gate
def test_a_restart_is_of_all_nodes_and_counts_once(job, script):
    once = script("once.py", WORKER.replace("time.sleep(600)", """
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1":
    sys.exit(0)
if os.environ["RANK"] == "1":
    while not os.path.exists("rank_0_is_up"):
        time.sleep(0.01)
    sys.exit(3)
open("rank_0_is_up", "w").close()
time.sleep(600)"""))
    nodes = job.nodes(2, "--max-restarts=1", script=once, conf=NOBODY_IS_SILENT)
    for node in nodes:
        first, second = environments(node, 2)
        assert (first["TORCHELASTIC_RESTART_COUNT"], second["TORCHELASTIC_RESTART_COUNT"]) == ("0", "1")
        assert first["RANK"] == second["RANK"]
    assert [node.wait().returncode for node in nodes] == [0, 0]


@pytest.mark.gate
def test_a_killed_node_costs_no_restart_and_the_others_go_on(job):
    nodes = job.nodes(3, nnodes="2:3")
    for node in nodes:
        until_size(node, 3)
    victim = nodes[1]  # the first hosts the coordinator: its end would be the job's
    launcher = victim.launcher()
    for pid in (victim.pid, launcher):
        os.kill(pid, signal.SIGKILL)
    victim.wait()
    others = [node for node in nodes if node is not victim]
    for node in others:
        assert until_size(node, 2)["TORCHELASTIC_RESTART_COUNT"] == "0"
    for node in others:
        node.send_signal(signal.SIGTERM)
    for node in others:
        node.wait()


def test_static_nodes_meet_at_the_masters_port_and_the_store_is_there(job):
    common = ["--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={job.port}"]
    nodes = [job.elastic_run.start(*common, f"--node-rank={rank}", job.worker, "0") for rank in (1, 0)]
    found = [environments(node, 1)[0] for node in nodes]
    assert [node.wait().returncode for node in nodes] == [0, 0]
    assert [each["RANK"] for each in found] == ["1", "0"]
    assert {(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found} == {("127.0.0.1", str(job.port))}


def test_c10d_nodes_that_are_given_a_master_and_no_endpoint_meet_at_the_master(job):
    common = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-conf=join_timeout=60",
              "--master-addr=127.0.0.1", f"--master-port={job.port}"]
    nodes = [job.elastic_run.start(*common, f"--node-rank={rank}", job.worker, "0") for rank in (1, 0)]
    found = [environments(node, 1)[0] for node in nodes]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0]
    assert [each["RANK"] for each in found] == ["1", "0"]
    for result in results:
        assert result.stderr.count(f"--master-addr=127.0.0.1: nodes meet there, at port {job.port}, ") == 1, result


def test_static_nodes_without_a_masters_address_are_told_what_to_type(job):
    common = ["--nnodes=2", "--nproc-per-node=1", f"--master-port={job.port}"]
    first = job.elastic_run.start(*common, job.worker, "0")
    said = first.wait_for_line(rf"listens on port {job.port}, .* --master-addr=\S+ on every node, and (\S+) on the other one$")
    second = job.elastic_run.start(*common, said.group(1), job.worker, "0")
    results = [first.wait(), second.wait()]
    assert [result.returncode for result in results] == [0, 0], results
    assert "listens" not in results[1].stderr, results


def test_a_node_without_an_endpoint_says_what_to_type_on_the_others(job, network):  # noqa: F811
    here, there = network(2)
    common = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d"]
    first = job.elastic_run.start(*common, job.worker, "0", preexec_fn=here.enter)
    said = first.wait_for_line(r"listens on port 29400\. On the other nodes type the same command with (--rdzv-endpoint=node0:29400)$")
    typed = said.group(1).replace(here.name, here.address)  # these hosts have no name service
    second = job.elastic_run.start(*common, typed, job.worker, "0", preexec_fn=there.enter)
    results = [first.wait(), second.wait()]
    assert [result.returncode for result in results] == [0, 0], results
    assert "no --rdzv-endpoint" not in results[1].stderr, results


@pytest.fixture
def ends_when_told(script):
    """A worker that ends well once the file "go" is there."""
    return script("ends.py", WORKER.replace("time.sleep(600)", """
while not os.path.exists("go"):
    time.sleep(0.02)"""))


def test_a_second_job_is_served_at_the_endpoint_and_the_host_stays_for_it(job, ends_when_told):
    first = job.node(nnodes="1:2", script=ends_when_told)
    first.wait_for_line("this node hosts the coordinator")
    second = job.node("--rdzv-id=other", nnodes="1:2")
    environments(second, 1)
    (job.elastic_run.directory / "go").touch()
    first.wait_for_line("this node is done; its coordinator keeps serving 1 other job until that is over")
    assert alive(first.pid)
    second.send_signal(signal.SIGTERM)
    assert second.wait().returncode == 1
    assert first.wait().returncode == 0


def test_a_host_that_serves_other_jobs_ends_when_it_is_told_to(job, ends_when_told):
    first = job.node(nnodes="1:2", script=ends_when_told)
    first.wait_for_line("this node hosts the coordinator")
    second = job.node("--rdzv-id=other", nnodes="1:2")
    environments(second, 1)
    (job.elastic_run.directory / "go").touch()
    first.wait_for_line("this node is done")
    first.send_signal(signal.SIGTERM)
    assert first.wait().returncode == 0  # its own job's
    second.send_signal(signal.SIGTERM)
    assert second.wait().returncode == 1


def test_nodes_may_come_before_the_coordinator_which_may_be_alone(job):
    nodes = [job.node(nnodes="2", conf="is_host=0", script_arguments=["0"]) for _ in range(2)]
    for each in nodes:
        each.wait_for_line("Connection refused")
    alone = job.elastic_run.start("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{job.port}")
    assert [each.wait().returncode for each in nodes] == [0, 0]
    alone.send_signal(signal.SIGTERM)
    assert alone.wait().returncode == 0


def patient_coordinator(job):
    """Its loss_timeout counts, not the nodes'. With a lease of 12 s there is time to start another one on a busy machine."""
    started = job.elastic_run.start("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{job.port}",
                                    "--rdzv-conf=loss_timeout=20")
    started.wait_for_line("the coordinator listens")
    return started


@pytest.mark.gate
def test_a_coordinator_that_is_back_within_the_lease_does_not_touch_training(job):
    first = patient_coordinator(job)
    nodes = [job.node(nnodes="2", conf="is_host=0,failover=off") for _ in range(2)]
    pids = [environments(node, 1)[0]["PID"] for node in nodes]
    first.popen.kill()
    first.wait()
    second = patient_coordinator(job)
    for node in nodes:
        node.wait_for_line("reconnected to the coordinator at", timeout=60)
    assert all(alive(pid) for pid in pids)
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    for node in nodes:
        node.wait()
    second.send_signal(signal.SIGTERM)
    second.wait()


def test_a_node_that_is_given_another_loss_timeout_than_its_coordinator_has_is_told_which_one_holds(job):
    alone = patient_coordinator(job)
    nodes = [job.node(nnodes="2", conf=f"is_host=0{more}", script_arguments=["0"]) for more in (",loss_timeout=7", "")]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    told = re.findall("loss_timeout: .*", results[0].stderr)
    assert len(told) == 1 and "given 7 s, and the coordinator has 20 s, which holds" in told[0], told
    assert "loss_timeout" not in results[1].stderr, results[1]
    alone.send_signal(signal.SIGTERM)
    alone.wait()


def test_without_failover_every_node_ends_with_its_lease_when_the_coordinator_is_lost(job):
    alone = job.elastic_run.start("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{job.port}")
    alone.wait_for_line("the coordinator listens")
    nodes = [job.node("--max-restarts=3", nnodes="1:2", conf="is_host=0,failover=off") for _ in range(2)]
    for node in nodes:
        until_size(node, 2)
    alone.popen.kill()
    alone.wait()
    for node in nodes:
        result = node.wait()
        assert result.returncode == 1, result
        assert f"lost the coordinator at 127.0.0.1:{job.port} and could not reconnect in time, and no other node can take over: Connection refused" in result.stderr, result


def test_without_failover_a_coordinator_that_is_back_ends_a_job_that_lacks_a_node(job):
    """Two of its three nodes are enough for another round, but not to go on with one that another coordinator formed."""
    first = patient_coordinator(job)
    nodes = [job.node(nnodes="1:3", conf=f"is_host=0,failover=off,{ALL_COME}") for _ in range(3)]
    for node in nodes:
        until_size(node, 3)
    for process in (first, nodes.pop()):
        process.popen.kill()
        process.wait()
    second = patient_coordinator(job)
    results = [node.wait() for node in nodes]
    for result in results:
        assert result.returncode == 1, result
        assert "reconnected to the coordinator at" in result.stderr, result
        assert re.search(r"of the 3 nodes of round 0 only 2 came back to it \(node ranks .*\)", result.stderr), result
        assert "round 1" not in result.stderr, result
    second.send_signal(signal.SIGTERM)
    assert second.wait().returncode == 0


def test_the_rules_of_the_first_node_hold_after_it_has_left_and_the_coordinator_was_lost(job):
    def node(*arguments):
        return job.node("--max-restarts=1", *arguments, nnodes="2:4", conf="is_host=0,failover=off")

    alone = patient_coordinator(job)
    first = node("--rdzv-conf=is_host=0,failover=off,scale_up=never,last_call_timeout=10")
    first.wait_for_line("1 node present, 2 needed", timeout=60)
    others = [node() for _ in range(2)]
    for each in (first, *others):
        assert environments(each, 1)[0]["WORLD_SIZE"] == "3"
    first.send_signal(signal.SIGTERM)
    first.wait()
    found = [environments(each, 1)[0] for each in others]
    assert {each["WORLD_SIZE"] for each in found} == {"2"}
    alone.popen.kill()
    alone.wait()
    alone = patient_coordinator(job)
    for each in others:
        each.wait_for_line("reconnected to the coordinator at", timeout=60)
    more = [node() for _ in range(2)]  # with the default rules the job would grow to 4 nodes at once
    for each in more:
        each.wait_for_line("standing by: the job runs with 2 nodes", timeout=60)
    os.kill(found[0]["PID"], signal.SIGKILL)
    assert [environments(each, 1)[0]["WORLD_SIZE"] for each in others] == ["3", "3"]
    for each in (*others, *more):
        each.send_signal(signal.SIGTERM)
    for each in (*others, *more):
        each.wait()
    alone.send_signal(signal.SIGTERM)
    alone.wait()


def test_between_hosts_the_master_is_where_rank_0_is_reached(network, job):
    hosts = network(3)
    job.host = hosts[0].address
    nodes = [job.node(nnodes="3", script_arguments=["0"], preexec_fn=host.enter) for host in hosts]
    found = [environments(node, 1)[0] for node in nodes]
    assert [node.wait().returncode for node in nodes] == [0, 0, 0]
    [master] = {each["MASTER_ADDR"] for each in found}
    rank_0 = next(host for host, each in zip(hosts, found) if each["RANK"] == "0")
    assert master == rank_0.address


@pytest.mark.gate
def test_a_node_that_is_lost_costs_no_restart(network, job):
    """Its ranks are taken away from the job, the others are told which node it was, and go on."""
    hosts = network(3)
    job.host = hosts[0].address
    nodes = [job.node(nnodes="2:3", conf=ALL_COME, preexec_fn=host.enter) for host in hosts]
    for node in nodes:
        until_size(node, 3)
    hosts[1].silence()
    for node in (nodes[0], nodes[2]):
        assert until_size(node, 2)["TORCHELASTIC_RESTART_COUNT"] == "0"
        assert "node1" in node.stderr.text
    for node in (nodes[0], nodes[2]):
        node.send_signal(signal.SIGTERM)
    for node in (nodes[0], nodes[2]):
        node.wait()
    hosts[1].restore()
    nodes[1].send_signal(signal.SIGTERM)
    nodes[1].wait()
