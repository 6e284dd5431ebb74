"""elastic-gpu-probe alone, over a socket pair, with stand-in libraries: each reply, each way to fail, each bound."""
# ctest: gate

import json
import os
import pathlib
import signal
import site
import socket

import gpu_probe
import pytest

IGNORED_ID = "0" * 256
LINE_BYTES = 65536


@pytest.fixture
def probe(elastic_run):
    """probe(...): a gpu_probe.Probe; all of them end with 0 when their socket closes, unless they were killed."""
    made = []

    def start(*arguments, **options):
        made.append(gpu_probe.Probe(elastic_run, *arguments, **options))
        return made[-1]

    yield start
    for one in made:
        if one.running.popen.poll() is None:
            result = one.close()
            assert result.returncode == 0, result


@pytest.fixture
def opened(probe):
    """A probe whose device is open."""

    def start(*arguments, device=0, **options):
        made = probe(*arguments, **options)
        assert made.open(device=device)["ok"]
        return made

    return start


@pytest.fixture
def pair(opened):
    """pair(...): two probes, of ranks 0 and 1, and an id."""

    def start(**options):
        ranks = [opened(device=rank, **options) for rank in (0, 1)]
        return *ranks, ranks[0].ask({"do": "id"})["id"]

    return start


def gather_both(first, second, id, **options):
    first.send(gpu_probe.gather(0, 2, id, **options))
    second.send(gpu_probe.gather(1, 2, id, **options))
    return first.receive(), second.receive()


@pytest.fixture
def stand_ins(elastic_run):
    return gpu_probe.libraries(elastic_run)


# --- Lines

def test_a_reply_is_this_line_byte_by_byte(probe, stand_ins):
    device = probe()
    device.open(nccl=[stand_ins / "libnccl.so.2"])
    device.send(b"do=id\n")
    line = device.receive_line()
    assert line.startswith(b'{"ok": true, "id": "7374616e642d696e') and line.endswith(b'"}') and len(line) == len('{"ok": true, "id": ""}') + 256
    device.send('do=sing "é\\😀\n'.encode() + b"do=\xff\n")
    assert device.receive_line() == '{"failed": "an unknown request: sing \\"é\\\\😀"}'.encode()
    assert device.receive_line() == b'{"failed": "an unknown request: ?"}'


@pytest.mark.parametrize("line", [
    b"garbage", b"\x00\x01\xff", b"=", b"=id", b"do=id\tx", b"do=id\t=x", b"do=i\x00d", b"{}", b"x" * 1000,
    b"\t".join([b"do=id"] + [b"a=1"] * 96),
], ids=lambda line: repr(line)[:40])
def test_a_line_that_cannot_be_read_is_told_and_the_next_is_answered(probe, line):
    device = probe()
    device.send(line + b"\n")
    assert device.receive()["failed"].startswith("the request cannot be read: ")
    assert device.open()["ok"]


@pytest.mark.parametrize("request_, why", [
    ({}, "the request does not say what to do"), ({"a": 1}, "the request does not say what to do"),
    ({"do": "open"}, "the request open names no device"), ({"do": "open", "device": "-"}, "the request open names no device"),
    ({"do": "open", "device": "1x"}, "the request open names no device"),
    ({"do": "open", "device": 2**63}, "the request open names no device"), ({"do": "compute"}, "no device is open"),
    ({"do": "id"}, "no device is open"), ({"do": "gather"}, "no device is open"),
    ({"do": "id", "a": [str(number) for number in range(95)]}, "no device is open"),
], ids=lambda value: str(value)[:30])
def test_a_request_that_cannot_be_done_is_told_and_the_next_is_answered(probe, request_, why):
    device = probe()
    assert device.ask(request_) == {"failed": why}
    assert device.open()["ok"]


def test_a_line_may_have_64_kib_and_no_more(probe):
    device = probe()
    longest = b"do=open\tpad=".ljust(LINE_BYTES - 1, b"x") + b"\n"
    assert len(longest) == LINE_BYTES
    device.send(longest)
    assert device.receive() == {"failed": "the request open names no device"}
    for length in (LINE_BYTES + 1, 3 * LINE_BYTES, 10 * LINE_BYTES + 17):
        device.send(b"x" * (length - 1) + b"\n")
        assert device.receive() == {"failed": "the request is longer than 65536 bytes"}
    assert device.open()["ok"]


