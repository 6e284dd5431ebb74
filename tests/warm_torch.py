"""A Python whose `torch` is a stand-in, so that an import server is ready in a moment: for tests and soaks of warm workers."""

import pathlib
import subprocess

# All that the rehearsal of a first step asks of torch. What IN_SERVER has is run by the import server only.
TORCH = """
import os, sys
class Anything:
    def __getattr__(self, name):
        return Anything()
    def __call__(self, *_, **__):
        return Anything()
nn = optim = Anything()
class cuda:
    _is_in_bad_fork = staticmethod(lambda: False)
default_generator = Anything()
def __getattr__(name):
    return Anything()
if sys.argv[0] == "-c":
    exec(os.environ.get("IN_SERVER", ""))
"""
ANY = "def __getattr__(name):\n    return lambda *_, **__: None\n"


def make_python(place, base):
    """The Python of a virtual environment of the Python `base`, made in `place`."""
    subprocess.run([str(base), "-m", "venv", "--without-pip", str(place)], check=True, stdout=subprocess.DEVNULL)
    packages = packages_of(place / "bin/python")
    for name, text in {"torch/__init__.py": TORCH, "torch/distributed.py": ANY, "torch/utils/__init__.py": "",
                       "torch/utils/data.py": ""}.items():
        (packages / name).parent.mkdir(exist_ok=True)
        (packages / name).write_text(text)
    return place / "bin/python"


def packages_of(python):
    packages, = pathlib.Path(python).parents[1].glob("lib/python*/site-packages")
    return packages
