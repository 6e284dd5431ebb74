"""A wire of the tests' own between a client and a server on loopback: it keeps what goes over it."""

import contextlib
import socket
import threading


class Relay:
    """Listens at `port`; each connection is carried on to `to`, a port of loopback."""

    def __init__(self, to):
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._seen = {}  # per connection and direction, in the order in which they began
        self._lock = threading.Lock()
        self._sockets = []
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def conversations(self):
        """The bytes of each direction of each connection so far."""
        with self._lock:
            return [bytes(data) for data in self._seen.values()]

    def close(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:  # nobody is there, and the client is told so
                client.close()
                continue
            with self._lock:
                self._sockets += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source, sink):
        with self._lock:
            seen = self._seen[source] = bytearray()
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                with self._lock:
                    seen += piece
                sink.sendall(piece)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