def test_requests_may_come_in_pieces_and_many_at_once(probe):
    device = probe()
    for byte in b"do=facts\n":
        device.send(bytes([byte]))
    assert "unavailable" in device.receive()
    device.send(b"do=a\n" * 500)
    assert [device.receive() for _ in range(500)] == [{"failed": "an unknown request: a"}] * 500


@pytest.mark.parametrize("last", [b"", b"do=facts", b"x" * 3 * LINE_BYTES], ids=["nothing", "half", "too long"])
def test_it_ends_with_0_when_the_socket_closes(probe, last):
    device = probe()
    device.send(last)
    device.socket.shutdown(socket.SHUT_WR)
    assert device.receive_line() == b""
    result = device.close()
    assert (result.returncode, result.stderr) == (0, "")


def test_it_ends_with_0_when_nobody_reads_the_replies(probe):
    device = probe()
    device.send(b"do=a\n" * 10)
    device.socket.shutdown(socket.SHUT_RD)
    device.send(b"do=a\n")
    assert device.close().returncode == 0


def test_without_a_socket_it_says_so(elastic_run):
    result = elastic_run(program=["sh", "-c", 'exec "$0" >&-', gpu_probe.program(elastic_run)])
    assert result.returncode == 2
    assert "stdout has to be a socket" in result.stderr


def test_it_runs_from_a_memfd(elastic_run, probe):
    image = os.memfd_create("elastic-gpu-probe")
    try:
        os.write(image, gpu_probe.program(elastic_run).read_bytes())
        device = probe(command=[f"/proc/self/fd/{image}"], pass_fds=[image])
        assert device.open()["ok"]
    finally:
        os.close(image)


def test_what_libraries_print_does_not_get_among_the_replies(opened):
    device = opened(env={"NCCL_SETTINGS": "A, =B,NCCL_DEBUG=VERSION=1"})
    assert list(device.ask({"do": "id"})) == ["ok", "id"]
    assert device.close().stderr.splitlines() == [
        'elastic-gpu-probe: NCCL_SETTINGS has "A", which is not NAME=value',
        'elastic-gpu-probe: NCCL_SETTINGS has "=B", which is not NAME=value',
        "NCCL version 22809+stand-in"]


def test_a_reason_is_at_most_1000_bytes_and_is_utf_8(probe, tmp_path):
    device = probe(facts=gpu_probe.facts_file(tmp_path, name='a\udcff "b"\tc é\udcc3'))
    reply = device.open(cuda=["é" * 3000])
    assert reply["unavailable"].startswith("no CUDA driver: é") and 900 < len(reply["unavailable"].encode()) <= 1000
    assert device.open()["name"] == 'a? "b"\tc é?'


# --- open

def test_open_tells_device_driver_and_libraries(probe, stand_ins):
    assert probe().open(device=3) == {
        "ok": True, "name": "Stand-in H100", "uuid": "GPU-00000000-0000-0000-0000-000000000003",
        "bus_id": "0000:1d:00.0", "memory_bytes": 85899345920, "driver_version": "580.65.06", "cuda_version": 13000,
        "nccl": {"path": f"{stand_ins}/libnccl.so.2", "version": 22809},
        "cublaslt": {"path": f"{stand_ins}/libcublasLt.so.13", "version": 130000}}


def test_the_first_library_that_serves_is_taken(probe, stand_ins, tmp_path):
    (tmp_path / "libnccl.so.2").write_text("no library")
    device = probe(env={"LD_LIBRARY_PATH": None})
    reply = device.open(cuda=["libabsent.so.1", stand_ins / "libcuda.so.1"], cublaslt=["libabsent.so.2"],
                        nccl=["/nowhere/libnccl.so.2", tmp_path / "libnccl.so.2", stand_ins / "libnccl.so.2"],
                        nvml=["libabsent.so.3"])
    assert reply["nccl"]["path"] == f"{stand_ins}/libnccl.so.2"
    assert reply["driver_version"] == ""
    assert reply["cublaslt"] is None and "libabsent.so.2" in reply["cublaslt_why"]
    assert device.ask({"do": "facts"})["unavailable"].startswith("no NVML: libabsent.so.3: cannot open")


