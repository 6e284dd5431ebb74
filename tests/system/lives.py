"""What the workers of a job note of their lives, each in a file of its own, and who looks whether two of them had one
rank, or were of two worlds, at the same time."""

import dataclasses
import struct

TIMES = struct.Struct("=QQ")

# Says who it is; until it is killed it stamps a file of its own with the nanoseconds after boot of its first
# instructions and of now. Behind them the file has who it is.
STAMPS = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
int main(void) {
  uint64_t start = now();
  char name[64], line[256], host[65] = "";
  snprintf(name, sizeof name, "stamps.%d", getpid());
  int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, 16)) return 1;
  volatile uint64_t* stamps = mmap(0, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (stamps == MAP_FAILED) return 2;
  gethostname(host, sizeof host - 1);
  int size = snprintf(line, sizeof line, "%s %s %s %s\n", host, getenv("RANK"), getenv("WORLD_SIZE"),
                      getenv("ELASTIC_RUN_FENCE"));
  if (pwrite(file, line, size, 16) != size) return 3;
  stamps[0] = start;
  stamps[1] = now();
  size = snprintf(line, sizeof line, "up %d rank %s of %s restart %s\n", getpid(), getenv("RANK"),
                  getenv("WORLD_SIZE"), getenv("TORCHELASTIC_RESTART_COUNT"));
  if (write(1, line, size) != size) return 3;
  for (;;) {
    stamps[1] = now();
    usleep(500);
  }
}
"""

# The beginning of a Python worker that does the same, in a thread, and does something else besides.
STAMPS_IN_PYTHON = """
import mmap, os, socket, struct, threading, time
_began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
_file = os.open(f"stamps.{os.getpid()}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
_who = [socket.gethostname(), *map(os.environ.get, ("RANK", "WORLD_SIZE", "ELASTIC_RUN_FENCE"))]
os.pwrite(_file, bytes(16) + (" ".join(_who) + "\\n").encode(), 0)
_times = mmap.mmap(_file, 16)
def _stamp():
    while True:
        struct.pack_into("=QQ", _times, 0, _began, time.clock_gettime_ns(time.CLOCK_BOOTTIME))
        time.sleep(0.0005)
struct.pack_into("=QQ", _times, 0, _began, time.clock_gettime_ns(time.CLOCK_BOOTTIME))  # before it says anything
threading.Thread(target=_stamp, daemon=True).start()
"""


class Worker:
    """The next one that a node has started."""

    def __init__(self, node, directory):
        found = node.wait_for_line(r"^up (\d+) rank (\d+) of (\d+) restart (\d+)", timeout=60, stream="stdout")
        self.pid, self.rank, self.world, self.restart = map(int, found.groups())
        self._file = directory / f"stamps.{self.pid}"

    @property
    def began(self):
        return TIMES.unpack_from(self._file.read_bytes())[0]

    @property
    def was_alive(self):
        """When it last was, in nanoseconds after boot."""
        return TIMES.unpack_from(self._file.read_bytes())[1]


@dataclasses.dataclass(frozen=True, order=True)
class Life:
    """One of a job's workers."""

    began: int  # nanoseconds after boot
    was_alive: int
    host: str
    rank: int
    world: int
    fence: str


def of_workers(directory):
    """All that there ever were in this directory, in the order in which they began."""
    found = []
    for file in directory.glob("stamps.*"):
        data = file.read_bytes()
        began, was_alive = TIMES.unpack_from(data.ljust(TIMES.size, b"\0"))
        if began == 0:
            continue  # it says who it is later, or was killed before
        host, rank, world, fence = data[TIMES.size:].decode().split()
        found.append(Life(began, was_alive, host, int(rank), int(world), fence))
    return sorted(found)


def check(directory):
    """Of the workers of one job that have noted their lives here: no two had one rank at the same time, and none began
    while one of an earlier world lived, or after one of a later had begun. Returns them."""
    lives = of_workers(directory)
    for index, one in enumerate(lives):
        for later in lives[index + 1:]:
            at_once = later.began <= one.was_alive
            assert not (at_once and one.rank == later.rank), f"rank {one.rank} was there twice: {one}, {later}"
            assert one.fence <= later.fence, f"an earlier world began after a later one: {one}, {later}"
            assert not (at_once and one.fence < later.fence), f"two worlds were there at once: {one}, {later}"
    assert lives, f"no worker has noted anything in {directory}"
    return lives
