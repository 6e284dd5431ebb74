"""A small file server whose answers to writes can be held back: a disk that is slow, or stops answering."""

import os
import select
import struct
import time

from deaf_server import INIT, INIT_REPLY, LOOKUP, REPLY, REQUEST, DeafServer

FORGET, GETATTR, SETATTR, MKDIR, UNLINK, RMDIR, RENAME = 2, 3, 4, 9, 10, 11, 12
OPEN, WRITE, RELEASE, FLUSH, OPENDIR, READDIR, RELEASEDIR, CREATE, INTERRUPT = 14, 16, 18, 25, 27, 28, 29, 35, 36
ENOENT, ENOTEMPTY, ENOSYS = 2, 39, 38
DIRECT_IO = 1  # every write comes here at once


class FileServer(DeafServer):
    """Files and directories in memory, mounted as a DeafServer is. Every write of at most `write_bytes` takes
    `write_seconds`; nothing is answered any more once `deaf_after` bytes were written, or from a request of the
    kind `deaf_at` on that comes after `answered` others of that kind."""

    def __init__(self, directory, write_seconds=0.0, write_bytes=4096, deaf_after=None, deaf_at=None, answered=0):
        super().__init__(directory)
        self._write_bytes = write_bytes
        self._write_seconds = write_seconds
        self._deaf_after = deaf_after
        self._deaf_at = deaf_at
        self._left = answered
        self._files = {1: {}}  # by node: a directory's names and nodes, or a file's bytes
        self._written = 0

    def content(self, *path):
        """The bytes of a file, or the names in a directory. A part "*" is the only one there."""
        found = self._files[1]
        for part in path:
            if part == "*":
                (part,) = found
            found = self._files[found[part]]
        return bytes(found) if isinstance(found, bytearray) else sorted(found)

    def _serve(self):
        while True:
            ready, _, _ = select.select([self._device, self._stop], [], [])
            if self._stop in ready:
                return
            try:
                request = os.read(self._device, 1 << 17)
            except OSError:  # unmounted: whoever used it has ended
                return
            _, operation, number, node, *_ = REQUEST.unpack_from(request)
            if operation in (FORGET, INTERRUPT):
                continue
            if operation == WRITE and self._deaf_after is not None and self._written >= self._deaf_after:
                self.asked.set()
            if operation == self._deaf_at:
                self._left -= 1
                if self._left < 0:
                    self.asked.set()
            if self.asked.is_set():
                continue
            answer = self._answer(operation, node, request[REQUEST.size:])
            error, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
            os.write(self._device, REPLY.pack(REPLY.size + len(body), error, number) + body)

    def _answer(self, operation, node, body):
        """What is answered: an error, or bytes."""
        if operation == INIT:
            return INIT_REPLY.pack(7, 31, 0, 0, 1, 1, self._write_bytes, 1, 0, 0, 0)
        if operation in (GETATTR, SETATTR):
            return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<QII", node, DIRECT_IO, 0)
        if operation == WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            time.sleep(self._write_seconds)
            self._files[node][offset:offset + size] = body[40:40 + size]
            self._written += size
            return struct.pack("<II", size, 0)
        if operation in (RELEASE, RELEASEDIR, FLUSH, READDIR):
            return b""
        if operation in (LOOKUP, MKDIR, CREATE, UNLINK, RMDIR):
            return self._by_name(operation, self._files[node], body)
        if operation == RENAME:
            before, after, _ = body[8:].decode().split("\0")
            self._files[struct.unpack_from("<Q", body)[0]][after] = self._files[node].pop(before)
            return b""
        return ENOSYS

    def _by_name(self, operation, directory, body):
        name = body[{MKDIR: 8, CREATE: 16}.get(operation, 0):].split(b"\0")[0].decode()
        if operation in (MKDIR, CREATE):
            made = len(self._files) + 1
            self._files[made] = {} if operation == MKDIR else bytearray()
            directory[name] = made
        if name not in directory:
            return ENOENT
        node = directory[name]
        if operation == RMDIR and self._files[node]:
            return ENOTEMPTY
        if operation in (UNLINK, RMDIR):
            del directory[name]
            return b""
        entry = struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self._attributes(node)
        return entry + (struct.pack("<QII", node, DIRECT_IO, 0) if operation == CREATE else b"")

    def _attributes(self, node):
        content = self._files[node]
        is_file = isinstance(content, bytearray)
        size = len(content) if is_file else 0
        return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, 0o100600 if is_file else 0o40700,
                           1, os.getuid(), os.getgid(), 0, 4096, 0)
