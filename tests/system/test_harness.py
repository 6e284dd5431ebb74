"""The harness itself: what it promises to the other system tests. The program is sh, not elastic-run."""
# ctest: gate

import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time

import harness
import networks
import pytest

SH = ["/bin/sh", "-c"]


@pytest.fixture
def programs(tmp_path):
    """As elastic_run, but made and ended by the test, so that the end can be looked at."""
    made = harness.Programs(pathlib.Path("/bin/true"), tmp_path, os.path.dirname(sys.executable))
    yield made
    made.kill_all()


def test_status_output_and_duration_are_returned(programs):
    result = programs("echo out; echo err >&2; exit 3", program=SH)
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert 0 < result.duration < 60


def test_death_by_a_signal_is_a_negative_status(programs):
    assert programs("kill -KILL $$", program=SH).returncode == -signal.SIGKILL


def test_bytes_that_are_no_text_are_kept(programs):
    result = programs(r"printf '\377\000a'", program=SH)
    assert result.stdout_bytes == b"\xff\x00a"
    assert result.stdout.encode("utf-8", "surrogateescape") == result.stdout_bytes


def test_environment_is_only_what_the_test_gives(programs, monkeypatch):
    for name in ("PET_NNODES", "OMP_NUM_THREADS", "SLURM_JOB_ID", "VIRTUAL_ENV", "PYTHONPATH"):
        monkeypatch.setenv(name, "leaked")
    result = programs(program=["/usr/bin/env"], env={"ADDED": "yes", "LANG": None})
    names = {line.split("=")[0] for line in result.stdout.splitlines()}
    assert names == {"PATH", "HOME", "TMPDIR", "ADDED", harness.MARKER}


def test_python3_on_path_is_the_one_that_runs_the_tests(programs):
    result = programs("import sys; print(sys.prefix)", program=["python3", "-c"])
    assert result.stdout.strip() == sys.prefix


def test_stdin_is_empty_unless_it_is_given(programs):
    assert programs(program=["cat"]).stdout == ""
    assert programs(program=["cat"], stdin="given").stdout == "given"
    programs(program=["true"], stdin="x" * 1_000_000)  # not read, and no harm done


def test_lines_are_seen_while_the_program_runs(programs):
    running = programs.start("echo one >&2; echo two >&2; read go; echo got $go", program=SH,
                             stdin=subprocess.PIPE)
    assert running.wait_for_line(r"t(w)o").group(1) == "w"
    assert running.popen.poll() is None
    running.popen.stdin.write(b"on\n")
    running.wait_for_line("got on", stream="stdout")
    assert running.wait().returncode == 0


def test_a_line_is_returned_once(programs):
    running = programs.start("echo rank 0; echo rank 1", program=SH)
    found = [running.wait_for_line(r"rank (\d)", stream="stdout").group(1) for _ in range(2)]
    assert found == ["0", "1"]
    with pytest.raises(harness.HarnessError, match="no line like 'rank'.*it ended with 0"):
        running.wait_for_line("rank", stream="stdout")


def test_a_line_that_does_not_come_fails_with_the_output_so_far(programs):
    running = programs.start("echo something else >&2; echo begun; exec sleep 100", program=SH)
    running.wait_for_line("begun", stream="stdout")
    with pytest.raises(harness.HarnessError, match=r"(?s)still running.*something else"):
        running.wait_for_line("never", timeout=0.3)


def test_a_hung_program_is_killed_with_its_tree_and_its_output_told(programs):
    running = programs.start("echo begun; setsid sleep 100 & sleep 100", program=SH)
    running.wait_for_line("begun", stream="stdout")
    # Who is in execve() has no environment, and is not found.
    harness.wait_until(lambda: [each.command for each in programs.processes()].count("sleep 100") == 2, what="both")
    with pytest.raises(harness.HarnessError, match=r"(?s)still running after.*begun.*sleep 100"):
        running.wait(timeout=0.2)
    assert programs.processes() == []


def test_a_process_that_is_left_behind_fails_the_test_and_is_killed(programs):
    # Not the child of ours that ended, in another session, with nothing of our pipes: only its
    # environment tells where it comes from, which no process has while it is in execve().
    result = programs("setsid sleep 100 </dev/null >/dev/null 2>&1 & until grep -qa ^sleep /proc/$!/cmdline; do :; done",
                      program=SH)
    assert result.returncode == 0
    with pytest.raises(harness.HarnessError, match=r"left behind by this test.*(\n.*)*sleep 100"):
        programs.finish(patience=0.1)
    assert programs.processes() == []


