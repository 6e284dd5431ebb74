"""Where the workers of many nodes meet: MASTER_ADDR, MASTER_PORT and the store there, in every round."""
# ctest: gate
# ctest: nodes

import os
import signal

import pytest

from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import ALL_COME, environments, job  # noqa: F401 (a fixture)

# Looks into the round's store before it writes to it, waits for all ranks there, and says what it has found.
# Then the last rank fails, as long as $FAILURES says, and the others wait for their end; or all succeed.
WORKER = f"""
import json, os, socket, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, {os.path.dirname(__file__)!r})
import raw_store

names = ["RANK", "WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
         "TORCHELASTIC_USE_AGENT_STORE"]
found = {{name: os.environ.get(name) for name in names}}
rank, world = int(found["RANK"]), int(found["WORLD_SIZE"])
count = int(found["TORCHELASTIC_RESTART_COUNT"])
address, port = found["MASTER_ADDR"], int(found["MASTER_PORT"])


def key(of_rank, of_count=count):
    return f"rank {{of_rank}} of start {{of_count}}".encode()


def has(name):
    return raw_store.check(store, name) == raw_store.READY


def say():
    os.write(1, f"env {{json.dumps(found)}}\\n".encode())  # in one piece: others write there, too


def serve_and_say(at):
    if rank == 0:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.create_server((address, at), family=family) as server:
            clients = [server.accept()[0] for _ in range(world - 1)]
        for client in clients:
            client.sendall(b"rank 0 serves")
        say()
        for client in clients:  # the others know by it that it has
            client.close()
        return
    deadline = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection((address, at), timeout=60) as client:
                found["heard"] = client.makefile("rb").read().decode()
            return say()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


if found["TORCHELASTIC_USE_AGENT_STORE"] == "False":  # rank 0 is to serve it: anything will do here
    serve_and_say(port)
else:
    store = raw_store.connect(port, address)
    found["keys"] = raw_store.number_of_keys(store)
    found["old"] = [other for other in range(8) if count > 0 and has(key(other, count - 1))]
    store.sendall(raw_store.set_command(key(rank)))
    while not all(has(key(other)) for other in range(world)):
        time.sleep(0.01)
    if "OWN_PORT" in os.environ:  # a port of the script's own beside the store's, on the same address
        serve_and_say(int(os.environ["OWN_PORT"]))
    else:
        say()
    store.sendall(raw_store.set_command(b"said by " + key(rank)))
    while not all(has(b"said by " + key(other)) for other in range(world)):
        time.sleep(0.01)

if count < int(os.environ.get("FAILURES", "0")):
    if rank == world - 1:
        sys.exit(5)
    time.sleep(600)
if "STAY" in os.environ:
    time.sleep(600)
"""


@pytest.fixture
def worker(script):
    return script("worker.py", WORKER)


def one(found, name):
    """What all of them have found alike."""
    values = {each[name] for each in found}
    assert len(values) == 1, found
    return values.pop()


def by_rank(found):
    return {int(each["RANK"]): each for each in found}


def finish(nodes, status=0):
    for result in [node.wait() for node in nodes]:
        assert result.returncode == status, result


def stop(nodes):
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    for node in nodes:
        node.wait()


def test_the_store_is_empty_in_every_round_and_all_agree_where_it_is(network, job, worker):
    hosts = network(3)
    job.host = hosts[0].address
    nodes = [job.node("--max-restarts=2", nnodes="3", nproc=2, script=worker, preexec_fn=host.enter,
                      env={"FAILURES": "2", "OMP_NUM_THREADS": "1"}) for host in hosts]
    ports = []
    for count in range(3):
        found = [each for node in nodes for each in environments(node, 2)]
        assert one(found, "TORCHELASTIC_RESTART_COUNT") == str(count)
        assert sorted(by_rank(found)) == list(range(6))
        assert one(found, "MASTER_ADDR") == hosts[int(by_rank(found)[0]["GROUP_RANK"])].address
        ports.append(one(found, "MASTER_PORT"))
        assert all(each["old"] == [] and each["keys"] < 6 for each in found), found
    assert len(set(ports)) == 3, "a late worker of an old round would find a new one's store"
    finish(nodes)


def test_a_node_that_joins_a_later_round_gets_its_address_and_port(network, job, worker):
    hosts = network(3)
    job.host = hosts[0].address
    options = {"nnodes": "2:3", "script": worker, "env": {"STAY": "1"}}
    nodes = [job.node(**options, preexec_fn=host.enter) for host in hosts[:2]]
    before = [environments(node, 1)[0] for node in nodes]
    nodes.append(job.node(**options, preexec_fn=hosts[2].enter))
    after = [environments(node, 1)[0] for node in nodes]
    assert one(after, "WORLD_SIZE") == "3" and one(before, "WORLD_SIZE") == "2"
    assert one(after, "MASTER_ADDR") == hosts[0].address
    assert one(after, "MASTER_PORT") != one(before, "MASTER_PORT")
    stop(reversed(nodes))


