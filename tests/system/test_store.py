"""The worker store as PyTorch's own client sees it, and as bytes on a socket see it.

Most tests run twice, against our server and against PyTorch's: where both must answer alike they
are given no way to tell which it is. Where ours is meant to differ, the test names both answers.
docs/store-protocol.md lists the differences.
"""

import datetime
import os
import pathlib
import resource
import socket
import struct
import subprocess
import threading

import harness
import pytest

# PyTorch's client looks up the names of both ends of each of its connections. Where the resolver
# loses some of many questions at once, it is to ask again soon.
os.environ["RES_OPTIONS"] = "timeout:1"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

OURS, TORCH = "ours", "torch"
SHORT = datetime.timedelta(milliseconds=150)
LONG = datetime.timedelta(seconds=30)


# The two servers.

class OurServer:
    """A store_server of the build under test, which serves one store and obeys lines on stdin."""

    side = OURS

    def __init__(self, programs, address="127.0.0.1", **popen):
        build = pathlib.Path(os.environ["ELASTIC_RUN_BINARY"]).parent
        path = os.environ.get("ELASTIC_STORE_SERVER", build / "tests/stand_ins/store_server")
        self.running = programs.start(address, program=[path], stdin=subprocess.PIPE, **popen)
        self.port = int(self.running.wait_for_line(r"^port (\d+)$", stream="stdout").group(1))

    def tell(self, order):
        self.running.popen.stdin.write(f"{order}\n".encode())
        self.running.popen.stdin.flush()

    def reset(self):
        self.tell("reset")
        self.running.wait_for_line("^reset$", stream="stdout")

    def hold(self):
        """Nothing is served, nor any connection accepted, until the next line is told."""
        self.tell("hold")
        self.running.wait_for_line("^held$", stream="stdout")

    def stats(self):
        self.tell("stats")
        line = self.running.wait_for_line("^stats (.*)$", stream="stdout").group(1)
        return {name: int(value) for name, value in (pair.split("=") for pair in line.split())}

    def wait_for_log(self, pattern):
        self.running.wait_for_line(pattern)

    def end(self):
        self.running.popen.stdin.close()
        assert self.running.wait(10).returncode == 0


class TorchServer:
    side = TORCH

    def __init__(self):
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.port = self.store.port

    def end(self):
        del self.store


@pytest.fixture
def ours(elastic_run):
    server = OurServer(elastic_run)
    yield server
    server.end()


@pytest.fixture(params=[OURS, TORCH])
def server(request):
    if request.param == OURS:
        yield request.getfixturevalue("ours")
        return
    server = TorchServer()
    yield server
    server.end()


@pytest.fixture
def store(server):
    return client(server)


def client(server, world_size=None):
    """A PyTorch client; one with a world size counts itself at `init/`, as a worker does."""
    return dist.TCPStore("127.0.0.1", server.port, world_size, is_master=False, timeout=LONG)


def in_threads(count, work):
    """Runs work(0) to work(count - 1) at once; raises the first exception of any."""
    results = [None] * count
    errors = []

    def run(index):
        try:
            results[index] = work(index)
        except BaseException as error:  # told by the thread that asked
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


# What PyTorch's client does, operation by operation.

def test_values_are_what_was_set(store, server):
    store.set("text", "value")
    store.set("text", "newer")
    store.set("empty", "")
    store.set("bytes", bytes(range(256)))
    large = os.urandom(8 * 1024 * 1024)
    store.set("large", large)
    other = client(server)
    assert other.get("large") == large  # waits for it, and with it for what was set before
    assert other.get("text") == b"newer"
    assert other.get("empty") == b""
    assert other.get("bytes") == bytes(range(256))


def test_counters_count_and_read_as_text(store):
    assert store.add("n", 0) == 0
    assert store.add("n", 5) == 5
    assert store.add("n", -7) == -2
    assert store.get("n") == b"-2"
    store.set("n", " 12abc")
    assert store.add("n", 1) == 13


def test_a_counter_that_is_no_number_closes_the_connection_and_stays(store, server):
    store.set("n", "abc")
    with pytest.raises(dist.DistNetworkError):
        store.add("n", 1)
    assert client(server).get("n") == b"abc"


