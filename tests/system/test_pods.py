"""elastic-run as the entrypoint of pods: their environments, replayed from pods/*.env."""

import json
import socket

from ports import free_port
from test_many_nodes import environments, job  # noqa: F401 (a fixture)


def test_the_store_is_at_a_free_port_of_the_pods_own_and_at_any_other_where_none_is(job):  # noqa: F811
    taken, own = free_port(), free_port()
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", taken))
        holder.listen()
        nodes = job.nodes(2, script_arguments=["0"], env={"HOST_PORTS": f"{taken},{own}", "POD_IP": "127.0.0.1"})
        found = [environments(node, 1)[0] for node in nodes]
        assert [node.wait().returncode for node in nodes] == [0, 0]
        assert {(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found} == {("127.0.0.1", str(own))}

        nodes = job.nodes(2, script_arguments=["0"], env={"HOST_PORTS": str(taken)})
        found = [environments(node, 1)[0] for node in nodes]
        assert [node.wait().returncode for node in nodes] == [0, 0]
        assert not {each["MASTER_PORT"] for each in found} & {str(taken), str(own)}


def test_each_round_has_another_port_of_the_pods_own(job, script):  # noqa: F811
    ports = {str(free_port()) for _ in range(3)}
    once = script("once.py", job.worker.read_text().replace(
        "time.sleep(600)", "sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')"))
    nodes = job.nodes(2, "--max-restarts=1", script=once, env={"HOST_PORTS": ",".join(ports)})
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    found = [json.loads(line.removeprefix("env ")) for line in results[0].stdout.splitlines() if line.startswith("env ")]
    assert [each["TORCHELASTIC_RESTART_COUNT"] for each in found] == ["0", "1"]
    used = [each["MASTER_PORT"] for each in found]
    assert used[0] != used[1] and set(used) <= ports, used
