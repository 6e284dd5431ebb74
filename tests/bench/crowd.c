// crowd MARKS N PROGRAM [ARGUMENT ...]: N launchers of one job, started as fast as that goes.
//
// MARKS is laid out by crowd.h. Notes the time before the first start and after the last, and each launcher's
// process; then reaps all of them. Ends with 0 if all did, with 1 if not, with 2 for a bad command line, with 3
// where not all could be started.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"

extern char** environ;

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char** argv) {
  const int count = argc > 3 ? atoi(argv[2]) : 0;
  const int file = count > 0 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
  struct stat facts;
  if (file < 0 || fstat(file, &facts) != 0) {
    fprintf(stderr, "usage: crowd MARKS N PROGRAM [ARGUMENT ...]\n");
    return 2;
  }
  struct crowd* marks = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (marks == MAP_FAILED || marks->launchers != (uint32_t)count) return 2;
  marks->began_ns = monotonic_ns();
  for (int i = 0; i < count; ++i) {
    const pid_t pid = vfork();
    if (pid == 0) {
      execve(argv[3], argv + 3, environ);
      _exit(127);
    }
    if (pid < 0) {
      perror("vfork");
      return 3;
    }
    crowd_pids(marks)[i] = pid;
  }
  marks->started_ns = monotonic_ns();
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) failed = 1;
  }
  marks->ended_ns = monotonic_ns();
  return failed;
}
