// respawn N PROGRAM [ARGUMENT ...]: the least that a restart can cost, as a measure for one.
//
// Starts PROGRAM N times by vfork, setsid and execve, each with RANK in the environment. When one ends
// otherwise than with 0, it sends SIGTERM to the group of every one, waits for all of them and starts the
// same N again. Ends with 0 as soon as all of them did. There is no store, no cgroup, no directory, no
// guardian, nothing is told to anybody, and what a worker forked may live on. 2 for a bad command line.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum { kMost = 4096 };

static char** environments[kMost];  // one for each rank, made once
static pid_t workers[kMost];

static char** with_rank(int rank) {
  size_t count = 0;
  while (environ[count] != NULL) {
    ++count;
  }
  char** made = malloc((count + 2) * sizeof *made);
  char* variable = malloc(32);
  if (made == NULL || variable == NULL) {
    exit(1);
  }
  memcpy(made, environ, count * sizeof *made);
  snprintf(variable, 32, "RANK=%d", rank);
  made[count] = variable;
  made[count + 1] = NULL;
  return made;
}

static void start(int count, char** program) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = vfork();
    if (pid == 0) {
      setsid();
      execve(program[0], program, environments[i]);
      _exit(127);
    }
    if (pid < 0) {
      perror("vfork");
      exit(1);
    }
    workers[i] = pid;
  }
}

// True if all ended with 0. Otherwise the others were told to end, and have ended.
static int all_end_well(int count) {
  int left = count;
  while (left > 0) {
    siginfo_t ended;
    // It stays a zombie until the groups were told: until then no number is another process's.
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) != 0) {
      exit(1);
    }
    const int well = ended.si_code == CLD_EXITED && ended.si_status == 0;
    if (well) {
      waitpid(ended.si_pid, NULL, 0);
      --left;
      for (int i = 0; i < count; ++i) {
        if (workers[i] == ended.si_pid) {
          workers[i] = 0;
        }
      }
      continue;
    }
    for (int i = 0; i < count; ++i) {
      if (workers[i] > 0) {
        kill(-workers[i], SIGTERM);
      }
    }
    for (; left > 0; --left) {
      wait(NULL);
    }
    return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  const int count = argc > 2 ? atoi(argv[1]) : 0;
  if (count < 1 || count > kMost) {
    fprintf(stderr, "usage: respawn N PROGRAM [ARGUMENT ...]\n");
    return 2;
  }
  for (int i = 0; i < count; ++i) {
    environments[i] = with_rank(i);
  }
  do {
    start(count, argv + 2);
  } while (!all_end_well(count));
  return 0;
}
