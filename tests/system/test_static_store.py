"""The worker store over restarts: nothing of an earlier round reaches a later one, on one port or on
another one each round."""
# ctest: gate

import contextlib
import os
import pathlib
import re
import signal
import subprocess

import harness
import pytest
import raw_store
import workers

# A worker that speaks the same protocol, quick enough for many rounds. Each writes a key that ends with
# its round, sees that no key of another round is there, and ends with failure until $ROUNDS are over.
# Before rank 1 fails, its children have begun to open connections, each of which writes a key of this
# round without waiting for anything: when they are killed, some are still unread, some not accepted.
WORKER = r"""
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char* variable(const char* name) {
  const char* value = getenv(name);
  if (!value) exit(100);
  return value;
}

static int connect_to_store(void) {
  struct sockaddr_in where = {.sin_family = AF_INET};
  where.sin_port = htons((uint16_t)atoi(variable("MASTER_PORT")));
  inet_pton(AF_INET, variable("MASTER_ADDR"), &where.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr*)&where, sizeof where) != 0) return -1;
  return fd;
}

static size_t put_text(char* to, const char* text) {
  uint64_t size = strlen(text);
  memcpy(to, &size, 8);
  memcpy(to + 8, text, size);
  return 8 + size;
}

static void send_all(int fd, const char* bytes, size_t size) {
  if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size) exit(101);
}

static void receive(int fd, void* to, size_t size) {
  if (size && recv(fd, to, size, MSG_WAITALL) != (ssize_t)size) exit(102);
}

// VALIDATE and SET of a key, in one piece.
static size_t set_message(char* to, const char* key) {
  memcpy(to, "\0\xce\xf7\x85\x3c\x01", 6);
  size_t size = 6 + put_text(to + 6, key);
  return size + put_text(to + size, "");
}

static void flood(const char* round) {
  char key[64], message[256];
  snprintf(key, sizeof key, "late of %s", round);
  size_t size = set_message(message, key);
  // No more than that: each holds a port of ours for a minute.
  for (int i = 0; i < 40; ++i) {
    int fd = connect_to_store();
    if (fd < 0) _exit(0);
    send(fd, message, size, MSG_NOSIGNAL);
    close(fd);
  }
  for (;;) pause();
}

// Fails if a key is there that does not end with this round; returns how many there are.
static int64_t look(int fd, const char* round) {
  int64_t count, i;
  send_all(fd, "\x11", 1);
  receive(fd, &count, 8);
  for (i = 0; i < count; ++i) {
    char key[8192 + 1] = "";
    uint64_t size;
    receive(fd, &size, 8);
    receive(fd, key, size);
    const char* last = strrchr(key, ' ');
    if (last && strcmp(last + 1, round) == 0) continue;
    dprintf(1, "round %s has the key '%s'\n", round, key);
    exit(103);
  }
  return count;
}

int main(void) {
  const char* round = variable("TORCHELASTIC_RESTART_COUNT");
  int rank = atoi(variable("RANK"));
  if (rank == 1) dprintf(2, "port %s\n", variable("MASTER_PORT"));
  char key[64], message[256];
  int fd = connect_to_store();
  if (fd < 0) return 104;
  snprintf(key, sizeof key, "rank %d of %s", rank, round);
  send_all(fd, message, set_message(message, key));
  int rounds = atoi(variable("ROUNDS"));
  // Until both ranks' keys are there.
  while (look(fd, round) < 2) poll(NULL, 0, 1);
  if (atoi(round) >= rounds) {
    look(fd, round);
    return 0;
  }
  if (rank == 0) for (;;) pause();
  for (int i = 0; i < 2; ++i) {
    if (fork() == 0) flood(round);
  }
  // Until theirs is, too.
  while (look(fd, round) < 3) poll(NULL, 0, 1);
  return 1;
}
"""


@pytest.mark.time_limit(300)
@pytest.mark.parametrize("kind", ["static", "standalone"])
def test_no_key_of_an_earlier_round_is_ever_seen_over_100_restarts(elastic_run, static_c, kind):
    port = workers.free_port()
    options = [f"--master-port={port}"] if kind == "static" else []
    result = elastic_run(*options, "--nproc-per-node=2", "--max-restarts=100", "--shutdown-timeout=0",
                         "--no-python", static_c(WORKER), env={"ROUNDS": "100", "OMP_NUM_THREADS": "1"}, timeout=280)
    assert (result.returncode, result.stdout) == (0, ""), result
    assert result.stderr.count("restarting all workers") == 100
    ports = re.findall(r"^port (\d+)$", result.stderr, re.MULTILINE)
    assert len(ports) == 101
    if kind == "static":
        assert set(ports) == {str(port)}
    else:
        assert len(set(ports)) > 50


# A worker that waits until it is told to fail, in the first round; then it says how the store is.
WAITS = """\
import os, sys
os.write(1, f"store {os.environ['MASTER_PORT']}\\n".encode())
open("go").read()
sys.exit(os.environ["TORCHELASTIC_RESTART_COUNT"] == "0")
"""


@pytest.fixture
def job(elastic_run, script, tmp_path):
    """job(options...): a job of one worker; `next()` ends a round of it and returns the next one's port."""
    os.mkfifo(tmp_path / "go")

    class Job:
        def __init__(self, *options):
            self.running = elastic_run.start("--max-restarts=1", *options, script("waits.py", WAITS))

        def port(self):
            return int(self.running.wait_for_line(r"^store (\d+)$", stream="stdout").group(1))

        def go(self):
            with open(tmp_path / "go", "w"):
                pass

        def next(self):
            self.go()
            return self.port()

        def end(self):
            self.go()
            result = self.running.wait()
            assert result.returncode == 0, result

    return Job


