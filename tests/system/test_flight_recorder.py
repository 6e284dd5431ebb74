"""The dumps of PyTorch's flight recorder, recorded anew by the PyTorch at hand, are read as the recorded ones are."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.time_limit(420)
def test_what_this_pytorch_dumps_is_read_as_its_recording_is(tmp_path):
    pytest.importorskip("torch")
    recordings_tests = pathlib.Path(os.environ["ELASTIC_RUN_BINARY"]).parent / "tests/recordings/recordings_tests"
    subprocess.run([sys.executable, ROOT / "tests/recordings/record_flight_recorder.py", tmp_path], check=True, timeout=200)
    assert len(list(tmp_path.glob("rank-*"))) == 6
    result = subprocess.run([recordings_tests, "--no-intro", "--test-case=*PyTorch*"], capture_output=True, text=True, timeout=200,
                            env=os.environ | {"ELASTIC_RUN_FLIGHT_RECORDINGS": str(tmp_path)})
    assert result.returncode == 0, result.stdout
    assert "test cases: 2 | 2 passed" in " ".join(result.stdout.split())
