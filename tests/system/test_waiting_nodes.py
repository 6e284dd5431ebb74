"""What nodes say that wait for each other in vain: what is wrong, at every log level, and again in their last words."""
# ctest: clock
# ctest: nodes

import os
import re
import signal
import socket

import pytest

from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import environments, job  # noqa: F401 (a fixture)
from test_wrong_endpoint import peer, says

AT_EVERY_LEVEL = "--log-level=error"


def stop(*nodes):
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    for node in nodes:
        node.wait()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "0.0.0.0"])
def test_an_endpoint_that_leads_each_node_to_itself_is_told_with_the_remedy(job, host):
    job.host = host
    node = job.node(AT_EVERY_LEVEL, conf="join_timeout=4")
    node.wait_for_line(f"{host} leads each node to itself.*Give all nodes --rdzv-endpoint={os.uname().nodename}", timeout=60)
    result = node.wait()
    assert result.returncode == 1
    said = result.stderr.splitlines()
    assert sum("leads each node to itself" in line for line in said) == 2, result
    assert "gave up" in said[-1] and "leads each node to itself" in said[-1]


def test_nodes_that_were_each_given_their_own_address_say_what_the_others_need(network, job):
    nodes = []
    for host in network(2):
        job.host = host.address
        nodes.append((host, job.node(AT_EVERY_LEVEL, conf="join_timeout=5", preexec_fn=host.enter)))
    for host, node in nodes:
        told = f"this node hosts at {host.address}:{job.port}; the others must be given the same --rdzv-endpoint"
        node.wait_for_line(told, timeout=60)
        result = node.wait()
        assert result.returncode == 1 and told in result.stderr.splitlines()[-1], result


def test_an_address_that_is_not_this_nodes_is_said_to_be_elsewhere(network, job):
    here, there = network(2)
    job.host = there.address
    node = job.node(AT_EVERY_LEVEL, conf="join_timeout=5", preexec_fn=here.enter)
    elsewhere = f"Connection refused; {there.address}, which no interface of this node has"
    node.wait_for_line(f"waiting for the coordinator at {there.address}:{job.port} .{elsewhere}", timeout=60)
    result = node.wait()
    assert result.returncode == 1 and elsewhere in result.stderr.splitlines()[-1], result


def waits_in_vain(job, why, **options):
    """A node says so while it waits and in its last words."""
    node = job.node(AT_EVERY_LEVEL, conf="is_host=0,join_timeout=9", **options)
    node.wait_for_line(re.escape(f"waiting for the coordinator at {job.host}:{job.port} ({why}"), timeout=60)
    result = node.wait()
    assert result.returncode == 1 and why in result.stderr.splitlines()[-1], result


def test_a_host_whose_firewall_drops_packets_is_said_not_to_answer(network, job):
    here, there = network(2)
    job.host = there.address
    there.refuse_new_connections(silently=True)
    waits_in_vain(job, "no answer within 2000 ms", preexec_fn=here.enter)


def test_a_host_to_which_no_route_leads_is_said_to_have_none(network, job):
    here, there = network(2)
    job.host = there.address
    here.ip("route", "add", "unreachable", job.host)
    waits_in_vain(job, "No route to host", preexec_fn=here.enter)


def test_a_name_that_stands_for_nothing_is_said_to_be_none(job):
    job.host = "no-such-host.invalid"
    waits_in_vain(job, "no such name")


