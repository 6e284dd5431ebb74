"""A load of HTTP requests, for tests and measurements. As a program: http_load.py PORT REQUESTS_A_SECOND says that it
is ready, asks until the other side ends or its stdin does, and then prints how many were answered in a second."""

import socket
import sys
import threading
import time

PATIENCE = 30  # seconds until somebody listens


class Load:
    """So many requests a second for each of these paths, on a connection each, until it is stopped."""

    PIECE = 10  # requests that are sent at once

    def __init__(self, port, paths, per_second):
        self.answers = dict.fromkeys(paths, 0)
        self.seconds = dict.fromkeys(paths, 0.0)
        self.ended = {}  # by the other side: path -> how
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(port, path, per_second)) for path in paths]
        for thread in self._threads:
            thread.start()

    def _run(self, port, path, per_second):
        connection = self._connect(port)
        if connection is None:
            self.ended[path] = "nobody listens"
            return
        began = time.monotonic()
        try:
            with connection:
                self._ask(connection, path, per_second)
        except ConnectionError as error:
            self.ended[path] = str(error)
        self.seconds[path] = time.monotonic() - began

    def _connect(self, port):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not self._stop.is_set():
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=60)
            except ConnectionRefusedError:
                self._stop.wait(0.005)
        return None

    def _ask(self, connection, path, per_second):
        request = f"GET {path} HTTP/1.1\r\n\r\n".encode() * self.PIECE
        began, sent, seen = time.monotonic(), 0, b""
        while not self._stop.is_set():
            if sent >= (time.monotonic() - began) * per_second:
                self._stop.wait(0.001)
                continue
            connection.sendall(request)
            sent += self.PIECE
            while self.answers[path] < sent:
                piece = connection.recv(1 << 20)
                if not piece:
                    raise ConnectionError(f"closed after {self.answers[path]} answers")
                seen += piece
                self.answers[path] += seen.count(b"HTTP/1.1 200 OK\r\n")
                seen = seen[-16:]  # the beginning of another one, perhaps

    def stop(self):
        """Answers a second."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        return sum(count / self.seconds[path] for path, count in self.answers.items() if count)


def main():
    load = Load(int(sys.argv[1]), ["/metrics", "/status"], int(sys.argv[2]) / 2)
    print("ready", flush=True)
    sys.stdin.read()
    rate = load.stop()
    if not rate:
        sys.exit(f"no request was answered: {load.ended}")
    print(rate)


if __name__ == "__main__":
    main()