def test_without_a_driver_it_is_unavailable(probe):
    device = probe()
    assert device.open(cuda=["/nowhere/libcuda.so.1", "libabsent.so.1"]) == {
        "unavailable": "no CUDA driver: libabsent.so.1: cannot open shared object file: No such file or directory"}
    assert device.open(cuda=[]) == {"unavailable": "no CUDA driver: no path to look for it was given"}


@pytest.mark.parametrize("nobody", [{"facts": {"devices": 0}}, {"env": {"CUDA_VISIBLE_DEVICES": ""}},
                                    {"env": {"CUDA_VISIBLE_DEVICES": "9"}}], ids=["none", "hidden", "unknown"])
def test_without_a_device_it_is_unavailable(probe, tmp_path, nobody):
    device = probe(facts=gpu_probe.facts_file(tmp_path, **nobody.get("facts", {})), env=nobody.get("env"))
    assert device.open() == {"unavailable": "the CUDA driver reports no device"}


def test_a_device_is_counted_among_the_visible(probe):
    device = probe(env={"CUDA_VISIBLE_DEVICES": "5,2"})
    assert device.open(device=2) == {"unavailable": "there is no device 2: the CUDA driver reports 2"}
    assert device.open(device=-1) == {"unavailable": "there is no device -1: the CUDA driver reports 2"}
    assert device.open(device=1)["uuid"].endswith("02")
    assert device.open(device=1) == {"failed": "a device is open already"}


@pytest.mark.parametrize("faults, reply", [
    ("driver_fails=802", {"failed": "cuInit: CUDA_ERROR_SYSTEM_NOT_READY"}),
    ("driver_fails", {"failed": "cuInit: CUDA_ERROR_UNKNOWN"}),
    ("driver_fails=34", {"unavailable": "{}/libcuda.so.1 is the CUDA toolkit's stub, not the driver"}),
    ("open_fails=214", {"failed": "cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE", "defect": True}),
    ("open_fails=12345", {"failed": "cuDevicePrimaryCtxRetain: an error without a name"}),
    ("open_fails@d1", {}),
])
def test_a_device_that_does_not_open_has_failed_with_cudas_name_for_it(probe, stand_ins, faults, reply):
    wanted = {name: text.format(stand_ins) if isinstance(text, str) else text for name, text in reply.items()}
    told = probe(faults=faults).open()
    assert told == wanted or (not wanted and told["ok"])


def test_kernels_are_loaded_lazily_unless_somebody_wants_it_otherwise(probe):
    assert probe(faults="needs_lazy_loading").open()["ok"]
    reply = probe(faults="needs_lazy_loading", env={"CUDA_MODULE_LOADING": "EAGER"}).open()
    assert reply == {"failed": "cuInit: CUDA_ERROR_UNKNOWN"}


def test_a_driver_without_a_function_is_unavailable(probe, stand_ins, tmp_path):
    library = gpu_probe.without(stand_ins / "libcuda.so.1", ["cuEventElapsedTime"], tmp_path)
    assert probe().open(cuda=[library]) == {"unavailable": f"no CUDA driver: {library} has no cuEventElapsedTime"}


def test_nccl_without_a_function_is_named_and_the_rest_is_tested(probe, stand_ins, tmp_path):
    library = gpu_probe.without(stand_ins / "libnccl.so.2", ["ncclAllGather"], tmp_path)
    device = probe()
    reply = device.open(nccl=[library])
    assert (reply["nccl"], reply["nccl_why"]) == (None, f"{library} has no ncclAllGather")
    for request in ({"do": "id"}, gpu_probe.gather(0, 1, IGNORED_ID)):
        assert device.ask(request) == {"unavailable": f"no NCCL: {library} has no ncclAllGather"}
    assert device.ask({"do": "compute"})["product_ms"] == 1


