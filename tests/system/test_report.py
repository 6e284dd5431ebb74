"""elastic-run --report: what was said of a failed job, again, from what the run has left."""
# ctest: gate

import ctypes
import json
import os
import re
import socket

import pytest
from deaf_server import CLONE_NEWNS, MS_PRIVATE, MS_REC

MS_BIND = 4096
FAILS = ["--no-python", "sh", "-c", 'echo "<b>boom</b>" >&2; exit 3']


@pytest.fixture
def failed(elastic_run, tmp_path):
    """What a failed job said at its end, and its run's directory."""
    result = elastic_run("--log-dir=logs", "--rdzv-id=job", "--nproc-per-node=2", *FAILS,
                         env={"OMP_NUM_THREADS": "1"})
    assert result.returncode == 1, result
    run, = (tmp_path / "logs").iterdir()
    return result.stderr[result.stderr.index("torch.distributed.elastic.multiprocessing.errors"):], run


def test_the_report_of_a_run_is_what_was_on_the_screen(elastic_run, failed):
    text, run = failed
    for directory in (run, run.parent):
        result = elastic_run("--report", directory)
        assert (result.returncode, result.stdout, result.stderr) == (0, text, "")


def test_reports_of_several_nodes_become_one(elastic_run, failed):
    text, run = failed
    again = run.parent / "again"
    again.mkdir()
    (again / "failure.json").write_text((run / "failure.json").read_text())
    result = elastic_run("--report", run, again)
    assert (result.returncode, result.stdout) == (0, text)  # a worker that two name is there once


@pytest.mark.parametrize("place", ["page.html", "-"])
def test_the_page_is_one_file_and_escapes_what_workers_wrote(elastic_run, failed, tmp_path, place):
    _, run = failed
    result = elastic_run("--report", run, "--html", place)
    assert result.returncode == 0, result
    page = result.stdout if place == "-" else (tmp_path / place).read_text()
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
    assert "&lt;b&gt;boom&lt;/b&gt;" in page and "<b>boom" not in page
    assert not re.search(r"<script|\bsrc=|https?://(?!pytorch\.org)", page)


def test_what_is_no_report_is_refused_with_the_reason(elastic_run, failed, tmp_path):
    _, run = failed
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/failure.json").write_text('{"version": 1,')
    for arguments, message in [
            (["--report=empty"], "--report=empty: there is no failure.json in it or right below it; name the log "
                                 "directory of a run that has failed"),
            (["--report=nowhere"], "--report=nowhere: No such file or directory; name a run's log directory"),
            (["--report=bad"], "bad/failure.json"),
            (["--report", run, "--html=empty"], "--html=empty: Is a directory; name a file that can be written"),
            (["--report", run, "--max-restarts=1"],
             "--max-restarts=1: --report starts no job; leave it out, or --report"),
            (["--html=x", "true"], "--html=x: it is for the page that --report makes"),
    ]:
        result = elastic_run(*arguments)
        assert (result.returncode, result.stdout) == (2, ""), result
        assert result.stderr.startswith("elastic-run: error: ") and message in result.stderr, result


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to put another file in the place of /etc/hosts")
def test_the_host_is_named_with_the_domain_that_the_hosts_file_has(elastic_run, tmp_path):
    name = socket.gethostname()
    (tmp_path / "hosts").write_text(f"127.0.0.1 localhost.localdomain localhost\n10.1.2.3 full.example.com {name}\n")

    def prepare():
        libc = ctypes.CDLL(None, use_errno=True)
        if (libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or
                libc.mount(os.fsencode(tmp_path / "hosts"), b"/etc/hosts", None, MS_BIND, None)):
            raise OSError(ctypes.get_errno(), "cannot mount")

    result = elastic_run("--log-dir=logs", "-t", "2", "--log-line-prefix-template=<${hostname}>", *FAILS,
                         preexec_fn=prepare)
    assert result.returncode == 1
    assert f"<{name}><b>boom</b>\n" in result.stderr  # torchrun's prefix has the short one
    if "." not in name:
        assert re.search(r"^    at .* on full\.example\.com$", result.stderr, re.MULTILINE)
        assert "\n  host      : full.example.com\n" in result.stderr
        run, = (tmp_path / "logs").iterdir()
        assert json.loads((run / "failure.json").read_text())["host"] == "full.example.com"