def test_a_program_that_nobody_waited_for_is_left_behind_also_without_its_marker(programs):
    running = programs.start("100", program=["/bin/sleep"], env={harness.MARKER: None})
    with pytest.raises(harness.HarnessError, match="sleep 100"):
        programs.finish(patience=0.1)
    assert not harness.alive(running.pid)


def test_what_is_about_to_end_is_waited_for(programs):
    programs("sleep 0.3 </dev/null >/dev/null 2>&1 &", program=SH)
    programs.finish(patience=20)


def test_output_that_is_held_open_is_noticed(programs, monkeypatch):
    monkeypatch.setattr(harness, "OUTPUT_PATIENCE", 0.2)
    with pytest.raises(harness.HarnessError, match=r"(?s)held open.*sleep 100"):
        programs("sleep 100 &", program=SH)


def test_processes_of_other_tests_are_left_alone(programs, tmp_path_factory):
    other = harness.Programs(pathlib.Path("/bin/true"), tmp_path_factory.mktemp("other"), "/bin")
    running = other.start("100", program=["/bin/sleep"])
    programs.finish(patience=0)
    programs.kill_all()
    assert harness.alive(running.pid)
    other.kill_all()
    assert not harness.alive(running.pid)


def test_a_zombie_is_not_alive():
    child = subprocess.Popen(["/bin/true"])
    harness.wait_until(lambda: harness.read_process(child.pid).state == "Z", what="a zombie")
    assert not harness.alive(child.pid)
    child.wait()
    assert harness.read_process(child.pid) is None


def test_wait_until_says_what_did_not_come_true():
    with pytest.raises(harness.HarnessError, match="a file"):
        harness.wait_until(lambda: os.path.exists("/nowhere"), timeout=0.05, what="a file")


SANITIZER_WORDS = "==42==ERROR: AddressSanitizer: heap-use-after-free on address 0x1"


def test_a_sanitizer_report_fails_the_test(programs):
    with pytest.raises(harness.HarnessError, match="heap-use-after-free"):
        programs(f"echo '{SANITIZER_WORDS}' >&2", program=SH)
    # A process whose stderr nobody sees writes its report where log_path says.
    (programs.directory / "sanitizer.42").write_text(SANITIZER_WORDS)
    with pytest.raises(harness.HarnessError, match="heap-use-after-free"):
        programs.finish()


LEAK = "#include <stdlib.h>\nint main(void) { volatile char* p = malloc(7); p = 0; return p != 0; }\n"


def test_a_real_leak_is_found_in_a_binary_with_sanitizers(tmp_path):
    leaking = tmp_path / "leaking"
    subprocess.run(["gcc", "-fsanitize=address", "-x", "c", "-", "-o", leaking], input=LEAK,
                   text=True, check=True)
    programs = harness.Programs(leaking, tmp_path, "/bin")
    with pytest.raises(harness.HarnessError, match=r"LeakSanitizer.*(\n.*)*7 byte"):
        programs(stderr=subprocess.DEVNULL)


def test_a_c_program_is_compiled_once_and_static(static_c, programs):
    source = '#include <stdio.h>\nint main(void) { puts("static"); return 0; }\n'
    path = static_c(source)
    assert programs(program=[path]).stdout == "static\n"
    before = path.stat().st_mtime_ns
    assert static_c(source) == path and path.stat().st_mtime_ns == before
    with pytest.raises(harness.HarnessError, match="does not compile"):
        static_c("int main(void) { return none; }")


def test_a_script_can_be_run_as_it_is(script, programs):
    assert programs(program=[script("hello", "#!/bin/sh\necho hello\n")]).stdout == "hello\n"


def run_pytest(tmp_path, text, binary="/bin/true", **environment):
    """A session of pytest with our conftest and one test file of its own."""
    here = pathlib.Path(__file__).parent
    for name in ("conftest.py", "harness.py"):
        (tmp_path / name).write_text((here / name).read_text())
    (tmp_path / "test_it.py").write_text("import harness, pathlib, pytest, subprocess, time\n" + text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", here.parent.parent / "pytest.ini", "--basetemp",
         tmp_path / "inner", "--rootdir", tmp_path, tmp_path / "test_it.py"],
        env=os.environ | {"ELASTIC_RUN_BINARY": binary} | environment, capture_output=True,
        text=True, check=False)