def test_real_libraries_have_all_functions(probe):
    places = [pathlib.Path(place) for place in site.getsitepackages()]
    found = {name: [str(path) for place in places for path in place.glob(f"nvidia/*/lib/{name}")]
             for name in ("libnccl.so.2", "libcublasLt.so.1?")}
    if not all(found.values()):
        pytest.skip("the tests' Python has no NCCL and cuBLASLt of NVIDIA")
    reply = probe().open(nccl=found["libnccl.so.2"], cublaslt=found["libcublasLt.so.1?"])
    assert reply["nccl"]["path"] in found["libnccl.so.2"] and reply["nccl"]["version"] >= 21400
    assert reply["cublaslt"]["path"] in found["libcublasLt.so.1?"] and reply["cublaslt"]["version"] >= 120000


@pytest.mark.parametrize("where", ["open", "init", "gather", "product"])
def test_a_driver_that_crashes_ends_the_probe_by_its_signal(probe, where):
    device = probe(faults=f"crash_in_{where}")
    open_request = {"do": "open", "device": 0, "cuda": ["libcuda.so.1"], "nccl": ["libnccl.so.2"],
                    "cublaslt": ["libcublasLt.so.13"]}
    device.send(open_request)
    if where != "open":
        assert device.receive()["ok"]
        id = device.ask({"do": "id"})["id"]
        device.send({"do": "compute"} if where == "product" else gpu_probe.gather(0, 1, id))
    assert device.receive_line() == b""
    assert device.running.wait().returncode == -signal.SIGSEGV


@pytest.mark.parametrize("where", ["open", "product"])
def test_a_driver_that_hangs_leaves_the_probe_silent_until_it_is_killed(probe, where):
    device = probe(faults=f"hang_in_{where}")
    if where == "product":
        assert device.open()["ok"]
    device.send({"do": "compute"} if where == "product" else {"do": "open", "device": 0, "cuda": ["libcuda.so.1"]})
    assert device.is_silent(0.5)
    device.running.send_signal(signal.SIGKILL)
    assert device.receive_line() == b""
    assert device.running.wait().returncode == -signal.SIGKILL


# --- compute

def test_compute_measures_product_and_copies(opened):
    assert opened().ask({"do": "compute"}) == {
        "ok": True, "product_ms": 1, "tflops": pytest.approx(2 * 128**3 / 1e-3 / 1e12, rel=1e-3),
        "memory_gbps": pytest.approx(2900, rel=1e-2), "host_to_device_gbps": pytest.approx(55, rel=1e-2),
        "device_to_host_gbps": pytest.approx(54, rel=1e-2)}


# Smaller than the tile that the matrices repeat, larger, many times larger; nonsense is not taken.
@pytest.mark.parametrize("size", ["16", "48", "64", "176", "512"])
def test_the_product_is_right_in_every_size(opened, size):
    reply = opened(env={"ELASTIC_RUN_PROBE_PRODUCT": size}).ask({"do": "compute"})
    assert reply["tflops"] == pytest.approx(2 * int(size)**3 / 1e-3 / 1e12, rel=1e-3)


def test_a_product_that_is_wrong_in_one_element_is_found(opened):
    reply = opened(faults="product_wrong").ask({"do": "compute"})
    assert list(reply) == ["failed", "defect"] and reply["defect"] is True
    words = reply["failed"].replace(",", " ,").split()
    assert reply["failed"].startswith("the product is wrong: element (3, 17) is ")
    assert int(words[-4]) - int(words[-1]) == 2


@pytest.mark.parametrize("faults, figures", [
    ("slow=8", {"product_ms": 8}), ("slow_memory=8", {"memory_gbps": 2900 / 8}),
    ("slow_host=8", {"host_to_device_gbps": 55 / 8, "device_to_host_gbps": 54 / 8}), ("slow=8@d1", {"product_ms": 1}),
])
def test_what_is_slow_is_seen_in_its_figure(opened, faults, figures):
    reply = opened(faults=faults).ask({"do": "compute"})
    assert {name: reply[name] for name in figures} == pytest.approx(figures, rel=1e-2)


@pytest.mark.parametrize("faults, why", [
    ("product_fails", "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"),
    ("no_memory", "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"),
])
def test_a_product_that_fails_is_told_by_the_librarys_name_for_it(opened, faults, why):
    device = opened(faults=faults)
    assert device.ask({"do": "compute"}) == {"failed": why}
    assert device.ask({"do": "compute"}) == {"failed": why}


