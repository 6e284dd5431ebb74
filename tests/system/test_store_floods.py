"""What a store's server bears: connections, garbage, waits and half requests by the thousand. None of
these tests asks how long anything takes; each fails where somebody is kept from being served."""
# ctest: long
# ctest: release-only
# ctest: timeout=1800
# ctest: computes

import os
import pathlib
import random
import re
import resource
import select
import shutil
import socket
import sys

import harness
import pytest
from raw_store import (DELETE_KEY, GET, GETNUMKEYS, HELLO, MULTI_GET, PING, SET, VALUE_BYTES, WAIT, Raw, i64,
                       keys, request, text)
from store_servers import our_program, ours, tcp_table  # noqa: F401

MIB = 1024 * 1024
MANY = 10_000

pytestmark = pytest.mark.time_limit(400)


@pytest.fixture(autouse=True)
def many_descriptors():
    """For the test and for the servers that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < MANY + 1000:
        pytest.skip(f"needs {MANY + 1000} open files, and may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_bytes(server):
    return int(re.search(r"VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{server.pid}/status").read_text())[1]) * 1024


def wait_for_memory(server, before):
    """Returns when the server has no more memory than before, but for 8 MiB."""
    harness.wait_until(lambda: resident_bytes(server) < before + 8 * MIB, timeout=60,
                       what=f"memory to be {before} bytes again")


def begin_connecting(server):
    """A connection on its way; nothing is sent yet."""
    made = socket.socket()
    made.setblocking(False)
    made.connect_ex(("127.0.0.1", server.port))
    return made


def end_all(sockets):
    for made in sockets:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        made.close()


def when_ready(sockets, event, then):
    """Calls then(socket) for each as soon as it can be written, or read."""
    waiting = {made.fileno(): made for made in sockets}
    poll = select.epoll()
    for number in waiting:
        poll.register(number, event)
    while waiting:
        ready = poll.poll(60)
        assert ready, f"{len(waiting)} connections still wait"
        for number, _ in ready:
            poll.unregister(number)
            then(waiting.pop(number))
    poll.close()


def test_10000_connections_in_a_burst_are_all_served_and_an_older_client_meanwhile(ours):
    older = Raw(ours)
    older.ask(SET, text(b"/k"), text(b"value"))
    before = resident_bytes(ours)
    sockets = []
    for number in range(MANY):
        sockets.append(begin_connecting(ours))
        if number % 100 == 0:  # while none of them has said a word
            assert older.ask(GET, text(b"/k")) == text(b"value")

    def greet(made):
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        assert made.send(HELLO + request(PING, b"abcd")) == 10

    answers = []
    when_ready(sockets, select.EPOLLOUT, greet)
    assert older.ask(GET, text(b"/k")) == text(b"value")
    when_ready(sockets, select.EPOLLIN, lambda made: answers.append(made.recv(10)))
    assert (len(answers), set(answers)) == (MANY, {b"abcd"})
    stats = ours.stats()
    assert (stats["connections"], stats["refused"]) == (MANY + 1, 0)
    end_all(sockets)
    assert older.ask(GET, text(b"/k")) == text(b"value")
    harness.wait_until(lambda: ours.stats()["connections"] == 1, timeout=60)
    wait_for_memory(ours, before)


def garbage(dice):
    """Bytes of which a server can make little: at random, after a greeting, or as what may be a request."""
    noise = dice.randbytes(dice.randrange(1, 200))
    return dice.choice([
        lambda: noise,
        lambda: HELLO + noise,
        lambda: HELLO + bytes([dice.randrange(20)]) + i64(dice.choice([0, 1, 3, 8192, 8193, -1])) + noise,
        lambda: HELLO + request(WAIT, 3, noise) + noise,
        lambda: HELLO + request(SET, text(b"/noise"), 2**dice.randrange(64) - 2**63) + noise,
    ])()


def send_what_goes(made, data):
    try:
        made.sendall(data)
        made.shutdown(socket.SHUT_WR)
    except OSError:  # closed already
        pass


def end_of(made):
    try:
        while made.recv(MIB):
            pass
    except ConnectionResetError:
        pass


@pytest.mark.parametrize("seed", [1, 2])
def test_10000_connections_of_garbage_are_closed_and_leave_neither_memory_nor_a_full_log(ours, seed):
    dice = random.Random(seed)
    other = Raw(ours)
    other.ask(SET, text(b"/k"), text(b"value"))
    for last in (False, True):  # the log's first lines, and all else that is made once, count for nothing
        before = resident_bytes(ours)
        for _ in range(MANY // 500 if last else 1):
            sockets = [socket.create_connection(("127.0.0.1", ours.port), timeout=60) for _ in range(500)]
            for made in sockets:
                send_what_goes(made, garbage(dice))
            for made in sockets:
                end_of(made)
                made.close()
            assert other.ask(GET, text(b"/k")) == text(b"value")
    assert ours.stats()["connections"] == 1
    wait_for_memory(ours, before)
    other.leave()
    ours.end()
    lines = ours.running.stderr.text.splitlines()
    assert sum(" debug: " in line for line in lines) > MANY // 4
    told = [re.sub(r"[0-9a-f]+", "#", line.split(": ", 3)[-1]) for line in lines if " debug: " not in line]
    assert 5 < len(told) < 20
    assert len(set(told)) == len(told), "a kind of garbage was told twice"


def test_4000_waiters_are_woken_by_one_set_each_once_and_a_slow_reader_delays_none(ours):
    waiting = [Raw(ours) for _ in range(4000)]
    for raw in waiting:
        raw.send(request(WAIT, keys(b"/go", b"/there")))
    other, slow = Raw(ours), Raw(ours)
    large = text(bytes(VALUE_BYTES))
    other.ask(SET, text(b"/there"), large)
    slow.send(request(GET, text(b"/there")) * 7)  # more than the kernel keeps; it is read at the end
    harness.wait_until(lambda: ours.stats()["commands"] > 4 + 2 * 4000, timeout=60)
    assert {raw.answers() for raw in waiting} == {b""}
    other.send(request(SET, text(b"/go"), text(b"")))
    assert {raw.receive(1) for raw in waiting} == {b"\0"}
    other.send(request(SET, text(b"/go"), text(b"again")))
    assert other.answers() == b""
    assert {raw.answers() for raw in waiting} == {b""}
    assert slow.receive(7 * len(large)) == 7 * large


def test_4000_waiters_that_vanish_while_they_are_woken_harm_nobody(ours):
    waiting = [Raw(ours) for _ in range(4000)]
    for raw in waiting:
        raw.send(request(WAIT, keys(b"/go")))
    assert {raw.answers() for raw in waiting} == {b""}
    other = Raw(ours)
    ours.hold()
    for raw in waiting[::2]:
        raw.vanish()
    other.send(request(SET, text(b"/go"), text(b"")))
    ours.stats()  # goes on, with the ends of the one half and the set before it
    assert {raw.receive(1) for raw in waiting[1::2]} == {b"\0"}
    assert other.ask(GET, text(b"/go")) == text(b"")
    harness.wait_until(lambda: ours.stats()["connections"] == 2001, timeout=60)


def until_read(server, ports):
    """Returns when the server has taken all that the clients with these ports have sent."""
    unacknowledged = "01"
    harness.wait_until(what="the server to read", condition=lambda: not any(
        (local == server.port and remote in ports and queued)
        or (local in ports and remote == server.port and timer == unacknowledged)
        for local, remote, _, queued, timer in tcp_table()))


HALF_A_VALUE = request(SET, text(b"/half"), text(bytes(VALUE_BYTES)))[:VALUE_BYTES // 2]
HALF_A_LIST = request(WAIT, 131072, text(b"") * 100_000)


def wait_for_keys_of_its_own(client):
    return request(WAIT, 1000, *(text(b"/%d/%0100d" % (client, number)) for number in range(1000)))


@pytest.mark.parametrize("abandoned", [
    lambda _: HALF_A_VALUE, lambda _: HALF_A_LIST, wait_for_keys_of_its_own,
], ids=["half a value", "half a list", "a wait"])
def test_what_1000_clients_abandon_leaves_no_memory(ours, abandoned):
    other = Raw(ours)
    before = resident_bytes(ours)
    most = 0
    for _ in range(10):
        raws = [Raw(ours) for _ in range(100)]
        for client, raw in enumerate(raws):
            raw.send(abandoned(client))
        until_read(ours, {raw.port for raw in raws})
        most = max(most, resident_bytes(ours))
        for raw in raws:
            raw.vanish()
        assert other.ask(GETNUMKEYS) == i64(0)
    assert most > before + 16 * MIB  # there was something to give back
    wait_for_memory(ours, before)
    assert other.ask(SET, text(b"/half"), text(b"whole")) == b""


def test_memory_of_deleted_keys_and_of_an_ended_round_is_given_back(ours):
    raw = Raw(ours)
    before = resident_bytes(ours)

    def fill():
        """Some small, some large, so that those that stay lie between those that go."""
        for number in range(40):
            raw.send(request(SET, text(b"/large/%d" % number), text(bytes(VALUE_BYTES // 2))))
            for small in range(1000):
                raw.send(request(SET, text(b"/small/%d/%d" % (number, small)), text(bytes(3000))))
        raw.answers()

    fill()
    assert resident_bytes(ours) > before + 250 * MIB
    for number in range(40):
        raw.ask(DELETE_KEY, text(b"/large/%d" % number))
        for small in range(1000):
            if small % 100:
                raw.send(request(DELETE_KEY, text(b"/small/%d/%d" % (number, small))))
        raw.answers()
    wait_for_memory(ours, before + 16 * MIB)
    fill()
    ours.reset()
    wait_for_memory(ours, before)


def test_1000_clients_that_ask_for_100_mib_and_read_nothing_take_little_memory_and_delay_nobody(ours):
    other = Raw(ours)
    empty = resident_bytes(ours)
    names = [b"/%d" % number for number in range(100)]

    def fill(byte):
        for name in names:
            other.send(request(SET, text(name), text(byte * MIB)))
        other.answers()

    fill(b"a")
    before = resident_bytes(ours)
    silent = [Raw(ours).send(request(MULTI_GET, keys(*names))) for _ in range(1000)]
    harness.wait_until(lambda: ours.stats()["commands"] >= 2000, timeout=60)
    assert other.ask(GET, text(b"/none")) == text(b"")
    assert resident_bytes(ours) < before + 64 * MIB  # and not 100 GiB
    for byte in (b"b", b"c", b"d"):  # who asked holds what was there, once for all
        fill(byte)
    assert resident_bytes(ours) < before + 300 * MIB
    expected = b"".join(text(b"a" * MIB) for _ in names)
    is_whole = silent[0].receive(len(expected)) == expected  # a report of both would take gigabytes
    assert is_whole
    for raw in silent:
        raw.vanish()
    harness.wait_until(lambda: ours.stats()["connections"] == 1, timeout=60)
    assert ours.stats()["refused"] == 0
    ours.reset()
    wait_for_memory(ours, empty)


# Runs as root of a network namespace, in which the server is, too; its clients are in a second one, as on
# another host. That host's link goes down, so that nobody there says a word any more.
DEAD_HOST = r"""
import ctypes, os, socket, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from raw_store import GET, PING, SET, WAIT, HELLO, keys, request, text
NEW_NETWORK = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
def run(*command):
    subprocess.run(command, check=True)