def test_when_rank_0s_node_is_lost_the_store_is_where_the_new_rank_0_is(network, job, worker):
    hosts = network(4)
    job.host = hosts[3].address
    alone = job.elastic_run.start("--coordinator-only", f"--rdzv-endpoint={job.host}:{job.port}",
                                  preexec_fn=hosts[3].enter)
    nodes = {host: job.node(nnodes="2:3", script=worker, conf=ALL_COME, env={"STAY": "1"}, preexec_fn=host.enter)
             for host in hosts[:3]}
    found = {host: environments(node, 1)[0] for host, node in nodes.items()}
    [lost] = [host for host, each in found.items() if each["RANK"] == "0"]
    assert one(found.values(), "MASTER_ADDR") == lost.address
    gone = nodes.pop(lost)
    os.kill(gone.launcher(), signal.SIGKILL)
    gone.wait()
    found = {host: environments(node, 1)[0] for host, node in nodes.items()}
    [first] = [host for host, each in found.items() if each["RANK"] == "0"]
    assert one(found.values(), "MASTER_ADDR") == first.address != lost.address
    stop(nodes.values())
    stop([alone])


def test_an_endpoint_of_ipv6_makes_all_of_it_ipv6(network, job, worker):
    hosts = network(2)
    job.host = f"[{hosts[0].address6}]"
    own = {"OWN_PORT": "23457"}
    nodes = [job.node(nnodes="2", script=worker, preexec_fn=host.enter, env=own) for host in hosts]
    found = [environments(node, 1)[0] for node in nodes]
    first = by_rank(found)[0]
    assert one(found, "MASTER_ADDR") == hosts[int(first["GROUP_RANK"])].address6
    assert by_rank(found)[1]["heard"] == "rank 0 serves"
    finish(nodes)


def test_a_script_may_bind_a_port_of_its_own_on_the_master_address(network, job, worker):
    hosts = network(3)
    job.host = hosts[0].address
    nodes = [job.node(nnodes="3", script=worker, preexec_fn=host.enter, env={"OWN_PORT": "23456"}) for host in hosts]
    found = by_rank([environments(node, 1)[0] for node in nodes])
    assert [found[rank]["heard"] for rank in (1, 2)] == ["rank 0 serves"] * 2
    finish(nodes)


def test_where_rank_0s_worker_serves_the_store_the_port_is_left_to_it(network, job, worker):
    hosts = network(2)
    job.host = hosts[0].address
    nodes = [job.node("--max-restarts=1", nnodes="2", script=worker, preexec_fn=host.enter,
                      env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "FAILURES": "1"}) for host in hosts]
    for _ in range(2):
        found = [environments(node, 1)[0] for node in nodes]
        assert one(found, "TORCHELASTIC_USE_AGENT_STORE") == "False"
        assert one(found, "MASTER_ADDR") == hosts[int(by_rank(found)[0]["GROUP_RANK"])].address
        one(found, "MASTER_PORT")
        assert by_rank(found)[1]["heard"] == "rank 0 serves"
    finish(nodes)


def test_store_port_holds_for_every_round(network, job, worker):
    hosts = network(2)
    job.host = hosts[0].address
    nodes = [job.node("--max-restarts=2", nnodes="2", script=worker, conf="store_port=24567", preexec_fn=host.enter,
                      env={"FAILURES": "2"}) for host in hosts]
    for _ in range(3):
        found = [environments(node, 1)[0] for node in nodes]
        assert one(found, "MASTER_PORT") == "24567"
        assert all(each["old"] == [] and each["keys"] < 2 for each in found), found
    finish(nodes)


def test_a_store_port_that_somebody_else_has_is_named_with_its_holder(network, job, worker):
    hosts = network(2)
    job.host = hosts[0].address
    holder = job.elastic_run.start("-c", "import socket, time; s = socket.create_server(('', 24567)); print('up 1', "
                                   "flush=True); time.sleep(600)", program=["python3"], preexec_fn=hosts[0].enter)
    holder.wait_for_pids(1)
    nodes = [job.node(nnodes="2", script=worker, conf="store_port=24567", preexec_fn=host.enter) for host in hosts]
    results = [node.wait() for node in nodes]
    holder.popen.kill()
    holder.wait()
    assert [result.returncode for result in results] == [1, 1], results
    for result in results:
        assert "24567" in result.stderr and "in use" in result.stderr, result
    assert str(holder.pid) in results[0].stderr and "store_port" in results[0].stderr, results[0]


def test_local_addr_is_what_the_workers_are_told(network, job, worker):
    hosts = network(2)
    job.host = hosts[0].address
    nodes = [job.node(f"--local-addr={host.address6}", nnodes="2", script=worker, preexec_fn=host.enter)
             for host in hosts]
    found = [environments(node, 1)[0] for node in nodes]
    assert one(found, "MASTER_ADDR") == hosts[int(by_rank(found)[0]["GROUP_RANK"])].address6
    finish(nodes)


def test_with_several_interfaces_it_is_the_one_by_which_the_others_come(network, job, worker):
    """The coordinator's own node, which it sees by loopback, has another address first."""
    hosts = network(2)
    for index, host in enumerate(hosts):
        host.ip("link", "add", "aaa0", "type", "veth", "peer", "name", "aaa1")
        host.ip("addr", "add", f"192.168.77.{index + 1}/32", "dev", "aaa0")
        host.ip("link", "set", "aaa0", "up")
    job.host = hosts[0].address
    nodes = [job.node(nnodes="2", script=worker, preexec_fn=host.enter) for host in hosts]
    found = [environments(node, 1)[0] for node in nodes]
    assert one(found, "MASTER_ADDR") == hosts[int(by_rank(found)[0]["GROUP_RANK"])].address
    finish(nodes)