def test_a_gpu_without_bfloat16_is_measured_without_a_product(opened):
    reply = opened(faults="no_bfloat16").ask({"do": "compute"})
    assert (reply["product_ms"], reply["tflops"]) == (None, None)
    assert reply["compute_why"] == "cuBLASLt: CUBLAS_STATUS_NOT_SUPPORTED"
    assert reply["memory_gbps"] == pytest.approx(2900, rel=1e-2)


def test_without_cublaslt_the_copies_are_measured(probe, stand_ins, tmp_path):
    library = gpu_probe.without(stand_ins / "libcublasLt.so.13", ["cublasLtMatmul"], tmp_path)
    device = probe()
    assert device.open(cublaslt=[library])["cublaslt"] is None
    reply = device.ask({"do": "compute"})
    assert (reply["product_ms"], reply["compute_why"]) == (None, f"{library} has no cublasLtMatmul")
    assert reply["memory_gbps"] == pytest.approx(2900, rel=1e-2)


# --- gather

def test_two_ranks_gather_and_tell_the_devices_times(pair):
    first, second, id = pair()
    for reply in gather_both(first, second, id):
        assert list(reply) == ["ok", "init_ms", "first_ms", "ms", "latency_us"]
        assert reply["ms"] == pytest.approx(0.02 + gpu_probe.SHARE / 50e6, rel=1e-3)
        assert reply["latency_us"] == pytest.approx(20, rel=1e-3)
        assert reply["init_ms"] > 0 and reply["first_ms"] > 0


def test_an_id_is_of_256_digits_and_each_is_another(opened):
    device = opened()
    ids = [device.ask({"do": "id"})["id"] for _ in range(3)]
    assert len(set(ids)) == 3
    assert all(len(id) == 256 and set(id) <= set("0123456789abcdef") for id in ids)


def test_one_rank_or_eight_gather_and_gather_again(opened):
    for world in (1, 8):
        ranks = [opened(device=rank) for rank in range(world)]
        for _ in range(2):
            id = ranks[0].ask({"do": "id"})["id"]
            for rank, device in enumerate(ranks):
                device.send(gpu_probe.gather(rank, world, id, size=8))
            assert all(device.receive()["ok"] for device in ranks)


def test_an_nccl_before_2_13_gathers_too(probe, stand_ins, tmp_path):
    library = gpu_probe.without(stand_ins / "libnccl.so.2",
                                ["ncclCommInitRankConfig", "ncclCommFinalize", "ncclGetLastError"], tmp_path)
    ranks = [probe(), probe()]
    for device in ranks:
        assert device.open(nccl=[library])["nccl"]["path"] == str(library)
    replies = gather_both(*ranks, ranks[0].ask({"do": "id"})["id"])
    assert all(reply["ok"] for reply in replies)


def test_a_slow_rank_slows_all(pair):
    first, second, id = pair(faults="slow_gather=8@r1")
    for reply in gather_both(first, second, id):
        assert reply["ms"] == pytest.approx(8 * (0.02 + gpu_probe.SHARE / 50e6), rel=1e-3)
        assert reply["latency_us"] == pytest.approx(160, rel=1e-3)


# 1 that warms up, 1 by which the ranks agree on how many more (in 200 ms), 4 to agree and to wait for each other, 1 at least of the small size.
@pytest.mark.parametrize("faults, gathers", [(None, 1 + 20 + 4 + 20), ("slow_gather=1e6@r1", 1 + 1 + 4 + 1),
                                             ("slow_gather=900@r1", 1 + 10 + 4 + 11)], ids=["fast", "slow", "between"])
def test_a_slow_gather_is_repeated_less_often_and_as_often_by_all(pair, faults, gathers):
    first, second, id = pair(faults=faults, env={"NCCL_DEBUG": "INFO"})
    assert all(reply["ok"] for reply in gather_both(first, second, id))
    assert [device.close().stderr.splitlines()[-1] for device in (first, second)] == [f"{gathers} gathers"] * 2


def test_nccls_own_words_are_told_where_its_initialisation_fails(pair):
    first, second, id = pair(faults="init_fails@r1")
    replies = gather_both(first, second, id, deadline_ms=8000)
    assert replies[1] == {"failed": "NCCL initialization: unhandled system error (run with NCCL_DEBUG=INFO for details) "
                                    "(Call to ibv_modify_qp failed with 110 Connection timed out)"}
    assert replies[0] == {"failed": "NCCL initialization did not end within 8.0 s"}