def connect(address):
    made = socket.create_connection((address, port), timeout=60)
    made.sendall(HELLO + request(SET, text(b"/large"), text(bytes(8 << 20))) + request(PING, b"abcd"))
    assert made.recv(4) == b"abcd"
    return made
def connections():
    server.stdin.write("stats\n")
    server.stdin.flush()
    return int(server.stdout.readline().split()[1].split("=")[1])
run("ip", "link", "set", "lo", "up")
server = subprocess.Popen([sys.argv[2], ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
port = int(server.stdout.readline().split()[1])
here = os.open("/proc/self/ns/net", os.O_RDONLY)
beside = connect("127.0.0.1")
assert libc.unshare(NEW_NETWORK) == 0
there = os.open("/proc/self/ns/net", os.O_RDONLY)
run("ip", "link", "add", "there", "type", "veth", "peer", "name", "here", "netns", str(server.pid))
run("ip", "address", "add", "10.77.0.2/24", "dev", "there")
run("ip", "link", "set", "there", "up")
link = subprocess.run(["ip", "link", "show", "there"], check=True, capture_output=True, text=True).stdout
hardware = link.split("link/ether ")[1].split()[0]
assert libc.setns(here, 0) == 0
run("ip", "address", "add", "10.77.0.1/24", "dev", "here")
run("ip", "link", "set", "here", "up")
assert libc.setns(there, 0) == 0
silent, waiting, reading = (connect("10.77.0.1") for _ in range(3))
waiting.sendall(request(WAIT, keys(b"/k")))
reading.sendall(request(GET, text(b"/large")) * 3)
run("ip", "link", "set", "there", "down")
assert libc.setns(here, 0) == 0
run("ip", "neighbour", "replace", "10.77.0.2", "lladdr", hardware, "dev", "here", "nud", "permanent")
began = time.monotonic()
beside.sendall(request(SET, text(b"/k"), text(b"")))
left = connections()
print("there are", left, flush=True)
while left > 1:
    time.sleep(0.2)
    now = connections()
    for _ in range(left - now):
        print("gone after", time.monotonic() - began, flush=True)
    left = now
beside.sendall(request(PING, b"abcd"))
assert beside.recv(4) == b"abcd"
server.stdin.close()
server.wait(60)
"""


@pytest.mark.time_limit(240)
def test_connections_of_a_host_that_died_without_a_word_end_after_two_minutes(elastic_run):
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("needs root, unshare and ip, for a second host")
    done = elastic_run(program=["unshare", "--net", sys.executable, "-c", DEAD_HOST,
                                os.path.dirname(__file__), our_program()], timeout=220)
    if "Operation not permitted" in done.stderr:
        pytest.skip("may not make namespaces here")
    assert done.returncode == 0, done.stderr
    assert "there are 4\n" in done.stdout
    seconds = [float(number) for number in re.findall("gone after (.*)", done.stdout)]
    # A silent one, one that has not acknowledged a byte, one that has not read megabytes.
    assert len(seconds) == 3
    assert all(100 < number < 180 for number in seconds)
