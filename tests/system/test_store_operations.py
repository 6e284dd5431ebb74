"""What PyTorch's own client does with a store, operation by operation; the same against our server
and PyTorch's, and with no way to tell which it is."""
# ctest: gate

import os

import pytest
from store_servers import LONG, at_once, client, dist, ours, server, store  # noqa: F401  fixtures

MOST, LEAST = 2**63 - 1, -2**63
MIB = 1024 * 1024


def test_values_are_what_was_set(store, server):
    store.set("text", "value")
    store.set("text", "newer")
    store.set("empty", "")
    store.set("bytes", bytes(range(256)))
    large = os.urandom(8 * MIB)
    store.set("large", large)
    other = client(server)
    assert other.get("large") == large  # waits for it, and with it for what was set before
    assert other.get("text") == b"newer"
    assert other.get("empty") == b""
    assert other.get("bytes") == bytes(range(256))


def test_keys_are_any_bytes_and_the_empty_one_too(store):
    for key in ("", "/", "//", "init/", "a b\n", "\0", "k\0k", "ключ", "k" * 1441):
        assert not store.check([key])
        store.set(key, key or "empty")
    for key in ("", "/", "//", "init/", "a b\n", "\0", "k\0k", "ключ", "k" * 1441):
        assert store.get(key) == (key or "empty").encode()
    assert store.num_keys() == 9


def test_a_value_that_is_set_often_is_the_last_one(store, server):
    for number in range(2000):
        store.set("k", str(number))
    assert store.get("k") == b"1999"
    store.set("other", "here")
    assert client(server).get("k") == b"1999"


def test_counters_count_and_read_as_text(store):
    assert store.add("n", 0) == 0
    assert store.add("n", 5) == 5
    assert store.add("n", -7) == -2
    assert store.get("n") == b"-2"
    store.set("n", " 12abc")
    assert store.add("n", 1) == 13


def test_a_counter_is_read_as_strtoll_reads(store):
    for text, number in (("+7", 7), ("-0", 0), ("007", 7), ("12.9", 12), ("0x10", 0), ("\t\n\v\f\r -5", -5),
                         (str(MOST), MOST), (str(LEAST), LEAST), (b"3\x004", 3), ("1e3", 1)):
        store.set("n", text)
        assert store.add("n", 0) == number, text
        assert store.get("n") == str(number).encode()


def test_counters_reach_both_ends_of_64_bits(store):
    assert store.add("up", MOST) == MOST
    assert store.add("up", 0) == MOST
    assert store.add("up", -MOST) == 0
    assert store.add("down", LEAST) == LEAST
    assert store.add("down", MOST) == -1
    assert store.add("down", LEAST + 1) == LEAST
    assert store.get("down") == str(LEAST).encode()


@pytest.mark.parametrize("text", ["", " ", "abc", "-", "+", "+-1", "--1", "- 1", "\0001", str(MOST + 1),
                                  str(LEAST - 1), "9" * 40])
def test_a_counter_that_is_no_number_closes_the_connection_and_stays(store, server, text):
    store.set("n", text)
    with pytest.raises(dist.DistNetworkError):
        store.add("n", 1)
    assert client(server).get("n") == text.encode()


def test_check_and_delete(store):
    store.set("a", "1")
    assert store.check(["a"])
    assert not store.check(["a", "b"])
    assert store.check([])
    assert store.delete_key("a")
    assert not store.delete_key("a")
    assert not store.check(["a"])


def test_a_deleted_key_begins_anew(store):
    store.set("k", "old")
    store.add("n", 5)
    assert store.delete_key("k") and store.delete_key("n")
    assert store.add("n", 1) == 1
    store.append("k", "new")
    assert store.get("k") == b"new"
    assert store.compare_set("gone", "", "here") == b"here"
    assert store.delete_key("gone")
    assert store.compare_set("gone", "", "again") == b"again"
    assert not store.delete_key("init/")  # the user's key of that name, not the count of clients


def test_compare_set(store):
    assert store.compare_set("k", "", "first") == b"first"
    assert store.compare_set("k", "wrong", "second") == b"first"
    assert store.compare_set("k", "first", "second") == b"second"
    # A missing key answers what was expected, though nothing is stored.
    assert store.compare_set("missing", "expected", "desired") == b"expected"
    assert not store.check(["missing"])


def test_compare_set_takes_empty_values_for_values(store):
    assert store.compare_set("k", "", "") == b""
    assert store.check(["k"])
    assert store.compare_set("k", "something", "other") == b""
    assert store.compare_set("k", "", "value") == b"value"
    assert store.compare_set("k", "", "other") == b"value"
    assert store.compare_set("k", "value", "") == b""
    assert store.get("k") == b""
    large = b"x" * (8 * MIB)
    assert store.compare_set("k", "", large) == large
    assert store.compare_set("k", large, large[1:]) == large[1:]


def test_append_and_multi_operations(store):
    store.append("k", "po")
    store.append("k", "tato")
    assert store.get("k") == b"potato"
    store.multi_set(["a", "b", "c"], ["1", "", "3"])
    assert store.multi_get(["c", "a", "b", "k"]) == [b"3", b"1", b"", b"potato"]
    assert store.multi_get([]) == []
    store.multi_set([], [])


def test_multi_operations_take_a_key_as_often_as_it_is_named(store):
    store.multi_set(["a", "b", "a"], ["1", "2", "3"])
    assert store.multi_get(["a", "b", "a", "a"]) == [b"3", b"2", b"3", b"3"]
    assert store.check(["a", "a"])
    names = [f"k{number}" for number in range(5000)]
    store.multi_set(names, [name.upper() for name in names])
    assert store.multi_get(names) == [name.upper().encode() for name in names]
    assert store.num_keys() == 5002