def test_a_container_without_shared_memory_is_told_in_nccls_words(pair, tmp_path):
    first, second, id = pair(env={"STAND_IN_GPU_SHM": str(tmp_path / "gone")})
    for rank, reply in enumerate(gather_both(first, second, id)):
        assert f"Error while creating shared memory segment {tmp_path}/gone/nccl-" in reply["failed"], (rank, reply)
        assert "No such file or directory (2)" in reply["failed"]


def test_ranks_with_different_versions_of_nccl_fail_and_say_them(opened, tmp_path):
    ranks = [opened(), opened(facts=gpu_probe.facts_file(tmp_path, nccl_version=22105))]
    for reply in gather_both(*ranks, ranks[0].ask({"do": "id"})["id"]):
        assert "invalid usage" in reply["failed"]
        assert "22809" in reply["failed"] and "22105" in reply["failed"]


@pytest.mark.parametrize("where, what", [
    ("init", "NCCL initialization"), ("gather", "the all-gather")])
def test_a_rank_that_hangs_is_ended_by_the_deadline_on_all_and_the_next_goes_well(pair, where, what):
    first, second, id = pair(faults=f"hang_in_{where}@r1")
    replies = gather_both(first, second, id, deadline_ms=8000)  # the step that hangs is come to before that
    assert replies[1] == {"failed": f"{what} did not end within 8.0 s"}
    # The other's words may be those of the first that gave up.
    assert list(replies[0]) == ["failed"] and what in replies[0]["failed"]
    id = second.ask({"do": "id"})["id"]
    second.send(gpu_probe.gather(0, 1, id))
    assert second.receive()["ok"]


def test_a_rank_that_crashes_is_a_remote_error_for_the_others(pair):
    first, second, id = pair(faults="crash_in_gather@r1")
    first.send(gpu_probe.gather(0, 2, id))
    second.send(gpu_probe.gather(1, 2, id))
    assert second.receive_line() == b""
    assert second.running.wait().returncode == -signal.SIGSEGV
    reply = first.receive()
    assert "remote process exited" in reply["failed"] and "socket of rank 0" in reply["failed"]


@pytest.mark.parametrize("late", ["init", "end"])
def test_a_peer_that_never_comes_or_goes_is_ended_by_the_deadline(opened, late):
    device = opened(faults="hang_in_end" if late == "end" else None)
    id = device.ask({"do": "id"})["id"]
    reply = device.ask(gpu_probe.gather(0, 1 if late == "end" else 2, id, deadline_ms=5000))
    what = "ncclCommFinalize" if late == "end" else "NCCL initialization"
    assert reply == {"failed": f"{what} did not end within 5.0 s"}


def test_the_reply_comes_even_where_an_abort_hangs(opened):
    device = opened(faults="hang_in_init,hang_in_abort")
    id = device.ask({"do": "id"})["id"]
    assert "did not end" in device.ask(gpu_probe.gather(0, 2, id, deadline_ms=100))["failed"]
    device.send({"do": "facts"})
    assert device.is_silent(0.5)
    device.running.send_signal(signal.SIGKILL)
    device.running.wait()


def test_bytes_that_arrive_wrong_are_found(pair):
    first, second, id = pair(faults="gather_wrong@r0")
    replies = gather_both(first, second, id, deadline_ms=60_000)
    why = f"the all-gather is wrong: byte {gpu_probe.SHARE - 4} of rank 1 is not what rank 1 sent"
    assert replies[0] == {"failed": why, "defect": True}


def test_what_an_earlier_gather_has_left_in_memory_is_not_taken_for_gathered(opened):
    """NCCL writes the beginning alone, and the device hands out the same memory again, with all that was right in it."""
    device = opened(faults=f"short_from_gather={1 + 20 + 4 + 20 + 1}")
    replies = [device.ask(gpu_probe.gather(0, 1, device.ask({"do": "id"})["id"], size=4096)) for _ in range(2)]
    assert replies[0].get("ok"), replies
    assert replies[1] == {"failed": "the all-gather is wrong: byte 1024 of rank 0 is not what rank 0 sent", "defect": True}