def test_the_fixture_fails_a_test_that_leaves_a_process(tmp_path):
    result = run_pytest(tmp_path, (
        "def test_it(elastic_run):\n"
        "    elastic_run('sleep 100 </dev/null >/dev/null 2>&1 &', program=['/bin/sh', '-c'])\n"))
    assert result.returncode == 1 and "left behind by this test" in result.stdout


def test_the_fixture_fails_a_test_that_takes_too_long(tmp_path):
    began = time.monotonic()
    result = run_pytest(tmp_path, (
        "@pytest.mark.time_limit(1)\n"
        "def test_it(elastic_run):\n"
        "    elastic_run.start('100', program=['/bin/sleep'])\n"
        "    time.sleep(100)\n"))
    assert result.returncode == 1 and "takes longer than 1 s" in result.stdout
    assert time.monotonic() - began < 95


def test_the_fixture_fails_a_test_whose_workers_write_beside_tmpdir(tmp_path):
    beside = tmp_path / "beside"
    beside.mkdir()
    result = run_pytest(tmp_path, (
        "def test_it(elastic_run):\n"
        f"    (pathlib.Path({str(beside)!r}) / 'torchelastic_x').mkdir()\n"), TMPDIR=str(beside))
    assert result.returncode == 1 and "were made outside TMPDIR" in result.stdout


def test_the_fixture_says_when_there_is_no_elastic_run(tmp_path):
    result = run_pytest(tmp_path, "def test_it(elastic_run):\n    pass\n", binary="/nowhere/elastic-run")
    assert result.returncode == 1 and "scripts/test builds it" in result.stdout


def test_a_test_that_needs_a_gpu_is_skipped_by_name(tmp_path):
    has_gpu = os.path.exists("/proc/driver/nvidia") or any(
        name.startswith("nvidia") and name[6:].isdigit() for name in os.listdir("/dev"))
    result = run_pytest(tmp_path, "@pytest.mark.requires_gpu\ndef test_it():\n    pass\n")
    assert result.returncode == 0
    assert has_gpu or "needs an NVIDIA GPU" in result.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces and mounts")
def test_directories_in_memory_are_seen_nowhere_else_and_go_with_who_made_them_however_that_ends(programs, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    maker = programs.start(program=["python3", "-c", (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import roots\n"
        f"with roots.Memory({str(place)!r}) as memory:\n"
        "    memory.run('mkdir', '-p', 'root/proc')\n"
        "    memory.run('mount', '-t', 'proc', 'none', 'root/proc')\n"
        "    print((memory.path / 'root/proc/self').exists(), flush=True)\n"
        "    sys.stdin.read()\n")], stdin=subprocess.PIPE)
    maker.wait_for_line("^True$", stream="stdout")
    assert list(place.iterdir()) == [] and str(place) not in pathlib.Path("/proc/self/mountinfo").read_text()
    harness.wait_until(lambda: len(programs.processes()) == 2, what="it, and the holder of the namespace")
    maker.send_signal(signal.SIGKILL)
    maker.popen.stdin.close()
    maker.popen.wait(60)
    programs.finish()  # the process that held the namespace is gone, too


def test_a_daemon_of_others_ends_with_the_process_of_the_tests():
    code = ("import os, subprocess, sys; sys.path.insert(0, sys.argv[1]); import harness\n"
            "daemon = subprocess.Popen(['sleep', '1000'], start_new_session=True, preexec_fn=harness.ends_with_the_tests)\n"
            "print(daemon.pid, flush=True); os.kill(os.getpid(), 9)")
    tests = subprocess.run([sys.executable, "-c", code, os.path.dirname(harness.__file__)], capture_output=True, text=True)
    assert tests.returncode == -signal.SIGKILL
    harness.wait_until(lambda: not harness.alive(int(tests.stdout)), what="the daemon's end")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
def test_hosts_step_around_what_an_earlier_process_of_this_number_has_left():
    left = f"er{os.getpid()}-{{}}-b"
    taken = next(number for number in itertools.count() if not os.path.exists(f"{networks.NETNS}/{left.format(number)}"))
    taken += 1000  # that no test of this process comes to
    networks.ip("netns", "add", left.format(taken))
    try:
        found = networks.free_numbers(taken - 1)
        assert [next(found), next(found)] == [taken - 1, taken + 1]
    finally:
        networks.ip("netns", "delete", left.format(taken))
