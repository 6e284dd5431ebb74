"""A file server that never answers, for what must not wait for it for ever."""

import ctypes
import os
import select
import struct
import threading

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
LOOKUP, INIT = 1, 26
REQUEST = struct.Struct("<IIQQIIIHH")  # fuse_in_header of linux/fuse.h
REPLY = struct.Struct("<IiQ")  # fuse_out_header
INIT_REPLY = struct.Struct("<IIIIHHIIHHI28x")  # fuse_init_out of protocol 7.23 and later


class DeafServer:
    """Serves a FUSE file system, and lets every request but the greeting lie. Who has sent one waits in
    state D once it is killed. close() ends them all."""

    def __init__(self, directory):
        self.directory = directory
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        self._stop, self._stopped = os.pipe()
        self.asked = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self):
        """To be called once it is mounted; the device knows no requests before."""
        self._thread.start()

    def mount_here(self):
        """A preexec_fn: mounts it in a namespace that goes with the process and what it starts."""
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0".encode()
        if (libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or
                libc.mount(b"deaf", os.fsencode(self.directory), b"fuse", 0, options)):
            raise OSError(ctypes.get_errno(), "cannot mount")

    def close(self):
        if self._device < 0:
            return
        os.write(self._stopped, b".")
        if self._thread.ident is not None:
            self._thread.join()
        for fd in (self._device, self._stop, self._stopped):
            os.close(fd)
        self._device = -1

    def _serve(self):
        while True:
            ready, _, _ = select.select([self._device, self._stop], [], [])
            if self._stop in ready:
                return
            request = os.read(self._device, 1 << 17)
            _, operation, number, *_ = REQUEST.unpack_from(request)
            if operation == INIT:
                body = INIT_REPLY.pack(7, 31, 0, 0, 1, 1, 4096, 1, 0, 0, 0)
                os.write(self._device, REPLY.pack(REPLY.size + len(body), 0, number) + body)
            elif operation == LOOKUP:
                self.asked.set()
