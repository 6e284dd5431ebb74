"""Ports for tests and measurements."""

import random
import socket

# Default ports for outgoing connections, and for stores of other tests, begin at 32768.
_PORTS = range(20000, 32000)


def free_port():
    """A port that nobody listens at, on any address, and that the kernel gives to nobody by itself."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket(socket.AF_INET6) as probe:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            try:
                probe.bind(("::", port))
                return port
            except OSError:
                continue