@pytest.mark.parametrize("change", [{"id": "0" * 255}, {"id": "x" * 256}, {"id": 1}, {"rank": 2}, {"rank": -1}, {"world": 0},
                                    {"world": 1025}, {"bytes": 0}, {"bytes": 12}, {"bytes": 2**31}, {"deadline_ms": 0}],
                         ids=str)
def test_a_gather_that_cannot_be_is_refused(opened, change):
    device = opened()
    reply = device.ask(gpu_probe.gather(0, 2, IGNORED_ID) | change)
    assert reply["failed"].startswith("the request gather needs ")
    reply = device.ask(gpu_probe.gather(0, 1024, IGNORED_ID, size=2**25))
    assert reply["failed"].startswith("the request gather needs bytes ")


def test_an_id_that_nccl_does_not_know_is_its_error(opened):
    assert opened().ask(gpu_probe.gather(0, 2, IGNORED_ID)) == {
        "failed": "NCCL initialization: invalid argument (run with NCCL_DEBUG=WARN for details)"}


# --- facts

def test_facts_tell_all_that_nvml_knows_of_each_device(opened, tmp_path):
    facts = gpu_probe.facts_file(
        tmp_path, devices=2, _1_ecc_uncorrectable=3, _1_remap_pending=1, _1_remap_failed=1, _1_memory_used_bytes=7 * 2**30,
        _1_holders="42:123:/usr/bin/python3 43:456:trainer", _1_pcie_width=8, _1_pcie_gen=3, _1_nvlinks="up:0 down:12",
        _1_throttle_reasons=0x48, _1_persistence=0, _1_mig=1, _1_fabric_state=2, _1_fabric_status=999, _1_temperature_c=91,
        _1_power_mw=400_123, _1_busy_percent=7, _1_memory_busy_percent=3)
    well = {
        "index": 0, "uuid": "GPU-00000000-0000-0000-0000-000000000000", "name": "Stand-in H100",
        "bus_id": "0000:1a:00.0", "driver_version": "580.65.06", "ecc_uncorrectable": 0, "remap_pending": False,
        "remap_failed": False, "memory_used_bytes": 2**29, "memory_bytes": 80 * 2**30, "holders": [], "pcie_width": 16,
        "pcie_max_width": 16, "pcie_gen": 5, "pcie_max_gen": 5,
        "nvlinks": [{"link": link, "up": True, "errors": 0} for link in range(4)], "throttle_reasons": 1,
        "persistence": True, "mig": False, "fabric_state": 3, "fabric_status": 0, "temperature_c": 40,
        "power_mw": 118_000, "busy_percent": 100, "memory_busy_percent": 0, "lost": False, "needs_reset": False}
    ill = well | {
        "index": 1, "uuid": "GPU-00000000-0000-0000-0000-000000000001", "bus_id": "0000:1b:00.0", "ecc_uncorrectable": 3,
        "remap_pending": True, "remap_failed": True, "memory_used_bytes": 7 * 2**30,
        "holders": [{"pid": 42, "bytes": 123, "name": "python3"}, {"pid": 43, "bytes": 456, "name": "trainer"}],
        "pcie_width": 8, "pcie_gen": 3, "nvlinks": [{"link": 0, "up": True, "errors": 0}, {"link": 1, "up": False, "errors": 12}],
        "throttle_reasons": 72, "persistence": False, "mig": True, "fabric_state": 2, "fabric_status": 999,
        "temperature_c": 91, "power_mw": 400_123, "busy_percent": 7, "memory_busy_percent": 3}
    assert opened(facts=facts).ask({"do": "facts"}) == {"ok": True, "devices": [well, ill]}


def test_facts_are_told_before_anything_is_taken_of_a_gpu(probe, tmp_path):
    """By candidates of their own. The stand-in driver tells another figure once there is a context."""
    facts = {"devices": 1, "memory_used_bytes": 5, "opened.memory_used_bytes": 7}
    device = probe(faults="hang_in_open", facts=gpu_probe.facts_file(tmp_path, **facts))
    assert "no NVML: libabsent.so.1: " in device.ask({"do": "facts", "nvml": ["libabsent.so.1"]})["unavailable"]
    before = device.ask({"do": "facts", "nvml": ["libnvidia-ml.so.1"]})["devices"]
    assert [told["memory_used_bytes"] for told in before] == [5]
    opened = probe(facts=gpu_probe.facts_file(tmp_path, **facts))
    opened.ask({"do": "facts", "nvml": ["libnvidia-ml.so.1"]})
    assert opened.open()["ok"]
    assert opened.ask({"do": "facts", "nvml": ["libabsent.so.1"]})["devices"][0]["memory_used_bytes"] == 7