def test_a_counter_beyond_64_bits(store, server):
    most = 2**63 - 1
    assert store.add("n", most) == most
    if server.side == TORCH:
        assert store.add("n", 1) == -2**63
    else:
        with pytest.raises(dist.DistNetworkError):
            store.add("n", 1)
        assert client(server).get("n") == str(most).encode()


def test_check_and_delete(store):
    store.set("a", "1")
    assert store.check(["a"])
    assert not store.check(["a", "b"])
    assert store.check([])
    assert store.delete_key("a")
    assert not store.delete_key("a")
    assert not store.check(["a"])


def test_compare_set(store):
    assert store.compare_set("k", "", "first") == b"first"
    assert store.compare_set("k", "wrong", "second") == b"first"
    assert store.compare_set("k", "first", "second") == b"second"
    # A missing key answers what was expected, though nothing is stored.
    assert store.compare_set("missing", "expected", "desired") == b"expected"
    assert not store.check(["missing"])


def test_append_and_multi_operations(store):
    store.append("k", "po")
    store.append("k", "tato")
    assert store.get("k") == b"potato"
    store.multi_set(["a", "b", "c"], ["1", "", "3"])
    assert store.multi_get(["c", "a", "b", "k"]) == [b"3", b"1", b"", b"potato"]
    assert store.multi_get([]) == []
    store.multi_set([], [])


def test_keys_are_counted_and_listed(server):
    first = client(server, world_size=2)
    second = client(server, world_size=2)
    assert first.num_keys() == 1  # the count of clients
    second.set("a", "1")
    second.set("", "the empty key")
    assert second.num_keys() == 3
    assert sorted(first.list_keys()) == ["", "a"]
    assert first.delete_key("a")
    assert second.num_keys() == 2


def test_queues(store, server):
    store.queue_push("q", "one")
    store.queue_push("q", "")
    assert store.queue_len("q") == 2
    assert store.check(["q"])
    assert store.queue_pop("q") == b"one"
    assert store.queue_pop("q", False) == b""
    assert store.queue_len("q") == 0
    with pytest.raises(dist.QueueEmptyError):
        store.queue_pop("q", False)
    popper = client(server)

    def push_or_pop(index):
        return store.queue_push("q", "late") if index == 0 else popper.queue_pop("q")

    assert in_threads(2, push_or_pop) == [None, b"late"]


def test_a_wait_ends_when_the_last_key_comes(server):
    stores = [client(server) for _ in range(8)]
    setter = client(server)

    def wait_or_set(index):
        if index < 8:
            stores[index].wait(["a", "b", "a"], LONG)
            return stores[index].get("b")
        setter.set("a", "")
        setter.add("b", 1)
        return b"1"

    assert in_threads(9, wait_or_set) == [b"1"] * 9


def test_a_wait_that_times_out_leaves_the_client_usable(store):
    with pytest.raises(dist.DistStoreError, match="wait timeout after 150ms, keys: /none, /never"):
        store.wait(["none", "never"], SHORT)
    with pytest.raises(dist.DistStoreError, match="wait timeout after 0ms"):
        store.wait(["none"], datetime.timedelta(0))
    store.set_timeout(SHORT)
    with pytest.raises(dist.DistStoreError):
        store.get("none")
    with pytest.raises(dist.DistStoreError):
        store.queue_pop("none")
    # What was cancelled does not answer a later wait.
    store.set("none", "now")
    with pytest.raises(dist.DistStoreError):
        store.wait(["later"], SHORT)
    assert store.get("none") == b"now"
    store.wait(["none"], SHORT)


def test_barriers(server):
    stores = [client(server) for _ in range(8)]
    in_threads(8, lambda index: stores[index].barrier("b", 8, LONG))
    assert stores[0].get("b") == b"8"
    stores[0].barrier("b", 8, SHORT)  # it has been passed
    stores[0].barrier("alone", 1, SHORT)
    with pytest.raises(dist.DistStoreError, match="barrier timeout after 150ms, key: c"):
        stores[0].barrier("c", 2, SHORT)
    stores[1].barrier("c", 2, SHORT)  # the count of the one that gave up stays


