"""Ports for tests and measurements."""

import collections
import random
import socket

# Default ports for outgoing connections, and for stores of other tests, begin at 32768.
_PORTS = range(20000, 32000)
# A socket for each of the last ports that were given away here, bound to its name: processes of tests that run side by
# side do not give away the same port before one of them is in use.
_CLAIMS_KEPT = 200
_claims = collections.deque()


def free_port():
    """A port that nobody listens at, on any address, that the kernel gives to nobody by itself, and that no other test has
    been given lately."""
    while True:
        port = random.choice(_PORTS)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0elastic-run-tests/port/{port}")
            with socket.socket(socket.AF_INET6) as probe:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                probe.bind(("::", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        if len(_claims) > _CLAIMS_KEPT:
            _claims.popleft().close()
        return port
