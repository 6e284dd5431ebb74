"""Many clients of a store at once, clients on top of clients, and clients that die; the same against
our server and PyTorch's."""
# ctest: clock

import os
import resource
import signal
import time

import harness
import pytest
import raw_store
from raw_store import (ADD, CHECK, GET, GETNUMKEYS, MULTI_SET, SET, WAIT, Raw, i64, keys, request, text)
from store_servers import (LONG, OURS, SHORT, TORCH, client, dist, in_threads, ours, processor_seconds,  # noqa: F401
                           server, store)
import torch
from torch.distributed.elastic.utils import store as elastic_store

pytestmark = pytest.mark.time_limit(300)

MANY = 200


def test_200_clients_at_once(server):
    def work(index):
        own = client(server, world_size=MANY)
        own.set(f"from/{index}", str(index))
        total = own.add("arrived", 1)
        if total == MANY:
            own.set("all", "here")
        own.wait(["all"], LONG)
        values = own.multi_get([f"from/{other}" for other in range(MANY)])
        return own, values

    done = in_threads(MANY, work)
    assert all(values == [str(other).encode() for other in range(MANY)] for _, values in done)
    own = done[0][0]
    assert own.add("arrived", 0) == MANY
    assert own.num_keys() == MANY + 3


def test_200_clients_pass_barriers_together(server):
    stores = in_threads(MANY, lambda _: client(server))

    def work(index):
        own = stores[index]
        for number in range(3):
            own.set(f"{number}/{index}", "")
            own.barrier(f"b{number}", MANY, LONG)
            # Whoever is past the barrier sees what all others did before it.
            assert own.check([f"{number}/{other}" for other in range(MANY)])
        return own.add("passed", 1)

    assert sorted(in_threads(MANY, work)) == list(range(1, MANY + 1))
    assert stores[0].get("b0") == str(MANY).encode()


def test_counts_of_many_clients_are_never_lost(server):
    clients, each = 16, 200
    stores = [client(server) for _ in range(clients)]
    sums = in_threads(clients, lambda index: [stores[index].add("n", 1) for _ in range(each)])
    assert sorted(total for part in sums for total in part) == list(range(1, clients * each + 1))
    # One of them is first in a COMPARE_SET, and all see the same.
    seen = in_threads(clients, lambda index: stores[index].compare_set("who", "", f"{index}"))
    assert len(set(seen)) == 1
    assert stores[0].get("who") == seen[0]


def test_threads_of_one_client_take_turns(store):
    store.set("k", "v")
    results = in_threads(16, lambda index: [(store.add(f"n{index}", 1), store.get("k")) for _ in range(50)])
    assert results == [[(number, b"v") for number in range(1, 51)]] * 16


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


def test_a_prefix_store_has_every_operation(store):
    prefix = dist.PrefixStore("p", store)
    prefix.set("k", "v")
    assert prefix.check(["k"]) and not store.check(["k"]) and store.check(["p/k"])
    assert prefix.compare_set("k", "v", "w") == b"w"
    prefix.append("k", "x")
    prefix.multi_set(["a", "b"], ["1", "2"])
    assert prefix.multi_get(["b", "a", "k"]) == [b"2", b"1", b"wx"]
    prefix.wait(["a", "b"], LONG)
    prefix.queue_push("q", "item")
    assert (prefix.queue_len("q"), store.queue_len("q"), store.queue_len("p/q")) == (1, 0, 1)
    assert prefix.queue_pop("q") == b"item"
    assert prefix.delete_key("a")
    assert prefix.num_keys() == store.num_keys() == 2
    assert sorted(prefix.list_keys()) == ["b", "k"]
    with pytest.raises(dist.DistStoreError):  # it counts in keys of its own
        prefix.barrier("b2", 2, SHORT)
    assert store.get("p/b2/num_members") == b"1"
    prefix.set_timeout(SHORT)
    with pytest.raises(dist.DistStoreError):
        prefix.get("none")


def test_a_clone_is_a_client_of_its_own(store):
    copies = [store.clone(), dist.PrefixStore("p", store).clone()]
    with pytest.raises(dist.DistStoreError):
        copies[0].wait(["k"], SHORT)

    def wait_or_set(index):
        if index < 2:
            return (copies[index].wait(["k"], LONG), copies[index].get("k"))[1]
        store.multi_set(["k", "p/k"], ["plain", "prefixed"])  # not held up by those who wait
        return None

    assert in_threads(3, wait_or_set) == [b"plain", b"prefixed", None]
    del store
    assert copies[1].num_keys() == 2


