// restart_worker MARKS [READY GO]: the worker of what measures restarts, under any launcher.
//
// MARKS is a file that the ranks of all attempts share (restarts.py lays it out): the header below, then
// when rank 0 died, an entry for each restart, then when each rank came to main, for each attempt. Times are
// CLOCK_MONOTONIC in nanoseconds.
//
// Every rank notes its time first of all, then waits to be ended by SIGTERM. When all are there, rank 0
// stays for the pause of this attempt, notes the time and kills itself. In the last attempt every rank ends
// with 0. With READY and GO, two FIFOs, rank 0 of every `look_every`-th attempt writes the attempt's number
// to the first and goes on when it has read a byte from the second.
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct header {
  uint32_t ranks;
  uint32_t restarts;
  uint32_t pause_us;         // at least, before rank 0 dies
  uint32_t pause_spread_us;  // and up to so much longer, another time in each attempt
  uint32_t look_every;
  _Atomic uint32_t arrived;  // ranks of all attempts so far
  _Atomic uint32_t wrong;    // ranks whose launcher told them another attempt than the one it is
  uint32_t unused;
};

enum { kBadUse = 9 };

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct header* map(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat facts;
  if (file < 0 || fstat(file, &facts) != 0) {
    return NULL;
  }
  void* made = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return made == MAP_FAILED ? NULL : made;
}

static void wait_for_all(struct header* marks, uint32_t all) {
  uint32_t seen;
  while ((seen = atomic_load(&marks->arrived)) < all) {
    syscall(SYS_futex, &marks->arrived, FUTEX_WAIT, seen, NULL, NULL, 0);
  }
}

static void let_look(const char* ready_path, const char* go_path, uint32_t attempt) {
  const int ready = open(ready_path, O_WRONLY | O_CLOEXEC);
  const int go = open(go_path, O_RDONLY | O_CLOEXEC);
  char byte;
  if (ready < 0 || go < 0 || write(ready, &attempt, sizeof attempt) != sizeof attempt || read(go, &byte, 1) != 1) {
    _exit(kBadUse);
  }
  close(ready);
  close(go);
}

int main(int argc, char** argv) {
  const int64_t came = monotonic_ns();
  const char* rank_text = getenv("RANK");
  struct header* marks = argc == 2 || argc == 4 ? map(argv[1]) : NULL;
  if (rank_text == NULL || marks == NULL) {
    return kBadUse;
  }
  const uint32_t rank = (uint32_t)atoi(rank_text);
  const uint32_t attempt = atomic_fetch_add(&marks->arrived, 1) / marks->ranks;
  const char* told = getenv("TORCHELASTIC_RESTART_COUNT");
  if (rank >= marks->ranks || attempt > marks->restarts || (told != NULL && (uint32_t)atoi(told) != attempt)) {
    atomic_fetch_add(&marks->wrong, 1);
    return kBadUse;
  }
  volatile int64_t* died = (int64_t*)(marks + 1);
  volatile int64_t* came_to_main = died + marks->restarts;
  came_to_main[(size_t)attempt * marks->ranks + rank] = came;
  syscall(SYS_futex, &marks->arrived, FUTEX_WAKE, 1, NULL, NULL, 0);
  if (attempt == marks->restarts) {
    return 0;
  }
  if (rank != 0) {
    for (;;) {
      pause();
    }
  }
  died[attempt] = 0;  // its page is there now
  wait_for_all(marks, (attempt + 1) * marks->ranks);
  if (argc == 4 && attempt % marks->look_every == 0) {
    let_look(argv[2], argv[3], attempt);
  }
  if (marks->pause_us + marks->pause_spread_us > 0) {
    const uint32_t scattered = attempt * 2654435761u >> 8;
    const uint32_t us = marks->pause_us + scattered % (marks->pause_spread_us + 1);
    const struct timespec pause_time = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&pause_time, NULL);
  }
  died[attempt] = monotonic_ns();
  kill(getpid(), SIGKILL);
  return kBadUse;
}
