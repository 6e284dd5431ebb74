"""What scripts/package makes, each package installed and run on a bare Debian of its own."""
# ctest: long
# ctest: release-only
# ctest: computes

import email
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import zipfile

import pytest
import roots

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSIDE = {"TMPDIR": None, "HOME": "/root", "OMP_NUM_THREADS": "1"}

# Rank 1 fails in the first round, in which rank 0 would run for ever; in the second each does its part.
SHELL_WORKER = """\
[ "$RANK.$TORCHELASTIC_RESTART_COUNT" != 1.0 ] || exit 3
[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exec sleep infinity
echo "rank $RANK of $WORLD_SIZE trained"
"""
# The same, and in the second round they add up a number over the worker store, as a barrier does.
PYTHON_WORKER = """\
import os, sys, time, types
from raw_store import ADD, SET, WAIT, Raw, i64, keys, request, text
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = Raw(types.SimpleNamespace(port=int(os.environ["MASTER_PORT"])))
def add(key, amount):
    return int.from_bytes(store.send(request(ADD, text(key), amount)).receive(8), "little")
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(3) if rank == 1 else time.sleep(3600)
add(b"gradient", rank + 1)
if add(b"arrived", 1) == world:
    store.send(request(SET, text(b"all"), text(b"1")))
store.send(request(WAIT, keys(b"all"))).receive(1)
os.write(1, f"rank {rank} of {world} trained, sum {add(b'gradient', 0)}\\n".encode())
"""


def package(output, **changes):
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"} | changes
    done = subprocess.run([ROOT / "scripts/package", "all", "--output", output], env=environment, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.suffix: path for path in output.iterdir()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The packages, by the ends of their names: .deb, .gz, .whl."""
    return package(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with roots.Memory(tmp_path_factory.mktemp("memory")) as place:
        roots.make_bare_system(place, "bare")
        yield place


@pytest.fixture
def system(memory):
    """A bare Debian for one test."""
    memory.run("cp", "-a", "bare", "system")
    (memory.path / "system/work").mkdir()
    yield memory.path / "system"
    memory.run("rm", "-r", "system")


@pytest.fixture
def inside(elastic_run, memory, system):
    """inside(command...): runs it in the bare Debian, and fails where it does."""

    def run(*command, timeout=60):
        result = elastic_run(program=memory.entered("system", *command), env=INSIDE | roots.proxy(), cwd="/",
                             timeout=timeout)
        assert result.returncode == 0, result
        return result

    return run


@pytest.fixture
def train(inside, system):
    """train(command line's beginning, the last arguments): two workers that fail once and then succeed."""
    (system / "work/worker.sh").write_text(SHELL_WORKER)
    (system / "work/worker.py").write_text(PYTHON_WORKER)
    shutil.copy(ROOT / "tests/system/raw_store.py", system / "work")

    def trains(begin, *arguments):
        result = inside(*begin, "--standalone", "--nproc-per-node=2", "--max-restarts=1", *arguments)
        assert "restart 1 of 1" in result.stderr
        return sorted(result.stdout.splitlines())

    return trains


TRAINED_BY_SHELL = ["rank 0 of 2 trained", "rank 1 of 2 trained"]


def version():
    return re.search(r"^project\(.* VERSION (\S+) ", (ROOT / "CMakeLists.txt").read_text(), flags=re.M).group(1)


def deb_field(deb, field):
    return subprocess.run(["dpkg-deb", "--field", deb, field], capture_output=True, text=True,
                          check=True).stdout.strip()


# --- The packages themselves

def test_the_same_sources_give_the_same_packages(packages, tmp_path):
    other = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "TMPDIR": str(tmp_path)}
    again = package(tmp_path / "again", **other)
    assert {path.name for path in again.values()} == {path.name for path in packages.values()}
    for suffix, path in packages.items():
        both = [hashlib.sha256(each.read_bytes()).hexdigest() for each in (path, again[suffix])]
        assert both[0] == both[1], path.name


def test_the_version_of_every_package_is_the_programs(packages, elastic_run):
    machine = os.uname().machine
    assert elastic_run("--version").stdout == f"elastic-run {version()}\n"
    assert deb_field(packages[".deb"], "Version") == version()
    assert packages[".gz"].name == f"elastic-run-{version()}-linux-{machine}.tar.gz"
    name, wheel_version, _, _, platforms = packages[".whl"].stem.split("-")
    assert (name, wheel_version) == ("elastic_run", version())
    assert all(platform.endswith(machine) for platform in platforms.split("."))
    with zipfile.ZipFile(packages[".whl"]) as wheel:
        metadata = email.message_from_bytes(wheel.read(f"elastic_run-{version()}.dist-info/METADATA"))
    assert (metadata["Name"], metadata["Version"]) == ("elastic-run", version())


def test_every_package_has_the_same_stripped_binary(packages, elastic_run, tmp_path):
    binary = (ROOT / "build/release/elastic-run").read_bytes()
    subprocess.run(["dpkg-deb", "--extract", packages[".deb"], tmp_path / "deb"], check=True)
    assert (tmp_path / "deb/usr/bin/elastic-run").read_bytes() == binary
    with tarfile.open(packages[".gz"]) as tarball:
        (name,) = [name for name in tarball.getnames() if name.endswith("/bin/elastic-run")]
        assert tarball.extractfile(name).read() == binary
    with zipfile.ZipFile(packages[".whl"]) as wheel:
        assert wheel.read(f"elastic_run-{version()}.data/scripts/elastic-run") == binary
    sections = subprocess.run(["readelf", "--sections", "--wide", tmp_path / "deb/usr/bin/elastic-run"],
                              capture_output=True, text=True, check=True).stdout
    assert ".text" in sections and ".symtab" not in sections and ".debug" not in sections


@pytest.mark.skipif(shutil.which("lintian") is None, reason="there is no lintian; scripts/test installs it")
def test_lintian_finds_no_error_and_no_warning(packages):
    said = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", packages[".deb"]],
                          capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, ""), said.stdout + said.stderr