def test_clones_and_prefixes(store, server):
    copy = store.clone()
    copy.set("k", "plain")
    outer = dist.PrefixStore("outer", store)
    inner = dist.PrefixStore("inner", outer)
    outer.set("k", "outer")
    inner.set("k", "inner")
    assert (store.get("k"), outer.get("k"), inner.get("k")) == (b"plain", b"outer", b"inner")
    assert client(server).get("outer/inner/k") == b"inner"
    assert sorted(outer.list_keys()) == ["inner/k", "k"]
    with pytest.raises(dist.DistStoreError):
        inner.wait(["none"], SHORT)
    assert inner.add("n", 2) == 2
    in_threads(2, lambda index: dist.PrefixStore("p", client(server)).barrier("b", 2, LONG))


def test_64_clients_at_once(server):
    def work(index):
        own = client(server, world_size=64)
        own.set(f"from/{index}", str(index))
        total = own.add("arrived", 1)
        if total == 64:
            own.set("all", "here")
        own.wait(["all"], LONG)
        values = own.multi_get([f"from/{other}" for other in range(64)])
        return own, values

    done = in_threads(64, work)
    assert all(values == [str(other).encode() for other in range(64)] for _, values in done)
    own = done[0][0]
    assert own.add("arrived", 0) == 64
    assert own.num_keys() == 64 + 3


def test_a_gloo_group_meets_over_the_store(server):
    def work(rank):
        group = dist.ProcessGroupGloo(dist.PrefixStore("0", client(server)), rank, 4, LONG)
        tensor = torch.tensor([float(rank + 1)])
        group.allreduce([tensor]).wait()
        return tensor.item(), group  # a group that goes takes its peers' connections with it

    assert [total for total, _group in in_threads(4, work)] == [10.0] * 4


def test_the_longest_key_and_value_are_taken_and_one_byte_more_closes(server):
    longest = "k" * 8191  # and the client's own slash
    store = client(server)
    store.set(longest, "v")
    assert store.get(longest) == b"v"
    with pytest.raises(dist.DistNetworkError):
        store.add("k" * 8192, 1)
    other = client(server)
    with pytest.raises(dist.DistNetworkError):
        other.set("k", bytes(8 * 1024 * 1024 + 1))
        other.get("k")
    assert client(server).num_keys() == 1


# Bytes on a socket.

(VALIDATE, SET, COMPARE_SET, GET, ADD, CHECK, WAIT, GETNUMKEYS, DELETE_KEY, APPEND, MULTI_GET,
 MULTI_SET, CANCEL_WAIT, PING, QUEUE_PUSH, QUEUE_POP, QUEUE_LEN, LIST_KEYS, BARRIER) = range(19)
HELLO = bytes.fromhex("00cef7853c")


def i64(number):
    return struct.pack("<q", number)


def text(content):
    return i64(len(content)) + content


def keys(*names):
    return i64(len(names)) + b"".join(map(text, names))


def request(op, *arguments):
    return bytes([op]) + b"".join(
        i64(part) if isinstance(part, int) else part for part in arguments)