def test_a_web_server_is_said_to_be_one_at_once(job):
    with peer(says(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", after_a_word=True)) as job.port:
        result = job.node(AT_EVERY_LEVEL, conf="is_host=0,join_timeout=600").wait()
    it_speaks = f"{job.host}:{job.port}: it speaks HTTP, not elastic-run's agent protocol"
    assert result.returncode == 1 and result.stderr == f"elastic-run: error: {it_speaks}\n", result


def test_a_place_that_accepts_connections_and_sends_nothing_is_said_to_do_so(job):
    with socket.create_server((job.host, job.port)):
        node = job.node(AT_EVERY_LEVEL, conf="join_timeout=4")
        silent = "it accepts the connection, but sends nothing"
        node.wait_for_line(f"waiting for the coordinator at {job.host}:{job.port} .{silent}", timeout=60)
        result = node.wait()
    assert result.returncode == 1 and silent in result.stderr.splitlines()[-1], result


def test_a_file_that_other_hosts_do_not_see_is_told_at_once_and_again_at_the_end(elastic_run, tmp_path):
    node = elastic_run.start("--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint={tmp_path}/meeting", AT_EVERY_LEVEL,
                             "--rdzv-conf=store_type=file,join_timeout=4", "--no-python", "/bin/true")
    told = f"file {tmp_path}/meeting is on .*, which other hosts do not see"
    node.wait_for_line(told, timeout=60)
    result = node.wait()
    said = result.stderr.splitlines()
    assert sum("other hosts do not see" in line for line in said) == 2, result
    assert result.returncode == 1 and "gave up" in said[-1] and "other hosts do not see" in said[-1], result


def static(job, rank, host):
    return job.elastic_run.start("--nnodes=2", f"--node-rank={rank}", f"--master-addr={job.host}",
                                 f"--master-port={job.port}", AT_EVERY_LEVEL, job.worker, preexec_fn=host.enter)


@pytest.mark.parametrize("where", [(0, 1, 2), (0, 0, 1)], ids=["on two hosts", "on one host"])
def test_of_two_static_nodes_of_rank_0_the_second_is_refused_and_the_first_goes_on(network, job, where):
    hosts = network(3)
    job.host = hosts[0].address
    first = static(job, 0, hosts[where[0]])
    first.wait_for_line("1 node present, 2 needed", timeout=60)
    result = static(job, 0, hosts[where[1]]).wait()
    assert result.returncode == 1 and not result.stdout, result
    refused = f"node{where[1]} asks for rank 0, but node0 has it"
    assert f"{refused} and is alive; give each node a rank of its own; 1 is free" in result.stderr.splitlines()[-1], result
    first.wait_for_line(refused, timeout=60)
    second = static(job, 1, hosts[where[2]])
    for node in (first, second):
        assert environments(node, 1)[0]["WORLD_SIZE"] == "2"
    stop(second, first)


def test_a_static_node_that_was_given_its_own_address_is_told_that_another_one_is_to_host(network, job):
    here = network(1)[0]
    job.host = here.address
    node = static(job, 1, here)
    node.wait_for_line(f"Connection refused; {here.address}, an address of this node, and another node is to host", timeout=60)
    stop(node)


def test_a_static_node_0_begins_no_job_at_another_programs_coordinator(network, job):
    here, there = network(2)
    job.host = there.address
    foreign = job.elastic_run.start("--coordinator-only", f"--rdzv-endpoint={job.host}:{job.port}", preexec_fn=there.enter)
    foreign.wait_for_line(f"port {job.port}")
    node = static(job, 0, here)
    node.wait_for_line(f"this node hosts at port {job.port}, though {job.host}, which no interface of this node has", timeout=60)
    stop(node, foreign)


def test_a_static_node_0_behind_an_address_that_it_does_not_have_hosts_and_ends_the_job_as_it_leaves(network, job):
    """As behind a service: packets to that address come back to the node."""
    hosts = network(2)
    job.host = "10.99.0.7"
    hosts[0].ip("route", "add", "local", job.host, "dev", "lo")
    hosts[1].ip("route", "add", job.host, "via", hosts[0].address)
    nodes = [static(job, rank, host) for rank, host in enumerate(hosts)]
    for node in nodes:
        assert environments(node, 1)[0]["WORLD_SIZE"] == "2"
    nodes[0].send_signal(signal.SIGTERM)
    results = [node.wait() for node in nodes]
    assert "SIGTERM" in results[1].stderr, results[1]


def test_a_dead_static_node_0_is_replaced_on_its_host(network, job):
    hosts = network(2)
    job.host = hosts[0].address
    first = static(job, 0, hosts[0])
    first.wait_for_line("1 node present, 2 needed", timeout=60)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    nodes = [static(job, 0, hosts[0]), static(job, 1, hosts[1])]
    for node in nodes:
        assert environments(node, 1)[0]["WORLD_SIZE"] == "2"
    stop(*reversed(nodes))


def test_a_node_more_than_the_maximum_says_that_it_stands_by(job):
    nodes = job.nodes(2)
    for node in nodes:
        environments(node, 1)
    spare = job.node(AT_EVERY_LEVEL)
    spare.wait_for_line("standing by: the job has its maximum of 2 nodes", timeout=60)
    stop(spare, *reversed(nodes))


def test_a_node_that_is_kept_out_says_so_and_until_when_and_so_does_the_coordinators(network, job):
    hosts = network(2)
    job.host = hosts[0].address
    rules = "node_losses=1,keep_out=600"
    first = job.node(AT_EVERY_LEVEL.replace("error", "warning"), nnodes="1:2", conf=rules, preexec_fn=hosts[0].enter)
    lost = job.node(nnodes="1:2", conf=rules, preexec_fn=hosts[1].enter)
    while environments(lost, 1)[0]["WORLD_SIZE"] != "2":
        pass
    os.kill(lost.launcher(), signal.SIGKILL)
    lost.wait()
    first.wait_for_line("node1.* is kept out for 600 s: it was lost too often", timeout=60)
    back = job.node(AT_EVERY_LEVEL, nnodes="1:2", conf=rules, preexec_fn=hosts[1].enter)
    back.wait_for_line(r"this node waits to be let in: it was lost too often and is kept out for another \d+ s", timeout=60)
    back.wait_for_line(r"kept out for another \d+ s\), for \d+ s", timeout=60)
    stop(back, first)
