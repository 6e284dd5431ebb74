"""The protocol of the store as bytes on a socket; the same against our server and PyTorch's."""
# ctest: gate

import random

import pytest
from raw_store import (ADD, APPEND, BARRIER, CANCEL_WAIT, CHECK, COMPARE_SET, DELETE_KEY, GET, GETNUMKEYS,
                       HELLO, KEY_BYTES, KEYS_IN_A_LIST, LIST_KEYS, MULTI_GET, MULTI_SET, PING, QUEUE_LEN,
                       QUEUE_POP, QUEUE_PUSH, SET, VALUE_BYTES, WAIT, Raw, i64, keys, request, text)
from store_servers import TorchServer, ours, server  # noqa: F401

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
    assert Raw(server).send_in_pieces(EVERYTHING).answers() == EVERYTHING_ANSWERED


def test_200_clients_that_drip_do_not_mix(server):
    """Each sends its bytes one at a time, in turn with all others."""
    clients = [Raw(server) for _ in range(200)]
    streams = []
    for number, _ in enumerate(clients):
        key = text(b"/%03d" % number)
        streams.append(request(SET, key, text(b"mine %03d" % number)) + request(GET, key))
    for position in range(len(streams[0])):
        for raw, stream in zip(clients, streams):
            raw.send(stream[position:position + 1])
    for number, raw in enumerate(clients):
        assert raw.answers() == text(b"mine %03d" % number)


def test_a_thousand_requests_in_one_go_are_answered_in_their_order(server):
    raw = Raw(server)
    raw.send(*(request(ADD, text(b"/n"), 1) + request(GET, text(b"/n")) for _ in range(1000)))
    assert raw.answers() == b"".join(i64(n) + text(b"%d" % n) for n in range(1, 1001))


@pytest.mark.parametrize("nonce", [bytes(4), b"\xff" * 4, b"\0\0\0\x80", b"\x0d\x0d\x0d\x0d"],
                         ids=lambda nonce: nonce.hex())
def test_a_ping_is_answered_with_its_nonce(server, nonce):
    assert Raw(server).ask(PING, nonce) == nonce


def test_what_is_missing_is_empty_and_no_keys_are_all_there(server):
    raw = Raw(server)
    assert raw.ask(GET, text(b"/none")) == text(b"")
    assert raw.ask(MULTI_GET, keys(b"/none", b"")) == text(b"") * 2
    assert raw.ask(MULTI_GET, keys()) == b""
    assert raw.ask(MULTI_SET, 0) == b""
    assert raw.ask(CHECK, keys()) == b"\0"
    assert raw.ask(WAIT, keys()) == b"\0"
    assert raw.ask(DELETE_KEY, text(b"/none")) == i64(0)
    assert raw.ask(QUEUE_POP, text(b"/none")) == i64(0)
    assert raw.ask(QUEUE_LEN, text(b"/none")) == i64(0)
    assert raw.ask(LIST_KEYS) == i64(0)
    assert raw.ask(GETNUMKEYS) == i64(0)
    assert raw.ask(CANCEL_WAIT) == b"\1"


def test_keys_without_the_clients_slash_are_keys_like_others(server):
    raw = Raw(server)
    for number, key in enumerate((b"", b"init/", b"k", b"/k", b"\0")):
        raw.ask(SET, text(key), text(b"%d" % number))
    answer = raw.ask(LIST_KEYS)
    assert answer[:8] == i64(5)
    assert len(answer) == 8 + 5 * 8 + 0 + 5 + 1 + 2 + 1
    assert raw.ask(MULTI_GET, keys(b"\0", b"", b"k")) == text(b"4") + text(b"0") + text(b"2")


@pytest.mark.time_limit(300)  # PyTorch's server begins anew with each piece: minutes on a busy machine
def test_the_longest_of_everything_is_taken(server):
    raw = Raw(server)
    key, value = b"k" * KEY_BYTES, bytes(VALUE_BYTES)
    assert raw.ask(SET, text(key), text(value)) == b""
    assert raw.ask(GET, text(key)) == text(value)
    assert raw.ask(COMPARE_SET, text(key), text(value), text(value[1:])) == text(value[1:])
    # Short keys, and thus few reads: PyTorch's server begins anew with each of them.
    assert raw.ask(MULTI_GET, KEYS_IN_A_LIST, text(b"") * KEYS_IN_A_LIST) == text(b"") * KEYS_IN_A_LIST


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


