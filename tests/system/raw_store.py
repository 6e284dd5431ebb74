"""PyTorch's TCPStore protocol on a bare socket. docs/store-protocol.md specifies it."""

import socket
import struct

(VALIDATE, SET, COMPARE_SET, GET, ADD, CHECK, WAIT, GETNUMKEYS, DELETE_KEY, APPEND, MULTI_GET,
 MULTI_SET, CANCEL_WAIT, PING, QUEUE_PUSH, QUEUE_POP, QUEUE_LEN, LIST_KEYS, BARRIER) = range(19)
HELLO = bytes.fromhex("00cef7853c")  # VALIDATE and its magic number
READY, NOT_READY = b"\0", b"\1"

KEY_BYTES = 8192
VALUE_BYTES = 8 * 1024 * 1024
KEYS_IN_A_LIST = 131072


def i64(number):
    return struct.pack("<q", number)


def text(content):
    return i64(len(content)) + content


def keys(*names):
    return i64(len(names)) + b"".join(map(text, names))


def request(op, *arguments):
    """A request's bytes; an int among the arguments is an i64, bytes are as they are."""
    return bytes([op]) + b"".join(
        i64(part) if isinstance(part, int) else part for part in arguments)


class Raw:
    """A connection without PyTorch's client. `greet=False`: nothing has been sent yet."""

    def __init__(self, server, greet=True):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=250)  # the test's time limit ends a hang
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = self.socket.getsockname()[1]
        if greet:
            self.send(HELLO)
            assert self.answers() == b""

    def send(self, *parts):
        self.socket.sendall(b"".join(parts))
        return self

    def send_in_pieces(self, data, size=1):
        for start in range(0, len(data), size):
            self.send(data[start:start + size])
        return self

    def receive(self, size):
        """That many bytes, or fewer if the server closes."""
        data = bytearray()
        while len(data) < size and (piece := self.socket.recv(min(size - len(data), 1 << 20))):
            data += piece
        return bytes(data)

    def answers(self):
        """All that was answered so far: a PING's answer comes after it."""
        self.send(bytes([PING]), b"\xa5\x5a\xc3\x3c")
        data = bytearray()
        while not data.endswith(b"\xa5\x5a\xc3\x3c"):
            piece = self.socket.recv(1 << 20)
            assert piece, "the connection was closed"
            data += piece
        return bytes(data[:-4])

    def ask(self, *arguments):
        return self.send(request(*arguments)).answers()

    def until_closed(self):
        """What comes before the server closes."""
        data = bytearray()
        try:
            while piece := self.socket.recv(1 << 20):
                data += piece
        except ConnectionResetError:
            pass
        return bytes(data)

    def leave(self):
        self.socket.close()

    def vanish(self):
        """Ends the connection by a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


# As little as tests of the launcher need.

def set_command(key, value=b""):
    return request(SET, text(key), text(value))


def connect(port, host="127.0.0.1"):
    client = socket.create_connection((host, port), timeout=30)
    client.sendall(HELLO)
    return client


def check(client, key):
    """READY if the key is there."""
    client.sendall(request(CHECK, keys(key)))
    return client.recv(1)


def number_of_keys(client):
    client.sendall(request(GETNUMKEYS))
    return int.from_bytes(client.recv(8), "little")