@pytest.mark.parametrize("kind", ["static", "standalone"])
def test_a_connection_of_an_earlier_round_is_closed_and_its_keys_are_gone(job, kind):
    port = workers.free_port()
    running = job(*([f"--master-port={port}"] if kind == "static" else []))
    first = running.port()
    old = raw_store.connect(first)
    old.sendall(raw_store.set_command(b"key"))
    assert raw_store.check(old, b"key") == raw_store.READY
    second = running.next()
    with contextlib.suppress(ConnectionResetError):
        assert old.recv(1) == b""
    with pytest.raises(OSError):
        for _ in range(100):
            old.sendall(raw_store.set_command(b"key"))
    if kind == "static":
        assert first == second == port
    else:
        with pytest.raises(ConnectionRefusedError):
            raw_store.connect(first)
    with raw_store.connect(second) as new:
        assert raw_store.check(new, b"key") == raw_store.NOT_READY
    running.end()


# Rank 0 cleans up when it is stopped, and needs the store for it.
CLEANS_UP = f"""\
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import raw_store

port = int(os.environ["MASTER_PORT"])
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1":
    os.write(1, b"keys %d\\n" % raw_store.number_of_keys(raw_store.connect(port)))
elif os.environ["RANK"] == "1":
    open("ready").read()
    sys.exit(1)
else:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    open("ready", "w").close()
    signal.sigwait([signal.SIGTERM])
    client = raw_store.connect(port)
    client.sendall(raw_store.set_command(b"late"))
    assert raw_store.check(client, b"late") == raw_store.READY
    os.write(1, b"cleaned up\\n")
"""


@pytest.mark.parametrize("kind", ["static", "standalone"])
def test_a_worker_that_is_being_stopped_still_has_its_store_and_writes_nothing_into_the_next(
        elastic_run, script, tmp_path, kind):
    os.mkfifo(tmp_path / "ready")
    options = [f"--master-port={workers.free_port()}"] if kind == "static" else []
    result = elastic_run(*options, "--nproc-per-node=2", "--max-restarts=1",
                         script("cleans_up.py", CLEANS_UP), env={"OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, result
    assert result.stdout == "cleaned up\n" + "keys 0\n" * 2


# In its first round it stops the launcher, connects, writes a key on each connection, and ends. The
# launcher will learn of that end before it looks at the connections: a child of it has ended already.
LATE = f"""\
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import harness, raw_store

def leave_an_orphan_that_ends():
    reading, writing = os.pipe()
    if os.fork() == 0:
        parent = os.getpid()
        orphan = os.fork()
        if orphan == 0:
            harness.wait_until(lambda: os.getppid() != parent)
        else:
            os.write(writing, str(orphan).encode())
        os._exit(0)
    os.wait()
    orphan = int(os.read(reading, 20))
    harness.wait_until(lambda: not harness.alive(orphan))

port = int(os.environ["MASTER_PORT"])
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os.kill(os.getppid(), signal.SIGSTOP)
    leave_an_orphan_that_ends()
    late = [raw_store.connect(port) for _ in range(50)]
    for client in late:
        client.sendall(raw_store.set_command(b"late"))
    sys.exit(1)
os.write(1, b"keys %d\\n" % raw_store.number_of_keys(raw_store.connect(port)))
"""


def test_connections_that_no_one_has_accepted_when_their_round_ends_never_reach_the_next(
        elastic_run, script):
    running = elastic_run.start(f"--master-port={workers.free_port()}", "--max-restarts=1",
                                script("late.py", LATE))
    harness.wait_until(lambda: harness.read_process(running.launcher()).state == "T", what="elastic-run is stopped")
    harness.wait_until(lambda: len(running.processes()) == 2, what="its worker has ended")
    running.send_signal(signal.SIGCONT)
    result = running.wait()
    assert (result.returncode, result.stdout) == (0, "keys 0\n"), result


def listening_addresses(port):
    """Where somebody listens at that port: hexadecimal, as /proc/net says it."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                address, at = line.split()[1].split(":")
                if line.split()[3] == "0A" and int(at, 16) == port:
                    found.add(address)
    return found


def listens_at(port):
    """The same of a port at which somebody listens: a table that changes while it is read may lack a line."""
    return harness.wait_until(lambda: listening_addresses(port), what=f"somebody at port {port}")


def test_a_standalone_jobs_store_listens_on_loopback_only(job):
    running = job()
    assert listens_at(running.port()) == {"0100007F"}
    assert listens_at(running.next()) == {"0100007F"}
    running.end()


def test_a_static_jobs_store_listens_on_loopback_only(job):
    running = job(f"--master-port={workers.free_port()}")
    assert listens_at(running.port()) == {"0100007F"}
    assert listens_at(running.next()) == {"0100007F"}
    running.end()



def test_workers_host_the_store_themselves_where_sharing_is_disabled(elastic_run):
    """Nobody listens at their port, which is then free for rank 0."""
    result = elastic_run("--no-python", "sh", "-c", "echo $MASTER_PORT; read line",
                         env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
    port = int(result.stdout)
    assert listening_addresses(port) == set()


def test_many_jobs_at_once_on_one_machine_do_not_meet(elastic_run):
    jobs = [elastic_run.start("--no-python", "sh", "-c", "echo $MASTER_PORT; cat",
                              stdin=subprocess.PIPE) for _ in range(8)]
    ports = {job.wait_for_line(r"^\d+$", stream="stdout").group(0) for job in jobs}
    for job in jobs:
        job.popen.stdin.close()
        assert job.wait().returncode == 0
    assert len(ports) == 8
