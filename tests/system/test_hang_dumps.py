"""Flight recorders that are had by /exception_dump in the worker store, when a hang ends its round: docs/hangs.md."""
# ctest: long
# ctest: clock
# ctest: nodes

import json
import signal

import pytest

from hanging import RECORDER
from harness import wait_until
from raw_store import CHECK, GET, HELLO, READY, keys, request, text
from test_hang_restart import LOADS, Job

KEY = b"/exception_dump"

# A rank as PyTorch's NCCL engine makes it: a thread with the name of the engine's looks for the key in the worker store,
# and dumps. Whoever gets SIGTERM says when, and whether the key was there.
ENGINE = RECORDER + f"""
import signal


# The rank that the worker store's key names; None: there is no key.
def key():
    store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    store.sendall({HELLO + request(CHECK, keys(KEY))!r})
    if store.recv(1) != {READY!r}:
        return None
    store.sendall({request(GET, text(KEY))!r})
    size, named = struct.unpack("<qi", store.recv(12, socket.MSG_WAITALL))
    return named if size == 4 else size


def signalled(*_):
    note(f"signalled_{{rank}}", repr(time.time()))
    note(f"key_{{rank}}", repr(key()))
    os._exit(1)


def dump():
    write_dump(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(rank), b"\\x80\\x02" + pickled(recorded()) + b".")


def look():
    with open(f"/proc/self/task/{{threading.get_native_id()}}/comm", "w") as name:
        name.write("pt_nccl_heartbt")
    note(f"looks_{{number}}_{{rank}}")
    while key() is None:
        time.sleep(0.1)
    dump()


signal.signal(signal.SIGTERM, signalled)
"""

HANGS = LOADS + """
threading.Thread(target=look, daemon=True).start()
for each in range(world):
    wait_for(f"looks_{number}_{each}")
steps(3)
if number == 0 and rank == 1:
    load_batch()
all_reduce()
"""


@pytest.fixture
def job(elastic_run, script):
    return Job(elastic_run, script)


def dumps_of(logs):
    """What each node has read of the dumps, by its log directory: the time of the file, and its content."""
    file, = logs.glob("*/attempt_0/hang/*_dumps.json")
    return file.stat().st_mtime, json.loads(file.read_text())


def notes(job, what, ranks):
    return [(job.directory / f"{what}_{rank}").read_text() for rank in ranks]


def test_where_recorders_were_not_had_ranks_dump_for_the_stores_key_before_the_first_signal(job):
    result = job.alone(ENGINE + HANGS).wait(timeout=120)
    assert result.returncode == 0 and "action: restart (hang 1 of 3)" in result.stderr, result
    written, dumps = dumps_of(job.logs)
    assert [rank["recorder"]["state"] for rank in dumps["facts"]["ranks"]] == ["ok"] * 3, dumps
    assert [fact["enqueued"] for fact in dumps["facts"]["group_facts"]] == [7, 6], dumps
    assert any("all_reduce number 7" in line for line in dumps["lines"]), dumps
    assert written <= min(map(float, notes(job, "signalled", range(3)))), (written, result)
    assert notes(job, "key", range(3)) == ["-1"] * 3, "the key names a rank"


def test_a_dump_that_does_not_come_holds_the_stop_up_for_5_s_at_most_and_a_hostile_one_is_refused(job):
    result = job.alone(ENGINE + """
def dump(of_rank=dump):
    if rank == 0:
        of_rank()
    if rank == 1:
        write_dump(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(rank), pickle.dumps(Runs(), protocol=2))
    note(f"told_{rank}", repr(time.time()))


""" + HANGS).wait(timeout=120)
    assert result.returncode == 0, result
    _, dumps = dumps_of(job.logs)
    ranks = {rank["rank"]: rank["recorder"] for rank in dumps["facts"]["ranks"]}
    assert ranks[0]["state"] == "ok" and "GLOBAL" in ranks[1]["why"] and ranks[1]["state"] == "lost", ranks
    assert ranks[2] == {"state": "late", "why": "it has written no dump within 4 s"}, ranks
    assert not (job.directory / "was_run").exists()
    told, signalled = (sorted(map(float, notes(job, what, range(3)))) for what in ("told", "signalled"))
    assert 2 < signalled[0] - told[0] < 8, (told, signalled)


# The pipe by which elastic-run asks a rank for its dump; all have theirs when they train.
BY_PIPE = """
def record():
    pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + f"{rank}.pipe"
    if os.path.exists(pipe):
        os.unlink(pipe)  # of the round before
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    writing = os.open(pipe, os.O_WRONLY)
    note(f"records_{number}_{rank}")
    while os.read(reading, 128):
        dump()


threading.Thread(target=record, daemon=True).start()
for each in range(world):
    wait_for(f"records_{number}_{each}")
"""


def test_where_all_recorders_were_had_the_store_gets_no_key(job):
    result = job.alone(ENGINE + BY_PIPE + HANGS).wait(timeout=120)
    assert result.returncode == 0, result
    assert job.report()["sources"]["fr"] == "ok", job.report()
    assert notes(job, "key", range(3)) == ["None"] * 3
    assert not list(job.logs.glob("*/attempt_0/hang/*_dumps.json"))


def test_where_a_hang_is_only_reported_the_store_gets_no_key(job):
    run = job.alone(ENGINE + HANGS, "--hang=report")
    run.wait_for_line("no progress for", timeout=120)
    wait_until(lambda: list(job.logs.glob("*/attempt_0/hang/hang.json")), what="hang.json")
    run.send_signal(signal.SIGTERM)
    run.wait()
    assert notes(job, "key", range(3)) == ["None"] * 3
    assert not list(job.logs.glob("*/attempt_0/hang/*_dumps.json"))


def test_ranks_of_all_nodes_dump_for_the_key_in_the_store_of_one(job):
    first, second = (job.node(name, "2", ENGINE + HANGS) for name in ("127.0.0.1", "127.0.0.2"))
    for node in (first, second):
        result = node.wait(timeout=120)
        assert result.returncode == 0 and "action: restart" in result.stderr, result
    found = [dumps_of(job.directory / f"logs-{name}") for name in ("127.0.0.1", "127.0.0.2")]
    assert [[rank["rank"] for rank in dumps["facts"]["ranks"]] for _, dumps in found] == [[0, 1], [2, 3]], found
    for _, dumps in found:
        assert [rank["recorder"]["state"] for rank in dumps["facts"]["ranks"]] == ["ok", "ok"], dumps
    assert notes(job, "key", range(2)) == ["-1"] * 2  # the store ends with its node's workers
