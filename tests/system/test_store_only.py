"""elastic-run --store-only: a worker store alone."""
# ctest: gate

import datetime
import signal
import socket

import pytest

LISTENS = r"^elastic-run: the worker store listens on port (\d+)$"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_it_serves_pytorch_clients_until_it_is_told_to_end(elastic_run, number):
    from torch.distributed import TCPStore

    running = elastic_run.start("--store-only", "--port", "0")
    port = int(running.wait_for_line(LISTENS).group(1))
    stores = [TCPStore("127.0.0.1", port, is_master=False, timeout=datetime.timedelta(seconds=30)) for _ in range(2)]
    stores[0].set("key", "value")
    assert stores[1].get("key") == b"value"
    running.send_signal(number)
    result = running.wait()
    assert (result.returncode, result.stdout) == (0, "")
    assert len(result.stderr.splitlines()) == 1


def test_it_starts_no_process_and_serves_all_addresses(elastic_run):
    running = elastic_run.start("--store-only", "--port=0")
    port = int(running.wait_for_line(LISTENS).group(1))
    assert [process.pid for process in running.processes()] == [running.pid]
    for family, address in ((socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as client:
            client.connect((address, port))
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 0


def test_a_port_in_use_is_told_with_its_holder(elastic_run):
    with socket.socket() as holder:
        holder.bind(("", 0))
        holder.listen()
        result = elastic_run("--store-only", "--port", str(holder.getsockname()[1]))
    assert result.returncode == 1
    assert f"port {result.command[-1]} " in result.stderr and "choose another --port" in result.stderr



@pytest.mark.parametrize("arguments, message", [
    (["--store-only", "train.py"], "train.py: --store-only starts no script; leave it out, or --store-only"),
    (["--store-only", "--port=70000"], "--port=70000: 70000 is out of range; give a number from 0 to 65535"),
    (["--store-only", "--dry-run"], "--dry-run: --store-only starts no job; leave it out, or --store-only"),
    (["--nproc-per-node=2", "--store-only"],
     "--nproc-per-node=2: --store-only starts no job; leave it out, or --store-only"),
    (["--port=5", "train.py"],
     "--port=5: it is the port of --store-only; use --master-port for the workers' store"),
])
def test_what_makes_no_sense_with_it_is_refused(elastic_run, script, arguments, message):
    script("train.py", "")
    result = elastic_run(*arguments)
    assert (result.returncode, result.stderr) == (2, f"elastic-run: error: {message}\n")
