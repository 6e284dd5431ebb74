"""What PyTorch's client waits for in a store, and what ends it; the same against our server and
PyTorch's. Threads wait where another client acts; raw connections are where the order matters."""
# ctest: clock

import datetime

import pytest
from raw_store import (ADD, BARRIER, CANCEL_WAIT, CHECK, DELETE_KEY, GET, QUEUE_POP, QUEUE_PUSH, SET, WAIT,
                       Raw, i64, keys, text)
from store_servers import (LONG, SHORT, at_once, client, dist, in_threads, ours,  # noqa: F401
                           server, store)


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


@pytest.mark.parametrize("make", [
    lambda store: store.set("k", ""),
    lambda store: store.add("k", 0),
    lambda store: store.append("k", ""),
    lambda store: store.compare_set("k", "", ""),
    lambda store: store.multi_set(["other", "k"], ["", ""]),
    lambda store: store.queue_push("k", ""),
    lambda store: store.barrier("k", 1, LONG),
], ids=["set", "add", "append", "compare_set", "multi_set", "queue_push", "barrier"])
def test_whatever_makes_a_key_ends_a_wait_for_it(server, make):
    waiting, other, maker = Raw(server), Raw(server), client(server)
    assert waiting.ask(WAIT, keys(b"/k")) == b""
    assert other.ask(WAIT, keys(b"/unrelated")) == b""
    make(maker)
    assert waiting.receive(1) == b"\0"
    assert other.answers() == b""


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
    store.set_timeout(LONG)
    assert store.get("none") == b"now"
    store.wait(["none"], LONG)


def test_a_multi_get_times_out_unless_all_keys_are_there(store):
    store.set_timeout(SHORT)
    store.multi_set(["a", "c"], ["1", "3"])
    with pytest.raises(dist.DistStoreError, match="wait timeout after 150ms, keys: /a, /b, /c"):
        store.multi_get(["a", "b", "c"])
    store.set("b", "2")
    store.set_timeout(LONG)
    assert store.multi_get(["a", "b", "c"]) == [b"1", b"2", b"3"]


def test_a_negative_timeout_has_no_end(server):
    waiter, setter = client(server), client(server)

    def wait():
        waiter.wait(["k"], datetime.timedelta(milliseconds=-1))
        return waiter.get("k")

    def set_later():
        with pytest.raises(dist.DistStoreError):
            setter.wait(["never"], SHORT)
        setter.set("k", "v")

    assert at_once(wait, set_later) == [b"v", None]


def test_a_timeout_that_meets_its_key_harms_nobody(server):
    """Keys come about when the waits for them end: each wait is answered, cancelled, or both."""
    rounds, clients = 25, 8
    stores = [client(server) for _ in range(clients)]
    setter = client(server)

    def wait_or_set(index):
        outcomes = 0
        for number in range(rounds):
            if index == clients:
                setter.wait([f"{number}/{other}" for other in range(clients)], LONG)
                setter.set(f"{number}", str(number))
                continue
            own = stores[index]
            own.set(f"{number}/{index}", "")
            try:
                own.wait([f"{number}"], datetime.timedelta(microseconds=500 * index))
                outcomes += 1
            except dist.DistStoreError:
                pass
            assert own.get(f"{number}") == str(number).encode()
            assert own.add(f"{number}/n/{index}", index) == index
        return outcomes

    in_threads(clients + 1, wait_or_set)
    assert [store.num_keys() for store in stores] == [rounds * (2 * clients + 1)] * clients


def test_keys_that_change_while_they_are_awaited(server):
    one, other = Raw(server), Raw(server)
    assert one.ask(WAIT, keys(b"/a", b"/b", b"/c")) == b""
    other.ask(SET, text(b"/a"), text(b"1"))
    other.ask(SET, text(b"/a"), text(b"2"))  # changed once it has come
    other.ask(SET, text(b"/b"), text(b"1"))
    other.ask(DELETE_KEY, text(b"/b"))  # come and gone: it counts as come
    assert one.answers() == b""
    other.ask(SET, text(b"/c"), text(b"1"))
    assert one.answers() == b"\0"
    assert one.ask(CHECK, keys(b"/b")) == b"\1"
    # What was there at the start and is deleted does not come back into the wait.
    assert one.ask(WAIT, keys(b"/a", b"/d")) == b""
    other.ask(DELETE_KEY, text(b"/a"))
    other.ask(SET, text(b"/d"), text(b""))
    assert one.answers() == b"\0"
    assert one.ask(GET, text(b"/a")) == text(b"")


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