def test_the_deb_depends_on_nothing(packages):
    for field in ("Depends", "Pre-Depends", "Recommends"):
        assert deb_field(packages[".deb"], field) == ""
    assert deb_field(packages[".deb"], "Static-Built-Using").count("=") > 5


def test_the_wheel_holds_the_binary_and_nothing_to_import(packages):
    with zipfile.ZipFile(packages[".whl"]) as wheel:
        info = f"elastic_run-{version()}.dist-info/"
        assert [name for name in wheel.namelist() if not name.startswith(info)] == [
            f"elastic_run-{version()}.data/scripts/elastic-run"]
        # What pip goes by; a name that is missing in the one list is a file that stays after pip uninstall.
        record = {line.split(",")[0] for line in wheel.read(info + "RECORD").decode().splitlines()}
        assert record == set(wheel.namelist())


def owners(paths):
    """The Debian packages that these files belong to. Some are known to dpkg by the path before /usr was merged."""
    real = {os.path.realpath(path) for path in paths}
    said = subprocess.run(["dpkg", "-S", *real, *(path.removeprefix("/usr") for path in real)], capture_output=True,
                          text=True, check=False).stdout
    return {line.split(":")[0] for line in said.splitlines() if "diversion" not in line}


def test_every_package_whose_code_is_in_the_binary_is_named_with_its_copyright(packages, tmp_path):
    build = ROOT / "build/release"

    def ninja(*arguments):
        return subprocess.run(["ninja", "-C", build, *arguments], capture_output=True, text=True, check=True).stdout

    # What the linker takes, when it links once more to another place, and what the compiler opened for that.
    link = ninja("-t", "commands", "-s", "elastic-run").splitlines()[-1]
    assert " -o elastic-run " in link
    again = link.replace(" -o elastic-run ", f" -Wl,-Map={tmp_path}/map -o {tmp_path}/elastic-run ")
    subprocess.run(again, shell=True, cwd=build, check=True)
    members = re.findall(r"^(\S+\.a)\((\S+\.o)\)$", (tmp_path / "map").read_text(), flags=re.M)
    archives = {archive for archive, _ in members if archive.startswith("/usr/")}
    objects = {member for archive, member in members if not archive.startswith("/usr/")} | {"main.cpp.o"}
    headers = set()
    for block in ninja("-t", "deps").split("\n\n"):
        if os.path.basename(block.split(":")[0]) in objects:
            headers |= set(re.findall(r"^ +(/usr/\S+)", block, flags=re.M))
    assert any(path.endswith("libc.a") for path in archives) and any("/spdlog/" in path for path in headers)
    named = {line for line in (ROOT / "packaging/linked-packages").read_text().splitlines() if line[0] != "#"}
    # The kernel's headers are numbers and structures of its interface, of which its licence says that they are free.
    assert owners(archives | headers) - {"linux-libc-dev"} == named
    with tarfile.open(packages[".gz"]) as tarball:
        notices = {os.path.basename(name) for name in tarball.getnames() if "/notices/" in name}
    assert named < notices
    machine_readable = (ROOT / "packaging/debian/copyright").read_text()
    assert all(f"linked/{name}\n" in machine_readable for name in named)