class Raw:
    """A connection without PyTorch's client. `greet=False`: nothing has been sent yet."""

    def __init__(self, server, greet=True):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if greet:
            self.send(HELLO)
            assert self.answers() == b""

    def send(self, *parts):
        self.socket.sendall(b"".join(parts))
        return self

    def receive(self, size):
        data = b""
        while len(data) < size and (piece := self.socket.recv(size - len(data))):
            data += piece
        return data

    def answers(self):
        """All that was answered so far: a PING's answer comes after it."""
        self.send(bytes([PING]), b"\xa5\x5a\xc3\x3c")
        data = b""
        while not data.endswith(b"\xa5\x5a\xc3\x3c"):
            piece = self.socket.recv(65536)
            assert piece, "the connection was closed"
            data += piece
        return data[:-4]

    def ask(self, *arguments):
        return self.send(request(*arguments)).answers()

    def until_closed(self):
        """What comes before the server closes."""
        data = b""
        try:
            while piece := self.socket.recv(65536):
                data += piece
        except ConnectionResetError:
            pass
        return data

    def vanish(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


# One of every request, and what must be answered on an empty store.
EVERYTHING, EVERYTHING_ANSWERED = map(b"".join, zip(
    (request(SET, text(b"/foo"), text(b"bar")), b""),
    (request(COMPARE_SET, text(b"/foo"), text(b"bar"), text(b"x")), text(b"x")),
    (request(GET, text(b"/foo")), text(b"x")),
    (request(ADD, text(b"init/"), -2), i64(-2)),
    (request(CHECK, keys(b"/foo", b"/b")), b"\1"),
    (request(WAIT, keys()), b"\0"),
    (request(GETNUMKEYS), i64(2)),
    (request(DELETE_KEY, text(b"/foo")), i64(1)),
    (request(APPEND, text(b"/a"), text(b"more")), b""),
    (request(MULTI_GET, keys(b"", b"/a")), text(b"") + text(b"more")),
    (request(MULTI_SET, 2, text(b"/a"), text(b"1"), text(b"/b"), text(b"")), b""),
    (request(CANCEL_WAIT), b"\1"),
    (request(PING, b"\1\2\3\4"), b"\1\2\3\4"),
    (request(QUEUE_PUSH, text(b"/q"), text(b"item")), b""),
    (request(QUEUE_LEN, text(b"/q")), i64(1)),
    (request(QUEUE_POP, text(b"/q")), i64(1) + text(b"item")),
    (request(QUEUE_POP, text(b"/q")), i64(0)),
    (request(DELETE_KEY, text(b"/b")), i64(1)),
    (request(DELETE_KEY, text(b"/a")), i64(1)),
    (request(LIST_KEYS), i64(1) + text(b"init/")),
    (request(BARRIER, text(b"/bar"), 1), b"\0"),
))


def test_every_request_at_once_and_byte_by_byte(server):
    assert Raw(server).send(EVERYTHING).answers() == EVERYTHING_ANSWERED
    cleaning = request(DELETE_KEY, text(b"/bar")) + request(DELETE_KEY, text(b"init/"))
    assert Raw(server).send(cleaning).answers() == i64(1) * 2
    dripping = Raw(server)
    for byte in EVERYTHING:
        dripping.send(bytes([byte]))
    assert dripping.answers() == EVERYTHING_ANSWERED


def test_the_first_words_may_come_in_pieces(ours):
    raw = Raw(ours, greet=False)
    for byte in HELLO + request(PING, b"abcd"):
        raw.send(bytes([byte]))
    assert raw.receive(4) == b"abcd"


@pytest.mark.parametrize("words, named", [
    (b"G", "HTTP"),
    (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
    (request(3, text(b"init/"), 1), "torch 2.0 or older"),
    (bytes.fromhex("cef7853c"), "use torch 2.2 or newer"),
    (bytes.fromhex("00cef7853d"), "wrong magic number"),
    (request(GET, text(b"/foo")), "torch 2.0 or older"),
    (b"hello", "first bytes 68 65 6c 6c 6f"),
])
def test_who_does_not_say_validate_is_closed_at_once_and_named(ours, words, named):
    raw = Raw(ours, greet=False).send(words)
    assert raw.until_closed() == b""
    own = raw.socket.getsockname()[1]
    ours.wait_for_log(f"closed the connection from 127.0.0.1:{own}: .*{named}")
    assert ours.stats()["commands"] == 0


@pytest.mark.parametrize("bad", [
    request(19), request(255), HELLO,
    request(GET, 8193), request(SET, text(b"/k"), 8 * 1024 * 1024 + 1), request(CHECK, 131073),
    request(MULTI_SET, -1), request(GET, -1),
    request(ADD, text(b"/text"), 1), request(BARRIER, text(b"/text"), 1),
], ids=lambda bad: bad.hex()[:18])
def test_a_bad_request_closes_its_connection_after_the_answers_before_it_and_no_other(server, bad):
    other = Raw(server)
    other.ask(SET, text(b"/text"), text(b"abc"))
    raw = Raw(server).send(request(GETNUMKEYS), request(PING, b"abcd"), bad)
    assert raw.until_closed() == i64(1) + b"abcd"
    assert other.ask(GET, text(b"/text")) == text(b"abc")


def test_who_waits_is_answered_when_and_only_when(server):
    waiting, other = Raw(server), Raw(server)
    assert waiting.ask(WAIT, keys(b"/a", b"/b", b"/a")) == b""
    assert waiting.ask(GET, text(b"/a")) == text(b"")  # other requests are answered meanwhile
    other.ask(SET, text(b"/a"), text(b""))
    other.ask(SET, text(b"/a"), text(b""))
    assert waiting.answers() == b""
    other.ask(SET, text(b"/b"), text(b""))
    assert waiting.answers() == b"\0"
    assert waiting.ask(CANCEL_WAIT) == b"\1"
    assert waiting.ask(WAIT, keys(b"/c")) == b""
    other.ask(ADD, text(b"/c"), 0)
    assert waiting.ask(CANCEL_WAIT) == b"\0\1"  # it had come just before


def test_the_intended_differences_in_who_is_woken(server):
    """Each is a wake-up by something that does not make the awaited keys be there."""
    spurious = b"\0" if server.side == TORCH else b""
    one, two, other = Raw(server), Raw(server), Raw(server)

    assert one.ask(WAIT, keys(b"/missing")) == b""
    assert other.ask(COMPARE_SET, text(b"/missing"), text(b"x"), text(b"y")) == text(b"x")
    assert one.answers() == spurious
    one.ask(CANCEL_WAIT)

    assert one.ask(WAIT, keys(b"/first")) == b""
    assert one.ask(WAIT, keys(b"/second")) == b""  # takes the place of the first
    other.ask(SET, text(b"/first"), text(b""))
    assert one.answers() == spurious
    one.ask(CANCEL_WAIT)

    assert one.ask(WAIT, keys(b"/queue", b"/never")) == b""
    assert two.ask(WAIT, keys(b"/queue")) == b""
    other.ask(QUEUE_PUSH, text(b"/queue"), text(b"item"))
    assert one.answers() == b""
    assert two.answers() == b"\0"
    other.ask(QUEUE_PUSH, text(b"/queue"), text(b"item"))
    assert one.answers() == spurious
    one.ask(CANCEL_WAIT)

    assert one.ask(WAIT, keys(b"/items", b"/key")) == b""
    assert two.ask(WAIT, keys(b"/items")) == b""
    other.ask(QUEUE_PUSH, text(b"/items"), text(b"item"))
    assert two.ask(QUEUE_POP, text(b"/items")) == b"\0" + i64(1) + text(b"item")
    other.ask(SET, text(b"/key"), text(b""))
    assert one.answers() == spurious
    one.ask(CANCEL_WAIT)

    assert one.ask(BARRIER, text(b"/barrier"), 3) == b""
    other.ask(QUEUE_PUSH, text(b"/barrier"), text(b"item"))
    assert one.answers() == spurious


def test_a_client_that_dies_in_the_middle_of_a_command_leaves_nothing(server):
    other = Raw(server)
    half = Raw(server)
    half.send(request(SET, text(b"/half"), 100), b"only this much")
    several = Raw(server)
    several.send(request(MULTI_SET, 2, text(b"/one"), text(b"1"), text(b"/two"), 5), b"12")
    waiting = Raw(server)
    waiting.ask(WAIT, keys(b"/half", b"/two"))
    for raw in (half, several, waiting):
        raw.vanish()
    if server.side == OURS:
        harness.wait_until(lambda: server.stats()["connections"] == 1)
    # Theirs sets the pairs that are complete, ours all or none.
    assert other.ask(CHECK, keys(b"/one")) == (b"\0" if server.side == TORCH else b"\1")
    assert other.ask(CHECK, keys(b"/two")) == b"\1"
    assert other.ask(CHECK, keys(b"/half")) == b"\1"
    assert other.ask(SET, text(b"/half"), text(b"whole")) == b""
    assert client(server).get("half") == b"whole"


# What ours does beyond the protocol.

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


def tcp_table():
    """(local port, remote port, state, receive queue, timer) of each IPv4 socket."""
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        yield (int(fields[1].split(":")[1], 16), int(fields[2].split(":")[1], 16), fields[3],
               int(fields[4].split(":")[1], 16), fields[5].split(":")[0])


def queued_at(port):
    return any(local == port and state == "0A" and queue > 0
               for local, _, state, queue, _ in tcp_table())


def test_the_host_of_a_silent_client_is_asked_whether_it_lives(ours):
    raw = Raw(ours)
    ends = (ours.port, raw.socket.getsockname()[1])
    keep_alive = "02"
    harness.wait_until(what="a keep-alive timer", condition=lambda: any(
        (local, remote, timer) == (*ends, keep_alive)
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
        with socket.create_connection((address, server.port), timeout=20) as connection:
            connection.sendall(HELLO + request(PING, b"abcd"))
            assert connection.recv(4, socket.MSG_WAITALL) == b"abcd"
    server.end()
