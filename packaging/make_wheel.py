#!/usr/bin/env python3
"""make_wheel.py --version V --binary FILE --description FILE --license FILE ... --output DIRECTORY

Writes the wheel elastic_run, whose only content is the binary, as `data/scripts/elastic-run`: pip puts it on
PATH and makes it executable. Nothing of it can be imported. Prints the path of the wheel. The same input and
SOURCE_DATE_EPOCH give the same bytes. The format: packaging.python.org, "Binary distribution format"."""

import argparse
import base64
import hashlib
import os
import pathlib
import platform
import time
import zipfile

NAME = "elastic_run"


def tags(machine):
    """Where pip may install it. The binary is static and runs beside any C library; these are the oldest names
    for "Linux, glibc" and "Linux, musl" that there are for every machine, so that an old pip knows one too."""
    return f"py3-none-manylinux2014_{machine}.manylinux_2_17_{machine}.musllinux_1_1_{machine}"


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def metadata(version, description, licenses):
    head = ["Metadata-Version: 2.4", "Name: elastic-run", f"Version: {version}",
            "Summary: Starts, watches and restarts the workers of a distributed training job",
            "License-Expression: Apache-2.0",
            *(f"License-File: {name}" for name in licenses),
            "Classifier: Environment :: Console", "Classifier: Operating System :: POSIX :: Linux",
            "Description-Content-Type: text/markdown"]
    return "\n".join(head) + "\n\n" + description


def contents(arguments):
    """Every file of the wheel but RECORD: (path, bytes, mode)."""
    info = f"{NAME}-{arguments.version}.dist-info"
    machine_tags = tags(arguments.machine)
    python, abi, platforms = machine_tags.split("-")
    wheel = ["Wheel-Version: 1.0", "Generator: elastic-run packaging/make_wheel.py", "Root-Is-Purelib: false",
             *(f"Tag: {python}-{abi}-{name}" for name in platforms.split("."))]
    licenses = {path.name if path.parent.name != "notices" else f"notices/{path.name}": path.read_bytes()
                for path in sorted(arguments.license)}
    description = arguments.description.read_text(encoding="utf-8")
    yield f"{NAME}-{arguments.version}.data/scripts/elastic-run", arguments.binary.read_bytes(), 0o755
    for name, text in licenses.items():
        yield f"{info}/licenses/{name}", text, 0o644
    yield f"{info}/METADATA", metadata(arguments.version, description, licenses).encode(), 0o644
    yield f"{info}/WHEEL", ("\n".join(wheel) + "\n").encode(), 0o644


def write_wheel(arguments):
    path = arguments.output / f"{NAME}-{arguments.version}-{tags(arguments.machine)}.whl"
    date = max(time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6], (1980, 1, 1, 0, 0, 0))  # zip knows no earlier
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whose modes follow
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data)

        for name, data, mode in contents(arguments):
            add(name, data, mode)
            record += f"{name},{digest(data)},{len(data)}\n"
        name = f"{NAME}-{arguments.version}.dist-info/RECORD"
        add(name, (record + f"{name},,\n").encode(), 0o644)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--machine", default=platform.machine())
    for name in ("binary", "description", "output"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--license", required=True, nargs="+", type=pathlib.Path)
    print(write_wheel(parser.parse_args()))


if __name__ == "__main__":
    main()