def test_the_launchers_own_helpers_work(server):
    """What torch.distributed.elastic does with a store: exchanges, barriers, and who is missing."""
    stores = [client(server) for _ in range(4)]
    data = in_threads(4, lambda rank: elastic_store.synchronize(
        stores[rank], f"of {rank}".encode(), rank, 4, "exchange/", timeout=30))
    assert data == [[b"of 0", b"of 1", b"of 2", b"of 3"]] * 4
    in_threads(4, lambda _: elastic_store.barrier(client(server), 4, "barrier", 30))
    with pytest.raises(dist.DistStoreError, match=r"missing_ranks=\[(1, 2|2, 1)\]"):
        elastic_store.barrier(stores[0], 3, "missing", 0.15, rank=0, trace_timeout=0.15)


def test_a_gloo_group_meets_over_the_store(server):
    def work(rank):
        group = dist.ProcessGroupGloo(dist.PrefixStore("0", client(server)), rank, 4, LONG)
        tensor = torch.tensor([float(rank + 1)])
        group.allreduce([tensor]).wait()
        return tensor.item(), group  # a group that goes takes its peers' connections with it

    assert [total for total, _group in in_threads(4, work)] == [10.0] * 4


def test_a_monitored_barrier_passes_or_names_who_is_missing(server):
    made = {}

    def work(rank):
        group = dist.ProcessGroupGloo(dist.PrefixStore("0", client(server)), rank, 3, LONG)
        group.monitored_barrier(LONG)
        made[rank] = group
        # The last one does not come to the second.
        if rank < 2:
            with pytest.raises(RuntimeError) as failed:
                group.monitored_barrier(SHORT * (4 if rank else 2), wait_all_ranks=rank == 0)
            return str(failed.value)
        return ""

    of_first = in_threads(3, work)[0]
    assert "2" in of_first and "monitoredBarrier" in of_first


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


@pytest.fixture
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 5000:
        pytest.skip(f"needs 5,000 open files, and may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("end", [Raw.leave, Raw.vanish], ids=["closed", "reset"])
def test_1500_waiting_clients_that_go_at_once_stall_nobody(many_descriptors, server, end):
    waiting = [Raw(server) for _ in range(1500)]
    for number, raw in enumerate(waiting):
        raw.send(request(WAIT, keys(b"/never", b"/%d" % number)))
    assert [raw.answers() for raw in waiting] == [b""] * 1500
    other = Raw(server)
    for raw in waiting:
        end(raw)
    began, used = time.monotonic(), processor_seconds(server)
    for _ in range(100):  # before, while and after the server sees that they have gone
        other.ask(SET, text(b"/never"), text(b""))
    # On a busy machine it waits for a processor, but does not need it for longer.
    assert processor_seconds(server) - used < 2 and time.monotonic() - began < 60
    assert Raw(server).ask(GETNUMKEYS) == i64(1)


@pytest.mark.parametrize("command", [
    request(SET, text(b"/k"), text(b"value")),
    request(raw_store.COMPARE_SET, text(b"/k"), text(b""), text(b"x")),
    request(ADD, text(b"/k"), 1),
    request(raw_store.APPEND, text(b"/k"), text(b"value")),
    request(raw_store.QUEUE_PUSH, text(b"/k"), text(b"value")),
    request(raw_store.BARRIER, text(b"/k"), 2),
    request(raw_store.DELETE_KEY, text(b"/there")),
    request(raw_store.QUEUE_POP, text(b"/queue")),
], ids=lambda command: f"request {command[0]}")
def test_a_command_that_lacks_its_last_byte_does_nothing(server, command):
    other = Raw(server)
    other.ask(SET, text(b"/there"), text(b""))
    other.ask(raw_store.QUEUE_PUSH, text(b"/queue"), text(b""))
    dying = Raw(server).send(command[:-1])
    # It has left when its number of the answered is known: a half-closed connection is ended too.
    dying.socket.shutdown(1)
    assert dying.until_closed() == b""
    assert other.ask(CHECK, keys(b"/k")) == b"\1"
    assert other.ask(CHECK, keys(b"/there", b"/queue")) == b"\0"
    assert other.ask(GETNUMKEYS) == i64(1)


def test_a_killed_process_leaves_whole_values_and_no_wait(server):
    """Real clients, killed while they set 8 MiB values and while they wait."""
    own = client(server)
    values = {bytes([number]) * raw_store.VALUE_BYTES for number in range(2)}

    def set_forever(theirs):
        while True:
            for value in values:
                theirs.set("large", value)

    def wait_forever(theirs):
        theirs.add("about to wait", 1)
        theirs.wait(["awaited"], LONG)
        theirs.set("woken", "")

    children = [fork(server, work) for work in (set_forever, wait_forever)]
    try:
        own.wait(["large", "about to wait"], LONG)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert own.get("large") in values
    own.set("awaited", "")
    assert not own.check(["woken"])
    assert Raw(server).ask(GET, text(b"/awaited")) == text(b"")


def fork(server, work):
    """A process with a client of its own, which nothing but a signal ends."""
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.alarm(60)  # should the test die before it kills us
        work(client(server))
    finally:
        os._exit(1)