def test_a_cancelled_wait_is_never_answered(server):
    waiting, other = Raw(server), Raw(server)
    waiting.ask(WAIT, keys(b"/a", b"/b"))
    other.ask(SET, text(b"/a"), text(b""))
    assert waiting.ask(CANCEL_WAIT) == b"\1"
    other.ask(SET, text(b"/b"), text(b""))
    assert waiting.answers() == b""
    assert waiting.ask(WAIT, keys(b"/queue")) == b""
    assert waiting.ask(CANCEL_WAIT) == b"\1"
    assert other.ask(WAIT, keys(b"/queue")) == b""
    Raw(server).ask(QUEUE_PUSH, text(b"/queue"), text(b"item"))
    assert (waiting.answers(), other.answers()) == (b"", b"\0")
    assert waiting.ask(BARRIER, text(b"/barrier"), 2) == b""
    assert waiting.ask(CANCEL_WAIT) == b"\1"
    assert other.ask(BARRIER, text(b"/barrier"), 2) == b"\0"  # the count of the one that gave up stays
    assert waiting.answers() == b""


def test_a_client_waits_for_what_it_makes_itself(server):
    raw = Raw(server)
    assert raw.ask(WAIT, keys(b"/a")) == b""
    assert raw.ask(SET, text(b"/a"), text(b"")) == b"\0"
    assert raw.ask(WAIT, keys(b"/q")) == b""
    assert raw.ask(QUEUE_PUSH, text(b"/q"), text(b"item")) == b"\0"
    assert raw.ask(BARRIER, text(b"/b"), 2) == b""
    # Its second count passes the barrier; the first call, of the same connection, is the same wait.
    passed = raw.ask(BARRIER, text(b"/b"), 2)
    assert passed.strip(b"\0") == b"" and passed


def test_a_push_wakes_the_one_that_has_waited_longest(server):
    first, second, third, other = (Raw(server) for _ in range(4))
    for raw in (first, second, third):
        assert raw.ask(WAIT, keys(b"/q")) == b""
    first.ask(CANCEL_WAIT)
    assert first.ask(WAIT, keys(b"/q")) == b""  # to the end of the line
    for woken in (second, third, first):
        other.ask(QUEUE_PUSH, text(b"/q"), text(b"item"))
        answers = {raw: raw.answers() for raw in (first, second, third)}
        assert answers == {raw: b"\0" if raw is woken else b"" for raw in answers}
    assert other.ask(QUEUE_POP, text(b"/q")) == i64(3) + text(b"item")


def test_every_item_of_a_queue_reaches_one_of_many(server):
    poppers = [client(server) for _ in range(8)]
    pusher = client(server)
    items = [str(number).encode() for number in range(200)]

    def pop_or_push(index):
        if index == 8:
            for item in items:
                pusher.queue_push("q", item)
            return []
        got = []
        while len(got) < 25:
            try:
                got.append(poppers[index].queue_pop("q"))
            except dist.QueueEmptyError:  # another was quicker between the wait and the pop
                pass
        return got

    got = in_threads(9, pop_or_push)
    assert sorted(item for part in got for item in part) == sorted(items)
    assert pusher.queue_len("q") == 0


def test_barriers(server):
    stores = [client(server) for _ in range(8)]
    in_threads(8, lambda index: stores[index].barrier("b", 8, LONG))
    assert stores[0].get("b") == b"8"
    stores[0].barrier("b", 8, LONG)  # it has been passed
    stores[0].barrier("alone", 1, LONG)
    with pytest.raises(dist.DistStoreError, match="barrier timeout after 150ms, key: c"):
        stores[0].barrier("c", 2, SHORT)
    stores[1].barrier("c", 2, LONG)  # the count of the one that gave up stays


def test_barriers_of_no_one_and_barriers_that_a_value_opens(server):
    waiting, other = Raw(server), Raw(server)
    for size in (1, 0, -1, -2**63):
        assert other.ask(BARRIER, text(b"/%d" % size), size) == b"\0"
    assert waiting.ask(BARRIER, text(b"/b"), 3) == b""
    assert other.ask(GET, text(b"/b")) == text(b"1")
    assert other.ask(WAIT, keys(b"/b")) == b"\0"  # the count is there for all to see
    other.ask(SET, text(b"/b"), text(b"0"))
    assert waiting.answers() == b"\0"
    other.ask(SET, text(b"/full"), text(b" 41 of them"))
    assert waiting.ask(BARRIER, text(b"/full"), 42) == b"\0"
    assert other.ask(GET, text(b"/full")) == text(b"42")


def test_a_barrier_lets_all_of_its_callers_go_and_who_waits_at_its_key(server):
    early, callers = Raw(server), [Raw(server) for _ in range(3)]
    assert early.ask(WAIT, keys(b"/b")) == b""
    for raw in callers[:2]:
        assert raw.ask(BARRIER, text(b"/b"), 3) == b""
        assert early.answers() == b""  # the counts before the last wake nobody
    assert callers[2].ask(BARRIER, text(b"/b"), 3) == b"\0"
    assert [raw.answers() for raw in (early, *callers)] == [b"\0", b"\0", b"\0", b""]


def test_20000_keys_are_awaited_by_one_wait(server):
    waiting, other = Raw(server), Raw(server)
    names = [b"%d" % number for number in range(20000)]
    assert waiting.ask(WAIT, keys(*names)) == b""
    for name in names[1:]:
        other.send(b"\1", text(name), text(b""))
    other.answers()
    assert waiting.answers() == b""
    other.ask(SET, text(names[0]), text(b""))
    assert waiting.answers() == b"\0"