# --- Installed

def test_the_deb_is_installed_run_and_removed_on_a_bare_debian(packages, system, inside, train):
    before = roots.files_in(system)
    shutil.copy(packages[".deb"], system / "work/elastic-run.deb")
    inside("dpkg", "--install", "/work/elastic-run.deb")
    assert inside("dpkg", "--verify", "elastic-run").stdout == ""
    assert inside("elastic-run", "--version").stdout == f"elastic-run {version()}\n"
    assert train(["elastic-run"], "--no-python", "sh", "/work/worker.sh") == TRAINED_BY_SHELL

    with gzip.open(system / "usr/share/man/man1/elastic-run.1.gz") as manual:
        assert manual.read() == (ROOT / "man/elastic-run.1").read_bytes()
    assert_completions(system / "usr/share", "vendor-completions")
    with gzip.open(system / "usr/share/doc/elastic-run/changelog.gz", "rt") as changelog:
        assert changelog.readline() == f"elastic-run ({version()}) unstable; urgency=medium\n"

    inside("dpkg", "--purge", "elastic-run")
    assert roots.files_in(system) - before == {"work/elastic-run.deb", "work/worker.sh", "work/worker.py",
                                               "work/raw_store.py"} - before


def test_the_tarball_is_unpacked_and_run_on_a_bare_debian(packages, system, inside, train):
    shutil.copy(packages[".gz"], system / "work/elastic-run.tar.gz")
    inside("tar", "-xzf", "/work/elastic-run.tar.gz", "-C", "/usr/local", "--strip-components=1")
    assert inside("elastic-run", "--version").stdout == f"elastic-run {version()}\n"
    assert train(["elastic-run"], "--no-python", "sh", "/work/worker.sh") == TRAINED_BY_SHELL
    share = system / "usr/local/share"
    assert (share / "man/man1/elastic-run.1").read_bytes() == (ROOT / "man/elastic-run.1").read_bytes()
    assert_completions(share, "site-functions")
    for name in ("README.md", "LICENSE", "CHANGELOG.md"):
        assert (share / "doc/elastic-run" / name).read_bytes() == (ROOT / name).read_bytes()


def assert_completions(share, zsh):
    for path, shell in [("bash-completion/completions/elastic-run", "bash"), (f"zsh/{zsh}/_elastic-run", "zsh"),
                        ("fish/vendor_completions.d/elastic-run.fish", "fish")]:
        printed = subprocess.run([ROOT / "build/release/elastic-run", "--print-completion", shell],
                                 capture_output=True, check=True).stdout
        assert printed and (share / path).read_bytes() == printed, path


@pytest.mark.time_limit(240)
def test_the_wheel_is_installed_run_and_removed_by_pip_on_a_bare_debian(packages, system, inside, train):
    inside("apt-get", "-qq", "-o", "APT::Install-Recommends=0", "-o", "APT::Sandbox::User=root", "install", "-y",
           "python3-venv", timeout=180)
    inside("python3", "-m", "venv", "/venv")
    before = roots.files_in(system)
    shutil.copy(packages[".whl"], system / "work")
    pip = ["/venv/bin/python3", "-m", "pip", "--disable-pip-version-check"]
    inside(*pip, "install", "--no-index", f"/work/{packages['.whl'].name}")
    on_path = ["env", "PATH=/usr/bin:/bin", "/venv/bin/elastic-run"]  # as cron starts it: nothing is activated
    assert inside(*on_path, "--version").stdout == f"elastic-run {version()}\n"
    assert train(on_path, "/work/worker.py") == [
        "rank 0 of 2 trained, sum 3", "rank 1 of 2 trained, sum 3"]
    assert inside(*pip, "check").returncode == 0
    inside(*pip, "uninstall", "--yes", "elastic-run")
    left = {path for path in roots.files_in(system) - before if "__pycache__" not in path}
    assert left == {f"work/{packages['.whl'].name}"}
