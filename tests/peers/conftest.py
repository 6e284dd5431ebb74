"""The fixtures of tests/peers: those of the system tests, and `launchers`."""

import importlib.util
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
SYSTEM = HERE.parent / "system"
sys.path[:0] = [str(HERE), str(SYSTEM), str(HERE.parent)]
from launchers import Launchers  # noqa: E402

_spec = importlib.util.spec_from_file_location("system_conftest", SYSTEM / "conftest.py")
_system = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_system)
time_limit, elastic_run, script = _system.time_limit, _system.elastic_run, _system.script


@pytest.fixture
def launchers(elastic_run, request):
    return Launchers(elastic_run, request.node.name.removeprefix("test_"))