def test_append_takes_empty_values_and_grows_a_value_beyond_one_request(store):
    store.append("k", "")
    assert store.check(["k"])
    assert store.get("k") == b""
    for part in (b"a", b"b"):
        store.append("k", part * (8 * MIB))
    assert store.get("k") == b"a" * (8 * MIB) + b"b" * (8 * MIB)
    store.set("n", "1")
    store.append("n", "2")
    assert store.add("n", 1) == 13


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


def test_each_operation_that_makes_a_key_makes_one(store):
    assert (store.num_keys(), store.list_keys()) == (0, [])
    store.set("set", "")
    store.add("add", 0)
    store.append("append", "")
    store.compare_set("compare", "", "")
    store.compare_set("no", "x", "y")
    store.multi_set(["multi", "multi"], ["", ""])
    store.barrier("barrier", 1, LONG)
    store.queue_push("queue", "")
    assert not store.check(["no"])
    assert store.num_keys() == 6
    assert sorted(store.list_keys()) == ["add", "append", "barrier", "compare", "multi", "set"]


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
    assert at_once(lambda: store.queue_push("q", "late"), lambda: popper.queue_pop("q")) == [None, b"late"]


def test_a_queue_and_a_value_may_have_the_same_name(store):
    store.queue_push("k", "item")
    assert store.check(["k"])
    assert not store.delete_key("k")
    assert store.num_keys() == 0
    store.set("k", "value")
    assert store.get("k") == b"value"
    assert store.queue_len("k") == 1
    assert store.delete_key("k")
    assert store.check(["k"])  # the queue is still there
    assert store.queue_pop("k") == b"item"
    assert not store.check(["k"])
    store.queue_push("n", "5")
    assert store.add("n", 1) == 1


def test_a_queue_keeps_its_order_and_its_items_whole(store, server):
    items = [os.urandom(size) for size in (0, 1, 1440, 100_000, 8 * MIB)] * 2
    for item in items:
        store.queue_push("q", item)
    assert store.queue_len("q") == len(items)
    popper = client(server)
    assert [popper.queue_pop("q") for _ in items] == items


def test_the_longest_key_and_value_are_taken_and_one_byte_more_closes(server):
    longest = "k" * 8191  # and the client's own slash
    store = client(server)
    store.set(longest, "v")
    assert store.get(longest) == b"v"
    with pytest.raises(dist.DistNetworkError):
        store.add("k" * 8192, 1)
    other = client(server)
    with pytest.raises(dist.DistNetworkError):
        other.set("k", bytes(8 * MIB + 1))
        other.get("k")
    assert client(server).num_keys() == 1


def asked(operation, key):
    """An operation with an answer, of everything that takes a key."""
    return {
        "set": lambda store: (store.set(key, "5"), store.get(key))[1],
        "get": lambda store: (store.multi_set([key], ["5"]), store.get(key))[1],
        "add": lambda store: store.add(key, 5),
        "compare_set": lambda store: store.compare_set(key, "", "5"),
        "check": lambda store: store.check([key]),
        "delete_key": lambda store: store.delete_key(key),
        "append": lambda store: (store.append(key, "5"), store.get(key))[1],
        "multi_set": lambda store: (store.multi_set(["a", key], ["", "5"]), store.multi_get([key]))[1],
        "queue_push": lambda store: (store.queue_push(key, "5"), store.queue_pop(key))[1],
        "queue_pop": lambda store: (store.queue_push(key, "5"), store.queue_pop(key, False))[1],
        "queue_len": lambda store: store.queue_len(key),
        "barrier": lambda store: store.barrier(key, 1, LONG),
        "wait": lambda store: (store.set(key, ""), store.wait([key], LONG))[1],
    }[operation]


@pytest.mark.parametrize("operation, answer", [
    ("set", b"5"), ("get", b"5"), ("add", 5), ("compare_set", b"5"), ("check", False),
    ("delete_key", False), ("append", b"5"), ("multi_set", [b"5"]), ("queue_push", b"5"),
    ("queue_pop", b"5"), ("queue_len", 0), ("barrier", None), ("wait", None)])
def test_every_operation_takes_the_longest_key_and_no_longer_one(server, operation, answer):
    assert asked(operation, "k" * 8191)(client(server)) == answer
    with pytest.raises(dist.DistNetworkError):
        asked(operation, "k" * 8192)(client(server))


@pytest.mark.parametrize("send", [
    lambda store, value: store.set("k", value),
    lambda store, value: store.append("k", value),
    lambda store, value: store.compare_set("k", "", value),
    lambda store, value: store.compare_set("k", value, ""),
    lambda store, value: store.multi_set(["k"], [value]),
    lambda store, value: store.queue_push("k", value),
], ids=["set", "append", "compare_set", "expected", "multi_set", "queue_push"])
def test_every_operation_takes_8_mib_and_not_a_byte_more(server, send):
    store = client(server)
    send(store, bytes(8 * MIB))
    store.num_keys()  # answers, so the connection lives
    other = client(server)
    with pytest.raises(dist.DistNetworkError):
        send(other, bytes(8 * MIB + 1))
        other.num_keys()


@pytest.mark.time_limit(300)  # PyTorch's server begins anew with each piece: minutes on a busy machine
def test_a_multi_set_of_more_than_8_mib_is_taken_if_each_value_is_not(store):
    store.multi_set(["a", "b"], [b"a" * (8 * MIB), b"b" * (8 * MIB)])
    assert store.multi_get(["b", "a"]) == [b"b" * (8 * MIB), b"a" * (8 * MIB)]
