"""Asks the CUDA driver, in a process of its own, by ctypes alone:

    driver.py look         a JSON object of the first device: name, memory_bytes, devices; exit status 1 and why without one
    driver.py hold BYTES   takes so much of its memory, or with -BYTES all that is free but so much, writes "holds BYTES"
                           and keeps it until its stdin ends
"""

import ctypes
import glob
import json
import os
import subprocess
import sys


def find_gpu(variables, is_stand_in=False):
    """(what `look` tells, why there is nothing): asked in a process of its own, with these changes of the environment."""
    if not is_stand_in and not glob.glob("/dev/nvidia[0-9]*") and not os.path.exists("/dev/dxg"):
        return None, "no GPU: there is no /dev/nvidia0"
    done = subprocess.run([sys.executable, __file__, "look"], env=os.environ | variables, capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode != 0:
        return None, f"no GPU that works: {done.stderr.strip()}"
    return json.loads(done.stdout), ""


def did(result, what):
    if result != 0:
        sys.exit(f"{what}: CUDA error {result}")


def main(what, amount="0"):
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(str(error))
    count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    did(cuda.cuInit(0), "cuInit")
    did(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    did(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    if what == "look":
        name, total = ctypes.create_string_buffer(256), ctypes.c_size_t()
        did(cuda.cuDeviceGetName(name, 256, device), "cuDeviceGetName")
        did(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device), "cuDeviceTotalMem")
        print(json.dumps({"name": name.value.decode(), "memory_bytes": total.value, "devices": count.value}))
        return
    did(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    did(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    size = int(amount)
    if size < 0:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        did(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
        size += free.value
    # It is allocated in pieces, since free memory need not be contiguous.
    piece, held = 256 << 20, 0
    pointer = ctypes.c_uint64()
    while held < size and cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(min(piece, size - held))) == 0:
        held += min(piece, size - held)
    print(f"holds {held}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
