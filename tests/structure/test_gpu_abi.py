"""health/gpu/abi.h against the headers of CUDA, cuBLASLt, NCCL and NVML, which CMake looks for: ELASTIC_CUDA_INCLUDE,
ELASTIC_NCCL_INCLUDE, ELASTIC_NVML_INCLUDE name other directories."""

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ABI = "health/gpu/abi.h"
# What is looked for in which directories; NCCL's header includes CUDA's.
HEADERS = {"CUDA": ["CUDA"], "NCCL": ["NCCL", "CUDA"], "NVML": ["NVML"]}


def include_options(what):
    """Options of the compiler for these headers; skips the test where they are not."""
    options = [f"-DHAVE_{what}"]
    for name in HEADERS[what]:
        directory = os.environ.get(f"ELASTIC_{name}_INCLUDE", "")
        if not directory or directory.endswith("-NOTFOUND"):
            # NCCL comes with PyTorch, which may have been installed after CMake looked.
            directory = pathlib.Path(sysconfig.get_path("purelib"), "nvidia", name.lower(), "include")
        if not os.path.isdir(directory):
            pytest.skip(f"CMake has not found the headers of {name} (ELASTIC_{name}_INCLUDE)")
        options += ["-isystem", directory]
    return options


def errors_of(what, root):
    """What is wrong with the abi.h of that tree, by name."""
    options = include_options(what)
    done = subprocess.run(["c++", "-std=c++23", "-fsyntax-only", "-I", root, "-I", ROOT, *options,
                           ROOT / "tests/gpu/abi_check.cpp"], capture_output=True, text=True, check=False)
    errors = re.findall(r"error: (.*)", done.stderr)
    assert (done.returncode == 0) == (errors == []), done.stderr
    return errors


@pytest.mark.parametrize("what", HEADERS)
def test_what_is_declared_is_what_the_libraries_headers_say(what):
    assert errors_of(what, ROOT) == []


@pytest.mark.parametrize("what, before, after, name", [
    ("CUDA", "kCudaNoDevice = 100", "kCudaNoDevice = 102", "kCudaNoDevice"),
    ("CUDA", "(CudaPointer * pointer, size_t bytes)", "(CudaPointer * pointer, unsigned bytes)", "cuMemAlloc_v2"),
    ("CUDA", "(CudaStream * stream, unsigned flags)", "(CudaStream * stream)", "cuStreamCreate"),
    ("CUDA", "(float* milliseconds,", "(double* milliseconds,", "cuEventElapsedTime"),
    ("CUDA", "  int reserved[4];\n", "", "LtHeuristic"),
    ("CUDA", "     const LtAlgorithm* algorithm, void* workspace", "     LtAlgorithm algorithm, void* workspace", "cublasLtMatmul"),
    ("NCCL", "kNcclIdBytes = 128", "kNcclIdBytes = 64", "kNcclIdBytes"),
    ("NCCL", "  unsigned magic;\n  unsigned version;\n", "  unsigned version;\n  unsigned magic;\n", "NcclConfig.magic"),
    ("NCCL", "0xcafebeefU", "0xcafebeeeU", "NCCL_CONFIG_MAGIC"),
    ("NVML", "kNvmlFieldRecoveryAction = 230", "kNvmlFieldRecoveryAction = 231", "kNvmlFieldRecoveryAction"),
    ("NVML", "  unsigned long long reserved;  // by the driver\n", "", "NvmlMemory2"),
], ids=lambda value: value[:24])
def test_a_declaration_that_is_wrong_is_found(tmp_path, what, before, after, name):
    text = (ROOT / ABI).read_text()
    assert text.count(before) == 1
    (tmp_path / ABI).parent.mkdir(parents=True)
    (tmp_path / ABI).write_text(text.replace(before, after))
    assert any(name in error for error in errors_of(what, tmp_path))


def test_the_declarations_are_c_as_well(tmp_path):
    source = tmp_path / "c.c"
    source.write_text('#include "health/gpu/abi.h"\n')
    assert shutil.which("cc")
    done = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", ROOT, source],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
