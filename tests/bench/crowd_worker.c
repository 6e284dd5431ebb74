// crowd_worker MARKS [LOCKS]: the worker of what measures many nodes. Notes in MARKS (crowd.h) when it came, waits to
// be ended, and notes when SIGTERM came.
//
// With LOCKS, a file, it looks first whether another worker lives that has its rank or is of another round. All
// that live hold locks of that file, which the kernel takes from whoever dies, however that happens: a byte for the
// round and a byte for the rank. A round is known by its fence, or, without one, by the port of its store.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"

enum { kBadUse = 9 };

// Where the bytes for ranks begin: rounds have numbers of 32 bits.
static const off_t kRounds = (off_t)1 << 32;

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint32_t number(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? UINT32_MAX : (uint32_t)atoi(text);
}

// FNV-1a: on hosts of their own the stores of two rounds may have one port.
static uint32_t round_number(void) {
  const char* fence = getenv("ELASTIC_RUN_FENCE");
  if (fence == NULL) return number("MASTER_PORT");
  uint32_t hash = 2166136261u;
  for (; *fence != '\0'; ++fence) hash = (hash ^ (unsigned char)*fence) * 16777619u;
  return hash;
}

// Who holds a lock on any of these bytes; 0 for nobody.
static int32_t holder(int file, off_t begin, off_t count) {
  struct flock asked = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = begin, .l_len = count};
  if (count == 0 || fcntl(file, F_GETLK, &asked) != 0 || asked.l_type == F_UNLCK) return 0;
  return asked.l_pid;
}

static int32_t conflict(const char* path, uint32_t round_of, uint32_t rank) {
  const int file = open(path, O_RDWR);
  struct flock round = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = round_of, .l_len = 1};
  struct flock place = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = kRounds + (off_t)rank, .l_len = 1};
  if (file < 0 || fcntl(file, F_SETLK, &round) != 0) _exit(kBadUse);
  int32_t found = holder(file, kRounds + (off_t)rank, 1);
  if (found == 0) found = holder(file, 0, round_of);
  if (found == 0) found = holder(file, (off_t)round_of + 1, kRounds - 1 - (off_t)round_of);
  fcntl(file, F_SETLK, &place);
  return found;
}

int main(int argc, char** argv) {
  const int64_t came_ns = monotonic_ns();
  const int file = argc == 2 || argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
  struct stat facts;
  if (file < 0 || fstat(file, &facts) != 0) return kBadUse;
  struct crowd* marks = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (marks == MAP_FAILED) return kBadUse;
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigprocmask(SIG_BLOCK, &stops, NULL);
  const uint32_t place = atomic_fetch_add(&marks->arrived, 1);
  if (place >= marks->capacity) return kBadUse;
  struct crowd_entry* mine = &crowd_entries(marks)[place];
  mine->pid = getpid();
  mine->rank = number("RANK");
  mine->world = number("WORLD_SIZE");
  mine->round = round_number();
  mine->restart = number("TORCHELASTIC_RESTART_COUNT");
  if (argc == 3) mine->conflict = conflict(argv[2], mine->round, mine->rank);
  __atomic_store_n(&mine->came_ns, came_ns, __ATOMIC_RELEASE);
  sigwaitinfo(&stops, NULL);
  mine->stopped_ns = monotonic_ns();
  return 0;
}
