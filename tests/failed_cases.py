"""A plugin of pytest that notes which cases have failed, for second_chance.py.

ELASTIC_RUN_FAILED names the file. Each session of pytest appends lines of JSON, one at a time and whole, since several
sessions write there at once:

  {"session": ID, "begins": [FILE, ...]}                   the test files that it was given
  {"session": ID, "case": NODE ID, "timing": BOOL, ...}    each failure: of setup, call, teardown, or of collecting
  {"session": ID, "ends": EXIT STATUS, "passed": NUMBER}   missing if the session was killed

Paths are relative to the root of the repository. Without the variable nothing is noted.
"""

import json
import os
import uuid

import pytest

VARIABLE = "ELASTIC_RUN_FAILED"
LONGEST_ERROR = 300  # characters of an error's first line


def pytest_configure(config):
    # Taken away: a session that a test starts is not one of ours.
    if path := os.environ.pop(VARIABLE, None):
        config.pluginmanager.register(Notes(config, path))


class Notes:
    def __init__(self, config, path):
        self._root = config.rootpath
        self._path = os.path.abspath(path)
        self._session = uuid.uuid4().hex
        self._passed = 0

    def _note(self, **what):
        line = json.dumps({"session": self._session} | what).encode() + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            written = os.write(file, line)
        finally:
            os.close(file)
        if written != len(line):
            raise OSError(f"{self._path}: {written} of {len(line)} bytes were written")

    def pytest_sessionstart(self, session):
        here = session.config.invocation_params.dir
        files = {os.path.relpath(here / argument.split("::")[0], self._root) for argument in session.config.args}
        self._note(begins=sorted(files))

    # Outermost, so that an expected failure is one no more.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if report.failed:
            self._note(case=item.nodeid, timing=item.get_closest_marker("timing") is not None, when=report.when,
                       error=first_line(report), functions=functions_of(call.excinfo),
                       text="\n".join([report.longreprtext, *(text for _, text in report.sections), *said(item)]))
        self._passed += report.when == "call" and report.passed
        return report

    def pytest_collectreport(self, report):
        if report.failed:
            self._note(case=report.nodeid, timing=False, when="collect", error=first_line(report), functions=[],
                       text=report.longreprtext)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        self._note(ends=int(session.exitstatus), passed=self._passed)


def first_line(report):
    """Of the error, without what pytest shows around it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else report.longreprtext
    return next(iter(text.strip().splitlines()), "")[:LONGEST_ERROR]


def functions_of(excinfo):
    """FILE:FUNCTION of the call that failed and of its callers, the outermost first."""
    return [f"{os.path.basename(entry.path)}:{entry.name}" for entry in excinfo.traceback]


def said(item):
    """What the programs of a system test, and sanitizers, have written: the error may be of another program."""
    programs = (getattr(item, "funcargs", None) or {}).get("elastic_run")
    if programs is None:
        return []
    reports = [file.read_text(errors="replace") for file in sorted(programs.directory.glob("sanitizer.*"))]
    return [running.so_far() for running in programs.started] + reports