@pytest.mark.parametrize("bad", [
    *(request(op, KEY_BYTES + 1) for op in (SET, COMPARE_SET, GET, ADD, DELETE_KEY, APPEND, QUEUE_PUSH,
                                            QUEUE_POP, QUEUE_LEN, BARRIER)),
    *(request(op, 1, KEY_BYTES + 1) for op in (CHECK, WAIT, MULTI_GET, MULTI_SET)),
    *(request(op, text(b"/k"), VALUE_BYTES + 1) for op in (SET, COMPARE_SET, APPEND, QUEUE_PUSH)),
    request(COMPARE_SET, text(b"/k"), text(b""), VALUE_BYTES + 1),
    request(MULTI_SET, 1, text(b"/k"), VALUE_BYTES + 1),
    *(request(op, KEYS_IN_A_LIST + 1) for op in (CHECK, WAIT, MULTI_GET, MULTI_SET)),
    *(request(op, length) for op in (GET, CHECK) for length in (2**63 - 1, -2**63, -1, 2**32)),
], ids=lambda bad: f"{bad[0]}-{bad[-8:][::-1].hex().lstrip('0')}-{len(bad)}")
def test_every_limit_is_judged_as_soon_as_the_length_has_come(server, bad):
    assert Raw(server).send_in_pieces(bad).until_closed() == b""


def random_request(dice, names):
    """Any request but those after which an answer may come late, or in another order."""
    key = text(dice.choice(names))
    value = text(dice.choice([b"", b"1", b"-3", b" 7x", b"value", b"\0\xff" * 40]))
    some = [dice.choice(names) for _ in range(dice.randrange(4))]
    return dice.choice([
        lambda: request(SET, key, value),
        lambda: request(COMPARE_SET, key, dice.choice([value, text(b"")]), value),
        lambda: request(GET, key),
        lambda: request(ADD, b"".join([text(b"/counter"), i64(dice.randrange(-9, 9))])),
        lambda: request(CHECK, keys(*some)),
        lambda: request(WAIT, keys(*some)) + request(CANCEL_WAIT),
        lambda: request(GETNUMKEYS),
        lambda: request(DELETE_KEY, dice.choice([key, text(b"/counter")])),
        lambda: request(APPEND, dice.choice([key, text(b"/appended")]), value),
        lambda: request(MULTI_GET, keys(*some)),
        lambda: request(MULTI_SET, len(some), *(text(name) + value for name in some)),
        lambda: request(PING, dice.randbytes(4)),
        lambda: request(QUEUE_PUSH, key, value),
        lambda: request(QUEUE_POP, key),
        lambda: request(QUEUE_LEN, key),
        lambda: request(BARRIER, text(b"/barrier"), dice.randrange(-1, 3)) + request(CANCEL_WAIT),
    ])()


@pytest.mark.parametrize("seed", range(8))
def test_random_requests_have_the_same_answers_from_both(ours, seed):
    dice = random.Random(seed)
    names = [b"", b"init/", b"/", b"/a", b"/b", b"/c", b"k" * 300]
    stream = b"".join(random_request(dice, names) for _ in range(2000))
    theirs = TorchServer()
    answers = []
    for server in (theirs, ours):
        cuts = random.Random(seed)
        raw = Raw(server)
        start = 0
        while start < len(stream):
            size = cuts.choice([1, 2, 7, 100, 1000, 5000])
            raw.send(stream[start:start + size])
            start += size
        answers.append(raw.answers())
    theirs.end()
    assert answers[0] == answers[1]


def test_replies_of_more_than_64_mib_come_whole(server):
    raw = Raw(server)
    names = [b"/%d" % number for number in range(100)]
    values = [bytes([number]) * (1 << 20) for number in range(100)]
    for name, value in zip(names, values):
        raw.send(request(SET, text(name), text(value)))
    raw.send(request(MULTI_GET, keys(*names)))
    expected = b"".join(map(text, values))
    is_whole = raw.receive(len(expected)) == expected  # a report of both would take gigabytes
    assert is_whole
    for _ in range(9):
        raw.send(request(APPEND, text(b"/grown"), text(bytes(VALUE_BYTES))))
    raw.send(request(GET, text(b"/grown")))
    is_whole = raw.receive(8 + 9 * VALUE_BYTES) == text(bytes(9 * VALUE_BYTES))
    assert is_whole
    assert raw.answers() == b""
