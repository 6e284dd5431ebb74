"""PyTorch's TCPStore protocol on a bare socket, as little of it as tests of the launcher need."""

import socket
import struct

VALIDATE = b"\0" + struct.pack("<I", 0x3C85F7CE)
READY, NOT_READY = b"\0", b"\1"


def text(value):
    return struct.pack("<Q", len(value)) + value


def set_command(key, value=b""):
    return b"\x01" + text(key) + text(value)


def connect(port, host="127.0.0.1"):
    client = socket.create_connection((host, port), timeout=30)
    client.sendall(VALIDATE)
    return client


def check(client, key):
    """READY if the key is there."""
    client.sendall(b"\x05" + struct.pack("<Q", 1) + text(key))
    return client.recv(1)


def number_of_keys(client):
    client.sendall(b"\x07")
    return int.from_bytes(client.recv(8), "little")
