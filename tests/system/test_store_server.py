"""What our store's server does beyond the protocol: strangers, rounds, descriptors, addresses."""
# ctest: gate

import resource
import socket
import threading

import harness
import pytest
from raw_store import ADD, GET, GETNUMKEYS, HELLO, PING, SET, Raw, i64, request, text
from store_servers import OurServer, client, dist, ours, tcp_table  # noqa: F401  `ours` is a fixture

# The first bytes of a worker of torch 1.13.1, 2.0.1 and 2.1.2, as recorded: ADD, which was 3, of 1 to
# `init/`. Then they wait for the answer. (1.13.1 and 2.0.1 open a second connection and send nothing.)
OLD_WORKER = bytes.fromhex("030500000000000000696e69742f0100000000000000")
# The same client without a world size begins with SET, which was 0, and sends the length at once or after it.
OLD_SET = bytes.fromhex("0004000000000000002f666f6f0300000000000000626172")
OLD = r"torch 2\.\d or older; use torch 2\.2 or newer"


def test_the_first_words_may_come_in_pieces(ours):
    raw = Raw(ours, greet=False)
    raw.send_in_pieces(HELLO + request(PING, b"abcd"))
    assert raw.receive(4) == b"abcd"


@pytest.mark.parametrize("words, named", [
    (b"G", "HTTP"),
    (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
    (OLD_WORKER, OLD),
    (OLD_SET, OLD),
    (bytes.fromhex("cef7853c"), "use torch 2.2 or newer"),
    (bytes.fromhex("00cef7853d"), "wrong magic number"),
    (request(GET, text(b"/foo")), OLD),
    (b"hello", "first bytes 68 65 6c 6c 6f"),
])
def test_who_does_not_say_validate_is_closed_at_once_and_named(ours, words, named):
    raw = Raw(ours, greet=False).send(words)
    assert raw.until_closed() == b""
    ours.wait_for_log(f"closed the connection from 127.0.0.1:{raw.port}: .*{named}")
    assert ours.stats()["commands"] == 0


def test_a_job_of_an_old_torch_is_told_once_why_it_is_refused(ours):
    """A worker of torch 1.13 tries again and again, from many processes: one warning, the rest for
    those who ask for everything."""
    for _ in range(20):
        raw = Raw(ours, greet=False).send(OLD_WORKER)
        idle = Raw(ours, greet=False)  # its second connection, on which it says nothing
        assert raw.until_closed() == b""
        idle.leave()
    assert Raw(ours).ask(GETNUMKEYS) == i64(0)
    ours.end()
    told = [line for line in ours.running.stderr.text.splitlines() if "or older" in line]
    assert len(told) == 20
    assert sum("warning: " in line for line in told) == 1
    assert all("use torch 2.2 or newer" in line for line in told)


def test_rounds_are_kept_apart_over_100_resets(ours):
    assert Raw(ours).ask(SET, text(b"/old"), text(b"")) == b""
    for number in range(100):
        torch_client = client(ours, world_size=1) if number % 10 == 0 else None
        connected = [Raw(ours) for _ in range(4)]
        ours.hold()
        # These wait in the accept queue, and what they ask for waits with them.
        queued = [Raw(ours, greet=False) for _ in range(4)]
        late = request(SET, text(b"/old"), text(b"%d" % number))
        for raw in connected:
            raw.send(late)
        for raw in queued:
            raw.send(HELLO, late)
        ours.reset()
        assert [raw.until_closed() for raw in connected + queued] == [b""] * 8
        assert Raw(ours).ask(GETNUMKEYS) == i64(0)
        if torch_client:
            with pytest.raises(dist.DistNetworkError):
                torch_client.get("old")
    fresh = client(ours, world_size=1)
    assert (fresh.num_keys(), fresh.list_keys()) == (1, [])


def test_a_torch_client_that_connects_while_a_round_ends_gets_into_the_next(ours):
    ours.hold()
    made = []
    connecting = threading.Thread(target=lambda: made.append(client(ours, world_size=1)))
    connecting.start()
    harness.wait_until(lambda: queued_at(ours.port), what="a client in the accept queue")
    ours.reset()
    connecting.join()
    assert made[0].num_keys() == 1


def queued_at(port):
    return any(local == port and state == "0A" and queue > 0
               for local, _, state, queue, _ in tcp_table())


def test_the_host_of_a_silent_client_is_asked_whether_it_lives(ours):
    raw = Raw(ours)
    keep_alive = "02"
    harness.wait_until(what="a keep-alive timer", condition=lambda: any(
        (local, remote, timer) == (ours.port, raw.port, keep_alive)
        for local, remote, _, _, timer in tcp_table()))


def test_no_free_descriptors_close_newcomers_only(elastic_run):
    few = 40

    def limit_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))

    server = OurServer(elastic_run, preexec_fn=limit_descriptors)
    served, turned_away = [], 0
    for _ in range(few + 10):
        raw = Raw(server, greet=False)
        try:
            raw.send(HELLO, request(PING, b"abcd"))
            answered = raw.receive(4) == b"abcd"
        except ConnectionError:
            answered = False
        if answered:
            served.append(raw)
        else:
            turned_away += 1
    assert turned_away >= 10
    assert len(served) > few // 2
    assert all(raw.ask(ADD, text(b"/n"), 1) == i64(number + 1) for number, raw in enumerate(served))
    for raw in served:
        raw.vanish()
    harness.wait_until(lambda: server.stats()["connections"] == 0)
    assert Raw(server).ask(ADD, text(b"/n"), 0) == i64(len(served))
    server.end()


def test_all_addresses_are_those_of_both_families(elastic_run):
    server = OurServer(elastic_run, address="")
    for address in ("127.0.0.1", "::1"):
        with socket.create_connection((address, server.port), timeout=60) as connection:
            connection.sendall(HELLO + request(PING, b"abcd"))
            assert connection.recv(4, socket.MSG_WAITALL) == b"abcd"
    server.end()
