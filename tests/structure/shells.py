"""scripts/lib.sh at work, with wheels of ours instead of gigabytes from PyPI."""

import os
import pathlib
import shutil
import subprocess
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def make_wheel(directory, name, requires=(), version="1.0"):
    """A Python package with nothing in it, as pip wants it."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" +
                            "".join(f"Requires-Dist: {needed}\n" for needed in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    directory.mkdir(exist_ok=True)
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))


class Shell:
    """Runs lines of bash after a copy of lib.sh, in a place and with an environment of its own."""

    def __init__(self, directory):
        self.directory = directory
        self.wheels = directory / "wheels"
        self.venv = directory / "cache/elastic-run/venv"
        make_wheel(self.wheels, "needed")
        make_wheel(self.wheels, "torch", requires=["needed"])
        (directory / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/lib.sh", directory / "scripts")

    def start(self, lines, **environment):
        values = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "PIP_NO_INDEX": "1",
                  "PIP_FIND_LINKS": str(self.wheels), "LANG": "C.UTF-8",
                  "XDG_CACHE_HOME": str(self.directory / "cache")} | environment
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c",
             f"source scripts/lib.sh; venv_needs_mib=10 steps_total=1; step here\n{lines}", "script"],
            env={name: value for name, value in values.items() if value is not None},
            text=True, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, lines, **environment):
        return finish(self.start(lines, **environment))


def finish(process):
    stdout, stderr = process.communicate(timeout=240)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def can_import(venv, *names):
    code = "import " + ", ".join(names)
    return subprocess.run([venv / "bin/python", "-c", code], check=False).returncode == 0
