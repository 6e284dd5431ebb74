"""The fixtures of the system tests; README.md explains how a test uses them."""

import glob
import os
import pathlib
import signal
import sys

import pytest

sys.path[:0] = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))]
import harness  # noqa: E402

USUAL_TIME_LIMIT = 240  # seconds for one test, unless @pytest.mark.time_limit says otherwise


def pytest_collection_modifyitems(items):
    if os.path.exists("/proc/driver/nvidia") or glob.glob("/dev/nvidia[0-9]*"):
        return
    skip = pytest.mark.skip(reason="needs an NVIDIA GPU, and this machine has none")
    for item in items:
        if item.get_closest_marker("requires_gpu"):
            item.add_marker(skip)


MOST_TOLD = 6000  # bytes of what a program said, with a test that failed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """With a test that failed stands what its programs had said until then."""
    report = yield
    programs = item.funcargs.get("elastic_run") if hasattr(item, "funcargs") else None
    if report.when == "call" and report.failed and isinstance(programs, harness.Programs):
        for each in filter(lambda one: one.stderr, programs.started):
            report.sections.append((f"stderr of {each.pid}: {' '.join(each.command)[-200:]}", each.stderr.text[-MOST_TOLD:]))
    return report


@pytest.fixture(autouse=True)
def time_limit(request):
    """Fails a test that hangs in Python itself; everything that it started is then ended."""
    marker = request.node.get_closest_marker("time_limit")
    seconds = marker.args[0] if marker else USUAL_TIME_LIMIT

    def too_long(_number, _frame):
        raise harness.HarnessError(f"the test takes longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def elastic_run(tmp_path, time_limit):
    """Runs elastic-run: `elastic_run("--version")`, or `.start(...)` and `.wait()`; the class
    harness.Programs has the rest. At the end of the test nothing of it may be left."""
    binary = os.environ.get("ELASTIC_RUN_BINARY")
    if not binary or not os.access(binary, os.X_OK):
        pytest.fail(f"no elastic-run to test: ELASTIC_RUN_BINARY is {binary!r}; scripts/test builds it")
    # Where the tests themselves have a directory of their own for temporary files; /tmp is everybody's.
    places = [os.environ["TMPDIR"]] if "TMPDIR" in os.environ else []
    before = worker_directories(places)
    programs = harness.Programs(pathlib.Path(binary), tmp_path, os.path.dirname(sys.executable))
    yield programs
    programs.finish()
    left = worker_directories(places) - before
    assert not left, f"directories of workers were made outside TMPDIR, or stayed: {sorted(left)}"


def worker_directories(places):
    return {name for place in places for name in glob.glob(f"{place}/torchelastic_*")}


@pytest.fixture
def script(tmp_path):
    """script(name, text): writes a file that is executable and returns its path."""

    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    return write


@pytest.fixture(scope="session")
def static_c(tmp_path_factory):
    """static_c(source): the path of a static executable made from the text of a C file."""
    return harness.StaticC(tmp_path_factory.mktemp("static_c"))


@pytest.fixture
def sanitized(elastic_run):
    """True if the elastic-run under test has sanitizers in it: larger, slower, not static."""
    return harness.is_sanitized(elastic_run.binary)


@pytest.fixture
def refusing(static_c):
    """refusing("38 424-999"): what to put before a command line to have it run where these system calls
    are answered with that error; harness.SYSTEM_CALL_FILTER says how to name them."""
    return lambda which: [static_c(harness.SYSTEM_CALL_FILTER), which]


@pytest.fixture
def has_cgroup():
    """Skips the test where elastic-run finds no cgroup to use."""
    if " - cgroup2 " not in pathlib.Path("/proc/self/mountinfo").read_text():
        pytest.skip("no cgroup v2 is mounted")


@pytest.fixture(params=["cgroup", "no cgroup"])
def with_cgroup(request):
    """Changes of the environment under which elastic-run uses a cgroup, or does not."""
    if request.param == "no cgroup":
        return {"ELASTIC_RUN_CGROUP": "off"}
    request.getfixturevalue("has_cgroup")
    return {}


@pytest.fixture
def deaf_server(tmp_path):
    """A deaf_server.DeafServer, whose directory is mounted by its mount_here."""
    from deaf_server import DeafServer  # the tests of the harness have a copy of this file, and not of that

    if not os.path.exists("/dev/fuse") or os.geteuid() != 0:
        pytest.skip("needs /dev/fuse, and root to mount")
    (tmp_path / "deaf").mkdir()
    serving = DeafServer(tmp_path / "deaf")
    yield serving
    serving.close()


@pytest.fixture
def file_server(tmp_path):
    """file_server(options...): a file_server.FileServer to be mounted at `logs`."""
    from file_server import FileServer

    if not os.path.exists("/dev/fuse") or os.geteuid() != 0:
        pytest.skip("needs /dev/fuse, and root to mount")
    (tmp_path / "logs").mkdir()
    made = []

    def serve(**options):
        made.append(FileServer(tmp_path / "logs", **options))
        return made[0]

    yield serve
    for serving in made:
        serving.close()