def test_what_nvml_does_not_tell_is_left_out(opened, tmp_path):
    names = ["ecc_uncorrectable", "remap_pending", "memory_used_bytes", "holders", "pcie_width", "throttle_reasons",
             "persistence", "mig", "fabric_state", "temperature_c", "power_mw", "busy_percent"]
    facts = gpu_probe.facts_file(tmp_path, devices=1, nvlinks="none", **dict.fromkeys(names, "none"))
    device = opened(facts=facts).ask({"do": "facts"})["devices"][0]
    assert not set(names) & set(device) and "memory_busy_percent" not in device
    assert device["nvlinks"] == [] and device["pcie_max_width"] == 16


def test_an_nvml_without_functions_tells_the_rest(probe, stand_ins, tmp_path):
    library = gpu_probe.without(stand_ins / "libnvidia-ml.so.1",
                                ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetFieldValues"], tmp_path)
    device = probe(facts=gpu_probe.facts_file(tmp_path, devices=1, recovery_action=1))
    device.open(nvml=[library])
    told = device.ask({"do": "facts"})["devices"][0]
    assert not {"memory_used_bytes", "nvlinks"} & set(told)
    assert (told["pcie_width"], told["needs_reset"]) == (16, False)


@pytest.mark.parametrize("facts, lost, needs_reset", [
    ({"lost": 1}, True, False), ({"needs_reset": 1}, False, True), ({"recovery_action": 1}, False, True),
    ({"recovery_action": 2}, False, True), ({"recovery_action": 3}, False, False), ({"recovery_action": 4}, False, True),
    ({"recovery_action": 1, "driver_version": "565.57.01"}, False, False),  # where the field was another's
], ids=str)
def test_a_gpu_that_is_lost_or_has_to_be_reset_is_told(opened, tmp_path, facts, lost, needs_reset):
    file = gpu_probe.facts_file(tmp_path, devices=2, **{f"_1_{name}" if name != "driver_version" else name: value
                                                        for name, value in facts.items()})
    well, ill = opened(facts=file).ask({"do": "facts"})["devices"]
    assert (well["lost"], well["needs_reset"]) == (False, False)
    assert (ill["index"], ill["lost"], ill["needs_reset"]) == (1, lost, needs_reset)


def test_at_most_8_holders_of_a_device_are_named(opened, tmp_path):
    facts = gpu_probe.facts_file(tmp_path, devices=1, holders=" ".join(f"{pid}:1:p{pid}" for pid in range(1, 21)))
    holders = opened(facts=facts).ask({"do": "facts"})["devices"][0]["holders"]
    assert [holder["name"] for holder in holders] == [f"p{pid}" for pid in range(1, 9)]


@pytest.mark.parametrize("links", [4, 18])
def test_of_many_devices_as_many_are_told_as_fit_into_a_line(opened, tmp_path, links):
    facts = gpu_probe.facts_file(tmp_path, devices=70, nvlinks=" ".join(["up:0"] * links))
    device = opened(facts=facts)
    device.send({"do": "facts"})
    line = device.receive_line()
    devices = json.loads(line)["devices"]
    assert [told["index"] for told in devices] == list(range(len(devices)))
    assert len(devices) == 64 if links == 4 else 60000 < len(line) < LINE_BYTES
    assert all(told["temperature_c"] == 40 for told in devices)


def test_facts_are_told_where_cuda_has_no_device(probe, tmp_path):
    device = probe(env={"CUDA_VISIBLE_DEVICES": ""})
    assert "unavailable" in device.open()
    assert len(device.ask({"do": "facts"})["devices"]) == 8


def test_an_nvml_that_does_not_start_is_unavailable(opened):
    assert opened(faults="nvml_fails").ask({"do": "facts"}) == {"unavailable": "NVML: Driver Not Loaded"}
