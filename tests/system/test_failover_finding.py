"""A job whose coordinator has moved is found from anywhere: several hosts in the endpoint, hosts that come back, names
with many addresses, firewalls."""
# ctest: long
# ctest: clock
# ctest: nodes

import ctypes
import os
import re

import pytest
from networks import network  # noqa: F401 (a fixture)
from test_failover import CONF, begin, end, kill_all, next_round, start
from test_many_nodes import job, until_size  # noqa: F401 (a fixture)

CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 1 << 18, 0x1000
libc = ctypes.CDLL(None, use_errno=True)


def together(nodes):
    """These nodes, and no others, are in one round, in which each has a rank."""
    found = next_round(nodes)
    assert sorted(each["RANK"] for each in found) == [str(rank) for rank in range(len(nodes))]


def test_a_newcomer_finds_the_job_by_a_further_host_of_the_endpoint_after_the_first_one_is_gone(network, job):
    hosts = network(4)
    job.host = ",".join(host.address for host in hosts[:3])
    conf = CONF + ",last_call_timeout=60"
    nodes = [start(job, hosts[0], conf=conf)]
    nodes[0].wait_for_line("this node hosts the coordinator")  # else another host of the endpoint may be first
    nodes += [start(job, host, conf=conf) for host in hosts[1:3]]
    together(nodes)
    for index, node in enumerate(nodes):
        hosting = "this node hosts the coordinator" in node.stderr.text
        assert hosting == (index == 0)
    kill_all(nodes[0])
    together(nodes[1:])
    nodes[0] = start(job, hosts[3])
    together(nodes)
    end(nodes)


@pytest.mark.parametrize("when", ["before the others have elected another", "after the next round"])
def test_a_host_that_comes_back_empty_under_the_endpoints_name_becomes_a_node_of_the_running_job(network, job, when):
    hosts = network(3)
    nodes = begin(job, hosts, nnodes="1:3")
    kill_all(nodes[0])
    if when == "after the next round":
        together(nodes[1:])
    nodes[0] = start(job, hosts[0], nnodes="1:3")
    found = [until_size(node, 3) for node in nodes]
    # It is the same start of the job, in which the host that came back has met its first round.
    assert len({each["ELASTIC_RUN_FENCE"] for each in found}) == 1
    assert not found[0]["ELASTIC_RUN_FENCE"].endswith("-0000000000")
    end(nodes)


def on_host_with_names(host, hosts_file):
    def enter():
        host.enter()
        for result in (libc.unshare(CLONE_NEWNS), libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None),
                       libc.mount(os.fsencode(hosts_file), b"/etc/hosts", None, MS_BIND, None)):
            if result != 0:
                raise OSError(ctypes.get_errno(), "mount /etc/hosts")
    return enter


def test_nodes_meet_under_a_name_that_leads_to_all_of_them_and_newcomers_find_the_job_there(network, job, tmp_path):
    hosts = network(4)
    names = tmp_path / "hosts"
    names.write_text("".join(f"{host.address} workers.training.svc\n" for host in hosts))
    job.host = "workers.training.svc"

    def node(host):
        return job.node(nnodes="2:3", conf=CONF + ",last_call_timeout=60", preexec_fn=on_host_with_names(host, names))

    # The first of the addresses comes last: each of the others may have begun the job by then.
    nodes = [node(host) for host in (hosts[2], hosts[1], hosts[0])]
    together(nodes)
    for each in nodes:
        assert "round 0: 3 nodes" in each.stderr.text
    kill_all(nodes[0])
    together(nodes[1:])
    nodes[0] = node(hosts[3])
    together(nodes)
    end(nodes)


@pytest.mark.parametrize("silently", [False, True])
def test_behind_firewalls_that_open_the_coordinators_host_alone_it_goes_on_alone_as_without_failover(
    network, job, silently
):
    hosts = network(3)
    for host in hosts[1:]:
        host.refuse_new_connections(silently=silently)
    nodes = begin(job, hosts, nnodes="1:3")
    text = nodes[0].stderr.text
    assert len(re.findall("this job ends if its coordinator's node is lost: no other node can be reached", text)) == 1
    for node in nodes[1:]:
        kill_all(node)
    until_size(nodes[0], 1)
    assert "resigns" not in nodes[0].stderr.text
    end(nodes[:1])


def test_behind_firewalls_that_open_the_coordinators_host_alone_the_others_end_with_it(network, job):
    """They are enough for another round, and nobody leads it."""
    hosts = network(3)
    for host in hosts[1:]:
        host.refuse_new_connections(silently=False)
    nodes = begin(job, hosts, nnodes="1:3", conf=CONF + ",last_call_timeout=60")
    kill_all(nodes[0])
    for node in nodes[1:]:
        result = node.wait()
        assert result.returncode == 1, result
        assert "and could not reconnect in time, and no other node can take over" in result.stderr, result
        assert "round 1" not in result.stderr, result


def test_a_fixed_port_of_the_doors_is_used(network, job):
    hosts = network(3)
    nodes = begin(job, hosts, conf=CONF + ",coordinator_port=4567")
    kill_all(nodes[0])
    together(nodes[1:])
    new = next(node for node in nodes[1:] if "this node hosts the coordinator" in node.stderr.text)
    assert "this node hosts the coordinator at port 4567" in new.stderr.text
    end(nodes[1:])
